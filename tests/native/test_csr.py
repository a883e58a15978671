"""Compiled functions of sparse rows, against dense ones."""

import gc
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from widemargin._native import Team, csr
from widemargin.data.csr import make_csr

quick = settings(max_examples=25, deadline=None, derandomize=True)
dtypes = st.sampled_from([np.float32, np.float64])
ONE, TWO, THREE = (Team(n) for n in (1, 2, 3))
Rows = tuple[NDArray[np.floating], NDArray[np.integer], NDArray[np.integer]]  # values, columns, row starts


def random_rows(rng: np.random.Generator, n: int, d: int, dtype: type, *, repeats: bool = True) -> Rows:
    """CSR rows in any order of columns, with explicit zeros, empty rows and, if asked for, repeated columns."""
    counts = rng.integers(0, d + 1, size=n)
    columns = [rng.choice(d, size=k, replace=repeats) for k in counts]
    indices = np.concatenate([np.zeros(0, np.int64), *columns]).astype(np.int64)
    data = rng.normal(size=len(indices)) * rng.choice([0.0, 1.0, 1.0], size=len(indices))
    return data.astype(dtype), indices, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def to_dense(rows: Rows, d: int) -> NDArray[np.float64]:
    """The rows with their zeros in float64; repeated columns add up."""
    data, *places = rows
    return sp.csr_array((data.astype(np.float64), *places), shape=(len(rows[2]) - 1, d)).toarray()


def matrix(rows: Rows, d: int) -> csr.CSRMatrix:
    data, indices, indptr = rows
    return csr.CSRMatrix(data, indices.astype(np.int32), indptr, d)


def in_order(rows: Rows) -> Rows:
    """The same rows with their columns in ascending order, repeated as before."""
    data, indices, indptr = rows
    order = np.lexsort((indices, np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))))
    return data[order], indices[order], indptr


def tolerance(dtype: type) -> dict[str, float]:
    return {"rtol": 1e-5, "atol": 1e-4 if dtype == np.float32 else 1e-12}


# ------------------------------------------------------------------------------------------------------ the view


def test_a_view_and_its_slices() -> None:
    rows = random_rows(np.random.default_rng(0), 20, 7, np.float64)
    X = matrix(rows, 7)
    assert X.shape == (20, 7)
    assert len(X) == 20
    assert X.nnz == len(rows[0])
    part = X.rows(4, 15).rows(2, 9)
    assert part.shape == (7, 7)
    assert part.nnz == rows[2][13] - rows[2][6]
    out = np.empty((7, 20))
    csr.inner_products(part, X, out)
    exact = to_dense(rows, 7)
    np.testing.assert_allclose(out, exact[6:13] @ exact.T, atol=1e-12)
    assert X.rows(20, 20).shape == (0, 7)
    for first, end in ((-1, 3), (3, 2), (0, 21), (21, 21), (2**62, 2**63 - 1)):
        with pytest.raises(IndexError):
            X.rows(first, end)


@pytest.mark.slow
def test_a_slice_keeps_the_arrays_alive() -> None:
    data = np.ones(3)
    gone = weakref.ref(data)
    part = csr.CSRMatrix(data, np.arange(3, dtype=np.int32), np.arange(4), 3).rows(1, 3)
    del data
    gc.collect()
    assert gone() is not None
    out = np.empty((2, 2))
    csr.inner_products(part, part, out)
    np.testing.assert_array_equal(out, np.eye(2))
    del part
    gc.collect()
    assert gone() is None


WRONG: dict[str, tuple[list[int], list[int], int]] = {  # indices, indptr, n_columns
    "index": ([0, 9], [0, 1, 2], 3),
    "index = n_columns": ([0, 3], [0, 1, 2], 3),
    "negative index": ([0, -1], [0, 1, 2], 3),
    "falling": ([0, 1], [0, 2, 1], 3),
    "negative indptr": ([0, 1], [-1, 1, 2], 3),
    "beyond": ([0, 1], [0, 1, 3], 3),
    "far beyond": ([0, 1], [0, 2**31 - 1, 2], 3),
    "no indptr": ([0, 1], [], 3),
    "no columns": ([0, 1], [0, 1, 2], 0),
    "negative columns": ([0, 1], [0, 1, 2], -1),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arrays_are_refused(case: str) -> None:
    indices, indptr, n_columns = WRONG[case]
    arrays = np.array(indices, np.int32), np.array(indptr, np.int64)
    with pytest.raises(ValueError, match=r"CSR array|n_columns"):
        csr.CSRMatrix(np.ones(2), *arrays, n_columns)
    with pytest.raises(ValueError, match=r"CSR array|n_columns"):
        csr.check_arrays(*arrays, 2, 2, n_columns)
    with pytest.raises(ValueError, match="indptr of row 1 is 2"):
        csr.check_arrays(np.zeros(2, np.int32), np.arange(3), 1, 2, 3)  # one value for two indices


def test_scipys_arrays_are_shared_where_they_can_be() -> None:
    X = sp.random_array((30, 20), density=0.3, rng=np.random.default_rng(0)).tocsr()
    expected, references = X.toarray(), sys.getrefcount(X.data)
    view = make_csr(X)
    assert sys.getrefcount(X.data) > references
    for change in (
        lambda Z: setattr(Z, "indptr", Z.indptr.astype(np.int64)),
        lambda Z: setattr(Z, "indices", Z.indices.astype(np.int64)),
        lambda Z: setattr(Z, "indices", Z.indices.astype(">i4")),
        lambda Z: setattr(Z, "data", Z.data[::-1].copy()[::-1]),
        lambda Z: Z.data.setflags(write=False),
    ):
        Z = X.copy()
        change(Z)
        out = np.empty((30, 30))
        csr.inner_products(make_csr(Z), make_csr(Z), out)
        np.testing.assert_allclose(out, expected @ expected.T, atol=1e-12)
    assert view.shape == (30, 20)


# -------------------------------------------------------------------------------------------------- inner products


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    r=st.integers(0, 6),
    c=st.integers(0, 9),
    d=st.integers(1, 12),
    dtype=dtypes,
    repeats=st.booleans(),
)
def test_inner_products(seed: int, r: int, c: int, d: int, dtype: type, repeats: bool) -> None:
    rng = np.random.default_rng(seed)
    one, other = (random_rows(rng, n, d, dtype, repeats=repeats) for n in (r, c))
    expected = to_dense(one, d) @ to_dense(other, d).T
    for a, b in ((one, other), (in_order(one), in_order(other)), (one, in_order(other)), (in_order(one), other)):
        out = np.full((r, c + 2), np.nan, dtype)[:, 1:-1]
        csr.inner_products(matrix(a, d), matrix(b, d), out)
        np.testing.assert_allclose(out, expected, **tolerance(dtype))


@pytest.mark.parametrize(("dtype", "is_sorted"), [(np.float32, True), (np.float64, False)])
@pytest.mark.parametrize(
    ("c", "d", "most"), [(1, 1, 1), (5, 192, 50), (63, 500, 400), (64, 193, 193), (130, 800, 9), (200, 20_000, 40)]
)
def test_panels(c: int, d: int, most: int, dtype: type, is_sorted: bool) -> None:
    """One panel and several; panels of a few columns and of many; rows that do and do not fill the last panel."""
    rng = np.random.default_rng(c)

    def rows(n: int) -> Rows:
        data, indices, indptr = random_rows(rng, n, most, dtype, repeats=False)
        found = data, np.sort(rng.permutation(d)[:most])[indices], indptr
        return in_order(found) if is_sorted else found

    one, other = rows(7), rows(c)
    out = np.full((7, c), np.nan, dtype)
    csr.inner_products(matrix(one, d), matrix(other, d), out)
    np.testing.assert_allclose(out, to_dense(one, d) @ to_dense(other, d).T, **tolerance(dtype))


def test_a_product_does_not_depend_on_the_rows_beside_it() -> None:
    rng = np.random.default_rng(0)
    one, other = (in_order(random_rows(rng, n, 900, np.float32, repeats=False)) for n in (9, 150))
    whole, part = np.empty((9, 150), np.float32), np.empty((2, 5), np.float32)
    csr.inner_products(matrix(one, 900), matrix(other, 900), whole)
    csr.inner_products(matrix(one, 900).rows(3, 5), matrix(other, 900).rows(70, 75), part)
    np.testing.assert_array_equal(part, whole[3:5, 70:75])


def test_no_columns_at_all() -> None:
    empty, out = csr.CSRMatrix(np.empty(0), np.empty(0, np.int32), np.zeros(4, int), 0), np.full((3, 3), np.nan)
    csr.inner_products(empty, empty, out)
    np.testing.assert_array_equal(out, 0.0)


# ---------------------------------------------------------------------------------------------------- non-zeros


@quick
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 6), d=st.integers(0, 7), dtype=dtypes)
def test_the_nonzeros_of_a_dense_array(seed: int, n: int, d: int, dtype: type) -> None:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * rng.choice([-0.0, 0.0, 1.0, np.nan], size=(n, d))).astype(dtype)
    expected = sp.csr_array(X)
    indptr = np.full(n + 1, -1)
    csr.count_nonzeros(X, indptr)
    np.testing.assert_array_equal(indptr, expected.indptr)
    data, indices = np.zeros(expected.nnz, dtype), np.zeros(expected.nnz, np.int32)
    csr.copy_nonzeros(X, data, indices)
    np.testing.assert_array_equal(data, expected.data)
    np.testing.assert_array_equal(indices, expected.indices)


# --------------------------------------------------------------------------------- the passes of a linear machine


def weights(rng: np.random.Generator, k: int, n: int) -> NDArray[np.float64]:
    return rng.normal(size=(k, n)) * rng.choice([0.0, 1.0], size=(k, n))


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 40),
    d=st.integers(1, 12),
    k=st.integers(0, 20),
    dtype=dtypes,
)
def test_matvec_and_rmatvec(seed: int, n: int, d: int, k: int, dtype: type) -> None:
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, n, d, dtype)
    X, exact = matrix(rows, d), to_dense(rows, d)
    W, coef, out, sums = rng.normal(size=(k, d)), weights(rng, k, n), np.full((k, n), np.nan), np.full((k, d), np.nan)
    csr.matvec(TWO, X, W, out)
    np.testing.assert_allclose(out, W @ exact.T, atol=1e-12)
    csr.rmatvec(TWO, X, coef, None, sums)
    np.testing.assert_allclose(sums, coef @ exact, atol=1e-11)
    base = coef * rng.choice([0.0, 0.5, 1.0], size=(k, n))
    csr.rmatvec(TWO, X, coef, base, sums)
    np.testing.assert_allclose(sums, (coef - base) @ exact, atol=1e-11)


def many_rows(n: int, d: int, density: float) -> sp.csr_array:
    return sp.random_array((n, d), density=density, rng=np.random.default_rng(0), dtype=np.float32).tocsr()


@pytest.mark.parametrize("k", [1, 3, 70])
@pytest.mark.parametrize("shape", [(4000, 40, 0.5), (300, 2000, 0.2), (50, 30_000, 0.01)])
def test_results_are_the_same_on_any_number_of_threads(k: int, shape: Any) -> None:
    X, rng = many_rows(*shape), np.random.default_rng(k)
    view, W, coef = make_csr(X), rng.normal(size=(k, shape[1])), weights(rng, k, shape[0])
    found = []
    for team in (ONE, TWO, THREE):
        out, sums = np.full((k, shape[0]), np.nan), np.full((k, shape[1]), np.nan)
        csr.matvec(team, view, W, out)
        csr.rmatvec(team, view, coef, None, sums)
        found.append((out, sums))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(found[0][0], W @ X.T.astype(float), atol=1e-9)
    np.testing.assert_allclose(found[0][1], coef @ X.astype(float), atol=1e-9)


def test_indptr_beyond_32_bits(tmp_path: Path) -> None:
    """Row starts of 2^31 and more, as in the middle of a huge array: of files that are holes but for a page."""
    far = 2**31 + 5
    data = np.memmap(tmp_path / "data", np.float32, "w+", shape=(far + 3,))
    indices = np.memmap(tmp_path / "indices", np.int32, "w+", shape=(far + 3,))
    data[far - 1 :], indices[far - 1 :] = 2.0, 1
    X = csr.CSRMatrix(data, indices, np.array([far - 1, far, far + 3]), 3)
    out, sums, products = np.empty((1, 2)), np.empty((1, 3)), np.empty((2, 2), np.float32)
    csr.matvec(ONE, X, np.array([[0.0, 10.0, 0.0]]), out)
    csr.rmatvec(ONE, X, np.array([[1.0, 10.0]]), None, sums)
    csr.inner_products(X, X, products)
    np.testing.assert_array_equal(out, [[20.0, 60.0]])
    np.testing.assert_array_equal(sums, [[0.0, 62.0, 0.0]])
    np.testing.assert_array_equal(products, [[4.0, 12.0], [12.0, 36.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_depend_on_a_rows_values_alone(dtype: type) -> None:
    """Not on its place, or the number of rows and vectors."""
    rng = np.random.default_rng(0)
    for n_values in (1, 2, 3, 7, 30, 101):
        X = sp.random_array((1, 200), density=n_values / 200, rng=rng, dtype=dtype, format="csr")
        W, outs = rng.normal(size=(9, 200)), []
        for n, k in ((1, 1), (300, 1), (300, 9), (5, 3)):
            rows = sp.vstack([X] * n, format="csr")
            out = np.empty((k, n))
            csr.matvec(ONE, make_csr(rows), W[:k], out)
            outs.append(out[0])
        for out in outs:
            np.testing.assert_array_equal(out, outs[0][0])
