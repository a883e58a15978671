"""Scores over C and gamma."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ._axes import axes_of, last_step


class GridScoresDisplay:
    """Mean scores of cross-validation over C and gamma, as a heat map; eliminated cells are empty.

    Use `from_estimator`, which draws. It follows scikit-learn's convention for displays.

    Parameters
    ----------
    Cs : array-like of shape (n_C,)
    gammas : array-like of shape (n_gammas,)
    scores : array-like of shape (n_folds, n_gammas, n_C)
        NaN in any fold leaves a cell empty.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : matplotlib QuadMesh
    best_ : matplotlib Line2D
        A mark at the best cell; of equal ones at that of the smallest C, then the smallest gamma, as the search.

    Raises
    ------
    ValueError
        If the shapes do not fit, or no cell has a score in every fold.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import DCSVMClassifierCV, GridScoresDisplay
    >>> search = DCSVMClassifierCV(Cs=4, gammas=3).fit(*load_iris(return_X_y=True))
    >>> display = GridScoresDisplay.from_estimator(search)
    >>> display.ax_.get_ylabel()
    'gamma'
    """

    def __init__(self, Cs: ArrayLike, gammas: ArrayLike, scores: ArrayLike) -> None:
        self.Cs, self.gammas = np.asarray(Cs, np.float64), np.asarray(gammas, np.float64)
        self.scores = np.asarray(scores, np.float64)
        if self.scores.shape != (len(self.scores), len(self.gammas), len(self.Cs)) or not self.scores.size:
            shapes = f"Cs {self.Cs.shape}, gammas {self.gammas.shape}, scores {self.scores.shape}"
            raise ValueError(
                f"scores must have shape (n_folds, n_gammas, n_C), with at least one of each, got {shapes}"
            )
        if np.isnan(self.scores).any(axis=0).all():
            raise ValueError("scores must have a cell with a score in every fold, but all have NaN")

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **mesh_kwargs: Any) -> Self:
        """Draw the scores of a fitted `DCSVMClassifierCV` or `DCSVMRegressorCV`.

        Parameters
        ----------
        estimator : DCSVMClassifierCV, DCSVMRegressorCV or Pipeline that ends in one
            Of a regressor the scores at `epsilon_`.
        ax, **mesh_kwargs
            As for `plot`.

        Returns
        -------
        GridScoresDisplay

        Raises
        ------
        ValueError
            If the estimator is not such a search, or not fitted.
        """
        search = last_step(estimator)
        if not hasattr(search, "scores_") or not hasattr(search, "gammas_"):
            raise ValueError(f"estimator must be a fitted search over C and gamma, got {search!r}")
        scores = search.scores_
        if scores.ndim == 4:
            scores = scores[:, :, int(np.flatnonzero(search.epsilons_ == search.epsilon_)[0])]
        return cls(search.Cs_, search.gammas_, scores).plot(ax=ax, **mesh_kwargs)

    def plot(self, ax: Any = None, **mesh_kwargs: Any) -> Self:
        """Draw the heat map, and a mark at the best cell.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: those of a new figure.
        **mesh_kwargs
            For matplotlib's ``Axes.pcolormesh``.

        Returns
        -------
        GridScoresDisplay

        Raises
        ------
        ImportError
            Without matplotlib.
        """
        self.ax_, self.figure_ = axes_of(self, ax)
        means = self.scores.mean(axis=0)
        columns, rows = np.arange(len(self.Cs)), np.arange(len(self.gammas))
        self.image_ = self.ax_.pcolormesh(columns, rows, means, **{"shading": "nearest", **mesh_kwargs})
        self.figure_.colorbar(self.image_, ax=self.ax_, label="Score")
        g, c = min(np.argwhere(means == np.nanmax(means)).tolist(), key=lambda cell: cell[::-1])
        label = f"C={self.Cs[c]:.3g}, gamma={self.gammas[g]:.3g}: {means[g, c]:.3g}"
        (self.best_,) = self.ax_.plot([c], [g], "k*", markersize=12, label=label)
        self.ax_.set_xticks(columns, [f"{C:.3g}" for C in self.Cs])
        self.ax_.set_yticks(rows, [f"{gamma:.3g}" for gamma in self.gammas])
        self.ax_.set(xlabel="C", ylabel="gamma")
        self.ax_.legend(loc="upper left", bbox_to_anchor=(0.0, 1.12), frameon=False)
        return self
