"""
Kernel functions of the entries of a tile; weighted sums of kernel rows.
"""

import numpy as np
from numpy.typing import NDArray

from . import Team, csr

def exponential(G: NDArray[np.float32], factor: float) -> None:
    """
    Replace G (r, c) by exp(factor G), for factor G <= 0; positive exponents count as 0.
    """

def copy_transposed(A: NDArray[np.floating], out: NDArray[np.floating]) -> None:
    """Write A' (c, r), for A (r, c). They must not share memory."""

def polynomial(G: NDArray[np.floating], gamma: float, coef0: float, degree: int) -> None:
    """
    Replace inner products G (r, c) by (gamma <x, z> + coef0)^degree, degree >= 0.
    """

def add_rows(
    team: Team, K: NDArray[np.floating], rows: NDArray[np.int64], coef: NDArray[np.float64], f: NDArray[np.float64]
) -> None:
    """
    f += coef K[rows] in float64, f (m,), K (r, >= m), rows and coef (k,). After Stopped f is partly updated.
    """

def remove_rows(team: Team, K: NDArray[np.floating], kept: NDArray[np.int64]) -> None:
    """
    K[:m, :m] = K[kept][:, kept] in place, K (r, >= r), kept (m,) ascending. After Stopped K is partly changed.
    """

def add_product(K: NDArray[np.floating], coef: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """
    out += coef K in float64, K (r, c), coef (k, r), out (k, c). Rows of K with coefficient zero are not read.
    """

def add_sparse_product(
    K: NDArray[np.floating],
    starts: NDArray[np.int64],
    functions: NDArray[np.int64],
    coef: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """
    out += C K in float64, K (r, c), out (k, c), C (k, r) in CSC form: column i has coef[starts[i]:starts[i + 1]] in the
    rows functions[starts[i]:starts[i + 1]].
    """

def rbf_matrix(
    X: NDArray[np.floating] | csr.CSRMatrix,
    squares: NDArray[np.float64],
    Z: NDArray[np.floating] | csr.CSRMatrix,
    other_squares: NDArray[np.float64],
    gamma: float,
    out: NDArray[np.floating],
) -> None:
    """
    Write exp(-gamma |x - z|^2) (r, c), for rows X (r, d), Z (c, d); squares (r,), other_squares (c,): |x|^2, |z|^2.
    """

def laplacian_matrix(
    X: NDArray[np.floating] | csr.CSRMatrix,
    Z: NDArray[np.floating] | csr.CSRMatrix,
    gamma: float,
    out: NDArray[np.floating],
) -> None:
    """
    Write exp(-gamma |x - z|_1) (r, c), for rows X (r, d), Z (c, d); CSR rows without repeated columns.
    """

def add_rbf_product(
    X: NDArray[np.floating] | csr.CSRMatrix,
    squares: NDArray[np.float64],
    coef: NDArray[np.float64],
    Z: NDArray[np.floating] | csr.CSRMatrix,
    other_squares: NDArray[np.float64],
    gamma: float,
    out: NDArray[np.float64],
) -> None:
    """
    out += coef K in float64, coef (k, r), out (k, c), with K (r, c) as rbf_matrix writes it, in X's dtype.
    """

def add_laplacian_product(
    X: NDArray[np.floating] | csr.CSRMatrix,
    coef: NDArray[np.float64],
    Z: NDArray[np.floating] | csr.CSRMatrix,
    gamma: float,
    out: NDArray[np.float64],
) -> None:
    """
    out += coef K in float64, coef (k, r), out (k, c), with K (r, c) as laplacian_matrix writes it, in X's dtype.
    """

def add_near_rbf_product(
    X: NDArray[np.floating] | csr.CSRMatrix,
    squares: NDArray[np.float64],
    starts: NDArray[np.int64],
    lows: NDArray[np.floating],
    highs: NDArray[np.floating],
    limit: float,
    coef: NDArray[np.float64],
    Z: NDArray[np.floating] | csr.CSRMatrix,
    other_squares: NDArray[np.float64],
    gamma: float,
    out: NDArray[np.float64],
) -> None:
    """
    add_rbf_product without the entries between a row z and the batches of rows starts[b] ... starts[b + 1] - 1 of X
    whose box has a squared distance above `limit`: all rows of batch b are in [lows[:, b], highs[:, b]], for lows and
    highs (d, B) and starts (B + 1,).
    """

def add_near_laplacian_product(
    X: NDArray[np.floating] | csr.CSRMatrix,
    starts: NDArray[np.int64],
    lows: NDArray[np.floating],
    highs: NDArray[np.floating],
    limit: float,
    coef: NDArray[np.float64],
    Z: NDArray[np.floating] | csr.CSRMatrix,
    gamma: float,
    out: NDArray[np.float64],
) -> None:
    """
    The same as add_near_rbf_product for add_laplacian_product, with L1 distances.
    """
