"""LIBSVM in scikit-learn."""

from __future__ import annotations

from typing import Any

from benchmark_utils import ToleranceSolver


class Solver(ToleranceSolver):
    """`sklearn.svm.SVC`."""

    name = "scikit-learn"
    requirements = ["scikit-learn"]

    def make(self, tol: float) -> Any:
        """The estimator."""
        from sklearn.svm import SVC

        return SVC(C=self.C, gamma=self.gamma, tol=tol, cache_size=2000)
