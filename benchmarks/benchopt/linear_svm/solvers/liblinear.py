"""LIBLINEAR in scikit-learn."""

from __future__ import annotations

from typing import Any

from benchmark_utils import ToleranceSolver


class Solver(ToleranceSolver):
    """`LinearSVC`, the dual."""

    name = "LIBLINEAR"
    requirements = ["scikit-learn"]

    def make(self, tol: float) -> Any:
        """The estimator."""
        from sklearn.svm import LinearSVC

        return LinearSVC(C=self.C, loss="hinge", fit_intercept=False, max_iter=10**6, tol=tol)
