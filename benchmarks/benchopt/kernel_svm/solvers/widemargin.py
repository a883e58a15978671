"""Ours."""

from __future__ import annotations

from typing import Any

from benchmark_utils import ToleranceSolver


class Solver(ToleranceSolver):
    """`DCSVMClassifier`."""

    name = "widemargin"
    requirements = ["pip::widemargin"]

    def make(self, tol: float) -> Any:
        """The estimator."""
        from widemargin import DCSVMClassifier

        return DCSVMClassifier(C=self.C, gamma=self.gamma, tol=tol)
