"""Graphs of to_onnx in other runtimes: scores and labels of those that run are ours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCPredClassifier,
    DCSVMClassifier,
    DCSVMRegressor,
    OCASClassifier,
    to_onnx,
)

pytestmark = pytest.mark.neighbours

KERNELS: dict[str, Any] = {
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.1},
    "poly": {"gamma": 0.1, "coef0": 1.0},
    "sigmoid": {"gamma": 0.01, "coef0": 0.1},
    "linear": {},
}
MODELS: dict[str, Any] = {f"exact {name}": DCSVMClassifier(kernel=name, **how) for name, how in KERNELS.items()}
MODELS |= {
    f"tree {name}": DCPredClassifier(kernel=name, n_clusters=3, n_landmarks=6, random_state=0, **how)
    for name, how in KERNELS.items()
}
MODELS |= {
    "early": DCSVMClassifier(gamma=0.3, stop_level=1),
    "pairs": DCSVMClassifier(gamma=0.1, decision_function_shape="ovo"),
    "budgeted": BSGDClassifier(gamma=0.1, budget=20, random_state=0),
    "linear": OCASClassifier(),
    "logistic": OCASClassifier(loss="logistic"),
    "calibrated": CalibratedClassifierCV(OCASClassifier(), cv=2),
    "regressor": make_pipeline(StandardScaler(), DCSVMRegressor(gamma=0.01)),
    "novelty": DCOneClassSVM(gamma=0.1),
    "triangle rule": DCPredClassifier(
        gamma=0.3, n_clusters=3, n_landmarks=5, n_pseudo_landmarks=4, pseudo="triangle", random_state=0
    ),
}


def opencv(path: str, X: Any, names: list[str]) -> list[Any]:
    cv2 = pytest.importorskip("cv2", minversion="5")
    net = cv2.dnn.readNetFromONNX(path)
    net.setInput(X, "X")
    return list(net.forward(names))


def tract(path: str, X: Any, names: list[str]) -> list[Any]:
    graph = pytest.importorskip("tract").onnx().load(path).into_model()
    return [value.to_numpy() for value in graph.into_runnable().run([X])]


def torch(path: str, X: Any, names: list[str]) -> list[Any]:
    convert = pytest.importorskip("onnx2torch").convert
    values = convert(path)(pytest.importorskip("torch").from_numpy(X))
    return [value.detach().numpy() for value in (values if isinstance(values, list | tuple) else [values])]


def openvino(path: str, X: Any, names: list[str]) -> list[Any]:
    core = pytest.importorskip("openvino").Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    values = compiled({"X": X})
    return [values[output] for output in compiled.outputs]


RUNTIMES: list[Callable[[str, Any, list[str]], list[Any]]] = [opencv, tract, torch, openvino]
REFUSED = {"opencv": {"early"}, "tract": {"early"}, "torch": {"early", "triangle rule"}, "openvino": set()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda runtime: runtime.__name__)
def test_graphs_run_elsewhere(runtime: Callable[..., list[Any]], name: str, tmp_path: Path) -> None:
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = (X[:300] / 16).astype(np.float32), y[:300]
    model = MODELS[name].fit(X, y)
    graph, path = to_onnx(model), tmp_path / "model.onnx"
    path.write_bytes(graph.SerializeToString())
    names = [output.name for output in graph.graph.output]
    if name in REFUSED[runtime.__name__]:
        with pytest.raises(Exception, match=r"Loop|ReduceM|input is empty"):
            runtime(str(path), X, names)
        return
    outputs = dict(zip(names, runtime(str(path), X, names), strict=True))
    method = "predict_proba" if "scores" not in outputs else "decision_function" if "label" in outputs else "predict"
    expected = getattr(model, method)(X)
    scores = np.asarray(outputs["scores" if "scores" in outputs else "probabilities"]).reshape(expected.shape)
    np.testing.assert_allclose(scores, expected, atol=1e-3 * expected.std())
    if is_classifier(model):
        assert np.mean(np.ravel(outputs["label"]) == model.predict(X)) > 0.99
