"""CSR rows restricted to the columns that hold values: arrays of one number for each then cost no empty columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._types import RowIndices


def occupied_columns(X: Any) -> tuple[Any, RowIndices | None]:
    """X (n, d) restricted to its m columns that hold values, (n, m), and the numbers of these, ascending.

    X itself and None, unless it is CSR with fewer entries than columns: else X is longer than a vector of d.
    O(nnz log nnz). The values are shared.
    """
    if not sp.issparse(X) or X.nnz >= X.shape[1]:
        return X, None
    columns, indices = np.unique(X.indices, return_inverse=True)
    return type(X)((X.data, indices.astype(X.indices.dtype), X.indptr), (X.shape[0], len(columns))), columns


def restore_columns(X: Any, columns: RowIndices | None, d: int) -> Any:
    """X (n, m) of the columns that `occupied_columns` returned, CSR or dense, with all d columns again."""
    if columns is None:
        return X
    if sp.issparse(X):
        return type(X)((X.data, columns[X.indices], X.indptr), (X.shape[0], d))
    restored = np.zeros((len(X), d), X.dtype)
    restored[:, columns] = X
    return restored
