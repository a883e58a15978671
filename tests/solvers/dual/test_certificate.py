"""Where a point stands, against the textbook's primal, dual and intercept; of many problems, as each alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import dual as naive
from widemargin.solvers.dual.certificate import Limits, certify, certify_each, scaled
from widemargin.solvers.dual.problem import is_free, join_problems, make_terms, restrict_terms, svm_problem
from widemargin.solvers.results import NO_CERTIFICATE, Certificate

quick = settings(max_examples=80, deadline=None, derandomize=True)


@pytest.mark.slow
@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 12),
    has_intercept=st.booleans(),
    converged=st.booleans(),
    C=st.sampled_from([1e-3, 1.0, 1e4]),
)
def test_certificate_of_any_feasible_point(seed: int, n: int, has_intercept: bool, converged: bool, C: float) -> None:
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, 4))
    K, y = F @ F.T, rng.choice([-1.0, 1.0], size=n)
    y[:2] = 1, -1
    upper = C * rng.choice([0.0, 0.5, 1.0], size=n)
    alpha = upper * rng.choice([0.0, 0.4, 1.0], size=n)
    if has_intercept:
        plus, minus = alpha @ (y > 0), alpha @ (y < 0)
        alpha = np.where(
            y > 0, alpha * min(1, minus / plus) if plus else 0, alpha * min(1, plus / minus) if minus else 0
        )
    beta, violations = y * alpha, np.empty(n)
    terms = make_terms(svm_problem(y, upper), K.diagonal())
    found = certify(terms, beta, K @ beta, violations, has_intercept=has_intercept, tol=1e9 if converged else 0.0)

    Q, p = naive.signed(K, y), -np.ones(n)
    worst = naive.violation(Q, p, upper, alpha, y if has_intercept else None)
    assert found.violation == pytest.approx(worst, abs=1e-9)
    assert found.primal_objective == pytest.approx(naive.primal(K, y, upper, alpha, found.intercept), rel=1e-9)
    assert found.gap == pytest.approx(
        naive.dual_gap(K, y, upper, alpha, found.intercept), rel=1e-7, abs=1e-9 * (1 + C**2)
    )
    assert found.gap >= 0
    assert found.lower_bound == pytest.approx(-naive.objective(Q, p, alpha), rel=1e-7, abs=1e-9 * (1 + C**2))
    assert np.abs(violations).max() <= max(found.violation, 0) + 1e-9
    if not has_intercept:
        assert found.intercept == 0
    elif not converged and upper.any():
        best = naive.primal(K, y, upper, alpha, naive.best_intercept(K, y, upper, alpha))
        assert found.primal_objective == pytest.approx(best, rel=1e-9)
    elif converged and is_free(terms, beta).any():
        free = is_free(terms, beta)
        assert found.intercept == pytest.approx((y - K @ beta)[free].mean())


@pytest.mark.parametrize("diagonal", [[1.0, 1e-30, 0.0], [4.0, -1.0, 1.0]])
def test_scale_of_a_diagonal_with_nothing_on_it(diagonal: list[float]) -> None:
    terms = make_terms(svm_problem(np.ones(3), np.ones(3)), np.array(diagonal))
    assert (terms.scale > 0).all()
    assert np.isfinite(terms.scale**2).all()
    assert terms.scale[0] == diagonal[0] ** -0.5


@pytest.mark.parametrize("diagonal", [[0.0, 0.0], [-1.0, -0.5]])
def test_scale_where_no_diagonal_is_positive(diagonal: list[float]) -> None:
    """A linear kernel on zeros; a sigmoid kernel with a negative coef0."""
    terms = make_terms(svm_problem(np.ones(2), np.ones(2)), np.array(diagonal))
    assert (terms.scale < 1e15).all()
    assert np.isfinite(terms.scale.astype(np.float32) ** 2).all()


def test_a_tolerance_is_tightened_only_where_it_is_met_and_the_gap_too_large() -> None:
    limits = Limits(1e-3, max_relative_gap=0.05)
    wide, tight = Certificate(0.0, 1.0, 0.5, 1e-4), Certificate(0.0, 1.0, 0.01, 1e-4)
    assert limits.next_tol(1e-3, tight) == 1e-3
    assert limits.next_tol(1e-5, wide) == 1e-5  # not met yet
    assert limits.next_tol(1e-3, wide) == pytest.approx(1e-4 * 0.07)  # the gap is then 0.7 times the allowed one
    assert limits.next_tol(1e-3, wide._replace(gap=1e9)) == pytest.approx(1e-4 * 1e-3)  # not at once by more
    assert limits.next_tol(1e-3, wide._replace(violation=np.nan)) == 1e-3
    assert Limits(1e-3, max_relative_gap=np.inf).next_tol(1e-3, wide) == 1e-3
    columns = Certificate(*np.array([wide, tight, NO_CERTIFICATE]).T)
    np.testing.assert_allclose(limits.next_tol(np.full(3, 1e-3), columns), [7e-6, 1e-3, 1e-3])


def test_a_scaled_machine_has_the_least_primal_objective_of_its_multiples() -> None:
    """Free coordinates within 1e-3 of their margin, on both sides of it: their losses are most of the gap."""
    rng = np.random.default_rng(0)
    X, y, upper = rng.normal(size=(60, 3)), rng.choice([-1.0, 1.0], 60), np.full(60, 20.0)
    K = np.exp(-10.0 * ((X[:, None] - X) ** 2).sum(axis=-1))
    beta = np.linalg.solve(K, y + 1e-3 * rng.normal(size=60))
    alpha, decision, terms = y * beta, K @ beta, make_terms(svm_problem(y, upper), K.diagonal())
    assert ((alpha > 0.0) & (alpha < upper)).all()
    one = certify(terms, beta, decision, np.empty(60), has_intercept=False, tol=1e-3)
    limits = Limits(1e-2, 1e-3, scales=True)
    found, a = scaled(terms, beta, decision, one, limits)
    assert 1.0 < a < 1.01
    assert found.gap < 0.5 * one.gap
    assert found.primal_objective == pytest.approx(naive.primal(K, y, upper, a * alpha), rel=1e-12)
    assert found[2:] == (pytest.approx(found.primal_objective - one.lower_bound), one.violation)
    others = [naive.primal(K, y, upper, s * alpha) for s in np.linspace(0.99, 1.01, 201)]
    assert found.primal_objective - min(others) < 0.02 * (one.gap - found.gap)
    assert scaled(terms, beta, decision, one, Limits(1e-2, 1e-3)) == (one, 1.0)
    for near_or_far in (0.5, 31.0):  # a gap that is small enough, or too large
        relative = one.gap / one.primal_objective / near_or_far
        assert scaled(terms, beta, decision, one, Limits(1e-2, relative, scales=True)) == (one, 1.0)


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("tol", [1e-3, 5.0])  # problems whose violation is above it have the optimal intercept
def test_certificates_of_many_problems_are_those_of_each_alone(has_intercept: bool, tol: float) -> None:
    rng = np.random.default_rng(0)
    problems, points = [], []
    for m in rng.integers(1, 7, size=200):
        y, upper = rng.choice([-1.0, 1.0], m), rng.integers(1, 3, m).astype(np.float64)
        problems.append(svm_problem(y, upper, has_intercept=has_intercept))
        points.append(np.clip(rng.integers(-1, 2, m) * rng.choice([0.5, 1.0], m), problems[-1].lo, problems[-1].hi))
    starts = np.cumsum([0, *map(len, points)])
    beta, decision = np.concatenate(points), rng.standard_normal(starts[-1])
    terms = make_terms(join_problems(problems), np.ones(len(beta)))
    together = certify_each(terms, beta, decision, starts, has_intercept=has_intercept, tol=tol)
    for k, certificate in enumerate(zip(*together, strict=True)):
        part = slice(starts[k], starts[k + 1])
        own, violations = restrict_terms(terms, part), np.empty(len(points[k]))
        alone = certify(own, beta[part], decision[part], violations, has_intercept=has_intercept, tol=tol)
        np.testing.assert_allclose(certificate, alone, atol=1e-12)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_certificates_of_converged_problems_do_not_depend_on_the_others(has_intercept: bool) -> None:
    """To the last bit: which pairs of classes are certified at one time depends on the clock."""
    rng = np.random.default_rng(1)
    sizes = np.array([40, 0, 300, 0, 1000, 7, 129])
    starts = np.concatenate([[0], sizes.cumsum()])
    y, upper = rng.choice([-1.0, 1.0], starts[-1]), rng.random(starts[-1]) + 0.5
    problem = svm_problem(y, upper, has_intercept=has_intercept)
    terms, beta = make_terms(problem, np.ones(len(y))), np.clip(rng.standard_normal(len(y)), problem.lo, problem.hi)
    decision = rng.standard_normal(len(y))
    together = certify_each(terms, beta, decision, starts, has_intercept=has_intercept, tol=np.inf)
    for k, size in enumerate(sizes):
        part = slice(starts[k], starts[k + 1])
        own = restrict_terms(terms, part), beta[part], decision[part], np.array([0, size])
        alone = certify_each(*own, has_intercept=has_intercept, tol=np.inf)
        assert [column[k] for column in together] == [column[0] for column in alone]
