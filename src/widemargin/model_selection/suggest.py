"""An estimator for given data, by a table of rules and a probe of the rows."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import type_of_target

from .._config import resolve_memory_budget
from ..data.csr import check_sparse, occupied_columns
from ..estimators._validation import check_number, text_named
from ..estimators.dc_pred import DCPredClassifier, DCPredRegressor
from ..estimators.dc_svm import DCSVMClassifier
from ..estimators.dc_svm_regressor import DCSVMRegressor
from .dc_svm_cv import DCSVMClassifierCV, DCSVMRegressorCV
from .ocas_cv import OCASClassifierCV

_SEARCH_ROWS = 20_000  # up to which the search is on all rows
_PROBE_ROWS = 2000  # whose searches take seconds
_LINEAR_COLUMNS = 10_000  # above which a linear machine is taken without a probe
_LINEAR_LOSS = 0.01  # of accuracy that the linear machine may lose on the probe
_UNEQUAL = 10.0  # largest spread of a column / the median one, above which columns are scaled
_EARLY_LEVEL = 2  # 16 clusters
_PROBE_SHARE = 0.1  # of max_time
_PROBE_CS, _PROBE_GAMMAS, _PROBE_FOLDS = 5, 3, 3  # of the searches on the probe
_SEARCH_FITS = 100  # fits of all rows that take as long as a search of 250 scores, about


class _Probe(NamedTuple):
    """What a search on some rows has found: parameters, scores, and the seconds that a fit of all rows may take."""

    parameters: dict[str, float]
    kernel_score: float
    linear_score: float
    fit_seconds: float


def suggest(
    X: ArrayLike,
    y: ArrayLike,
    *,
    max_time: float | None = None,
    prediction_cost: float | None = None,
    memory_budget: int | str | None = None,
) -> BaseEstimator:
    """An unfitted estimator for these data, with what speaks for it on standard output.

    Parameters
    ----------
    X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Numbers with a fraction are targets of a regression; everything else is labels.
    max_time : float, default=None
        Seconds that a fit may take; the estimator has it as its own. A tenth is for the probe.
    prediction_cost : float, default=None
        Largest cost of a prediction, in inner products of all features: asks for `DCPredClassifier` or
        `DCPredRegressor`.
    memory_budget : int, str or None, default=None
        The estimator's.

    Returns
    -------
    estimator
        In a pipeline with a scaler, if the spreads of the columns differ tenfold.

    Notes
    -----
    The rules, of which the first that applies is taken, are in docs/tasks/tune.md. The probe is a search over 5 values
    of C and 3 of gamma in three folds of 2,000 random rows, beside one of a linear machine; its rows are the same for
    the same data. Seconds to expect grow with the square of the rows from those of the probe.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from widemargin import suggest
    >>> suggest(*make_moons(300, noise=0.2, random_state=0))
    300 rows, 2 columns, 100 % of the entries not zero, 2 classes
    ...
    DCSVMClassifierCV: C and gamma by cross-validation on all rows, some ... s
    DCSVMClassifierCV()
    """
    for name, value in {"max_time": max_time, "prediction_cost": prediction_cost}.items():
        if value is not None:
            check_number(name, value, above=0)
    resolve_memory_budget(memory_budget)
    if sp.issparse(X):
        check_sparse(X)
    with text_named(X):
        rows, labels = check_X_y(X, y, accept_sparse="csr", dtype=(np.float64, np.float32))
    is_regression = type_of_target(labels) == "continuous"
    _describe(rows, labels, is_regression)
    scaler = _scaler(rows)
    probe = _probe(scaler, rows, labels, is_regression, max_time)
    machine, reason = _choose(rows.shape, probe, is_regression, max_time, prediction_cost)
    print(f"{type(machine).__name__}: {reason}")
    machine.set_params(max_time=max_time, memory_budget=memory_budget)
    return machine if scaler is None else make_pipeline(scaler, machine)


def _describe(X: Any, y: NDArray[Any], is_regression: bool) -> None:
    n, d = X.shape
    share = (X.nnz if sp.issparse(X) else np.count_nonzero(X)) / (n * d)
    kind = "regression" if is_regression else f"{len(np.unique(y))} classes"
    print(f"{n:,} rows, {d:,} columns, {share:.0%} of the entries not zero, {kind}".replace("%", " %"))


def _scaler(X: Any) -> Any:
    """A scaler if the spreads of the columns differ tenfold; for sparse data one that keeps zeros."""
    scaler = StandardScaler(with_mean=False).fit(occupied_columns(X)[0])
    spreads = np.sort(np.sqrt(scaler.var_[scaler.var_ > 0]))
    ratio = float(spreads[-1] / spreads[(len(spreads) - 1) // 2]) if len(spreads) else 1.0
    if ratio <= _UNEQUAL:
        print(f"scaling: none; the widest column spreads {ratio:.3g} times as far as the median one")
        return None
    print(f"scaling: the widest column spreads {ratio:.3g} times as far as the median one")
    return MaxAbsScaler() if sp.issparse(X) else StandardScaler()


def _probe(scaler: Any, X: Any, y: NDArray[Any], is_regression: bool, max_time: float | None) -> _Probe | None:
    """Searches on some rows; None where there are too many columns, or too few rows of two classes."""
    n, d = X.shape
    rows = np.sort(np.random.default_rng(0).choice(n, min(n, _PROBE_ROWS), replace=False))
    if not is_regression:
        _, numbers, counts = np.unique(y[rows], return_inverse=True, return_counts=True)
        rows = rows[counts[numbers] >= _PROBE_FOLDS]
    if d > _LINEAR_COLUMNS or len(rows) < 2 * _PROBE_FOLDS or len(np.unique(y[rows])) < 2:
        return None
    sample = X[rows] if scaler is None else scaler.fit_transform(X[rows])
    limits: dict[str, Any] = {"refit": False, "max_time": None if max_time is None else _PROBE_SHARE * max_time / 2}
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a probe that was stopped: the fit warns itself
        kind: Any = DCSVMRegressorCV if is_regression else DCSVMClassifierCV
        search = kind(_PROBE_CS, _PROBE_GAMMAS, cv=_PROBE_FOLDS, exhaustive=True, **limits).fit(sample, y[rows])
        seconds, linear_score = time.perf_counter() - begin, np.nan
        if not is_regression:
            linear = OCASClassifierCV(_PROBE_CS, cv=_PROBE_FOLDS, **limits).fit(sample, y[rows])
            linear_score = linear.best_score_
    n_fits = max(1, int(np.count_nonzero(~np.isnan(search.scores_))))
    fit_seconds = seconds / n_fits * (n / len(rows)) ** 2
    probe = _Probe({"C": search.C_, "gamma": search.gamma_}, search.best_score_, linear_score, fit_seconds)
    against = "" if is_regression else f", linear machine {linear_score:.3f}"
    print(
        f"probe of {len(rows):,} rows: RBF kernel {search.best_score_:.3f} (C={search.C_:.3g}, "
        f"gamma={search.gamma_:.3g}){against}"
    )
    return probe


def _choose(
    shape: tuple[int, int],
    probe: _Probe | None,
    is_regression: bool,
    max_time: float | None,
    prediction_cost: float | None,
) -> tuple[Any, str]:
    """The first rule that applies: an estimator and the reason."""
    n, d = shape
    parameters = {} if probe is None else probe.parameters
    seconds = 0.0 if probe is None else probe.fit_seconds
    if prediction_cost is not None:
        kind: Any = DCPredRegressor if is_regression else DCPredClassifier
        kept = {name: value for name, value in parameters.items() if name in kind().get_params()}
        return kind(prediction_cost=prediction_cost, **kept), "a prediction may not cost more than that"
    if not is_regression and d > _LINEAR_COLUMNS:
        return OCASClassifierCV(), f"more than {_LINEAR_COLUMNS:,} columns: a linear machine"
    if not is_regression and probe is not None and probe.linear_score >= probe.kernel_score - _LINEAR_LOSS:
        return OCASClassifierCV(), f"a linear machine loses at most {_LINEAR_LOSS:.0%} on the probe, and is the fastest"
    if n <= _SEARCH_ROWS and (max_time is None or _SEARCH_FITS * seconds <= max_time):
        machine = DCSVMRegressorCV() if is_regression else DCSVMClassifierCV()
        return machine, f"C and gamma by cross-validation on all rows, some {_SEARCH_FITS * seconds:.2g} s"
    kind = DCSVMRegressor if is_regression else DCSVMClassifier
    if max_time is None or seconds <= max_time:
        return kind(**parameters), f"C and gamma of the probe; some {seconds:.2g} s to train"
    reason = f"C and gamma of the probe; an early machine, as the exact one may take {seconds:.2g} s"
    return kind(**parameters, stop_level=_EARLY_LEVEL), reason
