"""Pegasos (Shalev-Shwartz, Singer, Srebro, ICML 2007), compiled: one row a step, with the projection, last point.

w is held as a scale times v, so that a step costs only the non-zeros of its row.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def csr_steps(data: Any, indices: Any, indptr: Any, n_features: int, y: Any, lam: float, n_steps: int, rng: Any) -> Any:
    """Pegasos with one row a step and the projection. Rows in CSR; w is held as scale times v, with its norm."""
    n = y.shape[0]
    v = np.zeros(n_features)
    scale, norm2 = 1.0, 0.0
    for t in range(1, n_steps + 1):
        i = rng.integers(0, n)
        start, stop = indptr[i], indptr[i + 1]
        product, length2 = 0.0, 0.0
        for p in range(start, stop):
            product += data[p] * v[indices[p]]
            length2 += data[p] * data[p]
        product *= scale
        margin = y[i] * product
        shrink = 1.0 - 1.0 / t
        scale *= shrink
        norm2 *= shrink * shrink
        if scale < 1e-9:
            v *= scale
            scale = 1.0
        if margin < 1.0:
            step = y[i] / (lam * t)
            for p in range(start, stop):
                v[indices[p]] += step / scale * data[p]
            norm2 += 2.0 * step * shrink * product + step * step * length2
            if lam * norm2 > 1.0:
                scale /= np.sqrt(lam * norm2)
                norm2 = 1.0 / lam
    return scale * v
