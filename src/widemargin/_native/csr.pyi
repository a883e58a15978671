"""Sparse rows: a validated view of CSR arrays, and products with it."""

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
    index: str = "column",
) -> None:
    """
    Raise a ValueError that names the first row whose indices or row pointers are wrong. format, line and index: what the
    message calls the array, its rows, and their indices; for CSC "CSC", "column" and "row".
    """

def inner_products(X: CSRMatrix, Z: CSRMatrix, out: NDArray[np.floating]) -> None:
    """Write X Z' (r, c), for X (r, d) and Z (c, d)."""

def count_nonzeros(X: NDArray[np.floating], indptr: NDArray[np.int64]) -> None:
    """Write indptr (n + 1,), the row pointers of X (n, d) as a CSR array."""

def copy_nonzeros(X: NDArray[np.floating], data: NDArray[np.floating], indices: NDArray[np.integer]) -> None:
    """
    Write the values and columns (nnz,) of the non-zeros of X (n, d), row by row.
    """

def matvec(team: Team, X: CSRMatrix, W: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Write W X' (k, n) in float64, for X (n, d), W (k, d)."""

def rmatvec(
    team: Team, X: CSRMatrix, coef: NDArray[np.float64], base: NDArray[np.float64] | None, out: NDArray[np.float64]
) -> None:
    """
    Write (coef - base) X (k, d) in float64, for X (n, d), coef (k, n), and base (k, n) or None for zeros.
    """
