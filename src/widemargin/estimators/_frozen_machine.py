"""`FrozenMachine`: the base of kernel machines that come from elsewhere, and are never fitted."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

from ._kernel_machine import KernelMachine


class FrozenMachine(KernelMachine):
    """A kernel machine whose parameters are those of its kernel, and whose fitted attributes are given to it."""

    def __init__(
        self, kernel: str = "rbf", *, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0, n_jobs: int | None = None
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Do nothing, as scikit-learn's `FrozenEstimator`: for other data, fit the original."""
        return self

    def __sklearn_clone__(self) -> Self:
        """A copy that predicts alike: as `FrozenEstimator`, it is never fitted."""
        return copy(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _set_kernel(self, dtype: str) -> None:
        """Keep the kernel's parameters as they are now, and the dtype of the rows."""
        self._kernel, self._gamma, self._dtype = self._kernel_parameters(), float(self.gamma), dtype
