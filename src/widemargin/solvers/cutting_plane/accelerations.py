"""Accelerations of OCAS: one table of what they do and where they are used, thresholds included.

| file | used where | because |
|---|---|---|
| `gram_dual` | at most 1,024 samples and features, given the memory | one dual solve on X X' replaces all rounds |
| `sample_start` | n >= 32,768 and n >= 512 d | the machine of a sixteenth of the samples is near that of all |
| `active_rows` | n >= 16,384 and n >= 64 d | rounds on the samples near the margin cost a fraction of those on all |
| `smoothed_newton` | n >= 512 d and n >= 32 d^2 | a handful of steps; the Hessian costs less than some passes |
| `dual_epochs` | d <= n, n d (CSR: non-zeros) >= 32,768, no sample start | epochs gain fast while the gap is large |
| `dual_alone` | as above, but d > n | epochs and conjugate gradients end with a smaller gap than planes would |
| `multiclass_dual` | the same, of Crammer and Singer's hinge | epochs alone |

All others but the start from a sample are for hinges, and all need samples in this process. Newton steps run on the
active rows, and on the sample. Below 32,768 values there is the Gram dual, or nothing: rounds are fast there, and
depend neither on the order of the samples nor on repeated ones. The experiments behind the thresholds are in decision
0006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._native import linear
from ...data import DesignMatrix, LocalMatrix, RowAccess, split_constant
from .losses import Loss

_GRAM_SIZE = 1024  # samples, and features, at most
_SAMPLE_ROWS, _SAMPLE_ROWS_PER_COLUMN = 2**15, 512  # n, and n / d, at least
_ACTIVE_ROWS, _ACTIVE_ROWS_PER_COLUMN = 2**14, 64  # the same
_NEWTON_ROWS_PER_COLUMN, _NEWTON_ROWS_PER_PAIR = 512, 32  # n / d, and n / d^2, at least
_ASCENT_VALUES = 2**15  # n d of dense samples, non-zeros of CSR, at least


@dataclass(frozen=True)
class Accelerations:
    """Which accelerations a fit uses; by default none."""

    gram_dual: bool = False
    sample_start: bool = False
    active_rows: bool = False
    newton: bool = False  # smoothed_newton.py
    epochs: bool = False  # dual_epochs.py
    dual_alone: bool = False  # dual_alone.py, multiclass_dual.py


def choose_accelerations(X: DesignMatrix, losses: Sequence[Loss]) -> Accelerations:
    """The table above, for losses of one kind on the samples X (n, d)."""
    (n, d), has_hinges = X.shape, all(loss.hinge is not None for loss in losses)
    if not isinstance(X, LocalMatrix):
        return Accelerations()
    sample_start = n >= max(_SAMPLE_ROWS, _SAMPLE_ROWS_PER_COLUMN * d)
    rows, _ = split_constant(X)
    n_values = linear.count_values(rows.row_arrays) if isinstance(rows, RowAccess) else 0
    has_epochs = n_values >= _ASCENT_VALUES and not sample_start
    if not has_hinges:
        return Accelerations(sample_start=sample_start, dual_alone=has_epochs and d > n)
    return Accelerations(
        gram_dual=max(n, d) <= _GRAM_SIZE,
        sample_start=sample_start,
        active_rows=n >= max(_ACTIVE_ROWS, _ACTIVE_ROWS_PER_COLUMN * d),
        newton=suits_newton(n, d),
        epochs=has_epochs and d <= n,
        dual_alone=has_epochs and d > n,
    )


def suits_newton(n: int, d: int) -> bool:
    """Whether n samples are many for d features, and for a Hessian of d^2 entries."""
    return n >= max(_NEWTON_ROWS_PER_COLUMN * d, _NEWTON_ROWS_PER_PAIR * d * d)
