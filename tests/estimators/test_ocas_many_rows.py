"""Many rows: a start from a sample, and rounds on the active rows."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from naive.losses import hinge_objective
from widemargin import OCASClassifier
from widemargin.solvers.cutting_plane.active_rows import ActiveRows

Data = tuple[NDArray[np.float32], NDArray[np.int64]]


@pytest.fixture(scope="module")
def many() -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 6)).astype(np.float32)
    X[:, 2] *= 5
    return X, (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=40_000) > 0.3).astype(np.int64)


@pytest.mark.parametrize(("C", "fit_intercept"), [(1e-4, True), (0.1, False), (100.0, True)])
def test_the_optimum_in_fewer_rounds(many: Data, C: float, fit_intercept: bool) -> None:
    how: dict[str, Any] = {"C": C, "tol": 1e-6, "fit_intercept": fit_intercept}
    model, other = (OCASClassifier(**how, acceleration=kind).fit(*many) for kind in ("auto", None))
    assert model.converged_
    assert other.converged_
    for mine, its in ((model, other), (other, model)):
        assert mine.objective_ - mine.dual_gap_ <= its.objective_ * (1 + 1e-12)
    assert model.n_iter_ < other.n_iter_
    assert np.isclose(model.objective_, hinge_objective(model, *many, C), rtol=1e-9)


@pytest.mark.parametrize("form", ["C", "F", "csr", "map"])
def test_the_same_machine_from_all_kinds_of_rows(many: Data, form: str, tmp_path: Any) -> None:
    X, y = many
    np.save(tmp_path / "X.npy", X)
    kinds = {"C": lambda: X, "F": lambda: np.asfortranarray(X), "csr": lambda: sp.csr_array(X)}
    data = kinds[form]() if form in kinds else np.load(tmp_path / "X.npy", mmap_mode="r")
    budget = X.nbytes // 2 if form == "map" else None
    machines = [OCASClassifier(tol=1e-5, n_jobs=j, memory_budget=budget).fit(data, y) for j in (1, 2)]
    np.testing.assert_array_equal(machines[0].coef_, machines[1].coef_)
    reference = OCASClassifier(tol=1e-5).fit(X, y)
    assert np.isclose(machines[0].objective_, reference.objective_, rtol=2e-5)


@pytest.mark.parametrize(
    ("rows", "fit_intercept"),
    [
        ([[0.0] * 3], False),
        ([[1.0] * 3], True),
        ([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [3.0, 1.0, 0.0], [0.0] * 3], True),
    ],
)
def test_few_distinct_rows(rows: list[list[float]], fit_intercept: bool) -> None:
    X = np.repeat(rows, 40_000 // len(rows), axis=0)
    y = (np.arange(len(X)) // 7) % 3 == 0
    model = OCASClassifier(C=0.01, tol=1e-4, fit_intercept=fit_intercept).fit(X, y)
    assert model.converged_


def test_half_of_the_rows_are_empty() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40_000, 20)).astype(np.float32)
    y = X[:, 0] + rng.normal(size=40_000) > 0
    X[::2] = 0.0
    assert OCASClassifier(tol=1e-5).fit(X, y).n_iter_ <= 5


def test_a_class_of_one_row(many: Data) -> None:
    X, _ = many
    y = np.zeros(len(X), int)
    y[np.argmax(X[:, 0])] = 1
    assert OCASClassifier(C=10.0).fit(X, y).converged_


def test_history_is_that_of_all_rows(many: Data) -> None:
    model = OCASClassifier(C=10.0, tol=1e-6).fit(*many)
    history = model.history_
    assert len(history["time"]) == model.n_iter_
    assert np.all(np.diff(history["objective"]) <= 0)
    assert np.all(np.diff(history["lower_bound"]) >= 0)
    best = OCASClassifier(C=10.0, tol=1e-8).fit(*many).objective_
    assert np.all(history["lower_bound"] <= best * (1 + 1e-12))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 4, 5, 7])
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_the_objective_is_that_of_the_machine(seed: int, tol: float) -> None:
    """Repeated float32 rows far from zero: rounding of decision values must not grow from round to round."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 12, 40_000)
    X = (rng.normal(size=(12, 6)) + 100).astype(np.float32)[which]
    y = np.where(rng.random(40_000) < 0.1, rng.integers(0, 3, 40_000), which % 3)
    model = OCASClassifier(tol=tol, fit_intercept=False, max_iter=200).fit(X, y)
    assert model.converged_
    assert np.isclose(model.objective_, hinge_objective(model, X, y, 1.0), rtol=3e-5)


def test_rows_without_weight_do_not_count(many: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = many
    twice, y_twice = np.concatenate([X, -X]), np.concatenate([y, y])
    weight = np.repeat([1.0, 0.0], len(X))
    ran = []
    monkeypatch.setattr(ActiveRows, "_restrict", watched(ActiveRows._restrict, ran))
    model = OCASClassifier(tol=1e-6).fit(twice, y_twice, weight)
    assert any(ran)
    assert model.n_iter_ <= 10
    assert np.isclose(model.objective_, OCASClassifier(tol=1e-6).fit(X, y).objective_, rtol=2e-6)


def watched(original: Any, ran: list[bool]) -> Any:
    def restrict(self: ActiveRows) -> Any:
        found = original(self)
        ran.append(found is not None)
        return found

    return restrict


@pytest.mark.parametrize("C", [1e-12, 1e12])
def test_extreme_costs(many: Data, C: float) -> None:
    model = OCASClassifier(C=C, max_iter=300).fit(*many)
    assert np.isfinite(model.coef_).all()
    assert len(model.history_["time"]) == model.n_iter_ > 0
    assert model.history_["objective"][-1] == model.objective_


@pytest.mark.parametrize(("bad", "where"), [(np.nan, (69_999, 59)), (-np.inf, (0, 0))])
def test_a_bad_value_in_a_large_array(bad: float, where: tuple[int, int]) -> None:
    X = np.ones((70_000, 60), np.float32)
    X[where] = bad
    with pytest.raises(ValueError, match="Input X contains"):
        OCASClassifier().fit(X, np.arange(len(X)) % 2)


def test_large_values_whose_sum_is_infinite() -> None:
    X = np.full((70_000, 60), 3e38, np.float32)
    X[::2] *= -1
    assert np.isfinite(OCASClassifier(max_iter=2, C=1e-30).fit(X, np.arange(len(X)) % 2).coef_).all()


@pytest.mark.parametrize("n_weighted", [0, 16])
def test_samples_of_rows_without_weight(n_weighted: int) -> None:
    """Where a sixteenth of the rows is drawn, or the quantile of residuals is bracketed, on rows of weight 0 alone."""
    rng = np.random.default_rng(0)
    X, s = rng.normal(size=(80_000, 2)).astype(np.float32), np.zeros(80_000)
    y = (X[:, 0] > 0).astype(int)
    s[40_000 : 40_000 + n_weighted] = 1.0
    if not n_weighted:
        model = OCASClassifier(class_weight={0: 0.0, 1: 0.0}).fit(X[:12_000], y[:12_000])
    else:
        model = OCASClassifier().fit(X, y, sample_weight=s)
        assert model.converged_
    assert np.isfinite(model.coef_).all()
