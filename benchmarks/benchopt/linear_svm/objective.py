"""The linear machine of two classes, without an intercept: 1/2 |w|^2 + C sum of hinges, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseObjective
from benchopt.stopping_criterion import SufficientProgressCriterion


class Objective(BaseObjective):  # type: ignore[misc]
    """The primal value of the weights: the plots show how far it is above the best of all solvers."""

    name = "Linear SVM"
    url = "https://github.com/benchopt"
    min_benchopt_version = "1.10"
    parameters = {"C": [0.1, 10.0]}
    requirements = ["numpy"]
    sampling_strategy = "tolerance"
    stopping_criterion = SufficientProgressCriterion(eps=1e-5, patience=4, strategy="tolerance")

    def set_data(self, X: Any, y: Any) -> None:
        """Take rows (n, d), dense or CSR, and labels -1 and 1."""
        self.X, self.y = X, y

    def get_objective(self) -> dict[str, Any]:
        """The problem."""
        return {"X": self.X, "y": self.y, "C": self.C}

    def evaluate_result(self, w: Any) -> dict[str, float]:
        """The objective of weights (d,)."""
        hinges = np.maximum(0.0, 1.0 - self.y * (self.X @ np.asarray(w, np.float64)))
        return {"value": 0.5 * float(w @ w) + self.C * float(hinges.sum())}

    def get_one_result(self) -> dict[str, Any]:
        """No weight."""
        return {"w": np.zeros(self.X.shape[1])}
