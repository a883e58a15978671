"""Newton steps for smooth losses: a search point by conjugate gradients, each step of which is two passes over samples.

    (I + C X' D X) p = -(w_b + C a)       D = diag(s_i phi''_i), and a the gradient of the risk, both at w_b

Up to 128 features, the system is solved with the Hessian itself (`RidgeSystem`); of more, on few samples or features,
once conjugate gradients took as long as a Hessian. Where samples are many for more features, the Hessian of some of
them is the preconditioner: a handful of products is enough then. With an intercept, D - D 1 1' D / sum(D) replaces D:
the intercept follows optimally. The line search of Algorithm 1 goes from w_b towards w_b + p, and the next
plane is taken at the best point: its normal is the next gradient a. At a point where the objective has the gradient g,
that plane alone proves a gap of |g|^2 / 2. The plane of the quadratic model's slopes at w_b + p (`SmoothLoss.advance`)
has the search point as its dual point, up to the system's residual: its gap is of higher order.

Source: Lin, Weng, Keerthi, Trust Region Newton Method for Large-Scale Logistic Regression, JMLR 9, 2008; line search in
place of the trust region.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._types import Matrix, Vector
from ...data import DesignMatrix, LocalMatrix
from ...data.rows import spread_rows
from .machine import CuttingPlaneMachine
from .ridge_system import RidgeSystem, is_small
from .smooth_losses import SmoothLoss

_RESIDUAL = 0.1  # residual of the system / gradient, at most, as in LIBLINEAR
_ROWS_PER_COLUMN = 128  # n / d, at least, for a preconditioner: it costs as much as some products with the Hessian
_EXACT_COLUMNS = 128  # d, at most, where the preconditioner is the Hessian itself: it costs as much as three products
_MOST_STEPS, _SLOW_STEPS = 100, 20  # of conjugate gradients: the last one; the least before the Hessian itself is used
_WORK_PER_BYTE = 4.0  # multiply-adds of a Hessian in the time that a pass takes for a byte
_SAMPLE_ROWS_PER_COLUMN = 32  # rows of the preconditioner / columns: 16 and 64 were slower on a9a


class NewtonSteps:
    """Search points of one machine of a smooth loss; the preconditioner's sample in float64 takes `n_bytes` at most.

    `system` is that of the samples, for the machines of all classes, whose steps follow one another; None on dask.
    `go_on` is called before every product with the Hessian, and returns False when time is up.
    """

    def __init__(
        self,
        X: DesignMatrix,
        machine: CuttingPlaneMachine,
        loss: SmoothLoss,
        system: RidgeSystem | None,
        n_bytes: int,
        go_on: Callable[[], bool],
    ) -> None:
        self._X = X
        self._machine = machine
        self._loss = loss
        self._go_on = go_on
        n, d = X.shape
        most = n_bytes // (8 * max(d, 1))  # rows of a float64 copy
        is_narrow = d <= _EXACT_COLUMNS and n <= most
        self._system = system if is_narrow or is_small(n, d, n_bytes) else None
        self._is_exact = self._system is not None and (is_narrow or n <= d)
        steps_of_hessian = d * d / (_WORK_PER_BYTE * 2 * X.row_bytes)
        self._slow_steps = min(_MOST_STEPS, max(_SLOW_STEPS, steps_of_hessian))
        has_sample = n >= _ROWS_PER_COLUMN * d and _SAMPLE_ROWS_PER_COLUMN * d <= most
        self._sampled = X if isinstance(X, LocalMatrix) and has_sample else None

    def run(self) -> None:
        """Set the machine's search point, unless its latest step was zero: then it stays the master solution."""
        machine = self._machine
        if machine.base is None or machine.step == 0.0:
            return
        gradient = machine.gradient(machine.w, machine.base.normal)
        machine.search_for(machine.w + self._solve(-gradient, self._loss.curvatures(machine.decision_values)))

    def _solve(self, target: Matrix, curvatures: Vector) -> Matrix:
        """The solution by the Hessian itself; or about that, by conjugate gradients."""
        if self._is_exact and self._system is not None:
            return self._system.decompose(self._machine.C * curvatures).newton_step(target[0])[None]
        solution, n_steps = self._conjugate_gradients(target, curvatures)
        self._is_exact = n_steps >= self._slow_steps and self._system is not None
        return solution

    def _conjugate_gradients(self, target: Matrix, curvatures: Vector) -> tuple[Matrix, int]:
        """Preconditioned conjugate gradients from zero, and their number; the residual's norm falls to a tenth."""
        precondition = self._make_preconditioner(curvatures) or np.array
        solution, residual = np.zeros_like(target), target
        direction = scaled = precondition(residual)
        square = first = float(np.vdot(residual, scaled))
        for k in range(_MOST_STEPS):
            if square <= _RESIDUAL**2 * first or not self._go_on():
                return solution, k
            product = self._multiply(direction, curvatures)
            length = square / float(np.vdot(direction, product))
            solution = solution + length * direction
            residual = residual - length * product
            scaled = precondition(residual)
            square, before = float(np.vdot(residual, scaled)), square
            direction = scaled + square / before * direction
        return solution, _MOST_STEPS

    def _make_preconditioner(self, curvatures: Vector) -> Callable[[Matrix], Matrix] | None:
        """The inverse of the Hessian of a sample of the rows; None where there is none."""
        if self._sampled is None:
            return None
        rows = np.flatnonzero(curvatures)
        if not len(rows):
            return None
        rows = rows[spread_rows(len(rows), _SAMPLE_ROWS_PER_COLUMN * self._X.shape[1])]
        factor = self._machine.C * float(curvatures.sum()) / float(curvatures[rows].sum())
        sample = RidgeSystem(self._sampled.take(rows), self._loss.team, has_intercept=self._loss.has_intercept)
        newton_step = sample.decompose(factor * curvatures[rows]).newton_step
        return lambda residual: newton_step(residual[0])[None]

    def _multiply(self, direction: Matrix, curvatures: Vector) -> Matrix:
        """The Hessian times a direction (1, n_features)."""
        change = self._X.matvec(direction)
        if self._loss.has_intercept and (total := float(curvatures.sum())) > 0.0:
            change -= float(change[0] @ curvatures) / total
        product: Matrix = direction + self._machine.C * self._X.rmatvec(curvatures * change)
        return product
