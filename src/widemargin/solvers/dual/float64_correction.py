"""Corrections in float64 of a solution that was found with float32 kernel entries.

An entry has an independent error of standard deviation sigma, so a decision value one of sigma |beta|. Where this could
hide a violation of the tolerance (`stopping.hides_violation`), the solver goes on from decision values computed in
float64: then only changes of beta add errors. At need it goes on with float64 entries.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._native import Stopped
from ..._types import RowIndices
from ...data.samples import Samples, SampleSubset
from ...kernels.kernel_operator import KernelOperator
from ..results import DualResult
from .in_memory import WORKING_SET_ROWS
from .memory import active_bytes
from .problem import DualProblem, kink_distances
from .solver import DualSolver
from .stopping import CERTAIN, MAX_ERROR, hides_violation


def correct_in_float64(solver: DualSolver, result: DualResult, n_bytes: int) -> DualResult:
    """Go on from the result of a solver where rounding of its kernel entries could hide a violation.

    `result` is its own, or another one's of the same problem, and is returned, not converged, if the fit is stopped
    meanwhile. The solve has `n_bytes`; the solver's active matrix is freed if float64 entries are needed.
    """
    if not _is_coarse(solver, result):
        return result
    solver.progress.stage("float64")
    has_room = True
    try:
        if len(result.beta) > WORKING_SET_ROWS:
            result, has_room = _correct_uncertain_rows(solver, result, n_bytes)
        if not has_room or _is_coarse(solver, result):
            exact = _float64_solver(solver, solver.operator.samples, solver.problem, n_bytes)
            solver.free_matrix()
            result = exact.continue_from(result, exact.decision_values(result.beta))
    except Stopped:
        return replace(result, converged=False)
    return result


def _is_coarse(solver: DualSolver, result: DualResult) -> bool:
    error = solver.decision_error(result.beta)
    return bool(hides_violation(error, solver.limits.tol, solver.terms, result.objective))


def _correct_uncertain_rows(solver: DualSolver, result: DualResult, n_bytes: int) -> tuple[DualResult, bool]:
    """Go on with float64 decision values of the rows that rounding errors can affect; also whether these have room.

    These are support vectors and rows near their margin: errors of the other decision values change neither objective,
    nor the gap. The set of rows grows until a solution affects no others.
    """
    samples = solver.operator.samples
    if solver.is_local:  # kept entries are in the memory beside the matrix
        solver.active_matrix.clear()
    max_rows = max(0, n_bytes - solver.active_matrix.K.nbytes) // (2 * samples.row_bytes)
    error, known = solver.decision_error(result.beta), np.empty(0, np.intp)
    while len(rows := np.union1d(known, _uncertain_rows(solver, result, error))) > len(known):
        if len(rows) > max_rows:
            return result, False
        known, decision = rows, result.decision.copy()
        exact = _float64_solver(solver, SampleSubset(samples, rows), solver.problem.take(rows), 0)
        decision[rows] = exact.decision_values(result.beta[rows])
        result = solver.continue_from(result, decision)
        if solver.decision_error(result.beta) > MAX_ERROR * solver.limits.tol:
            break  # float64 entries are needed
    return result, True


def _uncertain_rows(solver: DualSolver, result: DualResult, error: float) -> RowIndices:
    distances = kink_distances(solver.terms, result.decision, result.intercept)
    return np.flatnonzero((result.beta != 0.0) | (distances < CERTAIN * error))


def _float64_solver(solver: DualSolver, samples: Samples, problem: DualProblem, n_bytes: int) -> DualSolver:
    """A solver of this problem as `solver`, with float64 entries."""
    samples, team = samples.astype(np.dtype(np.float64), np.dtype(np.float64)), solver.operator.team
    return DualSolver(
        KernelOperator(solver.operator.kernel, samples, team),
        problem,
        solver.limits,
        active_bytes=active_bytes(samples, n_bytes, team.n_threads),
        progress=solver.progress,
    )
