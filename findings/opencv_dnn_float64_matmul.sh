#!/usr/bin/env bash
# OpenCV 5.0.0's dnn: a product of stacks of float64 matrices is garbage, without an error.
#
# Guess before the run: OpenCV 5 refuses a MatMul of float64 in three dimensions as it refuses one in two ("only float32
# is supported for now"), or computes it. Seen (constants (3, 2, 4) times (3, 4, 1) of a float32 input cast to double):
# the network loads and runs; of six values none is right, and some change from run to run. The same graph in float32
# is right, and onnxruntime computes both.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet "opencv-python-headless==5.0.0.93" "onnx==1.23.2" "onnxruntime==1.32.0"
"$place/venv/bin/python" - <<'PYTHON'
import cv2
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def outputs(dtype):
    kind = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE}[dtype]
    constants = {"W": np.arange(1.0, 25.0).reshape(3, 2, 4).astype(dtype), "axis": np.array([2])}
    nodes = [
        helper.make_node("Cast", ["X"], ["D"], to=kind),
        helper.make_node("Unsqueeze", ["D", "axis"], ["E"]),
        helper.make_node("MatMul", ["W", "E"], ["Y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [3, 4])],
        [helper.make_tensor_value_info("Y", kind, [3, 2, 1])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
    X = np.ones((3, 4), np.float32)
    net = cv2.dnn.readNetFromONNX(np.frombuffer(file, np.uint8))
    net.setInput(X, "X")
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return net.forward().ravel(), session.run(None, {"X": X})[0].ravel(), constants["W"].sum(axis=2).ravel()


print(f"opencv {cv2.__version__}, onnxruntime {onnxruntime.__version__}")
for dtype in (np.float32, np.float64):
    opencv, reference, right = outputs(dtype)
    print(f"{dtype.__name__}: opencv {opencv}, onnxruntime {reference}")
    np.testing.assert_allclose(reference, right)
    assert np.isclose(opencv, right).all() if dtype == np.float32 else not np.isclose(opencv, right).any()
PYTHON
echo "as described"
