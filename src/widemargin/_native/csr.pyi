"""Sparse rows: one validated view, its products and sums."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import Team

class CSRMatrix:
    """A validated view of CSR arrays."""

    def __init__(
        self, data: NDArray[np.floating], indices: NDArray[np.integer], indptr: NDArray[np.integer], n_columns: int
    ) -> None:
        """
        The arrays of a SciPy CSR array, checked once: O(n + nnz). They must not be changed afterwards.
        """

    def rows(self, first: int, end: int) -> CSRMatrix:
        """The rows from `first` to `end`, without a copy."""

    @property
    def shape(self) -> tuple[Any, ...]:
        """Numbers of rows and columns."""

    @property
    def nnz(self) -> int:
        """The number of values stored."""

    @property
    def is_sorted(self) -> bool:
        """Whether the columns of each row are in ascending order."""

    def __len__(self) -> int: ...

def check_arrays(
    indices: NDArray[np.integer],
    indptr: NDArray[np.integer],
    n_values: int,
    n_rows: int,
    n_columns: int,
    format: str = "CSR",
    line: str = "row",
    other: str = "column",
) -> None:
    """
    Raise a ValueError that names the first row whose indices or whose place in the arrays are wrong.
    """

def inner_products(one: CSRMatrix, other: CSRMatrix, out: NDArray[np.floating]) -> None:
    """Write the inner products of all rows of `one` and `other`."""

def count_nonzeros(X: NDArray[np.floating], indptr: NDArray[np.int64]) -> None:
    """
    Write where the non-zeros of each row of X would start, and where the last end.
    """

def copy_nonzeros(X: NDArray[np.floating], data: NDArray[np.floating], indices: NDArray[np.integer]) -> None:
    """Write the values and columns of the non-zeros of X, row by row."""

def matvec(team: Team, X: CSRMatrix, W: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """
    Write W @ X.T in float64: X (n, d), W (k, d) float64, out (k, n) float64.
    """

def rmatvec(
    team: Team, X: CSRMatrix, coef: NDArray[np.float64], base: NDArray[np.float64] | None, out: NDArray[np.float64]
) -> None:
    """
    Write (coef - base) @ X in float64: coef and base (k, n) float64, base None for zeros, out (k, d) float64.
    """
