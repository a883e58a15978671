"""ThunderSVM's wheel for processors."""

from __future__ import annotations

from typing import Any

from benchmark_utils import ToleranceSolver


class Solver(ToleranceSolver):
    """`thundersvm.SVC`."""

    name = "ThunderSVM"
    requirements = ["pip::thundersvm-cpu"]

    def make(self, tol: float) -> Any:
        """The estimator."""
        from thundersvm import SVC

        return SVC(C=self.C, gamma=self.gamma, tol=tol, max_mem_size=2000)
