"""Dask collections block by block: functions of rows as one task a block, and blocks one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._memory import MemoryPlan
from .partitions import is_dask_collection, partitions_of


def map_rows(function: Callable[[Any], Any], X: Any) -> Any:
    """Apply a function of rows to each block of a dask collection, lazily.

    Parameters
    ----------
    function : callable
        Maps rows (m, d), m >= 1, to an array of shape (m,) or (m, k, ...), or to a sparse one. It is one node of the
        graph: a worker receives it once, however many blocks it computes. It is called here once, on one or two rows of
        zeros, for the dtype and the shape of the result.
    X : dask array or dask data frame of shape (n, d)
        Blocks of NumPy, sparse arrays or data frames. Columns in several chunks are joined.

    Returns
    -------
    dask array of shape (n,) or (n, k, ...)
        With the blocks of X; of a data frame their lengths are unknown.

    Raises
    ------
    ValueError
        If X does not have two dimensions, or what `function` raises on the example.
    """
    import dask.array as da
    from dask import delayed

    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    example = function(_example_rows(X))
    example = example if sp.issparse(example) else np.asarray(example)
    empty, width = example[:0], example.shape[1:]
    shared = delayed(_SkipEmpty(function, empty), pure=False, traverse=False)
    if hasattr(X, "to_dask_array"):  # a data frame: its blocks keep their column names
        blocks = [delayed(_apply)(partition, shared) for partition in X.to_delayed()]
        return da.concatenate([da.from_delayed(block, (np.nan, *width), meta=empty) for block in blocks])
    rows = X.rechunk({1: -1})
    chunks = (rows.chunks[0], *((k,) for k in width))
    shape = {"chunks": chunks, "new_axis": list(range(2, len(chunks)))} if width else {"drop_axis": 1}
    return da.map_blocks(_apply, rows, shared, dtype=empty.dtype, meta=empty, **shape)


def iterate_blocks(X: Any) -> Iterator[Any]:
    """The blocks of a dask collection that have rows, in order: each computed, and in this process, when asked for."""
    for partition in partitions_of(X):
        rows = partition.compute()
        if rows.shape[0]:
            yield rows


def compute_rows(X: Any, memory: MemoryPlan) -> Any:
    """The rows of a dask collection in this process: an array, a CSR array or a data frame. Other data as they are.

    Raises
    ------
    ValueError
        As soon as the blocks computed so far exceed the memory budget.
    """
    if not is_dask_collection(X):
        return X
    blocks, size = [], 0
    for block in iterate_blocks(X):
        size += _stored_bytes(block)
        blocks.append(block)
        memory.require(size, f"{len(blocks)} blocks of X, which are computed into memory here", allowed=0)
    return _join_blocks(blocks, X)


def compute_values(values: Any) -> Any:
    """A dask collection with one number a row as an array; other values as they are."""
    return values.compute() if is_dask_collection(values) else values


def _join_blocks(blocks: list[Any], X: Any) -> Any:
    """The rows of all blocks below one another; of none those of the collection's empty example."""
    if hasattr(X, "_meta_nonempty"):
        from dask.dataframe.methods import concat

        return concat(blocks) if blocks else X._meta
    if not blocks:
        return np.empty((0, X.shape[1]))
    return sp.csr_array(sp.vstack(blocks)) if sp.issparse(blocks[0]) else np.concatenate(blocks)


def _stored_bytes(block: Any) -> int:
    if hasattr(block, "memory_usage"):
        return int(block.memory_usage(index=True, deep=True).sum())
    arrays = (block.data, block.indices, block.indptr) if sp.issparse(block) else (block,)
    return sum(array.nbytes for array in arrays)


class _SkipEmpty:
    """`function`, with `empty` as its value on a block without rows, such as a filter may leave."""

    def __init__(self, function: Callable[[Any], Any], empty: Any) -> None:
        self._function = function
        self._empty = empty

    def __call__(self, rows: Any) -> Any:
        return self._function(rows) if rows.shape[0] else self._empty


def _apply(rows: Any, function: Callable[[Any], Any]) -> Any:
    return function(rows)


def _example_rows(X: Any) -> Any:
    """A row of zeros, of the kind of X's blocks: dask's own examples have missing values, and labels of categories."""
    if hasattr(X, "_meta_nonempty"):
        return type(X._meta)(np.zeros((1, X.shape[1])), columns=X.columns)
    zeros = np.zeros((1, X.shape[1]), X.dtype)
    return sp.csr_array(zeros) if sp.issparse(X._meta) else zeros
