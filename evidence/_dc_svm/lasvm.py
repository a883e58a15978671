"""LaSVM: Bordes, Ertekin, Weston, Bottou, Fast Kernel Classifiers with Online and Active Learning, JMLR 6, 2005."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numba
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from widemargin.kernels.functions import make_kernel
from widemargin.models.expansion import KernelExpansion

Rows = NDArray[np.float32]

_SEEDS = 5  # rows of each class that the expansion begins with
_LARGEST = 25_000  # rows in the expansion: their kernel matrix has 2.5 GB


class LaSVM(ClassifierMixin, BaseEstimator):
    """Online steps on pairs of dual variables: each row in turn is processed, and one more pair reprocessed.

    max_b sum_i y_i b_i - 1/2 b'Kb with sum_i b_i = 0 and b_i between 0 and y_i C. Only rows of the expansion S have a
    coefficient and a gradient g = y - K b. A pair (i, j) violates tau where b_i can grow, b_j can shrink, and
    g_i - g_j > tau. Rows leave S at b = 0 once no pair with them can. At the end pairs are reprocessed until none
    violates tau. The kernel matrix of S is kept.

    Parameters
    ----------
    C, gamma : float
    kernel : {"rbf", "poly"}
    tol : float
        tau.
    n_epochs : int
        Passes over the rows, in random order.
    random_state : int

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_ : ndarray
        In scikit-learn's layout.
    """

    def __init__(
        self,
        C: float = 1.0,
        gamma: float = 1.0,
        kernel: str = "rbf",
        tol: float = 1e-3,
        n_epochs: int = 1,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.kernel = kernel
        self.tol = tol
        self.n_epochs = n_epochs
        self.random_state = random_state

    def fit(self, X: Rows, y: NDArray[Any]) -> Self:
        """Train online, then to the tolerance."""
        self.classes_ = np.unique(y)
        X, signs = np.ascontiguousarray(X, np.float32), np.where(y == self.classes_[1], 1.0, -1.0)
        rng = np.random.default_rng(self.random_state)
        order = np.concatenate([rng.permutation(len(X)) for _ in range(self.n_epochs)])
        seeds = np.concatenate([order[signs[order] == sign][:_SEEDS] for sign in (1.0, -1.0)])
        S = _make_expansion(min(len(X), _LARGEST), X.shape[1])
        _learn(S, X, signs, seeds, order, self.C, self.gamma, self.kernel == "rbf", self.tol)
        return self._finish(S, X)

    def _finish(self, S: _Expansion, X: Rows) -> Self:
        i, j = _extreme_pair(S)
        beta = S.beta[: S.count[0]]
        support = np.flatnonzero(beta)
        support = support[np.argsort(S.rows[support])]
        self.support_ = S.rows[support].astype(np.intp)
        self.support_vectors_, self.dual_coef_ = X[self.support_], beta[support][None]
        self.intercept_ = np.array([(S.gradient[i] + S.gradient[j]) / 2])
        kernel = make_kernel(self.kernel, gamma=self.gamma, degree=3, coef0=0.0)
        self._model = KernelExpansion(kernel, self.support_vectors_, self.dual_coef_, self.intercept_)
        return self

    def decision_function(self, X: Rows) -> NDArray[np.float64]:
        """Decision values of shape (n,)."""
        return np.asarray(self._model.decision_values(X)[:, 0])

    def predict(self, X: Rows) -> NDArray[Any]:
        """Labels of shape (n,)."""
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(int)])


class _Expansion(NamedTuple):
    """The rows of the expansion S: the first `count[0]` entries of every array."""

    points: Rows
    squares: NDArray[np.float32]
    K: NDArray[np.float32]
    beta: NDArray[np.float64]
    gradient: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rows: NDArray[np.int64]
    count: NDArray[np.int64]


def _make_expansion(most: int, d: int) -> _Expansion:
    vectors = [np.empty(most) for _ in range(4)]
    K = np.empty((most, most), np.float32)
    rows, count = np.empty(most, np.int64), np.zeros(1, np.int64)
    return _Expansion(np.empty((most, d), np.float32), np.empty(most, np.float32), K, *vectors, rows, count)


@numba.njit(cache=True)
def _learn(
    S: Any, X: Any, signs: Any, seeds: Any, order: Any, C: float, gamma: float, is_rbf: bool, tol: float
) -> None:
    """Insert the seeds; process each row of `order` and reprocess one pair; then reprocess to the tolerance."""
    inside = np.zeros(len(X), np.bool_)
    for k in seeds:
        _insert(S, X[k], k, signs[k], C, gamma, is_rbf)
        inside[k] = True
    for k in order:
        if not inside[k]:
            _insert(S, X[k], k, signs[k], C, gamma, is_rbf)
            inside[k] = True
            new = S.count[0] - 1
            i, j = _extreme_pair(S)
            if signs[k] > 0:
                _step(S, new, j, tol)
            else:
                _step(S, i, new, tol)
        _reprocess(S, inside, tol)
    while _reprocess(S, inside, tol):
        pass


@numba.njit(cache=True)
def _insert(S: Any, x: Any, k: int, sign: float, C: float, gamma: float, is_rbf: bool) -> None:
    """Put row k into S at b = 0."""
    m = S.count[0]
    if m == len(S.beta):
        raise MemoryError("the expansion is full")
    S.count[0] = m + 1
    S.points[m], S.squares[m] = x, np.dot(x, x)
    products = np.dot(S.points[: m + 1], x)
    total = 0.0
    S.beta[m] = 0.0
    for s in range(m + 1):
        if is_rbf:
            value = np.exp(-np.float32(gamma) * max(S.squares[s] + S.squares[m] - 2 * products[s], np.float32(0)))
        else:
            value = (np.float32(gamma) * products[s]) ** 3
        S.K[m, s], S.K[s, m] = value, value
        total += S.beta[s] * value
    S.gradient[m], S.rows[m] = sign - total, k
    S.low[m], S.high[m] = min(0.0, C * sign), max(0.0, C * sign)


@numba.njit(cache=True)
def _extreme_pair(S: Any) -> tuple[int, int]:
    """The row of the largest gradient whose b can grow, and that of the least whose b can shrink."""
    i, j, most, least = -1, -1, -np.inf, np.inf
    for s in range(S.count[0]):
        if S.beta[s] < S.high[s] and S.gradient[s] > most:
            i, most = s, S.gradient[s]
        if S.beta[s] > S.low[s] and S.gradient[s] < least:
            j, least = s, S.gradient[s]
    return i, j


@numba.njit(cache=True)
def _step(S: Any, i: int, j: int, tol: float) -> bool:
    """Maximise along b_i + t, b_j - t within the box; returns whether the pair violated the tolerance."""
    if S.gradient[i] - S.gradient[j] <= tol or S.beta[i] >= S.high[i] or S.beta[j] <= S.low[j]:
        return False
    curvature = max(S.K[i, i] + S.K[j, j] - 2 * S.K[i, j], 1e-12)
    length = min((S.gradient[i] - S.gradient[j]) / curvature, S.high[i] - S.beta[i], S.beta[j] - S.low[j])
    S.beta[i] = S.high[i] if length == S.high[i] - S.beta[i] else S.beta[i] + length
    S.beta[j] = S.low[j] if length == S.beta[j] - S.low[j] else S.beta[j] - length
    for s in range(S.count[0]):
        S.gradient[s] -= length * (S.K[i, s] - S.K[j, s])
    return True


@numba.njit(cache=True)
def _reprocess(S: Any, inside: Any, tol: float) -> bool:
    """A step on the extreme pair; then rows at b = 0 that violate with none leave S. Returns whether there was one."""
    i, j = _extreme_pair(S)
    if not _step(S, i, j, tol):
        return False
    i, j = _extreme_pair(S)
    most, least = S.gradient[i], S.gradient[j]
    for s in range(S.count[0] - 1, -1, -1):
        if S.beta[s] == 0 and (S.gradient[s] >= most if S.high[s] == 0 else S.gradient[s] <= least):
            inside[S.rows[s]] = False
            _remove(S, s)
    return True


@numba.njit(cache=True)
def _remove(S: Any, s: int) -> None:
    """The last row of S takes the place of row s."""
    last = S.count[0] - 1
    S.count[0] = last
    for values in (S.beta, S.gradient, S.low, S.high):
        values[s] = values[last]
    S.points[s], S.squares[s], S.rows[s] = S.points[last], S.squares[last], S.rows[last]
    own = S.K[last, last]
    for t in range(last):
        S.K[s, t], S.K[t, s] = S.K[last, t], S.K[last, t]
    S.K[s, s] = own
