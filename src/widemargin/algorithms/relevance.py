"""Learned relevance of the columns: fit a machine, scale each column by its root mean square gradient, fit again.

Source: Radhakrishnan, Beaglehole, Pandit, Belkin, "Mechanism for feature learning in neural networks and
backpropagation-free machine learning models", Science 383, 2024: the diagonal of the average gradient outer product.

    s = (1, ..., 1)
    n_iter times:
        fit a machine f on the rows X diag(s)
        r_j = s_j sqrt(mean_i (df / dx_j)^2)                the gradient by the given column j
        s = c r, with the c that keeps the mean distance of two rows
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from .._memory import DEFAULT_PLAN, MemoryPlan
from .._progress import AnyProgress
from .._threads import row_blocks, value_blocks
from .._types import Gradients, Rows, Vector

LEAST_FACTOR = 1e-6  # of a column / the largest one: no column is lost
_ROWS = 500, 2000  # average over the gradients at so many rows:
_GRADIENTS = 20_000  # as many as give so many gradients of all functions; the least for a fit that was stopped


class Differentiable(Protocol):
    """A machine of several decision functions with their gradients, (n, n_functions, d)."""

    def decision_gradients(self, X: Rows, *, n_jobs: int | None = None, memory: MemoryPlan = DEFAULT_PLAN) -> Gradients:
        """Gradients of the decision values by the rows of X."""


class Relevance(NamedTuple):
    """What was learned of d columns.

    Attributes
    ----------
    relevance : ndarray of shape (d,)
        Root mean square gradients by the given columns, divided by the largest; 0 of constant columns; ones if all
        are zero.
    scale : ndarray of shape (d,), positive
        What to multiply the columns by: the mean distance of two rows stays as it is.
    n_iter : int
        Machines that were fitted.
    is_known : bool
        Whether any gradient was not zero.
    """

    relevance: Vector
    scale: Vector
    n_iter: int
    is_known: bool


def learn_relevance(
    X: Rows,
    weights: Vector,
    fit: Callable[[Any], Differentiable],
    n_iter: int,
    progress: AnyProgress,
    rng: np.random.Generator,
    *,
    power: int = 1,
    n_jobs: int | None = None,
    memory: MemoryPlan = DEFAULT_PLAN,
) -> Relevance:
    """Scale the columns of X, fit and measure gradients, `n_iter` times.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d)
    weights : ndarray of shape (n,)
        Of the rows, in the means.
    fit : callable
        Returns a machine of the rows X diag(s), of the same dtype.
    n_iter : int
        At least 1. A fit that is stopped ends the loop, and counts only if it is the first.
    progress : Progress
    rng : Generator
        Draws the rows at which gradients are averaged: 2,000, of more than 10 functions fewer, down to 500.
    power : {1, 2}
        Distances whose mean is kept are sums over the columns of ``|x_j - z_j| ** power``.
    """
    share = mean_differences(X, weights, power)
    known = Relevance(np.ones(X.shape[1]), np.ones(X.shape[1]), 0, False)
    order = rng.permutation(X.shape[0])
    for k in range(1, n_iter + 1):
        scaled = scale_columns(X, known.scale)
        model = fit(scaled)
        if k > 1 and progress.stopped_by:
            break
        n_rows = _ROWS[0] if progress.stopped_by else _n_gradient_rows(model, scaled)
        rows = np.sort(order[:n_rows])
        gradients = rms_gradients(model, scaled[rows], weights[rows], n_jobs=n_jobs, memory=memory)
        relevance = np.where(share > 0, known.scale * gradients, 0.0)  # rounding is no gradient by a constant column
        if not relevance.any():
            return known._replace(n_iter=k)
        relevance = relevance / relevance.max()
        known = Relevance(relevance, _factors(relevance, share, power), k, True)
        del scaled, model  # before the next ones are made
        if not progress.go_on():
            break
    return known


def rms_gradients(
    model: Differentiable, X: Rows, weights: Vector, *, n_jobs: int | None = None, memory: MemoryPlan = DEFAULT_PLAN
) -> Vector:
    """sqrt(mean (df/dx_j)^2) of each column (d,): over the rows by their weights, and over the decision functions."""
    total = np.zeros(X.shape[1])
    n_functions = model.decision_gradients(X[:1]).shape[1]
    row_bytes = 2 * 8 * n_functions * X.shape[1]  # of two copies
    for rows in row_blocks(X.shape[0], max(1, memory["gradients"] // row_bytes)):
        gradients = model.decision_gradients(X[rows], n_jobs=n_jobs, memory=memory)
        total += np.einsum("i,ifj,ifj->j", weights[rows], gradients, gradients)
    return np.asarray(np.sqrt(total / (n_functions * weights.sum())))


def mean_differences(X: Rows, weights: Vector, power: int = 1) -> Vector:
    """The mean of |x_j - z_j| ** power over all pairs of rows, for each column: (d,); power 1 or 2.

    Notes
    -----
    Of power 1 it is the integral of 2 F (1 - F), where F is the distribution function of the column: a sort. Of power
    2 it is twice the variance.
    """
    shares = weights / weights.sum()
    columns = value_blocks(X.shape[1], X.shape[0])
    by_column = X.tocsc() if sp.issparse(X) else X
    return np.concatenate([_mean_differences(_dense(by_column[:, block]), shares, power) for block in columns])


def _mean_differences(V: Any, shares: Vector, power: int) -> Vector:
    V = V.astype(np.float64)
    if power == 2:
        return np.asarray(2.0 * shares @ (V - shares @ V) ** 2 * (V.min(axis=0) < V.max(axis=0)))
    order = np.argsort(V, axis=0, kind="stable")
    F = np.cumsum(shares[order], axis=0)[:-1]
    gaps = np.diff(np.take_along_axis(V, order, axis=0), axis=0)
    return np.asarray(2.0 * np.einsum("ij,ij,ij->j", gaps, F, 1.0 - F))


def scale_columns(X: Rows, factors: Vector) -> Rows:
    """X diag(factors), of the dtype of X; a sparse X stays so."""
    if not sp.issparse(X):
        return np.multiply(X, factors, dtype=X.dtype, casting="same_kind")
    scaled = X.copy()
    scaled.data *= factors.astype(X.dtype)[scaled.indices]
    return scaled


def _factors(relevance: Vector, share: Vector, power: int) -> Vector:
    """The factors of the columns: proportional to their relevance, such that the mean distance stays sum(share)."""
    factors = np.maximum(relevance, LEAST_FACTOR)
    return np.asarray(factors * (share.sum() / (share @ factors**power)) ** (1.0 / power))


def _n_gradient_rows(model: Differentiable, X: Rows) -> int:
    n_functions = model.decision_gradients(X[:1]).shape[1]
    return int(np.clip(_GRADIENTS // n_functions, *_ROWS))


def _dense(columns: Any) -> Any:
    return columns.toarray() if sp.issparse(columns) else columns
