"""`Estimator`, the base of all: a fit with checks, clock and callbacks; files; warnings of fits that were stopped."""

from __future__ import annotations

import math
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, partial
from html import escape
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any, Generic, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from .._memory import memory_plan
from .._native import keep_freed_memory
from .._progress import Callback, Progress
from .._threads import after_fork_in_child
from .._types import Given, Model
from ._callbacks import CallbackSupportMixin, FitTask
from ._fitted_state import FittedState

_PACKAGE = __name__.partition(".")[0]

Data = TypeVar("Data")  # what the training takes: rows, targets and weights after their checks


class Loadable(BaseEstimator):
    """An estimator that checks its fitted attributes when it is loaded, and whose HTML shows its certificate."""

    _doc_link_module = _PACKAGE

    @property
    def _doc_link_template(self) -> str:
        """The address behind the "?" of scikit-learn's diagram: the source of the class, with its documentation."""
        return _source_address()

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"path": type(self).__module__.replace(".", "/")}

    def _check_state(self, fitted: FittedState) -> None:
        """Raise a ValueError that names the first invalid fitted attribute and its value."""
        raise NotImplementedError

    def _restore(self) -> None:
        """Make what predictions need and files do not hold."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes from a file, by pickle, joblib or skops; parameters that it lacks have their defaults.

        Raises
        ------
        ValueError
            If the estimator is fitted, and its attributes do not fit one another.
        """
        super().__setstate__({**vars(type(self)()), **state})
        if _is_fitted(self):
            self._check_state(FittedState(vars(self)))
            self._restore()

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """scikit-learn's diagram, and below it the certificate, seconds, cost and bytes of the fitted machine."""
        diagram = super()._repr_html_
        return lambda: str(diagram()) + _summary_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Text for notebooks, and the HTML of `_repr_html_` if scikit-learn is set to draw diagrams."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return {**bundle, "text/html": self._repr_html_()} if "text/html" in bundle else bundle


class Estimator(CallbackSupportMixin, Loadable, Generic[Data]):
    """The base of all estimators: the one way through a fit, and through a file.

    A subclass has `_check_parameters`, `_check_data`, a `fit`, which trains ``with self._fitting(...)``, and
    `_check_state`; also `_snapshot` if callbacks are called in its rounds, and `_restore` if files leave something out.
    """

    max_time: float | None = None  # for estimators without these parameters
    verbose: int = 0

    def _check_parameters(self) -> None:
        """Raise a ValueError that names the first invalid parameter and its value."""
        raise NotImplementedError

    def _check_data(self, X: Given, y: Given, sample_weight: Given) -> Data:
        """The arguments of `fit`, validated, in the form that the training takes."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Drop fitted attributes that would hide new parameters during the fit."""

    def _snapshot(self, data: Data, progress: Progress) -> dict[str, Any] | None:
        """The fitted attributes of the current solution, for callbacks; None before there is one."""
        return None

    @contextmanager
    def _fitting(self, X: Given, y: Given = None, sample_weight: Given = None) -> Iterator[tuple[Data, Progress]]:
        """Check the parameters and the data of a fit, whose training is the body of the ``with`` block.

        The body gets the data as `_check_data` returns them, and a `Progress`: clock, interrupt and callbacks. It sets
        the fitted attributes, and warns if it was stopped. If it fails, the estimator is as it was before.
        """
        with FitTask(self, X, y) as task, all_or_nothing(self):
            self._forget()
            self._check_parameters()
            reuse_freed_memory(self)
            data = self._check_data(X, y, sample_weight)
            with self._make_progress(task if task.has_callbacks else None) as progress:
                task.attributes = partial(self._snapshot, data, progress)
                try:
                    yield data, progress
                    task.close()
                finally:  # a reference cycle, which would keep all of the fit until the next garbage collection
                    task.attributes = progress.current_solution = None

    def _make_progress(self, callback: Callback | None = None) -> Progress:
        title = type(self).__name__
        return Progress(max_time=self.max_time, verbose=self.verbose, title=title, callback=callback)

    def __copy__(self) -> Self:
        """A copy with the same attributes, also of an estimator that is being fitted: nothing is checked."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied


class all_or_nothing(AbstractContextManager[None]):  # noqa: N801 - as a function
    """Restore the estimator's attributes if the block fails: nothing is left half-fitted.

    Fits of one object in several threads wait for one another, so that each begins and ends with a whole machine.
    """

    def __init__(self, estimator: BaseEstimator) -> None:
        self._attributes = estimator.__dict__
        with _lock_of_locks:
            self._lock = _fit_locks.setdefault(estimator, threading.RLock())

    def __enter__(self) -> None:
        self._lock.acquire()
        self._before = dict(self._attributes)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._attributes.clear()
            self._attributes.update(self._before)
        self._lock.release()


# the lock that a fit of an object holds; no attribute of it, as files and copies have none
_fit_locks: WeakKeyDictionary[BaseEstimator, Any] = WeakKeyDictionary()
_lock_of_locks = threading.Lock()


def _renew_locks() -> None:
    global _fit_locks, _lock_of_locks
    _fit_locks, _lock_of_locks = WeakKeyDictionary(), threading.Lock()


after_fork_in_child(_renew_locks)


def reuse_freed_memory(estimator: Model) -> None:
    """Let the C library keep freed memory for later arrays, as fresh pages are expensive: its share of the budget.

    It is 64 MiB at most, as glibc's largest threshold of an array is half of that, and 256 KiB at least, its default.
    """
    keep_freed_memory(min(max(memory_plan(estimator)["freed memory"], 2**18), 2**26))


def warn_of_stop(estimator: Any, reason: str | None, state: str) -> None:
    """Warn that a fit, or the function of this name, was stopped, by what, and in which state it left the model."""
    name = estimator if isinstance(estimator, str) else type(estimator).__name__
    warn_user(f"{name} was stopped by {reason} {state}", ConvergenceWarning)


def warn_unconverged(estimator: Model, reason: str | None, certificate: str, *, name: str | None = None) -> None:
    """Warn of a fit, or of the function `name`, that has not converged: for which reason, the certificate, what to do.

    A model with `warm_start` can be fitted further, unless it is as exact as float64 allows.
    """
    if estimator.converged_:
        return
    advice = ""
    if hasattr(estimator, "warm_start") and reason != "the precision of float64":
        how = "" if estimator.warm_start else " after set_params(warm_start=True)"
        advice = f" To go on from it, call fit again{how}."
    state = f"before it converged: {certificate}. The model is the best so far.{advice}"
    warn_of_stop(name or estimator, reason, state)


def relative_gap(objective: float, gap: float) -> float:
    """(objective - lower bound) / |objective|; 0 for no gap, 1 for one that overflows, NaN where there is no bound."""
    if math.isinf(gap) or math.isnan(gap):
        return 1.0 if math.isinf(gap) else gap
    return gap / abs(objective) if gap else 0.0


def describe_gap(estimator: Model) -> str:
    """The duality gap in words, in its own units and beside the objective."""
    if math.isnan(estimator.dual_gap_):
        return "no bound on the optimum, as the kernel is not positive semidefinite"
    return f"duality gap {estimator.dual_gap_:.4g} ({estimator.relative_gap_:.2%} of the objective)"


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line that called the package, however deep this is, in context managers too."""
    inside = _PACKAGE, "contextlib"
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in inside:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@cache
def _source_address() -> str:
    """The address of ``{path}.py`` in the repository that a release names; empty where there is none, as in a clone."""
    with suppress(PackageNotFoundError):
        addresses = dict(entry.split(", ", 1) for entry in metadata(_PACKAGE).get_all("Project-URL", ()))
        if "Documentation" in addresses:
            return str(addresses["Documentation"].replace("docs/index.md", "src/{path}.py"))
    return ""


def _is_fitted(estimator: Model) -> bool:
    return any(name.endswith("_") and not name.startswith("__") for name in vars(estimator))


def _summary_html(estimator: Model) -> str:
    """Certificate, seconds, cost and bytes of a fitted machine, or of a search's best one, as a line of HTML."""
    machine = vars(estimator).get("best_estimator_", estimator)
    if not _is_fitted(machine):
        return ""
    facts = ["converged" if machine.converged_ else "not converged"] if hasattr(machine, "converged_") else []
    if hasattr(machine, "objective_"):
        gap = getattr(machine, "relative_gap_", np.nan)
        facts += [f"objective at most {gap:.2g} of itself above the optimum" if np.isfinite(gap) else "no lower bound"]
    if len(time := getattr(machine, "history_", {}).get("time", ())):
        facts += [f"{time[-1]:.3g} s"]
    report = getattr(machine, "report_", None)  # of a compressed machine
    cost = getattr(report, "cost_after", None) or getattr(machine, "prediction_cost_", None)
    if cost is not None:
        facts += [f"a prediction costs {cost:.3g} inner products"]
    return f"<p><small>{escape('; '.join([*facts, f'{_bytes(vars(machine)):,} bytes']))}</small></p>"


def _bytes(value: Any) -> int:
    """The bytes of all arrays in a value: dense or sparse ones, or dicts and lists of arrays."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if sp.issparse(value):
        return sum(_bytes(part) for part in vars(value).values())
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    return sum(map(_bytes, value)) if isinstance(value, list | tuple) else 0
