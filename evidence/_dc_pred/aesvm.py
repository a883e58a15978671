"""AESVM: Nandan, Khargonekar, Talathi, Fast SVM Training Using Approximate Extreme Points, JMLR 15, 2014."""

from __future__ import annotations

from typing import Any, Self

import numba
import numpy as np
from numpy.typing import NDArray

from evidence._dc_pred.rivals import Machine
from evidence._kernels import kernel_values
from widemargin import DCSVMClassifier

Rows = NDArray[np.float32]
Vector = NDArray[np.float64]
Indices = NDArray[np.intp]

_PART = 256  # rows of a part at most
_STEPS = 10  # towards the hull, of each row, whenever it has a new corner


class AESVM(Machine):
    """The exact machine of few weighted rows: approximate extreme points of the others in feature space.

    Each class is divided into parts of near rows. In a part rows are chosen until every other one is within `distance`
    of a convex combination of the chosen ones, |phi(x) - sum_j mu_j phi(z_j)|^2 <= distance. The loss of a chosen row
    is weighted by the sum of its mu over all rows of the part.

    The paper has three ways to find such rows; here it is the farthest row of a part at a time, with mu by pairwise
    Frank-Wolfe steps, in parts made by halving at the median along two far rows.

    Parameters
    ----------
    gamma, C : float
    distance : float
        The paper's epsilon.

    Attributes
    ----------
    rows_ : ndarray
        The chosen rows.
    weights_ : ndarray
        Of them; their sum is the number of rows.
    """

    def __init__(self, gamma: float, C: float, distance: float = 0.1) -> None:
        self.gamma = gamma
        self.C = C
        self.distance = distance

    def fit(self, X: Rows, y: Any) -> Self:
        """Choose the rows, train on them."""
        rng, weights = np.random.default_rng(0), np.zeros(len(X))
        for label in np.unique(y):
            for part in _halve(X, np.flatnonzero(y == label), rng):
                K = kernel_values(X[part].astype(np.float64), X[part], self.gamma)
                weights[part] = _hull_weights(K, self.distance)
        self.rows_ = np.flatnonzero(weights)
        self.weights_ = weights[self.rows_]
        machine = DCSVMClassifier(C=self.C, gamma=self.gamma, fit_intercept=False)
        self.model_ = machine.fit(X[self.rows_], y[self.rows_], sample_weight=self.weights_)
        self.n_operations = len(self.model_.support_) * (1 + 1 / X.shape[1])
        return self

    def decision_function(self, X: Any) -> Vector:
        """Decision values of shape (n,)."""
        return np.asarray(self.model_.decision_function(X))


def _halve(X: Rows, rows: Indices, rng: np.random.Generator) -> list[Indices]:
    """Parts of at most `_PART` rows: at the median along the line from a far row to the one farthest from it."""
    if len(rows) <= _PART:
        return [rows]
    ends = X[rng.choice(rows)], X[rng.choice(rows)]
    for _ in range(2):
        ends = ends[1], X[rows[np.argmax(np.square(X[rows] - ends[1]).sum(axis=1))]]
    order = np.argsort(X[rows] @ (ends[1] - ends[0]), kind="stable")
    half = len(rows) // 2
    return _halve(X, rows[order[:half]], rng) + _halve(X, rows[order[half:]], rng)


@numba.njit(cache=True)
def _hull_weights(K: Any, distance: float) -> Any:
    """Choose rows of a part with kernel matrix K (n, n) until the others are near their hull; the sums of mu, (n,)."""
    n = len(K)
    chosen, place = np.empty(n, np.int64), np.full(n, -1)
    mu, slopes = np.zeros((n, n)), np.empty((n, n))  # the gradient of 1/2 |phi(x) - sum_j mu_j phi(z_j)|^2 in mu
    squares = np.full(n, np.inf)
    farthest, best = 0, -np.inf
    for t in range(n):  # the first corner: the row farthest from the mean
        from_mean = K[t, t] - 2 * np.mean(K[t])
        if from_mean > best:
            farthest, best = t, from_mean
    for m in range(n):
        place[farthest] = m
        chosen[m] = farthest
        for t in range(n):
            slopes[t, m] = -K[t, farthest]
            for c in range(m):
                slopes[t, m] += mu[t, c] * K[chosen[c], farthest]
            if m == 0:
                mu[t, 0], slopes[t, 0] = 1.0, K[farthest, farthest] - K[t, farthest]
            if place[t] >= 0:
                mu[t, : m + 1] = 0.0
                mu[t, place[t]], squares[t] = 1.0, 0.0
            elif squares[t] > distance:
                squares[t] = _approach(K, chosen, mu[t], slopes[t], t, m + 1)
        farthest = np.argmax(squares)
        if squares[farthest] <= distance:
            break
    weights = np.zeros(n)
    for c in range(n):
        if place[c] >= 0:
            weights[c] = mu[:, place[c]].sum()
    return weights


@numba.njit(cache=True)
def _approach(K: Any, chosen: Any, mu: Any, slopes: Any, t: int, m: int) -> float:
    """Pairwise Frank-Wolfe steps of row t towards the hull of m corners, in place; the squared distance."""
    for _ in range(_STEPS):
        to, away = np.argmin(slopes[:m]), -1
        for c in range(m):
            if mu[c] > 0 and (away < 0 or slopes[c] > slopes[away]):
                away = c
        i, j = chosen[to], chosen[away]
        if slopes[away] - slopes[to] < 1e-9:
            break
        curvature = max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
        length = min(mu[away], (slopes[away] - slopes[to]) / curvature)
        mu[to] += length
        mu[away] = 0.0 if length == mu[away] else mu[away] - length
        for c in range(m):
            slopes[c] += length * (K[i, chosen[c]] - K[j, chosen[c]])
    square = K[t, t]
    for c in range(m):  # slopes = K mu - k
        square += mu[c] * (slopes[c] - K[t, chosen[c]])
    return max(square, 0.0)
