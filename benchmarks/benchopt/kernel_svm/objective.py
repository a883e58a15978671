"""The RBF machine of two classes, with an intercept: the relative gap, recomputed from support vectors alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from benchopt import BaseObjective
from benchopt.stopping_criterion import SufficientProgressCriterion

from measuring.recompute import certify


class Objective(BaseObjective):  # type: ignore[misc]
    """(primal - dual) / primal in float64; the dual value is that of a feasible point near the solver's."""

    name = "Kernel SVM"
    url = "https://github.com/benchopt"
    min_benchopt_version = "1.10"
    parameters = {"C": [1.0, 32.0]}
    requirements = ["scikit-learn"]
    sampling_strategy = "tolerance"
    stopping_criterion = SufficientProgressCriterion(eps=1e-4, patience=4, strategy="tolerance")

    def set_data(self, X: Any, y: Any, gamma: float) -> None:
        """Take float32 rows (n, d) and labels -1 and 1."""
        self.X, self.y, self.gamma = X, y, gamma

    def get_objective(self) -> dict[str, Any]:
        """The problem."""
        return {"X": self.X, "y": self.y, "C": self.C, "gamma": self.gamma}

    def evaluate_result(self, support: Any, dual_coef: Any) -> dict[str, float]:
        """Recompute the certificate of support vectors and coefficients, in scikit-learn's layout."""
        model = SimpleNamespace(support_=support, dual_coef_=dual_coef)
        found = certify(self.X, self.y, model, C=self.C, gamma=self.gamma, intercept=True)
        return {"value": found.gap / found.primal, "primal": found.primal, "dual": found.dual}

    def get_one_result(self) -> dict[str, Any]:
        """The machine without support vectors."""
        return {"support": np.zeros(0, np.intp), "dual_coef": np.zeros((1, 0))}
