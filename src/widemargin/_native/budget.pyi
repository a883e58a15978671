"""Steps of stochastic gradient descent on a budget of points."""

import numpy as np
from numpy.typing import NDArray

from . import csr

class MergeTables:
    """h and the root of wd on a grid, as look-ups read them."""

    def __init__(self, grids: NDArray[np.float32]) -> None:
        """
        From grids (2, t, t), float32 in [0, 1]: h and the root of wd over m and kappa.
        """

def find_partners(
    candidates: NDArray[np.float64],
    coef: NDArray[np.float64],
    log_kappa: NDArray[np.float32],
    sizes: NDArray[np.int64],
    tables: MergeTables,
    rule: str,
    partners: NDArray[np.int64],
    found: NDArray[np.float64],
) -> None:
    """
    Solve p merging problems: own (p,) is the candidate's coefficient; coef and log_kappa (p, n), float64 and
    float32, have in their first sizes[i] columns coefficients of its sign, none smaller, and ln k. Writes the best
    partner (p,), -1 without one, and (h, squared degradation) (p, 2).
    """

class MergingState:
    """
    A machine of at most `budget` points that are merged. Its arrays may be written to between calls: coefficient j
    times lam t is slots[0, j], of the point slots[3, j] points[:, j] + shift; slots[1] is the same sum with each
    term times the clock at which it came, slots[2] is gamma |points[:, j] slots[3, j]|^2. Points of positive
    coefficient fill the slots from the front, the others from the back; empty slots have coefficient 0.
    """

    def __init__(self, n_features: int, budget: int) -> None:
        """An empty machine."""

    @property
    def points(self) -> NDArray[np.float32]:
        """ndarray of shape (n_features, n_slots), float32"""

    @property
    def slots(self) -> NDArray[np.float64]:
        """ndarray of shape (4, n_slots), float64"""

    @property
    def counts(self) -> NDArray[np.int64]:
        """
        ndarray of shape (7,), int64: steps, points at the front and at the back, violations, mergers, removals, mistakes
        of the average beyond those of the current machine
        """

    @property
    def sums(self) -> NDArray[np.float64]:
        """
        ndarray of shape (7,), float64: intercept, its sum times the clock, clock, weight of the latest step, sum of
        weights, hinge losses, squared degradations
        """

    @property
    def shift(self) -> NDArray[np.float32]:
        """
        ndarray of shape (n_features,), float32: what all points and rows are stored less
        """

    def run(
        self,
        X: NDArray[np.float32] | csr.CSRMatrix,
        order: NDArray[np.int64],
        signed_weights: NDArray[np.float64],
        tables: MergeTables,
        rule: str,
        gamma: float,
        inverse_lam: float,
        fit_intercept: bool,
    ) -> None:
        """The same on rows of a CSRMatrix of float32 values."""

def removal_steps(
    K: NDArray[np.float32],
    first: int,
    diagonal: NDArray[np.float64],
    signed_weights: NDArray[np.float64],
    coef: NDArray[np.float64],
    inverse: NDArray[np.float64],
    counts: NDArray[np.int64],
    sums: NDArray[np.float64],
    budget: int,
    inverse_lam: float,
    fit_intercept: bool,
) -> None:
    """
    One step on each row of a block of kernel values K (r, c) float32, of new rows that are columns first, first +
    1, ...; over the budget the lightest point is removed. diagonal (c,): k(x, x); signed_weights (r,); coef (2, c)
    and the totals counts (7,) and sums (7,) are updated; inverse is not read.
    """

def projection_steps(
    K: NDArray[np.float32],
    first: int,
    diagonal: NDArray[np.float64],
    signed_weights: NDArray[np.float64],
    coef: NDArray[np.float64],
    inverse: NDArray[np.float64],
    counts: NDArray[np.int64],
    sums: NDArray[np.float64],
    budget: int,
    inverse_lam: float,
    fit_intercept: bool,
) -> None:
    """
    The same; over the budget a point is projected onto the others. inverse (c, c): of the points' kernel matrix,
    updated.
    """
