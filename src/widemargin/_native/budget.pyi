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
    Solve p merging problems. candidates (p,): coefficients of the points to merge. The first sizes[i] entries of row i of
    coef and log_kappa (p, n), float64 and float32, are coefficients of possible partners, of the candidate's sign and in
    absolute value no smaller, and ln k of candidate and partner. Writes the best partners (p,), -1 where there is none,
    and found (p, 2): h and the squared weight degradation.
    """

class MergingState:
    """
    A Gaussian kernel machine of at most `budget` points, with budget maintenance by merging. The point of slot j is
    x_j = slots[3, j] points[:, j] + shift; slots[0, j] is lam t times its coefficient; slots[1, j] its coefficient sum: the
    terms of slots[0, j], each times the step size sum when it was added; slots[2, j] is gamma |x_j - shift|^2. Points with
    positive coefficients fill the slots from the front, the others from the back; empty slots have coefficient 0. The
    arrays may be written to between calls.
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
        ndarray of shape (7,), int64: steps, points at the front, points at the back, margin violations, mergers, removals,
        cumulative sum of the mistakes of the average less those of the current machine
        """

    @property
    def sums(self) -> NDArray[np.float64]:
        """
        ndarray of shape (7,), float64: lam t times the intercept, its coefficient sum, step size sum, the latest step's weight
        in the average, and the sums of these weights, of hinge losses, of squared weight degradations
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
        weight times label; rule: of merging, lookup-wd, lookup-h, gss, gss-precise or gss-paper.
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
    One step of stochastic gradient descent on each of r new rows. Columns are points and new rows, in order of arrival:
    row i is column first + i. Over the budget the point of least |coefficient|^2 k(x, x) is removed. K (r, c) float32:
    kernel values; diagonal (c,): k(x, x); signed_weights (r,); coef (2, c), coefficients and coefficient sums, counts (7,)
    and sums (7,), as in MergingState, are updated; inverse is not read.
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
    As removal_steps; over the budget the point of least weight degradation is projected onto the span of the others.
    inverse (c, c), updated: the inverse of the points' kernel matrix, zero elsewhere.
    """
