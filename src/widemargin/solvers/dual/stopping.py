"""When a dual solver ends before its tolerance: it has stalled, or rounding hides what is left to do.

Whether the tolerance is met, and the duality gap, are in `certificate`; callers limit the time and the working sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..._native import dual
from ..._types import Vector
from ..results import DualResults
from .problem import DualProblem, penalty, slope_sums, total_loss

SETS_PER_CHECK = 30  # test for a stall after so many working sets: nine sets of up to 512 rows, C <= 960, took up to 21
MAX_IDLE_CHECKS = 10  # stop after so many tests without progress, one after another: a stall
_MAX_ROUNDING = 1e-3  # decision values with a larger rounding error are beyond precision (see `StallTest`)
_MAX_IDLE_BEYOND = 4  # beyond precision, stop after so many tests at most
_LEAST_DECREASE = 0.01  # beyond precision, a decrease by less than this part of the primal at beta = 0 is none
_STEP_LIMIT_SHARE = 0.8  # working sets that take more than this part of their limit of steps mostly end unsolved
MAX_ERROR = 0.25  # a violation of tol is not certain above this error of decision values / tol
CERTAIN = 20.0  # distances from the margin, and violations, above so many decision errors are certain
MAX_OBJECTIVE_ERROR = 0.01  # correct the solution above this error of the primal objective / itself
EPS = float(np.finfo(np.float64).eps)


class StallTest:
    """Tests now and then whether a solver has stalled: no progress in `max_idle` tests, one after another.

    Progress: the dual objective fell below its least value so far by more than rounding, or the violation below half
    of its least value. (With float32 entries either can increase for a while.)

    Where decision values of bounded support vectors are beyond the precision of float64, no optimum with such vectors
    can be certified, yet the dual objective may fall for hours. There only a decrease of 1 % of the primal objective of
    beta = 0 counts, and four tests without progress are a stall instead of ten. Chosen on 1,500 rows of random labels,
    C = 1e10: those of 1 to 5 columns end in 1 to 7 s, and those of 10 columns, which are separable, converge.

    Dual objectives are compared by their change since the first point tested (`dual_objective_change`), which follows
    from decision values alone, also where these include coordinates that are fixed and not in the problem.
    """

    def __init__(self, max_idle: int = MAX_IDLE_CHECKS) -> None:
        self.max_idle = max_idle
        self._n_idle = 0  # tests since the last progress
        self._value = self._violation = np.inf
        self._start: tuple[Vector, Vector] | None = None

    def observe(self, terms: dual.SeparableTerms, beta: Vector, decision: Vector, violation: float) -> bool:
        """Compare the point with those tested before; return whether the solver has stalled."""
        if self._start is None:
            self._start = beta.copy(), decision.copy()
        value, least_decrease = dual_objective_change(terms, self._start, beta, decision)
        if is_beyond_precision(terms):
            self.max_idle = min(self.max_idle, _MAX_IDLE_BEYOND)
            primal_at_zero = total_loss(terms, -terms.target)  # an upper bound of the negative dual objective
            least_decrease = max(least_decrease, _LEAST_DECREASE * primal_at_zero)
        has_progress = value < self._value - least_decrease or violation < 0.5 * self._violation
        self._n_idle = 0 if has_progress else self._n_idle + 1
        self._value, self._violation = min(value, self._value), min(violation, self._violation)
        return self._n_idle >= self.max_idle


class CoordinateStallTest:
    """Tests, after every `SETS_PER_CHECK` working sets of a problem, whether coordinate steps have stalled.

    A problem of at most `size` rows, those of a working set, has stalled at the first test; a larger one if its working
    sets end at their limit of steps, or by `StallTest`.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._stall_test = StallTest()
        self._steps = 0

    def observe(
        self, terms: dual.SeparableTerms, beta: Vector, decision: Vector, violation: float, n_steps: int
    ) -> bool:
        """As `StallTest.observe`; `n_steps` is the number of steps in all working sets so far."""
        if len(beta) <= self.size:
            return True
        is_cut_short = n_steps - self._steps > _STEP_LIMIT_SHARE * SETS_PER_CHECK * dual.STEPS_PER_ROW * self.size
        self._steps = n_steps
        return self._stall_test.observe(terms, beta, decision, violation) or is_cut_short


def is_beyond_precision(terms: dual.SeparableTerms) -> bool:
    """Whether decision values with all coordinates at their bounds, if they get there, could have errors above 1e-3."""
    if terms.curvature is not None:  # they do not
        return False
    with np.errstate(over="ignore"):
        return bool(
            EPS * float(np.sum(terms.hi - terms.lo)) > _MAX_ROUNDING * float(np.min(terms.scale, initial=np.inf)) ** 2
        )


def dual_objective_change(
    terms: dual.SeparableTerms, start: tuple[Vector, Vector], beta: Vector, decision: Vector
) -> tuple[float, float]:
    """D(beta) - D(beta_0), for the dual objective D and `start`, beta_0 and its decision values; its rounding error.

    With f = K beta + c, where c is that of fixed coordinates, the change is
    (beta - beta_0)'(1/2 (f + f_0) - t), and that of `penalty`. An entry of K beta is a sum of terms K_ij beta_j,
    of at most sqrt(K_ii K_jj) |beta_j|, with independent errors.
    """
    scaled = beta / terms.scale
    size, norm = np.abs(terms.target) @ np.abs(beta), penalty(terms, beta)
    rounding = EPS * float(size + norm + scaled @ scaled)
    quadratic = (beta - start[0]) @ (0.5 * (decision + start[1]) - terms.target)
    return float(quadratic + norm - penalty(terms, start[0])), rounding


def hides_violation(
    error: Any,
    tol: float,
    problem: DualProblem | dual.SeparableTerms,
    primal_objective: Any,
    sums: Callable[[Vector], Any] = np.sum,
) -> Any:
    """Whether a decision error could hide a violation of `tol`, or change the primal objective by 1 %.

    Of many problems, whose coordinates are those of `problem`, error and objective are (P,), and `sums` are theirs.
    """
    total = slope_sums(problem, primal_objective, sums)
    return (error > MAX_ERROR * tol) | (error * total > MAX_OBJECTIVE_ERROR * np.abs(primal_objective))


def is_comparable_with_rounding(violation: float, error: float, tol: float) -> bool:
    """Whether decision errors are too large for `tol` and explain the violation: more rounds would not reduce it."""
    return error > MAX_ERROR * tol and violation < CERTAIN * error


def with_rounding(results: DualResults, float64_error: float, tol: float) -> DualResults:
    """The results, not converged where rounding errors of float64 kernel entries could hide a violation of `tol`.

    Or where they could change the objective by 1 %. The gap is then larger by what they could change it: decision
    values with an error e change beta'K beta and the losses of support vectors by e sum |beta_i| each.
    """
    if not float64_error:
        return results
    size = float64_error * float(np.sqrt(results.beta @ results.beta))
    most = float(np.abs(results.beta).sum())
    if size <= MAX_ERROR * tol and 2.0 * size * most <= MAX_OBJECTIVE_ERROR * float(np.abs(results.objective).min()):
        return results  # no problem's error is larger than that of all coordinates together
    errors = float64_error * np.sqrt(results.sums(results.beta**2))
    rounding = 2.0 * errors * results.sums(np.abs(results.beta))
    is_coarse = (errors > MAX_ERROR * tol) | (rounding > MAX_OBJECTIVE_ERROR * np.abs(results.objective))
    gap = results.gap + np.where(is_coarse, rounding, 0.0)
    return replace(results, converged=results.converged & ~is_coarse, gap=gap)
