"""Searches whose cells are early machines of clusters of all rows, and the machines that they end with."""

import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline

import widemargin._progress
from widemargin import (
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    DCSVMRegressorCV,
    RelevanceScaler,
    compress,
    to_onnx,
)
from widemargin._model_files import load, write_model
from widemargin.model_selection import _adaptive_search
from widemargin.model_selection._adaptive_search import AdaptiveSearch

Data = tuple[NDArray[Any], NDArray[Any]]


@pytest.fixture(scope="module")
def curve() -> Data:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (300, 2))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=300)


@pytest.fixture(scope="module")
def many() -> Data:
    X, y = make_classification(6000, 5, n_informative=4, n_redundant=0, flip_y=0.1, random_state=1)
    return X, y


@pytest.fixture
def small_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters of 300 rows, screened on 500 held-out ones."""
    for name, value in (("CLUSTER_ROWS", 300), ("_HELD_OUT_ROWS", (500, 1500))):
        monkeypatch.setattr(f"widemargin.model_selection._adaptive_search.{name}", value)


@pytest.fixture(scope="module")
def wide() -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 40))
    return X, np.where(np.sin(2 * X[:, :2]).sum(axis=1) + X[:, 2:5].sum(axis=1) > 0, "in", "out")


@pytest.fixture(scope="module")
def scaled(wide: Data) -> DCSVMClassifierCV:
    return DCSVMClassifierCV(kernels="laplacian", cv=3).fit(*wide)


def cells_of(model: Any) -> set[tuple[float, ...]]:
    """Kernel, gamma, epsilon and C of each score."""
    return set(zip(*(model.history_[name].tolist() for name in ("kernel", "gamma", "epsilon", "C")), strict=True))


# --------------------------------------------------------------------------------------------- the same for all threads


@pytest.mark.usefixtures("small_clusters")
def test_results_do_not_depend_on_the_number_of_threads(many: Data) -> None:
    X, y = many[0][:1200], many[1][:1200]
    one, two = (DCSVMClassifierCV(kernels="rbf", cv=3, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(two.scores_, one.scores_)
    assert (two.C_, two.gamma_, two.best_score_) == (one.C_, one.gamma_, one.best_score_)
    np.testing.assert_array_equal(two.decision_function(X), one.decision_function(X))
    assert len(set(one.cv_results_["n_test_rows"])) == 2  # more in the end
    np.testing.assert_array_equal(two.cv_results_["mean_test_score"], one.cv_results_["mean_test_score"])


@pytest.mark.usefixtures("small_clusters")
def test_none_is_a_fixed_seed_and_a_seed_is_a_search(many: Data) -> None:
    X, y = many[0][:1200], many[1][:1200]
    how: dict[str, Any] = {"kernels": "rbf", "Cs": [1.0, 10.0], "gammas": [0.1, 1.0], "refit": False}
    first, again, other = (DCSVMClassifierCV(**how, random_state=seed).fit(X, y) for seed in (None, None, 3))
    np.testing.assert_array_equal(first.scores_, again.scores_)
    assert not np.array_equal(first.scores_, other.scores_)  # other clusters
    np.testing.assert_allclose(first.best_score_, other.best_score_, atol=0.03)


# ------------------------------------------------------------------------------------------------- what may be tried


def test_gamma_goes_beyond_the_first_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AdaptiveSearch, "_coarse_gammas", lambda self, kernel: [0.03, 0.1, 0.3])
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    model = DCSVMClassifierCV(kernels="rbf", relevance=False, cv=3).fit(X, np.sin(12 * X[:, 0]) * X[:, 1] > 0)
    assert model.gamma_ > 3.0
    assert model.gammas_.max() >= model.gamma_
    assert model.best_score_ > 0.85


def test_C_goes_beyond_the_first_range(monkeypatch: pytest.MonkeyPatch, curve: Data) -> None:
    monkeypatch.setattr("widemargin.model_selection._search_cv._FIRST_CS", (1e-3, 1e-2))
    model = DCSVMRegressorCV(gammas=[0.7], epsilons=[0.1], kernels="rbf", cv=3).fit(*curve)
    assert model.C_ > 0.3
    assert model.best_score_ > 0.9


@pytest.mark.parametrize("first", ["linear", "rbf"])
def test_given_gammas_are_those_of_the_kernels_that_have_one(binary: Data, first: str) -> None:
    kernels = sorted(["linear", "rbf"], key=lambda kernel: kernel != first)
    model = DCSVMClassifierCV([1.0, 10.0], [0.01, 0.1, 1.0], kernels=kernels, search="early", cv=3).fit(*binary)
    cells = cells_of(model)
    assert {cell[1] for cell in cells if kernels[int(cell[0])] == "rbf"} == {0.01, 0.1, 1.0}
    assert len({cell[1] for cell in cells if kernels[int(cell[0])] == "linear"}) == 1
    assert {cell[3] for cell in cells} <= {1.0, 10.0}


@pytest.mark.parametrize("epsilons", [[0.0, 0.05], [0.1, 2.0]])
def test_given_epsilons_are_all_within_reach(curve: Data, epsilons: list[float]) -> None:
    how: dict[str, Any] = {"gammas": [0.5], "kernels": "rbf", "search": "early", "cv": 3, "refit": False}
    model = DCSVMRegressorCV([1.0, 10.0], epsilons=epsilons, **how).fit(*curve)
    assert {cell[2] for cell in cells_of(model)} == set(epsilons)
    assert model.epsilon_ in epsilons


def test_equal_scores_lead_nowhere_and_leave_the_columns_as_they_are() -> None:
    X, y = make_blobs(200, centers=2, cluster_std=0.1, random_state=0)
    model = DCSVMClassifierCV(kernels="rbf").fit(X, y)
    assert model.best_score_ == 1.0
    assert model.C_ >= 0.125
    assert model.relevance_ is None
    assert len(model.support_) < 100


@pytest.mark.parametrize("kind", [DCSVMClassifierCV, DCSVMRegressorCV])
def test_all_kernels_and_gammas_are_seen_before_any_climb(kind: type, binary: Data) -> None:
    """And no cell is scored twice in a fold."""
    X, y = binary[0], binary[1] == "yes"
    history = kind(cv=3, kernels=["rbf", "laplacian"]).fit(X, y.astype(float)).history_
    first = list(zip(history["kernel"], history["gamma"], strict=True))
    C = history["C"]
    n_coarse = next(k for k in range(len(C)) if C[k] not in (1.0, 8.0, 64.0) or history["scaling"][k])
    kernels = {kernel for kernel, _ in first[:n_coarse]}
    assert kernels == {0.0, 1.0}
    for kernel in kernels:
        gammas = np.unique([gamma for k, gamma in first[:n_coarse] if k == kernel])
        assert len(gammas) >= 3
        np.testing.assert_allclose(gammas[1:4] / gammas[:3], 4.0)
    names = "fold", "scaling", "kernel", "gamma", "epsilon", "C"
    cells = list(zip(*(history[name].tolist() for name in names), strict=True))
    assert len(cells) == len(set(cells))


def test_gammas_beyond_a_steep_fall_are_looked_at_only_if_given(monkeypatch: pytest.MonkeyPatch, curve: Data) -> None:
    gammas = [120.0, 30.0, 0.3, 0.1, 0.03]
    monkeypatch.setattr(AdaptiveSearch, "_coarse_gammas", lambda self, kernel: gammas)
    how: dict[str, Any] = {"kernels": "rbf", "epsilons": [0.1], "relevance": False, "cv": 3, "refit": False}
    seen = {cell[1] for cell in cells_of(DCSVMRegressorCV(**how).fit(*curve))}
    assert {0.1, 0.3, 30.0} <= seen
    assert 120.0 not in seen
    given = DCSVMRegressorCV(gammas=gammas, **how).fit(*curve)
    assert {cell[1] for cell in cells_of(given)} == set(gammas)


# ------------------------------------------------------------------------------------------------------- relevance


def test_columns_are_scaled_where_few_are_useful(wide: Data, scaled: DCSVMClassifierCV) -> None:
    plain = DCSVMClassifierCV(kernels="laplacian", cv=3, relevance=False).fit(*wide)
    assert plain.relevance_ is None
    assert isinstance(plain.best_estimator_, DCSVMClassifier)
    assert scaled.relevance_ is not None
    assert scaled.relevance_.shape == (40,)
    assert scaled.relevance_.max() == 1.0
    assert set(np.argsort(-scaled.relevance_)[:5]) == {0, 1, 2, 3, 4}
    assert scaled.best_score_ > plain.best_score_ + 0.02
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 40))
    y = np.where(np.sin(2 * X[:, :2]).sum(axis=1) + X[:, 2:5].sum(axis=1) > 0, "in", "out")
    assert scaled.score(X, y) > plain.score(X, y) + 0.02
    assert scaled.scores_.shape == (3, len(scaled.gammas_), len(scaled.Cs_))
    assert np.nanmax(scaled.scores_.mean(axis=0)) == scaled.best_score_


def test_the_machine_of_scaled_columns_is_a_pipeline_of_raw_ones(wide: Data, scaled: DCSVMClassifierCV) -> None:
    X, y = wide
    assert isinstance(scaled.best_estimator_, Pipeline)
    assert isinstance(scaled.best_estimator_[0], RelevanceScaler)
    machine = DCSVMClassifier(scaled.C_, kernel=scaled.kernel_, gamma=scaled.gamma_)
    factors = scaled.best_estimator_[0].scale_
    np.testing.assert_allclose(factors / factors.max(), scaled.relevance_)
    values = machine.fit(X * factors, y).decision_function(X * factors)
    np.testing.assert_allclose(scaled.decision_function(X), values, atol=1e-5)
    np.testing.assert_array_equal(scaled.predict(X), scaled.best_estimator_.predict(X))
    np.testing.assert_array_equal(scaled.support_, machine.support_)
    np.testing.assert_array_equal(scaled.classes_, ["in", "out"])
    with pytest.raises(ValueError, match="40 features"):
        scaled.predict(X[:, :3])


def test_a_search_that_scaled_columns_is_kept_and_shown_as_any(
    wide: Data, scaled: DCSVMClassifierCV, tmp_path: Path
) -> None:
    X = wide[0]
    labels = scaled.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(scaled)).predict(X), labels)
    pytest.importorskip("skops")
    buffer = BytesIO()
    write_model(scaled, buffer)
    (tmp_path / "model").write_bytes(buffer.getvalue())
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), labels)
    cheaper = compress(scaled, X, prediction_cost=40, n_clusters=1, random_state=0)
    assert np.mean(cheaper.predict(X) == labels) > 0.9
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(to_onnx(scaled).SerializeToString())
    assert np.mean(session.run(None, {session.get_inputs()[0].name: X})[0] == labels) > 0.995


def test_names_of_columns_are_kept(wide: Data, scaled: DCSVMClassifierCV) -> None:
    pd = pytest.importorskip("pandas")
    names = [f"column {k}" for k in range(40)]
    frame = pd.DataFrame(wide[0], columns=names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of names that one side lacks
        model = clone(scaled).set_params(Cs=[8.0], gammas=[0.004, 0.02, 0.1], search="early").fit(frame, wide[1])
        assert model.score(frame, wide[1]) > 0.9
    np.testing.assert_array_equal(model.feature_names_in_, names)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[names[::-1]])


def test_sparse_rows_keep_their_columns(wide: Data) -> None:
    X = sp.csr_array(np.where(np.abs(wide[0]) > 1.0, wide[0], 0.0))
    model = DCSVMClassifierCV(cv=3).fit(X, wide[1])
    assert model.relevance_ is None
    assert model.kernel_ == "rbf"
    assert model.best_score_ > 0.6


def test_regression_of_scaled_columns() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10))
    y = 1e-5 * (np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=400))
    model = DCSVMRegressorCV([1.0, 10.0], epsilons=[0.1], search="early", cv=2, kernels="rbf").fit(X, y)
    assert model.relevance_ is not None
    assert set(np.argsort(-model.relevance_)[:2]) == {0, 1}
    assert model.best_score_ > 0.9
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize(("kind", "refit"), [(DCSVMClassifierCV, True), (DCSVMRegressorCV, False)])
def test_no_training_rows_stay_in_a_search(kind: type, refit: bool, binary: Data) -> None:
    model = kind(Cs=[1.0], gammas=[0.1], search="early", refit=refit, cv=3).fit(binary[0], (binary[1] == "yes") * 1.0)
    assert not [name for name in vars(model) if name.startswith("_")]


# -------------------------------------------------------------------------------------------------------- units of y


def test_units_of_the_targets_do_not_matter(curve: Data) -> None:
    (X, y), unit = curve, 2.0**20
    how: dict[str, Any] = {"gammas": [0.3, 1.0], "kernels": "rbf", "epsilons": [0.1], "relevance": False, "cv": 3}
    one, other = (DCSVMRegressorCV(**how).fit(X, target) for target in (y, unit * y))
    assert (one.C_, one.gamma_, one.epsilon_) == (other.C_, other.gamma_, other.epsilon_)
    np.testing.assert_allclose(other.scores_, one.scores_, rtol=1e-9)
    np.testing.assert_allclose(other.predict(X), unit * one.predict(X), rtol=1e-6, atol=1e-9 * unit)


def test_targets_of_any_unit_and_offset_are_predicted(curve: Data) -> None:
    (X, y), unit, offset = curve, 1e-6, 100.0
    given = {"Cs": [3.0, 30.0], "gammas": [0.3, 1.0], "epsilons": [0.03, 0.1], "kernels": "rbf", "cv": 3}
    one, other = (DCSVMRegressorCV(**given, tol=1e-6).fit(X, t) for t in (y, unit * (y + offset)))
    np.testing.assert_allclose(other.predict(X) / unit - offset, one.predict(X), atol=2e-4)


def dual_of(model: DCSVMRegressor, X: Any, y: Any) -> tuple[float, float]:
    """Primal and dual value, in float64, of an RBF machine's C and epsilon for the user's targets."""
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    K = np.exp(-model.gamma * squares)
    f, norm = K @ beta + model.intercept_[0], beta @ K @ beta
    losses = np.maximum(0.0, np.abs(y - f) - model.epsilon)
    return 0.5 * norm + model.C * losses.sum(), y @ beta - model.epsilon * np.abs(beta).sum() - 0.5 * norm


def test_the_machine_solves_the_problem_of_the_users_targets(curve: Data) -> None:
    X, y = curve[0], 1e-4 * (curve[1] + 3.0)
    model = DCSVMRegressorCV(kernels="rbf", epsilons=[0.1], relevance=False, cv=3).fit(X, y)
    machine = model.best_estimator_
    spread = y.std()
    np.testing.assert_allclose((machine.C, machine.epsilon), (model.C_ * spread, model.epsilon_ * spread))
    primal, dual = dual_of(machine, X, y)
    assert machine.objective_ == pytest.approx(primal, rel=1e-4)
    assert 0.0 <= machine.dual_gap_ < 1e-3 * primal
    assert primal - dual == pytest.approx(machine.dual_gap_, abs=1e-4 * primal)
    assert np.abs(machine.dual_coef_).max() <= machine.C * (1 + 1e-9)
    own = DCSVMRegressor(machine.C, gamma=machine.gamma, epsilon=machine.epsilon, tol=1e-3 * spread).fit(X, y)
    np.testing.assert_allclose(own.predict(X), machine.predict(X), atol=5e-3 * spread)


def test_targets_of_very_different_spreads(curve: Data) -> None:
    """Each is as well predicted as alone; one that is constant is predicted exactly."""
    X, y = curve
    Y = np.stack([1e-7 * y, 1e6 * y[::-1].copy(), y, np.full(300, 5.0)], axis=1)
    given: dict[str, Any] = {"Cs": [10.0], "gammas": [0.5], "epsilons": [0.1], "kernels": "rbf", "cv": 3, "tol": 1e-6}
    together = DCSVMRegressorCV(**given).fit(X, Y).predict(X)
    for k in range(4):
        alone = DCSVMRegressorCV(**given).fit(X, Y[:, k]).predict(X)
        np.testing.assert_allclose(together[:, k], alone, atol=1e-4 * max(Y[:, k].std(), 1e-12))
    np.testing.assert_allclose(together[:, 3], 5.0, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, -3e7])
def test_equal_targets_are_predicted(curve: Data, value: float) -> None:
    model = DCSVMRegressorCV(kernels="rbf", cv=3).fit(curve[0], np.full(300, value))
    np.testing.assert_allclose(model.predict(curve[0]), value, rtol=1e-12)
    assert model.best_score_ == 1.0


@pytest.mark.parametrize(("value", "n_targets"), [(np.nan, 1), (np.nan, 2), (-np.inf, 2)])
def test_targets_that_are_no_numbers_are_named(curve: Data, value: float, n_targets: int) -> None:
    Y = np.stack([curve[1]] * n_targets, axis=1)
    Y[7, -1] = value
    with pytest.raises(ValueError, match="y must have no missing values|Input y contains infinity"):
        DCSVMRegressorCV().fit(curve[0], Y if n_targets > 1 else Y[:, 0])


def test_small_scores_are_told_apart(curve: Data) -> None:
    """Mean squared errors of targets in small units differ in their sixth decimal and beyond."""
    X, y = curve[0], 1e-6 * curve[1]
    given: dict[str, Any] = {"gammas": [0.5], "kernels": "rbf", "epsilons": [0.1], "cv": 3, "relevance": False}
    assert DCSVMRegressorCV(**given, scoring="neg_mean_squared_error").fit(X, y).score(X, y) > 0.9


# -------------------------------------------------------------------------------------------------------- any time


def test_no_time_leaves_a_cell_of_what_was_given(many: Data, stopped: Callable[..., str]) -> None:
    model = DCSVMClassifierCV([0.3, 3.0], [0.02, 0.2], kernels="laplacian", max_time=0)
    message = stopped(model, *many)
    assert "Not looked at: 'laplacian' with gamma=0.02, 0.2. " in message
    assert "Nothing was scored, and kernel='laplacian', C=" in message
    assert "more than max_time=0 seconds" in message
    assert "best so far" not in message
    assert (model.kernel_, model.C_ in (0.3, 3.0), model.gamma_ in (0.02, 0.2)) == ("laplacian", True, True)
    assert np.isnan(model.best_score_)
    assert model.scores_.shape == (5, 0, 0)


@pytest.mark.parametrize(
    ("kind", "max_time"), [(DCSVMClassifierCV, 0.05), (DCSVMClassifierCV, 0.5), (DCSVMRegressorCV, 0)]
)
def test_little_time_gives_a_machine_and_names_what_was_chosen(
    kind: type, max_time: float, many: Data, stopped: Callable[..., str]
) -> None:
    X, y = many
    model = kind(max_time=max_time)
    message = stopped(model, X, y.astype(float))
    assert "max_time" in message
    assert ("The best so far: kernel=" in message) == (not np.isnan(model.best_score_))
    assert f"C={model.C_:.6g}" in message
    assert f"gamma={model.gamma_:.6g}" in message
    assert np.isnan(model.best_score_) == (not len(model.cv_results_))
    assert model.predict(X[:10]).shape == (10,)
    assert model.best_estimator_ is not None


@pytest.mark.slow
def test_a_stopped_search_names_the_kernels_and_gammas_that_it_has_not_seen(
    binary: Data, stopped: Callable[..., str]
) -> None:
    def slow(model: Any, X: Any, y: Any) -> float:
        time.sleep(0.5)
        return float(np.mean(model.predict(X) == y))

    how: dict[str, Any] = {"kernels": ["rbf", "linear", "laplacian"], "search": "early", "cv": 2, "scoring": slow}
    message = stopped(DCSVMClassifierCV([1.0], [0.1, 0.3, 0.5], **how, max_time=0.6, relevance=False), *binary)
    assert "Not looked at: 'rbf' with gamma=0.1, 0.5; 'linear'; 'laplacian' with gamma=0.1, 0.3, 0.5. The" in message


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT can't be sent to one process there")
@pytest.mark.usefixtures("small_clusters")
@pytest.mark.parametrize("refit", [True, "early"])
def test_an_interrupt_gives_a_machine(
    refit: Any, many: Data, stopped: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(widemargin._progress, "_last_sigint", -np.inf)
    seen = []

    def score(model: Any, X: Any, y: Any) -> float:
        seen.append(len(X))
        if len(seen) == 8:
            signal.raise_signal(signal.SIGINT)
        return float(np.mean(model.predict(X) == y))

    model = DCSVMClassifierCV(scoring=score, refit=refit)
    message = stopped(model, many[0][:1200], many[1][:1200])
    assert "interrupt" in message
    assert f"C={model.C_:.6g}" in message
    assert 8 <= len(seen) <= 40
    assert not np.isnan(model.best_score_)
    assert model.predict(many[0][:5]).shape == (5,)


@pytest.mark.slow
@pytest.mark.parametrize(("refit", "is_early"), [("exact", False), ("early", True), (True, False), ("auto", False)])
def test_the_last_machine_is_what_refit_says(many: Data, refit: Any, is_early: bool) -> None:
    given: dict[str, Any] = {"Cs": [10.0], "gammas": [0.3], "kernels": "rbf", "search": "early"}
    many = many[0][:3000], many[1][:3000]
    model = DCSVMClassifierCV(**given, refit=refit).fit(*many)
    assert (model.early_level_ > 0) == is_early
    assert model.score(*many) > 0.85


@pytest.mark.parametrize("search", ["exact", "early"])
def test_without_a_last_machine_there_are_no_predictions(search: str, binary: Data) -> None:
    model = DCSVMClassifierCV([1.0], [0.1], kernels="rbf", search=search, relevance=False, refit=False).fit(*binary)
    assert model.best_score_ > 0.8
    assert not any(hasattr(model, name) for name in ("predict", "decision_function", "support_"))
    with pytest.raises(NotFittedError):
        clone(model).set_params(refit=True).predict(binary[0])


@pytest.mark.slow
def test_many_rows_end_with_an_early_machine() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60_000, 3))
    y = np.sin(6 * X[:, 0]) * np.cos(6 * X[:, 1]) > 0
    model = DCSVMClassifierCV().fit(X[:55_000], y[:55_000])
    assert model.early_level_ > 0
    assert model.score(X[55_000:], y[55_000:]) > 0.97


# -------------------------------------------------------------------------------------------------------- odd input


def test_one_column_and_columns_of_one_value(binary: Data) -> None:
    X, y = binary
    narrow = DCSVMClassifierCV(cv=3).fit(X[:, :1], y)
    assert narrow.relevance_ is None
    assert narrow.predict(X[:, :1]).shape == (300,)
    with pytest.warns(UserWarning, match="nearly constant"):
        equal = DCSVMClassifierCV(cv=3).fit(np.ones((60, 3)), np.repeat([0, 0, 1], 20))
    assert equal.relevance_ is None
    assert (equal.predict(np.ones((5, 3))) == 0).all()


def test_two_rows_of_each_class() -> None:
    X, y = np.array([[0.0, 0.0], [0.1, 0.0], [1.0, 1.0], [0.9, 1.0]]), np.array([0, 0, 1, 1])
    model = DCSVMClassifierCV(cv=2).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    with pytest.raises(ValueError, match="n_splits=5"):
        DCSVMClassifierCV().fit(X, y)


def test_a_class_of_one_row(binary: Data) -> None:
    y, weights = (binary[1] == "yes").astype(int), {0: 1.0, 1: 2.0, 7: 5.0}
    y[5] = 7
    with pytest.warns(UserWarning, match="The least populated class in y has only 1 member"):
        model = DCSVMClassifierCV(class_weight=weights, kernels="rbf", relevance=False).fit(binary[0], y)
    np.testing.assert_array_equal(model.classes_, [0, 1, 7])
    assert model.predict(binary[0]).shape == (300,)


@pytest.mark.parametrize("seed", range(2))
def test_groups_that_are_clusters_have_scores(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clusters that are scored first may have no held-out rows of the first fold: more are taken then."""
    module = "widemargin.model_selection._adaptive_search"
    for name, value in (("CLUSTER_ROWS", 20), ("_HELD_OUT_ROWS", (30, 60))):
        monkeypatch.setattr(f"{module}.{name}", value)
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(30), 20)
    X = np.stack([group % 6, group // 6], axis=1) + 0.1 * rng.normal(size=(600, 2))
    y = X.sum(axis=1) + rng.normal(size=600)
    how: dict[str, Any] = {"Cs": [1.0], "gammas": [0.3], "kernels": "rbf", "search": "early", "refit": False}
    model = DCSVMRegressorCV(**how, epsilons=[0.1], cv=GroupKFold(5), random_state=seed).fit(X, y, groups=group)
    assert np.isfinite(model.best_score_)


def test_scales_of_sparse_rows_are_those_of_dense_ones() -> None:
    """Also far from the origin, where sums of squares and inner products have lost their digits."""
    rng = np.random.default_rng(0)
    for offset in (0.0, 1e8):
        rows = rng.normal(size=(200, 4)) * (rng.random((200, 4)) < 0.7)
        rows[:, 0] += offset
        sparse = sp.csr_array(rows)
        assert _adaptive_search._variance(sparse) == pytest.approx(_adaptive_search._variance(rows), rel=1e-9)
        for power in (1, 2):
            found = _adaptive_search._distances(sparse[:50], sparse, power)
            expected = _adaptive_search._distances(rows[:50], rows, power)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_many_equal_rows_do_not_make_the_first_gammas_expensive(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are one cluster, whatever their number: distances are computed to some of them."""
    module, rows = "widemargin.model_selection._adaptive_search", list[int]()
    monkeypatch.setattr(f"{module}.cdist", lambda A, B, metric: rows.append(len(B)) or cdist(A, B, metric))
    monkeypatch.setattr(f"{module}.CLUSTER_ROWS", 300)
    X = np.where(np.arange(6000)[:, None] % 5 > 0, 0.0, np.random.default_rng(0).normal(size=(6000, 3)))
    with pytest.warns(ConvergenceWarning, match="was stopped by max_time"):
        DCSVMClassifierCV(max_time=1e-9, random_state=0).fit(X, X[:, 0] > 0)
    assert len(rows) > 2
    assert max(rows) < 1200
