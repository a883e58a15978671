"""DC-Pred++: kernel machines that predict at the cost of a few inner products.

Source: Hsieh, Si, Dhillon, Fast Prediction for Large-Scale Kernel Machines, NIPS 2014, Algorithm 2:

    grow a tree of clusters by k-means in input space
    for every leaf:
        solve the local machine exactly
        landmarks: centroids of k-means weighted by the squared dual variables
        pseudo-landmarks: points whose kernel values are estimated from those of the landmarks
        W: the matrix for which C W C' is closest to the leaf's kernel matrix
        train the local machine on C W C', keep its coefficients on the columns of C

What a machine is to learn is its `Task`'s business: labels (hinge loss), numbers (kernel ridge regression), or the
decision values of another machine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, svd

from .._parallel import ThreadTeam, blas_limit
from .._progress import Progress
from ..kernels.blocks import fill_square
from ..kernels.functions import Linear, Transform
from ..kernels.samples import DenseSamples, make_samples
from ..landmarks.features import LandmarkFeatures, join_features
from ..landmarks.nystrom import nystrom_factor
from ..landmarks.pseudo import plain, polynomial, triangle
from ..landmarks.selection import select_landmarks
from ..models.nystrom import LocalNystrom
from ..partition.hierarchy import grow
from ..solvers.certificate import DualProblem, svm_problem
from ..solvers.dual import DualSolver, share_memory
from ..solvers.result import DualResult
from ..solvers.square import solve_square

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]
Array = NDArray[np.floating]

_MOST_EXACT = 3000  # rows of a leaf whose kernel matrix is computed
_LARGEST_SQUARE = 6000  # rows of a leaf whose approximate kernel matrix is
_START_TOL = 0.1  # of the exact local machine, which only says where its support vectors are


@dataclass(frozen=True)
class Settings:
    """How to divide and what to keep.

    Attributes
    ----------
    n_clusters, n_landmarks, n_pseudo_landmarks : int
        Leaves; and in each of them.
    pseudo : {"triangle", "polynomial"} or None
    by_alpha : bool
        Whether landmarks are centroids weighted by the squared dual variables, or plain ones.
    memory_budget : int
        Bytes.
    n_jobs : int or None
    """

    n_clusters: int
    n_landmarks: int
    n_pseudo_landmarks: int
    pseudo: str | None = "triangle"
    by_alpha: bool = True
    memory_budget: int = 2**30
    n_jobs: int | None = None


class Fit(NamedTuple):
    """q linear machines on a leaf's r coordinates: weights (q, r), intercepts (q,), and where they stand."""

    weights: Vector
    intercept: Vector
    objective: float
    gap: float
    converged: bool


class Task(Protocol):
    """What the machines of a leaf are to learn: `rows` are the leaf's, or some of them."""

    n_outputs: int

    def importance(self, K: Array, rows: Rows, progress: Progress) -> Vector | None:
        """How much an error in each column of K matters: squared dual variables, of shape (n,)."""

    def fit(self, coordinates: Vector, rows: Rows, progress: Progress, memory_budget: int) -> Fit:
        """Train on coordinates of shape (n, r)."""


class Machine(NamedTuple):
    """What training gives.

    Attributes
    ----------
    model : LocalNystrom
    leaves : dict of ndarray of shape (k,)
        Rows, landmarks, objective, gap and seconds of each leaf.
    converged : bool
    """

    model: LocalNystrom
    leaves: dict[str, Vector]
    converged: bool


def train(
    kernel: Transform, X: Any, task: Task, settings: Settings, progress: Progress, rng: np.random.Generator
) -> Machine:
    """Train a tree of small machines by Algorithm 2.

    Parameters
    ----------
    kernel : Transform
    X : ndarray or CSR array of shape (n, d)
    task : Task
        Knows the targets of the n rows.
    settings : Settings
    progress : Progress
    rng : numpy.random.Generator

    Notes
    -----
    O(n_leaf^2) kernel entries a leaf, of at most 3,000 rows each. Leaves are independent: one after the other on every
    thread. Out of time, a leaf that is left gets the machine that its first step gave.
    """
    with blas_limit(1), ThreadTeam(settings.n_jobs) as team:
        progress.stage("clusters")
        tree, labels = grow(X, settings.n_clusters, rng)
        order = np.argsort(labels, kind="stable")
        clusters = np.split(order, np.cumsum(np.bincount(labels, minlength=tree.n_leaves))[:-1])
        progress.stage("leaves", tree.n_leaves)
        train_leaf = _Leaf(kernel, X, task, settings, progress, team)
        seeds = rng.spawn(tree.n_leaves)
        largest_first = sorted(range(tree.n_leaves), key=lambda c: -len(clusters[c]))
        solved = team.map(lambda c: train_leaf(clusters[c], seeds[c]), largest_first)
    parts = [solved[largest_first.index(c)] for c in range(tree.n_leaves)]
    features, places = join_features([part.features for part in parts])
    coef = np.zeros((tree.n_leaves, task.n_outputs, features.n_features))
    for c, (part, place) in enumerate(zip(parts, places, strict=True)):
        coef[c][:, place] = part.coef
    intercept = np.array([part.fit.intercept for part in parts])
    leaves = {
        "n_rows": np.array([len(rows) for rows in clusters]),
        "n_landmarks": np.array([part.features.landmarks.shape[1] for part in parts]),
        "objective": np.array([part.fit.objective for part in parts]),
        "gap": np.array([part.fit.gap for part in parts]),
        "seconds": np.array([part.seconds for part in parts]),
    }
    model = LocalNystrom(tree, features, coef, intercept)
    return Machine(model, leaves, all(part.fit.converged for part in parts))


class _Part(NamedTuple):
    features: LandmarkFeatures
    coef: Vector
    fit: Fit
    seconds: float


class _Leaf:
    """The steps of Algorithm 2 inside a leaf."""

    def __init__(
        self, kernel: Transform, X: Any, task: Task, settings: Settings, progress: Progress, team: ThreadTeam
    ) -> None:
        self.kernel = kernel
        self.X = X
        self.task = task
        self.settings = settings
        self.progress = progress
        self.team = team

    def __call__(self, rows: Rows, rng: np.random.Generator) -> _Part:
        begin = time.perf_counter()
        self.progress.go_on()
        batch = self.X[rows]
        exact = np.sort(rng.choice(len(rows), _MOST_EXACT, replace=False)) if len(rows) > _MOST_EXACT else np.arange(len(rows))
        K = self._kernel_matrix(batch[exact])
        alpha = self.task.importance(K, rows[exact], self.progress) if self.settings.by_alpha else None
        features = self._features(batch[exact], alpha, rng)
        C = features.values(batch)
        F = nystrom_factor(C[exact], K)
        fit = self.task.fit(C @ F, rows, self.progress, self.settings.memory_budget // self.team.n_threads)
        self.progress.advance()
        return _Part(features, fit.weights @ F.T, fit, time.perf_counter() - begin)

    def _kernel_matrix(self, batch: Any) -> Array:
        K = np.empty((batch.shape[0],) * 2, batch.dtype)
        fill_square(self.kernel, make_samples(batch, self.kernel.wants), K, self.team)
        return K

    def _features(self, batch: Any, alpha: Vector | None, rng: np.random.Generator) -> LandmarkFeatures:
        settings = self.settings
        if alpha is not None and not alpha.any():
            alpha = None
        features = plain(self.kernel, select_landmarks(batch, settings.n_landmarks, rng, weights=alpha))
        if settings.pseudo == "polynomial":
            return polynomial(features, settings.n_pseudo_landmarks, rng)
        if settings.pseudo is None or features.landmarks.shape[1] < settings.n_landmarks:
            return features  # every row is a landmark: there is nothing left to estimate
        points = select_landmarks(batch, settings.n_pseudo_landmarks, rng, weights=alpha, method="uniform")
        return triangle(features, points, batch)


class HingeTask:
    """Labels: one support vector machine for each output, without intercept.

    Parameters
    ----------
    signs : ndarray of shape (q, n)
        Labels +-1.
    upper : ndarray of shape (q, n)
        C times weight.
    tol : float
    team : ThreadTeam
    """

    def __init__(self, signs: Vector, upper: Vector, tol: float) -> None:
        self.signs = signs
        self.upper = upper
        self.tol = tol
        self.n_outputs = len(signs)

    def importance(self, K: Array, rows: Rows, progress: Progress) -> Vector | None:
        """alpha^2, summed over the outputs."""
        total = np.zeros(len(rows))
        tol = max(self.tol, _START_TOL)
        for problem, is_single in self._problems(rows):
            if not is_single:
                total += np.square(_solve(K, problem, tol, progress).beta)
        return total

    def fit(self, coordinates: Vector, rows: Rows, progress: Progress, memory_budget: int) -> Fit:
        """The hinge loss machine in the coordinates' space; where all labels are alike, that label."""
        weights, intercept = np.zeros((self.n_outputs, coordinates.shape[1])), np.zeros(self.n_outputs)
        objective, gap, converged = 0.0, 0.0, True
        K = coordinates @ coordinates.T if len(rows) <= _LARGEST_SQUARE else None
        for q, (problem, is_single) in enumerate(self._problems(rows)):
            if is_single:
                intercept[q] = problem.target[0]
                continue
            if K is None:
                result = _solve_large(coordinates, problem, self.tol, progress, memory_budget)
            else:
                result = _solve(K, problem, self.tol, progress)
            weights[q] = result.beta @ coordinates
            objective += result.objective
            gap += result.gap
            converged &= result.converged
        return Fit(weights, intercept, objective, gap, converged)

    def _problems(self, rows: Rows) -> list[tuple[DualProblem, bool]]:
        return [
            (svm_problem(sign, upper), bool(np.all(sign == sign[0])))
            for sign, upper in zip(self.signs[:, rows], self.upper[:, rows], strict=True)
        ]


def _solve(K: Array, problem: DualProblem, tol: float, progress: Progress) -> DualResult:
    start = np.zeros(len(K))
    return solve_square(K, problem, start, ThreadTeam(1), equality=False, tol=tol, progress=progress)


def _solve_large(
    coordinates: Vector, problem: DualProblem, tol: float, progress: Progress, memory_budget: int
) -> DualResult:
    samples = DenseSamples(coordinates.astype(np.float32))
    rows, square_bytes = share_memory(Linear(), samples, memory_budget, ThreadTeam(1), 0)
    solver = DualSolver(rows, problem, equality=False, tol=tol, square_bytes=square_bytes, progress=progress)
    return solver.solve(np.zeros(len(coordinates)))


class RidgeTask:
    """Numbers: kernel ridge regression, sum_i s_i (y_i - f(x_i))^2 + penalty |f|^2.

    Parameters
    ----------
    targets : ndarray of shape (q, n)
    penalty : float
        The paper's lambda.
    weights : ndarray of shape (n,)
    """

    def __init__(self, targets: Vector, penalty: float, weights: Vector) -> None:
        self.targets = targets
        self.penalty = penalty
        self.weights = weights
        self.n_outputs = len(targets)

    def importance(self, K: Array, rows: Rows, progress: Progress) -> Vector | None:
        """alpha^2 for (K + penalty S^-1) alpha = y."""
        A = K.astype(np.float64)
        A[np.diag_indices(len(A))] += self.penalty / self.weights[rows]
        return np.asarray(np.square(cho_solve(cho_factor(A), self.targets[:, rows].T)).sum(axis=1))

    def fit(self, coordinates: Vector, rows: Rows, progress: Progress, memory_budget: int) -> Fit:
        """The normal equations in the coordinates' space."""
        weighted = coordinates * self.weights[rows, None]
        A = weighted.T @ coordinates
        A[np.diag_indices(len(A))] += self.penalty
        targets = self.targets[:, rows]
        weights = cho_solve(cho_factor(A), weighted.T @ targets.T).T
        residuals = targets - weights @ coordinates.T
        objective = np.sum(self.weights[rows] * residuals**2) + self.penalty * np.sum(weights**2)
        return Fit(weights, np.zeros(self.n_outputs), float(objective), 0.0, True)


class ImitationTask:
    """The decision values of another machine, by least squares.

    Parameters
    ----------
    values : ndarray of shape (q, n)
        The other machine's decision values.
    alpha : ndarray of shape (n,)
        Squared coefficients of its own points among the rows, summed over the q functions; 0 for other rows.
    """

    def __init__(self, values: Vector, alpha: Vector) -> None:
        self.values = values
        self.alpha = alpha
        self.n_outputs = len(values)

    def importance(self, K: Array, rows: Rows, progress: Progress) -> Vector | None:
        """The other machine's own."""
        return self.alpha[rows]

    def fit(self, coordinates: Vector, rows: Rows, progress: Progress, memory_budget: int) -> Fit:
        """Ridge regression with an intercept; the penalty is that of least generalised cross-validation error."""
        values = self.values[:, rows]
        centre, means = coordinates.mean(axis=0), values.mean(axis=1)
        U, s, Vt = svd(coordinates - centre, full_matrices=False)
        targets = values - means[:, None]
        projected = targets @ U
        penalties = np.array([0.0, *(s[0] ** 2 * 10.0 ** np.arange(-12, 0))]) if len(s) and s[0] > 0 else np.zeros(1)
        penalty = min(penalties, key=lambda penalty: _gcv(targets, projected, s, penalty))
        shrunk = projected * _share(s, penalty)
        weights = (shrunk / np.where(s > 0, s, 1.0)) @ Vt
        error = float(np.square(targets - shrunk @ U.T).sum())
        return Fit(weights, means - weights @ centre, error, 0.0, True)


def _share(s: Vector, penalty: float) -> Vector:
    """How much of each singular direction ridge regression keeps."""
    return np.asarray(np.divide(s**2, s**2 + penalty, out=np.zeros_like(s), where=s > 0))


def _gcv(targets: Vector, projected: Vector, s: Vector, penalty: float) -> float:
    """Generalised cross-validation (Golub, Heath, Wahba 1979): residuals over the degrees of freedom that are left."""
    n, share = targets.shape[1], _share(s, penalty)
    left = n - 1 - share.sum()
    residual = np.square(targets).sum() - (np.square(projected) * (1 - (1 - share) ** 2)).sum()
    return float(residual / left**2) if left > 0.5 else np.inf
