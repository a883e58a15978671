"""`cutting_plane`: risks that are given as functions."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from widemargin import OCASClassifier, cutting_plane

Vector = NDArray[np.float64]


class Hinges:
    """A sum of hinges plus a constant; counts its evaluations."""

    def __init__(self, constant: float = 0.0) -> None:
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(200, 6))
        self.y = np.where(self.X[:, 0] + rng.normal(size=200) > 0, 1.0, -1.0)
        self.constant = constant
        self.n_evaluations = 0

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        self.n_evaluations += 1
        slack = 1.0 - self.y * (self.X @ w)
        return float(slack[slack > 0].sum()) + self.constant, -(self.y * (slack > 0)) @ self.X


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_hinges_as_ocas(C: float) -> None:
    risk = Hinges()
    best = OCASClassifier(C, fit_intercept=False, tol=1e-8).fit(risk.X, risk.y).objective_
    found = cutting_plane(risk, 6, C=C, tol=1e-5)
    assert found.converged_
    assert best * (1 - 1e-8) <= found.objective_ <= best * (1 + 1e-5)
    assert found.objective_ - found.dual_gap_ <= best * (1 + 1e-8)
    assert found.objective_ == pytest.approx(0.5 * found.w @ found.w + C * risk.value_and_subgradient(found.w)[0])
    assert len(found.history_["lower_bound"]) == found.n_iter_
    rounds = OCASClassifier(C, fit_intercept=False, tol=1e-5, line_search=False).fit(risk.X, risk.y).n_iter_
    assert risk.n_evaluations <= 1.3 * rounds + 10, "not many more evaluations than plain cutting planes' one a round"


def test_a_negative_risk() -> None:
    plain, moved = (cutting_plane(Hinges(constant), 6, tol=1e-8) for constant in (0.0, -1000.0))
    assert moved.objective_ == pytest.approx(plain.objective_ - 1000.0)
    assert moved.objective_ - moved.dual_gap_ <= plain.objective_ - 1000.0 + 1e-6
    np.testing.assert_allclose(moved.w, plain.w, atol=1e-2)


def test_a_linear_risk_is_solved_by_its_plane() -> None:
    class Linear:
        def value_and_subgradient(self, w: Vector) -> tuple[float, list[float]]:
            return -3.0 * w[0] + 2.0, [-3.0, 0.0]

    found = cutting_plane(Linear(), 2, C=2.0)
    np.testing.assert_allclose(found.w, [6.0, 0.0])
    assert found.objective_ == pytest.approx(-14.0)


def test_a_start_near_the_end_saves_rounds() -> None:
    cold = cutting_plane(Hinges(), 6, tol=1e-4)
    warm = cutting_plane(Hinges(), 6, tol=1e-4, start=cold.w)
    assert warm.objective_ <= cold.objective_ * (1 + 1e-12)
    assert warm.n_iter_ <= cold.n_iter_


class Negated(Hinges):
    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        value, subgradient = super().value_and_subgradient(w)
        return value, -subgradient


class SlightlyWrong(Hinges):
    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        value, subgradient = super().value_and_subgradient(w)
        return value, 1.05 * subgradient


class Concave:
    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        return -float(w @ w) + float(w.sum()), 1.0 - 2.0 * w


@pytest.mark.parametrize("risk", [Negated(), SlightlyWrong(), Concave()], ids=lambda risk: type(risk).__name__)
def test_a_subgradient_that_lies_is_an_error(risk: Any) -> None:
    with pytest.raises(ValueError, match="a cutting plane of the risk has the value .* where the risk is"):
        cutting_plane(risk, 6, tol=1e-6)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((np.nan, np.zeros(2)), "must return a finite value, got nan"),
        ((1.0, np.array([np.inf, 0.0])), "must return finite subgradients"),
        ((1.0, np.zeros(3)), r"a subgradient of shape \(2,\), got \(3,\)"),
    ],
)
def test_bad_answers(answer: Any, message: str) -> None:
    class Bad:
        def value_and_subgradient(self, w: Vector) -> Any:
            return answer

    with pytest.raises(ValueError, match=message):
        cutting_plane(Bad(), 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_iter": 0}, "max_iter must be an integer, at least 1, got 0"),
        ({"start": np.zeros(3)}, r"start must be finite, of shape \(6,\), got shape \(3,\)"),
        ({"risk": None}, r"risk must have a method value_and_subgradient\(w\), got NoneType"),
    ],
)
def test_bad_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cutting_plane(**{"risk": Hinges(), "n_features": 6, **options})


def test_stops_with_the_best_point_and_a_warning() -> None:
    with pytest.warns(ConvergenceWarning, match="cutting_plane was stopped by max_iter before it converged"):
        found = cutting_plane(Hinges(), 6, tol=1e-9, max_iter=3)
    assert not found.converged_
    assert found.n_iter_ == 3
    with pytest.warns(ConvergenceWarning, match="max_time"):
        assert not cutting_plane(Hinges(), 6, max_time=0).w.any()
    seen = []
    with pytest.warns(ConvergenceWarning, match="callback"):
        cutting_plane(Hinges(), 6, tol=1e-9, callback=lambda state: seen.append(state) or len(seen) >= 2)  # type: ignore[func-returns-value]
    assert len(seen) == 2
    assert seen[0].keys() >= {"round", "objective", "violation", "elapsed"}


def test_few_planes_in_little_memory() -> None:
    full, little = (cutting_plane(Hinges(), 6, tol=1e-3, memory_budget=bytes_) for bytes_ in (10**6, 2000))
    assert little.objective_ == pytest.approx(full.objective_, rel=2e-3)
    assert little.history_["n_planes"].max() < full.history_["n_planes"].max()
