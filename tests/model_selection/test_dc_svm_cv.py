"""`DCSVMClassifierCV` and `DCSVMRegressorCV`: a grid search by plain loops, at a part of its cost."""

import pickle
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_moons, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, PredefinedSplit, ShuffleSplit, StratifiedKFold

import widemargin._progress
from naive.kernels import rbf
from naive.tuning import grid_scores
from peak_memory import peak_of
from widemargin import DCSVMClassifier, DCSVMClassifierCV, DCSVMRegressor, DCSVMRegressorCV
from widemargin.algorithms.held_out import HeldOutSolver
from widemargin.solvers.dual.certificate import Limits

CS, GAMMAS = [0.1, 1.0, 10.0], [0.02, 0.2]
Data = tuple[NDArray[Any], NDArray[Any]]


@pytest.fixture(scope="module")
def larger() -> Data:
    X, y = make_classification(2000, 6, n_informative=4, flip_y=0.1, random_state=0)
    return X.astype(np.float32), y


# --------------------------------------------------------------------------------------------------------- the twin


@pytest.mark.parametrize(
    ("scoring", "options"),
    [("accuracy", {}), ("roc_auc", {"kernels": "poly", "degree": 2, "coef0": 1.0, "fit_intercept": False})],
)
def test_scores_are_those_of_plain_loops(binary: Data, scoring: str, options: dict[str, Any]) -> None:
    X, y = binary
    splitter = StratifiedKFold(3)
    model = DCSVMClassifierCV(
        CS, GAMMAS, cv=splitter, scoring=scoring, exhaustive=True, tol=1e-6, **{"kernels": "rbf"} | options
    ).fit(X, y)
    cells = [{"gamma": gamma, "C": C} for gamma in GAMMAS for C in CS]
    machine = DCSVMClassifier(tol=1e-6, kernel=options.pop("kernels", "rbf"), **options)
    wanted = grid_scores(machine, X, y, list(splitter.split(X, y)), cells, get_scorer(scoring))
    np.testing.assert_allclose(model.scores_.reshape(3, -1), wanted, atol=2e-3)  # of 100 rows: no label differs
    means = wanted.mean(axis=0)
    best = min((cells[k] for k in np.flatnonzero(means == means.max())), key=lambda cell: (cell["C"], cell["gamma"]))
    assert (model.gamma_, model.C_) == (best["gamma"], best["C"])
    np.testing.assert_array_equal(model.predict(X), machine.set_params(**best).fit(X, y).predict(X))


def observed_gaps(search: DCSVMClassifierCV, X: Any, y: Any, monkeypatch: pytest.MonkeyPatch) -> NDArray[np.float64]:
    """The relative gaps (2, cells) of a search with one gamma: the solver's own, and those recomputed in float64."""
    gaps: list[tuple[float, float]] = []
    n_seen: Counter[bytes] = Counter()  # cells of a fold
    values, K, signs = HeldOutSolver._values, rbf(X, X, search.gammas[0]), np.where(y > 0, 1.0, -1.0)

    def observe(whole: Any, rows: Any, fold: Any, results: Any) -> Any:
        for result in results:
            if len(result.beta) == len(y):  # else the scorer is tried on few rows
                C, (problem,) = fold.Cs[n_seen[fold.test.tobytes()] % len(fold.Cs)], fold.problems
                n_seen[fold.test.tobytes()] += 1
                f, upper, scale = K @ result.beta, C * (problem.hi - problem.lo), result.scale
                losses = upper @ np.maximum(0.0, 1.0 - signs * (scale * f + result.intercept))
                primal = 0.5 * scale**2 * result.beta @ f + losses
                dual = np.abs(result.beta).sum() - 0.5 * result.beta @ f
                gaps.append((result.gap / result.objective, (primal - dual) / primal))
        return values(whole, rows, fold, results)

    monkeypatch.setattr(HeldOutSolver, "_values", staticmethod(observe))
    search.fit(X, y)
    return np.array(gaps).T


@pytest.mark.parametrize(("tol", "expected"), [(1e-4, 1e-3), (1e-3, 1e-2), (0.05, 0.1), (0.5, 0.5)])
def test_what_ends_a_cell_of_an_exhaustive_search(tol: float, expected: float) -> None:
    """A gap of `tol`, at most 5 %, and a violation of ten times `tol`, up to 0.1; kernels without gaps: of `tol`."""
    search = DCSVMClassifierCV(exhaustive=True, tol=tol)
    assert search._limits("rbf") == Limits(expected, min(tol, 0.05))
    assert search._limits("sigmoid") == Limits(tol, np.inf)
    assert DCSVMClassifierCV(tol=tol)._limits("rbf") == Limits(tol, 0.05)


@pytest.mark.parametrize("memory_budget", [None, "8MB"])
def test_the_gap_of_each_cell_of_an_exhaustive_search(
    larger: Data, memory_budget: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most `tol`, also in float64, with a kernel matrix in memory and without: float32 distances hide 20 `tol` here.

    Other searches stop at a violation of `tol`.
    """
    how: dict[str, Any] = {"kernels": "rbf", "cv": 2, "refit": False, "memory_budget": memory_budget}
    search = DCSVMClassifierCV([1e3, 1e4], [0.5], exhaustive=True, tol=1e-3, **how)
    own, recomputed = observed_gaps(search, *larger, monkeypatch)
    assert own.shape == (4,)
    assert own.max() <= 1e-3
    np.testing.assert_allclose(recomputed, own, atol=2e-5)
    rough = DCSVMClassifierCV([1.0, 10.0, 100.0], [5.0], search="exact", tol=0.02, **how)
    assert observed_gaps(rough, *larger, monkeypatch)[0].max() > 0.02


def test_several_classes_sparse_rows_and_class_weights() -> None:
    X, y = load_iris(return_X_y=True)
    X = sp.csr_array(X)
    splitter = KFold(4, shuffle=True, random_state=0)
    model = DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", cv=splitter, class_weight="balanced", tol=1e-6).fit(X, y)
    cells = [{"gamma": gamma, "C": C} for gamma in GAMMAS for C in CS]
    machine = DCSVMClassifier(tol=1e-6, class_weight="balanced", break_ties=True)
    wanted = grid_scores(machine, X, y, list(splitter.split(X, y)), cells, get_scorer("accuracy"))
    np.testing.assert_allclose(model.scores_.reshape(4, -1), wanted)


@pytest.mark.parametrize("kind", [DCSVMClassifierCV, DCSVMRegressorCV])
def test_rows_beyond_float32_have_the_scores_of_scaled_ones(binary: Data, kind: type) -> None:
    X, y = binary[0], (binary[1] == "yes").astype(float)
    one, other = (
        kind(Cs=CS, gammas=2, kernels="rbf", cv=2, exhaustive=True).fit(scale * X, y) for scale in (1.0, 1e40)
    )
    np.testing.assert_allclose(one.scores_, other.scores_, atol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DCSVMClassifierCV, DCSVMRegressorCV])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_linear_search_has_the_scores_of_centred_rows(binary: Data, form: Any, kind: type) -> None:
    X, y = binary[0], (binary[1] == "yes").astype(float)
    one, other = (kind(Cs=CS, kernels="linear", search="exact", cv=2).fit(form(rows), y) for rows in (X, X + 1e8))
    np.testing.assert_allclose(one.scores_, other.scores_, atol=0.01)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_regression(n_targets: int) -> None:
    X, y = make_regression(200, 4, n_informative=3, n_targets=n_targets, noise=5.0, random_state=0)
    y = y / y.std(axis=0)
    splitter = KFold(3)
    model = DCSVMRegressorCV(CS, GAMMAS, kernels="rbf", epsilons=[0.0, 0.2], cv=splitter, tol=1e-5).fit(X, y)
    cells = [{"gamma": gamma, "epsilon": eps, "C": C} for gamma in GAMMAS for eps in (0.0, 0.2) for C in CS]
    wanted = grid_scores(DCSVMRegressor(tol=1e-5), X, y, list(splitter.split(X)), cells, get_scorer("r2"))
    assert model.scores_.shape == (3, 2, 2, 3)
    np.testing.assert_allclose(model.scores_.reshape(3, -1), wanted, atol=1e-4)
    best = cells[int(np.argmax(wanted.mean(axis=0)))]
    assert (model.gamma_, model.epsilon_, model.C_) == (best["gamma"], best["epsilon"], best["C"])


def test_a_kernel_matrix_and_a_callable_have_one_gamma(binary: Data) -> None:
    X, y = binary
    linear = DCSVMClassifierCV(CS, kernels="linear", search="exact", cv=3).fit(X, y)
    gram = DCSVMClassifierCV(CS, kernels="precomputed", cv=3).fit(X @ X.T, y)
    function = DCSVMClassifierCV(CS, kernels=lambda A, B: A @ B.T, cv=3).fit(X, y)
    assert linear.scores_.shape == (3, 1, 3)
    np.testing.assert_allclose(gram.scores_, linear.scores_, atol=0.011)  # one row of a fold, by float32 entries
    np.testing.assert_allclose(function.scores_, gram.scores_, atol=0.011)


@pytest.mark.parametrize(("kernel", "n_gammas"), [("cosine", 1), ("chi2", 2)])
def test_kernels_of_scikit_learn(binary: Data, kernel: str, n_gammas: int) -> None:
    X, y = np.abs(binary[0]), binary[1]
    model = DCSVMClassifierCV(CS, GAMMAS, kernels=kernel, cv=3, exhaustive=True).fit(X, y)
    assert model.scores_.shape == (3, n_gammas, 3)
    alone = DCSVMClassifier(model.C_, kernel=kernel, gamma=model.gamma_).fit(X, y)
    assert np.mean(model.predict(X) == alone.predict(X)) > 0.99


# --------------------------------------------------------------------------------------------------------------- race


def test_cells_are_eliminated_and_the_best_one_is_found(larger: Data) -> None:
    grid: dict[str, Any] = {"Cs": [0.1, 10.0], "gammas": [1e-4, 0.1, 5.0], "kernels": "rbf", "refit": False}
    full = DCSVMClassifierCV(exhaustive=True, **grid).fit(*larger)
    race = DCSVMClassifierCV(**grid).fit(*larger)
    assert np.isnan(race.scores_).any()
    assert not np.isnan(full.scores_).any()
    seen = ~np.isnan(race.scores_)
    np.testing.assert_allclose(race.scores_[seen], full.scores_[seen], atol=2 / 400)
    means = full.scores_.mean(axis=0)
    cell = list(race.gammas_).index(race.gamma_), list(race.Cs_).index(race.C_)
    assert means[cell] >= means.max() - 0.003
    assert set(race.history_["n_rows"]) == {500.0, 2000.0}
    assert race.cv_results_["rank_test_score"].min() == 1


def test_results_do_not_depend_on_the_number_of_threads(larger: Data) -> None:
    one, three = (DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", n_jobs=n, refit=False).fit(*larger) for n in (1, 3))
    np.testing.assert_array_equal(three.scores_, one.scores_)


def test_little_memory_gives_the_same_choice(larger: Data) -> None:
    ample = DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", exhaustive=True, refit=False, cv=2).fit(*larger)
    scarce = DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", exhaustive=True, refit=False, cv=2, memory_budget="20MB").fit(
        *larger
    )
    np.testing.assert_allclose(scarce.scores_, ample.scores_, atol=2 / 1000)


def test_a_search_with_scaled_columns_keeps_its_budget() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12_000, 50))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(len(X))
    search = DCSVMRegressorCV([0.1, 1.0], 1, cv=2, memory_budget="30MB")
    with warnings.catch_warnings(action="ignore"):
        model, peak = peak_of(search.fit, X, y)
    assert model.relevance_ is not None
    assert peak < 33e6


def test_the_machine_that_scales_columns_has_the_least_memory_that_it_needs() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 300)) * np.linspace(0.1, 1, 300)
    y = X[:, 299] * X[:, 298] > 0
    model = DCSVMClassifierCV([1.0], [1.0], cv=2, search="early", refit=False, memory_budget="21MB").fit(X, y)
    assert model.history_["scaling"].max() > 0


# -------------------------------------------------------------------------------------- splitters, groups and weights


def test_splitters_whose_folds_do_not_cover_the_rows(binary: Data) -> None:
    X, y = binary
    for splitter in (
        ShuffleSplit(2, train_size=0.4, test_size=0.3, random_state=0),
        PredefinedSplit(np.arange(300) % 4 - 1),
    ):
        model = DCSVMClassifierCV(CS, GAMMAS[:1], kernels="rbf", cv=splitter, tol=1e-6).fit(X, y)
        cells = [{"gamma": GAMMAS[0], "C": C} for C in CS]
        machine = DCSVMClassifier(tol=1e-6)
        wanted = grid_scores(machine, X, y, list(splitter.split(X, y)), cells, get_scorer("accuracy"))
        np.testing.assert_allclose(model.scores_[:, 0], wanted)


def test_folds_given_as_masks_are_those_of_their_rows(binary: Data) -> None:
    X, y = binary
    folds = list(StratifiedKFold(2).split(X, y))
    masks = [(np.isin(np.arange(300), train), np.isin(np.arange(300), test)) for train, test in folds]
    by_number, by_mask = (
        DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", cv=cv, refit=False).fit(X, y) for cv in (folds, masks)
    )
    np.testing.assert_array_equal(by_mask.scores_, by_number.scores_)


def test_groups(binary: Data) -> None:
    X, y = binary
    model = DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", cv=GroupKFold(3)).fit(X, y, groups=np.arange(300) % 7)
    assert model.scores_.shape == (3, 2, 3)
    with pytest.raises(ValueError, match="groups"):
        DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", cv=GroupKFold(3)).fit(X, y)


def test_a_weight_of_two_is_a_repeated_row(binary: Data) -> None:
    X, y = binary
    weights = np.arange(300) % 3
    fold = np.arange(300) % 4
    weighted = DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", cv=PredefinedSplit(fold)).fit(X, y, weights)
    times = np.repeat(np.arange(300), weights)
    repeated = DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", cv=PredefinedSplit(fold[times])).fit(X[times], y[times])
    np.testing.assert_allclose(weighted.scores_, repeated.scores_)


# --------------------------------------------------------------------------------------------- limits, files, bad input


def test_no_time_gives_a_machine_and_says_what_was_not_seen(binary: Data, stopped: Callable[..., str]) -> None:
    model = DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", max_time=0)
    message = stopped(model, *binary)
    assert "max_time" in message
    assert "30 of 30 cells (C, gamma and fold) were not scored (NaN in scores_)" in message
    assert f"Not looked at: 'rbf' with gamma={', '.join(f'{gamma:.6g}' for gamma in GAMMAS)}. Nothing" in message
    assert np.isnan(model.best_score_)
    assert model.predict(binary[0]).shape == (300,)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT can't be sent to one process there")
def test_a_stop_after_the_last_score_is_no_warning(binary: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(widemargin._progress, "_last_sigint", -np.inf)
    score = _CountedScore(18)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", cv=3, scoring=score, exhaustive=True).fit(*binary)
    assert score.n_calls == 18
    assert not np.isnan(model.scores_).any()


@pytest.mark.parametrize("relevance", [True, False])
def test_what_a_stopped_search_advises_goes_on_with_its_machine(relevance: bool) -> None:
    X = np.random.default_rng(0).normal(size=(400, 8))
    y = X[:, 0] * X[:, 1] > 0  # six columns mean nothing
    model = DCSVMClassifierCV([1.0], [0.1], kernels="rbf", search="early", relevance=relevance).fit(X, y)
    with pytest.warns(ConvergenceWarning) as caught:
        model._warn_of_stop("interrupt", "too early.", {"C": 1.0}, has_scores=True)
    advice = str(caught[0].message).partition("to go on with it: ")[2].rstrip(".")
    eval(advice.replace("best_estimator_", "model.best_estimator_"))
    assert (model.relevance_ is not None) == relevance
    assert model.predict(X).shape == y.shape


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT can't be sent to one process there")
@pytest.mark.parametrize("seconds", [60.0, 0.0])
def test_an_interrupt_ends_the_search_with_the_best_so_far(
    seconds: float, binary: Data, stopped: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with its machine soon after, which can go on."""
    monkeypatch.setattr(widemargin._progress, "_last_sigint", -np.inf)
    monkeypatch.setattr("widemargin.model_selection._best_estimator._LAST_SECONDS", seconds)
    model = DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", cv=3, scoring=_CountedScore(1))
    message = stopped(model, *binary)
    assert "interrupt" in message
    assert f"trained for at most {seconds} s" in message
    assert not np.isnan(model.scores_[:, 0]).any()
    assert np.isnan(model.scores_[:, 1]).all()
    assert model.converged_ == (seconds > 0)
    assert model.gamma_ == GAMMAS[0]
    assert model.best_estimator_.max_time is None
    best = clone(model.best_estimator_).fit(*binary)
    assert model.best_estimator_.set_params(warm_start=True).fit(*binary).objective_ == pytest.approx(best.objective_)


def test_a_pickled_search_predicts(binary: Data) -> None:
    X, y = binary
    model = DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", cv=3).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    assert copy.dual_gap_ == model.best_estimator_.dual_gap_
    with pytest.raises(AttributeError, match=r"Calibrate it: .*widemargin.calibrate\(model, X, y\).predict_proba"):
        copy.predict_proba(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Cs": []}, "Cs must have at least one value"),
        ({"gammas": np.array([])}, "gammas must have at least one value"),
        ({"Cs": 0}, "Cs must be an integer, at least 1"),
        ({"Cs": [1.0, -1.0]}, r"Cs\[1\] must be greater than 0"),
        ({"gammas": "scale"}, "gammas must be an integer >= 1 or a list"),
        ({"scoring": "neg_log_loss"}, "needs probabilities"),
        ({"scoring": ["accuracy", "f1"]}, "scoring must be None, the name of one scorer"),
        ({"scoring": lambda *_: "good"}, "scoring must return a number"),
        ({"cv": [(np.arange(10), [])]}, "cv must give folds with training rows and test rows"),
        ({"cv": [(np.arange(10), [300])]}, "cv must give numbers of rows, or masks of them, for 300 rows"),
        ({"kernels": []}, "kernels must be 'auto', a kernel or a list of kernels"),
        ({"kernels": [["rbf"]]}, "kernels must be 'auto', a kernel or a list of kernels"),
        ({"kernels": ["rbf", "nonsense"]}, "kernels must be one of .*'nonsense'"),
    ],
)
def test_bad_input_is_named(binary: Data, options: dict[str, Any], message: str) -> None:
    model = DCSVMClassifierCV(**{"Cs": CS, "gammas": GAMMAS, "cv": 3, **options})
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match=message):
        model.fit(*binary)
    assert model.__dict__ == before


def test_a_fold_without_a_class_is_named(binary: Data) -> None:
    X, y = binary
    folds = [(np.flatnonzero(y == "no"), np.flatnonzero(y == "yes"))]
    with pytest.raises(
        ValueError, match="the training rows of fold 0 have rows of fewer than two classes: no row of class 'yes'"
    ):
        DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", cv=folds).fit(X, y)


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced", "fit_intercept": False}])
def test_a_class_of_one_row_is_searched_as_by_grid_search(options: dict[str, Any]) -> None:
    X, y = load_iris(return_X_y=True)
    y[75] = 3
    search = DCSVMClassifierCV([1, 10], [0.1], kernels="rbf", cv=3, tol=1e-5, **options)
    with pytest.warns(UserWarning, match="The least populated class in y has only 1 member"):
        search.fit(X, y)
    with pytest.warns(UserWarning, match="The least populated class in y has only 1 member"):
        grid = GridSearchCV(DCSVMClassifier(gamma=0.1, tol=1e-5, **options), {"C": [1, 10]}, cv=3).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(search.classes_, [0, 1, 2, 3])


def test_a_fold_of_a_regression_without_weight_is_named() -> None:
    X, y = make_regression(40, 3, random_state=0)
    weights = np.where(np.arange(40) < 20, 0.0, 1.0)
    folds = [(np.arange(20, 40), np.arange(20, 40)), (np.arange(20), np.arange(20, 40))]
    with pytest.raises(ValueError, match="cv: the training rows of fold 1 have no positive weight"):
        DCSVMRegressorCV(CS, GAMMAS, kernels="rbf", cv=folds).fit(X, y, weights)


# ----------------------------------------------------------------------------------------------------------- callbacks


def test_the_paths_of_folds_are_tasks_of_callbacks(binary: Data, listener: Any, stopped: Callable[..., str]) -> None:
    pytest.importorskip("sklearn.callback")
    model = DCSVMClassifierCV(CS, GAMMAS, kernels="rbf", cv=3).set_callbacks(listener).fit(*binary)
    assert listener.events == ["setup", "begin fit", *["begin round", "end round"] * 6, "end fit", "teardown"]
    assert not np.isnan(model.scores_).any()
    listener.stop_after = 8  # of both fits
    assert "callback" in stopped(model, *binary)
    assert not np.isnan(model.scores_[:, 0]).any()
    assert np.isnan(model.scores_[:, 1]).all()
    assert model.converged_


class _CountedScore:
    """Accuracy, and how often it was asked for; the search ends after `most` times."""

    def __init__(self, most: float = np.inf) -> None:
        self.n_calls, self.most = 0, most

    def __repr__(self) -> str:
        return "accuracy, counted"

    def __call__(self, model: Any, X: Any, y: Any) -> float:
        self.n_calls += 1
        if self.n_calls == self.most:
            signal.raise_signal(signal.SIGINT)
        return float(np.mean(model.predict(X) == y))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are not so there")
@pytest.mark.parametrize(
    "options", [{"search": "early", "kernels": "rbf"}, {"gammas": [0.1, 1.0], "kernels": ["rbf", "laplacian"]}]
)
def test_a_stopped_search_goes_on(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(widemargin._progress, "_last_sigint", -np.inf)
    X, y = make_moons(400, noise=0.3, random_state=0)
    score = _CountedScore()
    options = {"Cs": [1.0, 10.0, 100.0], "scoring": score, "relevance": False, **options}
    whole, n_whole = DCSVMClassifierCV(**options).fit(X, y), score.n_calls
    model = DCSVMClassifierCV(**options)
    score.n_calls, score.most = 0, n_whole // 2
    with pytest.warns(ConvergenceWarning, match="interrupt"):
        model.fit(X, y)
    n_known = len(model.history_["score"])
    assert 0 < n_known < n_whole
    score.n_calls, score.most = 0, np.inf
    model.fit(X, y)
    assert score.n_calls < n_whole - n_known // 2
    assert (model.kernel_, model.C_, model.gamma_) == (whole.kernel_, whole.C_, whole.gamma_)
    assert model.best_score_ == whole.best_score_
    np.testing.assert_allclose(model.best_estimator_.dual_coef_, whole.best_estimator_.dual_coef_, atol=1e-2)
    score.n_calls = 0
    model.fit(X, y)  # a search that has ended begins anew
    assert score.n_calls == n_whole


@pytest.mark.skipif(sys.platform == "win32", reason="signals are not so there")
@pytest.mark.parametrize("other", ["data", "folds in between"])
def test_scores_of_another_search_are_not_taken(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds of a random state cannot be had again: a search like the first one begins anew after such a one."""
    monkeypatch.setattr(widemargin._progress, "_last_sigint", -np.inf)
    X, y = make_moons(300, noise=0.3, random_state=0)
    score = _CountedScore()
    model = DCSVMClassifierCV(scoring=score, Cs=[1.0, 10.0, 100.0], gammas=[0.1, 1.0], kernels="rbf", random_state=0)
    score.most = 10
    with pytest.warns(ConvergenceWarning, match="interrupt"):
        model.fit(X, y)
    score.most = np.inf
    if other == "folds in between":
        model.set_params(random_state=np.random.RandomState(1)).fit(X, y)
    score.n_calls = 0
    model.set_params(random_state=0).fit(X + 1e-3 * (other == "data"), y)
    assert score.n_calls == 30


def test_weights_whose_products_with_c_are_not_finite_are_refused() -> None:
    X, y = make_classification(60, random_state=0)
    search = DCSVMClassifierCV([1.0, 1e10], [0.5], cv=2)
    with pytest.raises(ValueError, match=r"C times sample_weight \(times class_weight\) must be finite"):
        search.fit(X, y, np.full(60, 1e300))
    assert not hasattr(search, "best_score_")
