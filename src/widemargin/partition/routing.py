"""Where clusters are: what routes samples, those of the training set and new ones by the same rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._threads import ThreadTeam, row_blocks
from ..data.samples import Samples, make_samples
from ..kernels.functions import FunctionKernel, Kernel
from ..kernels.tiles import add_kernel_product
from .kmeans import Labels, feature_distances, kernel_kmeans, kmeans, membership

_ROWS = 4096
_DENSE_BYTES = 2**24


class Router(Protocol):
    """A division of the sample space into k router, each around the mean of some sample points.

    Attributes
    ----------
    points : Samples of length m
    labels : ndarray of shape (m,), int
        The region of each sample point, below k.
    """

    @property
    def name(self) -> str:
        """The method's name."""

    @property
    def points(self) -> Samples:
        """The sample points."""

    @property
    def labels(self) -> Labels:
        """Their clusters."""

    @property
    def n_clusters(self) -> int:
        """k."""

    def assign(self, samples: Samples, team: ThreadTeam) -> Labels:
        """The region of every sample of the points' own kind: shape (n,)."""

    def route(self, X: Any, team: ThreadTeam) -> Labels:
        """The region of every row of X, of shape (n, d) as the training data were."""

    def route_with_samples(self, X: Any, team: ThreadTeam) -> tuple[Labels, Samples]:
        """As `route`, and the rows as samples of the points' own kind."""

    def next_cluster(self, samples: Samples, labels: Labels, team: ThreadTeam) -> tuple[Labels, NDArray[np.float64]]:
        """The region next to a sample's own, and their squared distances' ratio, 0 to 1: 0 where there is no other."""

    def with_labels(self, labels: Labels) -> Self:
        """The router of other labels."""

    def split(self, rows: NDArray[np.intp], k: int, rng: np.random.Generator) -> Labels:
        """Cluster some of the sample points anew, into k."""

    def distances(self) -> NDArray[np.float64]:
        """Squared distances of the sample points to the centres, up to a term of each point: (m, k)."""


@dataclass(frozen=True)
class KernelRouter:
    """Nearest mean in a kernel's feature space (Hsieh et al. 2014, section 3): m kernel values to route a sample.

    The points' kernel matrix (m, m) is computed when it is first asked for, and handed on to router of other labels.
    `known_spread` spares router that only route their kernel matrix.
    """

    kernel: Kernel
    points: Samples
    labels: Labels
    known_spread: NDArray[np.float64] | None = None
    known_gram: NDArray[np.floating] | None = None
    name: str = field(default="kernel", init=False)

    @property
    def n_clusters(self) -> int:
        """How many centres there are."""
        return int(self.labels.max()) + 1

    @cached_property
    def gram(self) -> NDArray[np.floating]:
        """The sample points' kernel matrix (m, m)."""
        if self.known_gram is not None:
            return self.known_gram
        K = np.empty((len(self.points), len(self.points)), self.points.dtype)
        self.kernel.fill(self.points, self.points, K)
        return K

    @cached_property
    def spread(self) -> NDArray[np.float64]:
        """Each centre's squared norm: mean_jj' k(x_j, x_j')."""
        if self.known_spread is not None:
            return self.known_spread
        members = membership(self.labels, self.n_clusters)
        return np.asarray(np.einsum("jc,jc->c", members, self.gram.astype(np.float64) @ members))

    def distances(self) -> NDArray[np.float64]:
        """From the sample's kernel matrix."""
        return feature_distances(self.gram, self.labels, self.n_clusters)

    def split(self, rows: NDArray[np.intp], k: int, rng: np.random.Generator) -> Labels:
        """Kernel k-means on their kernel matrix."""
        return kernel_kmeans(self.gram[np.ix_(rows, rows)], k, rng)

    def with_labels(self, labels: Labels) -> Self:
        """The same points in other clusters."""
        return replace(self, labels=labels, known_spread=None, known_gram=self.gram)

    def assign(self, samples: Samples, team: ThreadTeam) -> Labels:
        """d2(x, c) = k(x, x) - 2 mean_j k(x, x_j) + mean_jj' k(x_j, x_j'), in tiles on all threads."""
        return self._nearest(self.points, samples, team)

    def route(self, X: Any, team: ThreadTeam) -> Labels:
        """As `assign`."""
        return self.route_with_samples(X, team)[0]

    def route_with_samples(self, X: Any, team: ThreadTeam) -> tuple[Labels, Samples]:
        """As `assign`, with the samples."""
        points, samples = self.points.against(X)
        return self._nearest(points, samples, team), samples

    def next_cluster(self, samples: Samples, labels: Labels, team: ThreadTeam) -> tuple[Labels, NDArray[np.float64]]:
        """By the same distances, where they are cheap: not those of a function, nor new rows' own norms in a matrix."""
        if self.kernel.sample_form == "entries" or isinstance(self.kernel, FunctionKernel):
            return labels, np.zeros(len(labels))
        return _next_cluster(
            samples, labels, team, lambda part: self._scores(self.points, part, team).T, self.kernel.diagonal
        )

    def _nearest(self, points: Samples, samples: Samples, team: ThreadTeam) -> Labels:
        labels = np.empty(len(samples), np.intp)
        for rows in row_blocks(len(samples), 16 * _ROWS):
            labels[rows] = self._scores(points, samples.take(rows), team).argmin(axis=0)
        return labels

    def _scores(self, points: Samples, samples: Samples, team: ThreadTeam) -> NDArray[np.float64]:
        members = np.ascontiguousarray(membership(self.labels, self.n_clusters).T)
        products = np.zeros((self.n_clusters, len(samples)))
        add_kernel_product(self.kernel, points, members, samples, products, team)
        return self.spread[:, None] - 2.0 * products


@dataclass(frozen=True)
class InputRouter:
    """Nearest mean in input space: k distances to route a sample."""

    points: Samples
    labels: Labels
    name: str = field(default="input", init=False)

    @property
    def n_clusters(self) -> int:
        """How many centres there are."""
        return int(self.labels.max()) + 1

    def distances(self) -> NDArray[np.float64]:
        """From the sample points' own inner products with the centres."""
        return self._scores(self.points, self._centres)

    def split(self, rows: NDArray[np.intp], k: int, rng: np.random.Generator) -> Labels:
        """k-means."""
        return cluster_rows(self.points.take(rows), k, rng)

    def with_labels(self, labels: Labels) -> Self:
        """The same points in other clusters."""
        return replace(self, labels=labels)

    def assign(self, samples: Samples, team: ThreadTeam) -> Labels:
        """Distances to k centres, in blocks of rows on all threads."""
        centres = self._centres

        def block(rows: slice) -> Labels:
            return np.asarray(self._scores(samples.take(rows), centres).argmin(axis=1))

        return np.concatenate([np.empty(0, np.intp), *team.map(block, row_blocks(len(samples), _ROWS))])

    def route(self, X: Any, team: ThreadTeam) -> Labels:
        """As `assign`."""
        return self.route_with_samples(X, team)[0]

    def route_with_samples(self, X: Any, team: ThreadTeam) -> tuple[Labels, Samples]:
        """As `assign`, with the samples."""
        samples = self.points.against(X)[1]
        return self.assign(samples, team), samples

    def next_cluster(self, samples: Samples, labels: Labels, team: ThreadTeam) -> tuple[Labels, NDArray[np.float64]]:
        """By the same distances."""
        centres = self._centres
        return _next_cluster(samples, labels, team, lambda part: self._scores(part, centres), lambda part: part.squares)

    @cached_property
    def _centres(self) -> Samples:
        members = membership(self.labels, self.n_clusters).astype(self.points.dtype)
        rows = self.points.original()
        centres = np.ascontiguousarray((rows.T @ members).T)
        return make_samples(sp.csr_array(centres) if sp.issparse(rows) else centres)

    @staticmethod
    def _scores(rows: Samples, centres: Samples) -> NDArray[np.float64]:
        products = np.empty((len(rows), len(centres)), rows.precision)
        rows.inner(centres, products)
        return centres.squares - 2.0 * products


def _next_cluster(
    samples: Samples,
    labels: Labels,
    team: ThreadTeam,
    scores: Callable[[Samples], NDArray[np.floating]],
    squares: Callable[[Samples], NDArray[np.floating]],
) -> tuple[Labels, NDArray[np.float64]]:
    """As `Router.next_cluster`, in blocks, from scores (n, k): squared distances less the samples' own `squares`."""
    second, ratio = np.empty_like(labels), np.empty(len(labels))

    def block(rows: slice) -> None:
        part, first, mine = samples.take(rows), labels[rows], np.arange(rows.stop - rows.start)
        others, own_squares = scores(part).astype(np.float64), squares(part)
        near = np.maximum(others[mine, first] + own_squares, 0.0)
        others[mine, first] = np.inf
        second[rows] = others.argmin(axis=1)
        far = np.maximum(others[mine, second[rows]] + own_squares, near)
        ratio[rows] = np.divide(near, far, out=np.ones(len(mine)), where=far > 0)

    team.map(block, row_blocks(len(samples), _ROWS))
    return second, ratio


def cluster_rows(points: Samples, k: int, rng: np.random.Generator) -> Labels:
    """k-means of the rows, dense if that takes little memory: seeds among sparse rows cost more than the iterations."""
    rows = points.original()
    is_little = rows.shape[0] * rows.shape[1] * points.precision.itemsize <= _DENSE_BYTES
    return kmeans(points.toarray() if is_little else rows, k, rng)


@dataclass(frozen=True)
class RandomRouter:
    """No geometry at all, as in Cascade SVM: training samples by a shuffle, new ones by a hash of their numbers."""

    points: Samples
    labels: Labels
    name: str = field(default="random", init=False)

    @property
    def n_clusters(self) -> int:
        """How many parts there are."""
        return int(self.labels.max()) + 1

    def distances(self) -> NDArray[np.float64]:
        """All equal."""
        return np.zeros((len(self.labels), self.n_clusters))

    def split(self, rows: NDArray[np.intp], k: int, rng: np.random.Generator) -> Labels:
        """Another shuffle."""
        return np.asarray(rng.permutation(len(rows)) % k)

    def with_labels(self, labels: Labels) -> Self:
        """Other parts."""
        return replace(self, labels=labels)

    def assign(self, samples: Samples, team: ThreadTeam) -> Labels:
        """A fixed shuffle of the positions, in equal parts."""
        return np.asarray(np.random.default_rng(len(samples)).permutation(len(samples)) % self.n_clusters)

    def route(self, X: Any, team: ThreadTeam) -> Labels:
        """Multiply-shift hashing (Dietzfelbinger 1996): equal rows go to one part, whatever they are asked with."""
        rows = sp.csr_array(X, dtype=np.float64)
        factors = np.random.default_rng(0).integers(2**63, size=X.shape[1]) | 1
        bits = (rows.data + 0.0).view(np.int64)  # one zero, not two
        hashed = sp.csr_array((bits, rows.indices, rows.indptr), rows.shape) @ factors
        return np.asarray((hashed.view(np.uint64) >> np.uint64(32)) % np.uint64(self.n_clusters), np.intp)

    def route_with_samples(self, X: Any, team: ThreadTeam) -> tuple[Labels, Samples]:
        """As `route`, with the samples."""
        return self.route(X, team), self.points.against(X)[1]

    def next_cluster(self, samples: Samples, labels: Labels, team: ThreadTeam) -> tuple[Labels, NDArray[np.float64]]:
        """None: no part is nearer than another."""
        return labels, np.zeros(len(labels))
