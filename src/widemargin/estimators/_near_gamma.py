"""The gamma of a one-class machine, by the distance within which a tenth of the rows lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._threads import openmp_limit, openmp_threads
from .._types import ROUNDING, KernelParameter, Matrix, Rows, Vector
from ..data.remote.remote_rows import RemoteRows

_SAMPLE_ROWS, _QUERY_ROWS = 1000, 300  # among which near rows are looked for, and for how many
_NEAR_SHARE = 0.1  # of the weight of the other rows: a smaller one orders rows hardly better, and rejects more new ones


def near_gamma(kernel: KernelParameter, X: Rows, weights: Vector) -> float | None:
    """1 / median over the rows of the kernel's distance within which a tenth of the other rows lie.

    Distances are squared Euclidean ones ("rbf"), or L1 ("laplacian"), of 300 rows to 1,000 random ones, at most. None
    if all rows of X (n, d) are equal. Equal rows don't count: a weight of 2 is the same as a repeated row.
    """
    rows, sample = _draw(X)
    distances = _distances(kernel, sample)
    near, queries = np.full(len(distances), np.nan), _query_rows(len(rows))
    is_other = distances > ROUNDING * distances.max()
    for k, (own, other) in enumerate(zip(distances, is_other, strict=True)):
        if other.any():
            near[k] = weighted_quantile(own[other], weights[rows][other], _NEAR_SHARE)
    known = np.isfinite(near)
    if not known.any():
        return None
    return 1.0 / weighted_quantile(near[known], weights[rows][queries][known], 0.5)


def _draw(X: Rows) -> tuple[Rows, Any]:
    """The numbers of up to 1,000 rows, and these rows."""
    if isinstance(X, RemoteRows):
        rows, values = X.sample
        return rows[:_SAMPLE_ROWS], values[:_SAMPLE_ROWS]
    n = X.shape[0]
    rows = np.arange(n)
    if n > _SAMPLE_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(n, _SAMPLE_ROWS, replace=False))
    return rows, X[rows]


def _query_rows(n: int) -> Any:
    return np.unique(np.linspace(0, n - 1, _QUERY_ROWS).astype(np.intp))


def _distances(kernel: KernelParameter, sample: Rows) -> Matrix:
    """Distances (q, m) of some rows of a sample (m, d) to all of it."""
    from sklearn.metrics.pairwise import euclidean_distances  # slow to load

    sample = sample.astype(np.float64)
    if not sp.issparse(sample):
        sample = sample - sample.mean(axis=0)
    queries = sample[_query_rows(sample.shape[0])]
    if kernel == "laplacian":
        return manhattan_distances(queries, sample)
    return np.asarray(euclidean_distances(queries, sample, squared=True))


def manhattan_distances(A: Rows, B: Rows) -> Matrix:
    """L1 distances (a, b) of all pairs of rows, by scikit-learn: if they are sparse, in a loop of OpenMP."""
    from sklearn.metrics import pairwise  # slow to load

    with openmp_limit(openmp_threads()):
        return np.asarray(pairwise.manhattan_distances(A, B))


def weighted_quantile(values: Vector, weights: Vector, share: float) -> float:
    """The least value at which the weights up to it are a share of all."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, share * total[-1])])
