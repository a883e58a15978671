"""Rounding errors of kernel entries, measured on a probe."""

from __future__ import annotations

import numpy as np

from ..data.rows import spread_rows
from ..data.samples import Samples
from .functions import RBF, Kernel, Laplacian

_PROBE_ROWS = 64  # probe at least so many
_MAX_ERROR = 1e-6  # use float64 above this error of an entry; float32 has 1e-7, more where norms exceed distances


def entry_error(kernel: Kernel, samples: Samples) -> float:
    """Root mean square error of float32 kernel entries, against float64 ones.

    Measured between 64 to 127 rows spread over the data and the rows that follow them: neighbours, where entries are
    often large, and pairs from everywhere. 0 for float64 tiles, and for a Gram matrix, whose own error is not known.
    """
    if samples.dtype == np.float64 or not len(samples) or kernel.sample_form == "entries":
        return 0.0
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    rows = spread_rows(len(samples), _PROBE_ROWS)
    A, B = samples.take(rows), samples.take(np.minimum(rows + 1, len(samples) - 1))
    rough, exact = np.empty((len(A), len(B)), single), np.empty((len(A), len(B)), double)
    kernel.fill(A, B, rough)
    kernel.fill(A.astype(double, double), B.astype(double, double), exact)
    return float(np.sqrt(np.mean((rough - exact) ** 2)))


def ensure_precision(kernel: Kernel, samples: Samples) -> Samples:
    """The samples, with distances in float64 if RBF or Laplacian entries had an error above 1e-6 otherwise.

    Tiles stay float32. The samples are then copied in float64, and distances take twice as long.
    """
    if isinstance(kernel, RBF | Laplacian) and entry_error(kernel, samples) > _MAX_ERROR:
        return samples.astype(np.dtype(np.float64), samples.dtype)
    return samples
