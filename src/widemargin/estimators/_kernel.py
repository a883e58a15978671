"""What the data say about the kernel: the default gamma, and whether the features want scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..kernels.functions import RBF, FunctionKernel, Kernel, Laplacian
from ..kernels.precision import refine
from ..kernels.samples import Samples, make_samples
from ._training import warn_user

Vector = NDArray[np.float64]

_PROBE_ROWS = 256
_NEARLY = 1e-6


def resolve_gamma(gamma: float | str, X: Any, weights: Vector, *, is_gram: bool) -> float:
    """The number that "scale" and "auto" stand for.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float
    X : ndarray or CSR array of shape (n, d)
    weights : ndarray of shape (n,)
    is_gram : bool
        Whether X is a kernel matrix, for which gamma means nothing.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    variance = entry_variance(X, weights) if gamma == "scale" and not is_gram else 1.0
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def entry_variance(X: Any, weights: Vector) -> float:
    """Variance of all entries of X, each row counted by its weight: what gamma="scale" divides by.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d)
    weights : ndarray of shape (n,)
    """
    total = weights.sum() * X.shape[1]
    if sp.issparse(X):
        rows = sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), X.shape)
        mean = float(weights @ rows.sum(axis=1)) / total
        square = float(weights @ rows.multiply(rows).sum(axis=1)) / total
        return float(max(square - mean**2, 0.0))
    mean = float(weights @ X.sum(axis=1, dtype=np.float64)) / total
    centred = X - np.asarray(mean, X.dtype)  # a second pass: entries may be large and close together
    return float(weights @ np.einsum("ij,ij->i", centred, centred, dtype=np.float64) / total)


def make_checked_samples(kernel: Kernel, X: Any) -> Samples:
    """The rows as the kernel takes them, after a look at their range and their scale.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR array of shape (n, d), or a kernel matrix of shape (n, n)
    """
    samples = make_samples(X, kernel.wants)
    check_range(kernel, samples)
    warn_of_scale(kernel, samples)
    return refine(kernel, samples)


def check_range(kernel: Kernel, samples: Samples) -> None:
    """Neither inner products nor kernel values may overflow the precision of the tiles."""
    largest = float(np.max(np.abs(samples.squares), initial=0.0))
    if not isinstance(kernel, FunctionKernel):
        largest = max(largest, float(np.max(np.abs(kernel.diagonal(samples)), initial=0.0)))
    if largest > float(np.finfo(samples.dtype).max) / 8:
        norm = float(np.max(np.abs(samples.squares))) ** 0.5
        raise ValueError(f"X is {samples.dtype} and has a row of norm {norm:.3g}: the kernel overflows. Scale X")


def warn_of_scale(kernel: Kernel, samples: Samples) -> None:
    """Warn where a distance kernel is nearly constant, or nearly the identity, on a probe of the rows."""
    if not isinstance(kernel, RBF | Laplacian) or len(samples) < 2:
        return
    A = samples.take(np.unique(np.linspace(0, len(samples) - 1, _PROBE_ROWS).astype(int)))
    K = np.empty((len(A), len(A)), samples.dtype)
    kernel.fill(A, A, K)
    least = float(K.min())
    np.fill_diagonal(K, 0.0)
    if least > 1 - _NEARLY:
        problem = f"the kernel is nearly constant (every value above {least:.7f})"
    elif (largest := float(K.max())) < _NEARLY:
        problem = f"the kernel is nearly the identity (no value between two rows above {largest:.1e})"
    else:
        return
    warn_user(
        f"gamma={kernel.gamma:.3g}: on a probe of {len(A)} rows, {problem}. Scale the features, with "
        "sklearn.preprocessing.StandardScaler for example, or change gamma.",
        UserWarning,
    )
