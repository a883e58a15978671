"""A start from a sample, rows drawn at random: the machines of n / 16 rows are points near those of all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..._progress import SilentProgress
from ..._types import Matrix
from ...data import LocalMatrix
from .dual_epochs import RUN_LENGTH
from .losses import HingeLoss, Loss
from .machine import CuttingPlaneMachine
from .master_problem import MasterProblem
from .smoothed_newton import NewtonDescent

_SHARE = 1 / 16  # drawn rows / all rows


class Sample(NamedTuple):
    """The drawn rows of a design matrix, and the losses of these."""

    X: LocalMatrix
    losses: list[Loss]


class SampleStart(NamedTuple):
    """Machines of the drawn rows, to evaluate on all rows."""

    points: list[Matrix]  # (1, q d) for each loss
    is_newton: list[bool]  # which of them Newton's method found


def draw_sample(X: LocalMatrix, losses: Sequence[Loss], n_bytes: int) -> Sample:
    """Draw runs of 16 neighbours, about n / 16 rows in all, of `n_bytes` at most: whole pages are read."""
    n = X.shape[0]
    size = min(int(_SHARE * n), n_bytes // X.row_bytes)
    runs = np.random.default_rng(0).choice(n // RUN_LENGTH, max(1, size // RUN_LENGTH), replace=False)
    chosen = (RUN_LENGTH * np.sort(runs)[:, None] + np.arange(RUN_LENGTH)).ravel()
    return Sample(X.take(chosen), [loss.restrict(chosen, n / len(chosen)) for loss in losses])


def start_from_sample(
    sample: Sample,
    C: float,
    tol: float,
    progress: SilentProgress,
    *,
    newton: bool,
    train: Callable[[LocalMatrix, Sequence[Loss], float], list[Matrix]],
) -> SampleStart:
    """Train on the drawn rows, by Newton's method where that works, else by cutting planes."""
    X, losses = sample
    tol = max(tol, X.shape[1] / X.shape[0])  # about the error of the drawn rows' machine on all rows
    points = [
        _newton_point(X, loss.hinge, C, tol, progress) if newton and loss.hinge is not None else None for loss in losses
    ]
    left = [k for k, point in enumerate(points) if point is None]
    if left:
        for k, w in zip(left, train(X, [losses[k] for k in left], tol), strict=True):
            points[k] = w
    found = [point.reshape(1, -1) for point in points if point is not None]
    return SampleStart(found, [k not in left for k in range(len(losses))])


def _newton_point(X: LocalMatrix, loss: HingeLoss, C: float, tol: float, progress: SilentProgress) -> Matrix | None:
    """The minimiser of the smoothed objective; None if Newton's method fails."""
    machine = CuttingPlaneMachine(loss, MasterProblem(X.shape[1], 1, keep_points=False), C)
    machine.evaluate(machine.w, X.decision_values_at_zero(1))
    descent = NewtonDescent(X, machine, 2.0)  # at w = 0 all samples are at distance 1 from their margin
    return descent.point if descent.approach(tol, progress.go_on) else None
