"""What the solvers return: support vectors and coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.benchopt import tolerance


class ToleranceSolver(tolerance.ToleranceSolver):
    """Of kernel machines."""

    def get_result(self) -> dict[str, Any]:
        """Support vectors and coefficients."""
        return {"support": np.asarray(self.model.support_), "dual_coef": np.asarray(self.model.dual_coef_)}
