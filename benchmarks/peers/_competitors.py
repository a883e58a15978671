"""The competitors of the comparison of exact kernel machines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

OURS = "widemargin"
OURS_INTERCEPT = "widemargin+b"
OURS_CSR = "widemargin-csr"
OURS_LEVELS = "widemargin-auto"
NAMES = (OURS, OURS_CSR, OURS_INTERCEPT, OURS_LEVELS, "sklearnex", "sklearn")


class Settings(NamedTuple):
    """Settings of all competitors; `n_levels` and `budget_mb` are for ours, `cache_mb` for the two SVCs."""

    C: float
    gamma: float
    tol: float
    n_levels: int | str
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


def _ours(settings: Settings, intercept: bool) -> Any:
    from widemargin import DCSVMClassifier

    return DCSVMClassifier(
        C=settings.C,
        kernel=settings.kernel,
        gamma=settings.gamma,
        tol=settings.tol,
        fit_intercept=intercept,
        n_levels=settings.n_levels,
        memory_budget=None if settings.budget_mb is None else settings.budget_mb * 10**6,
        random_state=0,
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
    OURS: Competitor(OURS, "dense", False, lambda s: _ours(s, False)),
    OURS_CSR: Competitor(OURS_CSR, "csr", False, lambda s: _ours(s, False)),
    OURS_INTERCEPT: Competitor(OURS_INTERCEPT, "dense", True, lambda s: _ours(s, True)),
    OURS_LEVELS: Competitor(OURS_LEVELS, "dense", False, lambda s: _ours(s._replace(n_levels="auto"), False)),
    "sklearnex": Competitor("sklearnex", "dense", True, _sklearnex),
    "sklearn": Competitor("sklearn", "dense", True, _sklearn),
}


def get_competitor(name: str) -> Competitor:
    """Return the competitor of that name."""
    return _ALL[name]


def choose(*, skip: Sequence[str], intercept: str, sparse: bool) -> list[Competitor]:
    """Return the competitors of a run.

    Parameters
    ----------
    skip : sequence of str
        Names to leave out.
    intercept : {"both", "with", "without"}
        Which of our machines: the SVCs always have one.
    sparse : bool
        Whether the source is sparse: ours is then trained on CSR rows as well.
    """
    left_out = set(skip)
    if intercept == "with":
        left_out |= {OURS, OURS_CSR, OURS_LEVELS}
    if intercept == "without":
        left_out.add(OURS_INTERCEPT)
    if not sparse:
        left_out.add(OURS_CSR)
    return [competitor for name, competitor in _ALL.items() if name not in left_out]


def make_forms(competitors: Sequence[Competitor], *arrays: NDArray[np.float32]) -> Mapping[str, tuple[Any, ...]]:
    """Return the arrays in every form that one of the competitors takes: "dense" as they are, "csr" converted."""
    import scipy.sparse as sp

    forms: dict[str, tuple[Any, ...]] = {"dense": arrays}
    if any(c.form == "csr" for c in competitors):
        forms["csr"] = tuple(sp.csr_array(X) for X in arrays)
    return forms


def is_native(name: str, model: Any) -> bool:
    """Return False where scikit-learn-intelex has used scikit-learn's own fit."""
    return name != "sklearnex" or hasattr(model, "_onedal_estimator")
