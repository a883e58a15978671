"""Snap ML."""

from __future__ import annotations

import os
from typing import Any

from benchmark_utils import ToleranceSolver


class Solver(ToleranceSolver):
    """`snapml.SupportVectorMachine` on all cores."""

    name = "Snap ML"
    requirements = ["pip::snapml"]

    def make(self, tol: float) -> Any:
        """The estimator."""
        from snapml import SupportVectorMachine

        return SupportVectorMachine(regularizer=1 / self.C, max_iter=10**5, n_jobs=os.cpu_count(), tol=tol)
