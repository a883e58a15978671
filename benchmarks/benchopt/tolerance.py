"""What the solvers of both benchmarks share: each tolerance is a fit from the start."""

from __future__ import annotations

from typing import Any

from benchopt import BaseSolver


class ToleranceSolver(BaseSolver):  # type: ignore[misc]
    """A scikit-learn estimator, fitted from the start for each tolerance; a solver makes it."""

    sampling_strategy = "tolerance"

    def make(self, tol: float) -> Any:
        """The estimator of the problem and a tolerance."""
        raise NotImplementedError

    def set_objective(self, **problem: Any) -> None:
        """Take the problem: X, y, C and, of kernel machines, gamma."""
        vars(self).update(problem)

    def get_next(self, tol: float) -> float:
        """A fourth of the last tolerance, from 1 downwards: benchopt begins with 3e38."""
        return min(1.0, tol / 4)

    def run(self, tol: float) -> None:
        """Fit."""
        self.model = self.make(min(1.0, tol)).fit(self.X, self.y)
