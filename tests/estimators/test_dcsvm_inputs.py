"""`DCSVMClassifier` on every form of input: dense, sparse, single, double; built-in kernels and the user's own."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel

from widemargin import DCSVMClassifier

Data = tuple[NDArray[np.float64], NDArray[np.int64]]


def machine(**options: Any) -> DCSVMClassifier:
    return DCSVMClassifier(**({"C": 2.0, "gamma": 0.2, "tol": 1e-6} | options))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear"])
def test_sparse_rows_give_the_dense_machine(kernel: str, four: Data) -> None:
    (X, y), rows = four, sp.csr_array(four[0])
    dense = machine(kernel=kernel, fit_intercept=True).fit(X, y)
    sparse = machine(kernel=kernel, fit_intercept=True).fit(rows, y)
    assert sp.issparse(sparse.support_vectors_)
    f = dense.decision_function(X)
    for model, given in ((sparse, rows), (sparse, X), (dense, rows)):
        np.testing.assert_allclose(model.decision_function(given), f, atol=1e-4)
    np.testing.assert_array_equal(sparse.predict(rows[:1]), dense.predict(X[:1]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_of_the_data_stays(dtype: Any, form: Any, four: Data) -> None:
    X, y = four
    rows = form(X.astype(dtype))
    model = machine().fit(rows, y)
    assert model.support_vectors_.dtype == dtype
    assert model.dual_coef_.dtype == np.float64
    assert model.decision_function(rows).dtype == np.float64
    reference = machine().fit(X, y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(rows), reference, atol=1e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("convert", [np.asfortranarray, lambda X: X[::-1][::-1], lambda X: X.tolist()])
def test_memory_layout_does_not_matter(convert: Any, binary: Data) -> None:
    X, y = binary
    f = machine().fit(X, y).decision_function(X)
    np.testing.assert_allclose(machine().fit(convert(X), y).decision_function(convert(X)), f, atol=1e-9)


def test_empty_rows_and_constant_columns() -> None:
    X = sp.csr_array(np.array([[0.0, 0, 1], [0, 0, 0], [2, 0, 1], [0, 0, 3], [1, 0, 0], [0, 0, 0]]))
    y = np.array([0, 1, 0, 1, 0, 1])
    model = machine().fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), machine().fit(X.toarray(), y).decision_function(X), atol=1e-6
    )


BUILT_IN = {
    "rbf": (rbf_kernel, {"gamma": 0.2}),
    "laplacian": (laplacian_kernel, {"gamma": 0.2}),
    "poly": (polynomial_kernel, {"gamma": 0.2, "degree": 2, "coef0": 1.0}),
    "sigmoid": (sigmoid_kernel, {"gamma": 0.01, "coef0": 0.1}),
    "linear": (lambda X, Z: X @ Z.T, {}),
}


@pytest.mark.parametrize("kernel", BUILT_IN)
def test_precomputed_and_callable_are_the_built_in(kernel: str, four: Data) -> None:
    X, y = four
    train, test, labels = X[:160], X[160:], y[:160]
    function, options = BUILT_IN[kernel]
    shared: dict[str, Any] = {"C": 0.5, "tol": 1e-6, "fit_intercept": True}
    built_in = DCSVMClassifier(kernel=kernel, **shared, **options).fit(train, labels)
    called = DCSVMClassifier(kernel=lambda A, B: function(A, B, **options), **shared).fit(train, labels)
    given = DCSVMClassifier(kernel="precomputed", **shared).fit(function(train, train, **options), labels)
    f = built_in.decision_function(test)
    scale = np.abs(f).max()
    np.testing.assert_allclose(called.decision_function(test), f, atol=1e-4 * scale)
    np.testing.assert_allclose(given.decision_function(function(test, train, **options)), f, atol=1e-4 * scale)
    np.testing.assert_array_equal(given.predict(function(test, train, **options)), built_in.predict(test))


@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_gamma_by_name_is_that_of_svc(gamma: str, binary: Data) -> None:
    X, y = binary
    value = 1 / X.shape[1] if gamma == "auto" else 1 / (X.shape[1] * X.var())
    np.testing.assert_allclose(
        machine(gamma=gamma).fit(X, y).decision_function(X),
        machine(gamma=value).fit(X, y).decision_function(X),
        atol=1e-5,
    )


def test_gamma_scale_of_sparse_data_counts_the_zeros(four: Data) -> None:
    X, y = four
    f = machine(gamma="scale").fit(X, y).decision_function(X)
    np.testing.assert_allclose(machine(gamma="scale").fit(sp.csr_array(X), y).decision_function(X), f, atol=1e-4)


@pytest.mark.parametrize("factor", [1e4, 1e-6])
def test_a_degenerate_kernel_is_warned_about(factor: float, binary: Data) -> None:
    """Features far too large or too small for gamma make the kernel nearly the identity, or nearly constant."""
    X, y = binary
    with pytest.warns(UserWarning, match=r"gamma=1\b.*Scale the features") as caught:
        DCSVMClassifier(gamma=1.0).fit(factor * X, y)
    assert caught[0].filename == __file__  # it points at the user's line


def test_a_good_kernel_is_not_warned_about(binary: Data, four: Data) -> None:
    for X, y in (binary, four):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            DCSVMClassifier().fit(X, y)
            DCSVMClassifier(gamma=5.0).fit(X, y)  # narrow, and yet some rows are neighbours
