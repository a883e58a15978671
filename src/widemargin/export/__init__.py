"""Fitted machines as ONNX graphs: only this package imports onnx, and only when something is exported.

::

    converters   register_converters(): the same graphs in those of skl2onnx
    estimators   to_onnx(): labels, votes, scores and probabilities of an estimator
    machines     decision functions: linear, kernel expansions, trees of Nystroem machines
    clusters     those of early machines: routing, and the machine of each row's cluster
    kernels      kernel values
    steps        scalings of a pipeline before its machine
    graph        nodes and constants
"""

from .converters import register_converters
from .estimators import to_onnx

__all__ = ["register_converters", "to_onnx"]
