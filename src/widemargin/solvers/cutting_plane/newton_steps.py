"""Newton steps for smooth losses: search points by conjugate gradients, two passes over the samples each.

    (I + C X' D X) p = -(w_b + C a)       D = diag(s_i phi''_i), and a the gradient of the risk, both at w_b

Where samples are many for their features, the Hessian of some of them is the preconditioner: a handful of products is
enough then. With an intercept, D - D 1 1' D / sum(D) replaces D: the intercept follows optimally. The line search of
Algorithm 1 goes from w_b towards w_b + p, and the next plane is taken at the best point: its normal is the next
gradient a. At a point where the objective has the gradient g, one plane proves a gap of |g|^2 / 2, which Newton steps
square.

Source: Lin, Weng, Keerthi, Trust Region Newton Method for Large-Scale Logistic Regression, JMLR 9, 2008; line search in
place of the trust region.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..._native import dense
from ..._types import Matrix, Vector
from ...data import DesignMatrix, LocalMatrix
from ...data.rows import spread_rows
from .machine import CuttingPlaneMachine
from .smooth_losses import SmoothLoss

_RESIDUAL = 0.1  # residual of the system / gradient, at most, as in LIBLINEAR
_ROWS_PER_COLUMN = 128  # n / d, at least, for a preconditioner: it costs as much as some products with the Hessian
_SAMPLE_ROWS_PER_COLUMN = 32  # rows of the preconditioner / columns: 16 and 64 were slower on a9a, decision 0006


class NewtonSteps:
    """Search points of one machine of a smooth loss.

    Parameters
    ----------
    X : DesignMatrix
    machine : CuttingPlaneMachine
    loss : SmoothLoss
        That of the machine.
    n_bytes : int
        Of the preconditioner's sample in float64, at most.
    go_on : callable
        Returns False when time is up; called before every product with the Hessian.
    """

    def __init__(
        self,
        X: DesignMatrix,
        machine: CuttingPlaneMachine,
        loss: SmoothLoss,
        n_bytes: int,
        go_on: Callable[[], bool],
    ) -> None:
        self._X = X
        self._machine = machine
        self._loss = loss
        self._go_on = go_on
        n, d = X.shape
        has_memory = 8 * _SAMPLE_ROWS_PER_COLUMN * d * d <= n_bytes
        self._local = X if isinstance(X, LocalMatrix) and n >= _ROWS_PER_COLUMN * d and has_memory else None

    def run(self) -> None:
        """Set the machine's search point, unless its latest step was zero: then it stays the master solution."""
        machine = self._machine
        if machine.base is None or machine.step == 0.0:
            return
        gradient = machine.gradient(machine.w, machine.base.normal)
        machine.search_for(machine.w + self._solve(-gradient, self._loss.curvatures(machine.decision_values)))

    def _solve(self, target: Matrix, curvatures: Vector) -> Matrix:
        """Preconditioned conjugate gradients from zero; the residual's norm falls to a tenth."""
        precondition = self._make_preconditioner(curvatures)
        solution, residual = np.zeros_like(target), target
        direction = scaled = precondition(residual)
        square = first = float(np.vdot(residual, scaled))
        for _ in range(100):
            if square <= _RESIDUAL**2 * first or not self._go_on():
                break
            product = self._multiply(direction, curvatures)
            length = square / float(np.vdot(direction, product))
            solution = solution + length * direction
            residual = residual - length * product
            scaled = precondition(residual)
            square, before = float(np.vdot(residual, scaled)), square
            direction = scaled + square / before * direction
        return solution

    def _make_preconditioner(self, curvatures: Vector) -> Callable[[Matrix], Matrix]:
        """The inverse of the Hessian of a sample of the rows that have curvature, where rows are many for d columns."""
        X, d = self._local, self._X.shape[1]
        if X is None:
            return lambda residual: residual
        rows = np.flatnonzero(curvatures)
        rows = rows[spread_rows(len(rows), _SAMPLE_ROWS_PER_COLUMN * d)] if len(rows) else rows
        weights = (
            self._machine.C * curvatures[rows] * (float(curvatures.sum()) / (float(curvatures[rows].sum()) or 1.0))
        )
        array, places = X.gather(rows)
        centre = np.zeros(d)
        if self._loss.has_intercept and len(rows):
            centre = np.average(array[places], axis=0, weights=weights)
        hessian = np.empty((d, d))
        dense.second_moments(self._loss.team.native, array, places, centre, np.sqrt(weights), hessian)
        hessian[np.diag_indices(d)] += 1.0
        factor = cho_factor(hessian)
        return lambda residual: np.asarray(cho_solve(factor, residual[0]))[None]

    def _multiply(self, direction: Matrix, curvatures: Vector) -> Matrix:
        """The Hessian times a direction (1, n_features)."""
        change = self._X.matvec(direction)
        if self._loss.has_intercept and (total := float(curvatures.sum())) > 0.0:
            change -= float(change[0] @ curvatures) / total
        product: Matrix = direction + self._machine.C * self._X.rmatvec(curvatures * change)
        return product
