"""Newton steps for smooth losses: search points by conjugate gradients, two passes over the samples each.

    (I + C X' D X) p = -(w_b + C a)       D = diag(s_i phi''_i), and a the gradient of the risk, both at w_b

Up to 128 features, the system is solved with the Hessian itself. Where samples are many for more features, the Hessian
of some of them is the preconditioner: a handful of products is enough then. With an intercept, D - D 1 1' D / sum(D)
replaces D: the intercept follows optimally. The line search of Algorithm 1 goes from w_b towards w_b + p, and the next
plane is taken at the best point: its normal is the next gradient a. At a point where the objective has the gradient g,
that plane alone proves a gap of |g|^2 / 2. The plane of the quadratic model's slopes at w_b + p (`SmoothLoss.advance`)
has the search point as its dual point, up to the system's residual: its gap is of higher order.

Source: Lin, Weng, Keerthi, Trust Region Newton Method for Large-Scale Logistic Regression, JMLR 9, 2008; line search in
place of the trust region.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..._native import dense
from ..._types import Matrix, Vector
from ...data import DesignMatrix, LocalMatrix
from ...data.rows import spread_rows
from .machine import CuttingPlaneMachine
from .smooth_losses import SmoothLoss

_RESIDUAL = 0.1  # residual of the system / gradient, at most, as in LIBLINEAR
_ROWS_PER_COLUMN = 128  # n / d, at least, for a preconditioner: it costs as much as some products with the Hessian
_EXACT_COLUMNS = 128  # d, at most, where the preconditioner is the Hessian itself: it costs as much as three products
_SAMPLE_ROWS_PER_COLUMN = 32  # rows of the preconditioner / columns: 16 and 64 were slower on a9a


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
        most = n_bytes // (8 * max(d, 1))  # rows of a float64 copy
        self._is_exact = d <= _EXACT_COLUMNS and n <= most
        has_sample = self._is_exact or (n >= _ROWS_PER_COLUMN * d and _SAMPLE_ROWS_PER_COLUMN * d <= most)
        self._local = X if isinstance(X, LocalMatrix) and has_sample else None

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
        if precondition is None:
            precondition = np.array
        elif self._is_exact:
            return precondition(target)
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

    def _make_preconditioner(self, curvatures: Vector) -> Callable[[Matrix], Matrix] | None:
        """The inverse of the Hessian, or of that of a sample of the rows; None where there is none."""
        X, d = self._local, self._X.shape[1]
        if X is None:
            return None
        rows = np.flatnonzero(curvatures)
        if not self._is_exact:
            rows = rows[spread_rows(len(rows), _SAMPLE_ROWS_PER_COLUMN * d)] if len(rows) else rows
        total, some, centre, hessian = float(curvatures.sum()), curvatures[rows], np.zeros(d), np.empty((d, d))
        if self._loss.has_intercept and total > 0.0:
            centre = X.rmatvec(curvatures[None])[0] / total
        factors = np.sqrt(some * (self._machine.C * total / (float(some.sum()) or 1.0)))
        dense.second_moments(self._loss.team.native, *X.gather(rows), centre, factors, hessian)
        hessian[np.diag_indices(d)] += 1.0
        try:
            factor = cho_factor(hessian, check_finite=False)
        except LinAlgError:  # rounding of large values
            return None
        return lambda residual: np.asarray(cho_solve(factor, residual[0], check_finite=False))[None]

    def _multiply(self, direction: Matrix, curvatures: Vector) -> Matrix:
        """The Hessian times a direction (1, n_features)."""
        change = self._X.matvec(direction)
        if self._loss.has_intercept and (total := float(curvatures.sum())) > 0.0:
            change -= float(change[0] @ curvatures) / total
        product: Matrix = direction + self._machine.C * self._X.rmatvec(curvatures * change)
        return product
