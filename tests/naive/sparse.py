"""Twins of products of CSR rows, entry by entry, and rows of repeated entries."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Rows = tuple[NDArray[np.floating], NDArray[np.integer], NDArray[np.integer]]


def csr_inner(one: Rows, other: Rows, n_columns: int) -> NDArray[np.float64]:
    """Return the inner products of two sets of CSR rows (values, columns, row starts), in float64."""
    return to_dense(one, n_columns) @ to_dense(other, n_columns).T


def to_dense(rows: Rows, n_columns: int) -> NDArray[np.float64]:
    """Return the rows with their zeros; repeated columns add up."""
    data, indices, indptr = rows
    X = np.zeros((len(indptr) - 1, n_columns))
    for i in range(len(X)):
        for t in range(indptr[i], indptr[i + 1]):
            X[i, indices[t]] += float(data[t])
    return X


def in_halves(X: NDArray[np.floating]) -> sp.csr_array:
    """Return dense rows (n, d) as CSR with two entries of half the value in every column."""
    n, d = X.shape
    columns = np.tile(np.repeat(np.arange(d), 2), n)
    return sp.csr_array((np.repeat(X.ravel() / 2, 2), columns, np.arange(0, 2 * n * d + 1, 2 * d)), shape=X.shape)
