"""Batches of samples: where a kernel's inner products come from. Dense, sparse or a given Gram matrix, all alike.

Every kind has `take` (a batch of rows), `inner` (one tile of inner products with another batch of the kind) and
`squares` (squared norms). Nobody outside this file asks which kind it holds.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._native import csr
from .csr_samples import CsrRows, canonical, prefers_csr

Array = NDArray[np.floating]
Rows = slice | NDArray[np.integer]

_SPARSE_COST = 4  # of a non-zero, beside a column of the matrix product


class Samples(Protocol):
    """A batch of n samples of one dtype."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of tiles made of these samples."""

    @property
    def precision(self) -> np.dtype[Any]:
        """The dtype of their inner products: that of the tiles, or more exact."""

    @property
    def nbytes(self) -> int:
        """Bytes held beyond the caller's own array."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in a gathered batch, on average."""

    @property
    def row_cost(self) -> int:
        """What an inner product with a row costs on average, in multiply-adds of a matrix product."""

    def __len__(self) -> int: ...

    @property
    def squares(self) -> NDArray[np.float64]:
        """Squared norms, of shape (n,)."""

    def take(self, rows: Rows) -> Samples:
        """A batch of some of the rows: a view for a slice, a copy for indices."""

    def inner(self, other: Any, out: Array) -> None:
        """Write the inner products with another batch of this kind into out (n, len(other))."""

    def toarray(self) -> Array:
        """The batch as a dense (n, d) array."""

    def original(self) -> Any:
        """The batch as the user's own kind of matrix."""

    def against(self, X: Any) -> tuple[Samples, Samples]:
        """This batch and the rows of X, both of this kind, ready for a tile."""

    def astype(self, precision: np.dtype[Any], dtype: np.dtype[Any]) -> Samples:
        """The same samples with inner products and tiles of other dtypes."""


class DenseSamples:
    """Rows of a C-contiguous array, less a shift that distances do not notice."""

    def __init__(
        self,
        X: Array,
        *,
        shift: Array | None = None,
        squares: NDArray[np.float64] | None = None,
        dtype: np.dtype[Any] | None = None,
        source: tuple[Array, Rows] | None = None,
        own: bool = False,
    ) -> None:
        self.X = X
        self.shift = shift
        self.dtype = dtype or X.dtype
        self.source = source  # the caller's array and which of its rows these are: what centring has rounded
        self.own = own
        self._squares = squares

    @property
    def precision(self) -> np.dtype[Any]:
        """The rows' dtype."""
        return self.X.dtype

    @property
    def nbytes(self) -> int:
        """The centred or converted copy."""
        return self.X.nbytes if self.own else 0

    @property
    def row_bytes(self) -> int:
        """All columns."""
        return int(self.X.shape[1] * self.X.itemsize)

    @property
    def row_cost(self) -> int:
        """All columns."""
        return int(self.X.shape[1])

    def __len__(self) -> int:
        return len(self.X)

    @property
    def squares(self) -> NDArray[np.float64]:
        """Squared norms, accumulated in float64 once for the whole set."""
        if self._squares is None:
            self._squares = np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)
        return self._squares

    def take(self, rows: Rows) -> DenseSamples:
        """A batch of some of the rows."""
        source = None if self.source is None else (self.source[0], _rows_of_rows(self.source[1], rows, len(self)))
        squares = self.squares[rows]
        return DenseSamples(self.X[rows], shift=self.shift, squares=squares, dtype=self.dtype, source=source)

    def inner(self, other: DenseSamples, out: Array) -> None:
        """One matrix product."""
        np.matmul(self.X, other.X.T, out=out)

    def toarray(self) -> Array:
        """The rows themselves."""
        return self.X

    original = toarray

    def against(self, X: Any) -> tuple[Samples, Samples]:
        """The rows of X, made dense and shifted alike."""
        rows = (X.toarray() if sp.issparse(X) else X).astype(self.precision, copy=False)
        shifted = np.ascontiguousarray(rows if self.shift is None else rows - self.shift)
        return self, DenseSamples(shifted, dtype=self.dtype)

    def astype(self, precision: np.dtype[Any], dtype: np.dtype[Any]) -> DenseSamples:
        """Converted rows, centred in the new precision."""
        if self.shift is None or self.source is None:
            return DenseSamples(self.X.astype(precision), shift=self.shift, dtype=dtype, own=True)
        shift = self.shift.astype(precision)
        X, rows = self.source
        return DenseSamples(X[rows].astype(precision) - shift, shift=shift, dtype=dtype, source=self.source, own=True)


class SparseSamples:
    """Rows of a CSR array; a tile costs its non-zeros, not its columns."""

    def __init__(
        self,
        X: CsrRows,
        *,
        squares: NDArray[np.float64] | None = None,
        dtype: np.dtype[Any] | None = None,
        own: bool = False,
    ) -> None:
        self.X = X
        self.dtype = dtype or X.dtype
        self.own = own
        self._squares = squares

    @property
    def precision(self) -> np.dtype[Any]:
        """The values' dtype."""
        return self.X.dtype

    @property
    def nbytes(self) -> int:
        """The CSR copy of a dense array."""
        return self.X.nonzero_bytes * self.X.nnz if self.own else 0

    @property
    def row_bytes(self) -> int:
        """Values and column numbers."""
        return self.X.nonzero_bytes * self.X.nnz // max(1, len(self))

    @property
    def row_cost(self) -> int:
        """The non-zeros."""
        return _SPARSE_COST * self.X.nnz // max(1, len(self))

    def __len__(self) -> int:
        return len(self.X)

    @property
    def squares(self) -> NDArray[np.float64]:
        """Squared norms in float64."""
        if self._squares is None:
            X = self.original().astype(np.float64)
            X.data **= 2
            self._squares = np.asarray(X.sum(axis=1))
        return self._squares

    def take(self, rows: Rows) -> SparseSamples:
        """A batch of some of the rows."""
        return SparseSamples(self.X[rows], squares=self.squares[rows], dtype=self.dtype)

    def inner(self, other: SparseSamples, out: Array) -> None:
        """Non-zeros of these rows against dense panels of the other ones."""
        if out.dtype == self.precision:
            csr.inner_products(self.X.view, other.X.view, out)
            return
        exact = np.empty(out.shape, self.precision)
        csr.inner_products(self.X.view, other.X.view, exact)
        out[...] = exact

    def toarray(self) -> Array:
        """The rows with their zeros."""
        dense: Array = self.original().toarray()
        return dense

    def original(self) -> sp.csr_array:
        """The rows as CSR."""
        return self.X.to_scipy()

    def against(self, X: Any) -> tuple[Samples, Samples]:
        """The rows of X as CSR."""
        return self, SparseSamples(CsrRows.of(canonical(X).astype(self.precision, copy=False)), dtype=self.dtype)

    def astype(self, precision: np.dtype[Any], dtype: np.dtype[Any]) -> SparseSamples:
        """Converted values."""
        return SparseSamples(CsrRows.of(self.original().astype(precision)), dtype=dtype, own=True)


class GramSamples:
    """Rows or columns of a given Gram matrix: a left batch indexes its rows, a right one its columns."""

    nbytes = 0
    row_bytes = 8
    row_cost = 0

    def __init__(self, gram: Array, index: NDArray[np.integer], *, dtype: np.dtype[Any] | None = None) -> None:
        self.gram = gram
        self.index = index
        self.dtype = dtype or gram.dtype

    @property
    def precision(self) -> np.dtype[Any]:
        """That of the tiles: entries are copied."""
        return self.dtype

    def __len__(self) -> int:
        return len(self.index)

    @property
    def squares(self) -> NDArray[np.float64]:
        """The diagonal."""
        return np.asarray(self.gram[self.index, self.index], np.float64)

    def take(self, rows: Rows) -> GramSamples:
        """A batch of some of the indices."""
        return GramSamples(self.gram, self.index[rows], dtype=self.dtype)

    def inner(self, other: GramSamples, out: Array) -> None:
        """Copy the entries."""
        out[...] = self.gram[np.ix_(self.index, other.index)]

    def toarray(self) -> Array:
        """The rows of the matrix."""
        return np.asarray(self.gram[self.index])

    original = toarray

    def against(self, X: Any) -> tuple[Samples, Samples]:
        """These indices, into the columns of X = K(new rows, training rows)."""
        return GramSamples(X.T, self.index), GramSamples(X.T, np.arange(X.shape[0]))

    def astype(self, precision: np.dtype[Any], dtype: np.dtype[Any]) -> GramSamples:
        """The same entries in tiles of another dtype."""
        return GramSamples(self.gram, self.index, dtype=dtype)


def make_samples(X: Any, wants: str = "rows") -> Samples:
    """Wrap validated data of shape (n, d) the way a kernel wants them.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d), float32 or float64
    wants : {"rows", "products", "distances", "entries"}
        "products" of rows alone let dense data be held as CSR where three quarters are zeros. "distances" also let
        them be centred, which keeps more of their digits in float32. "entries" says that X is the Gram matrix.
    """
    if wants == "entries":
        return GramSamples(X, np.arange(X.shape[0]))
    if sp.issparse(X):
        return SparseSamples(CsrRows.of(canonical(X)))
    if wants != "rows" and prefers_csr(X):
        return SparseSamples(CsrRows.of(canonical(X)), own=True)
    if wants != "distances" or not len(X):
        return DenseSamples(np.ascontiguousarray(X))
    shift = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    return DenseSamples(X - shift, shift=shift, source=(X, slice(0, len(X))), own=True)


def _rows_of_rows(outer: Rows, inner: Rows, n: int) -> Rows:
    """The rows of an array that taking `inner` of its n rows `outer` gives."""
    if not isinstance(outer, slice):
        return np.asarray(outer[inner])
    if not isinstance(inner, slice):
        return np.asarray(inner + outer.start)
    start, stop, _ = inner.indices(n)
    return slice(outer.start + start, outer.start + stop)


class SampleSubset:
    """Some rows of a sample set. Without a copy of them a tile gathers what it needs."""

    @property
    def nbytes(self) -> int:
        """What the set holds, and the copy."""
        return self.base.nbytes + (0 if self._copy is None else len(self) * self.row_bytes)

    @property
    def row_bytes(self) -> int:
        """As the set's."""
        return self.base.row_bytes

    @property
    def row_cost(self) -> int:
        """As the set's."""
        return self.base.row_cost

    def __init__(self, base: Samples, index: NDArray[np.integer], *, copy: bool = False) -> None:
        self.base = base
        self.index = index
        self._copy = base.take(index) if copy else None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The set's dtype."""
        return self.base.dtype

    @property
    def precision(self) -> np.dtype[Any]:
        """The set's precision."""
        return self.base.precision

    def __len__(self) -> int:
        return len(self.index)

    @property
    def squares(self) -> NDArray[np.float64]:
        """The subset's squared norms."""
        return np.asarray(self.base.squares[self.index])

    def take(self, rows: Rows) -> Samples:
        """A batch of the copy, or a gathered one."""
        return self.base.take(self.index[rows]) if self._copy is None else self._copy.take(rows)

    def inner(self, other: Samples, out: Array) -> None:
        """Gather everything: for small subsets."""
        self.base.take(self.index).inner(other, out)

    def toarray(self) -> Array:
        """The gathered rows, dense."""
        return self.base.take(self.index).toarray()

    def original(self) -> Any:
        """The gathered rows."""
        return self.base.take(self.index).original()

    def against(self, X: Any) -> tuple[Samples, Samples]:
        """As the gathered rows would."""
        return self.base.take(self.index).against(X)

    def astype(self, precision: np.dtype[Any], dtype: np.dtype[Any]) -> Samples:
        """The gathered rows, converted."""
        return self.base.take(self.index).astype(precision, dtype)
