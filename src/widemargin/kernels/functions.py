"""Kernel functions, evaluated by tiles K(A, B) of two batches of samples.

To add a kernel, follow the recipe in CONTRIBUTING.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._native import dual
from .._native import gradients as native_gradients
from .._native import kernels as native
from .._threads import row_blocks
from .._types import AnyArray, Array, Bytes, Matrix, RowIndices, Vector
from ..data.rows import spread_rows
from ..data.samples import GramSamples, Samples, Selection

EntryRows = dual.EntryRows32 | dual.EntryRows64


def dense_row_bytes(A: Samples) -> int:
    """Bytes of a sample as a dense row."""
    return int(A.take(slice(0, 1)).stored().shape[1] * A.precision.itemsize)


class Kernel:
    """A symmetric function k(x, z) of two samples; `sample_form` is the form of these (`make_samples`).

    Of a dense row of at most `short_row` bytes computing an entry is faster than reading a scattered one.
    """

    sample_form: ClassVar[str]
    short_row: ClassVar[int] = 256

    @property
    def is_semidefinite(self) -> bool:
        """Whether every kernel matrix is positive semidefinite, without which the duality gap is no bound."""
        raise NotImplementedError

    def fill(self, A: Samples, B: Samples, out: Array) -> None:
        """Write K(A, B) into out, of shape (len(A), len(B))."""
        raise NotImplementedError

    def diagonal(self, A: Samples) -> Array:
        """k(x, x) of every sample: float64 of shape (len(A),)."""
        raise NotImplementedError

    def entry_rows(
        self, A: Samples, rows: Selection, limit: float = np.inf, memory: Bytes | None = None
    ) -> EntryRows | None:
        """Samples as rows that compiled loops compute entries of K from; None where reading K is faster.

        Entries of rows at distances above `limit` may be left out of sums; the others are kept in `memory`, bytes that
        nobody else uses meanwhile.
        """
        return None


class ArgumentKernel(Kernel):
    """A function kappa(g) of one number of two samples: "inner_product", "squared_distance" or "l1_distance".

    `name` is scikit-learn's and that of compiled code. By the chain rule the gradient of sum_j coef_j k(x, z_j) by x is
    sum_j coef_j kappa'(g_j) dg_j / dx.
    """

    name: ClassVar[str]
    argument: ClassVar[str]

    def fill_slopes(self, A: Samples, B: Samples, out: Array) -> None:
        """Write kappa'(g) of the samples of A and B into out (len(A), len(B))."""
        raise NotImplementedError

    def add_gradients(self, X: Samples, Z: Samples, weights: Array, out: Matrix) -> None:
        """out_i += sum_j weights_ij dg(x_i, z_j) / dx_i, for out (len(X), d), weights (len(X), len(Z))."""
        raise NotImplementedError


class InnerProductKernel(ArgumentKernel):
    """A kernel that is a function of the inner product <x, z>."""

    argument: ClassVar[str] = "inner_product"
    sample_form: ClassVar[str] = "products"

    def transform(self, G: Array) -> None:
        """Replace inner products G (r, c) by kernel values, in place."""
        raise NotImplementedError

    def fill(self, A: Samples, B: Samples, out: Array) -> None:
        """Write the tile: inner products, transformed in place."""
        A.inner(B, out)
        self.transform(out)

    def add_gradients(self, X: Samples, Z: Samples, weights: Array, out: Matrix) -> None:
        """The gradient of <x, z> is z: one matrix product."""
        out += weights @ Z.stored()


class Boxes(NamedTuple):
    """B boxes that hold the rows of a sum, batch by batch: rows starts[b] ... starts[b + 1] - 1 are in box b.

    `starts` (B + 1,); lows and highs (d, B); entries of rows whose box has a distance above `limit` are left out.
    """

    starts: RowIndices
    lows: Array
    highs: Array
    limit: float


@dataclass(frozen=True)
class ExponentialKernel(ArgumentKernel):
    """exp(-gamma g) of a distance g."""

    is_semidefinite: ClassVar[bool] = True
    gamma: float

    def _squares(self, A: Samples) -> Vector | None:
        """Squared norms, from which compiled code knows that distances are squared; None for L1 distances."""
        return A.squares if self.argument == "squared_distance" else None

    def fill(self, A: Samples, B: Samples, out: Array) -> None:
        """Write the tile: distances and exponentials, block by block."""
        native.kernel_matrix(A.compiled(), self._squares(A), B.compiled(), self._squares(B), self.gamma, out)

    def fill_slopes(self, A: Samples, B: Samples, out: Array) -> None:
        """-gamma exp(-gamma g)."""
        self.fill(A, B, out)
        out *= -self.gamma

    def diagonal(self, A: Samples) -> Array:
        """Ones."""
        return np.ones(len(A))

    def add_product(self, A: Samples, coef: Matrix, B: Samples, out: Matrix) -> None:
        """out += coef @ K(A, B) without a tile in memory, for inner products and distances of the dtype of tiles."""
        points, queries = (A.compiled(), self._squares(A)), (B.compiled(), self._squares(B))
        native.add_kernel_product(*points, coef, *queries, self.gamma, out)

    def add_near_product(self, A: Samples, boxes: Boxes, coef: Matrix, B: Samples, out: Matrix) -> None:
        """out += coef @ K(A, B), without the entries between a row of B and batches of A in far boxes."""
        starts, lows, highs, limit = boxes
        points, queries = (A.compiled(), self._squares(A)), (B.compiled(), self._squares(B))
        native.add_near_product(*points, starts, lows, highs, limit, coef, *queries, self.gamma, out)

    def entry_rows(
        self, A: Samples, rows: Selection, limit: float = np.inf, memory: Bytes | None = None
    ) -> EntryRows | None:
        """Dense rows; None, without gathering them, where they are long, or float64 and no entry may be left out."""
        is_float32 = A.precision == np.float32
        longest = self.short_row * (2 if limit < np.inf else is_float32)  # where most are left out, twice as long
        if A.precision != A.dtype or dense_row_bytes(A) > longest:
            return None
        chosen = A.take(rows)
        squares, X = self._squares(chosen), chosen.toarray()
        if X.dtype == np.float64:
            return dual.EntryRows64(X.astype(np.float64, copy=False), squares, self.gamma, limit, memory)
        return dual.EntryRows32(X.astype(np.float32, copy=False), squares, self.gamma, limit, memory)


@dataclass(frozen=True)
class RBF(ExponentialKernel):
    """exp(-gamma |x - z|^2)."""

    name: ClassVar[str] = "rbf"
    argument: ClassVar[str] = "squared_distance"
    sample_form: ClassVar[str] = "distances"

    def add_gradients(self, X: Samples, Z: Samples, weights: Array, out: Matrix) -> None:
        """The gradient of |x - z|^2 is 2 (x - z): one matrix product, and the sums of the weights' rows."""
        out += 2.0 * (weights.sum(axis=1)[:, None] * X.toarray() - weights @ Z.stored())


@dataclass(frozen=True)
class Linear(InnerProductKernel):
    """<x, z>."""

    name: ClassVar[str] = "linear"
    is_semidefinite: ClassVar[bool] = True

    def transform(self, G: Array) -> None:
        """Inner products are the kernel values."""

    def fill_slopes(self, A: Samples, B: Samples, out: Array) -> None:
        """Ones."""
        out.fill(1.0)

    def diagonal(self, A: Samples) -> Array:
        """Squared norms."""
        return A.squares


@dataclass(frozen=True)
class Polynomial(InnerProductKernel):
    """(gamma <x, z> + coef0)^degree, degree an integer >= 0."""

    name: ClassVar[str] = "poly"
    gamma: float
    degree: int
    coef0: float

    @property
    def is_semidefinite(self) -> bool:
        """With coefficients >= 0 it is a sum of products of semidefinite kernels."""
        return self.coef0 >= 0 or self.degree == 0

    def transform(self, G: Array) -> None:
        """(gamma g + coef0)^degree of inner products g, in place."""
        native.polynomial(G, self.gamma, self.coef0, self.degree)

    def fill_slopes(self, A: Samples, B: Samples, out: Array) -> None:
        """The derivative degree * gamma (gamma g + coef0)^(degree - 1)."""
        Polynomial(self.gamma, max(0, self.degree - 1), self.coef0).fill(A, B, out)
        out *= self.degree * self.gamma

    def diagonal(self, A: Samples) -> Array:
        """The polynomial of the squared norms."""
        return (self.gamma * A.squares + self.coef0) ** self.degree


@dataclass(frozen=True)
class Sigmoid(InnerProductKernel):
    """tanh(gamma <x, z> + coef0); not positive semidefinite in general."""

    name: ClassVar[str] = "sigmoid"
    is_semidefinite: ClassVar[bool] = False
    gamma: float
    coef0: float

    def transform(self, G: Array) -> None:
        """Tanh of the scaled products, in place."""
        G *= self.gamma
        G += self.coef0
        np.tanh(G, out=G)

    def fill_slopes(self, A: Samples, B: Samples, out: Array) -> None:
        """The derivative gamma (1 - tanh(gamma g + coef0)^2)."""
        self.fill(A, B, out)
        np.square(out, out=out)
        np.subtract(1.0, out, out=out)
        out *= self.gamma

    def diagonal(self, A: Samples) -> Array:
        """tanh(gamma |x|^2 + coef0)."""
        return np.tanh(self.gamma * A.squares + self.coef0)


@dataclass(frozen=True)
class Laplacian(ExponentialKernel):
    """exp(-gamma |x - z|_1)."""

    name: ClassVar[str] = "laplacian"
    argument: ClassVar[str] = "l1_distance"
    sample_form: ClassVar[str] = "products"  # not centred: L1 distances of dense rows keep their digits anyway
    short_row: ClassVar[int] = 96

    def add_gradients(self, X: Samples, Z: Samples, weights: Array, out: Matrix) -> None:
        """The gradient of |x - z|_1 is sign(x - z), 0 in columns where the two are equal."""
        x, transposed = X.toarray(), np.ascontiguousarray(Z.toarray().T)
        native_gradients.add_signed_sums(x, transposed, weights.astype(x.dtype, copy=False), out)


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Entries of a given Gram matrix; the samples are its rows and columns."""

    sample_form: ClassVar[str] = "entries"
    is_semidefinite: bool = True  # unless a test refutes it

    def fill(self, A: Samples, B: Samples, out: Array) -> None:
        """Copy the entries."""
        A.inner(B, out)

    def diagonal(self, A: Samples) -> Array:
        """The Gram matrix's own diagonal."""
        return A.squares


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A user's function of two arrays of shapes (r, d) and (c, d), dense or CSR as the data, returning (r, c)."""

    sample_form: ClassVar[str] = "rows"
    function: Callable[[Array, Array], Array]
    is_semidefinite: bool = True  # assumed of a user's function

    def fill(self, A: Samples, B: Samples, out: Array) -> None:
        """Call the function on the two batches."""
        out[...] = self._evaluate(A, B)

    def diagonal(self, A: Samples) -> Array:
        """The diagonals of the tiles K(B, B) of batches B of 16 rows: a sixteenth of the calls."""
        batches = (A.take(rows) for rows in row_blocks(len(A), 16))
        return np.concatenate([np.zeros(0), *(self._evaluate(batch, batch).diagonal() for batch in batches)])

    def _evaluate(self, A: Samples, B: Samples) -> AnyArray:
        try:
            tile = _dense(self.function(A.stored(), B.stored()))
        except StopIteration as error:  # would end a loop of the caller's without a word
            raise RuntimeError("kernel: the callable raised StopIteration") from error
        if tile.shape != (len(A), len(B)):
            expected = (len(A), len(B))
            raise ValueError(f"kernel: the callable returned shape {tile.shape} for batches that ask for {expected}")
        if not np.all(np.isfinite(tile)):
            raise ValueError("kernel: the callable returned NaN or infinity")
        return tile


def check_finite(values: Array | Vector, what: str = "k(x, z)") -> None:
    """Raise ValueError unless all kernel values, or sums of them, are finite."""
    if not np.isfinite(values).all():
        raise ValueError(f"kernel must be finite, but some {what} is NaN or infinite")


def _dense(tile: Any) -> AnyArray:
    """A callable's result as an array: for sparse rows, scikit-learn's `linear_kernel` returns a sparse one."""
    return np.asarray(tile.toarray() if sp.issparse(tile) else tile)


_CLASSES: dict[str, type[Any]] = {kind.name: kind for kind in (RBF, Polynomial, Linear, Sigmoid, Laplacian)}
_CLASSES["polynomial"] = Polynomial
KERNELS = tuple(_CLASSES)
DISTANCE_KERNELS = tuple(kind.name for kind in _CLASSES.values() if kind.argument != "inner_product")
FUNCTION_KERNELS = ("additive_chi2", "chi2", "cosine")  # further ones, for which scikit-learn has functions
WITHOUT_GAMMA = ("additive_chi2", "cosine", "linear", "precomputed")


def make_kernel(
    kernel: str | Callable[[Array, Array], Array], *, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0
) -> Kernel:
    """The kernel of a name and parameters as in scikit-learn, or of a callable.

    >>> make_kernel("rbf", gamma=0.5)
    RBF(gamma=0.5)
    """
    if callable(kernel):
        return CallableKernel(kernel)
    if kernel == "precomputed":
        return Precomputed()
    if kernel in FUNCTION_KERNELS:
        from sklearn.metrics.pairwise import pairwise_kernels  # with it comes more than a fit with other kernels needs

        function = partial(pairwise_kernels, metric=kernel, filter_params=True, gamma=gamma)
        return CallableKernel(function, is_semidefinite=kernel != "additive_chi2")
    if kernel not in KERNELS:
        names = [*KERNELS, *FUNCTION_KERNELS, "precomputed"]
        raise ValueError(f"kernel must be one of {names} or a callable, got {kernel!r}")
    kind, given = _CLASSES[kernel], {"gamma": gamma, "degree": degree, "coef0": coef0}
    made: Kernel = kind(**{name: given[name] for name in kind.__match_args__})
    return made


def is_indefinite(samples: GramSamples, *, fixes_sum: bool) -> bool:
    """Whether the kernel matrix K of 64 to 127 rows spread over the data has an eigenvalue below zero.

    With `fixes_sum`, as for duals with an intercept, K is centred: x'K x matters for vectors of sum 0 alone. Principal
    submatrices of a semidefinite matrix are semidefinite, so that yes is certain, and no is not. By Cholesky factors.
    """
    batch = samples.take(spread_rows(len(samples)))
    K = np.empty((len(batch), len(batch)))
    batch.inner(batch, K)
    K = 0.5 * (K + K.T)
    if fixes_sum:
        K -= K.mean(axis=0)
        K -= K.mean(axis=1)[:, None]
    diagonal = K.diagonal()
    rounding = 1e-5 * float(np.mean(np.abs(diagonal)))  # of a semidefinite matrix, in its least eigenvalue
    K[np.diag_indices(len(K))] += rounding + np.finfo(np.float64).tiny
    try:
        np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        return True
    return False
