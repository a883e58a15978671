"""CSR storage for kernel and linear machines: checked indices, the design matrix, conversion from dense arrays.

SciPy checks the indices of a sparse array only on request, and its compiled code trusts them: arrays that contradict
their shape make it read and write outside its memory. Every sparse array is checked once, where it enters the library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._native import csr
from .._threads import ThreadTeam
from .._types import Array, DType, Given, Matrix, RowIndices, Rows
from .abstract_matrix import RowAccess
from .dense import read_only
from .origin import FAR, origin_distance
from .rows import SAMPLED_ROWS, spread_rows

_SPARSE_DENSITY = 0.25  # up to this share of non-zeros, CSR tiles are faster than the matrix product (decision 0007)
_SPARSE_COLUMNS = 32  # narrower dense data stay dense: their products are cheap
# For messages: what indptr and indices of a format count
_LINES = {"csr": ("row", "column"), "csc": ("column", "row"), "bsr": ("block of rows", "block column")}


@dataclass(frozen=True)
class CSRArray:
    """Consecutive rows of a SciPy CSR array, with the view of them that compiled loops take.

    Attributes
    ----------
    array : csr_array
        The whole SciPy array.
    first : int
        Index in `array` of the first of these rows.
    view : CSRMatrix
        The compiled view of these rows alone.
    """

    array: sp.csr_array
    first: int
    view: csr.CSRMatrix

    @classmethod
    def of(cls, X: sp.csr_array) -> Self:
        """All rows of X, its indices checked in O(n + nnz)."""
        return cls(X, 0, make_csr(X))

    def __len__(self) -> int:
        return len(self.view)

    def __getitem__(self, rows: slice | RowIndices) -> CSRArray:
        """Return a view for a slice of step 1, a copy for indices. (SciPy's own slice copies, at 0.1 ms or more.)"""
        if not isinstance(rows, slice):
            return CSRArray.of(self.array[self.first + rows])
        start, stop, _ = rows.indices(len(self))
        return CSRArray(self.array, self.first + start, self.view.rows(start, max(start, stop)))

    def __reduce__(self) -> Any:
        return CSRArray.of, (self.to_scipy(),)

    @property
    def dtype(self) -> DType:
        """Dtype of the values."""
        dtype: DType = self.array.dtype
        return dtype

    @property
    def nnz(self) -> int:
        """Number of stored entries of these rows."""
        return int(self.view.nnz)

    @property
    def nbytes(self) -> int:
        """Bytes of the values and column indices of these rows."""
        return int(self.array.data.itemsize + self.array.indices.itemsize) * self.nnz

    def to_scipy(self) -> sp.csr_array:
        """These rows as a SciPy array; a copy unless they are all of `array`."""
        is_all = len(self) == self.array.shape[0]
        return self.array if is_all else self.array[self.first : self.first + len(self)]


class SparseMatrix(RowAccess):
    """Samples in CSR storage, the columns of a row in any order, repeated or not."""

    def __init__(self, X: CSRArray, team: ThreadTeam) -> None:
        self._X = X
        self._team = team
        self.shape = X.array.shape
        self.row_arrays = X.view
        self.row_bytes = 1 + X.nbytes // max(1, self.shape[0])

    @property
    def origin_distance(self) -> float:
        """How far the samples are from the origin."""
        return origin_distance(self._X.to_scipy())

    def matvec(self, W: Matrix) -> Matrix:
        """W Xᵀ (k, n), in float64."""
        out = np.empty((len(W), self.shape[0]))
        csr.matvec(self._team.native, self._X.view, np.ascontiguousarray(W), out)
        return out

    def rmatvec(self, coef: Matrix, base: Matrix | None = None) -> Matrix:
        """(coef - base) X (k, d), in float64."""
        out = np.empty((len(coef), self.shape[1]))
        before = None if base is None else np.ascontiguousarray(base)
        csr.rmatvec(self._team.native, self._X.view, np.ascontiguousarray(coef), before, out)
        return out

    def gather(self, chosen: RowIndices) -> tuple[Array, RowIndices]:
        """A dense copy of the samples `chosen`."""
        return read_only(self._X[chosen].array.toarray()), np.arange(len(chosen))

    def take(self, chosen: RowIndices) -> SparseMatrix:
        """A copy of the samples `chosen`."""
        return SparseMatrix(self._X[chosen], self._team)


def canonical(X: Rows) -> sp.csr_array:
    """X as CSR without repeated entries; a sparse X, checked before, is shared where that is possible."""
    if not sp.issparse(X):
        return sp.csr_array(_nonzeros(X.T).T) if X.flags.f_contiguous else _nonzeros(np.ascontiguousarray(X))
    rows = sp.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def summed(X: Rows) -> Rows:
    """A CSR array with ascending columns in each row and none of them repeated: X itself if it is one, else a copy."""
    return X if sp.csr_array(X).has_canonical_format else type(X)(canonical(X))


def prefers_csr(X: Array, density: float = _SPARSE_DENSITY, n_columns: int = _SPARSE_COLUMNS) -> bool:
    """Whether few entries of a dense X (n, d) are not zero, and its column means are small beside its rows' norms.

    At most the share `density` of at least `n_columns` columns. (Columns with a large constant are better held dense
    and centred.) Judged by at least 512 rows spread over X.
    """
    if not len(X) or X.shape[1] < n_columns:
        return False
    probe = X[spread_rows(len(X), SAMPLED_ROWS)]
    if np.count_nonzero(probe) > density * probe.size:
        return False
    return origin_distance(probe) < FAR


def _nonzeros(X: Array) -> sp.csr_array:
    """A dense array in C order as CSR, in a fifth of SciPy's time."""
    indptr = np.empty(len(X) + 1, np.int64)
    csr.count_nonzeros(X, indptr)
    data, indices = np.empty(indptr[-1], X.dtype), np.empty(indptr[-1], np.int32)
    csr.copy_nonzeros(X, data, indices)
    narrow = indptr.astype(np.int32) if len(data) <= np.iinfo(np.int32).max else indptr  # SciPy has both of one width
    return sp.csr_array((data, indices, narrow), X.shape)


def make_csr(X: Rows) -> csr.CSRMatrix:
    """The checked view of a SciPy CSR array that compiled loops take: O(n + nnz).

    Parameters
    ----------
    X : csr_array of float32 or float64
        Its values and int32 indices are shared where they are contiguous; other indices are copied. They must not be
        changed as long as the view is in use.

    Raises
    ------
    ValueError
        Naming the first row with an index outside X's shape, or with a range of indptr outside its arrays.
    """
    indices, indptr = _index_arrays(X)
    if len(indptr) != X.shape[0] + 1:
        raise ValueError(f"the CSR array has {X.shape[0]} rows, but its indptr is of {len(indptr) - 1} rows")
    return csr.CSRMatrix(np.ascontiguousarray(X.data), indices, indptr, X.shape[1])


def row_arrays(X: Rows) -> Any:
    """The rows of a C-contiguous or CSR array for compiled code, without a copy of its values."""
    return make_csr(X) if hasattr(X, "indptr") else X


def check_sparse(X: Given) -> Rows:
    """Raise a ValueError if the indices of a SciPy sparse array are not within its shape, or not in its arrays.

    Parameters
    ----------
    X : sparse array of any format
        Only what SciPy itself does not check when it converts the array to CSR.

    Returns
    -------
    sparse array
        X itself; a CSR X of wider indices with the same values and indices of int32, which are converted here once.
    """
    if X.ndim != 2:  # scikit-learn refuses it
        return X
    if X.format in _LINES:
        return _check_compressed(X)
    if X.format == "coo":
        _check_coordinates(X)
    elif X.format == "lil":
        _check_lists(X)
    elif X.format == "dia" and (X.data.ndim != 2 or X.offsets.shape != (len(X.data),)):
        raise ValueError(f"the DIA array has {X.data.shape} values for {X.offsets.size} diagonals")
    return X


def _check_compressed(X: Rows) -> Rows:
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
    if X.format != "csr" or indices is X.indices or len(data) > np.iinfo(np.int32).max:
        return X
    return type(X)((X.data, indices, indptr.astype(np.int32)), X.shape)  # SciPy has both of one width


def _check_coordinates(X: Rows) -> None:
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


def _check_lists(X: Rows) -> None:
    n_rows = X.shape[0]
    if X.rows.shape != (n_rows,) or X.data.shape != (n_rows,):
        raise ValueError(f"the LIL array of {n_rows} rows has lists of {len(X.rows)} and {len(X.data)} rows")
    for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(columns) != len(values):
            raise ValueError(f"row {i} of the LIL array has {len(values)} values in {len(columns)} columns")
        if columns and (min(columns) < 0 or max(columns) >= X.shape[1]):
            wrong = next(column for column in columns if not 0 <= column < X.shape[1])
            raise ValueError(f"row {i} of the LIL array has the column index {wrong}, must be in [0, {X.shape[1]})")


def _index_arrays(X: Rows) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """`indices` and `indptr` as compiled loops take them, contiguous; shared with X where they are of these dtypes."""
    indices = _integers(X.indices, f"the {X.format.upper()} array's indices")
    indptr = _integers(X.indptr, f"the {X.format.upper()} array's indptr")
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    if indices.dtype != np.int32 and indices.size and (indices.min() < least or indices.max() > most):
        wrong = indices[np.argmax((indices < least) | (indices > most))]
        number = _LINES[X.format][1]
        raise ValueError(f"the {X.format.upper()} array has the {number} index {wrong}, which must be in [0, 2**31)")
    return indices.astype(np.int32, copy=False), indptr.astype(np.int64, copy=False)


def _integers(values: Any, name: str) -> NDArray[np.integer]:
    """Indices as a contiguous array of int32 or int64."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ValueError(f"{name} must be integers in one dimension, got {array.dtype} in {array.ndim}")
    if array.dtype not in (np.int32, np.int64):
        array = array.astype(np.int64)
    return np.ascontiguousarray(array)
