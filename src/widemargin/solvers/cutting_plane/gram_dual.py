"""Linear machines on few samples: their duals on the Gram matrix, and the primal's certificate.

Solve    for each loss   min_w  F(w) = 1/2 |w|^2 + C sum_i s_i max(0, 1 - y_i (<w, x_i> + b))
Given    X (n, d), n small enough for X Xᵀ to be in memory; for each loss its signed weights s_i y_i
Method   the dual of each on K = X Xᵀ by compiled working sets, all in one call; w = Xᵀ beta. F(w) minus the dual value
         sum_i |beta_i| - 1/2 |w|^2 is the gap, both computed from w: no plane is needed. X is centred with an
         intercept, which leaves the dual as it is
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._progress import AnyProgress
from ..._threads import ThreadTeam
from ..._types import Array
from ..dual.certificate import Limits
from ..dual.problem import svm_problem
from ..dual.subproblems import Subproblems, find_points
from ..results import LinearResult
from .losses import HingeLoss, risk_and_plane

_TOL = 1e-4  # KKT violation of the dual of a problem larger than one tile, at most


def solve_gram_duals(
    X: Array,
    losses: Sequence[HingeLoss],
    C: float,
    tol: float,
    max_sets: int,
    team: ThreadTeam,
    progress: AnyProgress,
) -> list[LinearResult] | None:
    """Solve on X (n, d) for all losses, each to a relative gap of `tol`; None where `max_sets` are not enough."""
    samples = X.astype(np.float64)
    shift = samples.mean(axis=0) if losses[0].has_intercept else np.zeros(samples.shape[1])
    samples -= shift
    n, signed = len(samples), np.concatenate([loss.signed_weights for loss in losses])
    problem = svm_problem(np.sign(signed), C * np.abs(signed), has_intercept=losses[0].has_intercept)
    rows, starts = np.arange(len(signed)), np.arange(0, len(signed) + 1, n)
    parts = Subproblems(rows % n, starts, problem, np.zeros(len(rows)))
    # the primal's gap is checked below
    limits = Limits(_TOL, max_relative_gap=np.inf, max_iter=max_sets)
    points = find_points(samples @ samples.T, parts, limits, team, progress)
    results = []
    for loss, beta in zip(losses, points.reshape(-1, n), strict=True):
        w = beta @ samples
        f, square = (samples @ w)[None], float(w @ w)
        objective = 0.5 * square + C * risk_and_plane(loss, f).risk
        gap = max(objective - (float(np.abs(beta).sum()) - 0.5 * square), 0.0)
        if not gap <= tol * objective:
            return None
        results.append(LinearResult(w[None], loss.intercept(f) - w @ shift, objective, gap, True, w[None]))
    return results
