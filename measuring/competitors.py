"""The competitors of the comparison of exact kernel machines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

OURS = "widemargin"


class Settings(NamedTuple):
    """Settings of all competitors; `budget_mb` is for ours, `cache_mb` for the two SVCs."""

    C: float
    gamma: float
    tol: float
    budget_mb: int | None
    cache_mb: int
    kernel: str = "rbf"


class Competitor(NamedTuple):
    """A way to train the machine: its name, the form of the rows it gets, and whether it fits an intercept."""

    name: str
    form: str
    intercept: bool
    make: Callable[[Settings], Any]

    def fit(self, settings: Settings, X: Any, y: NDArray[np.int8]) -> Any:
        """Return a freshly made machine, fitted; the first call imports its package."""
        return self.make(settings).fit(X, y)

    def warm_up(self, settings: Settings, X: Any, y: NDArray[np.int8]) -> None:
        """Fit and predict on 1,000 rows, so that libraries are loaded and threads started."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.fit(settings, X[:1000], y[:1000]).predict(X[:100])


def _ours(settings: Settings, **changes: Any) -> Any:
    from widemargin import DCSVMClassifier

    return DCSVMClassifier(
        C=settings.C,
        kernel=settings.kernel,
        gamma=settings.gamma,
        tol=settings.tol,
        memory_budget=None if settings.budget_mb is None else settings.budget_mb * 10**6,
        random_state=0,
        **changes,
    )


def _common(settings: Settings) -> dict[str, Any]:
    return {
        "C": settings.C,
        "kernel": settings.kernel,
        "gamma": settings.gamma,
        "tol": settings.tol,
        "cache_size": settings.cache_mb,
    }


def _sklearn(settings: Settings) -> Any:
    from sklearn.svm import SVC

    return SVC(**_common(settings))


def _sklearnex(settings: Settings) -> Any:
    from sklearnex.svm import SVC

    return SVC(**_common(settings))


_ALL = {
    c.name: c
    for c in (
        Competitor(OURS, "dense", True, _ours),
        Competitor("widemargin, no level", "dense", True, lambda s: _ours(s, n_levels=0)),
        Competitor("widemargin, no intercept", "dense", False, lambda s: _ours(s, fit_intercept=False)),
        Competitor("widemargin, CSR", "csr", True, _ours),
        Competitor("sklearnex", "dense", True, _sklearnex),
        Competitor("sklearnex, CSR", "csr", True, _sklearnex),
        Competitor("sklearn", "dense", True, _sklearn),
    )
}


def get_competitor(name: str) -> Competitor:
    """Return the competitor of that name."""
    return _ALL[name]


def choose(*, skip: Sequence[str], sparse: bool) -> list[Competitor]:
    """Return the competitors of a run.

    Parameters
    ----------
    skip : sequence of str
        Names to leave out.
    sparse : bool
        Whether the source is sparse: machines are then trained on CSR rows as well.
    """
    return [c for c in _ALL.values() if c.name not in skip and (sparse or c.form != "csr")]


def make_forms(competitors: Sequence[Competitor], *arrays: NDArray[np.float32]) -> Mapping[str, tuple[Any, ...]]:
    """Return the arrays in every form that one of the competitors takes: "dense" as they are, "csr" converted."""
    import scipy.sparse as sp

    forms: dict[str, tuple[Any, ...]] = {"dense": arrays}
    if any(c.form == "csr" for c in competitors):
        forms["csr"] = tuple(sp.csr_array(X) for X in arrays)
    return forms


def is_native(name: str, model: Any) -> bool:
    """Return False where scikit-learn-intelex has used scikit-learn's own fit."""
    return not name.startswith("sklearnex") or hasattr(model, "_onedal_estimator")
