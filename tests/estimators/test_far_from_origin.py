"""Rows far from the origin, such as years, metres and seconds of an epoch: fits and predictions keep their digits."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from naive.losses import hinge_objective
from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCPredClassifier,
    DCPredRegressor,
    DCSVMClassifier,
    DCSVMRegressor,
    LandmarkNystroem,
    OCASClassifier,
)

FORMS = {"dense": np.asarray, "csr": sp.csr_array}


def far_rows(offset: float, dtype: str, n: int = 300, seed: int = 0) -> tuple[Any, Any, Any]:
    """Rows (n, 3) plus an offset as rounded, their labels, and the rounded rows less the offset in float64."""
    X = (np.random.default_rng(seed).normal(size=(n, 3)) + offset).astype(dtype)
    return X, np.where(X[:, 0] > offset, 1, -1), X.astype(np.float64) - offset


@pytest.mark.parametrize(
    ("form", "n", "offset", "dtype"),
    [("dense", 300, 1e4, "float32"), ("csr", 600, 1e7, "float64"), ("dense", 300, 1e8, "float64")],
)
def test_a_linear_machine_is_that_of_centred_rows(form: str, n: int, offset: float, dtype: str) -> None:
    X, y, centred = far_rows(offset, dtype, n)
    model = DCSVMClassifier(kernel="linear").fit(FORMS[form](X), y)
    oracle = DCSVMClassifier(kernel="linear").fit(centred, y)
    assert model.converged_
    assert model.score(FORMS[form](X), y) == oracle.score(centred, y)
    assert model.objective_ == pytest.approx(oracle.objective_, rel=2e-3)
    weights = model.coef_.toarray() if form == "csr" else model.coef_
    values = X.astype(np.float64) @ weights[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(FORMS[form](X)), values, atol=1e-6)
    np.testing.assert_allclose(values, oracle.decision_function(centred), atol=0.02)


@pytest.mark.parametrize("form", FORMS)
def test_a_linear_machine_of_several_classes_predicts_as_that_of_centred_rows(form: str) -> None:
    X, _, centred = far_rows(1e4, "float32")
    y = np.digitize(centred[:, 0], [-0.5, 0.5])
    model = DCSVMClassifier(kernel="linear", C=10).fit(FORMS[form](X), y)
    oracle = DCSVMClassifier(kernel="linear", C=10).fit(centred, y)
    assert model.score(FORMS[form](X), y) >= oracle.score(centred, y) - 0.01


def test_a_linear_regressor_predicts_as_that_of_centred_rows() -> None:
    X, _, centred = far_rows(1e4, "float32")
    y = np.column_stack([centred[:, 0], centred[:, 1] - centred[:, 2]])
    assert DCSVMRegressor(kernel="linear").fit(X, y).score(X, y) > 0.99


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_float32_rows_far_from_the_origin_predict_as_in_float64(kernel: str) -> None:
    X, y, _ = far_rows(1e2, "float32")
    for kind in (DCSVMClassifier(kernel=kernel, fit_intercept=False, gamma=1e-4), DCOneClassSVM(kernel=kernel)):
        model = kind.fit(X, y) if isinstance(kind, DCSVMClassifier) else kind.fit(X)
        points, rows = model.support_vectors_.astype(np.float64), X.astype(np.float64)
        K = rows @ points.T if kernel == "linear" else (model._gamma * rows @ points.T) ** 3
        values = K @ model.dual_coef_[0] + model.intercept_[0]
        np.testing.assert_allclose(model.decision_function(X), values, atol=1e-4 * np.abs(values).max())


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_csr_rows_far_from_the_origin_are_as_good_as_dense_ones(kernel: str) -> None:
    X, y, _ = far_rows(1e8, "float64")
    dense, csr = (DCSVMClassifier(kernel=kernel).fit(form(X), y) for form in FORMS.values())
    assert csr._gamma == pytest.approx(dense._gamma, rel=1e-6)
    np.testing.assert_allclose(csr.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(("C", "offset"), [(1.0, 1e7), (1e3, 1e5)])
def test_the_objective_of_a_linear_machine_is_its_own(offset: float, C: float) -> None:
    X, _, centred = far_rows(offset, "float64", 200, seed=1)
    y = np.where(centred[:, 0] + 0.5 * np.random.default_rng(2).normal(size=200) > 0, 1, -1)
    model = OCASClassifier(C=C).fit(X, y)
    assert model.converged_
    assert model.objective_ == pytest.approx(hinge_objective(model, X, y, C), rel=1e-6)
    optimum = OCASClassifier(C=C, tol=1e-6).fit(centred, y).objective_
    assert model.objective_ - model.dual_gap_ <= optimum * (1 + 1e-6)
    assert model.objective_ == pytest.approx(optimum, rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "n_classes"), [("dense", 2), ("csr", 3)])
def test_a_wide_linear_machine_is_that_of_centred_rows(form: str, n_classes: int) -> None:
    centred = np.round(np.random.default_rng(0).normal(size=(300, 1100)), 3)
    y = np.digitize(centred[:, 0], [0.0] if n_classes == 2 else [-0.5, 0.5])
    model, oracle = (OCASClassifier().fit(FORMS[form](rows), y) for rows in (centred + 1e5, centred))
    assert model.converged_
    assert model.objective_ == pytest.approx(oracle.objective_, rel=2e-3)


@pytest.mark.parametrize("n", [600, 3000])
def test_the_objective_of_linear_machines_of_several_classes_is_their_own(n: int) -> None:
    X, _, centred = far_rows(1e6, "float32", n)
    y = np.digitize(centred[:, 0] + 0.3 * np.random.default_rng(2).normal(size=n), [-0.5, 0.5])
    model = OCASClassifier().fit(X, y)
    assert model.objective_ == pytest.approx(hinge_objective(model, X, y, 1.0), rel=1e-5)
    f = X.astype(np.float64) @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-6)


@pytest.mark.parametrize("parameters", [{"kernel": "linear", "fit_intercept": False}, {"kernel": "poly"}])
@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_kernel_entries_beyond_float64_are_no_certificate(offset: float, parameters: dict[str, Any]) -> None:
    X, y, _ = far_rows(offset, "float64", 200)
    with pytest.warns(ConvergenceWarning, match="precision of float64"):
        model = DCSVMClassifier(**parameters).fit(X, y)
    assert not model.converged_
    assert model.relative_gap_ > 0.01


def far_halves(form: str) -> tuple[Any, Any]:
    """Rows (300, 5) of float32 about 5e6, exact, and the sign of a product of two columns."""
    Z = np.random.default_rng(0).normal(size=(300, 5))
    return FORMS[form](np.round(20 * Z + 5e6).astype("float32")), np.where(Z[:, 0] * Z[:, 1] > 0, 1, -1)


@pytest.mark.parametrize(
    "model",
    [
        BSGDClassifier(C=10, gamma=2e-3, n_epochs=5, random_state=0),
        BSGDClassifier(C=10, gamma=2e-3, n_epochs=5, maintenance="removal", random_state=0),
        DCPredClassifier(C=10, gamma=2e-3, random_state=0),
        DCPredRegressor(alpha=0.1, gamma=2e-3, random_state=0),
        make_pipeline(LandmarkNystroem(40, gamma=2e-3, n_sample=100, random_state=0), OCASClassifier()),
        make_pipeline(
            LandmarkNystroem(40, gamma=2e-3, n_sample=100, n_pseudo_landmarks=20, pseudo="triangle", random_state=0),
            OCASClassifier(),
        ),
    ],
    ids=["merge", "removal", "tree", "ridge", "coordinates", "triangle"],
)
def test_small_machines_of_csr_rows_far_from_the_origin_are_those_of_dense_ones(model: Any) -> None:
    scores = [clone(model).fit(*far_halves(form)).score(*far_halves(form)) for form in FORMS]
    assert scores[1] == pytest.approx(scores[0], abs=0.01)
    assert min(scores) > 0.5


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("model", "offset"),
    [
        (BSGDClassifier(kernel="linear", maintenance="removal", n_epochs=1, random_state=0), 10.0),
        (BSGDClassifier(kernel="polynomial", degree=2, maintenance="removal", n_epochs=1, random_state=0), 10.0),
        (BSGDClassifier(n_epochs=1, random_state=0), 1e6),
        (DCPredClassifier(kernel="linear"), 1e4),
        (DCPredClassifier(kernel="poly"), 1e2),
    ],
)
def test_rows_too_far_from_the_origin_are_warned_of(model: Any, offset: float, form: str) -> None:
    X, y, centred = far_rows(offset, "float64")
    with pytest.warns(UserWarning, match="as far from 0 as the rows from it.*StandardScaler|.*MaxAbsScaler"):
        clone(model).fit(FORMS[form](X), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).fit(FORMS[form](centred), y)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("options", "dtype"), [({}, np.float32), ({"kernel": "laplacian", "maintenance": "removal"}, np.float64)]
)
def test_a_row_far_from_all_support_vectors_has_value_zero(options: Any, dtype: Any, form: str) -> None:
    """Its kernel values are 0 in float32 too, not the least normal number: the label is that of ONNX and of float64."""
    rng = np.random.default_rng(0)
    X, far = rng.normal(size=(60, 3)).astype(dtype), (1e4 * np.eye(3)).astype(dtype)
    model = BSGDClassifier(gamma=0.5, budget=10, random_state=0, **options).fit(FORMS[form](X), X[:, 0] > 0)
    assert model.decision_function(FORMS[form](far)).tolist() == [0.0] * 3
    assert model.predict(FORMS[form](far)).tolist() == [False] * 3


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_landmarks_far_from_a_row_have_no_part_in_its_coordinates(kernel: str) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    model = LandmarkNystroem(5, kernel=kernel, gamma=0.5, random_state=0).fit(X)
    assert not model.transform(1e4 * np.eye(3, dtype=np.float32)).any()
