"""RelevanceScaler: the estimator contract, irrelevant columns, weights, bad input."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline

from widemargin import DCSVMClassifier, DCSVMRegressor, RelevanceScaler

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 12))
VALUES = np.sin(2 * X[:, 0]) + X[:, 1]
CLASSES = np.digitize(VALUES, [-0.7, 0.7])


@pytest.mark.parametrize(
    ("kernel", "y"),
    [
        ("laplacian", VALUES),
        ("rbf", 1e-9 * VALUES),
        ("rbf", CLASSES),
        ("laplacian", CLASSES > 0),
        ("laplacian", np.column_stack([VALUES, -VALUES])),
    ],
)
def test_irrelevant_columns_are_found(y: NDArray[Any], kernel: str) -> None:
    scaler = RelevanceScaler(kernel).fit(X, y)
    assert scaler.relevance_.max() == 1.0
    assert scaler.relevance_[:2].min() > 3 * scaler.relevance_[2:].max()
    assert scaler.n_iter_ == 3
    np.testing.assert_allclose(scaler.transform(X), X * scaler.scale_)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X)


@pytest.mark.parametrize(("machine", "y"), [(DCSVMRegressor(C=10), VALUES), (DCSVMClassifier(C=10), CLASSES)])
def test_a_machine_behind_it_predicts_better(machine: Any, y: NDArray[Any]) -> None:
    plain = machine.fit(X[:600], y[:600]).score(X[600:], y[600:])
    scaled = make_pipeline(RelevanceScaler(), machine).fit(X[:600], y[:600]).score(X[600:], y[600:])
    assert 1 - scaled < 0.6 * (1 - plain)


@pytest.mark.slow
@pytest.mark.parametrize("y", [VALUES, CLASSES])
def test_sparse_rows_and_float32(y: NDArray[Any]) -> None:
    rows = np.where(RNG.uniform(size=X.shape) < 0.4, X, 0.0)
    scaler, sparse = RelevanceScaler().fit(rows, y), RelevanceScaler().fit(sp.csr_array(rows), y)
    np.testing.assert_allclose(sparse.scale_, scaler.scale_, rtol=5e-3)  # of machines to a rough tolerance
    scaled = sparse.transform(sp.csr_array(rows))
    assert sp.issparse(scaled)
    np.testing.assert_allclose(scaled.toarray(), rows * sparse.scale_, rtol=1e-6)
    single = RelevanceScaler().fit(rows.astype(np.float32), y)
    np.testing.assert_allclose(single.scale_, scaler.scale_, rtol=0.05)
    assert single.transform(rows.astype(np.float32)).dtype == np.float32


def test_the_same_for_any_number_of_threads() -> None:
    one = RelevanceScaler(n_rows=400, n_jobs=1).fit(X, CLASSES)
    np.testing.assert_array_equal(one.scale_, RelevanceScaler(n_rows=400, n_jobs=3).fit(X, CLASSES).scale_)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["laplacian", "rbf"])
def test_constant_columns_and_a_single_one(kernel: str) -> None:
    with_constant = np.column_stack([X[:, 0], np.ones(len(X)), X[:, 1]])
    scaler = RelevanceScaler(kernel).fit(with_constant, VALUES)
    assert scaler.relevance_[1] == 0.0
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(with_constant)), with_constant)
    assert RelevanceScaler(kernel).fit(X[:, :1], VALUES).scale_.tolist() == [1.0]


@pytest.mark.filterwarnings("ignore:gamma=1")
@pytest.mark.parametrize("kernel", ["laplacian", "rbf"])
def test_no_column_that_matters(kernel: str) -> None:
    with pytest.warns(UserWarning, match="every column has relevance 1"):
        scaler = RelevanceScaler(kernel).fit(np.ones((20, 3)), np.arange(20.0) + 0.5)
    assert scaler.relevance_.tolist() == scaler.scale_.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.slow
def test_what_y_is() -> None:
    whole = np.arange(300) % 150  # more than 100 different numbers
    values = RelevanceScaler(n_iter=1).fit(X[:300], whole)
    np.testing.assert_array_equal(values.scale_, RelevanceScaler(n_iter=1, target="values").fit(X[:300], whole).scale_)
    few = RelevanceScaler(n_iter=1).fit(X, CLASSES)
    np.testing.assert_array_equal(few.scale_, RelevanceScaler(n_iter=1, target="classes").fit(X, CLASSES).scale_)
    assert (few.scale_ != RelevanceScaler(n_iter=1, target="values").fit(X, CLASSES).scale_).any()


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({}, np.full(900, 0.1), r"y must have different values, got 0\.1 in every row"),
        ({}, np.ones(900, int), "y must have at least two classes with positive weight, got one class: 1"),
    ],
)
def test_bad_input_is_named(parameters: dict[str, Any], y: NDArray[Any], message: str) -> None:
    scaler = RelevanceScaler(**parameters)
    with pytest.raises(ValueError, match=message):
        scaler.fit(X, y)
    with pytest.raises(NotFittedError):
        scaler.transform(X)


def test_out_of_time() -> None:
    with pytest.warns(ConvergenceWarning, match=r"stopped by max_time.* after 1 of 3 models"):
        scaler = RelevanceScaler(max_time=0).fit(X, VALUES)
    assert scaler.n_iter_ == 1
