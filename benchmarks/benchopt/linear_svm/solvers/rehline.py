"""ReHLine."""

from __future__ import annotations

from typing import Any

from benchmark_utils import ToleranceSolver


class Solver(ToleranceSolver):
    """`plqERM_Ridge` with the hinge loss."""

    name = "ReHLine"
    requirements = ["pip::rehline"]

    def make(self, tol: float) -> Any:
        """The estimator."""
        from rehline import plqERM_Ridge

        return plqERM_Ridge(loss={"name": "svm"}, C=self.C, max_iter=10**6, tol=tol)
