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

_FEW_SETS, _MANY_SETS = 6, 25  # working sets, at most: where the interior-point method is next, and else
# Where columns are few, at most so many samples, and so large an upper bound times |x|^2: a coordinate step changes the
# gradients of the others by so much. The interior-point method is faster beyond.
_FEW_SAMPLES, _STEEP = 640, 64.0
_TOL = 1e-4  # KKT violation of the dual of a problem larger than one tile, at most


def has_few_columns(n: int, d: int) -> bool:
    """Whether systems of d equations are cheaper than those of n samples."""
    return 2 * d <= n


def suits_gram_dual(n: int, d: int) -> bool:
    """Whether working sets on n samples may be faster than the interior-point method."""
    return not has_few_columns(n, d) or n <= _FEW_SAMPLES


def solve_gram_duals(
    X: Array,
    losses: Sequence[HingeLoss],
    C: float,
    tol: float,
    team: ThreadTeam,
    progress: AnyProgress,
) -> list[LinearResult] | None:
    """Solve on X (n, d) for all losses, each to a relative gap of `tol`; None where that takes many working sets."""
    samples = X.astype(np.float64)
    shift = samples.mean(axis=0) if losses[0].has_intercept else np.zeros(samples.shape[1])
    samples -= shift
    (n, d), signed = samples.shape, np.concatenate([loss.signed_weights for loss in losses])
    steepness = C * float(np.abs(signed).mean()) * float(np.vdot(samples, samples)) / n
    if has_few_columns(n, d) and steepness > _STEEP:
        return None
    problem = svm_problem(np.sign(signed), C * np.abs(signed), has_intercept=losses[0].has_intercept)
    rows, starts = np.arange(len(signed)), np.arange(0, len(signed) + 1, n)
    parts = Subproblems(rows % n, starts, problem, np.zeros(len(rows)))
    # the primal's gap is checked below
    limits = Limits(_TOL, max_relative_gap=np.inf, max_iter=_FEW_SETS if has_few_columns(n, d) else _MANY_SETS)
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
