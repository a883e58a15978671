"""`compress` on fitted SVCs: speed against scikit-learn's and scikit-learn-intelex's, agreement, size."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.svm import SVC

from measuring import process
from measuring.experiment import Experiment, Row, Run
from measuring.problems import load_problem
from widemargin import compress
from widemargin.datasets import load_benchmark

_CLUSTERS = "auto"
_FEW = 500  # rows that SVC.predict is timed on
_COSTS: tuple[float | str, ...] = ("auto", 10, 20, 40)


class Fitted(NamedTuple):
    """A problem, scikit-learn-intelex's machine for it, and the same as a scikit-learn `SVC`."""

    name: str
    X: Any  # dense or CSR, float32
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    intelex: Any
    svc: SVC
    seconds: float


def fit(name: str, n_rows: int | None = None) -> Fitted:
    """Fit the machine that is to be compressed.

    Rows of a set whose name ends in ":csr" are sparse.
    """
    base, _, form = name.partition(":")
    if name == "mnist":
        X, y, X_test, y_test = load_benchmark(name)
        X, X_test = (np.ascontiguousarray(rows, np.float32) / 255 for rows in (X[:n_rows], X_test))
        y, C, gamma = y[:n_rows], 5.0, 0.02
    else:
        problem = load_problem(base, n_rows=n_rows)
        X, y, X_test, y_test, C, gamma = problem[1:7]
    if form == "csr":
        X, X_test = _sparse(X, np.float32), _sparse(X_test, np.float32)
    model, seconds = _fit_intelex(X, y, C, gamma)
    return Fitted(name, X, y, X_test, y_test, model, as_svc(model), seconds)


def _fit_intelex(X: NDArray[np.float32], y: NDArray[Any], C: float, gamma: float) -> tuple[Any, float]:
    from sklearnex import svm

    start = time.perf_counter()
    model = svm.SVC(C=C, gamma=gamma, cache_size=2000).fit(X, y)
    return model, time.perf_counter() - start


def as_svc(model: Any) -> SVC:
    """Return scikit-learn's `SVC` with the support vectors of scikit-learn-intelex's: LIBSVM's own predict."""
    svc = SVC()
    svc.set_params(**{name: model.get_params()[name] for name in svc.get_params()})
    for name in ("classes_", "class_weight_", "n_features_in_", "shape_fit_", "_gamma"):
        setattr(svc, name, getattr(model, name))
    is_sparse = sp.issparse(model.support_vectors_)
    convert = _sparse if is_sparse else np.ascontiguousarray
    svc.fit_status_, svc._sparse, svc._probA, svc._probB = 0, is_sparse, np.empty(0), np.empty(0)
    svc._effective_probability = False
    svc.support_, svc._n_support = (array.astype(np.int32) for array in (model.support_, model._n_support))
    svc.support_vectors_ = convert(model.support_vectors_, np.float64)
    svc.dual_coef_ = convert(model.dual_coef_, np.float64)
    svc.intercept_ = np.asarray(model.intercept_, np.float64)
    sign = -1 if len(svc.classes_) == 2 else 1  # scikit-learn turns two classes round
    svc._dual_coef_, svc._intercept_ = sign * svc.dual_coef_, sign * svc.intercept_
    return svc


def _sparse(A: Any, dtype: Any) -> Any:
    """A CSR matrix with 32-bit indices, as LIBSVM takes it."""
    A = sp.csr_matrix(A, dtype=dtype)
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    return A


def _compress(name: str, options: Run) -> Iterator[Row]:
    fitted = fit(name, options.rows)
    theirs = _Theirs(fitted)
    for cost in _COSTS:
        if not options.wants(str(cost), set=name, prediction_cost=cost, n_clusters=_CLUSTERS):
            continue
        start = time.perf_counter()
        small = compress(fitted.svc, fitted.X, prediction_cost=cost, n_clusters=_CLUSTERS, random_state=0)
        seconds = time.perf_counter() - start
        about = {"set": name, "prediction_cost": cost, "n_clusters": _CLUSTERS, "seconds": seconds}
        report = {"operations": small.report_.cost_after, "leaves": small.report_.n_leaves}
        report |= {"landmarks": small.report_.n_landmarks, "learnt": small.report_.learnt}
        yield about | theirs.compare(small) | report


class _Theirs:
    """The machine that is made cheaper: its labels of the test rows, and what a prediction takes."""

    def __init__(self, fitted: Fitted) -> None:
        self.fitted = fitted
        few = fitted.X_test[:_FEW]
        self.labels = fitted.intelex.predict(fitted.X_test)
        self.sklearn_us = 1e6 * process.time_predict(fitted.svc, few) / few.shape[0]
        self.size = len(pickle.dumps(fitted.svc))

    def compare(self, small: Any) -> Row:
        """Speed, agreement, accuracy and size of a cheaper machine."""
        fitted, X_test = self.fitted, self.fitted.X_test
        us = [1e6 * process.time_predict(model, X_test) / X_test.shape[0] for model in (small, fitted.intelex)]
        found = small.predict(X_test)
        accuracy, own = (float(np.mean(labels == fitted.y_test)) for labels in (found, self.labels))
        return {
            "support_vectors": len(fitted.svc.support_),
            "times_sklearn": self.sklearn_us / us[0],
            "times_intelex": us[1] / us[0],
            "agreement": float(np.mean(found == self.labels)),
            "accuracy": accuracy,
            "points": 100 * (accuracy - own),
            "times_smaller": self.size / len(pickle.dumps(small)),
            "fit_seconds": fitted.seconds,
            "sklearn_us": self.sklearn_us,
            "intelex_us": us[1],
            "predict_us": us[0],
        }


COMPRESS = Experiment(  # compress: somebody's fitted SVC, made fast
    "dc_pred/compress",
    ("a9a", "codrna", "mnist", "one_hot:csr", "sparse_wide:csr"),
    ("set", "prediction_cost", "n_clusters"),
    _compress,
    settings={"rows": None},
    parts=True,
    seconds={"mnist": 200.0, "": 25.0},
)
