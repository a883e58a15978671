"""What a prediction costs, against how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ._axes import axes_of, check_lengths, last_step


class PredictionCostDisplay:
    """Score of several models against the cost of a prediction.

    Draw it by `from_estimators`, as with scikit-learn's displays.

    Parameters
    ----------
    cost : array-like of shape (n_models,)
        Inner products of a prediction.
    score : array-like of shape (n_models,)
        Accuracy, R2, or another score.
    names : sequence of str of length n_models, default=None
        Written beside the points.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : matplotlib Line2D
        The points, in ascending order of cost.
    texts_ : list of matplotlib Annotation
        The names.

    Raises
    ------
    ValueError
        If the arrays differ in length, or are empty.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from widemargin import DCSVMClassifier, PredictionCostDisplay, compress
    >>> X, y = make_moons(1000, noise=0.2, random_state=0)
    >>> exact = DCSVMClassifier(gamma=1.0).fit(X, y)
    >>> small = compress(exact, X, prediction_cost=20, random_state=0)
    >>> display = PredictionCostDisplay.from_estimators({"exact": exact, "compressed": small}, X, y)
    >>> [text.get_text() for text in display.texts_]
    ['compressed', 'exact']
    """

    def __init__(self, cost: ArrayLike, score: ArrayLike, names: Sequence[str] | None = None) -> None:
        self.cost = np.asarray(cost, dtype=np.float64)
        self.score = np.asarray(score, dtype=np.float64)
        self.names = None if names is None else np.asarray(names)
        check_lengths(cost=self.cost, score=self.score, names=self.names)

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], X: ArrayLike, y: ArrayLike, *, ax: Any = None, **line_kwargs: Any
    ) -> Self:
        """Score each model, and draw the scores.

        Parameters
        ----------
        estimators : mapping of str to fitted estimator
            Kernel machines of widemargin and scikit-learn, what `compress` returns, linear models; or pipelines that
            end in one.
        X : array-like of shape (n_samples, n_features)
            Test samples.
        y : array-like of shape (n_samples,)
            Their labels or values, for the `score` of each model.
        ax, **line_kwargs
            As for `plot`.

        Raises
        ------
        ValueError
            If the cost of a model is unknown.

        Notes
        -----
        The cost is a number of inner products, not a time: of a kernel machine its support vectors, of a linear one
        its rows of weights, of a compressed one what `prediction_cost` counts.
        """
        cost = [_cost(name, model) for name, model in estimators.items()]
        score = [model.score(X, y) for model in estimators.values()]
        return cls(cost, score, list(estimators)).plot(ax=ax, **line_kwargs)

    def plot(self, ax: Any = None, **line_kwargs: Any) -> Self:
        """Draw the points, connected in the order of their cost, on a logarithmic axis of costs.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            By default the axes of a new figure. Several displays may share axes.
        **line_kwargs
            For matplotlib's ``Axes.plot``.
        """
        self.ax_, self.figure_ = axes_of(self, ax)
        order = np.argsort(self.cost, kind="stable")
        (self.line_,) = self.ax_.plot(self.cost[order], self.score[order], **{"marker": "o", **line_kwargs})
        named = [] if self.names is None else [(self.names[k], (self.cost[k], self.score[k])) for k in order]
        self.texts_ = [
            self.ax_.annotate(name, point, xytext=(4, 4), textcoords="offset points") for name, point in named
        ]
        self.ax_.set(xscale="log", xlabel="Inner products of a prediction", ylabel="Score")
        return self


def _cost(name: str, model: Any) -> float:
    last = last_step(model)
    if hasattr(last, "predictor_"):
        return float(last.predictor_.n_operations)
    points = getattr(last, "support_vectors_", getattr(last, "X_fit_", None))  # the latter of `KernelRidge`
    if points is not None:
        return float(points.shape[0] or len(getattr(last, "support_", ())))  # precomputed: indices only
    if hasattr(last, "coef_"):
        return float(np.atleast_2d(last.coef_).shape[0])
    raise ValueError(f"estimators[{name!r}] must be a kernel model, a compressed or a linear one, got {last!r}")
