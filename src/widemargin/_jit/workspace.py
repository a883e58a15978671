"""Named tuples of arrays that cross the border into compiled code."""

from typing import Any, NamedTuple

import numpy as np

PRODUCTS, SQUARES, DIFFERENCES = range(3)  # what is summed over the features of two points: x u, (x - u)^2, |x - u|


class Rows(NamedTuple):
    """Rows to stream over: CSR arrays, or a dense array that has no starts and is read as if every value had a column.

    A dense row's zeros are skipped, so both cost their non-zeros.
    """

    data: np.ndarray  # (nnz,); a dense array's values, row by row
    columns: np.ndarray  # (nnz,) int32 or int64; (0,) for a dense array
    starts: np.ndarray  # (n + 1,) int64; (0,) for a dense array


def make_rows(X: Any) -> Rows:
    """The rows of a C-contiguous or CSR array, without a copy of its values."""
    if hasattr(X, "indptr"):
        return Rows(X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False))
    return Rows(X.reshape(-1), np.empty(0, np.int32), np.empty(0, np.int64))


class Points(NamedTuple):
    """k groups of m points that rows are compared with."""

    values: np.ndarray  # (k, m, d)
    at_zero: np.ndarray  # (k, m): what the zero row measures


class Tree(NamedTuple):
    """A tree of centres that routes a row to a leaf; node 0 is the root."""

    centres: np.ndarray  # (n_nodes, b, d)
    at_zero: np.ndarray  # (n_nodes, b): squared norms
    sizes: np.ndarray  # (n_nodes,) int32: children of each node
    children: np.ndarray  # (n_nodes, b) int32: a node, or -1 - leaf


def no_points(d: int, dtype: Any) -> Points:
    """Nothing to compare rows of d features with."""
    return Points(np.empty((1, 0, d), dtype), np.empty((1, 0), dtype))
