"""What users of scikit-learn pass in: class weights of other folds, odd kernels, indices, views, unscaled columns."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from packaging.version import Version
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.metrics.pairwise import linear_kernel, pairwise_kernels
from sklearn.svm import SVC
from sklearn.utils import check_array

from every_estimator import CLASSIFIERS, ESTIMATORS, answer, name_of
from naive.sparse import in_halves
from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCPredClassifier,
    DCPredRegressor,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    LandmarkNystroem,
    OCASClassifier,
    OCASClassifierCV,
    OCASRanker,
    OCASRegressor,
    TwoStepKernelKMeans,
    compress,
)
from widemargin.kernels.functions import make_kernel
from widemargin.models.expansion import KernelExpansion

Data = Any


# ------------------------------------------------------------------------------------------------------ class weights


def test_balanced_class_weights_count_sample_weights_as_linear_svc_and_not_as_svc(binary: Data) -> None:
    X, y = binary
    weights = np.where(y > 0, 3.0, 1.0)
    of_classes = np.bincount(y, weights)
    counted, alone = weights.sum() / (2 * of_classes), len(y) / (2 * np.bincount(y))
    for estimator in (DCSVMClassifier(class_weight="balanced"), BSGDClassifier(class_weight="balanced")):
        np.testing.assert_allclose(estimator.fit(X, y, weights).class_weight_, counted)
    np.testing.assert_allclose(SVC(class_weight="balanced").fit(X, y, weights).class_weight_, alone)
    assert not np.allclose(counted, alone)


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name_of)
def test_class_weight_is_sample_weight(estimator: Any, four: Data) -> None:
    X, y = four
    factors = {0: 0.5, 1: 3.0, 2: 1.0, 3: 2.0}
    by_class, by_row = (estimator.__class__(**estimator.get_params()) for _ in range(2))
    if hasattr(estimator, "gamma"):  # which weights change by default
        by_class.gamma = by_row.gamma = 0.2
    by_class.set_params(class_weight=factors).fit(X, y)
    by_row.fit(X, y, sample_weight=np.array([factors[label] for label in y]))
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name_of)
def test_class_weight_of_a_label_that_y_lacks_is_ignored(estimator: Any, binary: Data) -> None:
    X, y = binary
    estimator = estimator.__class__(**estimator.get_params())
    weights = {0: 1.0, 1: 3.0}
    expected = estimator.set_params(class_weight=weights).fit(X, y).decision_function(X)
    given = estimator.set_params(class_weight={**weights, 2: 7.0, "other": 2.0}).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name_of)
def test_a_class_weight_that_may_be_misspelt_is_an_error(estimator: Any, binary: Data) -> None:
    """As in scikit-learn: a label that y lacks beside one of y that has no weight."""
    X, y = binary
    labels = np.array(["no", "yes"])[y]
    estimator = estimator.__class__(**estimator.get_params()).set_params(class_weight={"Yes": 3.0})
    with pytest.raises(ValueError, match=r"\['Yes'\], but not all that y has: \['no', 'yes'\] are missing"):
        estimator.fit(X, labels)


def test_class_weight_in_a_stream(binary: Data) -> None:
    X, y = binary
    stream = BSGDClassifier(lam=1e-3, class_weight={0: 1.0, 1: 2.0, 5: 3.0})
    stream.partial_fit(X[y == 0], y[y == 0], classes=[0, 1]).partial_fit(X[y == 1], y[y == 1])
    assert stream.t_ == len(y)


# ------------------------------------------------------------------------------------------------- kernels and indices


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.coo_matrix, np.asmatrix])
def test_a_callable_kernel_may_return_any_matrix(kind: Any, four: Data) -> None:
    X, y = sp.csr_array(four[0][:60]), four[1][:60]
    models = [
        DCSVMClassifier(kernel=kernel).fit(X, y).decision_function(X)
        for kernel in (lambda A, B: (A @ B.T).toarray(), lambda A, B: kind(linear_kernel(A, B, dense_output=True)))
    ]
    np.testing.assert_allclose(*models, atol=1e-6)


@pytest.mark.parametrize(
    "estimator",
    [
        DCSVMClassifier(),
        OCASClassifier(),
        *(BSGDClassifier(maintenance=name, n_epochs=2, random_state=0) for name in ("merge", "removal", "projection")),
    ],
    ids=name_of,
)
def test_sparse_arrays_and_matrices_of_any_index_width(estimator: Any, four: Data) -> None:
    dense, y = four[0][:100], four[1][:100]
    usual = sp.csr_array(dense)
    expected = answer(estimator.fit(usual, y), usual)
    unsorted = sp.csr_array((usual.data.copy(), usual.indices.copy(), usual.indptr), usual.shape)
    for start, end in zip(usual.indptr, usual.indptr[1:], strict=False):
        for part in (unsorted.data, unsorted.indices):
            part[start:end] = part[start:end][::-1].copy()
    for rows in (unsorted, in_halves(dense)):
        before = rows.indices.copy()
        np.testing.assert_allclose(answer(estimator.fit(rows, y), rows), expected, atol=1e-5)
        np.testing.assert_array_equal(rows.indices, before)  # the caller's arrays are the caller's
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix):
        rows = kind(dense)
        for part in ("indices", "indptr", "row", "col"):
            if isinstance(getattr(rows, part, None), np.ndarray):
                setattr(rows, part, getattr(rows, part).astype(np.int64))
        np.testing.assert_allclose(answer(estimator.fit(rows, y), rows), expected, atol=1e-9)


# ------------------------------------------------------------------------------------------------- weights of features


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_coef_is_that_of_svc(n_classes: int, form: Any, four: Data) -> None:
    X, y = four[0][four[1] < n_classes], four[1][four[1] < n_classes]
    X = form(X)
    model = DCSVMClassifier(kernel="linear", fit_intercept=True, tol=1e-8).fit(X, y)
    coef, rival = (m.coef_ for m in (model, SVC(kernel="linear", tol=1e-8).fit(X, y)))
    assert coef.shape == rival.shape == (n_classes * (n_classes - 1) // 2, X.shape[1])
    assert sp.issparse(coef) == sp.issparse(rival)
    coef, rival = (c.toarray() if sp.issparse(c) else c for c in (coef, rival))
    np.testing.assert_allclose(coef, rival, atol=1e-4 * np.abs(rival).max())
    model.decision_function_shape = "ovo"
    values = np.reshape(model.decision_function(X), (X.shape[0], -1))
    np.testing.assert_allclose(X @ coef.T + model.intercept_, values, atol=1e-6)
    if form is np.asarray:
        with pytest.raises(ValueError, match="read-only"):
            model.coef_[0, 0] = 1.0


@pytest.mark.slow
def test_coef_of_a_budgeted_machine(four: Data) -> None:
    X, y = four
    model = BSGDClassifier(kernel="linear", maintenance="removal", fit_intercept=True, random_state=0).fit(X, y)
    assert model.coef_.shape == (4, X.shape[1])
    np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, model.decision_function(X), atol=1e-6)


def test_coef_says_why_it_is_not_there(binary: Data) -> None:
    X, y = binary
    with pytest.raises(AttributeError, match="kernel='linear' alone, got kernel='rbf'"):
        _ = DCSVMClassifier().fit(X, y).coef_
    with pytest.raises(AttributeError, match="early prediction"):
        _ = DCSVMClassifier(kernel="linear", n_levels=1, stop_level=1).fit(X, y).coef_
    assert not hasattr(DCSVMClassifier(kernel="linear"), "coef_")


@pytest.mark.parametrize(
    ("estimator", "form"),
    [
        (DCSVMClassifier(kernel="linear"), sp.csr_array),
        (DCSVMRegressor(kernel="linear"), np.asarray),
        (OCASClassifier(), np.asarray),
        (BSGDClassifier(kernel="linear", maintenance="removal", n_epochs=2), np.asarray),
    ],
)
def test_features_are_selected_by_coef(estimator: Any, form: Any, binary: Data) -> None:
    X, y = form(binary[0]), binary[1]
    assert RFE(estimator, n_features_to_select=2).fit(X, y).support_.sum() == 2
    if form is sp.csr_array and Version(sklearn.__version__) < Version("1.7"):
        return  # `SelectFromModel` takes no sparse array as `coef_`
    assert 0 < SelectFromModel(estimator).fit(X, y).get_support().sum() < X.shape[1]


@pytest.mark.parametrize("kernel", ["cosine", "chi2", "additive_chi2", "polynomial"])
def test_scikit_learns_kernels_by_name(kernel: str, four: Data) -> None:
    X, y = four[0][:60] + 0.01, four[1][:60] % 2
    options = {"degree": 2, "gamma": 0.1}
    metric = {"chi2": {"gamma": 0.1}, "polynomial": {**options, "coef0": 0}}.get(kernel, {})
    K = pairwise_kernels(X, metric=kernel, **metric)
    for kind, target in ((DCSVMClassifier, y), (DCSVMRegressor, X[:, 20]), (DCOneClassSVM, None)):
        more = {} if kind is DCOneClassSVM else {"fit_intercept": True}
        by_name = kind(kernel=kernel, tol=1e-6, **options, **more).fit(X, target)
        given = kind(kernel="precomputed", tol=1e-6, **more).fit(K, target)
        assert by_name.objective_ == pytest.approx(given.objective_, rel=1e-5)
        assert np.isnan(by_name.dual_gap_) == (kernel == "additive_chi2")  # not positive semidefinite: no bound
        by_name = pickle.loads(pickle.dumps(by_name))
        assert np.mean(np.isclose(by_name.predict(X), given.predict(K), atol=1e-3)) > 0.99
    stream = BSGDClassifier(kernel=kernel, maintenance="removal", n_epochs=1, **options).fit(X, y)
    K = pairwise_kernels(X, stream.support_vectors_, metric=kernel, **metric)
    np.testing.assert_allclose(stream.decision_function(X), K @ stream.dual_coef_[0], rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match="kernel must be one of"):
        DCPredClassifier(kernel="cosine").fit(X, y)


@pytest.mark.parametrize(
    ("kind", "class_weight"),
    [(DCSVMClassifier, None), (BSGDClassifier, "balanced"), (DCPredClassifier, {0: 2.0, 1: 1.0, 2: 1.0, 3: 0.5})],
)
def test_class_weights_and_the_shape_are_those_of_svc(kind: Any, class_weight: Any, four: Data) -> None:
    X, y = four[0][:60], np.where(np.arange(60) < 10, 3, four[1][:60])
    model, rival = (estimator(class_weight=class_weight).fit(X, y) for estimator in (kind, SVC))
    np.testing.assert_allclose(model.class_weight_, rival.class_weight_)
    assert model.shape_fit_ == rival.shape_fit_ == X.shape


# ------------------------------------------------------------------------------------------------------- probabilities


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name_of)
def test_probabilities_are_answered_with_what_to_do(estimator: Any, binary: Data) -> None:
    X, y = binary[0][:60], binary[1][:60]
    for method in ("predict_proba", "predict_log_proba"):
        assert not hasattr(estimator, method)
        with pytest.raises(AttributeError, match=rf"CalibratedClassifierCV\({name_of(estimator)}\(\.\.\.\)") as caught:
            getattr(estimator, method)
        assert f".{method}(X)" in str(caught.value)
    calibrated = CalibratedClassifierCV(estimator, ensemble=False, cv=2).fit(X, y)  # what the message says
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)


# --------------------------------------------------------------------------------------------------- unequal columns


def one_wide(kind: Any = np.asarray, n: int = 400) -> tuple[Any, Any]:
    """Ten columns of which the fifth, without a label's trace, spreads 10,000 times as far as the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10)) + 3.0
    y = (X[:, 0] + X[:, 1] > 6.0).astype(int)
    X[:, 4] *= 1e4
    return kind(X), y


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        *((e, np.asarray) for e in ESTIMATORS if not isinstance(e, OCASClassifier | OCASRanker | OCASRegressor)),
        (DCSVMClassifier(kernel="poly", max_iter=5), sp.csr_array),
        (BSGDClassifier(n_epochs=1), sp.csr_array),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_wide_column_is_warned_about_once(estimator: Any, kind: Any) -> None:
    X, y = one_wide(kind)
    scaler = "MaxAbsScaler" if kind is sp.csr_array else "StandardScaler"
    targets = np.where(y, 1.5, -0.5) if isinstance(estimator, DCPredRegressor | DCSVMRegressor) else y
    with pytest.warns(UserWarning, match=rf"column 4 of X spreads .*Scale the features.*{scaler}") as caught:
        estimator.__class__(**estimator.get_params()).fit(X, targets)
    assert len([w for w in caught if "Scale the features" in str(w.message)]) == 1
    assert [w.filename for w in caught if "Scale the features" in str(w.message)] == [__file__]


def test_a_wide_column_is_warned_about_in_a_stream() -> None:
    X, y = one_wide()
    stream = BSGDClassifier(lam=1e-3)
    with pytest.warns(UserWarning, match="column 4 of X"):
        stream.partial_fit(X, y, classes=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.partial_fit(X, y)


def test_a_wide_column_that_labels_follow_from_is_not_warned_about() -> None:
    X, _ = one_wide()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DCSVMClassifier().fit(X, X[:, 4] > 3e4)
        DCPredRegressor().fit(X, X[:, 4] / 1e4)


def test_a_remedy_ends_the_warning() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    for scaler, kind in ((StandardScaler(), np.asarray), (MaxAbsScaler(), sp.csr_array)):
        X, y = one_wide(kind)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert make_pipeline(scaler, DCSVMClassifier(C=10)).fit(X, y).score(X, y) > 0.9


# ------------------------------------------------------------------------------------------------ numbers as Python's


def wrapped(value: Any) -> bool:
    """Whether a scalar of NumPy's, or something that holds one, would be printed as such."""
    if isinstance(value, dict):
        return any(map(wrapped, value.values()))
    if isinstance(value, list | tuple):
        return any(map(wrapped, value))
    return isinstance(value, np.generic)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_fitted_attributes_are_arrays_or_numbers_of_python(estimator: Any, four: Data) -> None:
    X, y = four[0][:60], four[1][:60]
    model = estimator.__class__(**estimator.get_params()).fit(X, y)
    assert not [name for name, value in vars(model).items() if name.endswith("_") and wrapped(value)]
    assert "np." not in repr(model)


@pytest.mark.parametrize(
    "labels",
    [["a", "b"], [3, 7], [0.0, 2.0], [True, False], np.array([np.str_("a"), np.str_("b")], object)],
    ids=["str", "int", "float", "bool", "object"],
)
def test_messages_have_labels_as_they_were_written(labels: Any, binary: Data) -> None:
    (X, y), estimator = binary, DCSVMClassifier()
    labels = np.asarray(labels)
    one = np.repeat(labels[:1], len(y))
    with pytest.raises(ValueError, match="one class") as caught:
        estimator.fit(X, one)
    assert "np." not in str(caught.value)
    for weights in ({labels[0]: np.float64(-1.0), labels[1]: 1.0}, {"other": 1.0}, np.int64(1)):
        with pytest.raises(ValueError, match="class_weight") as caught:
            estimator.set_params(class_weight=weights).fit(X, labels[y])
        assert "np." not in str(caught.value)


def test_messages_of_a_stream_have_labels_as_they_were_written(binary: Data) -> None:
    X, y = binary
    stream = BSGDClassifier().partial_fit(X, np.array(["a", "b"])[y], classes=np.array(["a", "b"]))
    for labels, classes in ((["c"] * len(y), None), (["a"] * len(y), np.array(["a", "c"]))):
        with pytest.raises(ValueError, match="first call") as caught:
            stream.partial_fit(X, labels, classes=classes)
        assert "np." not in str(caught.value)


def test_a_report_has_numbers_of_python(binary: Data) -> None:
    X, y = binary
    report = compress(SVC().fit(X, y), X, random_state=0).report_
    assert not wrapped(list(vars(report).values()))
    assert "np." not in repr(report) + str(report)


def test_rows_with_hardly_a_value() -> None:
    """Float32 decision values are corrected at this C, on as many rows as the memory has room for."""
    rng = np.random.default_rng(0)
    X = sp.random_array((2000, 50), density=0.0015, rng=rng, dtype=np.float32, format="csr")
    model = DCSVMClassifier(C=1e4, random_state=0).fit(X, rng.integers(2, size=2000))
    assert np.isfinite(model.objective_)


# --------------------------------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize(("estimator", "dtype"), [(DCSVMClassifier(), "bool"), (OCASClassifier(), "int64")])
def test_frames_of_sparse_columns(estimator: Any, dtype: str, binary: Data) -> None:
    """As of `pandas.get_dummies(sparse=True)`."""
    pd = pytest.importorskip("pandas")
    X, y = binary
    dense = pd.DataFrame(X > 0.5).add_prefix("column ").astype(dtype)
    frame = dense.astype(pd.SparseDtype(dtype, np.zeros((), dtype)[()]))
    rows: Any = dense.to_numpy().astype(np.float64)
    if sp.issparse(check_array(frame, accept_sparse="csr")):  # scikit-learn 1.6 makes sparse booleans dense
        rows = sp.csr_array(rows)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X (does not have|has) .*feature names")
        expected = answer(estimator.__class__(**estimator.get_params()).fit(rows, y), rows)
        model = estimator.__class__(**estimator.get_params()).fit(frame, y)
        np.testing.assert_array_equal(answer(model, frame), expected)
    assert list(model.feature_names_in_) == list(frame.columns)


# ------------------------------------------------------------------------------------------ functions of the user's


class Raising:
    """A kernel, a scorer or a callback that raises StopIteration."""

    def __call__(self, *args: Any, **_: Any) -> Any:
        raise StopIteration

    def setup(self, *_: Any, **__: Any) -> None: ...

    teardown = on_fit_task_begin = setup
    on_fit_task_end = split = __call__

    def get_n_splits(self, *_: Any) -> int:
        return 2


FUNCTIONS = {
    "kernel": DCSVMClassifier(kernel=Raising()),
    "kernel of SGD": BSGDClassifier(kernel=Raising(), maintenance="removal"),
    "kernel of clusters": TwoStepKernelKMeans(3, kernel=Raising()),
    "kernel of landmarks": LandmarkNystroem(3, kernel=Raising()),
    "scorer": DCSVMClassifierCV([1.0], 1, scoring=Raising()),
    "scorer of a linear search": OCASClassifierCV([1.0], scoring=Raising()),
    "splitter": OCASClassifierCV([1.0], cv=Raising()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_stop_iteration_is_an_error(name: str, binary: Data) -> None:
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        _ = [*map(FUNCTIONS[name].fit, [binary[0]], [binary[1]])]  # whose loop a StopIteration would end


def test_stop_iteration_of_callbacks_predictions_and_paths(binary: Data) -> None:
    X, y = binary
    model = DCSVMClassifier(kernel=linear_kernel).fit(X, y)
    model._model = KernelExpansion(make_kernel(Raising()), X, np.ones((1, len(X))), np.zeros(1))
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        model.predict(X)
    pytest.importorskip("sklearn.callback")
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        OCASClassifier().set_callbacks(Raising()).fit(X, y)
