"""What all solvers share: each tolerance is a fit from the start."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseSolver


class ToleranceSolver(BaseSolver):  # type: ignore[misc]
    """A scikit-learn estimator, fitted from the start for each tolerance; a subclass makes it."""

    sampling_strategy = "tolerance"

    def make(self, tol: float) -> Any:
        """The estimator of `self.C` and a tolerance."""
        raise NotImplementedError

    def set_objective(self, X: Any, y: Any, C: float) -> None:
        """Take the problem."""
        self.X, self.y, self.C = X, y, C

    def get_next(self, tol: float) -> float:
        """A fourth of the last tolerance, from 1 downwards: benchopt begins with 3e38."""
        return min(1.0, tol / 4)

    def run(self, tol: float) -> None:
        """Fit."""
        self.w = np.ravel(self.make(min(1.0, tol)).fit(self.X, self.y).coef_)

    def get_result(self) -> dict[str, Any]:
        """The weights."""
        return {"w": np.asarray(self.w, np.float64)}
