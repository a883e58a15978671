"""Rounding errors of kernel entries, measured on a probe."""

from __future__ import annotations

import numpy as np

from .._types import Array
from ..data.origin import FAR, origin_distance
from ..data.rows import spread_rows
from ..data.samples import Samples
from .functions import RBF, ExponentialKernel, InnerProductKernel, Kernel, Polynomial

_MAX_ERROR = 1e-6  # use float64 above this error of an entry; float32 has 1e-7, more where norms exceed distances
_MAX_RELATIVE_ERROR = 1e-5  # the same of a function of inner products, beside what differs from entry to entry
_EPS = float(np.finfo(np.float64).eps)
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def entry_error(kernel: Kernel, samples: Samples) -> float:
    """Root mean square error of float32 kernel entries, against float64 ones.

    Measured between 64 to 127 rows spread over the data and the rows that follow them: neighbours, where entries are
    often large, and pairs from everywhere. 0 for float64 tiles, and for a Gram matrix, whose own error is not known.
    """
    if samples.dtype == _DOUBLE or not len(samples) or kernel.sample_form == "entries":
        return 0.0
    return _error(*_probe(kernel, samples))


def float64_error(kernel: Kernel, samples: Samples) -> float:
    """Rounding error of float64 kernel entries, about: that of inner products, times the kernel's slope.

    0 for kernels whose own error is not known, or is that of the entries' last digit, as of the Laplacian.
    """
    if not len(samples) or not isinstance(kernel, RBF | InnerProductKernel):
        return 0.0
    factor = getattr(kernel, "gamma", 1.0)
    if isinstance(kernel, Polynomial):
        return _EPS * kernel.degree * float(np.abs(kernel.diagonal(samples)).mean())
    return _EPS * factor * float(samples.squares.mean())


def ensure_precision(kernel: Kernel, samples: Samples) -> Samples:
    """The samples, in float64 where float32 entries would have lost what tells the rows apart.

    Of the RBF and Laplacian kernels with an error of entries above 1e-6: distances are then float64, which take twice
    as long, and tiles stay float32. Of kernels of inner products, whose values are large where rows are far from the
    origin, with an error above 1e-5 of the entries' interaction K_ij - mean_i K_ij - mean_j K_ij + mean K: also the
    tiles.
    """
    if samples.dtype == _DOUBLE or not len(samples):
        return samples
    if isinstance(kernel, ExponentialKernel) and entry_error(kernel, samples) > _MAX_ERROR:
        return samples.astype(_DOUBLE, samples.dtype)
    if isinstance(kernel, InnerProductKernel) and origin_distance(samples.stored()) > FAR:
        rough, exact = _probe(kernel, samples)
        interaction = exact - exact.mean(axis=0) - exact.mean(axis=1)[:, None] + exact.mean()
        if not _error(rough, exact) <= _MAX_RELATIVE_ERROR * float(np.sqrt(np.mean(interaction**2))):
            return samples.astype(_DOUBLE, _DOUBLE)
    return samples


def _probe(kernel: Kernel, samples: Samples) -> tuple[Array, Array]:
    """Entries between some rows and those that follow them, in the samples' precision and in float64."""
    rows = spread_rows(len(samples))
    A, B = samples.take(rows), samples.take(np.minimum(rows + 1, len(samples) - 1))
    rough, exact = np.empty((len(A), len(B)), _SINGLE), np.empty((len(A), len(B)), _DOUBLE)
    kernel.fill(A, B, rough)
    kernel.fill(A.astype(_DOUBLE, _DOUBLE), B.astype(_DOUBLE, _DOUBLE), exact)
    return rough, exact


def _error(rough: Array, exact: Array) -> float:
    return float(np.sqrt(np.mean((rough - exact) ** 2)))
