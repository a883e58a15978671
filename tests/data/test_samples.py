"""Batches of samples of every kind against dense NumPy arrays."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from naive import kernels as naive
from peak_memory import peak_of
from widemargin.data.csr import prefers_csr
from widemargin.data.rows import spread_rows
from widemargin.data.samples import (
    DenseSamples,
    GramSamples,
    Samples,
    SampleSubset,
    SparseSamples,
    make_samples,
    view_samples,
)

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def sparse_matrix(rng: np.random.Generator, n: int, d: int, dtype: np.dtype, *, index: type = np.int32) -> sp.csr_array:
    """A CSR array with unsorted and repeated columns, explicit zeros and empty rows."""
    counts = rng.integers(0, d + 1, size=n)
    counts[n // 2 :] = np.minimum(counts[n // 2 :], 2)
    indices = np.concatenate([np.zeros(0, index), *(rng.integers(0, d, size=k) for k in counts)]).astype(index)
    data = (rng.normal(size=len(indices)) * rng.choice([0.0, 1.0, 1.0], size=len(indices))).astype(dtype)
    matrix = sp.csr_array((n, d), dtype=dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, np.concatenate([[0], np.cumsum(counts)]).astype(index)
    matrix.has_sorted_indices = matrix.has_canonical_format = False
    return matrix


def inner(A: Samples, B: Samples) -> NDArray[np.floating]:
    out = np.full((len(A), len(B)), np.nan, A.dtype)
    A.inner(B, out)
    return out


def test_sparse_samples_are_pickled_as_their_rows() -> None:
    samples = make_samples(sparse_matrix(np.random.default_rng(0), 30, 7, DOUBLE))
    copy = pickle.loads(pickle.dumps(samples.take(slice(4, 9))))
    np.testing.assert_array_equal(copy.toarray(), samples.toarray()[4:9])
    np.testing.assert_array_equal(inner(copy, samples), inner(samples, samples)[4:9])


def test_a_dense_batch_is_pickled_without_the_other_rows() -> None:
    X = np.random.default_rng(0).normal(size=(1000, 5)).astype(np.float32)
    batch = make_samples(X, "distances").take(np.array([3, 900, 17]))
    pickled = pickle.dumps(batch)
    assert len(pickled) < 0.1 * X.nbytes
    for samples in (batch, pickle.loads(pickled)):
        exact = samples.astype(np.dtype(np.float64), np.dtype(np.float64))  # of the rows before they were rounded
        expected = X[[3, 900, 17]] - X.mean(axis=0, dtype=np.float64).astype(np.float32).astype(np.float64)
        np.testing.assert_allclose(exact.toarray(), expected, rtol=1e-15)


def test_the_callers_sparse_matrix_is_left_as_it_was() -> None:
    X = sparse_matrix(np.random.default_rng(0), 6, 5, DOUBLE)
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    make_samples(X, "distances")
    for now, then in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_views_of_sparse_rows(index: type) -> None:
    X = sparse_matrix(np.random.default_rng(0), 30, 7, DOUBLE)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    samples = make_samples(X)
    assert samples.nbytes == 0
    dense, other = X.toarray(), make_samples(X[:5])
    rows = samples.take(slice(4, 20)).take(slice(3, 9))
    for batch, truth in (
        (rows, dense[7:13]),
        (rows.take(np.array([5, 0, 2])), dense[[12, 7, 9]]),
        (samples.take(slice(5, 5)), dense[5:5]),
    ):
        assert len(batch) == len(truth)
        np.testing.assert_array_equal(batch.toarray(), truth)
        np.testing.assert_allclose(batch.squares, np.square(truth).sum(axis=1))
        np.testing.assert_allclose(inner(batch, other), truth @ dense[:5].T, atol=1e-12)


@pytest.mark.parametrize("form", ["products", "distances"])
def test_dense_data_of_mostly_zeros_are_held_as_csr(form: str) -> None:
    X = sp.random_array((50, 40), density=0.1, rng=np.random.default_rng(0)).toarray()
    samples = make_samples(X, form)
    assert isinstance(samples, SparseSamples)
    assert samples.nbytes > 0
    np.testing.assert_allclose(inner(samples, samples), naive.linear(X, X), atol=1e-12)
    assert isinstance(make_samples(X, "rows"), DenseSamples), "a function of rows gets the rows as they are"


def test_a_large_constant_column_keeps_data_dense_and_centred() -> None:
    X = sp.random_array((50, 40), density=0.1, rng=np.random.default_rng(0)).toarray()
    X[:, 3] = 1e4
    samples = make_samples(X, "distances")
    assert isinstance(samples, DenseSamples)
    assert samples.squares.max() < 100


def test_centring_is_for_distances_only_and_follows_new_rows() -> None:
    rng = np.random.default_rng(0)
    X, Z = (1000 + rng.normal(size=(n, 3)) for n in (7, 4))
    np.testing.assert_array_equal(make_samples(X, "products").toarray(), X)
    samples = make_samples(X, "distances")
    assert samples.nbytes == X.nbytes
    assert np.abs(samples.toarray().mean(axis=0)).max() < 1e-9
    for new in (Z, sp.csr_array(Z)):
        A, B = samples.pair_with(new)
        difference = A.squares[:, None] + B.squares - 2 * inner(A, B)
        np.testing.assert_allclose(difference, ((X[:, None] - Z) ** 2).sum(-1), rtol=1e-9)


@pytest.mark.parametrize("n_blocks", [0, 1, 3])
def test_out_of_time_the_rows_are_taken_as_they_are(n_blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is asked before each block of rows is centred: no time ends it with the caller's own array."""
    monkeypatch.setattr("widemargin._threads.BLOCK_VALUES", 10)
    X, answers = 5.0 + np.random.default_rng(0).normal(size=(12, 5)), iter([True] * (n_blocks + 1) + [False])
    samples = make_samples(X, "distances", lambda: next(answers))
    assert isinstance(samples, DenseSamples)
    assert samples.X is X
    assert samples.shift is None
    assert samples.nbytes == 0
    assert next(answers, None) is None


def test_new_rows_for_sparse_points_may_be_dense_or_sparse() -> None:
    rng = np.random.default_rng(1)
    X, Z = (sparse_matrix(rng, n, 6, SINGLE) for n in (5, 8))
    truth = X.toarray().astype(DOUBLE) @ Z.toarray().T
    for new in (Z, Z.toarray(), Z.astype(DOUBLE)):
        A, B = make_samples(X, "products").pair_with(new)
        np.testing.assert_allclose(inner(A, B), truth, rtol=1e-5, atol=1e-5)


def test_a_grams_batches_are_its_rows_and_columns() -> None:
    K = np.arange(30.0).reshape(5, 6)[:, :5] + np.arange(5)[:, None]  # not symmetric, so that sides cannot be swapped
    samples = make_samples(K, "entries")
    assert isinstance(samples, GramSamples)
    rows, columns = samples.take(np.array([3, 0])), samples.take(slice(1, 4))
    np.testing.assert_array_equal(inner(rows, columns), K[[3, 0], 1:4])
    np.testing.assert_array_equal(samples.squares, K.diagonal())
    new = np.arange(15.0).reshape(3, 5)
    A, B = rows.pair_with(new)
    np.testing.assert_array_equal(inner(A, B), new[:, [3, 0]].T)


@pytest.mark.parametrize("kind", ["dense", "centred", "sparse", "gram", "subset"])
def test_conversion_keeps_the_samples(kind: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6, 6)).astype(SINGLE)
    samples: Samples = {
        "dense": lambda: make_samples(X, "products"),
        "centred": lambda: make_samples(X, "distances"),
        "sparse": lambda: make_samples(sp.csr_array(X), "products"),
        "gram": lambda: make_samples(X, "entries"),
        "subset": lambda: SampleSubset(make_samples(X, "products"), np.array([1, 4])),
    }[kind]()
    double = samples.astype(DOUBLE, DOUBLE)
    assert double.dtype == double.precision == DOUBLE
    assert len(double) == len(samples)
    np.testing.assert_allclose(double.toarray(), samples.toarray(), rtol=1e-6)
    if kind != "gram":
        mixed = samples.astype(DOUBLE, SINGLE)
        assert (mixed.precision, mixed.dtype) == (DOUBLE, SINGLE)
        assert mixed.take(slice(0, 1)).precision == DOUBLE
        assert mixed.take(slice(0, 1)).dtype == SINGLE


def test_converting_a_batch_of_a_gram_copies_nothing() -> None:
    K = np.zeros((400, 400), SINGLE)
    batch = make_samples(K, "entries").take(np.arange(3)).astype(DOUBLE, DOUBLE)
    assert batch.gram is K


@pytest.mark.parametrize("X", [np.zeros((0, 3)), sp.csr_array((0, 3))])
@pytest.mark.parametrize("form", ["rows", "products", "distances"])
def test_no_rows(X: object, form: str) -> None:
    samples = make_samples(X, form)
    assert len(samples) == 0
    assert samples.squares.shape == (0,)


def test_probe_rows_are_spread_over_all_runs() -> None:
    for n in (0, 1, 63, 64, 127, 128, 129, 1000, 4097):
        rows = spread_rows(n, 64)
        assert min(n, 64) <= len(rows) <= 127
        assert np.all(np.diff(rows) > 0)
        assert np.all((rows >= 0) & (rows < n))
    np.testing.assert_array_equal(spread_rows(127, 64), np.arange(127))


def test_density_of_periodic_data() -> None:
    """Every eighth row is sparse: rows at a fixed stride of 8 would all be, or none."""
    X = np.random.default_rng(0).normal(size=(8 * 512, 40))
    X[::8] = np.eye(40)[np.arange(512) % 40]
    assert not prefers_csr(X)
    assert prefers_csr(np.where(np.arange(len(X))[:, None] % 8, np.eye(40)[np.arange(len(X)) % 40], X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_centred_batch_by_batch(dtype: type) -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(90, 5)) + 3).astype(dtype)
    chosen = np.array([4, 80, 7])
    double = np.dtype(np.float64)
    for lazy, copied in [
        (view_samples(X, "distances"), make_samples(X, "distances")),
        (view_samples(X, "distances").astype(double, double), make_samples(X, "distances").astype(double, double)),
    ]:
        assert lazy.nbytes == 0
        assert lazy.dtype == copied.dtype
        np.testing.assert_allclose(lazy.squares, copied.squares, rtol=1e-5)
        for rows in (slice(10, 30), chosen):
            products = []
            for samples in (lazy, copied):
                mine, others = samples.take(rows).pair_with(X[:6])
                products.append(np.empty((len(mine), len(others)), mine.precision))
                mine.inner(others, products[-1])
            np.testing.assert_allclose(*products, atol=1e-5)
            np.testing.assert_allclose(
                lazy.take(rows).take(slice(1, 3)).toarray(), copied.take(rows).take(slice(1, 3)).toarray(), atol=1e-6
            )


def test_far_columns_of_csr_rows_are_shifted_alike_in_batches_and_new_rows() -> None:
    rng = np.random.default_rng(0)
    dense = np.column_stack([1e8 + rng.normal(size=200), rng.normal(size=200) * (rng.random(200) < 0.1)])
    samples = make_samples(sp.csr_array(dense), "distances")
    assert samples.shift is not None
    assert samples.shift[1] == 0.0
    expected = dense - samples.shift
    for batch in (
        samples,
        samples.astype(np.dtype(np.float64), np.dtype(np.float64)),
        pickle.loads(pickle.dumps(samples)),
    ):
        np.testing.assert_array_equal(batch.take(slice(5, 50)).toarray(), expected[5:50])
        np.testing.assert_array_equal(
            batch.take(np.array([7, 3])).astype(np.dtype(np.float64), np.dtype(np.float64)).toarray(), expected[[7, 3]]
        )
        np.testing.assert_array_equal(batch.pair_with(sp.csr_array(dense[:9]))[1].toarray(), expected[:9])


def test_sparse_rows_are_looked_at_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the count of the columns' entries nor the squared norms take memory of the size of the rows."""
    monkeypatch.setattr("widemargin._threads.BLOCK_VALUES", 2**12)
    n, rng = 20_000, np.random.default_rng(0)
    values, columns = rng.standard_normal((n, 20)).astype(np.float32), np.tile(np.arange(20, dtype=np.int32), (n, 1))
    starts = np.arange(0, 20 * n + 1, 20, dtype=np.int32)
    X = sp.csr_array((values.ravel(), columns.ravel(), starts), (n, 100))
    squares, peak = peak_of(lambda: make_samples(X, "distances").squares)
    assert peak < 0.6 * X.data.nbytes  # of 1.6 MB, for the squares and their parts 0.3
    np.testing.assert_allclose(squares, np.square(values.astype(np.float64)).sum(axis=1))


def test_squares_are_whole_for_threads_that_ask_at_once() -> None:
    X = np.ones((500_000, 8), np.float32)
    barrier = Barrier(3)

    def least_of(samples: DenseSamples) -> float:
        barrier.wait()
        return float(samples.squares.min())

    with ThreadPoolExecutor(3) as pool:
        for _ in range(10):
            assert list(pool.map(least_of, [DenseSamples(X)] * 3)) == [8.0] * 3
