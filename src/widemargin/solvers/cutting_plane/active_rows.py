"""Rounds on the active rows, the samples near the margin: a linear function stands for the risk of all others.

A hinge lies above both of its pieces, 0 and s (1 - y f). Keep, for each sample far from its margin, the piece that it
is on at the best point. Together these are one linear function, the linear remainder:

    R(w) >= R_active(w) + <a, w> + c      with equality at the best point, and as long as no sample changes its piece

Cutting planes of the right side are planes of R, and cost as many samples as are active. So the lower bound stays
proven wherever these rounds lead, and their best point is the next search point of a round on all samples. Where
samples are many for their features, Newton's method replaces the planes. A trust region on the decision values, of half
the largest distance of an active row from its margin, limits how far these rounds go. Experiments: decision 0006.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..._types import ROUNDING
from ...data import LocalMatrix
from .losses import SAMPLE_ROWS
from .machine import BasePlane, CuttingPlaneMachine, LinearRemainder, Plane, TrustRegion, add_planes
from .smoothed_newton import NewtonDescent

_FIRST_SHARE, _MAX_SHARE = 1 / 32, 1 / 4  # active rows / samples: first and largest
_GROWTH = 4.0  # multiply the share after rounds that ended at the trust region's boundary; divide it after others
_SHARE_ERRORS = 4.0  # first share after a start from a sample / sqrt(d / n_samples), the error of its decision values
LEAST_ROWS = int(SAMPLE_ROWS / _MAX_SHARE)  # of all samples
_MAX_CHOSEN = 1.5  # samples chosen / wanted, at most: beyond, too many margins are equal to choose by
_RADIUS_SHARE = 0.5  # radius of the trust region / distance of the farthest active row; first width of a hinge / radius
_MAX_PASSES = 2.0  # samples that rounds on active rows read / all samples, at most


class ActiveRows:
    """Rounds of one machine, of a hinge loss, on its active rows among all samples X, to a relative gap of `tol`.

    The copy of the active rows takes `n_bytes` at most; `go_on` is called after every round, and returns False when
    time is up; `newton` is whether the shape of X suits Newton's method. `uses_newton` is whether it is used for this
    C; cutting planes where it is not, or has failed.
    """

    def __init__(
        self,
        X: LocalMatrix,
        machine: CuttingPlaneMachine,
        tol: float,
        n_bytes: int,
        go_on: Callable[[], bool],
        *,
        newton: bool,
    ) -> None:
        assert machine.loss.hinge is not None
        self._X = X
        self.machine = machine
        self._loss = machine.loss.hinge
        self._tol = tol
        self._go_on = go_on
        self._newton = newton
        self._max_rows = int(n_bytes / (_MAX_CHOSEN * X.row_bytes))
        self._share, self._least_share = _FIRST_SHARE, SAMPLE_ROWS / X.shape[0]
        self.begin()

    def begin(self) -> None:
        """Forget rounds without progress and failures of Newton's method: C has changed."""
        self.uses_newton = self._newton
        self._n_failures, self._objective = 0, np.inf

    def start_at_sample(self, n_samples: int, *, is_newton: bool) -> None:
        """Set the method and, for Newton's, the first share of active rows: the machine starts at that of a sample."""
        self.uses_newton = is_newton
        if is_newton:
            self._share = min(_SHARE_ERRORS * math.sqrt(self._X.shape[1] / n_samples), _MAX_SHARE)

    def run(self) -> None:
        """Set the machine's search point to the best point of rounds on the active rows, and raise its bound.

        After two rounds without progress of the objective, one round on all samples goes without them.
        """
        if self._count_failure():
            return
        found = self._restrict()
        if found is None:
            return
        X, restricted, region = found
        if self.uses_newton:
            self.uses_newton = NewtonDescent(X, restricted, _RADIUS_SHARE * region.radius).run(self._tol, self._go_on)
        if not self.uses_newton:
            self._run_rounds(X, restricted, region)
        self.machine.search_towards(restricted)
        self._scale_share(_GROWTH if region.is_at_boundary else 1.0 / _GROWTH)  # more rows have a larger radius

    def _run_rounds(self, X: LocalMatrix, restricted: CuttingPlaneMachine, region: TrustRegion) -> None:
        """Rounds of Algorithm 1 on the active rows, until their gap, the work or the trust region ends them."""
        goal = self._tol * restricted.objective
        n_read, max_read = 0, _MAX_PASSES * self._X.shape[0]  # samples read, summed over the rounds
        while n_read < max_read and restricted.gap > goal and not region.is_at_boundary and self._go_on():
            plane = restricted.move_best_point(X.decision_values(restricted.search_point))
            add_planes(X, [restricted], [plane])
            restricted.solve_master()
            n_read += X.shape[0]

    def _count_failure(self) -> bool:
        """Count rounds in a row without progress of the objective; at two return True and begin again at 0."""
        objective = self.machine.objective
        self._n_failures = self._n_failures + 1 if objective >= self._objective * (1.0 - ROUNDING) else 0
        self._objective = objective
        if self._n_failures < 2:
            return False
        self._n_failures = 0
        return True

    def _scale_share(self, factor: float) -> None:
        self._share = min(max(factor * self._share, self._least_share), _MAX_SHARE)

    def _restrict(self) -> tuple[LocalMatrix, CuttingPlaneMachine, TrustRegion] | None:
        """The active rows, and a machine on their hinges plus the linear remainder.

        None without a base plane, or where too many margins are equal to choose by.
        """
        machine, n = self.machine, self._X.shape[0]
        if machine.base is None:
            return None
        wanted = min(max(SAMPLE_ROWS, int(self._share * n)), self._max_rows)
        chosen, distance = self._loss.nearest_rows(machine.decision_values, wanted)
        if not 0.0 < distance < np.inf or len(chosen) > _MAX_CHOSEN * wanted:
            if self._share == _MAX_SHARE:  # a smaller share may end between two groups of equal margins
                self._share = self._least_share
            else:
                self._scale_share(_GROWTH)
            return None
        X = self._X.take(chosen)
        plane, normal = machine.base
        coef, f = plane.coef[:, chosen], machine.decision_values[:, chosen]
        loss = self._loss.restrict(chosen, plane_balance=float(coef.sum()))
        base = BasePlane(Plane(coef, loss.plane_offset(coef), plane.point), X.rmatvec(coef))
        remainder = LinearRemainder(normal - base.normal, plane.offset - base.plane.offset)
        region = TrustRegion(loss, f, _RADIUS_SHARE * distance)
        restricted = CuttingPlaneMachine(
            loss, machine.master, machine.C, mu=machine.mu, remainder=remainder, trust_region=region
        )
        restricted.evaluate(machine.w, f)
        restricted.base, restricted.bound, restricted.search_point = base, machine.bound, machine.search_point
        return X, restricted, region
