"""Compiled functions of one tile: what a kernel does to inner products, entry by entry, and L1 distances."""

import numpy as np

from ._policy import kernel


@kernel
def rbf(G, squares, other_squares, gamma):
    """Turn inner products into exp(-gamma |x - z|^2), in place.

    Given   G (r, c) float32, the inner products; squares (r,), other_squares (c,) float32: gamma |x|^2, gamma |z|^2
    Cost    about 0.3 ns an entry: the exponential is a degree-6 polynomial on [-ln 2 / 2, ln 2 / 2] whose exponent
            is added to the bits; relative error below 2e-7 of the exponential itself; values under 1e-38 end there.
            In place alone: with another output array LLVM cannot rule out an overlap, and the loop is not vectorised
    Source  the minimax coefficients of expf in Cephes (Moshier)
    Twin    tests/naive/kernels.py::rbf
    """
    f = np.float32
    two_gamma = f(2.0 * gamma)
    for i in range(G.shape[0]):
        row = G[i]
        bits = row.view(np.int32)
        s = squares[i]
        for j in range(G.shape[1]):
            x = two_gamma * row[j] - s - other_squares[j]
            x = x if x < f(0.0) else f(0.0)
            x = x if x > f(-87.0) else f(-87.0)
            k = np.floor(x * f(1.44269504) + f(0.5))
            r = x - k * f(0.693359375) + k * f(2.12194440e-4)
            p = f(1.9875691e-4) * r + f(1.39819995e-3)
            p = p * r + f(8.33345191e-3)
            p = p * r + f(4.16657959e-2)
            p = p * r + f(1.66666655e-1)
            p = p * r + f(0.5)
            row[j] = p * r * r + r + f(1.0)
            bits[j] = bits[j] + (np.int32(k) << np.int32(23))


@kernel
def exponent(G, squares, other_squares, gamma, out):
    """Write -gamma |x - z|^2, rounded to 0 where it comes out positive, in the precision of another array.

    Given   G (r, c) float64, the inner products; squares (r,), other_squares (c,) float64: gamma |x|^2, gamma |z|^2;
            out (r, c) float32 or float64
    Cost    one pass
    Twin    the logarithm of tests/naive/kernels.py::rbf
    """
    for i in range(G.shape[0]):
        row, into = G[i], out[i]
        s = squares[i]
        for j in range(G.shape[1]):
            x = 2.0 * gamma * row[j] - s - other_squares[j]
            into[j] = x if x < 0.0 else 0.0


@kernel
def power(G, gamma, coef0, degree):
    """Turn inner products into (gamma <x, z> + coef0)^degree, in place.

    Given   G (r, c) float32 or float64; degree an integer >= 0
    Cost    one multiply-add and about 1.5 log2(degree) multiplications an entry
    Twin    tests/naive/kernels.py::polynomial
    """
    number = G.dtype.type
    for i in range(G.shape[0]):
        row = G[i]
        for j in range(G.shape[1]):
            row[j] = number(gamma) * row[j] + number(coef0)
        if degree != 1:
            base = row.copy()
            row[:] = number(1)
            left = degree
            while left > 0:
                if left % 2 == 1:
                    for j in range(G.shape[1]):
                        row[j] *= base[j]
                for j in range(G.shape[1]):
                    base[j] *= base[j]
                left //= 2


@kernel
def l1_distances(X, Z, out):
    """out[i, j] = sum_k |X[i, k] - Z[j, k]|.

    Given   X (r, d), Z (c, d), out (r, c), one dtype, C-contiguous
    Cost    r c d absolute differences, vectorised over d
    Twin    tests/naive/kernels.py::laplacian
    """
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            total = X.dtype.type(0)
            for k in range(X.shape[1]):
                total += abs(X[i, k] - Z[j, k])
            out[i, j] = total
