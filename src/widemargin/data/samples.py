"""Samples as kernels take them: tiles of inner products of dense, CSR or Gram data.

Every kind has `take` (a batch of rows), `inner` (one tile of inner products with another batch of the same kind) and
`squares` (squared norms); code outside this file does not depend on the kind. CSR data share their storage with
design matrices (`csr.CSRArray`); dense data do not, because kernels need them in C order, converted and centred.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from .._native import csr, dense, linear
from .._threads import value_blocks
from .._types import Array, DType, RowIndices, Rows, Vector
from .csr import CSRArray, canonical, prefers_csr
from .origin import FAR, origin_distance, shifted, subtract_row
from .rows import spread_rows

Selection = slice | RowIndices

_MIN_STORED = 0.5  # of the CSR rows have an entry in a column to be shifted
_SPARSE_COST = 4  # cost of a non-zero, in multiply-adds of a dense matrix product


def row_products(X: Rows, Z: Array) -> Array:
    """X Zᵀ (n, m) of the rows of X (n, d), dense or CSR, and Z (m, d): those of a row do not depend on the others."""
    if sp.issparse(X):
        return np.ascontiguousarray(X @ Z.T)
    out = np.empty((X.shape[0], len(Z)), X.dtype)
    dense.inner_products(np.ascontiguousarray(X), Z, out)
    return out


class Samples(Protocol):
    """A batch of n samples.

    Attributes
    ----------
    dtype : dtype
        Of the tiles.
    precision : dtype
        Of the inner products, before they are written to tiles: `dtype`, or float64.
    is_sparse : bool
        Whether the rows are stored as CSR.
    nbytes : int
        Bytes held beside the caller's own array.
    row_bytes : int
        Mean bytes of a row of a gathered batch.
    row_cost : int
        Mean cost of an inner product with a row, in multiply-adds of a dense matrix product.
    shift : ndarray of shape (d,) or None
        What was subtracted from the rows.
    """

    dtype: DType
    precision: DType
    is_sparse: bool
    nbytes: int
    row_bytes: int
    row_cost: int
    shift: Array | None

    def __len__(self) -> int: ...

    @property
    def squares(self) -> Vector:
        """Squared norms, of shape (n,)."""

    def take(self, rows: Selection) -> Samples:
        """A batch of some of the rows: a view for a slice, a copy for indices."""

    def inner(self, other: Any, out: Array) -> None:
        """Write the inner products with another batch of this kind into out (n, len(other))."""

    def toarray(self) -> Array:
        """The batch as a dense (n, d) array."""

    def compiled(self) -> Any:
        """The rows as compiled loops take them: a dense array, or a CSRMatrix."""

    def stored(self) -> Rows:
        """The rows as an array or SciPy CSR array: dense (centred for distances), CSR, or rows of the Gram matrix."""

    def pair_with(self, X: Rows) -> tuple[Samples, Samples]:
        """This batch and the rows of X, both of this kind, so that `inner` takes them."""

    def astype(self, precision: DType, dtype: DType) -> Samples:
        """The same samples, with inner products in `precision` and tiles of `dtype`."""


class DenseSamples:
    """Rows of an array in C order, minus a `shift` (d,) for kernels of distances, which it does not change."""

    def __init__(
        self,
        X: Array,
        *,
        shift: Array | None = None,
        squares: Vector | None = None,
        dtype: DType | None = None,
        source: tuple[Array, Selection] | None = None,
        is_copy: bool = False,
    ) -> None:
        self.X = X
        self.shift = shift
        self.dtype = dtype or X.dtype
        self.source = source  # the caller's array, and which of its rows: not yet rounded by centring
        self.precision, self.is_sparse = X.dtype, False
        self.nbytes = X.nbytes if is_copy else 0
        self.row_bytes, self.row_cost = int(X.shape[1] * X.itemsize), int(X.shape[1])
        self._squares = squares

    def __len__(self) -> int:
        return len(self.X)

    def __getstate__(self) -> dict[str, Any]:
        """Of the caller's array only the rows of this batch."""
        return {**self.__dict__, "source": _own_source(self)}

    @property
    def squares(self) -> Vector:
        """Squared norms (n,), in float64, computed once."""
        if self._squares is None:
            squares = np.empty(len(self.X))
            linear.squared_norms(self.X, squares)
            self._squares = squares  # whole, as other threads may ask for it meanwhile
        return self._squares

    def take(self, rows: Selection) -> DenseSamples:
        """A view for a slice, a copy for indices."""
        source = None if self.source is None else (self.source[0], _rows_of_rows(self.source[1], rows, len(self)))
        squares = self.squares[rows]
        return DenseSamples(self.X[rows], shift=self.shift, squares=squares, dtype=self.dtype, source=source)

    def inner(self, other: DenseSamples, out: Array) -> None:
        """Write X Zᵀ into out, by packed panels of Z."""
        dense.inner_products(self.X, other.X, out)

    def toarray(self) -> Array:
        """The array, as shifted."""
        return self.X

    stored = compiled = toarray

    def pair_with(self, X: Rows) -> tuple[Samples, Samples]:
        """This batch, and the rows of X as a dense batch with the same shift."""
        rows = X.toarray() if sp.issparse(X) else X
        if self.shift is None:
            return self, DenseSamples(np.ascontiguousarray(rows, self.precision), dtype=self.dtype)
        return self, DenseSamples(shifted(rows, self.shift, self.precision), dtype=self.dtype)

    def astype(self, precision: DType, dtype: DType) -> DenseSamples:
        """A converted copy, centred in the new precision."""
        if self.shift is None or self.source is None:
            return DenseSamples(self.X.astype(precision), shift=self.shift, dtype=dtype, is_copy=True)
        X, rows = self.source
        centred = shifted(X[rows], self.shift, precision)
        return DenseSamples(centred, shift=self.shift, dtype=dtype, source=self.source, is_copy=True)


class LazilyCentredSamples(DenseSamples):
    """Rows of an array of the caller, converted and centred batch by batch: `X` here is the caller's own array.

    No copy is held. Code that takes a batch often should hold the batch.
    """

    def __init__(self, X: Array, shift: Vector, precision: DType, dtype: DType) -> None:
        super().__init__(X, shift=shift.astype(np.promote_types(X.dtype, precision)), dtype=dtype)
        self.precision = precision
        self.row_bytes = int(X.shape[1] * precision.itemsize)

    @property
    def squares(self) -> Vector:
        """Squared norms (n,), in float64, computed once, batch by batch."""
        if self._squares is None:
            blocks = value_blocks(*self.X.shape)
            self._squares = np.concatenate([self._batch(rows).squares for rows in blocks])
        return self._squares

    def take(self, rows: Selection) -> DenseSamples:
        """A centred copy of some of the rows."""
        batch = self._batch(rows)
        batch._squares = self.squares[rows]
        return batch

    def _batch(self, rows: Selection) -> DenseSamples:
        shift = np.asarray(self.shift)
        centred = shifted(self.X[rows], shift, self.precision)
        return DenseSamples(centred, shift=shift, dtype=self.dtype, source=(self.X, rows))

    def inner(self, other: DenseSamples, out: Array) -> None:
        """Write X Zᵀ into out; centres all rows first."""
        self.take(slice(0, len(self))).inner(other, out)

    def toarray(self) -> Array:
        """A centred copy."""
        return self.take(slice(0, len(self))).X

    stored = compiled = toarray

    def astype(self, precision: DType, dtype: DType) -> DenseSamples:
        """The same rows, converted and centred in the new precision, batch by batch: still without a copy."""
        return LazilyCentredSamples(self.X, np.asarray(self.shift, np.float64), precision, dtype)


class SparseSamples:
    """Rows of CSR storage, minus a `shift` (d,) that is zero in sparse columns: a tile costs non-zeros, not columns."""

    def __init__(
        self,
        X: CSRArray,
        *,
        shift: Array | None = None,
        squares: Vector | None = None,
        dtype: DType | None = None,
        source: tuple[Any, Selection] | None = None,
        is_copy: bool = False,
    ) -> None:
        self.X = X
        self.shift = shift
        self.dtype = dtype or X.dtype
        self.source = source  # with a shift, as of `DenseSamples`
        self.precision, self.is_sparse = X.dtype, True
        self.nbytes = X.nbytes if is_copy else 0
        self.row_bytes = 1 + X.nbytes // max(1, len(X))
        self.row_cost = _SPARSE_COST * X.nnz // max(1, len(X))
        self._squares = squares

    def __len__(self) -> int:
        return len(self.X)

    def __getstate__(self) -> dict[str, Any]:
        """Of the caller's array only the rows of this batch."""
        return {**self.__dict__, "source": _own_source(self)}

    @property
    def squares(self) -> Vector:
        """Squared norms (n,), in float64, computed once, block by block."""
        if self._squares is None:
            X = self.stored()
            blocks = value_blocks(X.shape[0], 8 * X.nnz // max(1, X.shape[0]))  # SciPy copies a block, in each thread
            self._squares = np.concatenate([np.empty(0), *(_squared_norms(X[rows]) for rows in blocks)])
        return self._squares

    def take(self, rows: Selection) -> SparseSamples:
        """A view for a slice, a copy for indices."""
        source = None if self.source is None else (self.source[0], _rows_of_rows(self.source[1], rows, len(self)))
        squares = self.squares[rows]
        return SparseSamples(self.X[rows], shift=self.shift, squares=squares, dtype=self.dtype, source=source)

    def inner(self, other: SparseSamples, out: Array) -> None:
        """Write X Zᵀ into out, by the non-zeros of X and dense panels of Z."""
        if out.dtype == self.precision:
            csr.inner_products(self.X.view, other.X.view, out)
            return
        exact = np.empty(out.shape, self.precision)
        csr.inner_products(self.X.view, other.X.view, exact)
        out[...] = exact

    def toarray(self) -> Array:
        """A dense copy."""
        dense: Array = self.stored().toarray()
        return dense

    def compiled(self) -> csr.CSRMatrix:
        """The compiled view."""
        return self.X.view

    def stored(self) -> sp.csr_array:
        """A SciPy CSR array."""
        return self.X.to_scipy()

    def pair_with(self, X: Rows) -> tuple[Samples, Samples]:
        """This batch, and the rows of X as CSR with the same shift."""
        rows = canonical(X) if self.shift is None else subtract_row(canonical(X), self.shift)
        return self, SparseSamples(CSRArray.of(rows.astype(self.precision, copy=False)), dtype=self.dtype)

    def astype(self, precision: DType, dtype: DType) -> SparseSamples:
        """A converted copy, shifted in the new precision."""
        if self.shift is None or self.source is None:
            return SparseSamples(CSRArray.of(self.stored().astype(precision)), dtype=dtype, is_copy=True)
        X, rows = self.source
        moved = CSRArray.of(subtract_row(X[rows], self.shift).astype(precision, copy=False))
        return SparseSamples(moved, shift=self.shift, dtype=dtype, source=self.source, is_copy=True)


class GramSamples:
    """Rows of a given Gram matrix K, by their indices: ``A.inner(B, out)`` copies K[indices of A, indices of B]."""

    shift: Array | None = None
    is_sparse = False
    nbytes = 0
    row_bytes = 8
    row_cost = 0

    def __init__(self, gram: Array, index: RowIndices, *, dtype: DType | None = None) -> None:
        self.gram = gram
        self.index = index
        self.dtype = self.precision = dtype or gram.dtype

    def __len__(self) -> int:
        return len(self.index)

    @property
    def squares(self) -> Vector:
        """Diagonal entries (n,), in float64."""
        return np.asarray(self.gram[self.index, self.index], np.float64)

    def take(self, rows: Selection) -> GramSamples:
        """A batch of some of the indices."""
        return GramSamples(self.gram, self.index[rows], dtype=self.dtype)

    def inner(self, other: GramSamples, out: Array) -> None:
        """Copy the entries into out."""
        out[...] = self.gram[np.ix_(self.index, other.index)]

    def toarray(self) -> Array:
        """The rows of the Gram matrix."""
        return np.asarray(self.gram[self.index])

    stored = compiled = toarray

    def pair_with(self, X: Rows) -> tuple[Samples, Samples]:
        """These indices and those of new rows, both into Xᵀ, where X = K(new rows, training rows)."""
        return GramSamples(X.T, self.index), GramSamples(X.T, np.arange(X.shape[0]))

    def astype(self, precision: DType, dtype: DType) -> GramSamples:
        """The same entries, in tiles of another dtype."""
        return GramSamples(self.gram, self.index, dtype=dtype)


def make_samples(X: Rows, form: str = "rows", go_on: Callable[[], bool] = lambda: True) -> Samples:
    """Wrap validated data of shape (n, d) in the form that a kernel takes, its `sample_form`.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d), float32 or float64
    form : {"rows", "products", "distances", "entries"}
        What the kernel is a function of. For "products", dense data are held as CSR where three quarters of them are
        zero; for "distances" they are also centred, which keeps more of their digits in float32, and of CSR data the
        columns without zeros are, if these are far from the origin. For "entries", X is the Gram matrix.
    go_on : callable
        Called before each block of rows is centred. Where it returns False, the samples are X itself, not centred.
    """
    if form == "entries":
        return GramSamples(X, np.arange(X.shape[0]))
    if sp.issparse(X):
        return _shifted(canonical(X)) if form == "distances" else SparseSamples(CSRArray.of(canonical(X)))
    if form != "rows" and prefers_csr(X):
        return SparseSamples(CSRArray.of(canonical(X)), is_copy=True)
    if form != "distances" or not len(X):
        return DenseSamples(np.ascontiguousarray(X))
    return _centred(X, go_on)


def view_samples(X: Rows, form: str = "rows") -> Samples:
    """`make_samples` without a centred copy: of dense rows for "distances", each batch is centred when it is taken."""
    if form != "distances" or sp.issparse(X) or not len(X) or prefers_csr(X):
        return make_samples(X, form)
    return LazilyCentredSamples(np.ascontiguousarray(X), X.mean(axis=0, dtype=np.float64), X.dtype, X.dtype)


def converted(samples: Samples, precision: DType, dtype: DType) -> Samples:
    """The samples with inner products in `precision` and tiles of `dtype`: a copy only where these differ."""
    return samples if (samples.precision, samples.dtype) == (precision, dtype) else samples.astype(precision, dtype)


def _squared_norms(X: sp.csr_array) -> Vector:
    """Squared norms of the rows (n,), in float64."""
    squares = X.astype(np.float64)
    squares.data **= 2
    return np.asarray(squares.sum(axis=1))


def _shifted(X: sp.csr_array) -> SparseSamples:
    """X (n, d) minus a row that has an entry in each column that is far from the origin and has few zeros.

    X itself if it has fewer entries than columns: the row would be longer than X.
    """
    if X.nnz < X.shape[1]:
        return SparseSamples(CSRArray.of(X))
    shift = np.zeros(X.shape[1], X.dtype)
    counts = np.zeros(X.shape[1], np.intp)
    for values in value_blocks(X.nnz, 1):  # NumPy converts the indices
        counts += np.bincount(X.indices[values], minlength=X.shape[1])
    if counts.max(initial=0) >= _MIN_STORED * X.shape[0] > 0:
        probe = X[spread_rows(X.shape[0])].astype(np.float64).tocsc()
        for column in np.flatnonzero(counts >= _MIN_STORED * X.shape[0]):
            stored = probe.data[probe.indptr[column] : probe.indptr[column + 1]]
            if origin_distance(stored[:, None]) > FAR:
                shift[column] = stored.mean()
    if not shift.any():
        return SparseSamples(CSRArray.of(X))
    moved = CSRArray.of(subtract_row(X, shift))
    return SparseSamples(moved, shift=shift, source=(X, slice(0, X.shape[0])), is_copy=True)


def _centred(X: Array, go_on: Callable[[], bool]) -> DenseSamples:
    """X (n, d) minus its mean row, in C order; X itself if `go_on` returns False meanwhile."""
    if not go_on():
        return DenseSamples(np.ascontiguousarray(X))
    shift = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    centred = np.empty(X.shape, X.dtype)
    for rows in value_blocks(*X.shape):
        if not go_on():
            return DenseSamples(np.ascontiguousarray(X))
        np.subtract(X[rows], shift, out=centred[rows])
    return DenseSamples(centred, shift=shift, source=(X, slice(0, len(X))), is_copy=True)


def _own_source(batch: DenseSamples | SparseSamples) -> tuple[Any, Selection] | None:
    """The rows of the caller's array that are those of the batch."""
    return None if batch.source is None else (batch.source[0][batch.source[1]], slice(0, len(batch)))


def _rows_of_rows(outer: Selection, inner: Selection, n: int) -> Selection:
    """The selection `outer[inner]`, where `outer` selects n rows."""
    if not isinstance(outer, slice):
        return np.asarray(outer[inner])
    if not isinstance(inner, slice):
        return np.asarray(inner + outer.start)
    start, stop, _ = inner.indices(n)
    return slice(outer.start + start, outer.start + stop)


class SampleSubset:
    """The rows `index` of `base`, gathered for each tile."""

    def __init__(self, base: Samples, index: RowIndices) -> None:
        self.base = base
        self.index = index
        self.dtype, self.precision, self.is_sparse = base.dtype, base.precision, base.is_sparse
        self.row_bytes, self.row_cost = base.row_bytes, base.row_cost
        self.nbytes, self.shift = base.nbytes, base.shift

    def __len__(self) -> int:
        return len(self.index)

    @property
    def squares(self) -> Vector:
        """Squared norms (m,)."""
        return np.asarray(self.base.squares[self.index])

    def take(self, rows: Selection) -> Samples:
        """A batch of the base."""
        return self.base.take(self.index[rows])

    def inner(self, other: Samples, out: Array) -> None:
        """Write the inner products with another batch into out; gathers all rows first."""
        self.base.take(self.index).inner(other, out)

    def toarray(self) -> Array:
        """A dense copy."""
        return self.base.take(self.index).toarray()

    def compiled(self) -> Any:
        """The gathered rows."""
        return self.base.take(self.index).compiled()

    def stored(self) -> Rows:
        """The gathered rows, as stored."""
        return self.base.take(self.index).stored()

    def pair_with(self, X: Rows) -> tuple[Samples, Samples]:
        """The gathered rows and those of X, both of the base's kind."""
        return self.base.take(self.index).pair_with(X)

    def astype(self, precision: DType, dtype: DType) -> Samples:
        """A converted copy."""
        return self.base.take(self.index).astype(precision, dtype)
