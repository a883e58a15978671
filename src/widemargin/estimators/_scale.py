"""The kernel and the samples of a fit: default gamma, checks of the range of X, warnings of features to be scaled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from .._native import linear
from .._threads import value_blocks
from .._types import AnyArray, Array, KernelParameter, RowIndices, Rows, Vector
from ..data.origin import FAR, origin_distance
from ..data.remote.client import do_not_check
from ..data.remote.remote_rows import RemoteRows
from ..data.rows import occupied_columns
from ..data.samples import Samples, make_samples, view_samples
from ..kernels.entry_precision import ensure_precision
from ..kernels.functions import (
    CallableKernel,
    ExponentialKernel,
    InnerProductKernel,
    Kernel,
    Laplacian,
    Linear,
    Precomputed,
)
from ._estimator import warn_user

_PROBE_ROWS = 256  # compute the kernel matrix of so many rows, the probe, at most
_SPREAD_ENTRIES, _MIN_SPREAD_ROWS = 2**18, 16  # estimate columns' standard deviations from so many entries, and rows
_DEGENERATE = 1e-6  # warn where all kernel values are nearer to 1, or all between two rows nearer to 0
_MAX_ORIGIN_DISTANCE = 30.0  # norm of the mean row / root mean square distance from it
_MAX_STEP_DISTANCE = 5.0  # the same, for stochastic steps with kernels of inner products,
_MAX_FLOAT32_DISTANCE = 1e5  # and for rows rounded to float32, which has seven digits
_DOMINANT_RATIO = 100.0  # standard deviation of a column / median of the others', at least, to be warned of,
_MIN_SKILL = 0.2  # if `_neighbour_skill` on the probe is at most this, three standard errors above chance,
_DOMINANT_SHARE = 0.99  # or, where there are no labels, if the column has this part of the variance


def resolve_gamma(gamma: float | str, X: Rows, weights: Vector, *, is_gram: bool) -> float:
    """The number that "scale" and "auto" stand for on rows X (n, d); for a kernel matrix gamma means nothing."""
    if not isinstance(gamma, str):
        return float(gamma)
    variance = entry_variance(X, weights) if gamma == "scale" and not is_gram else 1.0
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def entry_variance(X: Rows, weights: Vector) -> float:
    """Variance of all entries of X, each row counted by its weight (n,): what gamma="scale" divides by."""
    if isinstance(X, RemoteRows):
        return _pooled_variance(X.map_partitions(_moments, weights, check=do_not_check))
    total = weights.sum() * X.shape[1]
    if sp.issparse(X):
        rows = sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), X.shape)
        mean = float(weights @ rows.sum(axis=1)) / total
        rows.data = (rows.data - mean) ** 2
        of_zeros = mean**2 * (X.shape[1] - np.diff(rows.indptr))
        return float(weights @ (rows.sum(axis=1) + of_zeros) / total)
    mean = float(weights @ X.sum(axis=1, dtype=np.float64)) / total
    squares = np.empty(len(X))
    for block in value_blocks(*X.shape):
        # a second pass: entries may be large and close together
        centred = np.subtract(X[block], np.asarray(mean, X.dtype), order="C")
        linear.squared_norms(centred, squares[block])
    return float(weights @ squares / total)


def _moments(X: Rows, weights: Vector) -> Vector:
    total = float(weights.sum())
    mean = float(weights @ np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()) / (total * X.shape[1]) if total else 0.0
    return np.array([total, mean, entry_variance(X, weights) if total else 0.0])


def _pooled_variance(parts: list[Vector]) -> float:
    weight, mean, variance = np.array(parts).T
    centre = np.average(mean, weights=weight)
    return float(np.average(variance + (mean - centre) ** 2, weights=weight))


def make_checked_samples(
    kernel: Kernel,
    X: Rows,
    targets: AnyArray | None = None,
    go_on: Callable[[], bool] = lambda: True,
    *,
    may_centre: bool = False,
) -> Samples:
    """Samples of X (n, d), or of a kernel matrix, in the kernel's form, after checks of their range and their scale.

    `targets` (n,) are class numbers (integers) or a regressor's targets (floats); none for a transformer or a
    clusterer. With `may_centre`, a linear kernel's machine has an intercept: it may be trained on rows less their mean.
    """
    distance = _origin_distance(kernel, X)
    is_centred = may_centre and isinstance(kernel, Linear) and distance > FAR
    samples = make_samples(X, "distances" if is_centred else kernel.sample_form, go_on)
    _check_samples(kernel, samples, X, targets, distance)
    return samples if distance <= FAR else ensure_precision(kernel, samples)


def sample_form(kernel: Kernel, X: Rows) -> str:
    """The form of samples of a machine with an intercept: of a linear kernel centred, for rows far from the origin."""
    is_far = isinstance(kernel, Linear) and origin_distance(X) > FAR
    return "distances" if is_far else kernel.sample_form


def check_scale(kernel: Kernel, X: Rows, targets: AnyArray | None = None) -> None:
    """The checks of `make_checked_samples` alone, without a centred copy of X."""
    _check_samples(kernel, view_samples(X, kernel.sample_form), X, targets, _origin_distance(kernel, X))


def _origin_distance(kernel: Kernel, X: Rows) -> float:
    """`origin_distance` where it matters, for kernels of inner products; infinite for others."""
    return origin_distance(X) if isinstance(kernel, InnerProductKernel) else np.inf


def _check_samples(kernel: Kernel, samples: Samples, X: Rows, targets: AnyArray | None, distance: float) -> None:
    check_range(kernel, samples)
    warn_of_scale(kernel, samples, X, targets, distance)


def check_range(kernel: Kernel, samples: Samples) -> None:
    """Neither inner products nor kernel values may overflow the precision of the tiles, nor may products underflow.

    A gamma beyond the reciprocal of the smallest normal number would make a kernel of what is left of such products.
    """
    gamma, limits = getattr(kernel, "gamma", 0.0), np.finfo(samples.dtype)
    if gamma * float(limits.tiny) >= 1.0:
        raise ValueError(
            f"gamma={gamma:.3g} needs products of entries of X that are no normal {samples.dtype} numbers: scale X"
        )
    largest = float(np.abs(samples.squares).max(initial=0.0))
    if not isinstance(kernel, CallableKernel | ExponentialKernel):
        largest = max(largest, float(np.abs(kernel.diagonal(samples)).max(initial=0.0)))
    if not largest <= float(limits.max) / 8:  # NaN: rows that overflowed, less their mean
        norm = float(np.max(np.abs(samples.squares))) ** 0.5
        raise ValueError(f"X is {samples.dtype} and has a row of norm {norm:.3g}: the kernel overflows. Scale X")
    if isinstance(kernel, ExponentialKernel) and gamma * max(1.0, largest) > limits.max / 8:
        raise ValueError(f"gamma must be small enough for exponents in {samples.dtype}, got {kernel.gamma:g}")


def warn_of_scale(
    kernel: Kernel, samples: Samples, X: Rows, targets: AnyArray | None, distance: float = np.inf
) -> None:
    """Warn, once, where kernel values carry no information, or only that of one column which predicts no label."""
    if isinstance(kernel, Precomputed | CallableKernel) or len(samples) < 2:
        return
    problem = (
        _describe_origin(samples, distance)
        or _describe_degeneracy(kernel, samples, X.shape[1])
        or _describe_dominance(kernel, samples, X, targets)
    )
    if problem:
        scaler = "MaxAbsScaler" if sp.issparse(X) else "StandardScaler"
        gamma = f"gamma={kernel.gamma:.3g}: " if hasattr(kernel, "gamma") else ""
        change = ", or change gamma" if gamma else ""
        message = f"{gamma}{problem}. Scale the features, with sklearn.preprocessing.{scaler} for example{change}."
        warn_user(message, UserWarning)


def warn_of_origin(estimator: str, kernel: KernelParameter, X: Rows) -> None:
    """Warn of rows too far from the origin for stochastic steps in float32.

    Steps on functions of inner products diverge where these are nearly constant; of other kernels, digits in which
    float64 rows differ are lost.
    """
    is_inner = kernel in ("linear", "poly", "polynomial", "sigmoid")
    if not is_inner and X.dtype == np.float32:
        return
    most = _MAX_STEP_DISTANCE if is_inner else _MAX_FLOAT32_DISTANCE
    if most < (distance := origin_distance(X)) < np.inf:
        warn_user(
            f"the rows' mean is {distance:.3g} times as far from 0 as the rows from it: too far for {estimator}, which "
            "computes in float32. Scale the features, with sklearn.preprocessing.StandardScaler for example",
            UserWarning,
        )


def _probe(kernel: Kernel, samples: Samples) -> tuple[RowIndices, Array]:
    """Up to 256 rows, and the kernel matrix (r, r) between them."""
    rows = np.unique(np.linspace(0, len(samples) - 1, _PROBE_ROWS).astype(np.intp))
    A = samples.take(rows)
    K = np.empty((len(A), len(A)), samples.dtype)
    kernel.fill(A, A, K)
    return rows, K


def _describe_origin(samples: Samples, distance: float) -> str:
    """In words, if rows that are not centred have this `origin_distance`, finite and large; else ""."""
    if samples.shift is not None or not _MAX_ORIGIN_DISTANCE < distance < np.inf:
        return ""
    return f"the rows' mean is {distance:.3g} times as far from 0 as the rows from it, which inner products hide"


def _describe_degeneracy(kernel: Kernel, samples: Samples, d: int) -> str:
    """In words, if a kernel of distances is nearly constant, or nearly the identity, on a probe of the rows; else "".

    Norms alone rule out both for most data, and no kernel value is computed: two rows are at least as far apart as
    their norms differ, and their mean squared distance is at most twice the mean squared norm.
    """
    if not isinstance(kernel, ExponentialKernel):
        return ""
    norms = np.sqrt(samples.squares)
    spread, distance = float(norms.max() - norms.min()), float(np.sqrt(2.0 * samples.squares.mean()))
    if isinstance(kernel, Laplacian):
        farthest, mean = spread, distance * d**0.5
    else:
        farthest, mean = spread**2, distance**2
    if kernel.gamma * farthest > 2 * _DEGENERATE and kernel.gamma * mean < -np.log(_DEGENERATE):
        return ""
    rows, K = _probe(kernel, samples)
    least = float(K.min())
    np.fill_diagonal(K, 0.0)
    if least > 1 - _DEGENERATE:
        return f"on a probe of {len(rows)} rows, the kernel is nearly constant (every value above {least:.7f})"
    if (largest := float(K.max())) < _DEGENERATE:
        return (
            f"on a probe of {len(rows)} rows, the kernel is nearly the identity "
            f"(no value between two rows above {largest:.1e})"
        )
    return ""


def _describe_dominance(kernel: Kernel, samples: Samples, X: Rows, targets: AnyArray | None) -> str:
    """In words, if one column spreads 100 times as far as the others and predicts next to nothing; else ""."""
    deviations, columns = _column_deviations(X)
    ordered = deviations[deviations > 0]
    ordered.sort()
    if len(ordered) < 2:
        return ""
    median, widest = ordered[(len(ordered) - 2) // 2], ordered[-1]  # the lower one of the others
    if widest < _DOMINANT_RATIO * median:
        return ""
    if targets is None:
        if widest**2 < _DOMINANT_SHARE * np.sum(deviations**2):
            return ""
        found = "makes up nearly all of every distance"
    else:
        rows, K = _probe(kernel, samples)
        if _neighbour_skill(K, targets[rows]) > _MIN_SKILL:
            return ""
        found = f"leaves nothing to learn: on a probe of {len(rows)} rows, nearest neighbours do not share their labels"
    column = int(deviations.argmax() if columns is None else columns[deviations.argmax()])
    return f"column {column} of X spreads {widest / median:.3g} times as far as the others' median, and {found}"


def _column_deviations(X: Rows) -> tuple[Vector, RowIndices | None]:
    """Standard deviations of the columns on a probe of the rows; and, of sparse rows, the columns that have values."""
    n, d = X.shape
    if not sp.issparse(X):
        most = max(_MIN_SPREAD_ROWS, min(_PROBE_ROWS, _SPREAD_ENTRIES // d))
        return np.asarray(X[:: max(1, n // most)].std(axis=0, dtype=np.float64)), None
    if X.nnz > _SPREAD_ENTRIES:
        X = X[:: min(-(-X.nnz // _SPREAD_ENTRIES), max(1, n // _MIN_SPREAD_ROWS))]
    X, columns = occupied_columns(X)
    mean, square = (np.bincount(X.indices, X.data**power, minlength=X.shape[1]) / X.shape[0] for power in (1, 2))
    return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0))), columns


def _neighbour_skill(K: Array, targets: AnyArray) -> float:
    """How well the nearest other row in feature space, by K (r, r), predicts: 0 as chance does, 1 always right.

    Of class numbers (r,): the share of right labels beyond that of two random rows; of other numbers: the correlation.
    """
    distances = np.add.outer(np.diag(K), np.diag(K)) - 2 * K
    np.fill_diagonal(distances, np.inf)
    nearest = targets[distances.argmin(axis=1)]
    if targets.dtype.kind == "f":
        spread = targets.std() * nearest.std()
        return float(np.mean((targets - targets.mean()) * (nearest - nearest.mean())) / spread) if spread else 1.0
    by_chance = float(np.sum((np.bincount(targets) / len(targets)) ** 2))
    return float((np.mean(nearest == targets) - by_chance) / (1 - by_chance)) if by_chance < 1 else 1.0
