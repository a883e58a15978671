"""SciPy's sparse arrays on their way into compiled loops: their indices are checked, before anyone trusts them.

SciPy checks indices only where it is asked to, and its own compiled code trusts them: arrays that are not what their
shape says make it read and write anywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._native import csr

_LINES = {"csr": ("row", "column"), "csc": ("column", "row"), "bsr": ("block of rows", "block column")}


def make_csr(X: Any) -> csr.CSRMatrix:
    """The checked view of a SciPy CSR array that compiled loops take: O(n + nnz).

    Parameters
    ----------
    X : csr_array of float32 or float64
        Its arrays are shared where they are contiguous and of SciPy's usual dtypes, else copied. They must not be
        changed as long as the view is in use.

    Raises
    ------
    ValueError
        Naming the first row whose indices are not within X's shape, or whose place in the arrays is not in them.
    """
    indices, indptr = _index_arrays(X)
    if len(indptr) != X.shape[0] + 1:
        raise ValueError(f"the CSR array has {X.shape[0]} rows, but its indptr is of {len(indptr) - 1} rows")
    return csr.CSRMatrix(np.ascontiguousarray(X.data), indices, indptr, X.shape[1])


def check_sparse(X: Any) -> None:
    """Raise a ValueError if the indices of a SciPy sparse array are not within its shape, or not in its arrays.

    Parameters
    ----------
    X : sparse array of any format
        Only what SciPy itself does not check when it converts the array to CSR.
    """
    if X.ndim != 2:  # scikit-learn refuses it
        return
    if X.format in _LINES:
        _check_compressed(X)
    elif X.format == "coo":
        _check_coordinates(X)
    elif X.format == "lil":
        _check_lists(X)
    elif X.format == "dia" and (X.data.ndim != 2 or X.offsets.shape != (len(X.data),)):
        raise ValueError(f"the DIA array has {X.data.shape} values for {X.offsets.size} diagonals")


def with_usual_arrays(X: Any) -> Any:
    """A CSR array of contiguous arrays, indices and indptr of one dtype: X itself, or one that shares what it can."""
    data, (indices, indptr) = np.ascontiguousarray(X.data), _index_arrays(X)
    if data is X.data and indices is X.indices and indptr is X.indptr:
        return X
    return type(X)((data, indices, indptr), X.shape)


def _check_compressed(X: Any) -> None:
    (n_lines, n_others), data = X.shape, np.asarray(X.data)
    if X.format == "csc":
        n_lines, n_others = n_others, n_lines
    if X.format == "bsr":
        if data.ndim != 3 or 0 in data.shape[1:] or n_lines % data.shape[1] or n_others % data.shape[2]:
            raise ValueError(f"the BSR array of shape {X.shape} has blocks of shape {data.shape[1:]}")
        n_lines, n_others = n_lines // data.shape[1], n_others // data.shape[2]
    elif data.ndim != 1:
        raise ValueError(f"the data of the {X.format.upper()} array must have one dimension, got {data.ndim}")
    indices, indptr = _index_arrays(X)
    csr.check_arrays(indices, indptr, len(data), n_lines, n_others, X.format.upper(), *_LINES[X.format])


def _check_coordinates(X: Any) -> None:
    for axis, (index, size) in enumerate(zip(X.coords, X.shape, strict=True)):
        numbers = _integers(index, f"the indices of the COO array along axis {axis}")
        if numbers.shape != np.shape(X.data):
            raise ValueError(
                f"the COO array has {np.size(X.data)} values, but {numbers.size} indices along axis {axis}"
            )
        if numbers.size and (numbers.min() < 0 or numbers.max() >= size):
            entry = int(np.argmax((numbers < 0) | (numbers >= size)))
            raise ValueError(
                f"entry {entry} of the COO array has the index {numbers[entry]} along axis {axis}, "
                f"which must be in [0, {size})"
            )


def _check_lists(X: Any) -> None:
    n_rows = X.shape[0]
    if X.rows.shape != (n_rows,) or X.data.shape != (n_rows,):
        raise ValueError(f"the LIL array of {n_rows} rows has lists of {len(X.rows)} and {len(X.data)} rows")
    for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(columns) != len(values):
            raise ValueError(f"row {i} of the LIL array has {len(values)} values in {len(columns)} columns")
        if columns and (min(columns) < 0 or max(columns) >= X.shape[1]):
            wrong = next(column for column in columns if not 0 <= column < X.shape[1])
            raise ValueError(f"row {i} of the LIL array has the column index {wrong}, must be in [0, {X.shape[1]})")


def _index_arrays(X: Any) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """`indices` and `indptr`, contiguous and of one dtype, int32 or int64; `indices` is copied only if it must be."""
    indices = _integers(X.indices, f"the {X.format.upper()} array's indices")
    indptr = _integers(X.indptr, f"the {X.format.upper()} array's indptr")
    if indices.dtype == np.int32 and indptr.dtype != np.int32:
        if not len(indptr) or (indptr.min() >= 0 and indptr.max() <= np.iinfo(np.int32).max):
            indptr = indptr.astype(np.int32)
        else:
            indices = indices.astype(np.int64)
    return indices, indptr.astype(indices.dtype, copy=False)


def _integers(values: Any, name: str) -> NDArray[np.integer]:
    """Indices as a contiguous array of int32 or int64."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ValueError(f"{name} must be integers in one dimension, got {array.dtype} in {array.ndim}")
    if array.dtype not in (np.int32, np.int64):
        array = array.astype(np.int64)
    return np.ascontiguousarray(array)
