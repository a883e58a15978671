"""What the solvers return: weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.benchopt import tolerance


class ToleranceSolver(tolerance.ToleranceSolver):
    """Of linear machines."""

    def get_result(self) -> dict[str, Any]:
        """The weights (d,)."""
        return {"w": np.ravel(self.model.coef_).astype(np.float64)}
