"""Trees of local Nystroem machines against plain loops; arrays that do not fit one another are refused."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from naive import nystroem as naive
from widemargin._native import LEVEL, Team, csr, nystroem
from widemargin.data.csr import make_csr

RNG = np.random.default_rng(0)
SIZES = np.array([3, 4, 2], np.int32)
CHILDREN = np.array([[1, -1, 2, -9], [-2, -3, -4, -5], [-6, -7, 77, -9]], np.int32)  # beyond a size: never read
ARGUMENTS = {"rbf": "squared_distance", "laplacian": "l1_distance", "poly": "inner_product", "sigmoid": "inner_product"}
KERNELS: dict[str, Any] = {
    "rbf": lambda M: np.exp(-0.3 * M),
    "laplacian": lambda M: np.exp(-0.3 * M),
    "poly": lambda M: (0.3 * M + 0.5) ** 3,
    "sigmoid": lambda M: np.tanh(0.3 * M + 0.5),
    "linear": lambda M: M,
}


def sparse(X: np.ndarray) -> csr.CSRMatrix:
    return make_csr(sp.csr_array(X))


FORMS: dict[str, Any] = {
    "dense": lambda X: X,
    "slice": lambda X: np.hstack([X, X])[:, : X.shape[1]],
    "CSR": sparse,
}


def some_rows(n: int, d: int, dtype: type = np.float64) -> np.ndarray:
    return (RNG.normal(size=(n, d)) * (RNG.random((n, d)) < 0.6)).astype(dtype)


def tolerance(dtype: type) -> dict[str, float]:
    return {"rtol": 1e-4, "atol": 2e-5} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-11}


def kernel_of(name: str) -> nystroem.Kernel:
    return nystroem.Kernel(name, gamma=0.3, coef0=0.5, degree=3)


def some_tree(d: int, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return RNG.normal(size=(3, 4, d)).astype(dtype), SIZES, CHILDREN


def some_landmarks(k: int, m: int, p: int, d: int, dtype: type) -> tuple[np.ndarray, ...]:
    U, V = RNG.normal(size=(k, m, d)), RNG.normal(size=(k, p, d))
    pseudo_distances = np.linalg.norm(U[:, :, None] - V[:, None], axis=3)
    return U.astype(dtype), pseudo_distances.astype(dtype), RNG.integers(0, 2, k)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("d", [1, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_routing(form: str, d: int, dtype: type) -> None:
    X, arrays = some_rows(60, d, dtype), some_tree(d, dtype)
    tree = nystroem.Tree(*arrays)
    rows, leaf = RNG.permutation(60)[:45], np.empty(45, np.int32)
    tree.route(FORMS[form](X), rows, leaf)
    np.testing.assert_array_equal(leaf, naive.route(X[rows].astype(float), *arrays))
    assert len(set(leaf)) > 1
    assert (tree.n_leaves, tree.depth, tree.n_distances) == (7, 2, 7)


def test_of_equally_near_centres_the_first_is_taken() -> None:
    tree = nystroem.Tree(np.zeros((1, 3, 2)), np.array([3], np.int32), np.array([[-2, -3, -1]], np.int32))
    leaf = np.empty(9, np.int32)
    tree.route(some_rows(9, 2), np.arange(9), leaf)
    assert set(leaf) == {1}


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_distances(name: str, dtype: type) -> None:
    for m in (1, 8, 13, 17, 40, 70):
        X, (U, _, bounds) = some_rows(7, 6, dtype), some_landmarks(2, m, 0, 6, dtype)
        landmarks = nystroem.Landmarks(kernel_of(name), U, np.empty((2, m, 0), dtype), bounds)
        expected = naive.pairwise(X.astype(float), U[0].astype(float), ARGUMENTS[name])
        for form in FORMS.values():
            out = np.full((7, m), np.nan, dtype)
            landmarks.pairwise(form(X), out)
            np.testing.assert_allclose(out, expected, atol=2e-5)


def test_of_sparse_rows_no_distance_is_negative() -> None:
    X = (100 * RNG.normal(size=(50, 9))).astype(np.float32)
    landmarks = nystroem.Landmarks(kernel_of("rbf"), X[None], np.empty((1, 50, 0), np.float32), np.zeros(1, np.int64))
    out = np.empty((50, 50), np.float32)
    landmarks.pairwise(sparse(X), out)
    assert out.min() == 0


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_values(name: str, dtype: type) -> None:
    X, (U, pseudo_distances, bounds) = some_rows(30, 6, dtype), some_landmarks(1, 5, 0, 6, dtype)
    out = np.full((30, 5), np.nan, dtype)
    nystroem.Landmarks(kernel_of(name), U, pseudo_distances, bounds).evaluate(X, out)
    arguments = naive.pairwise(X.astype(float), U[0].astype(float), ARGUMENTS.get(name, "inner_product"))
    np.testing.assert_allclose(out, KERNELS[name](arguments), **tolerance(dtype))


def test_the_exponential_of_float64() -> None:
    X = np.r_[0.0, np.geomspace(1e-12, 708, 4000), 708.1, 1e9][:, None]
    landmarks = nystroem.Landmarks(
        nystroem.Kernel("laplacian"), np.zeros((1, 1, 1)), np.empty((1, 1, 0)), np.zeros(1, np.int64)
    )
    out = np.empty((4003, 1))
    landmarks.evaluate(X, out)
    ratio, has_fma = out[:-2] / np.exp(-X[:-2]), LEVEL in ("v3", "v4")
    assert np.all(np.abs(ratio - 1) < 5e-16 * (1 if has_fma else 1 + X[:-2]))
    assert not out[-2:].any()


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("bound", [nystroem.LOWER, nystroem.UPPER])
def test_bounds_hold_the_distance_between_them(name: str, bound: int) -> None:
    power, order = (2, None) if name == "rbf" else (1, 1)
    X, U, V = RNG.normal(size=(21, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=(6, 3))

    def distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.array([[np.linalg.norm(a - b, order) for b in B] for a in A])

    pseudo_distances, out = distances(U, V), np.empty((21, 10))
    nystroem.Landmarks(kernel_of(name), U[None], pseudo_distances[None], np.array([bound])).evaluate(X, out)
    estimates = (-np.log(out[:, 4:]) / 0.3) ** (1 / power)
    truth = naive.bound_distances(distances(X, U), pseudo_distances, bound == nystroem.LOWER)
    np.testing.assert_allclose(estimates, truth, atol=1e-7)
    np.testing.assert_allclose(out[:, :4], np.exp(-0.3 * distances(X, U) ** power))
    excess = estimates - distances(X, V)
    assert np.all(excess <= 1e-7 if bound == nystroem.LOWER else excess >= -1e-7)


def some_machine(q: int, m: int, p: int, d: int, dtype: type, *, products: bool, slopes: bool) -> dict[str, np.ndarray]:
    k = 7
    centres, sizes, children = some_tree(d, dtype)
    landmarks, pseudo_distances, bounds = some_landmarks(k, m, p, d, dtype)
    return {
        "centres": centres,
        "sizes": sizes,
        "children": children,
        "landmarks": landmarks,
        "pseudo_distances": pseudo_distances,
        "bounds": bounds,
        "coef": RNG.normal(size=(k, q, m + p)),
        "products": RNG.normal(size=(k, q, m, m) if products else (k, q, 0, 0)).astype(dtype),  # upper triangles too
        "slopes": RNG.normal(size=(k, q if slopes else 0, d)).astype(dtype),
        "intercept": RNG.normal(size=(k, q)),
    }


def build(arrays: dict[str, Any], kernel: str = "rbf") -> nystroem.Machine:
    def own(*names: str) -> list[Any]:
        return [arrays[name] for name in names]

    tree = nystroem.Tree(*own("centres", "sizes", "children"))
    landmarks = nystroem.Landmarks(kernel_of(kernel), *own("landmarks", "pseudo_distances", "bounds"))
    return nystroem.Machine(tree, landmarks, *own("coef", "products", "slopes", "intercept"))


@pytest.mark.parametrize(
    ("q", "m", "p", "d", "products", "slopes"),
    [
        (1, 1, 0, 1, True, True),
        (1, 18, 0, 5, False, False),
        (2, 5, 3, 40, True, False),
        (9, 20, 0, 70, False, True),
        (26, 12, 2, 16, True, True),
        (1, 40, 9, 300, True, True),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decision_values(q: int, m: int, p: int, d: int, products: bool, slopes: bool, dtype: type) -> None:
    arrays, X = some_machine(q, m, p, d, dtype, products=products, slopes=slopes), some_rows(17, d, dtype)
    machine, expected = build(arrays), naive.decision_values(arrays, X.astype(float), 0.3)
    for form in FORMS.values():
        out = np.full((17, q), np.nan)
        machine.decision_values(Team(1), form(X), out)
        allowed = np.abs(out).max() * (1e-5 if dtype == np.float32 else 1e-13)
        np.testing.assert_allclose(out, expected, atol=allowed)


@pytest.mark.parametrize("n", [0, 3, 2000])
def test_numbers_of_rows(n: int) -> None:
    arrays, X = some_machine(2, 5, 3, 4, np.float64, products=True, slopes=True), some_rows(n, 4)
    out = np.full((n, 2), np.nan)
    build(arrays).decision_values(Team(2), X, out)
    for part in (slice(0, 40), slice(-40, None)) if n else ():
        np.testing.assert_allclose(out[part], naive.decision_values(arrays, X[part], 0.3), atol=1e-11)


@pytest.mark.parametrize("form", FORMS)
def test_threads_change_nothing(form: str) -> None:
    machine = build(some_machine(3, 5, 3, 4, np.float32, products=True, slopes=True))
    X, found = FORMS[form](some_rows(5000, 4, np.float32)), []
    for n_threads in (1, 2, 3):
        found.append(np.empty((5000, 3)))
        machine.decision_values(Team(n_threads), X, found[-1])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_the_machine_copies_its_arrays() -> None:
    arrays, X = some_machine(2, 5, 3, 4, np.float64, products=True, slopes=True), some_rows(20, 4)
    machine, truth, out = build(arrays), naive.decision_values(arrays, X, 0.3), np.empty((20, 2))
    for array in arrays.values():
        array[...] = 99
    machine.decision_values(Team(1), X, out)
    np.testing.assert_allclose(out, truth, atol=1e-11)
    SIZES[:], CHILDREN[:] = [3, 4, 2], [[1, -1, 2, -9], [-2, -3, -4, -5], [-6, -7, 77, -9]]


def test_denormals_are_not_flushed_afterwards() -> None:
    machine = build(some_machine(1, 5, 0, 4, np.float32, products=True, slopes=False))
    machine.decision_values(Team(1), 1e3 * np.ones((5, 4), np.float32), np.empty((5, 1)))
    assert (np.full(16, 1e-40, np.float32) * np.float32(0.5)).all()


@pytest.mark.parametrize(
    ("node", "place", "child"), [(0, 0, 0), (1, 0, 1), (2, 1, 0), (2, 0, 3), (0, 2, 2**31 - 1), (2, 0, 2)]
)
def test_children_out_of_range(node: int, place: int, child: int) -> None:
    children = CHILDREN.copy()
    children[node, place] = child
    with pytest.raises(ValueError, match=f"node {node} of the tree has the child {child}, which must be a later one"):
        nystroem.Tree(np.zeros((3, 4, 2)), SIZES, children)


@pytest.mark.parametrize("size", [0, -1, 5, 2**31 - 1])
def test_sizes_out_of_range(size: int) -> None:
    with pytest.raises(ValueError, match=rf"node 1 of the tree has {size} children, which must be in \[1, 4\]"):
        nystroem.Tree(np.zeros((3, 4, 2)), np.array([3, size, 2], np.int32), CHILDREN)


@pytest.mark.parametrize("leaf", [-8, -(2**31)])
def test_leaves_without_a_machine(leaf: int) -> None:
    arrays = some_machine(2, 5, 3, 4, np.float64, products=True, slopes=True)
    arrays["children"] = CHILDREN.copy()
    arrays["children"][1, 2] = leaf
    with pytest.raises(ValueError, match=f"the tree has the leaf {-1 - leaf}, but there are only 7 machines"):
        build(arrays)


def test_bad_kernels_and_bounds() -> None:
    arrays = some_machine(2, 5, 3, 4, np.float64, products=True, slopes=True)
    with pytest.raises(ValueError, match="name must be one of rbf, laplacian, poly, sigmoid, linear, got cosine"):
        nystroem.Kernel("cosine")
    with pytest.raises(ValueError, match="degree must be at least 0, got -1"):
        nystroem.Kernel("poly", degree=-1)
    with pytest.raises(ValueError, match="pseudo_distances are for kernels of distances"):
        build(arrays, "poly")
    for bound in (-1, 2):
        with pytest.raises(ValueError, match=f"bounds must be 0 or 1, got {bound}"):
            build({**arrays, "bounds": np.full(7, bound)})


def test_rows_and_arrays_of_another_type_or_width_are_refused() -> None:
    whole = some_machine(2, 5, 3, 4, np.float64, products=True, slopes=True)
    for name, array in whole.items():
        other = {np.float64: np.float32, np.int32: np.int64, np.int64: np.int32}[array.dtype.type]
        with pytest.raises(TypeError):
            build({**whole, name: array.astype(other)})
    for name in ("centres", "landmarks"):
        with pytest.raises(ValueError, match="must be"):
            build({**whole, name: whole[name][:, :, :3].copy()})
    machine, out = build(whole), np.empty((9, 2))
    for rows in (some_rows(9, 4, np.float32), sparse(some_rows(9, 4, np.float32))):
        with pytest.raises(TypeError):
            machine.decision_values(Team(1), rows, out)


def test_bad_routes() -> None:
    tree, X, leaf = nystroem.Tree(*some_tree(4)), some_rows(9, 4), np.empty(3, np.int32)
    for rows in ([0, 1, 9], [0, -1, 2]):
        for form in (X, sparse(X)):
            with pytest.raises(IndexError, match=r"must be in \[0, 9\)"):
                tree.route(form, np.array(rows), leaf)
    with pytest.raises(TypeError):
        tree.route(sparse(X.astype(np.float32)), np.arange(3), leaf)
