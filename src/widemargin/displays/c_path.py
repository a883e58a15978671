"""Scores along a path of C."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ._axes import axes_of


class CPathDisplay:
    """Mean score of cross-validation against C, with its standard deviation over the folds.

    Draw it by `from_estimator`, as with scikit-learn's displays.

    Parameters
    ----------
    Cs : array-like of shape (n_C,)
        The values of C.
    scores : array-like of shape (n_folds, n_C)
        Scores of the test folds.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : matplotlib Line2D
        The means.
    band_ : matplotlib FillBetweenPolyCollection
        One standard deviation above and below.
    best_line_ : matplotlib Line2D
        At the smallest C of the best mean.

    Raises
    ------
    ValueError
        If the shapes do not fit, there is no fold, or no C has a score in every fold.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import CPathDisplay, OCASClassifierCV
    >>> search = OCASClassifierCV(Cs=[0.01, 0.1, 1, 10]).fit(*load_iris(return_X_y=True))
    >>> display = CPathDisplay.from_estimator(search)
    >>> display.ax_.get_xlabel()
    'C'
    """

    def __init__(self, Cs: ArrayLike, scores: ArrayLike) -> None:
        self.Cs = np.asarray(Cs, dtype=np.float64)
        self.scores = np.asarray(scores, dtype=np.float64)
        if self.scores.shape != (len(self.scores), len(self.Cs)) or not self.scores.size:
            shapes = f"Cs {self.Cs.shape}, scores {self.scores.shape}"
            raise ValueError(f"scores must have shape (n_folds, n_C), with at least one of each, got {shapes}")
        if np.isnan(self.scores).any(axis=0).all():
            raise ValueError("scores must have a C with a score in every fold, but all have NaN")

    @classmethod
    def from_estimator(cls, search: Any, *, ax: Any = None, name: str | None = None, **line_kwargs: Any) -> Self:
        """Draw the scores of a fitted search: over C and gamma those of the best gamma.

        Parameters
        ----------
        search : OCASClassifierCV, OCASRegressorCV, DCSVMClassifierCV or DCSVMRegressorCV
            Values of C that a search eliminated are omitted.
        ax, name, **line_kwargs
            As for `plot`.
        """
        return cls(search.Cs_, _best_path(search)).plot(ax=ax, name=name, **line_kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **line_kwargs: Any) -> Self:
        """Draw the means, the band, and the best C.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            By default the axes of a new figure. Several displays may share axes.
        name : str, default=None
            Name in the legend; None: "mean score".
        **line_kwargs
            For matplotlib's ``Axes.plot``, for the means.
        """
        self.ax_, self.figure_ = axes_of(self, ax)
        order = np.argsort(self.Cs)
        order = order[~np.isnan(self.scores[:, order]).any(axis=0)]
        Cs, mean, spread = self.Cs[order], self.scores.mean(axis=0)[order], self.scores.std(axis=0)[order]
        (self.line_,) = self.ax_.plot(Cs, mean, **{"marker": "o", "label": name or "mean score", **line_kwargs})
        colour = self.line_.get_color()
        self.band_ = self.ax_.fill_between(Cs, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
        best = Cs[np.argmax(mean)]
        self.best_line_ = self.ax_.axvline(best, color=colour, linestyle=":", label=f"best C: {best:.3g}")
        self.ax_.set(xscale="log", xlabel="C", ylabel="Score")
        self.ax_.legend()
        return self


def _best_path(search: Any) -> Any:
    """Scores (n_folds, n_C) of a search, at the best of its other parameters."""
    scores = search.scores_
    if hasattr(search, "gammas_"):
        scores = scores[:, int(np.flatnonzero(search.gammas_ == search.gamma_)[0])]
    if hasattr(search, "epsilons_"):
        scores = scores[:, int(np.flatnonzero(search.epsilons_ == search.epsilon_)[0])]
    return scores
