"""Accelerations of OCAS: one table of what they do and where they are used, thresholds included.

| file | used where | because |
|---|---|---|
| `gram_dual` | hinge; n <= 1,024 and d <= 1,024; 2 d > n, or n <= 640 and small C; memory | replaces all rounds |
| `interior_point` | hinge; n <= 1,024 and 2 d <= n, where the Gram dual is not used or fails | replaces all rounds |
| `interior_point` | hinges (*), squared too; min(n, d) <= 1,024, n d min(n, d) <= 2e10 | once, where rounds are slow |
| `sample_start` | all but pairs; n >= 32,768 and n >= 512 d | the machine of a sixteenth is near that of all |
| `active_rows` | hinges (*); n >= 8,192 and n >= 64 d | rounds on the samples near the margin cost a fraction |
| `smoothed_newton` | hinges (*); n >= 512 d and n >= 32 d^2 | a handful of steps; the Hessian costs some passes |
| `dual_epochs` | hinge; n d (CSR: non-zeros) >= 32,768, no sample start | epochs gain fast while the gap is large |
| `dual_alone` | hinges, squared too; as above, and d > n; sparse in many directions: 4 d >= n | planes save little |
| `crammer_singer` | Crammer and Singer's hinge; as above, and d > n | epochs alone |
| `newton_steps` | smooth losses | planes alone need many rounds |

(*) The hinge of classes, and the piecewise linear losses of targets, which are two hinges.

A loss names those that are written for it (`Loss.accelerations`). All but `newton_steps` need samples in this process.
The interior-point method follows 30 rounds (of hinges min(n, d) / 3, if that is more) once they are slow: columns and
weights of any scales, nearly separable samples.
Newton steps on smoothed hinges run on the active rows, and on the sample. Below 32,768 values hinges are solved at
once, or by rounds alone: these are fast there, and depend neither on the order of the samples nor on repeated ones. The
experiments behind the thresholds are in decision 0006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._native import linear
from ...data import DesignMatrix, LocalMatrix, RowAccess, split_constant
from ...data.origin import FAR
from .active_rows import LEAST_ROWS
from .losses import Loss

_FEW = 1024  # samples, and features, at most, of fits without rounds
_SAMPLE_ROWS = 2**15  # n, at least, for a start from a sample
_ACTIVE_ROWS_PER_COLUMN = 64  # n / d, at least, for active rows
_ROWS_PER_COLUMN, _NEWTON_ROWS_PER_PAIR = 512, 32  # n / d for a sample and Newton's method, n / d^2 for the latter
_ASCENT_VALUES = 2**15  # n d of dense samples, non-zeros of CSR, at least
_SPARSE_ROWS_PER_COLUMN, _SPARSE_SHARE = 4, 1 / 8  # n / d, and non-zeros / n d, at most
_SPARSE_DISTANCE = 0.75  # origin distance, at most: rows that share a direction are nearly parallel


@dataclass(frozen=True)
class Accelerations:
    """Which accelerations a fit uses; by default none."""

    at_once: bool = False  # `gram_dual`, or the interior-point method
    interior_point: bool = False
    sample_start: bool = False
    active_rows: bool = False
    smoothed_newton: bool = False
    dual_epochs: bool = False
    dual_alone: bool = False  # of several classes crammer_singer.py
    newton_steps: bool = False


def choose_accelerations(X: DesignMatrix, losses: Sequence[Loss]) -> Accelerations:
    """The table above, for losses of one kind on the samples X (n, d)."""
    allowed = losses[0].accelerations
    suited = {"newton_steps": True, **(_suited(X, losses[0]) if isinstance(X, LocalMatrix) else {})}
    return Accelerations(**{name: is_suited and name in allowed for name, is_suited in suited.items()})


def _suited(X: LocalMatrix, loss: Loss) -> dict[str, bool]:
    """Which accelerations samples in this process suit."""
    n, d = X.shape
    sample_start = n >= max(_SAMPLE_ROWS, _ROWS_PER_COLUMN * d)
    rows, _ = split_constant(X)
    n_values = linear.count_values(rows.row_arrays) if isinstance(rows, RowAccess) else 0
    has_ascent = n_values >= _ASCENT_VALUES and not sample_start and "dual_alone" in loss.accelerations
    is_single = loss.n_outputs == 1
    dual_alone = has_ascent and isinstance(rows, RowAccess) and _suits_dual(rows, n_values, is_single=is_single)
    return {
        "at_once": max(n, d) <= _FEW,
        "interior_point": True,
        "sample_start": sample_start,
        "active_rows": n >= max(LEAST_ROWS, _ACTIVE_ROWS_PER_COLUMN * d),
        "smoothed_newton": suits_newton(n, d),
        "dual_epochs": has_ascent and not dual_alone,
        "dual_alone": dual_alone,
    }


def _suits_dual(X: RowAccess, n_values: int, *, is_single: bool) -> bool:
    """Whether the samples X (n, d), without a constant, span so many directions that planes have little to add."""
    n, d = X.shape
    if d > n:
        return X.origin_distance <= FAR
    is_sparse = n_values <= _SPARSE_SHARE * n * d
    return is_single and is_sparse and n <= _SPARSE_ROWS_PER_COLUMN * d and X.origin_distance <= _SPARSE_DISTANCE


def suits_newton(n: int, d: int) -> bool:
    """Whether n samples are many for d features, and for a Hessian of d^2 entries."""
    return n >= max(_ROWS_PER_COLUMN * d, _NEWTON_ROWS_PER_PAIR * d * d)
