"""f(x) = <w, x> + b: one decision function or several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._memory import DEFAULT_PLAN, MemoryPlan
from .._threads import ONE_THREAD, SMALL_WORK, ThreadTeam, blas_limit
from .._types import Array, Matrix, Rows, Vector
from ..data import make_design_matrix


@dataclass
class LinearModel:
    """A linear machine's decision functions.

    Attributes
    ----------
    coef : ndarray of shape (n_functions, n_features), float64
    intercept : ndarray of shape (n_functions,), float64
    """

    coef: Matrix
    intercept: Vector

    def decision_values(self, X: Rows, *, n_jobs: int | None = None, memory: MemoryPlan = DEFAULT_PLAN) -> Matrix:
        """Decision values X coef' + intercept, on `n_jobs` threads.

        Parameters
        ----------
        X : ndarray or CSR array of shape (n, n_features), float32 or float64
        n_jobs : int or None
        memory : MemoryPlan
            A memory map larger than the budget is read block by block.

        Returns
        -------
        ndarray of shape (n, n_functions), float64
            The values do not depend on `n_jobs`.

        Notes
        -----
        One pass over X, which is not copied.
        """
        if X.shape[0] * self.coef.size < SMALL_WORK:
            outputs = make_design_matrix(X, ONE_THREAD, memory.budget).matvec(self.coef)
        else:
            with blas_limit(1), ThreadTeam(n_jobs) as team:
                outputs = make_design_matrix(X, team, memory.budget).matvec(self.coef)
        outputs += self.intercept[:, None]
        return outputs.T

    def as_function(self, *, memory: MemoryPlan = DEFAULT_PLAN) -> Callable[[Array], Vector]:
        """A function of one row (d,), float32 or float64, that gives its decision values (n_functions,)."""
        return lambda x: np.asarray(self.decision_values(x[None], n_jobs=1, memory=memory)[0])
