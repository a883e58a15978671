"""Certificates of many problems in common passes: those of each alone."""

import numpy as np
import pytest

from widemargin.solvers.dual.certificate import certify, certify_each
from widemargin.solvers.dual.problem import join_problems, make_terms, restrict_terms, svm_problem


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("tol", [1e-3, 5.0])  # problems whose violation is above it have the optimal intercept
def test_they_are_those_of_each_problem_alone(has_intercept: bool, tol: float) -> None:
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
def test_converged_ones_do_not_depend_on_the_others(has_intercept: bool) -> None:
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
