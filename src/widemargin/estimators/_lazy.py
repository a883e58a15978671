"""Prediction on dask collections: the methods that map each row to a value, lazily and block by block."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from sklearn.utils.validation import check_is_fitted

from ..data import is_partitioned, map_rows

Method = TypeVar("Method", bound=Callable[..., Any])


def lazy_on_dask(method: Method) -> Method:
    """Let a method of X also take a dask array or data frame, and return a dask array of the same blocks.

    Blocks are computed on one thread each, by the machine as it is now: the scheduler runs several of them at a time,
    and a later `fit` does not change the result.
    """

    @wraps(method)
    def apply(estimator: Any, X: Any) -> Any:
        if not is_partitioned(X):
            return method(estimator, X)
        check_is_fitted(estimator)
        return map_rows(_MethodOfCopy(estimator, method.__name__), X)

    return apply  # type: ignore[return-value]  # of the same signature


class _MethodOfCopy:
    """A method of a copy of the estimator with one thread."""

    def __init__(self, estimator: Any, name: str) -> None:
        self._estimator = copy.copy(estimator)
        if hasattr(estimator, "n_jobs"):
            self._estimator.n_jobs = 1
        self._name = name

    def __call__(self, rows: Any) -> Any:
        return getattr(self._estimator, self._name)(rows)
