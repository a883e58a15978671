"""Fitted machines as ONNX graphs: only this package imports onnx, and only when something is exported.

::

    estimators   to_onnx(): labels, votes and scores of an estimator
    machines     decision functions: linear, kernel expansions, trees of Nystroem machines
    steps        scalings of a pipeline before its machine
    graph        nodes and constants
"""

from .estimators import to_onnx

__all__ = ["to_onnx"]
