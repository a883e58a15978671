"""Fitted machines as ONNX graphs and C headers: only this package imports onnx, and only when a graph is written.

::

    converters   register_converters(): the same graphs in those of skl2onnx
    c_header     to_c(): a machine as one C99 header, of functions in c_templates
    estimators   to_onnx(): labels, votes, scores and probabilities of an estimator
    machines     decision functions: linear, kernel expansions, trees of Nystroem machines
    clusters     those of early machines: routing, and the machine of each row's cluster
    kernels      kernel values
    parts        steps, scalings among them, machine and target of a model, for graphs and headers
    graph        nodes and constants
"""

from .c_header import to_c
from .converters import register_converters
from .estimators import to_onnx

__all__ = ["register_converters", "to_c", "to_onnx"]
