"""Duals along a path of C, each from the solution before.

Solve    min_beta  1/2 beta'K beta - t'beta + eps |beta|_1   s.t.  C lo <= beta <= C hi   [and sum(beta) = 0]
         for C = C_1 < C_2 < ...
Method   The last solution is feasible, and its decision values are known: a start that costs no kernel entry. It is the
         solution where no coordinate was at a bound. (C_k / C_(k-1) times it, with coordinates that stay at a bound,
         takes more steps. `side_by_side.scaled_starts` is for problems without a matrix, where steps are not all.)
Source   alpha seeding: DeCoste and Wagstaff, KDD 2000, who multiply
Twin     tests/naive/tuning.py::held_out_values
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..._progress import AnyProgress
from ..._types import Vector
from ..results import DualResult
from .problem import DualProblem, without_denormals

Solve = Callable[[DualProblem, Vector, Vector], DualResult]


class DualPath:
    """The duals of one problem, in ascending order of C.

    `problem` has the bounds for C = 1, and nu = 0. `solve` gives the result of a problem, a feasible start (m,) and its
    decision values (m,).
    """

    def __init__(self, problem: DualProblem, solve: Solve) -> None:
        self.unit = problem
        self.solve = solve
        self.beta, self.decision = np.zeros((2, len(problem.target)))

    def step(self, C: float) -> DualResult:
        """Solve for C, starting from the last C's solution."""
        result = self.solve(scale_bounds(self.unit, C), self.beta, self.decision)
        self.beta, self.decision = result.beta, result.decision
        return result

    def follow(self, Cs: Sequence[float], progress: AnyProgress) -> list[DualResult]:
        """The results for ascending Cs; fewer, if the fit is stopped: the one that was cut short is left out."""
        results: list[DualResult] = []
        for C in Cs:
            if not progress.go_on():
                break
            result = self.step(C)
            if progress.stopped_by:
                break
            results.append(result)
        return results


def scale_bounds(problem: DualProblem, C: float | Vector) -> DualProblem:
    """The problem of m coordinates with C times its bounds, denormal ones 0; C (m,) for each."""
    return problem._replace(lo=without_denormals(C * problem.lo), hi=without_denormals(C * problem.hi))
