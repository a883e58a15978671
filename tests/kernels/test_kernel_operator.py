"""Products with a kernel operator are those with the dense matrix."""

import numpy as np
import pytest
from numpy.typing import NDArray

from naive import kernels as naive
from widemargin._threads import ThreadTeam
from widemargin.data.samples import make_samples
from widemargin.kernels.functions import RBF
from widemargin.kernels.kernel_operator import KernelOperator

N = 12
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def make_operator(team: ThreadTeam, dtype: np.dtype = DOUBLE, n: int = N) -> KernelOperator:
    X = np.random.default_rng(0).normal(size=(n, 3)).astype(dtype)
    return KernelOperator(RBF(0.3), make_samples(X, RBF.sample_form), team)


def dense(dtype: np.dtype = DOUBLE) -> NDArray[np.float64]:
    X = np.random.default_rng(0).normal(size=(N, 3)).astype(dtype)
    return naive.rbf(X, X, 0.3)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
@pytest.mark.parametrize("columns", [None, [], [3], [1, 4, 2, 11]])
@pytest.mark.parametrize("rows", [[], [5, 0, 3]])
def test_products(rows: list[int], columns: list[int] | None, dtype: np.dtype) -> None:
    index, coef, f = np.array(rows, np.intp), np.array([1.0, -2.0, 0.5])[: len(rows)], np.ones(N)
    chosen = None if columns is None else np.array(columns, np.intp)
    with ThreadTeam(1) as team:
        operator = make_operator(team, dtype)
        assert len(operator) == N
        operator.add_product(index, coef, f, chosen)
    place = np.arange(N) if chosen is None else chosen
    expected = np.ones(N)
    expected[place] += coef @ dense(dtype)[np.ix_(index, place)]
    np.testing.assert_allclose(f, expected, atol=1e-12 if dtype == DOUBLE else 1e-5)
    assert operator.n_entries == len(rows) * len(place)
