"""Outputs of a graph of `to_onnx`, by ONNX Runtime: shared by the tests of exports and of models that are read."""

from typing import Any

import pytest


def run_onnx(graph: Any, X: Any) -> dict[str, Any]:
    """Outputs by name, for the rows X, or for inputs by name."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    inputs = X if isinstance(X, dict) else {"X": X}
    return dict(zip((o.name for o in session.get_outputs()), session.run(None, inputs), strict=True))
