"""Trained machines as ONNX graphs: the one room that knows onnx, and loads it only when something is exported.

::

    estimators   to_onnx(): labels, votes, scores; which machine is written how
    machines     decision functions: linear, kernel expansions, trees of Nystroem machines
    steps        scalings that a pipeline does before
    graph        nodes and constants, written down one by one
"""

from .estimators import to_onnx

__all__ = ["to_onnx"]
