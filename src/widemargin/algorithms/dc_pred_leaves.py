"""DC-Pred++: kernel machines that predict at the cost of a few inner products.

Source: Hsieh, Si, Dhillon, Fast Prediction for Large-Scale Kernel Machines, NIPS 2014, Algorithm 2:

    grow a tree of clusters by k-means in input space
    for every leaf:
        solve the exact machine of its rows (at most 3,000 of them)
        landmarks: centroids of k-means weighted by the squared dual variables (or unweighted, if these do better)
        pseudo-landmarks: points whose kernel values are estimated from those of the landmarks
        W = F F': the matrix for which C W C' is closest to the kernel matrix K of rows of the leaf
        train the local machine on C W C', or on the coordinates C F; keep its coefficients on the columns of C

The loss is a `LeafProblem`: hinge loss, kernel ridge regression, or least squares on another machine's decision values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import partial
from operator import call
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from .._memory import DEFAULT_PLAN, MemoryPlan
from .._native import Stopped
from .._progress import AnyProgress, SilentProgress, share_time
from .._threads import ThreadTeam, blas_limit, effective_n_jobs, raise_if_stopped, run_interruptibly
from .._types import Array, Matrix, RowIndices, Rows, Vector
from ..data.origin import dense_if_far
from ..data.rows import group_by_label
from ..data.samples import make_samples
from ..kernels.functions import ArgumentKernel
from ..kernels.tiles import fill_gram
from ..models.nystroem_tree import NystroemForest, NystroemTree
from ..nystroem.features import LandmarkFeatures, nystroem_factor, stack_leaves
from ..nystroem.landmarks import select_landmarks
from ..nystroem.leaf_problems import ExactSolution, LeafProblem, LinearFit, least_squares_work
from ..nystroem.pseudo_landmarks import add_pseudo_landmarks, landmark_features
from ..partition.hierarchy import Hierarchy, grow
from ..partition.kmeans import kmeans_work, max_sample_values, needed_sample_bytes

T = TypeVar("T")

LEAVES_AT_ONCE = 2  # leaves whose training fits in memory at a time: a constant, as results must not depend on `n_jobs`
_MAX_KERNEL_ROWS = 3000  # rows of a leaf whose kernel matrix is computed, at most
_MAX_QUICK_ROWS = 300  # where time is short, train on a quarter of a leaf's rows, at most so many; the least r too
_TREE_SHARE = 0.5  # of the time that is left, for the clusters of a tree at most
_N_VECTORS = 6  # float64 vectors (n,) of a training, beside two for each output
_UNEVEN = 2.0  # rows of the largest leaf / mean, about


class ForestSettings(NamedTuple):
    """Sizes of the trees and options of the approximation.

    Attributes
    ----------
    n_clusters, n_landmarks, n_pseudo_landmarks : int
        Leaves of a tree; landmarks and pseudo-landmarks in each.
    n_trees : int
        Trees with different clusters, whose decision values are averaged.
    pseudo : {"triangle", "polynomial"} or None
    landmark_weights : {"auto", "alpha"} or None
        Centroids weighted by the squared dual variables ("alpha"), or unweighted ones (None); "auto": in each leaf
        those of the two on whose features the exact machine's decision values have the smaller least-squares residual.
    landmark_method : {"kmeans", "uniform"}
        Centroids, or random rows.
    linear : bool
        Whether a leaf's kernel is the approximate one plus <x, z>, scaled to the leaf.
    damping : float
        Tikhonov damping of the pseudo-inverse of C: `nystroem_factor` gets damping / r for r sampled rows, as few rows
        determine directions of small singular values badly.
    memory : MemoryPlan
    n_jobs : int or None
    """

    n_clusters: int
    n_landmarks: int
    n_pseudo_landmarks: int
    pseudo: str | None = "triangle"
    landmark_weights: str | None = "alpha"
    landmark_method: str = "kmeans"
    linear: bool = True
    damping: float = 0.05
    n_trees: int = 1
    memory: MemoryPlan = DEFAULT_PLAN
    n_jobs: int | None = None


class TrainedForest(NamedTuple):
    """A trained forest and its certificates.

    Attributes
    ----------
    model : NystroemForest
    leaves : dict of ndarray of shape (number of leaves,)
        Tree, rows, landmarks, objective, gap, whether it converged, and when it was done, of each leaf.
    converged : bool
    """

    model: NystroemForest
    leaves: dict[str, Vector]
    converged: bool


def train_forest(
    kernel: ArgumentKernel,
    X: Rows,
    problem: LeafProblem,
    settings: ForestSettings,
    progress: AnyProgress,
    rng: np.random.Generator,
    features: LandmarkFeatures | None = None,
) -> TrainedForest:
    """Train `n_trees` trees of local machines by Algorithm 2.

    Parameters
    ----------
    kernel : ArgumentKernel
    X : ndarray or CSR array of shape (n, d)
    problem : LeafProblem
        With the targets of the n rows.
    settings : ForestSettings
    progress : AnyProgress
    rng : numpy.random.Generator
    features : LandmarkFeatures, optional
        Features of one leaf that every leaf uses; by default each has landmarks of its own.

    Notes
    -----
    O(n_leaf^2) kernel entries a leaf, of at most 3,000 rows each. Leaves are independent: one after the other on every
    thread. With a time limit, every leaf first gets a machine of a few of its rows, which it keeps if the fit is
    stopped before it is trained; then they are trained, the smallest first. A leaf without a machine has the best
    constant. Of the trees after the first only complete ones are kept.
    """
    X = dense_if_far(X)
    with blas_limit(1), ThreadTeam(_count_workers(settings, X, problem.n_outputs)) as team:
        trainer = _LeafTrainer(kernel, X, problem, settings, progress, team, features)
        trained = []
        for t, tree_rng in enumerate(rng.spawn(settings.n_trees)):
            tree_and_leaves = _train_tree(trainer, tree_rng, t)
            if t == 0 or not progress.stopped_by:
                trained.append(tree_and_leaves)
    trees, leaves = zip(*trained, strict=True)
    joined = {name: np.concatenate([of_tree[name] for of_tree in leaves]) for name in leaves[0]}
    return TrainedForest(NystroemForest(list(trees)), joined, bool(joined["converged"].all()))


def needed_bytes(settings: ForestSettings, X: Rows, n_outputs: int) -> float:
    """The least memory for training on the rows X (n, d): clusters, and one leaf after the other."""
    n, d = map(int, X.shape)
    n_leaf = _leaf_rows(settings, n)
    leaf = _leaf_bytes(settings, n_leaf, d, n_outputs, min(n_leaf, _MAX_QUICK_ROWS))
    clusters = needed_sample_bytes(n * d, X.dtype.itemsize) if settings.n_clusters > 1 else 0
    return 8.0 * n * (_N_VECTORS + 2 * n_outputs) + clusters + leaf


def _max_kernel_rows(settings: ForestSettings, X: Rows, n_outputs: int) -> int:
    """The number r of sampled rows of a leaf, 300 to 3,000, whose kernel matrix and factorisation fit in memory."""
    n_leaf, n_at_once = _leaf_rows(settings, X.shape[0]), min(LEAVES_AT_ONCE, settings.n_clusters)
    sizes = range(_MAX_QUICK_ROWS, _MAX_KERNEL_ROWS + 1, 100)  # the largest that fits in memory is taken
    each = [n_at_once * _leaf_bytes(settings, n_leaf, X.shape[1], n_outputs, r) for r in sizes]
    return max((r for r, size in zip(sizes, each, strict=True) if size <= settings.memory["leaves"]), default=sizes[0])


def _count_workers(settings: ForestSettings, X: Rows, n_outputs: int) -> int:
    """Threads of the team that leaves are shared out to: all for one leaf, else as many as leaves fit in memory."""
    n_threads, n_leaf = effective_n_jobs(settings.n_jobs), _leaf_rows(settings, X.shape[0])
    if settings.n_clusters == 1:
        return n_threads
    leaf = _leaf_bytes(settings, n_leaf, X.shape[1], n_outputs, _max_kernel_rows(settings, X, n_outputs))
    return max(1, min(n_threads, int(settings.memory["leaves"] / leaf)))


def _leaf_rows(settings: ForestSettings, n: int) -> int:
    """Rows of the largest leaf, about."""
    return min(n, int(_UNEVEN * n / settings.n_clusters)) if settings.n_clusters > 1 else n


def _leaf_bytes(settings: ForestSettings, n: int, d: int, n_outputs: int, r: int) -> float:
    """Bytes that the training of one leaf of n rows takes, with the kernel matrix of r sampled rows.

    Features C (n, n_features), linear term and outputs of the rows; and the larger of two steps. The factor F, with the
    landmarks counted in r: in float64 K (r, r), C (r, n_features), two copies of its singular vectors, (r, rank) and
    (rank, n_features), and matrices (rank, rank). The fit: coordinates of the rows in float64 and float32.
    (`training_bytes` of `estimators/_cost.py`, which decides the sizes of leaves, does not count F: r is made to fit.)
    """
    n_features = settings.n_landmarks + settings.n_pseudo_landmarks
    r += min(settings.n_landmarks, n)
    rank, n_coordinates = min(r, n_features), n_features + (d if settings.linear else 0)
    factor = 8.0 * (r * n_features + r * r + 3 * r * rank + 3 * rank * n_features + 8 * rank * rank)
    rows = n * (4.0 * n_features + 16.0 * d + 32.0 * n_outputs)
    fit = n * 12.0 * n_coordinates
    return rows + max(factor, fit)


def _train_tree(trainer: _LeafTrainer, rng: np.random.Generator, number: int) -> tuple[NystroemTree, dict[str, Vector]]:
    """Cluster the rows and train a machine in each leaf; return the tree, and its part of `TrainedForest.leaves`."""
    trainer.progress.stage("clusters")
    X, settings = trainer.X, trainer.settings
    max_values = max_sample_values(settings.memory["clustered rows"], X.dtype.itemsize)
    share = SilentProgress(trainer.progress).part(_TREE_SHARE)
    tree, labels = grow(X, settings.n_clusters, rng, share.go_on, max_values)
    k = tree.n_leaves
    clusters = group_by_label(labels, k)
    trainer.progress.stage("leaves", k)
    rngs = rng.spawn(k)
    run, n_workers = partial(trainer.team.map, call), trainer.team.n_threads
    quick: list[_LeafMachine | None] = [None] * k
    if k > 1 and math.isfinite(trainer.progress.deadline):
        quick = trainer.team.map(trainer.train_quickly, zip(clusters, rngs, strict=True))
    parts, work = list(zip(clusters, rngs, quick, strict=True)), [len(rows) for rows in clusters]
    machines = share_time(trainer.train_leaf, parts, work, trainer.progress, lambda _: True, run, n_workers)
    leaves = {
        "tree": np.full(k, number),
        "n_rows": np.array([len(rows) for rows in clusters]),
        "n_landmarks": np.array([machine.features.landmarks.shape[1] for machine in machines]),
        "objective": np.array([machine.fit.objective for machine in machines]),
        "gap": np.array([machine.fit.gap for machine in machines]),
        "time": np.array([machine.time for machine in machines]),
        "converged": np.array([machine.fit.converged for machine in machines]),
    }
    return _assemble(tree, machines), leaves


def _assemble(tree: Hierarchy, machines: list[_LeafMachine]) -> NystroemTree:
    """Stack the leaves' machines into the arrays of one tree."""
    features, columns, pairs = stack_leaves([machine.features for machine in machines])
    dtype, (k, m, _), q = features.landmarks.dtype, features.landmarks.shape, len(machines[0].intercept)
    coef = np.zeros((k, q, features.n_kernel_values))
    products = np.zeros((k, q, m, m) if any(len(first) for first, _ in pairs) else (k, q, 0, 0), dtype)
    for c, (machine, own, (first, second)) in enumerate(zip(machines, columns, pairs, strict=True)):
        coef[c][:, own] = machine.coef[:, : len(own)]
        products[c][:, first, second] = machine.coef[:, len(own) :]
    slopes = np.array([machine.slopes for machine in machines], dtype)
    return NystroemTree(tree, features, coef, products, slopes, np.array([machine.intercept for machine in machines]))


class _LinearTerm(NamedTuple):
    """Coordinates of the linear term of a leaf: [scale (x - centre), 1] for each of its rows x."""

    coordinates: Matrix  # (n_leaf, d + 1)
    centre: Vector  # (d,)
    scale: float


class _LeafMachine(NamedTuple):
    """q decision functions coef c(x) + slopes x + intercept of a leaf, with its features c(x)."""

    features: LandmarkFeatures
    coef: Matrix  # (q, n_features)
    slopes: Matrix  # (q, d): weights of the linear term; (0, d) without one
    intercept: Vector  # (q,)
    fit: LinearFit
    time: float  # seconds from the start of the fit


_Leaf = tuple[RowIndices, np.random.Generator, _LeafMachine | None]  # the last one of a few rows


class _LeafTrainer:
    """The steps of Algorithm 2 inside a leaf."""

    def __init__(
        self,
        kernel: ArgumentKernel,
        X: Rows,
        problem: LeafProblem,
        settings: ForestSettings,
        progress: AnyProgress,
        team: ThreadTeam,
        features: LandmarkFeatures | None = None,
    ) -> None:
        self.kernel = kernel
        self.features = features
        self.X = X
        self.problem = problem
        self.settings = settings
        self.progress = progress
        self.may_go_on = SilentProgress(progress).go_on  # shows nothing, and calls no callback
        self.team = team
        self.max_kernel_rows = _max_kernel_rows(settings, X, problem.n_outputs)
        self.memory = settings.memory.among(LEAVES_AT_ONCE)  # of a leaf

    def train_leaf(self, leaf: _Leaf, before: _LeafMachine | None, share: AnyProgress) -> _LeafMachine:
        """Train a leaf; once the fit is stopped, return the machine of a few rows, or a constant.

        A leaf that has begun may take longer than its share of the time: what it has computed would be lost.
        """
        rows, rng, quick = leaf
        try:
            machine = self._run_algorithm(rows, rng)
            self.progress.advance()
        except Stopped:
            self.progress.go_on()  # records what has stopped it
            machine = quick or self._constant(rows)
        return machine

    def train_quickly(self, leaf: tuple[RowIndices, np.random.Generator]) -> _LeafMachine | None:
        """A machine of a quarter of a leaf's rows, at most 300, with some of these as landmarks; None if stopped.

        Its gap is its objective on all rows of the leaf.
        """
        (rows, rng), trainer = leaf, copy(self)
        rng = rng.spawn(1)[0]
        trainer.settings = self.settings._replace(landmark_weights=None, landmark_method="uniform")
        some = np.sort(rng.choice(rows, min(-(-len(rows) // 4), _MAX_QUICK_ROWS), replace=False))
        try:
            machine = trainer._run_algorithm(some, rng)
            work = len(rows) * self.X.shape[1] * (1 + self.settings.n_landmarks)
            objective = self._until_stopped(partial(self._objective, machine, rows), work)
        except Stopped:
            return None
        fit = machine.fit._replace(objective=objective, gap=objective, converged=False)
        return machine._replace(fit=fit)

    def _objective(self, machine: _LeafMachine, rows: RowIndices) -> float:
        """The objective of a machine on rows (n_leaf,)."""
        batch = self.X[rows]
        values = machine.features.evaluate(batch) @ machine.coef.T + machine.intercept
        if len(machine.slopes):
            values += batch @ machine.slopes.T
        return self.problem.objective(values.T, machine.fit.weights, rows)

    def _run_algorithm(self, rows: RowIndices, rng: np.random.Generator) -> _LeafMachine:
        """Algorithm 2 on the rows (n_leaf,).

        The exact machine and W = F F' are computed from the kernel matrix K of at most `max_kernel_rows` sampled rows.
        The local machine is linear in the coordinates [C F, linear term], (n_leaf, rank + d + 1). A problem that needs
        no kernel matrix has C itself in the place of C F.
        """
        raise_if_stopped(self.progress.go_on)
        batch = self.X[rows]
        # solve the exact machine, on K of sampled rows; before these, K has room for the landmarks
        sampled = self._sample(len(rows), rng)
        K = self._kernel_matrix(batch[sampled]) if self.problem.needs_kernel_matrix else None
        # where every row is a landmark, the local machine is the exact one
        all_are_landmarks = len(rows) == len(sampled) <= self.settings.n_landmarks
        own = None if K is None else K[self.max_landmarks :, self.max_landmarks :]
        exact = None if all_are_landmarks else self._exact_solution(own, rows[sampled])
        # landmarks weighted by it, pseudo-landmarks, their values C of all rows, and W = F F' closest to K
        learn = partial(self._learn_features, batch, sampled, K, exact, rng, all_are_landmarks=all_are_landmarks)
        features, C, F, linear = self._until_stopped(learn, self._learning_work(len(rows)))
        del K, own, batch, learn
        # train the local machine on C F, and keep its coefficients on C
        coordinates = self._coordinates(C, F, linear)
        del C
        fit = self.problem.fit(coordinates, rows, self.progress, self.memory)
        return self._on_features(features, F, linear, fit)

    def _sample(self, n: int, rng: np.random.Generator) -> RowIndices:
        """The sampled rows (r,), of which the kernel matrix is computed; all n if none is needed."""
        most = min(n, self.max_kernel_rows if self.problem.needs_kernel_matrix else n)
        return np.sort(rng.choice(n, most, replace=False))

    def _exact_solution(self, K: Array | None, rows: RowIndices) -> ExactSolution | None:
        """The exact machine of the sampled rows; None if landmarks are not weighted by it."""
        raise_if_stopped(self.progress.go_on)
        return None if self.settings.landmark_weights is None else self.problem.exact_solution(K, rows, self.progress)

    def _learn_features(
        self,
        batch: Rows,
        sampled: RowIndices,
        K: Array | None,
        exact: ExactSolution | None,
        rng: np.random.Generator,
        *,
        all_are_landmarks: bool,
    ) -> tuple[LandmarkFeatures, Array, Matrix | None, _LinearTerm | None]:
        """The features, C (n_leaf, n_features), the factor F (n_features, rank) of W = F F', and the linear term.

        F is None without the kernel matrix of the sampled rows, K as `_kernel_matrix` returns it. Nothing else that is
        given is changed, as this ends in another thread if the fit is stopped.
        """
        linear = None if all_are_landmarks else self._linear_term(batch)
        coordinates = np.empty((batch.shape[0], 0)) if linear is None else linear.coordinates
        features = self._choose_features(batch[sampled], coordinates[sampled], exact, rng)
        C = features.evaluate(batch)
        raise_if_stopped(self.progress.go_on)
        F = None if K is None else self._factor(features, C[sampled], K, is_damped=not all_are_landmarks)
        return features, C, F, linear

    def _factor(self, features: LandmarkFeatures, C: Array, K: Array, *, is_damped: bool) -> Matrix:
        """The factor of W, from the features C (r, n_features) and K of `_kernel_matrix`.

        A damped factor is fitted to the landmarks' kernel values, too: without them, the coordinates of a new row could
        be of any size near a landmark that is far from all r rows.
        """
        first, damping = self.max_landmarks, is_damped * self.settings.damping / len(C)
        if damping:
            points = features.landmarks[0]
            own, k = features.evaluate(points), len(points)
            first -= k
            K[first : first + k, first:] = np.hstack([own[:, :k], C[:, :k].T])
            K[first + k :, first : first + k] = C[:, :k]
            C = np.concatenate([own, C])
        return nystroem_factor(C, K[first:, first:], damping)

    def _coordinates(self, C: Array, F: Matrix | None, linear: _LinearTerm | None) -> Array:
        """[C F, linear term], (n_leaf, rank + d + 1), or [C, linear term] without a factor."""
        raise_if_stopped(self.progress.go_on)
        linear_coordinates = np.empty((len(C), 0)) if linear is None else linear.coordinates
        rank, dtype = (C.shape[1], C.dtype) if F is None else (F.shape[1], np.dtype(np.float64))
        coordinates = np.empty((len(C), rank + linear_coordinates.shape[1]), dtype)
        if F is None:
            coordinates[:, :rank] = C
        else:
            np.matmul(C, F, out=coordinates[:, :rank])
        coordinates[:, rank:] = linear_coordinates
        return coordinates

    def _on_features(
        self, features: LandmarkFeatures, F: Matrix | None, linear: _LinearTerm | None, fit: LinearFit
    ) -> _LeafMachine:
        """The local machine as coefficients of the features and of x: on C, they are F times those on C F."""
        slopes, intercept, rank = self._no_slopes(), fit.intercept, features.n_features if F is None else F.shape[1]
        if linear is not None:
            slopes = fit.weights[:, rank:-1] * linear.scale
            intercept = intercept + fit.weights[:, -1] - slopes @ linear.centre
        coef = fit.weights[:, :rank] if F is None else fit.weights[:, :rank] @ F.T
        return _LeafMachine(features, coef, slopes, intercept, fit, self.progress.elapsed)

    def _constant(self, rows: RowIndices) -> _LeafMachine:
        """The best constant machine, O(n_leaf), with one row as its only landmark."""
        point = self.X[rows[:1]]
        features = landmark_features(self.kernel, point.toarray() if sp.issparse(point) else point)
        fit = self.problem.constant(rows)
        slopes, time = self._no_slopes(), self.progress.elapsed
        return _LeafMachine(features, fit.weights, slopes, fit.intercept, fit, time)

    def _no_slopes(self) -> Matrix:
        """Slopes of zero (q, d), or (0, d) if the machines have no linear term."""
        return np.zeros((self.problem.n_outputs if self.settings.linear else 0, self.X.shape[1]))

    def _until_stopped(self, task: Callable[[], T], work: float) -> T:
        """The result of a pure function, or `Stopped` once the fit should end."""
        return run_interruptibly(task, self.may_go_on, work)

    def _learning_work(self, n: int) -> float:
        """Multiply-adds of `_learn_features` on n rows, about: two k-means, two decompositions of the features."""
        settings, d = self.settings, int(self.X.shape[1])
        n_coordinates = settings.n_landmarks + settings.n_pseudo_landmarks + d * settings.linear
        return 2.0 * kmeans_work(n * d, settings.n_landmarks) + 2.0 * least_squares_work(n, n_coordinates)

    def _linear_term(self, batch: Rows) -> _LinearTerm | None:
        """Coordinates of the linear term, (n, d + 1): rows centred and scaled to a mean square norm of 1, and a 1."""
        if not self.settings.linear:
            return None
        rows = (batch.toarray() if sp.issparse(batch) else batch).astype(np.float64)
        centre = rows.mean(axis=0)
        rows -= centre
        mean_square = float(np.einsum("ij,ij->", rows, rows)) / len(rows)
        scale = 1.0 / np.sqrt(mean_square) if mean_square > 0 else 1.0
        return _LinearTerm(np.hstack([rows * scale, np.ones((len(rows), 1))]), centre, scale)

    @property
    def max_landmarks(self) -> int:
        """Landmarks of a leaf, at most."""
        if self.features is not None:
            return int(self.features.landmarks.shape[1])
        return min(self.settings.n_landmarks, int(self.X.shape[0]))

    def _kernel_matrix(self, batch: Rows) -> Array:
        """K (n, n) of n rows, behind room for `max_landmarks` more; raises `Stopped` once the fit should end."""
        m, samples = self.max_landmarks, make_samples(batch, self.kernel.sample_form)
        K = np.empty((m + batch.shape[0],) * 2, batch.dtype)
        with ThreadTeam(self.settings.n_jobs) as team, self.progress.interrupting(team.native):
            fill_gram(self.kernel, samples, K[m:, m:], team)
        return K

    def _choose_features(
        self, batch: Rows, linear_coordinates: Matrix, exact: ExactSolution | None, rng: np.random.Generator
    ) -> LandmarkFeatures:
        """Features of a leaf: those given for all leaves, or with landmarks weighted by the exact machine, or not.

        With "auto", of the last two those with the smaller residual of the exact machine's decision values, by least
        squares on the features and the linear term's coordinates (n, d + 1).
        """
        raise_if_stopped(self.progress.go_on)
        if self.features is not None:
            return self.features
        if exact is None or not exact.landmark_weights.any():
            return self._make_features(batch, None, rng)
        weighted = self._make_features(batch, exact.landmark_weights, rng)
        if self.settings.landmark_weights != "auto":
            return weighted

        def residual(features: LandmarkFeatures) -> float:
            raise_if_stopped(self.progress.go_on)
            return _residual(np.hstack([features.evaluate(batch), linear_coordinates]), exact.values)

        return min((weighted, self._make_features(batch, None, rng)), key=residual)

    def _make_features(self, batch: Rows, weights: Vector | None, rng: np.random.Generator) -> LandmarkFeatures:
        """Landmarks and pseudo-landmarks from the rows of `batch` (n, d), with weights (n,) or None."""
        raise_if_stopped(self.progress.go_on)
        settings = self.settings
        max_values = max_sample_values(self.memory["clustered rows"], batch.dtype.itemsize)
        select = partial(select_landmarks, method=settings.landmark_method, max_values=max_values)
        landmarks = select(batch, settings.n_landmarks, rng, weights=weights)
        features = landmark_features(self.kernel, landmarks)
        return add_pseudo_landmarks(features, batch, settings.pseudo, settings.n_pseudo_landmarks, rng, weights=weights)


def _residual(coordinates: Matrix, values: Matrix) -> float:
    """Minimum over W of |values - W coordinates'|^2 + ridge |W|^2, coordinates (n, n_coordinates), values (q, n).

    By the normal equations, or their dual in n variables: O(n n_coordinates min(n, n_coordinates)).
    """
    n, n_coordinates = coordinates.shape
    A = coordinates.T @ coordinates if n_coordinates <= n else coordinates @ coordinates.T
    penalty = max(1e-10 * np.trace(A), np.finfo(np.float64).tiny)  # ridge penalty: they may be singular
    A[np.diag_indices(len(A))] += penalty
    factor = cho_factor(A)
    if n_coordinates > n:
        return float(penalty * np.vdot(values, cho_solve(factor, values.T).T))
    B = coordinates.T @ values.T
    return float(np.vdot(values, values) - np.vdot(B, cho_solve(factor, B)))
