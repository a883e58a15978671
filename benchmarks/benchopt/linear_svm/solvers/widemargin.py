"""Ours."""

from __future__ import annotations

from typing import Any

from benchmark_utils import ToleranceSolver


class Solver(ToleranceSolver):
    """`OCASClassifier`."""

    name = "widemargin"
    requirements = ["pip::widemargin"]

    def make(self, tol: float) -> Any:
        """The estimator."""
        from widemargin import OCASClassifier

        return OCASClassifier(C=self.C, fit_intercept=False, tol=tol)
