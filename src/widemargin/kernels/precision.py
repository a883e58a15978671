"""How exact tiles are, measured on a probe of entries."""

from __future__ import annotations

import numpy as np

from ..data.samples import Samples
from .functions import RBF, Kernel

_PROBE = 64
_COARSE = 1e-6  # a float32 entry has about 1e-7; much more comes from norms that are large beside the distances


def entry_noise(kernel: Kernel, samples: Samples) -> float:
    """Root mean square error of float32 kernel entries, against float64 on a probe of 64 x 64.

    0 for float64 tiles, and for a given matrix, of which no more is known.
    """
    if samples.dtype == np.float64 or not len(samples) or kernel.sample_form == "entries":
        return 0.0
    n = len(samples)
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    A = samples.take(np.unique(np.linspace(0, n - 1, _PROBE).astype(np.intp)))
    # neighbours in the data as given, where entries are large, and pairs from everywhere
    B = samples.take(np.unique(np.minimum(np.linspace(1, n, _PROBE).astype(np.intp), n - 1)))
    rough, exact = np.empty((len(A), len(B)), single), np.empty((len(A), len(B)), double)
    kernel.fill(A, B, rough)
    kernel.fill(A.astype(double, double), B.astype(double, double), exact)
    return float(np.sqrt(np.mean((rough - exact) ** 2)))


def ensure_precision(kernel: Kernel, samples: Samples) -> Samples:
    """Where float32 products leave the RBF kernel much less exact than float32 is, take them in float64.

    Tiles stay float32. The samples are copied in float64 and a matrix product takes twice as long.
    """
    if isinstance(kernel, RBF) and entry_noise(kernel, samples) > _COARSE:
        return samples.astype(np.dtype(np.float64), samples.dtype)
    return samples
