"""The clusters of rows, on a plane."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ._axes import axes_of, last_step


class ClusterDisplay:
    """Rows on a plane, coloured by cluster.

    Draw it by `from_estimator`, as with scikit-learn's displays.

    Parameters
    ----------
    points : array-like of shape (n_samples, 2)
        Places of the rows on the plane.
    clusters : array-like of shape (n_samples,), int
        Their clusters.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : matplotlib PathCollection

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from widemargin import ClusterDisplay, DCSVMClassifier
    >>> X, y = make_moons(1000, noise=0.2, random_state=0)
    >>> early = DCSVMClassifier(gamma=1.0, stop_level=1, random_state=0).fit(X, y)
    >>> display = ClusterDisplay.from_estimator(early, X)
    >>> len(set(display.clusters)) == early.levels_[-1]["n_clusters"]
    True
    """

    def __init__(self, points: ArrayLike, clusters: ArrayLike) -> None:
        self.points = np.asarray(points, dtype=np.float64)
        self.clusters = np.asarray(clusters)
        if self.points.ndim != 2 or self.points.shape[1] != 2 or self.clusters.shape != self.points.shape[:1]:
            shapes = f"points {self.points.shape}, clusters {self.clusters.shape}"
            raise ValueError(f"points must have shape (n_samples, 2), and clusters (n_samples,), got {shapes}")

    @classmethod
    def from_estimator(cls, estimator: Any, X: ArrayLike, *, ax: Any = None, **scatter_kwargs: Any) -> Self:
        """Draw the rows of X, coloured by the cluster that an estimator assigns them to.

        Parameters
        ----------
        estimator : fitted early machine (`stop_level` of at least 1) or clusterer, or a Pipeline that ends in one
            An early machine's `assign_clusters` is called, another estimator's `predict`.
        X : array-like of shape (n_samples, n_features)
            Rows. Of more than two features the two principal components are drawn, a single one on a line.
        ax, **scatter_kwargs
            As for `plot`.

        Raises
        ------
        ValueError
            If `estimator` has no clusters, or none for new rows.
        """
        last = last_step(estimator)
        if not (hasattr(last, "assign_clusters") or (hasattr(last, "labels_") and hasattr(last, "predict"))):
            raise ValueError(
                f"estimator must have clusters: early prediction or a clusterer with `predict`, got {last!r}"
            )
        rows = X if last is estimator else estimator[:-1].transform(X)
        clusters = getattr(last, "assign_clusters", last.predict)(rows)
        return cls(_on_a_plane(np.asarray(X, dtype=np.float64)), clusters).plot(ax=ax, **scatter_kwargs)

    def plot(self, ax: Any = None, **scatter_kwargs: Any) -> Self:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            By default the axes of a new figure.
        **scatter_kwargs
            For matplotlib's ``Axes.scatter``.
        """
        self.ax_, self.figure_ = axes_of(self, ax)
        look = {"c": self.clusters, "s": 8, "cmap": "tab20", **scatter_kwargs}
        self.points_ = self.ax_.scatter(*self.points.T, **look)
        return self


def _on_a_plane(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Rows (n, d) as (n, 2): as they are, a single column beside zeros, or their two principal components."""
    if X.shape[1] <= 2:
        return np.hstack([X, np.zeros((len(X), 2 - X.shape[1]))])
    centred = X - X.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, :-3:-1]
    return np.asarray(centred @ axes)
