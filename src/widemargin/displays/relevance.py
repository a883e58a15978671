"""Which columns matter to a kernel machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._types import Model, Vector
from ._axes import axes_of, check_lengths, last_step


class RelevanceDisplay:
    """Relevance of the columns as bars, the largest first.

    Use `from_estimator`, which draws; or the constructor and `plot`, for example with root mean square gradients of a
    machine of yours, ``np.sqrt((model.decision_gradient(X) ** 2).mean(axis=0))``.

    Parameters
    ----------
    relevance : array-like of shape (n_features,)
    names : sequence of str of length n_features, default=None
        Names of the columns; None: x0, x1, ...

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : matplotlib BarContainer
        From the top, in descending order of relevance.

    Raises
    ------
    ValueError
        If the arrays differ in length, or are empty.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from widemargin import RelevanceDisplay, RelevanceScaler
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> display = RelevanceDisplay.from_estimator(RelevanceScaler().fit(X, y))
    >>> display.ax_.get_yticklabels()[-1].get_text()  # at the top: the body mass index
    'bmi'
    """

    def __init__(self, relevance: ArrayLike, names: Sequence[str] | None = None) -> None:
        self.relevance = np.asarray(relevance, dtype=np.float64)
        default = [f"x{j}" for j in range(self.relevance.size)]
        self.names = np.asarray(default if names is None else names, dtype=object)
        check_lengths(relevance=self.relevance, names=self.names)

    @classmethod
    def from_estimator(cls, estimator: Model, *, ax: Any = None, n_columns: int = 20, **bar_kwargs: Any) -> Self:
        """Draw the relevance that an estimator has learned.

        Parameters
        ----------
        estimator : fitted RelevanceScaler, a Pipeline that has one, or a search
            A search of such a pipeline, or one that has scaled the columns itself (`DCSVMClassifierCV`,
            `DCSVMRegressorCV`), alone or as the last step of a Pipeline.
        ax, n_columns, **bar_kwargs
            As for `plot`.

        Raises
        ------
        ValueError
            If the estimator has no `relevance_`: so has a search that has kept the columns as they are. The message
            says how to draw its machine's gradients.
        """
        relevance, names = _relevance_and_names(estimator)
        return cls(relevance, names).plot(ax=ax, n_columns=n_columns, **bar_kwargs)

    def plot(self, ax: Any = None, *, n_columns: int = 20, **bar_kwargs: Any) -> Self:
        """Draw a bar for each column, the largest at the top.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            By default the axes of a new figure.
        n_columns : int, default=20
            Number of columns that are drawn, at most.
        **bar_kwargs
            For matplotlib's ``Axes.barh``.
        """
        self.ax_, self.figure_ = axes_of(self, ax)
        largest = np.argsort(-self.relevance, kind="stable")[:n_columns]
        heights = np.arange(len(largest))[::-1]
        self.bars_ = self.ax_.barh(heights, self.relevance[largest], **bar_kwargs)
        self.ax_.set_yticks(heights[::-1], labels=self.names[largest][::-1])
        self.ax_.set_xlabel("Relevance (root mean square gradient)")
        return self


def _relevance_and_names(estimator: Model) -> tuple[Vector, Any]:
    """The relevance of the first of an estimator's steps that has one, and the names of its columns."""
    steps = _steps(estimator)
    places = [k for k, step in enumerate(steps) if getattr(step, "relevance_", None) is not None]
    if not places:
        raise ValueError(_no_relevance(estimator))
    scaler, names = steps[places[0]], None
    try:
        for step in steps[: places[0] + 1]:
            names = step.get_feature_names_out(names)
    except AttributeError:  # a step has no names for what it makes of the columns, nor has a search without `refit`
        names = getattr(scaler, "feature_names_in_", None)
    return scaler.relevance_, names


def _steps(estimator: Model) -> list[Model]:
    """The steps that rows go through, in a Pipeline or a search, nested ones included."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    inner = getattr(estimator, "steps", None)
    if inner is None:
        return [] if estimator is None or isinstance(estimator, str) else [estimator]  # "passthrough"
    return [last for _, step in inner for last in _steps(step)]


def _no_relevance(estimator: Model) -> str:
    reason = f"estimator must be a fitted RelevanceScaler, or a Pipeline or search that has one, got {estimator!r}"
    if getattr(last_step(estimator), "relevance_", ()) is None:
        reason = "estimator has no relevance to draw: the search has kept the columns as they are (relevance_ is None)"
    return (
        f"{reason}. To draw a model's gradients at rows X instead: "
        "RelevanceDisplay((model.decision_gradient(X) ** 2).mean(axis=0) ** 0.5).plot()"
    )
