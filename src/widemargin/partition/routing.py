"""Routing: the rule that assigns samples, of the training set and new ones alike, to clusters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from .._config import SMALL_BYTES
from .._threads import BLOCK_VALUES, ThreadTeam, cached_property, row_blocks
from .._types import Array, Labels, Matrix, RowIndices, Rows, Vector
from ..data.rows import group_by_label, occupied_columns, restore_columns
from ..data.samples import Samples, make_samples
from ..kernels.functions import CallableKernel, Kernel
from ..kernels.tiles import KernelProduct, add_kernel_product
from .kmeans import cluster_products, feature_distances, kernel_kmeans, kmeans, membership

ROUTED_ROWS = 4096  # of a block, at least
Scores = Callable[[Samples, ThreadTeam], Array]  # squared distances (n, k) to the centres, but for a term of the sample


class Router(ABC):
    """pi(x): a division of the sample space into k regions, each nearest to the mean of some sample points.

    Attributes
    ----------
    name : {"kernel", "input"}
    points : Samples of length m
        The sample points.
    labels : ndarray of shape (m,), int
        The cluster of each sample point: 0, ..., k - 1.
    """

    name: str
    points: Samples
    labels: Labels

    @property
    def n_clusters(self) -> int:
        """Number of clusters k."""
        return int(self.labels.max()) + 1

    def route(self, X: Rows, team: ThreadTeam) -> Labels:
        """The clusters (n,) of the rows of X (n, d), an array as the training data were."""
        return self.route_with_samples(X, team)[0]

    def with_labels(self, labels: Labels) -> Self:
        """The router of the same points in other clusters."""
        return replace(self, labels=labels)  # type: ignore[type-var]  # every router is a dataclass

    @abstractmethod
    def assign(self, samples: Samples, team: ThreadTeam) -> Labels:
        """The clusters (n,) of samples of the same form as the points."""

    @abstractmethod
    def route_with_samples(self, X: Rows, team: ThreadTeam) -> tuple[Labels, Samples]:
        """The clusters (n,) of the rows of X, and these rows as samples of the same form as the points."""

    @abstractmethod
    def next_cluster(
        self, samples: Samples, labels: Labels, team: ThreadTeam, scores: Scores | None = None
    ) -> tuple[Labels, Vector]:
        """The second nearest clusters (n,), and the ratios (n,) of the squared distances to the nearest and to it.

        `labels` are the nearest clusters; `scores` is `score_function()`, where it is known. The ratio is 0 where there
        is no second one.
        """

    def score_function(self) -> Scores | None:
        """The squared distances (n, k) of samples to the centres, but for a term of the sample; None without these."""
        return None

    @abstractmethod
    def split(self, rows: RowIndices, k: int, rng: np.random.Generator) -> Labels:
        """Cluster the sample points `rows` into k: labels (len(rows),)."""

    @abstractmethod
    def distances(self) -> Matrix:
        """Squared distances (m, k) of the sample points to the centres, up to a term that depends on the point."""


@dataclass(frozen=True)
class KernelRouter(Router):
    """Nearest mean in a kernel's feature space (Hsieh et al. 2014, section 3): m kernel values to route a sample.

    The points' kernel matrix (m, m) is computed at its first use and shared with routers of other labels. Routing needs
    the squared centre norms alone, and with `known_squared_norms` no such matrix.
    """

    kernel: Kernel
    points: Samples
    labels: Labels
    known_squared_norms: Vector | None = None
    known_gram: Array | None = None
    weights: Vector | None = None  # of the points in their cluster's mean; ones by default
    name: str = field(default="kernel", init=False)

    def __getstate__(self) -> dict[str, Any]:
        """Without the points' kernel matrix: routing needs the squared centre norms alone."""
        self.squared_centre_norms  # noqa: B018 - computed before the matrix is left out
        return {name: value for name, value in self.__dict__.items() if name != "gram"} | {"known_gram": None}

    @cached_property
    def gram(self) -> Array:
        """The sample points' kernel matrix (m, m)."""
        if self.known_gram is not None:
            return self.known_gram
        K = np.empty((len(self.points), len(self.points)), self.points.dtype)
        self.kernel.fill(self.points, self.points, K)
        return K

    @cached_property
    def squared_centre_norms(self) -> Vector:
        """Squared norms (k,) of the centres: mean_jj' k(x_j, x_j')."""
        if self.known_squared_norms is not None:
            return self.known_squared_norms
        members = membership(self.labels, self.n_clusters, self.weights)
        return np.asarray(np.einsum("jc,cj->c", members, cluster_products(self.gram, members)))

    def distances(self) -> Matrix:
        """Squared distances (m, k) of the points to the centres, less k(x, x)."""
        return feature_distances(self.gram, self.labels, self.n_clusters, self.weights)

    def split(self, rows: RowIndices, k: int, rng: np.random.Generator) -> Labels:
        """Kernel k-means of the points `rows`."""
        weights = None if self.weights is None else self.weights[rows]
        return kernel_kmeans(self.gram[np.ix_(rows, rows)], k, rng, weights)

    def with_labels(self, labels: Labels) -> Self:
        """The same points in other clusters."""
        return replace(self, labels=labels, known_squared_norms=None, known_gram=self.gram)

    def squared_distances_of(self, X: Rows, diagonal: float | None, team: ThreadTeam) -> Matrix:
        """Squared distances (n, k) of rows X (n, d) to the centres; those below 0, by rounding, are set to 0.

        `diagonal`: k(x, x) of the rows, where X is their Gram matrix K(new rows, training rows); None else.
        """
        points, samples = self.points.pair_with(X)
        norms = self.kernel.diagonal if diagonal is None else lambda batch: np.full(len(batch), diagonal)
        out, sums = np.empty((len(samples), self.n_clusters)), self._cluster_sums(points)
        for rows in self._blocks(samples):
            batch = samples.take(rows)
            out[rows] = self._scores(sums, batch, team) + norms(batch)[:, None]
        return np.maximum(out, 0.0, out=out)

    def distances_to_own(self, samples: Samples, labels: Labels, team: ThreadTeam) -> Vector:
        """Squared distances (n,) of samples, of the points' form, to the centres of their clusters `labels` (n,).

        m / k kernel values a sample, about: with the points of its cluster.
        """
        out = np.empty(len(samples))
        members, clusters = (group_by_label(numbers, self.n_clusters) for numbers in (self.labels, labels))
        for c, (index, rows) in enumerate(zip(members, clusters, strict=True)):
            weights = np.ones(len(index)) if self.weights is None else self.weights[index]
            points, means = self.points.take(index), -2.0 * weights[None] / weights.sum()
            for block in row_blocks(len(rows), ROUTED_ROWS):
                batch = samples.take(rows[block])
                distances = np.full((1, len(batch)), self.squared_centre_norms[c])
                add_kernel_product(self.kernel, points, means, batch, distances, team)
                out[rows[block]] = distances[0] + self.kernel.diagonal(batch)
        return np.maximum(out, 0.0, out=out)

    def assign(self, samples: Samples, team: ThreadTeam) -> Labels:
        """Minimisers c of d2(x, c) = k(x, x) - 2 mean_j k(x, x_j) + mean_jj' k(x_j, x_j'), on all threads."""
        return self._nearest(self.points, samples, team)

    def route_with_samples(self, X: Rows, team: ThreadTeam) -> tuple[Labels, Samples]:
        """As `assign`, of the rows of X, and these as samples."""
        points, samples = self.points.pair_with(X)
        return self._nearest(points, samples, team), samples

    def next_cluster(
        self, samples: Samples, labels: Labels, team: ThreadTeam, scores: Scores | None = None
    ) -> tuple[Labels, Vector]:
        """The second nearest; none with callables, which take too long, and with Gram matrices, for want of k(x, x)."""
        if self.kernel.sample_form == "entries" or isinstance(self.kernel, CallableKernel):
            return labels, np.zeros(len(labels))
        return _next_cluster(samples, labels, team, scores or self.score_function(), self.kernel.diagonal)

    def score_function(self) -> Scores:
        """Squared distances (n, k) less k(x, x)."""
        return partial(self._scores, self._cluster_sums(self.points))

    def _nearest(self, points: Samples, samples: Samples, team: ThreadTeam) -> Labels:
        labels, sums = np.empty(len(samples), np.intp), self._cluster_sums(points)
        for rows in self._blocks(samples):
            labels[rows] = self._scores(sums, samples.take(rows), team).argmin(axis=1)
        return labels

    def _blocks(self, samples: Samples) -> list[slice]:
        return row_blocks(len(samples), max(ROUTED_ROWS, BLOCK_VALUES // self.n_clusters))

    def _cluster_sums(self, points: Samples) -> KernelProduct:
        """Weighted kernel sums of each cluster's points, which are in the order of the clusters: a tile has few."""
        order = np.argsort(self.labels, kind="stable")
        members = membership(self.labels, self.n_clusters, self.weights)[order]
        return KernelProduct(self.kernel, points.take(order), members.T)

    def _scores(self, sums: KernelProduct, samples: Samples, team: ThreadTeam) -> Matrix:
        """Squared distances (n, k) to the centres less k(x, x), from `_cluster_sums`."""
        products = np.zeros((len(self.squared_centre_norms), len(samples)))
        sums.add_to(samples, products, team)
        products *= -2.0
        products += self.squared_centre_norms[:, None]
        return products.T


@dataclass(frozen=True)
class InputRouter(Router):
    """Nearest mean in input space: k distances to route a sample."""

    points: Samples
    labels: Labels
    name: str = field(default="input", init=False)

    def distances(self) -> Matrix:
        """Squared distances (m, k) of the points to the centres, less |x|^2."""
        return self._scores(self.points, self.centres)

    def split(self, rows: RowIndices, k: int, rng: np.random.Generator) -> Labels:
        """k-means of the points `rows`."""
        return cluster_rows(self.points.take(rows), k, rng)

    def assign(self, samples: Samples, team: ThreadTeam) -> Labels:
        """The nearest centres, in blocks of rows on all threads."""
        scores = self.score_function()

        def block(rows: slice) -> Labels:
            return np.asarray(scores(samples.take(rows), team).argmin(axis=1))

        return np.concatenate([np.empty(0, np.intp), *team.map(block, row_blocks(len(samples), ROUTED_ROWS))])

    def route_with_samples(self, X: Rows, team: ThreadTeam) -> tuple[Labels, Samples]:
        """As `assign`, of the rows of X, and these as samples."""
        samples = self.points.pair_with(X)[1]
        return self.assign(samples, team), samples

    def next_cluster(
        self, samples: Samples, labels: Labels, team: ThreadTeam, scores: Scores | None = None
    ) -> tuple[Labels, Vector]:
        """The second nearest."""
        return _next_cluster(samples, labels, team, scores or self.score_function(), lambda rows: rows.squares)

    def score_function(self) -> Scores:
        """Squared distances (n, k) less |x|^2."""
        centres = self.centres
        return lambda samples, team: self._scores(samples, centres)

    @cached_property
    def centres(self) -> Samples:
        """The centres: k samples of the points' form."""
        members = membership(self.labels, self.n_clusters).astype(self.points.dtype)
        rows = self.points.stored()
        d, (rows, columns) = rows.shape[1], occupied_columns(rows)
        centres = np.ascontiguousarray((rows.T @ members).T)
        centres = sp.csr_array(centres) if sp.issparse(rows) else centres
        return make_samples(restore_columns(centres, columns, d))

    @staticmethod
    def _scores(rows: Samples, centres: Samples) -> Matrix:
        products = np.empty((len(rows), len(centres)), rows.precision)
        rows.inner(centres, products)
        return centres.squares - 2.0 * products


def _next_cluster(
    samples: Samples,
    labels: Labels,
    team: ThreadTeam,
    scores: Scores,
    squares: Callable[[Samples], Array],
) -> tuple[Labels, Vector]:
    """`Router.next_cluster` in blocks. Squared distances are `scores` (n, k) plus `squares` (n,), terms of x alone."""
    next_labels, ratio = np.empty_like(labels), np.empty(len(labels))

    def block(rows: slice) -> None:
        batch, first, index = samples.take(rows), labels[rows], np.arange(rows.stop - rows.start)
        distances, own_squares = scores(batch, team).astype(np.float64), squares(batch)
        near = np.maximum(distances[index, first] + own_squares, 0.0)
        distances[index, first] = np.inf
        next_labels[rows] = distances.argmin(axis=1)
        far = np.maximum(distances[index, next_labels[rows]] + own_squares, near)
        ratio[rows] = np.divide(near, far, out=np.ones(len(index)), where=far > 0)

    team.map(block, row_blocks(len(samples), ROUTED_ROWS))
    return next_labels, ratio


def cluster_rows(points: Samples, k: int, rng: np.random.Generator) -> Labels:
    """Labels (m,) by k-means of the points: of a dense copy if that is small, as seeding on sparse rows is slow."""
    rows = points.stored()
    is_little = rows.shape[0] * rows.shape[1] * points.precision.itemsize <= SMALL_BYTES
    return kmeans(points.toarray() if is_little else rows, k, rng)
