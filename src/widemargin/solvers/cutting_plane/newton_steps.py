"""Newton steps for smooth losses: search points by conjugate gradients, two passes over the samples each.

    (I + C X' D X) p = -(w_b + C a)       D = diag(s_i phi''_i), and a the gradient of the risk, both at w_b

With an intercept, D - D 1 1' D / sum(D) replaces D: the intercept follows optimally. The line search of Algorithm 1
goes from w_b towards w_b + p, and the next plane is taken at the best point: its normal is the next gradient a. At a
point where the objective has the gradient g, one plane proves a gap of |g|^2 / 2, which Newton steps square.

Source: Lin, Weng, Keerthi, Trust Region Newton Method for Large-Scale Logistic Regression, JMLR 9, 2008; line search in
place of the trust region.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._types import Matrix, Vector
from ...data import DesignMatrix
from .machine import CuttingPlaneMachine
from .smooth_losses import SmoothLoss

_RESIDUAL = 0.1  # residual of the system / gradient, at most, as in LIBLINEAR
_MAX_PRODUCTS = 100  # with the Hessian, in a step


class NewtonSteps:
    """Search points of one machine of a smooth loss.

    Parameters
    ----------
    X : DesignMatrix
    machine : CuttingPlaneMachine
    loss : SmoothLoss
        That of the machine.
    go_on : callable
        Returns False when time is up; called before every product with the Hessian.
    """

    def __init__(
        self, X: DesignMatrix, machine: CuttingPlaneMachine, loss: SmoothLoss, go_on: Callable[[], bool]
    ) -> None:
        self._X = X
        self._machine = machine
        self._loss = loss
        self._go_on = go_on

    def run(self) -> None:
        """Set the machine's search point, unless its latest step was zero: then it stays the master solution."""
        machine = self._machine
        if machine.base is None or machine.step == 0.0:
            return
        gradient = machine.gradient(machine.w, machine.base.normal)
        machine.search_for(machine.w + self._solve(-gradient, self._loss.curvatures(machine.decision_values)))

    def _solve(self, target: Matrix, curvatures: Vector) -> Matrix:
        """Conjugate gradients from zero, to a tenth of the target's length."""
        solution, residual, direction = np.zeros_like(target), target, target
        square = least = float(np.vdot(residual, residual))
        for _ in range(_MAX_PRODUCTS):
            if square <= _RESIDUAL**2 * least or not self._go_on():
                break
            product = self._multiply(direction, curvatures)
            length = square / float(np.vdot(direction, product))
            solution = solution + length * direction
            residual = residual - length * product
            square, before = float(np.vdot(residual, residual)), square
            direction = residual + square / before * direction
        return solution

    def _multiply(self, direction: Matrix, curvatures: Vector) -> Matrix:
        """The Hessian times a direction (1, n_features)."""
        change = self._X.matvec(direction)
        if self._loss.has_intercept and (total := float(curvatures.sum())) > 0.0:
            change -= float(change[0] @ curvatures) / total
        product: Matrix = direction + self._machine.C * self._X.rmatvec(curvatures * change)
        return product
