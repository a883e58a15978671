"""Linear machines on few rows: their duals on the rows' Gram matrix, and the primal's certificate.

Solve    for each risk   min_w  F(w) = 1/2 |w|^2 + C sum_i s_i max(0, 1 - y_i (<w, x_i> + b))
Given    the rows (n, d), n small enough for X X' to be in memory; for each risk its s_i y_i
Method   the dual of each on K = X X' by compiled working sets, all in one call; w = X' beta. F(w) less the dual value
         is the gap: no plane is needed
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..._progress import Aside, Part, Progress
from ..._threads import ThreadTeam
from ..dual.certificate import svm_problem
from ..dual.subproblems import Subproblem, solve_subproblems
from ..results import LinearResult
from .losses import HingeRisk

Vector = NDArray[np.float64]

_MOST_ROWS = 1024
_MOST_SETS = 25  # working sets for each risk: where these are not enough, planes are the better way
_TOL = 1e-4  # violation of the dual, of problems larger than one tile


def solve_few_rows(
    X: NDArray[np.floating],
    risks: Sequence[HingeRisk],
    C: float,
    tol: float,
    team: ThreadTeam,
    progress: Progress | Part | Aside,
) -> list[LinearResult] | None:
    """Solve for all risks, if the gap of each comes below the tolerance.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    risks : sequence of HingeRisk
    C : float
    tol : float
        Largest gap, relative to the objective.
    team : ThreadTeam
    progress : Progress or Part

    Returns
    -------
    list of LinearResult, or None
        None where the working sets allowed were not enough.
    """
    rows = X.astype(np.float64, copy=False)
    everyone, none = np.arange(len(rows)), np.zeros(len(rows))
    parts = [Subproblem(everyone, svm_problem(np.sign(risk.signed), C * np.abs(risk.signed)), none) for risk in risks]
    duals = solve_subproblems(
        rows @ rows.T,
        parts,
        team,
        equality=risks[0].has_intercept,
        tol=_TOL,
        max_iter=_MOST_SETS,
        progress=progress,
        max_relative_gap=np.inf,  # the machine's own gap is looked at below
    )
    results = []
    for risk, dual in zip(risks, duals, strict=True):
        w, f = dual.beta @ rows, dual.decision[None]
        cut = risk.advance(f, f, 0.0, 0.0)
        objective = 0.5 * float(w @ w) + C * cut.risk
        gap = max(objective - (dual.objective - dual.gap), 0.0)
        if not gap <= tol * objective:
            return None
        results.append(LinearResult(w[None], risk.intercept(f), objective, gap, True, w[None]))
    return results


def is_for_few_rows(shape: tuple[int, int]) -> bool:
    """Whether n rows of d features are few enough."""
    return shape[0] <= _MOST_ROWS and shape[1] <= _MOST_ROWS
