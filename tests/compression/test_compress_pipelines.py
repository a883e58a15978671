"""What users compress: pipelines with tables of numbers and categories, and searches."""

import pickle
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, HalvingRandomSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from widemargin import DCSVMClassifier, compress
from widemargin.compression.compressed import CompressedClassifier
from widemargin.compression.search import Compression


def mixed_table(n: int = 600) -> tuple[Any, NDArray[Any]]:
    """Two numbers and two categories; labels that follow from all."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "weight": rng.normal(size=n),
            "shape": pd.Categorical(rng.choice(["round", "square"], n)),
        }
    )
    score = frame["size"] * np.where(frame["colour"] == "red", 1, -1) + frame["weight"] * (frame["shape"] == "round")
    return frame, np.where(score > 0, "yes", "no")


def table_pipeline(last: Any, *, sparse: bool) -> Any:
    encoder = OneHotEncoder(sparse_output=sparse)
    steps = (StandardScaler(), ["size", "weight"]), (encoder, ["colour", "shape"])
    return make_pipeline(make_column_transformer(*steps, sparse_threshold=float(sparse)), last)


@pytest.mark.slow
@pytest.mark.filterwarnings("error", "ignore:only .* of the labels agree")  # names of features are those of the fit
@pytest.mark.parametrize(("output", "with_rows"), [("pandas", True), ("default", True), ("sparse", False)])
@pytest.mark.parametrize("last", [SVC(C=10), DCSVMClassifier(C=10)], ids=["SVC", "DCSVMClassifier"])
def test_a_pipeline_with_categories(last: Any, output: str, with_rows: bool) -> None:
    X, y = mixed_table()
    slow = table_pipeline(last, sparse=output == "sparse")
    slow = slow.set_output(transform="pandas" if output == "pandas" else "default").fit(X, y)
    fast = compress(slow, X if with_rows else None, random_state=0)
    assert np.mean(fast.predict(X) == slow.predict(X)) > (0.9 if with_rows else 0.8)
    assert fast[-1].report_.n_rows > 0


@pytest.mark.slow
def test_a_search_is_its_best_estimator() -> None:

    X, y = mixed_table()
    pipeline, grid = table_pipeline(SVC(), sparse=False), {"svc__C": [0.1, 10.0]}
    for search in (
        GridSearchCV(pipeline, grid, cv=2),
        RandomizedSearchCV(pipeline, grid, n_iter=2, cv=2, random_state=0),
        HalvingRandomSearchCV(pipeline, grid, n_candidates=2, cv=2, random_state=0),
        GridSearchCV(SVC(), {"C": [1.0, 10.0]}, cv=2),
    ):
        rows = X if search.estimator is pipeline else pipeline[:-1].fit_transform(X)
        fast = compress(search.fit(rows, y), rows, random_state=0)
        assert type(fast) is (type(pipeline) if search.estimator is pipeline else CompressedClassifier)
        assert np.mean(fast.predict(rows) == search.predict(rows)) > 0.9


def test_a_search_without_a_best_estimator_is_refused() -> None:

    X, y = mixed_table()
    with pytest.raises(NotFittedError):
        compress(GridSearchCV(SVC(), {"C": [1.0]}), X)
    search = GridSearchCV(SVC(), {"C": [1.0]}, cv=2, refit=False).fit(X[["size", "weight"]], y)
    with pytest.raises(ValueError, match="refit=True"):
        compress(search, X[["size", "weight"]])


@pytest.mark.slow
@pytest.mark.parametrize(("ensemble", "n_classes"), [(False, 2), (True, 3)])
def test_calibrated_probabilities_stay(ensemble: bool, n_classes: int) -> None:
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    slow = CalibratedClassifierCV(SVC(gamma=0.001), method="sigmoid", cv=2, ensemble=ensemble).fit(X[::2], y[::2])
    fast = compress(slow, X[::2], prediction_cost=32, random_state=0)
    assert np.abs(fast.predict_proba(X[1::2]) - slow.predict_proba(X[1::2])).mean() < 0.02
    assert np.mean(fast.predict(X[1::2]) == slow.predict(X[1::2])) > 0.98
    machines = [member.estimator for member in fast.calibrated_classifiers_]
    assert sum(machine.report_.cost_after for machine in machines) <= 34
    assert all(machine.report_.learnt == "decision values" for machine in machines)
    assert type(slow.calibrated_classifiers_[0].estimator) is SVC  # the given one is left as it was
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fast)).predict_proba(X), fast.predict_proba(X))


def test_members_get_the_time_that_those_before_leave_over(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_digits(n_class=2, return_X_y=True)
    slow, limits = CalibratedClassifierCV(SVC(gamma=0.001), cv=2).fit(X, y), []
    module = import_module("widemargin.compression.compress")

    def record(model: Any, X: Any, parameters: Any, keeps_values: bool) -> Compression:
        limits.append(parameters.max_time)
        return Compression(model, X, parameters, keeps_values)

    monkeypatch.setattr(module, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(module, "Compression", record)
    compress(slow, X, max_time=60.0, random_state=0)
    assert limits == [30.0, 60.0]


@pytest.mark.slow
def test_calibration_of_a_frozen_machine_and_of_what_is_no_kernel_machine() -> None:
    X, y = load_digits(n_class=2, return_X_y=True)
    machine = FrozenEstimator(make_pipeline(StandardScaler(), DCSVMClassifier(gamma=0.01)).fit(X[::2], y[::2]))
    slow = CalibratedClassifierCV(machine).fit(X[1::2], y[1::2])
    fast = compress(make_pipeline(StandardScaler().fit(X), slow), random_state=0)
    assert isinstance(fast[-1].calibrated_classifiers_[0].estimator[-1], CompressedClassifier)
    fast = compress(slow, X, random_state=0)
    np.testing.assert_allclose(fast.predict_proba(X), slow.predict_proba(X), atol=0.1)
    with pytest.raises(ValueError, match="prediction_cost must be at least 4, got 3.0"):
        compress(CalibratedClassifierCV(SVC(), cv=2).fit(X, y), X, prediction_cost=6)
    with pytest.raises(ValueError, match="must be a fitted kernel machine .* got LogisticRegression"):
        compress(CalibratedClassifierCV(LogisticRegression(max_iter=1_000)).fit(X, y), X)
