"""The partitions of a dask collection: in this process as delayed objects, on the workers as checked arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._config import SMALL_BYTES
from ..csr import check_sparse

_FEW_CHUNKS = 16  # of a collection of at most `SMALL_BYTES` each


def is_dask_collection(X: Any) -> bool:
    """Whether X is a dask collection. Imports nothing."""
    return hasattr(X, "__dask_graph__")


def check_widths(widths: Sequence[int]) -> None:
    """Raise a ValueError unless all partitions have as many columns as the first."""
    for number, width in enumerate(widths):
        if width != widths[0]:
            raise ValueError(
                f"X must have the same columns everywhere: partition {number} has {width}, partition 0 has {widths[0]}"
            )


def partitions_of(X: Any) -> list[Any]:
    """The partitions of a dask collection, all columns in each, as delayed objects; many small chunks are joined."""
    X = _with_few_chunks(X.rechunk({1: -1})) if hasattr(X, "rechunk") else X
    partitions: list[Any] = np.ravel(X.to_delayed()).tolist()
    return partitions


def _with_few_chunks(X: Any) -> Any:
    """A dask array whose many small chunks are joined to about `_FEW_CHUNKS`: each chunk costs a task in each pass."""
    sizes, row_bytes = X.chunks[0], X.shape[1] * X.dtype.itemsize
    starts = range(0, len(sizes), max(1, len(sizes) // _FEW_CHUNKS))
    joined = tuple(sum(sizes[start : start + starts.step]) for start in starts)
    are_small = max(joined) * row_bytes <= SMALL_BYTES  # False of unknown sizes, which are NaN
    return X.rechunk({0: joined}) if starts.step > 1 and are_small and not sp.issparse(X._meta) else X


# --------------------------------------------------------------------------------------------------- on the workers


def check_partition(partition: Any, number: int) -> Any:
    """The partition by `as_rows`. Raises a ValueError that names it unless all its values are finite numbers."""
    try:
        X = as_rows(partition)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must hold numbers: partition {number} does not ({error})") from error
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise ValueError(f"Input X contains NaN or infinity, in partition {number}")
    return X


def as_rows(partition: Any) -> Any:
    """A partition as a float32 or float64 array in C order, or as a checked CSR array."""
    if sp.issparse(partition):
        check_sparse(partition)
        partition = sp.csr_array(partition)
        return partition.astype(_float_of(partition.dtype), copy=False)
    values = np.asarray(partition)
    return np.ascontiguousarray(values, dtype=_float_of(values.dtype))


def _float_of(dtype: Any) -> type:
    return np.float32 if dtype == np.float32 else np.float64
