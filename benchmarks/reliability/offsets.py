"""Machines of rows far from the origin: what is predicted and certified, against extended precision.

Rows of unit spread, labelled by them, plus an offset in every column: years, metres, seconds since an epoch. `X` is
rounded to its dtype first, so that the labels of the largest offsets in float32 can't be learnt. Columns of the table:
`score` of `predict` on the training rows; `own_score` of the same machine's decision values in extended precision;
`oracle` of the same estimator on the centred rows in float64; `objective` and `own_objective`, as certified, and of the
machine in extended precision; `outcome` is "ok"; "warned" or "refused", with the words; or what is silently wrong.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import widemargin as wm
from measuring.experiment import Experiment, Row

OFFSETS = 0.0, 1e2, 1e4, 1e6, 1e8
KERNELS = "linear", "poly", "rbf", "laplacian", "sigmoid"
MAX_LOSS = 0.02  # of accuracy, against the oracle or the machine's own decision values
MAX_ERROR = 0.01  # of the objective, beside the gap


def _make(kind: type, **fixed: Any) -> Callable[[str], Any]:
    return lambda kernel: kind(kernel=kernel, **fixed)


def _compressed(kernel: str) -> Any:
    return wm.DCSVMClassifier(kernel=kernel)


ESTIMATORS: dict[str, Callable[[str], Any]] = {
    "DCSVMClassifier": _make(wm.DCSVMClassifier),
    "DCSVMClassifier, early": _make(wm.DCSVMClassifier, n_levels=1, stop_level=1),
    "OCASClassifier": lambda kernel: wm.OCASClassifier(),
    "BSGDClassifier": lambda kernel: wm.BSGDClassifier(
        kernel=kernel,
        maintenance="merge" if kernel == "rbf" else "removal",
        budget=200,
        fit_intercept=True,
        n_epochs=5,
        random_state=0,
    ),
    "DCPredClassifier": _make(wm.DCPredClassifier, random_state=0),
    "compress": _compressed,
}


def problem(offset: float, dtype: str, storage: str) -> tuple[Any, Any, Any]:
    """Rows (600, 5) with an offset, their labels, and the rows, as rounded, less the offset in float64."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((600, 5))
    y = np.where(Z[:, 0] + 0.5 * Z[:, 1] > 0.0, 1, -1)
    X = (Z + offset).astype(dtype)
    centred = X.astype(np.float64) - offset
    return (sp.csr_array(X) if storage == "csr" else X), y, centred


def decision_values(model: Any, X: Any, kernel: str) -> Any:
    """Those of an exact machine in extended precision, from its coefficients and support vectors."""
    wide = np.longdouble
    rows, points = (np.asarray(A.toarray() if sp.issparse(A) else A, wide) for A in (X, model.support_vectors_))
    if kernel == "linear":
        weights = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
        return rows @ weights[0].astype(wide) + wide(model.intercept_[0])
    gamma = wide(model._gamma)
    if kernel in ("rbf", "laplacian"):
        power = 2 if kernel == "rbf" else 1
        K = np.exp(-gamma * sum(np.abs(rows[:, [j]] - points[:, j]) ** power for j in range(rows.shape[1])))
    else:
        K = rows @ points.T
        K = np.tanh(gamma * K) if kernel == "sigmoid" else (gamma * K) ** 3
    return K @ model.dual_coef_[0].astype(wide) + wide(model.intercept_[0])


def own_objective(model: Any, X: Any, y: Any, kernel: str) -> float:
    """1/2 |w|^2 + sum of hinges of an exact or a linear machine, C = 1, in extended precision."""
    if isinstance(model, wm.OCASClassifier):
        w = model.coef_[0].astype(np.longdouble)
        f = np.asarray(X.toarray() if sp.issparse(X) else X, np.longdouble) @ w + model.intercept_[0]
        norm = w @ w
    else:
        f = decision_values(model, X, kernel)
        at_points = decision_values(model, model.support_vectors_, kernel)
        norm = (at_points - model.intercept_[0]) @ model.dual_coef_[0]
    return float(0.5 * norm + np.maximum(0.0, 1.0 - y * f).sum())


def _all(name: str, kernel: str, run: Any = None) -> list[Row]:
    """The rows of an estimator and a kernel."""
    ways = itertools.product(OFFSETS, ("float32", "float64"), ("dense", "csr"))
    return [measure(name, kernel, *way) for way in ways]


def measure(name: str, kernel: str, offset: float, dtype: str, storage: str) -> Row:
    """One fit, and its machine in extended precision."""
    X, y, centred = problem(offset, dtype, storage)
    row: Row = {"estimator": name, "kernel": kernel, "offset": offset, "dtype": dtype, "storage": storage}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = ESTIMATORS[name](kernel).fit(X, y)
            used = wm.compress(model, X, random_state=0) if name == "compress" else model
            row["score"] = float(np.mean(used.predict(X) == y))
        except ValueError as error:
            return {**row, "outcome": f"refused: {error}"}
    words = next((str(w.message) for w in caught), "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kernel in ("linear", "rbf", "laplacian"):  # others depend on the origin
            oracle = ESTIMATORS[name](kernel).fit(centred, y)
            row["oracle"] = float(oracle.score(centred, y))
    if name in ("DCSVMClassifier", "OCASClassifier"):
        row["objective"], row["gap"], row["converged"] = model.objective_, model.dual_gap_, model.converged_
        row["own_objective"] = own_objective(model, X, y, kernel)
        if name == "DCSVMClassifier":
            row["own_score"] = float(np.mean(np.where(decision_values(model, X, kernel) > 0, 1, -1) == y))
    wrong = _find_wrong(row, max(np.mean(y > 0), np.mean(y < 0)))
    row["outcome"] = f"warned: {words}" if words else f"wrong: {wrong}" if wrong else "ok"
    return row


def _find_wrong(row: Row, majority: float) -> str:
    """What is wrong with predictions or a certificate, in a word; "" if nothing is."""
    possible = max(row.get("oracle", 0.0), row.get("own_score", 0.0))
    if row["score"] < possible - MAX_LOSS and possible > majority + MAX_LOSS:
        return "predictions"
    is_certified = "objective" in row and row["converged"]
    if is_certified and abs(row["objective"] - row["own_objective"]) > MAX_ERROR * abs(row["own_objective"]):
        return "objective"
    return ""


CELLS = [(name, kernel) for name in ESTIMATORS for kernel in (("linear",) if name == "OCASClassifier" else KERNELS)]
OFFSETS_TABLE = Experiment("offsets", CELLS, ("estimator", "kernel"), _all, seconds=40.0)
