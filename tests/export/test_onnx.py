"""to_onnx: onnxruntime against our own predictions, for every kind of machine, kernel and label."""

import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_outlier_detector
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import exported_machines
from every_estimator import ESTIMATORS, SEARCHES, name_of
from exported_machines import MACHINES, fitted
from onnx_outputs import run_onnx
from widemargin import (
    BSGDClassifier,
    DCPredClassifier,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    LandmarkNystroem,
    OCASClassifier,
    OCASRegressor,
    RelevanceScaler,
    compress,
    to_onnx,
)
from widemargin.estimators import _dual_attributes
from widemargin.export.converters import KINDS

onnxruntime = pytest.importorskip("onnxruntime")

KERNELS = {
    "rbf": {"gamma": 0.3},
    "laplacian": {"gamma": 0.1},
    "poly": {"gamma": 0.1, "degree": 3, "coef0": 1.0},
    "linear": {},
    "sigmoid": {"gamma": 0.01, "coef0": 0.1},
}
NAMES = np.array(["null", "eins", "zwei", "drei"])


@pytest.fixture
def digits():
    return exported_machines.digits()


def run(model, X, **how):
    """Outputs by name, after a check that only generic operators are used."""
    graph = to_onnx(model, **how)
    assert {opset.domain for opset in graph.opset_import} == {""}
    assert "SVMClassifier" not in {node.op_type for node in graph.graph.node}
    return run_onnx(graph, X)


def assert_same(model, X, *, tol=1e-4):
    """Scores agree to `tol` of their spread and have the dtype of the input; labels agree where scores are not tied."""
    outputs = run(model, X)
    expected = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    assert outputs["scores"].shape == expected.shape
    assert outputs["scores"].dtype == X.dtype
    np.testing.assert_allclose(outputs["scores"], expected, rtol=tol, atol=tol * expected.std())
    if not is_classifier(model):
        assert is_outlier_detector(model) or list(outputs) == ["scores"]
        return outputs
    agree = outputs["label"] == model.predict(X)
    assert agree.mean() > 0.995
    return outputs


@pytest.mark.parametrize(("n_classes", "dtype"), [(4, np.float32), (2, np.float64)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_exact_machine(kernel, n_classes, dtype, digits) -> None:
    X, y = digits[0][:300].astype(dtype), digits[1][:300]
    X, y = X[y < n_classes], y[y < n_classes]
    model = DCSVMClassifier(kernel=kernel, fit_intercept=True, **KERNELS[kernel]).fit(X[::2], y[::2])
    outputs = assert_same(model, X, tol=1e-4 if dtype == np.float32 else 1e-9)
    assert outputs["label"].dtype == y.dtype


@pytest.mark.parametrize("name", MACHINES)
def test_machines(name, digits) -> None:
    X = digits[0].astype(np.float64) if name.startswith("read") else digits[0]  # of other programs, as they compute
    assert_same(fitted(name), X, tol=2e-3 if re.search("tree|compressed|triangle", name) else 1e-4)


EARLY = {
    "soft": {},
    "clusters in feature space": {"partition": "kernel"},
    "those of a polynomial": {**KERNELS["poly"], "kernel": "poly", "partition": "kernel"},
    **{name: {**how, "kernel": name} for name, how in KERNELS.items() if name != "rbf"},
}


def noisy_rings(n_classes, dtype):
    """Rows of a plane in rings of these classes, two in five in another: many are uncertain."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(2000, 2)).astype(dtype)
    y = (np.hypot(*X.T) * 2).astype(int) % n_classes
    return X, np.where(rng.random(len(y)) < 0.4, (y + 1) % n_classes, y)


@pytest.mark.parametrize(
    ("how", "n_classes", "dtype"),
    [("soft", 4, np.float64), ("linear", 4, np.float64), *((how, 2, np.float32) for how in EARLY)],
)
def test_early_machine(how, n_classes, dtype) -> None:
    """All rows agree but for those that rounding sends to another cluster."""
    X, y = noisy_rings(n_classes, dtype)
    model = DCSVMClassifier(**{"stop_level": 1, "gamma": 1.0, "C": 0.05, **EARLY[how]}).fit(X[:400], y[:400])
    outputs, expected = run(model, X), model.decision_function(X)
    assert outputs["scores"].dtype == dtype
    tol = 1e-5 if dtype == np.float32 else 1e-9
    error = np.abs(outputs["scores"] - expected)
    assert np.mean(error > tol * max(1.0, np.abs(expected).max())) < 0.002
    assert np.mean(outputs["label"] == model.predict(X)) > 0.99


def test_clusters_without_support_vectors(digits) -> None:
    """Those of a single class have a constant: all, or most."""
    X, y = digits
    for labels in (y < 1, (y < 1) ^ (np.arange(len(y)) == 0)):
        model = DCSVMClassifier(stop_level=2, gamma=0.1).fit(X, labels)
        assert (np.diff(model._model.starts) == 0).any()
        assert_same(model, X)


def test_a_single_cluster() -> None:
    X, y = np.ones((40, 3), np.float32), np.arange(40) % 4 == 0
    model = DCSVMClassifier(stop_level=1, gamma=0.1).fit(X, y)
    assert model._model.router.n_clusters == 1
    np.testing.assert_allclose(run(model, X)["scores"], model.decision_function(X), atol=1e-5)


def test_support_vectors_of_an_early_machine_are_written_once(digits) -> None:
    X, y = digits
    model = DCSVMClassifier(stop_level=1, gamma=0.05).fit(X, y)
    assert to_onnx(model).ByteSize() < 1.5 * model.support_vectors_.nbytes + 30_000


def test_more_support_vectors_than_a_file_can_have(digits, monkeypatch) -> None:
    X, y = digits
    monkeypatch.setattr("widemargin.export.kernels._MAX_BYTES", 1000)
    for level in (0, 1):
        with pytest.raises(ValueError, match=r"points of 64 features, 0\.0 GB, and an ONNX file at most 2 GB"):
            to_onnx(DCSVMClassifier(stop_level=level).fit(X, y))


def test_votes_of_pairs(digits) -> None:
    X, y = digits[0][:300], digits[1][:300]
    model = DCSVMClassifier(C=0.01, gamma=0.01).fit(X, y)
    for shape, break_ties in (("ovr", False), ("ovr", True), ("ovo", False)):
        assert_same(model.set_params(decision_function_shape=shape, break_ties=break_ties), X)
    model.set_params(break_ties=True)
    for call in (lambda: model.predict(X), lambda: to_onnx(model)):
        with pytest.raises(ValueError, match="break_ties must be False with decision_function_shape='ovo'"):
            call()


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_coefficients_of_many_pairs_are_written_without_their_zeros(shape, digits, monkeypatch) -> None:
    X, y = digits[0][:300], digits[1][:300]
    dense = to_onnx(DCSVMClassifier(gamma=0.01, decision_function_shape=shape).fit(X, y))
    monkeypatch.setattr(_dual_attributes, "SMALL_BYTES", 0)
    model = DCSVMClassifier(gamma=0.01, decision_function_shape=shape).fit(X, y)
    assert_same(model, X)
    assert len(to_onnx(model).SerializeToString()) < len(dense.SerializeToString())


def test_votes_take_memory_of_the_square_of_the_classes() -> None:
    """The incidence of pairs and classes alone would be 20 MB twice, the coefficients of the pairs as much."""
    model = DCSVMClassifier(gamma=1.0).fit(np.eye(170), np.arange(170))
    assert len(to_onnx(model).SerializeToString()) < 2e6
    np.testing.assert_array_equal(run(model, np.eye(170))["label"], np.arange(170))


def test_equal_votes_give_the_same_label(digits) -> None:
    """One vote for each of three classes: labels are those of `predict`, the first of equal votes."""
    X, y = digits
    X, y = X[y < 3], y[y < 3]
    model = DCSVMClassifier(kernel="linear").fit(X, y)
    model._model.coef[:] = 0.0
    model._model.intercept[:] = [1.0, -2.0, 4.0]
    outputs = run(model, X)
    np.testing.assert_array_equal(outputs["label"], model.predict(X))
    np.testing.assert_allclose(outputs["scores"], model.decision_function(X), rtol=1e-6)


@pytest.mark.parametrize("classes", [[0, 1], NAMES, [0.0, 1.0, 2.0], np.array(NAMES, object), [False, True]])
def test_linear_machine_and_labels_of_any_kind(classes, digits) -> None:
    X, y = digits
    labels = np.asarray(classes)
    X, y = X[y < len(labels)], labels[y[y < len(labels)]]
    outputs = assert_same(OCASClassifier(C=0.1, fit_intercept=True).fit(X, y), X)
    if labels.dtype.kind in "UO":
        assert all(isinstance(label, str) for label in outputs["label"])
    else:
        assert outputs["label"].dtype == labels.dtype


TREES = [
    {"n_clusters": 1},
    {"n_clusters": 5},
    {"n_clusters": 16},  # two levels
    {"n_clusters": 4, "n_trees": 2},
    {"n_clusters": 3, "linear_term": False},
    {"n_clusters": 3, "pseudo": None},
]


@pytest.mark.parametrize(("options", "n_classes"), [(TREES[0], 2), *((options, 4) for options in TREES)], ids=str)
def test_nystroem_trees(options, n_classes, digits) -> None:
    X, y = digits[0], digits[1]
    X, y = X[y < n_classes], y[y < n_classes]
    model = DCPredClassifier(C=10, gamma=0.3, n_landmarks=6, random_state=0, **options).fit(X[::2], NAMES[y[::2]])
    assert len(model.predictor_.trees) == options.get("n_trees", 1)
    if options["n_clusters"] == 16:
        assert model.predictor_.trees[0].tree.depth == 2
    assert_same(model, X, tol=1e-3)


RULES = [("rbf", "triangle"), ("laplacian", "triangle"), *((kernel, "polynomial") for kernel in KERNELS)]


@pytest.mark.parametrize(("kernel", "pseudo"), RULES)
def test_nystroem_trees_of_all_kernels_and_pseudo_landmarks(kernel, pseudo, digits) -> None:
    dtype = np.float64 if (kernel, pseudo) in [("rbf", "polynomial"), ("laplacian", "triangle")] else np.float32
    X, y = digits[0].astype(dtype), digits[1]
    options = {"n_clusters": 3, "n_landmarks": 5, "n_pseudo_landmarks": 7, "pseudo": pseudo, "random_state": 0}
    model = DCPredClassifier(C=1, kernel=kernel, **options, **KERNELS[kernel]).fit(X[::3], y[::3])
    assert_same(model, X, tol=2e-3 if dtype == np.float32 else 1e-8)


def test_both_bounds_of_the_triangle_rule(digits) -> None:
    """Pseudo-landmarks may use the lower or the upper bound: set here by hand, so that both occur."""
    X, y = digits
    options = {"n_clusters": 3, "n_landmarks": 5, "n_pseudo_landmarks": 4, "pseudo": "triangle", "random_state": 0}
    model = DCPredClassifier(gamma=0.3, **options).fit(X[::3], y[::3])
    bounds = model.predictor_.trees[0].features.bounds
    bounds[:] = np.arange(len(bounds)) % 2
    assert_same(pickle.loads(pickle.dumps(model)), X, tol=2e-3)  # so that compiled code copies the changed bounds


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        MinMaxScaler((-1, 1), clip=True),
        MaxAbsScaler(),
        RelevanceScaler(n_iter=1),
        "passthrough",
    ],
    ids=str,
)
def test_pipeline_with_a_scaling(scaler, digits) -> None:
    X, y = 3 * digits[0] - 1, digits[1]
    model = make_pipeline(scaler, DCSVMClassifier(gamma=0.005)).fit(X[:150], y[:150])
    assert_same(model, X)  # rows beyond the range of those that were fitted, too


def test_imputers_and_transformed_targets(digits) -> None:
    X, y = 3 * digits[0] - 1, digits[1].astype(float)
    X[::7, 20:30] = np.nan
    machine = DCSVMRegressor(gamma=0.02)
    steps = SimpleImputer(keep_empty_features=True), StandardScaler()
    for model in (
        make_pipeline(*steps, machine),
        TransformedTargetRegressor(make_pipeline(*steps, machine), transformer=MinMaxScaler()),
        make_pipeline(*steps, TransformedTargetRegressor(OCASRegressor(), func=np.log1p, inverse_func=np.expm1)),
        make_pipeline(*steps, TransformedTargetRegressor(OCASRegressor())),
    ):
        assert_same(model.fit(X, y), X)
    with pytest.raises(
        ValueError,
        match=r"the step SimpleImputer\(add_indicator=True\), which is not written. to_onnx .* StandardScaler",
    ):
        to_onnx(make_pipeline(SimpleImputer(add_indicator=True), machine).fit(X, y))
    target = TransformedTargetRegressor(machine, func=np.sqrt, inverse_func=np.square).fit(np.nan_to_num(X), y)
    with pytest.raises(ValueError, match=r"the transformer FunctionTransformer\(.*of its target"):
        to_onnx(target)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *SEARCHES], ids=name_of)
def test_skl2onnx_gets_converters_of_what_is_written(estimator, digits) -> None:
    """Machines and steps that `to_onnx` writes are those of `register_converters`: no list forgets one."""
    X, y = digits[0][:60], digits[1][:60] % 2
    step = hasattr(estimator, "transform") and not hasattr(estimator, "predict")
    model = make_pipeline(clone(estimator), OCASClassifier()) if step else clone(estimator)
    try:
        to_onnx(model.fit(X, y))
        is_written = True
    except ValueError:
        is_written = False
    assert is_written == (type(estimator) in KINDS)


def test_dates_are_refused_by_name(digits) -> None:
    X, y = digits
    dates = np.array(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"], "datetime64[ns]")
    model = OCASClassifier().fit(X, dates[y])
    with pytest.raises(
        ValueError, match=r"(?s)classes_ must be numbers or strings to be written, got .*datetime64\[ns\]"
    ):
        to_onnx(model)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()], ids=str)
@pytest.mark.parametrize("machine", [OCASClassifier(), "compressed"], ids=str)
def test_columns_that_float32_rounds_away(scaler, machine, digits) -> None:
    X, y = digits[0].astype(np.float64), digits[1] > 1
    X[:, 3] = 1.7e9 + y * 20 + np.random.default_rng(0).normal(size=len(X))  # seconds
    model = make_pipeline(scaler, machine if machine != "compressed" else SVC(gamma=0.01)).fit(X, y)
    model = compress(model, X, random_state=0) if machine == "compressed" else model
    with pytest.warns(UserWarning, match=r'columns \[3\] is lost in rounding: export with dtype="float64"'):
        to_onnx(model)
    outputs = run(model, X, dtype="float64")
    expected = model.decision_function(X)
    np.testing.assert_allclose(outputs["scores"], expected, atol=1e-4 * expected.std())
    np.testing.assert_array_equal(outputs["label"], model.predict(X))
    assert outputs["scores"].dtype == np.float64


@pytest.mark.parametrize(("n_classes", "scale"), [(2, 100.0), (4, 1.0)])
def test_probabilities_of_the_logistic_loss(n_classes, scale, digits) -> None:
    X, y = digits
    model = OCASClassifier(loss="logistic").fit(X[:200], y[:200] % n_classes)
    assert_same(model, X)
    found = run(model, scale * X)["probabilities"]
    np.testing.assert_allclose(found, model.predict_proba(scale * X), atol=1e-5 * scale)
    assert found.dtype == X.dtype


def test_dtypes_of_the_input(digits) -> None:
    X, y = digits
    for dtype in (np.float32, "float64"):
        for model in (OCASClassifier().fit(X, y), DCSVMClassifier().fit(X.astype(np.float64), y)):
            outputs = run(model, X.astype(dtype), dtype=dtype)
            assert outputs["scores"].dtype == dtype
            np.testing.assert_allclose(outputs["scores"], model.decision_function(X), atol=1e-3)
    with pytest.raises(ValueError, match=r"dtype must be one of \['float32', 'float64'\], got 'int8'"):
        to_onnx(model, dtype="int8")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_at_the_end_of_the_range_have_scores(dtype, digits) -> None:
    X, y = digits[0].astype(dtype), digits[1]
    model = DCSVMClassifier(gamma=0.1).fit(X, y)
    far = np.vstack([np.full(64, -np.finfo(dtype).max), np.full(64, np.finfo(dtype).max), X[0]]).astype(dtype)
    assert np.isfinite(run(model, far)["scores"]).all()


@pytest.mark.parametrize(("kernel", "pseudo"), [*RULES, ("rbf", None), ("poly", None)])
def test_coordinates_by_landmarks(kernel, pseudo, digits) -> None:
    X, y = digits
    landmarks = LandmarkNystroem(
        20, kernel=kernel, pseudo=pseudo, n_pseudo_landmarks=6 if pseudo else 0, random_state=0, **KERNELS[kernel]
    )
    for dtype in (np.float32, np.float64):
        model = make_pipeline(landmarks, OCASClassifier()).fit(X.astype(dtype), y)
        assert_same(model, X.astype(dtype), tol=1e-3)


@pytest.mark.parametrize(
    "machine",
    [
        DCPredClassifier(gamma=0.3, n_clusters=4, n_landmarks=5, random_state=0),
        DCSVMClassifier(stop_level=1, gamma=0.05),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_a_single_row_and_none(machine, digits) -> None:
    model, (X, _) = machine.fit(*digits), digits
    graph = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    for n in (1, 0, 7):
        label, scores = graph.run(["label", "scores"], {"X": X[:n]})
        assert label.shape == (n,)
        assert scores.shape == (n, 4)
        np.testing.assert_allclose(scores, model.decision_function(X[:7])[:n], atol=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: LogisticRegression().fit(X, y), "got LogisticRegression: see skl2onnx"),
        (lambda X, y: SVC().fit(X, y), "got SVC: see skl2onnx, or compress it first"),
        (
            lambda X, y: make_pipeline(PCA(2), OCASClassifier()).fit(X, y),
            r"the step PCA\(n_components=2\).*model\[-1\]",
        ),
        (
            lambda X, y: DCSVMClassifier(kernel=lambda A, B: A @ B.T).fit(X, y),
            "CallableKernel kernel; to_onnx and to_c write",
        ),
        (
            lambda X, y: DCSVMClassifier(kernel="precomputed").fit(X @ X.T, y),
            "Precomputed kernel; to_onnx and to_c write",
        ),
        (lambda X, y: OCASClassifier(), "not fitted"),
    ],
)
def test_models_without_an_onnx_form_are_refused(make, message, digits) -> None:
    X, y = digits
    with pytest.raises(ValueError, match=message):
        to_onnx(make(X[:100], y[:100] % 2))


def test_without_onnx_the_error_names_the_package(digits, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    model = OCASClassifier().fit(*digits)
    with pytest.raises(ImportError, match="pip install onnx"):
        to_onnx(model)


def test_a_projection_comes_first(digits) -> None:
    X, y = digits
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(64, 12)))[0].astype(np.float32)
    model = compress(DCSVMClassifier(C=10, gamma=0.05).fit(X @ axes, y), X @ axes, n_clusters=3, random_state=0)
    model.load(model._trees, axes)
    assert model.n_features_in_ == 64
    assert_same(model, X)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_machine_without_support_vectors(kernel) -> None:
    X = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    model = DCSVMRegressor(kernel=kernel, **KERNELS[kernel]).fit(X, np.zeros(100))
    assert not len(model.support_vectors_)
    assert_same(model, X)


def calibrated(machine, ensemble=True, **options):
    return CalibratedClassifierCV(machine, method="sigmoid", cv=2, ensemble=ensemble, **options)


@pytest.mark.parametrize(("ensemble", "n_classes"), [(False, 2), (True, 3)])
@pytest.mark.parametrize(
    "machine",
    [
        DCSVMClassifier(gamma=0.1),
        OCASClassifier(C=0.1),
        BSGDClassifier(gamma=0.1, random_state=0),
        make_pipeline(StandardScaler(), DCPredClassifier(n_clusters=2, random_state=0)),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_calibrated_probabilities(machine, ensemble, n_classes, digits) -> None:
    X, y = digits[0][digits[1] < n_classes], NAMES[digits[1][digits[1] < n_classes]]
    assert_same_probabilities(calibrated(machine, ensemble).fit(X, y), X)


def assert_same_probabilities(model, X) -> None:
    outputs = run(model, X)
    assert outputs["probabilities"].dtype == X.dtype
    np.testing.assert_allclose(outputs["probabilities"], model.predict_proba(X), atol=1e-4)
    assert np.mean(outputs["label"] == model.predict(X)) > 0.995


def test_prefitted_machines_and_classes_that_a_fold_lacks(digits) -> None:
    X, y = digits[0][:120, :20], digits[1][:120]
    machine = FrozenEstimator(DCSVMClassifier(gamma=0.1).fit(X[:60], y[:60]))
    assert_same_probabilities(CalibratedClassifierCV(machine).fit(X[60:], y[60:]), X)
    assert_same_probabilities(make_pipeline(MinMaxScaler(), calibrated(OCASClassifier(tol=0.1))).fit(X, y), X)
    y = np.sort(y)
    assert_same_probabilities(CalibratedClassifierCV(OCASClassifier(tol=0.1), cv=KFold(4)).fit(X, y), X)


def test_of_a_search_the_best_estimator_is_written(digits) -> None:
    X, y = digits[0][:120, :20], digits[1][:120]
    search = make_pipeline(MinMaxScaler(), DCSVMClassifierCV(Cs=2, gammas=1, cv=2)).fit(X, y)
    best = make_pipeline(search[0], search[1].best_estimator_)
    assert to_onnx(search).SerializeToString() == to_onnx(best).SerializeToString()


def test_calibration_that_is_not_written(digits) -> None:
    X, y = digits[0][:120, :20], digits[1][:120]
    with pytest.raises(ValueError, match="calibrated with method='sigmoid', got method='isotonic'"):
        to_onnx(CalibratedClassifierCV(OCASClassifier(tol=0.1), method="isotonic").fit(X, y))
    with pytest.raises(ValueError, match="6 decision values and 4 calibrators: use decision_function_shape='ovr'"):
        to_onnx(calibrated(DCSVMClassifier(decision_function_shape="ovo")).fit(X, y))
    with pytest.raises(ValueError, match="got SVC: see skl2onnx"):
        to_onnx(calibrated(SVC()).fit(X, y))
    with pytest.raises(NotFittedError):
        to_onnx(calibrated(OCASClassifier(tol=0.1)))
