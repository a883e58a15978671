"""An estimator for given data, by a table of rules and probes of more and more rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import type_of_target

from .._config import resolve_memory_budget
from .._types import AnyArray, Given, Model, RowIndices
from ..data.csr import check_sparse
from ..data.rows import occupied_columns
from ..estimators._training_warnings import describe_wild_targets, wild_rows
from ..estimators._validation import LARGEST_ENTRY, LARGEST_TARGET, check_magnitude, check_number, faults_named, shown
from ..estimators.dc_pred import DCPredClassifier, DCPredRegressor
from ..estimators.dc_svm import DCSVMClassifier
from ..estimators.dc_svm_regressor import DCSVMRegressor
from ..estimators.ocas import OCASClassifier
from ..estimators.relevance_scaler import MOST_CLASSES
from ..partition.divide import CLUSTER_ROWS
from ._cv_problem import is_unequal
from .dc_svm_cv import DCSVMClassifierCV, DCSVMRegressorCV
from .ocas_cv import OCASClassifierCV

_PROBE_ROWS = 2000, 8000, 32_000  # and all rows, if they are fewer
_PROBE_FOLDS = 3
_PROBE_SECONDS = 40.0  # for all probes,
_PROBE_SHARE = 0.1  # but at most this share of max_time
_LEAST_SECONDS = 1.0  # of the first probe
_PROBE_GROWTH = 2.0  # seconds of a probe / those of the probe before, about
_LINEAR_SHARE = 0.3  # of a probe's seconds that its linear machine may take
_NEXT_GAMMAS = 0.5, 1.0, 2.0, 4.0, 8.0  # times the gamma of a quarter of the rows: near rows are nearer among more
_NEXT_CS = 0.25, 1.0, 4.0
_LINEAR_COLUMNS = 10_000  # above which a linear machine is taken without a probe
_LINEAR_LOSS = 0.01  # of accuracy that the linear machine may lose on the largest probe
_UNEQUAL_SPREADS = 10.0  # largest spread of a column / the median one, above which columns are scaled
_COUNT_COLUMNS, _COUNT_SHARE = 1000, 0.1  # least columns of word counts, and share of the counts above 1
_FOLDS = 5  # of the ...CV estimators
_ORDERED = 0.1  # agreement of neighbouring rows' targets beyond chance, above which the user is told
_LARGE, _LARGE_SECONDS = 20_000, 600.0  # rows from which a search has a limit of its own, and this limit
_SEARCH_FACTOR, _SMALL_SEARCH_FACTOR = 15.0, 5.0  # seconds of a search / of the smallest probe; up to 4,000 rows
_LEAST_SHARE = 0.05  # of a search's expected seconds that max_time must be


class _Probe(NamedTuple):
    """What searches on some rows have found: parameters, scores, seconds."""

    n_rows: int
    parameters: dict[str, Any]
    kernel_score: float
    linear_score: float
    linear_cost: float
    seconds: float


@dataclass
class _Data:
    """The rows and what was found out about them.

    Attributes
    ----------
    X : ndarray or CSR array of shape (n, d)
    y : ndarray of shape (n,)
    is_regression : bool
    counts : ndarray of shape (n_classes,)
        Rows of each class; none of a regression.
    first_step : transformer or None
        What is done with the rows before the model.
    """

    X: Given
    y: AnyArray
    is_regression: bool
    counts: NDArray[np.intp]
    first_step: Any = None

    @property
    def is_unequal(self) -> bool:
        """Whether a class is so rare that accuracy says little."""
        return is_unequal(self.counts.astype(np.float64))

    @property
    def score_name(self) -> str:
        if self.is_regression:
            return "R2"
        return "balanced accuracy" if self.is_unequal else "accuracy"

    @property
    def chance(self) -> float:
        """The score of a machine that knows y alone."""
        if self.is_regression:
            return 0.0
        return 1 / len(self.counts) if self.is_unequal else float(self.counts.max() / len(self.y))

    @property
    def weighting(self) -> dict[str, Any]:
        """The parameters of a classifier for its classes."""
        return {"class_weight": "balanced"} if self.is_unequal else {}

    @property
    def scoring(self) -> dict[str, Any]:
        """`weighting` and the score of a search."""
        return {**self.weighting, "scoring": "balanced_accuracy"} if self.is_unequal else {}

    @property
    def folds(self) -> dict[str, Any]:
        """The `cv` of a search: as many folds as the rarest class has rows, where these are few."""
        n_folds = min(_FOLDS, int(self.counts.min(initial=_FOLDS)))
        return {"cv": StratifiedKFold(n_folds, shuffle=True, random_state=0)} if n_folds < _FOLDS else {}


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
        Numbers with a fraction, or floats of more than 100 different values, are targets of a regression; everything
        else is labels, of at least two classes.
    max_time : float, default=None
        Seconds that a fit may take; the estimator has it as its own. A tenth, and at most 40 seconds, is for probes.
        None: a search on more than 20,000 rows has ten minutes.
    prediction_cost : float, default=None
        Largest cost of a prediction, in inner products of all features: asks for `DCPredClassifier` or
        `DCPredRegressor`.
    memory_budget : int, str or None, default=None
        The estimator's.

    Returns
    -------
    estimator
        In a pipeline with a scaler, if the spreads of the columns differ tenfold; with tf-idf, if X is word counts.
        Where the smallest class has less than 0.4 times the rows of equal classes (20 % of two), it has
        ``class_weight="balanced"`` and chooses by the balanced accuracy. Folds are drawn at random.

    Notes
    -----
    The rules, of which the first that applies is taken, are on :doc:`a page </tasks/tune>`. A probe is a search for
    kernel, gamma and C in three folds of 2,000 random rows, beside one of a linear model. The next ones, of 8,000 and
    32,000 rows if the time allows, look around the kernel, gamma and C of the one before. A line each shows how gamma
    and the score grow with the rows: those of a probe are not those of all rows, and are returned only where there is
    no time for a search. Rows of probes are the same for the same data.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from widemargin import suggest
    >>> suggest(*make_moons(300, noise=0.2, random_state=0))
    300 rows, 2 columns, 100 % of the entries not zero, 2 classes, 50 % of the rows in the largest (0)
    ...
    DCSVMClassifierCV: kernel, gamma and C by cross-validation on all rows; about ...
    DCSVMClassifierCV()
    """
    for name, value in {"max_time": max_time, "prediction_cost": prediction_cost}.items():
        if value is not None:
            check_number(name, value, above=0)
    resolve_memory_budget(memory_budget)
    data = _check_data(X, y)
    data.first_step = _first_step(data.X)
    probes = _probe(data, _PROBE_SECONDS if max_time is None else min(_PROBE_SECONDS, _PROBE_SHARE * max_time))
    _report_trend(data, probes)
    machine, reason = _choose(data, probes, max_time, prediction_cost)
    print(f"{type(machine).__name__}: {reason}")
    machine.set_params(memory_budget=memory_budget)
    return machine if data.first_step is None else make_pipeline(data.first_step, machine)


# --- the data ---


def _check_data(X: Given, y: Given) -> _Data:
    """Validated rows, with a line about them."""
    if sp.issparse(X):
        check_sparse(X)
    with faults_named(X, y):
        rows, labels = check_X_y(X, y, accept_sparse="csr", dtype=(np.float64, np.float32))
    check_magnitude("X", rows, LARGEST_ENTRY)
    check_magnitude("y", labels, LARGEST_TARGET)
    (n, d), n_values = rows.shape, rows.nnz if sp.issparse(rows) else np.count_nonzero(rows)
    size = f"{n:,} rows, {d:,} columns, {_percent(n_values / (n * d))} of the entries not zero"
    if _are_targets(labels):
        if labels.min() == labels.max():
            raise ValueError(f"y must have at least two different values, got {shown(labels[0])} alone")
        print(f"{size}, regression")
        wild = wild_rows(labels)
        if len(wild):
            print(f"targets: {describe_wild_targets(labels[wild], wild)}")
            print("    (searches do not score them; if they are errors, drop them)")
        _report_order(labels)
        return _Data(rows, labels, True, np.empty(0, np.intp))
    classes, numbers, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes, got {shown(classes[0])} alone")
    print(f"{size}, {len(classes)} classes, {_percent(counts.max() / n)} of the rows in the largest ", end="")
    print(f"({shown(classes[counts.argmax()])})")
    _report_order(numbers)
    data = _Data(rows, labels, False, counts)
    if data.is_unequal:
        rarest = f"{shown(classes[counts.argmin()])} has {_percent(counts.min() / n)}"
        print(f'classes: unequal, {rarest} of the rows: class_weight="balanced", and scores are balanced accuracies')
        print("    (more of the rare rows are found, among more false alarms)")
    return data


def _are_targets(y: AnyArray) -> bool:
    """Whether y are targets of a regression: numbers with a fraction, or floats of more than a hundred values."""
    return type_of_target(y) == "continuous" or (y.dtype.kind == "f" and len(np.unique(y)) > MOST_CLASSES)


def _report_order(targets: AnyArray) -> None:
    """Say where targets of neighbouring rows, class numbers or values, agree more than those of any two rows."""
    if targets.dtype.kind == "f":
        centred = targets - targets.mean()
        agreement = float(centred[1:] @ centred[:-1] / (centred @ centred))
    else:
        by_chance = float(np.sum((np.bincount(targets) / len(targets)) ** 2))
        agreement = float((np.mean(targets[1:] == targets[:-1]) - by_chance) / (1 - by_chance))
    if agreement > max(_ORDERED, 4 / len(targets) ** 0.5):
        print(
            "order: neighbouring rows have like targets, and folds are drawn at random; if rows belong together, as "
            "those of a day or a person do, give a cv that keeps them together"
        )


def _first_step(X: Given) -> Model:
    """Tf-idf of word counts; a scaler if the spreads of the columns differ tenfold, of sparse rows MaxAbsScaler."""
    if _is_counts(X):
        print("scaling: tf-idf, as the entries are counts of words")
        return TfidfTransformer(sublinear_tf=True)
    few = X[:: -(-X.shape[0] // 100_000)]  # of many rows so many
    scaler = StandardScaler(with_mean=False).fit(occupied_columns(few)[0])
    spreads = np.sort(np.sqrt(scaler.var_[scaler.var_ > 0]))
    ratio = float(spreads[-1] / spreads[(len(spreads) - 1) // 2]) if len(spreads) else 1.0
    how = f"the widest column spreads {ratio:.3g} times as far as the median one"
    if ratio <= _UNEQUAL_SPREADS:
        print(f"scaling: none; {how}")
        return None
    first_step = MaxAbsScaler() if sp.issparse(X) else StandardScaler()
    print(f"scaling: {type(first_step).__name__}, as {how}")
    return first_step


def _is_counts(X: Given) -> bool:
    """Whether sparse rows are counts of words: whole numbers >= 0, a tenth of them above 1."""
    if not sp.issparse(X) or X.shape[1] < _COUNT_COLUMNS or not X.nnz:
        return False
    is_whole = X.data.min() >= 0 and (X.data == np.rint(X.data)).all()
    return bool(is_whole and np.mean(X.data > 1) >= _COUNT_SHARE)


# --- probes ---


def _probe(data: _Data, seconds: float) -> list[_Probe]:
    """Searches on more and more rows, as long as there is time; none where there are too many columns."""
    n, d = data.X.shape
    if d > _LINEAR_COLUMNS:
        return []
    begin, probes = time.perf_counter(), list[_Probe]()
    order = np.random.default_rng(0).permutation(n)
    for size in sorted({min(n, rows) for rows in _PROBE_ROWS}):
        left = seconds - (time.perf_counter() - begin)
        if probes and left < _PROBE_GROWTH * probes[-1].seconds:
            break
        found = _probe_rows(data, _usable(data, order[:size]), probes, max(left, _LEAST_SECONDS))
        if found is None:
            break
        probes.append(found)
        _report(data, found)
    return probes


def _usable(data: _Data, rows: RowIndices) -> RowIndices:
    """Without rows of classes that have fewer rows than there are folds."""
    if data.is_regression:
        return rows
    _, numbers, counts = np.unique(data.y[rows], return_inverse=True, return_counts=True)
    return rows[counts[numbers] >= _PROBE_FOLDS]


def _probe_rows(data: _Data, rows: RowIndices, before: list[_Probe], seconds: float) -> _Probe | None:
    """A search of kernel machines on some rows, and one of linear machines; None where nothing can be scored."""
    if len(rows) < 2 * _PROBE_FOLDS or len(np.unique(data.y[rows])) < 2:
        return None
    sample = data.X[rows] if data.first_step is None else data.first_step.fit_transform(data.X[rows])
    options: dict[str, Any] = {"cv": _PROBE_FOLDS, "refit": False, **data.scoring}
    around = _around(before[-1]) if before else {}
    kind: Any = DCSVMRegressorCV if data.is_regression else DCSVMClassifierCV
    search, spent = _timed(
        kind(**around, search="early", relevance=False, max_time=(1 - _LINEAR_SHARE) * seconds, **options).fit,
        sample,
        data.y[rows],
    )
    if np.isnan(search.best_score_):
        return None
    parameters = {"kernel": search.kernel_, "C": search.C_, "gamma": search.gamma_}
    if data.is_regression:
        spread = float(np.delete(data.y, wild_rows(data.y)).std())
        parameters |= {"C": spread * search.C_, "epsilon": spread * search.epsilon_}
        return _Probe(len(rows), parameters, search.best_score_, np.nan, np.nan, spent)
    linear, more = _timed(OCASClassifierCV(5, max_time=_LINEAR_SHARE * seconds, **options).fit, sample, data.y[rows])
    return _Probe(len(rows), parameters, search.best_score_, linear.best_score_, linear.C_, spent + more)


def _around(probe: _Probe) -> dict[str, Any]:
    """What a search on more rows tries."""
    scale = probe.parameters
    gammas = [factor * scale["gamma"] for factor in _NEXT_GAMMAS]
    around = {"kernels": scale["kernel"], "gammas": gammas}
    return around if "epsilon" in scale else {**around, "Cs": [factor * scale["C"] for factor in _NEXT_CS]}


def _timed(fit: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """The result of a fit without its warnings, which are of a probe, and its seconds."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*arguments), time.perf_counter() - begin


def _report(data: _Data, probe: _Probe) -> None:
    own = ", ".join(f"{name}={v:.3g}" for name, v in probe.parameters.items() if name != "kernel")
    against = "" if data.is_regression else f"; linear model {probe.linear_score:.3f}"
    kernel = f"{data.score_name} {probe.kernel_score:.3f} with the {probe.parameters['kernel']} kernel"
    print(f"probe of {probe.n_rows:,} rows: {kernel}, {own}{against}")


def _report_trend(data: _Data, probes: list[_Probe]) -> None:
    """Say whether gamma grows with the rows, and where no probe is better than chance."""
    gammas = [probe.parameters["gamma"] for probe in probes]
    if len(gammas) > 1 and gammas[-1] > gammas[0]:
        print("gamma grows with the rows: that of a probe is too small for all of them")
    best = max((max(p.kernel_score, np.nan_to_num(p.linear_score)) for p in probes), default=0.0)
    if probes and best <= data.chance + 0.5 / probes[-1].n_rows ** 0.5:  # the standard error of a share, at most
        rival = "the mean of y" if data.is_regression else "the largest class for every row"
        print(f"no probe beats a model that predicts {rival} ({data.score_name} {data.chance:.3f})")


# --- the rules ---


def _choose(
    data: _Data, probes: list[_Probe], max_time: float | None, prediction_cost: float | None
) -> tuple[Any, str]:
    """The first rule that applies: an estimator and the reason."""
    n, d = data.X.shape
    probe = probes[-1] if probes else None
    kinds: Any = (DCSVMRegressor, DCPredRegressor) if data.is_regression else (DCSVMClassifier, DCPredClassifier)
    machine, cheap = (partial(_with_parameters, kind, data, probe, max_time=max_time) for kind in kinds)
    if prediction_cost is not None:
        return cheap(prediction_cost=prediction_cost), "a prediction may not cost more than that"
    if not data.is_regression and d > _LINEAR_COLUMNS:
        return _linear(data, probe, max_time), f"more than {_LINEAR_COLUMNS:,} columns: a linear model"
    is_known = len(probes) > 1 or n <= _PROBE_ROWS[0]  # kernel machines gain more by further rows
    if is_known and not data.is_regression and probe and probe.linear_score >= probe.kernel_score - _LINEAR_LOSS:
        reason = f"a linear model loses at most {_LINEAR_LOSS:.0%} on the largest probe, and is the fastest"
        return _linear(data, probe, max_time), reason.replace("%", " %")
    expected = 0.0
    if probes:  # a known number of cells, each on so many rows at most; and the last model as much again
        first = probes[0]
        is_small = n <= 2 * CLUSTER_ROWS
        expected = first.seconds * (_SMALL_SEARCH_FACTOR * (n / first.n_rows) ** 2 if is_small else _SEARCH_FACTOR)
    if max_time is not None and max_time < _LEAST_SHARE * expected:
        reason = f"early prediction, with the parameters of the largest probe, as a search takes {_duration(expected)}"
        return machine(stop_level="auto"), reason
    if not data.is_regression and data.counts.min() < 2:
        reason = "the parameters of the largest probe, as a class of one row cannot be held out by a search"
        return machine(stop_level="auto" if n > _LARGE else 0), reason
    limit = _LARGE_SECONDS if max_time is None and n > _LARGE else max_time
    took = f"about {_duration(expected)}" if limit is None else f"at most {_duration(limit)}"
    parameters = "kernel, gamma, C and epsilon" if data.is_regression else "kernel, gamma and C"
    search: Any = DCSVMRegressorCV if data.is_regression else DCSVMClassifierCV
    return search(max_time=limit, **data.folds, **data.scoring), f"{parameters} by cross-validation on all rows; {took}"


def _with_parameters(kind: Any, data: _Data, probe: _Probe | None, **options: Any) -> Model:
    """An estimator with those of a probe's parameters that it has."""
    found = {} if probe is None else probe.parameters
    return kind(**{name: v for name, v in found.items() if name in kind().get_params()}, **data.weighting, **options)


def _linear(data: _Data, probe: _Probe | None, max_time: float | None) -> Model:
    """A linear machine; one without a search, where a class has a single row."""
    if data.counts.min() < 2:
        return OCASClassifier(1.0 if probe is None else probe.linear_cost, max_time=max_time, **data.weighting)
    return OCASClassifierCV(max_time=max_time, **data.folds, **data.scoring)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _duration(seconds: float) -> str:
    """Seconds as people say them: "44 minutes"."""
    for unit, size in (("day", 86_400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0)):
        if seconds >= 1.5 * size or (unit == "second" and seconds >= 1):
            count = round(seconds / size)
            return f"{count} {unit}{'s' * (count != 1)}"
    return "a second"
