"""register_converters: skl2onnx's graphs with our machines in them, against our own predictions."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import exported_machines
from exported_machines import MACHINES, fitted
from onnx_outputs import run_onnx
from widemargin import (
    DCSVMClassifier,
    LandmarkNystroem,
    OCASClassifier,
    register_converters,
    to_onnx,
)

skl2onnx = pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")
from skl2onnx.common.data_types import FloatTensorType, StringTensorType  # noqa: E402

OPSET = {"": 18, "ai.onnx.ml": 3}


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    register_converters()


def run(model: Any, X: Any, **options: Any) -> list[Any]:
    options |= {"zipmap": False} if is_classifier(model) else {}
    graph = skl2onnx.to_onnx(model, X[:1], options=options or None, target_opset=OPSET)
    return list(run_onnx(graph, X).values())


def digits(n_classes: int, dtype: type) -> tuple[Any, Any]:
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    return (X[:300] / 16).astype(dtype), y[:300]


@pytest.mark.parametrize("name", [name for name in MACHINES if not {"sparse", "frozen"} & set(name.split())])
def test_machines(name: str) -> None:
    model = fitted(name)
    for dtype in (np.float32, np.float64):
        X = exported_machines.digits()[0].astype(dtype)
        *label, scores = run(model, X)
        expected = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
        expected = expected.reshape(len(X), -1)
        if is_classifier(model) and expected.shape[1] == 1:  # as of scikit-learn's SVC
            expected = np.hstack([expected, -expected])
        if name != "logistic":
            assert scores.dtype == dtype
            np.testing.assert_allclose(scores, expected, atol=1e-3 * expected.std())
        if is_classifier(model) or is_outlier_detector(model):
            assert label[0].shape == ((len(X),) if is_classifier(model) else (len(X), 1))
            assert np.mean(label[0].ravel() == model.predict(X)) > 0.99


@pytest.mark.parametrize("raw", [True, False])
def test_scores_of_two_classes_have_the_form_of_svc(raw: bool) -> None:
    X, y = digits(2, np.float32)
    machines = SVC(gamma=0.1), DCSVMClassifier(gamma=0.1)
    np.testing.assert_allclose(*(run(model.fit(X, y), X, raw_scores=raw)[1] for model in machines), atol=5e-3)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_of_the_logistic_loss(n_classes: int) -> None:
    X, y = digits(n_classes, np.float32)
    model = make_pipeline(StandardScaler(), OCASClassifier(loss="logistic")).fit(X, y)
    np.testing.assert_allclose(run(model, X)[1], model.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("n_pseudo_landmarks", [0, 4])
def test_landmarks_in_a_pipeline(n_pseudo_landmarks: int) -> None:
    X, y = digits(3, np.float32)
    landmarks = LandmarkNystroem(10, n_pseudo_landmarks=n_pseudo_landmarks, random_state=0)
    model = make_pipeline(StandardScaler(), landmarks, OCASClassifier(C=1.0)).fit(X, y)
    label, scores = run(model, X)
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-3)
    assert np.mean(label == model.predict(X)) > 0.99
    np.testing.assert_allclose(run(landmarks, model[0].transform(X))[0], model[:-1].transform(X), atol=1e-4)


def test_integers_as_input_and_calibration_by_skl2onnx() -> None:
    X, y = load_digits(n_class=3, return_X_y=True)
    X = X[:200].astype(np.int64)
    model = DCSVMClassifier().fit(X, y[:200])
    np.testing.assert_array_equal(run(model, X)[0], model.predict(X))
    calibrated = CalibratedClassifierCV(OCASClassifier(C=0.01), cv=2).fit(X.astype(np.float32), y[:200])
    X = X.astype(np.float32)
    np.testing.assert_allclose(run(calibrated, X)[1], calibrated.predict_proba(X), atol=1e-4)


def test_what_cannot_be_written() -> None:
    X, y = digits(2, np.float32)
    with pytest.raises(ValueError, match="target_opset must be at least 18, got 17"):
        skl2onnx.to_onnx(OCASClassifier().fit(X, y), X[:1], target_opset=17)


@pytest.mark.parametrize("machine", ["exact", "kernel", "input"])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_columns_of_numbers_and_of_text(machine: str, is_sparse: bool) -> None:
    numbers, y = digits(4, np.float32)
    table = pd.DataFrame(numbers[:, 20:24], columns=["a", "b", "c", "d"])
    table["size"] = np.where(numbers[:, 42] > 0.5, "large", np.where(numbers[:, 30] > 0.5, "small", "none"))
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=is_sparse)
    steps = [("scaled", StandardScaler(), ["a", "b", "c", "d"]), ("encoded", encoder, ["size"])]
    columns = ColumnTransformer(steps, sparse_threshold=float(is_sparse))
    early = {} if machine == "exact" else {"stop_level": 1, "n_levels": 1, "partition": machine, "random_state": 0}
    model = make_pipeline(columns, DCSVMClassifier(**early)).fit(table, np.array(["p", "q", "r", "s"])[y])
    assert machine == "exact" or model[-1].levels_[-1]["n_clusters"] > 1
    with pytest.raises(ValueError, match=r"(?s)has the step ColumnTransformer.*skl2onnx.to_onnx after widemargin"):
        to_onnx(model)
    kinds = dict.fromkeys(table, FloatTensorType([None, 1])) | {"size": StringTensorType([None, 1])}
    graph = skl2onnx.to_onnx(model, initial_types=list(kinds.items()), options={"zipmap": False}, target_opset=OPSET)
    table.loc[0, "size"] = "never seen"
    label, scores = run_onnx(graph, {name: table[[name]].to_numpy() for name in table}).values()
    expected = model.decision_function(table)
    np.testing.assert_allclose(scores, expected, atol=1e-3 * expected.std())
    assert np.mean(label == model.predict(table)) > 0.99
