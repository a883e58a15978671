"""Scores over C and gamma."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._types import Model, Vector
from ._axes import axes_of, last_step


class GridScoresDisplay:
    """Mean scores of cross-validation over C and gamma, as a heat map.

    Cells that were eliminated are faded, with their score on fewer rows or folds; cells without a score are empty. Use
    `from_estimator`, which draws. It follows scikit-learn's convention for displays.

    Parameters
    ----------
    Cs : array-like of shape (n_C,)
    gammas : array-like of shape (n_gammas,)
    scores : array-like of shape (n_folds, n_gammas, n_C)
        NaN in any fold: the cell was eliminated, or not visited.
    partial_scores : array-like of shape (n_gammas, n_C), default=None
        Of the cells with NaN in any fold: their mean scores on fewer rows or folds, NaN without one.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_, partial_image_ : matplotlib QuadMesh
        Cells with a score in every fold, and the others, faded.
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

    def __init__(
        self, Cs: ArrayLike, gammas: ArrayLike, scores: ArrayLike, partial_scores: ArrayLike | None = None
    ) -> None:
        self.Cs, self.gammas = np.asarray(Cs, np.float64), np.asarray(gammas, np.float64)
        self.scores = np.asarray(scores, np.float64)
        if self.scores.shape != (len(self.scores), len(self.gammas), len(self.Cs)) or not self.scores.size:
            shapes = f"Cs {self.Cs.shape}, gammas {self.gammas.shape}, scores {self.scores.shape}"
            raise ValueError(
                f"scores must have shape (n_folds, n_gammas, n_C), with at least one of each, got {shapes}"
            )
        if np.isnan(self.scores).any(axis=0).all():
            raise ValueError("scores must have a cell with a score in every fold, but all have NaN")
        shape = self.scores.shape[1:]
        self.partial_scores = np.full(shape, np.nan) if partial_scores is None else np.asarray(partial_scores, float)
        if self.partial_scores.shape != shape:
            raise ValueError(f"partial_scores must have shape {shape}, got {self.partial_scores.shape}")

    @classmethod
    def from_estimator(cls, estimator: Model, *, ax: Any = None, **mesh_kwargs: Any) -> Self:
        """Draw the scores of a fitted `DCSVMClassifierCV` or `DCSVMRegressorCV`.

        Parameters
        ----------
        estimator : DCSVMClassifierCV, DCSVMRegressorCV or Pipeline that ends in one
            Of a regressor the scores at `epsilon_`.
        ax, **mesh_kwargs
            As for `plot`.

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
        return cls(search.Cs_, search.gammas_, scores, _scores_on_less(search, scores)).plot(ax=ax, **mesh_kwargs)

    def plot(self, ax: Any = None, **mesh_kwargs: Any) -> Self:
        """Draw the heat map, and a mark at the best cell.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            By default the axes of a new figure.
        **mesh_kwargs
            For matplotlib's ``Axes.pcolormesh``.
        """
        self.ax_, self.figure_ = axes_of(self, ax)
        means = self.scores.mean(axis=0)
        faded = np.where(np.isnan(means), self.partial_scores, np.nan)
        columns, rows = np.arange(len(self.Cs)), np.arange(len(self.gammas))
        range_of_both = {"vmin": np.nanmin([means, faded]), "vmax": np.nanmax([means, faded])}
        style = {"shading": "nearest", **({} if "norm" in mesh_kwargs else range_of_both), **mesh_kwargs}
        # opacity: the colour is told, and that it is another kind of cell
        self.partial_image_ = self.ax_.pcolormesh(columns, rows, faded, **{**style, "alpha": 0.45})
        self.image_ = self.ax_.pcolormesh(columns, rows, means, **style)
        self.figure_.colorbar(self.image_, ax=self.ax_, label="Score")
        g, c = min(np.argwhere(means == np.nanmax(means)).tolist(), key=lambda cell: cell[::-1])
        label = f"C={_short(self.Cs[c])}, gamma={_short(self.gammas[g])}: {means[g, c]:.3g}"
        (self.best_,) = self.ax_.plot([c], [g], "k*", markersize=12, label=label)
        # more labels would touch each other
        self.ax_.set_xticks(columns, [_short(C) for C in self.Cs], rotation=45 * (len(self.Cs) > 8))
        self.ax_.set_yticks(rows, [_short(gamma) for gamma in self.gammas])
        self.ax_.set(xlabel="C", ylabel="gamma")
        if not np.isnan(faded).all():
            self.ax_.plot([], [], "s", color="0.8", markersize=10, label="faded: on fewer rows or folds")
        self.ax_.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), borderpad=0.0, frameon=False)
        return self


def _short(value: float) -> str:
    return f"{float(f'{value:.3g}'):g}"


def _scores_on_less(search: Any, scores: Vector) -> Vector:
    """Mean scores (n_gammas, n_C) over the folds that a cell was scored in; without one, on the most rows it had."""
    known = ~np.isnan(scores)
    count = np.where(known.any(axis=0), known.sum(axis=0), np.nan)
    means: Vector = np.where(known, scores, 0.0).sum(axis=0) / count
    if "n_test_rows" in search.cv_results_:  # of an early search: the scores are those on the most rows
        return means
    history, kernels = search.history_, list(dict.fromkeys(search.cv_results_["param_kernel"]))
    own = history["kernel"] == kernels.index(search.kernel_)
    if hasattr(search, "epsilon_"):
        own &= history["epsilon"] == search.epsilon_
    for g, c in np.argwhere(~known.any(axis=0)):
        cell = own & (history["gamma"] == search.gammas_[g]) & (history["C"] == search.Cs_[c])
        if cell.any():
            most = cell & (history["n_rows"] == history["n_rows"][cell].max())
            means[g, c] = history["score"][most].mean()
    return means
