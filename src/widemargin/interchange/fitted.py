"""Fitted machines of Python packages: scikit-learn with LIBSVM, scikit-learn-intelex, ThunderSVM, cuML."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from .._types import Given, Model
from ..data.csr import canonical, check_sparse
from ..estimators._fitted_state import FittedState
from ..estimators._validation import FLOATS, shown
from ..kernels.functions import KERNELS, WITHOUT_GAMMA
from ..nystroem.landmarks import dense_rows
from .lines import lines_of
from .machines import ImportedOutlierDetector, ImportedRegressor, make_votes
from .text_models import read_libsvm

_LIBSVM = (
    *("kernel", "shape_fit_", "support_", "support_vectors_", "_n_support", "_dual_coef_", "_intercept_"),
    *("_probA", "_probB"),
)


def is_libsvm(model: Model) -> bool:
    """Whether a model is one of scikit-learn's estimators with LIBSVM, or of scikit-learn-intelex's."""
    from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM  # imported here, as fits do not need it

    return isinstance(model, SVC | SVR | NuSVC | NuSVR | OneClassSVM)


def check_libsvm(model: Model) -> None:
    """Check that arrays which scikit-learn passes to LIBSVM fit one another: LIBSVM does not check their lengths.

    Parameters
    ----------
    model : estimator
        Fitted. Of an estimator without LIBSVM nothing is checked, with a callable kernel not the support vectors.

    Raises
    ------
    ValueError
        Naming the first attribute that does not fit the others.
    """
    if not is_libsvm(model):
        return
    # some are properties in scikit-learn-intelex
    fitted = FittedState({name: getattr(model, name) for name in _LIBSVM if hasattr(model, name)})
    shape = fitted.nested("shape_fit_")
    n_rows, d = (shape.integer(axis, 1) for axis in (0, 1))
    n_support = fitted.array("_n_support", np.integer, None)
    k = len(n_support) if is_classifier(model) else 2
    n = len(fitted.array("support_", np.integer, None, least=0, below=n_rows))
    if fitted.value("kernel") != "precomputed" and not callable(model.kernel):
        fitted.rows("support_vectors_", np.floating, n, d)
    coef = fitted.rows("_dual_coef_", np.floating, k - 1, n)
    if sp.issparse(coef) and coef.nnz != (k - 1) * n:
        raise ValueError(f"_dual_coef_ must have {(k - 1) * n} entries, got {coef.nnz}")
    if is_classifier(model) and ((n_support < 0).any() or n_support.sum() != n):
        raise ValueError(f"_n_support must have the sum {n}, got {n_support}")
    n_pairs = k * (k - 1) // 2
    fitted.array("_intercept_", np.floating, n_pairs)
    for key in ("_probA", "_probB"):
        if fitted.value(key) is not None and len(fitted.array(key, np.floating, None)) not in (0, n_pairs):
            raise ValueError(f"{key} must have {n_pairs} entries or none, got {len(fitted.value(key))}")


def machine_of_libsvm(model: Model) -> Model:
    """The machine of a fitted `SVC`, `NuSVC`, `SVR`, `NuSVR` or `OneClassSVM`."""
    check_is_fitted(model)
    check_libsvm(model)
    if model.kernel not in KERNELS:
        raise ValueError(f"model has kernel={model.kernel!r}: the kernels {', '.join(KERNELS)} alone are taken")
    kernel = kernel_parameters(vars(model), model._gamma)
    coef = np.asarray(dense_rows(model.dual_coef_), np.float64)
    points = rows_of(model.support_vectors_).astype(np.float64, copy=False)
    if not is_classifier(model):
        kind = ImportedRegressor if is_regressor(model) else ImportedOutlierDetector
        return kind(**kernel).take(points, coef, model.intercept_)
    sign = 1.0 if len(model.classes_) > 2 else -1.0  # LIBSVM's values of two classes mean the first
    has_platt = model._probA is not None and len(model._probA)
    platt = np.array([model._probA, model._probB], np.float64) if has_platt else None
    rho = -sign * model.intercept_
    machine = make_votes(kernel, model.classes_, points, sign * coef, model.n_support_, rho, platt)
    machine.decision_function_shape, machine.break_ties = model.decision_function_shape, model.break_ties
    return machine


def adopt(model: Model) -> Model:
    """A fitted machine of ThunderSVM's as one of ours, of cuML's as scikit-learn's; any other model itself."""
    package = type(model).__module__.partition(".")[0]
    if package == "cuml" and hasattr(model, "as_sklearn"):
        return model.as_sklearn()
    if package != "thundersvm" or not hasattr(model, "save_to_file"):
        return model
    with tempfile.TemporaryDirectory() as folder:  # its attributes lack the order of the labels
        path = Path(folder, "model")
        model.save_to_file(str(path))
        with lines_of(path) as lines:
            machine = read_libsvm(lines, None)
    machine.widen(model.n_features)
    return machine


def kernel_parameters(own: Mapping[str, Any], gamma: float) -> dict[str, Any]:
    """Arguments of `make_kernel`: `kernel`, `degree` and `coef0` of the fit where the model keeps them, or as set."""
    kernel, degree = own["kernel"], int(own["degree"])
    if kernel in ("poly", "polynomial") and degree != own["degree"]:
        raise ValueError(f"model has degree={shown(own['degree'])}: compress takes whole degrees alone")
    gamma = 1.0 if kernel in WITHOUT_GAMMA and gamma == 0 else gamma  # files must have one above 0
    return {"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": own["coef0"]}


def rows_of(X: Given) -> Any:
    """Points as kernels take them: float32 or float64, dense in C order or CSR without repeated entries."""
    X = X if X.dtype in FLOATS else X.astype(np.float64)
    return canonical(check_sparse(X)) if sp.issparse(X) else np.ascontiguousarray(X)
