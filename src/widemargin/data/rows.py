"""Rows spread over all, of each label, equal ones; and the columns that hold values, without which arrays are short."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._threads import row_blocks
from .._types import Array, Labels, RowIndices, Rows, Vector

SAMPLED_ROWS = 512  # among which equal rows, near rows or zeros are looked for, of all


def spread_rows(n: int, least: int = 64) -> RowIndices:
    """Numbers of one row out of each run of n // least consecutive rows, drawn with a fixed seed, in ascending order.

    Between `least` and twice as many; all n rows if there are fewer than 2 `least`. At random, because data come in
    periods and runs.
    """
    run = max(1, n // least)
    first = np.arange(0, n - run + 1, run)
    return first if run == 1 else first + np.random.default_rng(0).integers(run, size=len(first))


def positions(rows: RowIndices, n: int) -> RowIndices:
    """The position in `rows` (m,) of each of n rows: (n,), -1 for those that are not among them.

    Examples
    --------
    >>> positions(np.array([3, 0]), 4)
    array([ 1, -1, -1,  0])
    """
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    return place


def group_by_label(labels: Labels, k: int) -> list[RowIndices]:
    """The rows of each label 0, ..., k - 1, in ascending order; labels (n,)."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=k))[:-1])


def sample_classes(y: Labels, size: int, rng: np.random.Generator) -> tuple[RowIndices, Vector]:
    """About `size` rows, ascending, and for each (m,) how many rows of its class it stands for.

    Each class has its share of the rows; a rare one all its rows, or half as many as it had if the classes were equal,
    and one at least.

    Examples
    --------
    >>> rows, factors = sample_classes(np.repeat([0, 1], [10, 990]), 100, np.random.default_rng(0))
    >>> print(np.bincount(rows > 9), np.unique(factors))
    [10 90] [ 1. 11.]
    """
    groups = group_by_label(y, int(y.max()) + 1)
    counts = np.array([len(group) for group in groups])
    least = np.minimum(counts, max(1, size // (2 * len(counts))))
    others = counts - least
    wanted = least + np.minimum(others, others * (size - least.sum()) // max(1, others.sum()))
    rows = np.sort(
        np.concatenate([rng.choice(group, m, replace=False) for group, m in zip(groups, wanted, strict=True)])
    )
    return rows, (counts / np.maximum(wanted, 1))[y[rows]]


def find_equal_rows(X: Array, labels: Labels) -> RowIndices | None:
    """For each row of X (n, d), the number (n,) of its distinct row and label, in the order of their first rows.

    None for n <= 512, and where more than half of 512 random rows are distinct: there is little to merge.
    """
    n = len(labels)
    if n <= SAMPLED_ROWS:
        return None
    sample = np.sort(np.random.default_rng(0).choice(n, SAMPLED_ROWS, replace=False))
    if len(set(_row_keys(X[sample], labels[sample]))) > SAMPLED_ROWS // 2:
        return None
    first: dict[tuple[bytes, int], int] = {}
    numbers = np.empty(n, np.intp)
    for rows in row_blocks(n):
        numbers[rows] = [first.setdefault(key, len(first)) for key in _row_keys(X[rows], labels[rows])]
    return numbers


def _row_keys(X: Array, labels: Labels) -> Iterator[tuple[bytes, int]]:
    """The bytes of each row, and its label."""
    rows = np.ascontiguousarray(X)
    keys: list[Any] = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel().tolist()
    return zip(keys, labels.tolist(), strict=True)


def occupied_columns(X: Rows) -> tuple[Rows, RowIndices | None]:
    """X (n, d) restricted to its m columns that hold values, (n, m), and the numbers of these, ascending.

    X itself and None, unless it is CSR with fewer entries than columns: else X is longer than a vector of d.
    O(nnz log nnz). The values are shared.
    """
    if not sp.issparse(X) or X.nnz >= X.shape[1]:
        return X, None
    columns, indices = np.unique(X.indices, return_inverse=True)
    return type(X)((X.data, indices.astype(X.indices.dtype), X.indptr), (X.shape[0], len(columns))), columns


def restore_columns(X: Rows, columns: RowIndices | None, d: int) -> Rows:
    """X (n, m) of the columns that `occupied_columns` returned, CSR or dense, with all d columns again."""
    if columns is None:
        return X
    if sp.issparse(X):
        return type(X)((X.data, columns[X.indices], X.indptr), (X.shape[0], d))
    restored = np.zeros((len(X), d), X.dtype)
    restored[:, columns] = X
    return restored
