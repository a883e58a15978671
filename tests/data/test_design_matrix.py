"""Every kind of storage gives the same two products, whatever the number of threads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from peak_memory import peak_of
from widemargin._threads import ThreadTeam
from widemargin.data import (
    LocalMatrix,
    RowAccess,
    has_finite_rows,
    has_finite_values,
    make_design_matrix,
    mapped_pages,
    take_rows,
    with_constant,
)


def kinds(X: np.ndarray) -> dict[str, Any]:
    sparse = sp.csr_array(X)
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return {
        "C": X,
        "F": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "int32": sparse,
        "int64": wide,
    }


@pytest.fixture(scope="module")
def data() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(700, 9)) * rng.choice([0.0, 1.0], (700, 9))).astype(np.float32)


@pytest.mark.parametrize("kind", ["C", "F", "strided", "int32", "int64"])
@pytest.mark.parametrize("k", [1, 9])
def test_products(data: np.ndarray, kind: str, k: int) -> None:
    rng = np.random.default_rng(k)
    W, coef = rng.normal(size=(k, 9)), rng.normal(size=(k, 700)) * rng.choice([0.0, 1.0], (k, 700))
    with ThreadTeam(2) as team:
        rows = make_design_matrix(kinds(data)[kind], team)
        outputs, sums = rows.matvec(W), rows.rmatvec(coef)
    exact = data.astype(np.float64)
    np.testing.assert_allclose(outputs, W @ exact.T, atol=1e-12 if k == 1 else 1e-5)
    np.testing.assert_allclose(sums, coef @ exact, atol=1e-11)
    alone = make_design_matrix(kinds(data)[kind], ThreadTeam(1))
    np.testing.assert_array_equal(outputs, alone.matvec(W))
    np.testing.assert_array_equal(sums, alone.rmatvec(coef))
    base = coef * rng.choice([0.5, 1.0], coef.shape)
    np.testing.assert_allclose(alone.rmatvec(coef, base), (coef - base) @ exact, atol=1e-11)


def test_no_rows() -> None:
    for X in (np.empty((0, 3)), sp.csr_array((0, 3))):
        rows = make_design_matrix(X, ThreadTeam(1))
        assert rows.matvec(np.ones((1, 3))).shape == (1, 0)
        np.testing.assert_array_equal(rows.rmatvec(np.empty((2, 0))), np.zeros((2, 3)))


def test_sums_of_few_wide_rows_take_one_block() -> None:
    rows = make_design_matrix(np.ones((100, 50_000), np.float32), ThreadTeam(1))
    assert peak_of(rows.rmatvec, np.ones((5, 100)))[1] <= 3 * 5 * 50_000 * 8


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_one_value_that_is_not_finite(n_jobs: int) -> None:
    X = np.zeros((50, 3), np.float32)
    with ThreadTeam(n_jobs) as team:
        assert has_finite_values(X, team)
        assert has_finite_values(np.ma.masked_array(X), team)
        for row in range(50):
            X[row, row % 3] = np.nan if row % 2 else -np.inf
            assert not has_finite_values(X, team)
            X[row, row % 3] = 0.0


@pytest.mark.parametrize("kind", ["C", "F", "strided", "int32", "int64", "map"])
def test_copies_of_some_rows(data: np.ndarray, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("widemargin.data.memory_map._BLOCK_BYTES", 1)
    np.save(tmp_path / "X.npy", data)
    X = kinds(data)[kind] if kind != "map" else np.load(tmp_path / "X.npy", mmap_mode="r")
    chosen = np.array([0, 1, 5, 255, 256, 300, 699])
    W = np.random.default_rng(0).normal(size=(2, 9))
    with ThreadTeam(2) as team:
        rows = make_design_matrix(X, team, 1)
        taken = rows.take(chosen)
        assert taken.shape == (7, 9)
        np.testing.assert_allclose(taken.matvec(W), W @ data[chosen].astype(np.float64).T, atol=1e-5)
        augmented = with_constant(rows)
        assert isinstance(augmented, LocalMatrix)
        assert augmented.take(chosen).shape == (7, 10)
    assert 0 < rows.row_bytes <= 9 * 12 + 1


def test_a_constant_feature(data: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    W, coef = rng.normal(size=(2, 10)), rng.normal(size=(2, 700))
    rows = with_constant(make_design_matrix(data.astype(np.float64), ThreadTeam(1)))
    whole = np.column_stack([data, np.ones(700)])
    assert rows.shape == (700, 10)
    np.testing.assert_allclose(rows.matvec(W), W @ whole.T, atol=1e-12)
    np.testing.assert_allclose(rows.rmatvec(coef), coef @ whole, atol=1e-11)


def test_pages_of_a_memory_map(data: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", data)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert mapped_pages(data, 1) is None
    assert mapped_pages(X, X.nbytes) is None
    private = np.load(tmp_path / "X.npy", mmap_mode="c")
    assert mapped_pages(private, 1) is None, "changes in private pages would be lost"
    private.flags.writeable = False
    assert mapped_pages(private, 1) is None, "also those made before"
    pages = mapped_pages(np.asarray(X)[10:], 1)
    assert pages is not None
    assert has_finite_rows(np.asarray(X)[10:], pages)
    W = np.random.default_rng(0).normal(size=(1, 9))
    for _ in range(2):  # once given back, the pages are read again
        outputs = make_design_matrix(np.asarray(X)[10:], ThreadTeam(1), 1).matvec(W)
        np.testing.assert_allclose(outputs, W @ data[10:].astype(np.float64).T, atol=1e-12)
    rows = np.arange(3, 690, 5)
    for budget in (1, X.nbytes):
        np.testing.assert_array_equal(take_rows(X, rows, budget), data[rows])


@pytest.mark.parametrize("k", [1, 3])
def test_products_of_a_memory_map(k: int, tmp_path: Path) -> None:
    data = np.random.default_rng(0).normal(size=(3000, 9)).astype(np.float32)
    np.save(tmp_path / "X.npy", data)
    rng, exact = np.random.default_rng(k), data.astype(np.float64)
    W, coef, base = rng.normal(size=(k, 9)), *rng.normal(size=(2, k, 3000))
    with ThreadTeam(2) as team, pytest.MonkeyPatch.context() as patch:
        patch.setattr("widemargin.data.memory_map._BLOCK_BYTES", 1)  # blocks of 256 rows
        rows = make_design_matrix(np.load(tmp_path / "X.npy", mmap_mode="r"), team, 1)
        assert not isinstance(rows, RowAccess)
        np.testing.assert_allclose(rows.matvec(W), W @ exact.T, atol=1e-12 if k == 1 else 1e-4)
        np.testing.assert_allclose(rows.rmatvec(coef), coef @ exact, atol=1e-11)
        np.testing.assert_allclose(rows.rmatvec(coef, base), (coef - base) @ exact, atol=1e-11)


def test_some_rows_in_fortran_order_without_a_copy_of_all() -> None:
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(20_000, 50)))
    rows, chosen = make_design_matrix(X, ThreadTeam(1)), np.arange(0, 20_000, 100)
    taken, peak = peak_of(rows.take, chosen)
    assert taken.shape == (200, 50)
    assert peak < X.nbytes // 10


@pytest.mark.parametrize("kind", ["C", "int32"])
def test_sums_for_several_threads_at_once(data: np.ndarray, kind: str) -> None:
    rows = make_design_matrix(kinds(data)[kind], ThreadTeam(1))
    coefs = [np.random.default_rng(k).normal(size=(1, 700)) for k in range(40)]
    alone = [rows.rmatvec(coef) for coef in coefs]
    with ThreadTeam(4) as team:
        for _ in range(10):
            for one, other in zip(alone, team.map(rows.rmatvec, coefs), strict=True):
                np.testing.assert_array_equal(one, other)
