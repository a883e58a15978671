"""What every fit goes through: all or nothing, a clock with callbacks, and a warning if it was stopped."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._progress import Callback, Progress
from ._callbacks import CallbackBridge

_FREED_BYTES = 2**25 - 2**13  # with what malloc adds, the largest that counts
_PACKAGE = __name__.partition(".")[0]


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Restore the estimator's attributes if the block fails: nothing is left half-fitted."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def clock(estimator: Any, callback: Callback | None = None) -> Progress:
    """The progress of a fit with the estimator's `max_time` and `verbose`."""
    return Progress(
        max_time=estimator.max_time, verbose=estimator.verbose, title=type(estimator).__name__, callback=callback
    )


@contextmanager
def training(estimator: Any, X: Any, y: Any) -> Iterator[tuple[Progress, CallbackBridge]]:
    """The progress of a fit, and the bridge to the estimator's callbacks that it tells.

    Parameters
    ----------
    estimator : BaseEstimator
        Its `fit` is decorated with `with_callbacks`.
    X, y : what callbacks are given
    """
    _keep_freed_memory()
    bridge = CallbackBridge(estimator, X, y)
    progress = clock(estimator, bridge if bridge.has_callbacks else None)
    try:
        with progress:
            yield progress, bridge
        bridge.close()
    finally:  # what they hold of the fit holds them: all of it would stay in memory until the next garbage collection
        bridge.attributes = progress.candidate = None


@cache
def _keep_freed_memory() -> None:
    """Let the C library keep up to 64 MiB that are freed for what is asked for next: fresh pages are dear.

    By itself it does so once an array of nearly 32 MiB has been freed (mallopt(3), the dynamic mmap threshold).
    """
    np.empty(_FREED_BYTES, np.uint8)


def warn_of_stop(estimator: Any, reason: str | None, state: str) -> None:
    """Warn that a fit, or the function of this name, was stopped, by what, and in which state it left the model."""
    name = estimator if isinstance(estimator, str) else type(estimator).__name__
    warn_user(f"{name} was stopped by {reason} {state}", ConvergenceWarning)


def relative_gap(objective: float, gap: float) -> float:
    """(objective - lower bound) / |objective|; 0 for no gap, 1 for one that overflows, NaN where there is no bound."""
    if math.isinf(gap) or math.isnan(gap):
        return 1.0 if math.isinf(gap) else gap
    return gap / abs(objective) if gap else 0.0


def describe_gap(estimator: Any) -> str:
    """The duality gap in words, in its own units and beside the objective."""
    if math.isnan(estimator.dual_gap_):
        return "no bound on the optimum, as the kernel is not positive semidefinite"
    return f"duality gap {estimator.dual_gap_:.4g} ({estimator.relative_gap_:.2%} of the objective)"


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line that called the package, however deep this is."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
