"""A start from a sample, rows drawn at random: the machines of n / 16 rows are points near those of all rows."""

from __future__ import annotations

from collections.abc import Sequence

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


def draw_sample(X: LocalMatrix, losses: Sequence[Loss], n_bytes: int) -> tuple[LocalMatrix, list[Loss]]:
    """Runs of 16 neighbours, about n / 16 rows in all, of `n_bytes` at most: whole pages are read; and their losses."""
    n = X.shape[0]
    size = min(int(_SHARE * n), n_bytes // X.row_bytes)
    runs = np.random.default_rng(0).choice(n // RUN_LENGTH, max(1, size // RUN_LENGTH), replace=False)
    chosen = (RUN_LENGTH * np.sort(runs)[:, None] + np.arange(RUN_LENGTH)).ravel()
    return X.take(chosen), [loss.restrict(chosen, n / len(chosen)) for loss in losses]


def find_newton_point(X: LocalMatrix, loss: HingeLoss, C: float, tol: float, progress: SilentProgress) -> Matrix | None:
    """The minimiser (1, d) of the smoothed objective; None if Newton's method fails."""
    machine = CuttingPlaneMachine(loss, MasterProblem(X.shape[1], 1, keep_points=False), C)
    machine.evaluate(machine.w, X.decision_values_at_zero(1))
    descent = NewtonDescent(X, machine, 2.0)  # at w = 0 all samples are at distance 1 from their margin
    return descent.point if descent.approach(tol, progress.go_on) else None
