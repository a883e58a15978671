"""A tree of k-means clusters in input space: log(k) times 12 distances route a row to one of k leaves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._native import Stopped, nystroem
from .._threads import cached_property, run_interruptibly
from .._types import Array, Labels, RowIndices, Rows
from ..data.csr import row_arrays
from .kmeans import MAX_VALUES, centroids, kmeans, kmeans_work, sample_rows

_BRANCHING = 12  # children of a node at most: two levels for 144 leaves, at 24 distances


@dataclass
class Hierarchy:
    """A tree of centres: a row goes to the child with the nearest centre, from the root to a leaf.

    Attributes
    ----------
    centres : ndarray of shape (n_nodes, branching, d)
        Node 0 is the root.
    sizes : ndarray of shape (n_nodes,), int32
        Number of children of each node.
    children : ndarray of shape (n_nodes, branching), int32
        The number of the child node, or -1 - leaf.
    """

    centres: Array
    sizes: NDArray[np.int32]
    children: NDArray[np.int32]

    @cached_property
    def compiled(self) -> nystroem.Tree:
        """A copy for compiled code. Raises ValueError if the arrays are no tree."""
        arrays: Any = map(np.ascontiguousarray, (self.centres, self.sizes, self.children))
        return nystroem.Tree(*arrays)

    @property
    def n_leaves(self) -> int:
        """Number of leaves k."""
        return int(self.compiled.n_leaves)

    @property
    def n_distances(self) -> int:
        """Largest number of distances from the root to a leaf."""
        return int(self.compiled.n_distances)

    @property
    def depth(self) -> int:
        """Largest number of nodes from the root to a leaf."""
        return int(self.compiled.depth)

    def route(self, X: Rows, rows: RowIndices | None = None) -> NDArray[np.int32]:
        """Leaf of each row of `rows` (default: all) of a dense or CSR array X: int32 (len(rows),)."""
        rows = np.arange(X.shape[0]) if rows is None else rows
        leaf = np.empty(len(rows), np.int32)
        self.compiled.route(row_arrays(X), rows, leaf)
        return leaf

    def __getstate__(self) -> dict[str, Any]:
        return {"centres": self.centres, "sizes": self.sizes, "children": self.children}


def grow(
    X: Rows, k: int, rng: np.random.Generator, go_on: Callable[[], bool], max_values: int = MAX_VALUES
) -> tuple[Hierarchy, Labels]:
    """Grow a tree of about k leaves.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d)
    k : int
        At most n; fewer leaves come out where rows are equal.
    rng : numpy.random.Generator
    go_on : callable
        Called before each node is divided, and meanwhile from other threads too; once it returns False, none is.
    max_values : int
        Of X, in the rows that are clustered at each node.

    Returns
    -------
    Hierarchy
    ndarray of shape (n,), int
        The leaf of every row.

    Notes
    -----
    One level up to 12 leaves, two up to 144, and so on; more below a child that has most of the rows. Each child gets
    leaves in proportion to its rows, so that leaves have similar sizes. Cost: k-means of at most 20,000 rows at each
    node (fewer of more than 500 columns), and the distance of each row to each child.
    """
    grower = _Grower(X, rng, go_on, max_values)
    grower.split(np.arange(X.shape[0]), k, count_levels(k))
    return grower.hierarchy(), grower.labels


def count_levels(k: int) -> int:
    """Levels of a tree of k leaves.

    >>> [count_levels(k) for k in (1, 12, 13, 144, 145)]
    [1, 1, 2, 2, 3]
    """
    n_levels = 1
    while _BRANCHING**n_levels < k:
        n_levels += 1
    return n_levels


class _Grower:
    """Divides the rows recursively, from the root; `labels` (n,) are their leaves."""

    def __init__(self, X: Rows, rng: np.random.Generator, go_on: Callable[[], bool], max_values: int) -> None:
        self.X = X
        self.rng = rng
        self.go_on = go_on
        self.max_values = max_values
        self.labels: Labels = np.zeros(X.shape[0], np.intp)
        self.n_leaves = 0
        self.centres: list[Array] = []
        self.children: list[list[int]] = []

    def split(self, rows: RowIndices, k: int, n_levels: int) -> int:
        """Make `rows` a node with k leaves, or a leaf; return its number as an entry of `children`."""
        k = min(k, len(rows))
        centres: Array | None = None
        if k > 1 and self.go_on():
            with suppress(Stopped):
                centres, child = self._cluster(rows, round(k ** (1 / n_levels)))
        if centres is None or len(centres) < 2:
            self.labels[rows] = self.n_leaves
            self.n_leaves += 1
            return -self.n_leaves
        node = len(self.centres)
        self.centres.append(centres)
        self.children.append([])
        for c, size in enumerate(np.bincount(child, minlength=len(centres))):
            wanted = max(1, round(k * size / len(rows))) if n_levels > 1 else 1
            self.children[node].append(self.split(rows[child == c], wanted, max(n_levels - 1, count_levels(wanted))))
        return node

    def _cluster(self, rows: RowIndices, k: int) -> tuple[Array, Labels]:
        """Centres (c, d) of k-means, and the nearest one of each row; without those that are no row's nearest."""
        sample = sample_rows(self.X, rows, k, self.rng, self.max_values)
        batch = self.X[sample]
        task = partial(kmeans, batch, max(k, 2), self.rng)
        centres = centroids(batch, run_interruptibly(task, self.go_on, kmeans_work(batch.size, k)))
        nearest = _stack([centres], [[-1 - c for c in range(len(centres))]]).route(self.X, rows)
        used, child = np.unique(nearest, return_inverse=True)
        return centres[used], child

    def hierarchy(self) -> Hierarchy:
        """The tree of all nodes so far."""
        return _stack(self.centres, self.children) if self.centres else single_leaf(self.X)


def single_leaf(X: Rows) -> Hierarchy:
    """The tree of one leaf, without nodes."""
    return Hierarchy(np.empty((0, 0, X.shape[1]), X.dtype), np.empty(0, np.int32), np.empty((0, 0), np.int32))


def _stack(centres: list[Array], children: list[list[int]]) -> Hierarchy:
    sizes = np.array([len(numbers) for numbers in children], np.int32)
    hierarchy = Hierarchy(
        np.zeros((len(sizes), sizes.max(), centres[0].shape[1]), centres[0].dtype),
        sizes,
        np.full((len(sizes), sizes.max()), -1, np.int32),
    )
    for node, size in enumerate(sizes):
        hierarchy.centres[node, :size], hierarchy.children[node, :size] = centres[node], children[node]
    return hierarchy
