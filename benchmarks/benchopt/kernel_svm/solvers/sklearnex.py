"""oneDAL, by scikit-learn-intelex."""

from __future__ import annotations

from typing import Any

from benchmark_utils import ToleranceSolver


class Solver(ToleranceSolver):
    """`sklearnex.svm.SVC`."""

    name = "scikit-learn-intelex"
    requirements = ["pip::scikit-learn-intelex"]

    def make(self, tol: float) -> Any:
        """The estimator."""
        from sklearnex.svm import SVC

        return SVC(C=self.C, gamma=self.gamma, tol=tol, cache_size=2000)
