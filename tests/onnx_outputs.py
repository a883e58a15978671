"""Outputs of a graph of `to_onnx`, by ONNX Runtime: shared by the tests of exports and of models that are read."""

from typing import Any

import pytest


def run_onnx(graph: Any, X: Any) -> dict[str, Any]:
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip((o.name for o in session.get_outputs()), session.run(None, {"X": X}), strict=True))
