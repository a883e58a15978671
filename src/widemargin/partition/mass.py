"""D(pi) of Theorem 1: the sum of kernel values between clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data.samples import Samples
from ..kernels.functions import Kernel
from .kmeans import Labels


def between_cluster_mass(
    kernel: Kernel,
    samples: Samples,
    labels: Labels,
    *,
    upper: NDArray[np.float64] | None = None,
    n_sample: int = 4000,
    rng: np.random.Generator | None = None,
) -> float:
    """Sum of u_i u_j |k(x_i, x_j)| over the ordered pairs in different clusters.

    The dual value of the concatenated cluster solutions is at most half of it above the optimum (Theorem 1, with upper
    bounds u in place of C).

    Parameters
    ----------
    kernel : Kernel
    samples : Samples of length n
    labels : ndarray of shape (n,), int
    upper : ndarray of shape (n,), optional
        Upper bounds of the dual variables; ones by default, which gives D(pi).
    n_sample : int
        With more samples, the sum is estimated from the pairs of a random sample of this size.
    rng : numpy.random.Generator, optional
        For that sample.

    Notes
    -----
    min(n, n_sample)^2 kernel entries, all in memory.
    """
    n = len(samples)
    m = min(n, n_sample)
    index = np.arange(n) if m == n else np.sort((rng or np.random.default_rng(0)).choice(n, m, replace=False))
    A = samples.take(index)
    K = np.empty((m, m), samples.dtype)
    kernel.fill(A, A, K)
    K[labels[index][:, None] == labels[index]] = 0
    u = np.ones(m) if upper is None else upper[index]
    pairs = m * (m - 1)
    return float(u @ np.abs(K).astype(np.float64) @ u) * (n * (n - 1) / pairs if pairs else 0.0)
