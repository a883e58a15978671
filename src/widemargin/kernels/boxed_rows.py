"""Weighted sums of kernel rows without the entries that round to nothing.

exp(-gamma D(x, z)) is far below the rounding of a sum where z is far from x. So the rows x of a sum
f(z) = sum_i c_i k(x_i, z) are put into batches of near rows, each with the box that holds it. A row z is combined with
the batches whose boxes are near alone. Which these are depends on z, the rows x and their coefficients: f(z) does not
depend on the other rows z.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._threads import ThreadTeam, row_blocks
from .._types import Array, DType, Matrix, RowIndices
from ..data.rows import spread_rows
from ..data.samples import Samples
from .functions import Boxes, ExponentialKernel, Kernel
from .tiles import add_kernel_product

LEAST_ROWS = 4096  # compute all entries of fewer rows, and of active sets of fewer their matrix: the boxes take longer
_MOST_VALUES = 2**25  # and of rows with more numbers than these, which are made dense for a moment
_BATCH_ROWS = 512  # of a batch, at most
_LEAST_FAR = 0.75  # of the entries between some rows must be small
_ROUNDING_SHARE = 0.01  # of the rounding error of a sum is left out, at most
_SAMPLE_ROWS = 8192  # find the splits of the rows on a sample of so many


@dataclass(frozen=True)
class BoxedRows:
    """Rows of a sum, batch by batch, in batches with boxes; `coef` (k, r) is that of these rows."""

    kernel: ExponentialKernel
    rows: Samples
    coef: Matrix
    boxes: Boxes

    def add_product(self, B: Samples, out: Matrix, team: ThreadTeam) -> None:
        """out += coef K(rows, B) for B of length c, out (k, c), without entries that round to nothing."""

        def add(chunk: slice) -> None:
            team.check()
            self.kernel.add_near_product(self.rows, self.boxes, self.coef, B.take(chunk), out[:, chunk])

        team.map(add, row_blocks(len(B)))


def add_local_product(
    kernel: Kernel, A: Samples, coef: Matrix, B: Samples, out: Matrix, team: ThreadTeam, dtype: DType | None = None
) -> None:
    """`add_kernel_product` for dense coefficients, without the entries that round to nothing where these are many.

    Those left out round to nothing in `dtype`, or in that of the samples.
    """
    boxed = box_rows(kernel, A, coef, dtype)
    if boxed is None:
        add_kernel_product(kernel, A, coef, B, out, team)
    else:
        boxed.add_product(B, out, team)


def box_rows(kernel: Kernel, A: Samples, coef: Matrix, dtype: DType | None = None) -> BoxedRows | None:
    """The rows A with coefficients (k, r) in boxes; None unless they are many and most entries between them are small.

    Entries left out are at most kappa = eps |c| / (100 sum_i |c_i|), for coefficients c and the precision eps of
    `dtype`, or that of A. So a sum changes by a hundredth of its rounding error eps |c| at most.
    """
    if not isinstance(kernel, ExponentialKernel) or len(A) < LEAST_ROWS or A.precision != A.dtype:
        return None
    if len(A) * A.take(slice(0, 1)).stored().shape[1] > _MOST_VALUES:
        return None
    total, norm = np.abs(coef).sum(axis=1), np.linalg.norm(coef, axis=1)
    log_kappa = _log_kappa(dtype or A.dtype, float(np.min(norm[total > 0] / total[total > 0], initial=1.0)))
    if _far_share(kernel, A, log_kappa) < _LEAST_FAR:
        return None
    X = A.toarray()
    batches = _near_batches(X)
    order, starts = np.concatenate(batches), np.cumsum([0, *map(len, batches)])
    lows, highs = (
        np.ascontiguousarray(np.stack([bound(X[rows], axis=0) for rows in batches], axis=1))
        for bound in (np.min, np.max)
    )
    boxes = Boxes(starts, lows, highs, -log_kappa / kernel.gamma)
    return BoxedRows(kernel, A.take(order), np.ascontiguousarray(coef[:, order]), boxes)


def far_distance(kernel: Kernel, A: Samples) -> float:
    """The distance from which entries round to nothing in sums with about equal coefficients; inf unless most do."""
    if not isinstance(kernel, ExponentialKernel) or len(A) < LEAST_ROWS:
        return np.inf
    log_kappa = _log_kappa(A.dtype, len(A) ** -0.5)
    return -log_kappa / kernel.gamma if _far_share(kernel, A, log_kappa) >= _LEAST_FAR else np.inf


def local_order(A: Samples) -> RowIndices:
    """The samples in an order in which near rows follow each other."""
    return np.concatenate(_near_batches(A.toarray()))


def _log_kappa(dtype: DType, ratio: float) -> float:
    """Logarithm of the largest entry that may be left out, for coefficients c with |c| / sum_i |c_i| = ratio."""
    return float(np.log(_ROUNDING_SHARE * np.finfo(dtype).eps * ratio))


def _far_share(kernel: Kernel, A: Samples, log_kappa: float) -> float:
    """The part of the entries between some rows that are below exp(log_kappa)."""
    probe = A.take(spread_rows(len(A)))
    K = np.empty((len(probe), len(probe)), A.dtype)
    kernel.fill(probe, probe, K)
    return float(np.mean(np.exp(log_kappa) > K))


def _near_batches(X: Array) -> list[RowIndices]:
    """The rows of X in batches of near ones: the leaves of a tree of splits, cut to `_BATCH_ROWS` rows."""
    sample = X[spread_rows(len(X), min(len(X), _SAMPLE_ROWS))]
    leaves = _leaves(X, np.arange(len(X)), sample, max(2, _BATCH_ROWS * len(sample) // (2 * len(X))))
    return [leaf[part] for leaf in leaves for part in row_blocks(len(leaf), _BATCH_ROWS)]


def _leaves(X: Array, rows: RowIndices, sample: Array, n_sampled: int) -> list[RowIndices]:
    """`rows` of X, split at the mean of the column of largest variance while they and their sample are too many."""
    if len(sample) <= n_sampled or len(rows) <= _BATCH_ROWS:
        return [rows]
    column = int(np.argmax(sample.var(axis=0)))
    mean = sample[:, column].mean()
    is_low, is_below = sample[:, column] <= mean, X[rows, column] <= mean
    if is_low.all():
        return [rows]
    parts = (rows[is_below], sample[is_low]), (rows[~is_below], sample[~is_low])
    return [leaf for part in parts for leaf in _leaves(X, *part, n_sampled)]
