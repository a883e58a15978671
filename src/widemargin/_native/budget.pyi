"""Budgeted stochastic gradient descent: steps, merging, look-up tables."""

import numpy as np
from numpy.typing import NDArray

from . import csr

class MergeGrids:
    """Look-up tables of h and of the root of wd over m and kappa."""

    def __init__(self, grids: NDArray[np.float32]) -> None:
        """
        grids (2, t, t), float32 in [0, 1]: h and the root of wd at t values of m in [1/2, 1] and of kappa in [0, 1].
        """

def find_partners(
    candidates: NDArray[np.float64],
    coef: NDArray[np.float64],
    log_kappa: NDArray[np.float32],
    sizes: NDArray[np.int64],
    grids: MergeGrids,
    rule: str,
    partners: NDArray[np.int64],
    found: NDArray[np.float64],
) -> None:
    """
    Solve p merging problems. candidates (p,): coefficients of the points to merge. In row i of coef and log_kappa
    (p, n), float64 and float32, the first sizes[i] entries are the coefficients of possible partners, of the
    candidate's sign and no smaller, and ln k of both points. Writes the best partners (p,), -1 where there is none,
    and found (p, 2): h and the squared weight degradation.
    """

class MergingState:
    """
    A Gaussian kernel machine of at most `budget` points, with budget maintenance by merging. Point j is
    slots[3, j] points[:, j] + shift, and lam t times its coefficient is slots[0, j]; slots[1, j] is the sum of the
    terms of slots[0, j], each times the step size sum when it was added (for the average); slots[2, j] is gamma |slots[3, j]
    points[:, j]|^2. Points with positive coefficients fill the slots from the front, the others from the back; empty
    slots have coefficient 0. The arrays may be written to between calls.
    """

    def __init__(self, n_features: int, budget: int) -> None:
        """A machine without points."""

    @property
    def points(self) -> NDArray[np.float32]:
        """ndarray of shape (n_features, n_slots), float32"""

    @property
    def slots(self) -> NDArray[np.float64]:
        """ndarray of shape (4, n_slots), float64"""

    @property
    def counts(self) -> NDArray[np.int64]:
        """
        ndarray of shape (7,), int64: steps, points at the front and at the back, margin violations, mergers, removals,
        cumulative sum of the average's mistakes less those of the current machine
        """

    @property
    def sums(self) -> NDArray[np.float64]:
        """
        ndarray of shape (7,), float64: intercept, the sum of its terms times the step size sums, step size sum, averaging weight
        of the latest step, sum of averaging weights, hinge losses, squared weight degradations
        """

    @property
    def shift(self) -> NDArray[np.float32]:
        """
        ndarray of shape (n_features,), float32: subtracted from all points and rows
        """

    def run(
        self,
        X: NDArray[np.float32] | csr.CSRMatrix,
        order: NDArray[np.int64],
        signed_weights: NDArray[np.float64],
        grids: MergeGrids,
        rule: str,
        gamma: float,
        inverse_lam: float,
        fit_intercept: bool,
    ) -> None:
        """
        One step of stochastic gradient descent on each of the rows X[order], X (n, d) float32; signed_weights (n,): sample
        weight times label; rule: of merging, lookup-wd, lookup-h, gss or gss-precise.
        """

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
    One step of stochastic gradient descent on each row of a block of kernel values K (r, c) float32; its rows are
    themselves columns first, first + 1, ... Over the budget the point of least |coefficient|^2 k(x, x) is removed.
    diagonal (c,): k(x, x); signed_weights (r,); coef (2, c), counts (7,) and sums (7,) are updated; inverse is not
    read.
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
    The same; over the budget a point is projected onto the others. inverse (c, c), updated: the inverse of the points'
    kernel matrix, zero elsewhere.
    """
