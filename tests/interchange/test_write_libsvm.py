"""`write_libsvm`: what is written is read again without loss, in LIBSVM's layout and signs."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCPredClassifier,
    DCSVMClassifier,
    DCSVMRegressor,
    OCASClassifier,
    OCASRegressor,
    compress,
    read_machine,
    write_libsvm,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
X[:, 3] = 0  # the width of the rows is kept all the same
TWO = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
FOUR = np.array([7, 2, 5, 11])[(X[:, 0] > 0) + 2 * (X[:, 1] > 0.3)]
PLAIN = {"n_clusters": 1, "pseudo": None, "linear_term": False, "random_state": 0}


def through_a_file(model, folder):
    write_libsvm(model, folder / "model")
    return read_machine(folder / "model"), (folder / "model").read_text()


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("y", [TWO, FOUR], ids=["two", "four"])
def test_kernel_classifiers(kernel, y, tmp_path):
    model = DCSVMClassifier(kernel=kernel, gamma=0.3, coef0=0.5, decision_function_shape="ovo").fit(X, y)
    again, text = through_a_file(model, tmp_path)
    again.decision_function_shape = "ovo"
    assert np.array_equal(again.predict(X), model.predict(X))
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), rtol=1e-12, atol=1e-12)
    assert np.array_equal(again.n_support_, model.n_support_)
    first = text.split("label ")[1].split("\n")[0]
    assert first == ("1 -1" if y is TWO else "2 5 7 11")


def test_a_function_for_each_class_becomes_pairs(tmp_path):
    model = BSGDClassifier(budget=20, gamma=0.5, random_state=0).fit(X, FOUR)
    again, _ = through_a_file(model, tmp_path)
    assert np.array_equal(again.predict(X), model.predict(X))


@pytest.mark.filterwarnings("ignore:only .* of the labels agree")
def test_landmarks_of_a_compressed_model(tmp_path):
    """With `pseudo=None` and `linear_term=False` there is nothing else, also where squares would be better."""
    for y in (TWO, FOUR):
        model = compress(DCSVMClassifier(C=10).fit(X, y), X, n_landmarks=30, **PLAIN)
        again, _ = through_a_file(model, tmp_path)
        assert np.array_equal(again.predict(X), model.predict(X))


def test_regressors_and_outlier_detectors(tmp_path):
    for model in (DCSVMRegressor(C=5).fit(X, X[:, 0] ** 2), DCOneClassSVM(nu=0.2).fit(X)):
        again, _ = through_a_file(model, tmp_path)
        name = "decision_function" if hasattr(model, "decision_function") else "predict"
        np.testing.assert_allclose(getattr(again, name)(X), getattr(model, name)(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("y", [TWO, FOUR], ids=["two", "four"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_linear_machines(y, loss, tmp_path):
    for has_intercept in (True, False):
        model = OCASClassifier(loss=loss, fit_intercept=has_intercept).fit(X, y)
        again, text = through_a_file(model, tmp_path)
        assert text.startswith("solver_type L2R_L")
        assert np.array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        if loss == "logistic":
            np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X))
    value = OCASRegressor().fit(X, X[:, 0])
    np.testing.assert_array_equal(through_a_file(value, tmp_path)[0].predict(X), value.predict(X))


def test_labels_that_are_no_whole_numbers_are_numbered(tmp_path):
    names = np.array(["b", "a", "c"])[np.arange(len(X)) % 3]
    model = DCSVMClassifier().fit(X, names)
    again, text = through_a_file(model, tmp_path)
    assert "label 0 1 2\n" in text
    assert np.array_equal(model.classes_[again.predict(X)], model.predict(X))
    named = read_machine(tmp_path / "model", classes=model.classes_)
    assert np.array_equal(named.predict(X), model.predict(X))


@pytest.mark.parametrize("name", ["libsvm_three_classes", "libsvm_signs", "libsvm_one_class", "libsvm_regression"])
def test_what_was_read_is_written_as_it_was(name, tmp_path, request):
    """Its probabilities, density marks and noise too."""
    model = read_machine(request.path.parent / "files" / f"{name}.model")
    again, _ = through_a_file(model, tmp_path)
    for key in ("platt_", "density_marks_", "laplace_scale_", "intercept_", "dual_coef_", "support_vectors_"):
        if getattr(model, key, None) is not None:
            np.testing.assert_array_equal(getattr(again, key), getattr(model, key))
    write_libsvm(again, tmp_path / "second")
    assert (tmp_path / "second").read_text() == (tmp_path / "model").read_text()


def test_what_the_formats_cannot_hold_is_named(tmp_path):
    early = DCSVMClassifier(stop_level=1, n_levels=1, branching=2).fit(X, TWO)
    refused = [
        (early, "has a machine for each cluster"),
        (DCSVMClassifier(kernel="laplacian").fit(X, TWO), "has the kernel 'laplacian'"),
        (DCSVMRegressor().fit(X, X[:, :2]), "has 2 targets"),
        (DCPredClassifier(random_state=0).fit(X, TWO), "beside landmarks and their coefficients"),
        (make_pipeline(StandardScaler(), DCSVMClassifier()).fit(X, TWO), "Pipeline is no kernel machine"),
    ]
    for model, reason in refused:
        with pytest.raises(ValueError, match=reason):
            write_libsvm(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()
