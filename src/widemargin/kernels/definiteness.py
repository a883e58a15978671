"""Whether a given kernel matrix is positive semidefinite: a test on a part of it, which can only refute."""

from __future__ import annotations

import numpy as np

from ..data.rows import spread_rows
from ..data.samples import GramSamples


def is_indefinite(samples: GramSamples, *, fixes_sum: bool) -> bool:
    """Whether the kernel matrix K of 64 to 127 rows spread over the data has an eigenvalue below zero.

    With `fixes_sum`, as for duals with an intercept, K is centred: x'K x matters for vectors of sum 0 alone. Principal
    submatrices of a semidefinite matrix are semidefinite, so that yes is certain, and no is not. By Cholesky factors.
    """
    batch = samples.take(spread_rows(len(samples)))
    K = np.empty((len(batch), len(batch)))
    batch.inner(batch, K)
    K = 0.5 * (K + K.T)
    if fixes_sum:
        K -= K.mean(axis=0)
        K -= K.mean(axis=1)[:, None]
    diagonal = K.diagonal()
    rounding = 1e-5 * float(np.mean(np.abs(diagonal)))  # of a semidefinite matrix, in its least eigenvalue
    K[np.diag_indices(len(K))] += rounding + np.finfo(np.float64).tiny
    try:
        np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return True
    return False
