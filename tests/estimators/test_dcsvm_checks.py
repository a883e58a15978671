"""`DCSVMClassifier` as a scikit-learn estimator: labels, weights, failed fits, bad input, kernels, forms of input."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from widemargin import DCPredClassifier, DCSVMClassifier, DCSVMRegressor

Data = tuple[NDArray[np.float64], NDArray[np.int64]]


def machine(**options: Any) -> DCSVMClassifier:
    return DCSVMClassifier(**({"C": 2.0, "gamma": 0.2, "tol": 1e-6} | options))


@pytest.mark.parametrize("labels", [(-1, 1), (False, True), (2.0, 7.0), (10**12, 10**12 + 1)])
def test_any_two_labels(labels: tuple[Any, Any], binary: Data) -> None:
    X, y = binary
    model = machine().fit(X, np.array(labels)[y])
    assert model.predict(X).dtype == np.array(labels).dtype
    np.testing.assert_array_equal(model.predict(X) == labels[1], model.decision_function(X) > 0)


@pytest.mark.parametrize(("shape", "break_ties"), [("ovr", False), ("ovr", True), ("ovo", False)])
def test_multiclass_shapes_are_those_of_svc(shape: str, break_ties: bool, four: Data) -> None:
    X, y = four
    options: dict[str, Any] = {"decision_function_shape": shape, "break_ties": break_ties, "gamma": 0.2, "tol": 1e-6}
    ours = DCSVMClassifier(C=2.0, fit_intercept=True, **options).fit(X, y)
    svc = SVC(C=2.0, **options).fit(X, y)
    f, g = ours.decision_function(X), svc.decision_function(X)
    assert f.shape == g.shape == (len(X), 4 if shape == "ovr" else 6)
    np.testing.assert_allclose(f, g, atol=1e-3)
    np.testing.assert_array_equal(ours.predict(X), svc.predict(X))


def test_break_ties_follows_the_decision_values() -> None:
    """Three overlapping classes in the plane: votes tie in the middle, and break_ties then obeys the largest value."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((150, 2)), rng.integers(3, size=150)
    grid = rng.uniform(-3, 3, (2000, 2))
    plain, broken = (machine(break_ties=b, tol=1e-3).fit(X, y) for b in (False, True))
    best = broken.decision_function(grid).argmax(axis=1)
    np.testing.assert_array_equal(broken.predict(grid), best)
    assert np.mean(plain.predict(grid) == best) > 0.9


def test_metadata_routing_hands_over_sample_weight(binary: Data) -> None:
    """With weights that erase a class's noise, a search that routes them must find what a weighted fit finds."""
    X, y = binary
    weights = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    with config_context(enable_metadata_routing=True):
        model = machine().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"C": [2.0]}, cv=3).fit(X, y, sample_weight=weights)
    direct = machine().fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(search.best_estimator_.dual_coef_, direct.dual_coef_)
    assert np.abs(machine().fit(X, y).decision_function(X) - direct.decision_function(X)).max() > 1e-2


def test_history_is_a_dict_of_equally_long_arrays(four: Data) -> None:
    model = machine().fit(*four)
    history = model.history_
    assert {"time", "objective", "lower_bound", "violation", "problem"} <= set(history)
    assert len({len(values) for values in history.values()}) == 1
    assert set(history["problem"]) == set(range(6))  # pairs of four classes
    for pair in range(6):
        mine = {name: values[history["problem"] == pair] for name, values in history.items()}
        assert np.all(np.diff(mine["time"]) >= 0)
        assert np.all(mine["lower_bound"] <= mine["objective"] + 1e-9)
        assert mine["violation"][-1] < model.tol
    last = [values[-1] for values in (history["objective"][history["problem"] == pair] for pair in range(6))]
    assert sum(last) == pytest.approx(model.objective_, rel=1e-6)


def failing_kernel(X: Any, Z: Any) -> Any:
    raise RuntimeError("the user's kernel broke")


@pytest.mark.parametrize("parameters", [{"C": -1.0}, {"kernel": failing_kernel}, {"class_weight": {"two": 2.0}}])
def test_failed_fit_leaves_a_fitted_estimator_as_it_was(parameters: dict[str, Any], binary: Data) -> None:
    X, y = binary
    model = machine().fit(X, y)
    f, before = model.decision_function(X), dict(vars(model))
    model.set_params(**parameters)
    with pytest.raises((ValueError, RuntimeError)):
        model.fit(X[:, :3], y)
    after = vars(model) | {key: before[key] for key in parameters}
    assert after.keys() == before.keys()
    assert all(after[key] is before[key] for key in before)
    np.testing.assert_array_equal(model.decision_function(X), f)


def test_float32_overflow_in_a_distance_is_no_nan() -> None:
    """Squares of 1e30 overflow float32: the fit says so, or works; it never returns NaN."""
    X = np.array([[1e30, 0], [-1e30, 0], [0, 1e30], [0, 1.0]], np.float32)
    y = np.array([0, 1, 0, 1])
    complaint = ""
    try:
        values = DCSVMClassifier(gamma=1.0).fit(X, y).decision_function(X)
    except ValueError as error:
        complaint = str(error)
    assert "float32" in complaint or np.isfinite(values).all()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(120, np.nan), "Input sample_weight contains NaN"),
        (np.full(120, -1.0), "sample_weight must not be negative, got -1"),
        (np.ones(7), r"sample_weight.shape == \(7,\), expected \(120,\)"),
        (np.ones((120, 2)), "Sample weights must be 1D"),
        (np.zeros(120), "at least one (non-zero|positive)"),
    ],
)
def test_bad_sample_weight(weights: NDArray[np.float64], message: str, binary: Data) -> None:
    with pytest.raises(ValueError, match=message):
        machine().fit(*binary, sample_weight=weights)


@pytest.mark.parametrize("kind", [DCSVMClassifier, DCSVMRegressor, DCPredClassifier])
def test_bounds_of_the_dual_that_overflow_are_refused(kind: Any, binary: Data) -> None:
    X, y = binary
    with pytest.raises(ValueError, match=r"C times sample_weight .* got C=1e\+300 and a weight of 1e\+10"):
        kind(C=1e300).fit(X, y, sample_weight=np.full(len(y), 1e10))


def test_break_ties_of_pairs_is_refused_before_rows_are_read(four: Data) -> None:
    X, y = four[:2]
    model = DCSVMClassifier(decision_function_shape="ovo", break_ties=True).fit(X, y)
    with pytest.raises(ValueError, match="break_ties must be False"):
        model.predict(X[0])


# ------------------------------------------------------------------------------------------------------ forms of input


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
