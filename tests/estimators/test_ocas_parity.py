"""The certificate, and the optimum that LIBLINEAR and LIBSVM find."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.svm import SVC, LinearSVC

from naive.cutting_plane import multiclass_risk
from naive.losses import hinge_objective
from widemargin import OCASClassifier
from widemargin.solvers.cutting_plane import accelerations

Data = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.mark.slow
@pytest.mark.parametrize(("C", "weighted"), [(1e-2, False), (1.0, True), (10.0, True)])
def test_as_svc_with_its_intercept(binary: Data, C: float, weighted: bool) -> None:
    X, y = binary
    weights = np.random.default_rng(0).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    options: dict[str, Any] = {"class_weight": {0: 0.5, 1: 2.0}} if weighted else {}
    svc = SVC(C=C, kernel="linear", tol=1e-6, **options).fit(X, y, sample_weight=weights)
    model = OCASClassifier(C, tol=1e-7, **options).fit(X, y, sample_weight=weights)
    s = weights * (np.where(y == 1, 2.0, 0.5) if weighted else 1.0)
    assert np.isclose(hinge_objective(model, X, y, C, s), model.objective_, rtol=1e-9)
    dual = np.abs(svc.dual_coef_).sum() - 0.5 * np.sum(svc.coef_**2)
    assert np.isclose(model.objective_, dual, rtol=1e-5)
    assert model.objective_ <= hinge_objective(svc, X, y, C, s)  # LIBSVM's intercept is not always best
    assert model.converged_


@pytest.mark.parametrize("C", [1e-4, 1e-3])
@pytest.mark.parametrize("acceleration", ["auto", None])
def test_of_equally_good_intercepts_the_middle_as_svc(C: float, acceleration: str | None) -> None:
    rng, y = np.random.default_rng(0), np.tile([0, 1], 100)  # both classes within the margin
    X = rng.normal(size=(200, 20)) + 0.6 * y[:, None] * (np.arange(20) < 5)
    svc = SVC(C=C, kernel="linear", tol=1e-6).fit(X, y)
    model = OCASClassifier(C, acceleration=acceleration, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.intercept_, svc.intercept_, atol=1e-4)
    assert model.score(X, y) == svc.score(X, y)


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_a_small_c_trains_a_machine_too(multi_class: str) -> None:
    rng, y = np.random.default_rng(0), np.arange(300) % 3  # w = 0 is optimal to a tolerance of 1e-3
    X = rng.normal(size=(300, 20)) + 3.0 * (np.arange(20) == y[:, None])
    model = OCASClassifier(1e-7, acceleration=None, multi_class=multi_class, fit_intercept=False).fit(X, y)
    assert model.converged_
    assert model.score(X, y) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "d", "C", "seed"), [(60, 32, 1e4, 2), (100, 32, 100.0, 1), (40, 16, 1e4, 4), (40, 8, 1e4, 4)]
)
def test_samples_on_their_margin_do_not_stall_the_line_search(k: int, d: int, C: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres, y = 2 * rng.normal(size=(k, d)), np.tile(np.arange(k), 10)
    X = rng.normal(size=(10 * k, d)) + centres[y]
    assert OCASClassifier(C, acceleration=None).fit(X, y).converged_


@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
def test_as_liblinear_without(binary: Data, C: float) -> None:
    X, y = binary
    rival = LinearSVC(
        C=C, loss="hinge", dual=True, fit_intercept=False, tol=1e-10, max_iter=1_000_000, random_state=0
    ).fit(X, y)
    model = OCASClassifier(C, fit_intercept=False, tol=1e-8).fit(X, y)
    assert np.isclose(model.objective_, hinge_objective(rival, X, y, C), rtol=1e-6)
    assert not model.intercept_.any()


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_as_liblinears_crammer_singer(four: Data, fit_intercept: bool) -> None:
    X, y = four
    rival = LinearSVC(
        C=1.0, multi_class="crammer_singer", fit_intercept=fit_intercept, tol=1e-8, max_iter=100_000, random_state=0
    ).fit(X, y)
    model = OCASClassifier(1.0, multi_class="crammer_singer", fit_intercept=fit_intercept, tol=1e-6).fit(X, y)

    def value(machine: Any) -> float:
        outputs = machine.coef_ @ X.T + np.reshape(machine.intercept_, (-1, 1))
        norms = np.sum(machine.coef_**2) + np.sum(np.square(machine.intercept_))
        return float(0.5 * norms + multiclass_risk(outputs, y, np.ones(len(y))))

    assert np.isclose(value(model), model.objective_, rtol=1e-9)
    assert np.isclose(value(model), value(rival), rtol=1e-4)


def test_crammer_singer_of_two_classes_is_the_binary_machine(binary: Data) -> None:
    X, y = binary
    one = OCASClassifier(0.1, multi_class="crammer_singer", fit_intercept=False, tol=1e-9).fit(X, y)
    other = OCASClassifier(0.2, fit_intercept=False, tol=1e-9).fit(X, y)  # two half-margins, each with its norm
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)


def test_one_against_the_rest_is_a_machine_for_each(four: Data) -> None:
    X, y = four
    model = OCASClassifier(tol=1e-4).fit(X, y)
    alone = [OCASClassifier(tol=1e-4).fit(X, y == c) for c in range(4)]
    np.testing.assert_allclose(model.objective_, sum(machine.objective_ for machine in alone), rtol=1e-3)
    assert model.coef_.shape == (4, X.shape[1])
    assert model.n_iter_ == max(machine.n_iter_ for machine in alone), "they share their passes"


@pytest.mark.parametrize(
    "options", [{}, {"fit_intercept": False}, {"line_search": False}, {"multi_class": "crammer_singer"}]
)
def test_history(four: Data, binary: Data, options: dict[str, Any]) -> None:
    X, y = four if "multi_class" in options else binary
    model = OCASClassifier(0.1, tol=1e-4, **options).fit(X, y)
    best = OCASClassifier(0.1, tol=1e-7, **{**options, "line_search": True}).fit(X, y).objective_
    history = model.history_
    assert {len(column) for column in history.values()} == {model.n_iter_}
    assert np.all(np.diff(history["objective"]) <= 0), "the best value never rises"
    assert np.all(np.diff(history["lower_bound"]) >= 0)
    assert np.all(history["lower_bound"] <= best * (1 + 1e-9))
    assert history["objective"][-1] == model.objective_
    assert np.isclose(model.objective_ - history["lower_bound"][-1], model.dual_gap_, atol=1e-12)
    assert model.objective_ - best <= model.dual_gap_ + 1e-9
    parts = sum(column for name, column in history.items() if name.startswith("seconds_"))
    assert history["time"][-1] >= parts.sum() * 0.99
    assert set(history) >= {
        "time",
        "step",
        "n_planes",
        "seconds_decision_values",
        "seconds_line_search",
        "seconds_master_problem",
    }


@pytest.mark.parametrize("C", [1e-12, 1e12])
def test_extreme_C(binary: Data, C: float) -> None:
    X, y = binary
    model = OCASClassifier(C).fit(X, y)
    assert model.converged_
    assert np.isfinite(model.coef_).all()
    assert np.isclose(model.objective_, hinge_objective(model, X, y, C), rtol=1e-8)


@pytest.mark.parametrize(("n", "d"), [(100, 2), (100, 80), (300, 10), (900, 40)])
def test_few_samples_are_solved_at_once(n: int, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the Gram dual, or where its working sets would be many by the interior-point method."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.integers(2, size=n)
    at_once = OCASClassifier(C=1e3).fit(X, y)
    assert at_once.n_iter_ == 1
    monkeypatch.setattr(accelerations, "_FEW", 0)
    by_rounds = OCASClassifier(C=1e3, tol=1e-5).fit(X, y)
    assert by_rounds.n_iter_ > 1
    assert by_rounds.objective_ * (1 - 1e-5) <= at_once.objective_ <= by_rounds.objective_ * (1 + 1e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_bound_of_few_samples_holds_at_any_C(fit_intercept: bool) -> None:
    """Separable rows, whose optimum a small C has as well: dual variables are a small part of C = 1e6."""
    rng = np.random.default_rng(0)
    X = 1e4 * rng.normal(size=(700, 5))
    y = X @ rng.normal(size=5) > 0
    optimum = OCASClassifier(C=0.1, tol=1e-8, fit_intercept=fit_intercept).fit(X, y).objective_
    model = OCASClassifier(C=1e6, fit_intercept=fit_intercept).fit(X, y)
    assert model.converged_
    assert model.objective_ - model.dual_gap_ <= optimum * (1 + 1e-8)


def test_weights_that_vanish_with_C(binary: Data) -> None:
    X, y = np.tile(binary[0], (6, 1)), np.tile(binary[1], 6)  # too many for the Gram dual
    assert not OCASClassifier(C=1e-320).fit(X, y).coef_.any()


@pytest.fixture
def by_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve few rows by rounds."""
    monkeypatch.setattr(accelerations, "_FEW", 0)
    monkeypatch.setattr("widemargin.algorithms.ocas._FIRST_ROUNDS", 10**6)


@pytest.mark.usefixtures("by_rounds")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_a_stopped_fit_without_warm_start_goes_on_with_it(multi_class: str, n_classes: int, four: Data) -> None:
    """As the warning of a search that Ctrl-C has ended says."""
    X, y = four[0], four[1] % n_classes
    model = OCASClassifier(10.0, tol=1e-9, max_iter=8, multi_class=multi_class).fit(X, y)
    before = model.objective_
    assert model.set_params(warm_start=True, max_iter=1).fit(X, y).objective_ <= before * (1 + 1e-9)


@pytest.mark.usefixtures("by_rounds")
def test_a_path_is_as_good_as_its_fits(binary: Data) -> None:
    X, y = binary
    path = OCASClassifier(tol=1e-5).fit_path(X, y, [0.01, 0.1, 1.0])
    alone = [OCASClassifier(C, tol=1e-5).fit(X, y) for C in (0.01, 0.1, 1.0)]
    for model, other in zip(path, alone, strict=True):
        assert model.C == other.C
        assert np.isclose(model.objective_, other.objective_, rtol=2e-5)
        assert model.n_features_in_ == 6
    assert sum(model.n_iter_ for model in path) < sum(model.n_iter_ for model in alone)
    with pytest.raises(ValueError, match="Cs must have at least one value"):
        OCASClassifier().fit_path(X, y, [])
    with pytest.raises(ValueError, match="C must be greater than 0, got -1"):
        OCASClassifier().fit_path(X, y, [1, -1])
