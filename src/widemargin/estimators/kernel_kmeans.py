"""Two-step kernel k-means as a scikit-learn clusterer."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._native import Stopped
from .._progress import Progress
from .._threads import ThreadTeam, blas_limit
from .._types import AnyArray, Array, Given, KernelParameter, RandomState, Rows, Vector
from ..data.samples import Samples
from ..kernels.functions import FUNCTION_KERNELS, Kernel
from ..kernels.kernel_operator import KernelOperator
from ..kernels.tiles import fill_gram
from ..models.expansion import make_point_samples
from ..nystroem.landmarks import select_medoids
from ..partition.divide import ClusteringSettings, Division, divisions
from ..partition.routing import KernelRouter
from ._estimator import warn_of_stop
from ._fitted_state import FittedState
from ._kernel_machine import KernelMachine, TrainingRows
from ._predictor import lazy_on_dask
from ._scale import make_checked_samples
from ._training_warnings import PROBE_ROWS
from ._validation import check_integer, check_kernel, check_n_jobs, check_seed, check_weights, make_rng

FEW_CENTRES = 100  # of a fit that was stopped, at most


class TwoStepKernelKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, KernelMachine):
    """Kernel k-means for many rows: cluster a sample, then assign every row to its nearest centre in feature space.

    The clustering of DC-SVM: most of the sum of the kernel matrix is within its clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, at most 500. Balancing may change it (see Notes).
    kernel : {"rbf", "poly", "linear", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
        As in `DCSVMClassifier`.
    gamma : {"scale", "auto"} or float, default="scale"
    n_jobs : int or None, default=None
        Threads; the clusters do not depend on it.

    Other Parameters
    ----------------
    degree, coef0
        As in `DCSVMClassifier`.
    n_sample : int, default=1000
        Rows that are clustered, and whose means are the centres; at least 10 for each cluster, and at most 5,000.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
    inertia_ : float
        Weighted sum of the rows' squared distances to their nearest centre in feature space.
    n_clusters_ : int
        Number of clusters after balancing.
    sample_indices_ : ndarray of shape (m,), int
        The rows of the sample.
    sample_labels_ : ndarray of shape (m,), int
        Their clusters: a centre is the mean of a cluster's sample rows in feature space.
    n_features_in_ : int

    Warns
    -----
    ConvergenceWarning
        When Ctrl-C ended `fit` before the clusters were balanced, or before all rows had one: then the centres are
        single rows, at most 100, the medoids of 1,000 rows.

    Notes
    -----
    m^2 kernel entries for the sample of m rows, m for every row, and m again in each of at most four rounds of
    balancing: clusters of more than three times the mean size are split, those of less than an eighth of it
    join their neighbours, and all rows are assigned anew.

    References
    ----------
    C.-J. Hsieh, S. Si, I. S. Dhillon, "A Divide-and-Conquer Solver for Kernel Support Vector Machines", ICML 2014,
    section 3. R. Ghitta, R. Jin, T. C. Havens, A. K. Jain, "Approximate kernel k-means", KDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_circles
    >>> from widemargin import TwoStepKernelKMeans
    >>> X, y = make_circles(500, factor=0.1, noise=0.05, random_state=0)
    >>> model = TwoStepKernelKMeans(2, gamma=2.0, random_state=0).fit(X)
    >>> bool((model.predict(X) == model.labels_).all())
    True
    >>> model.transform(X).shape, bool(np.isclose(model.score(X), -model.inertia_))
    ((500, 2), True)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: KernelParameter = "rbf",
        gamma: float | str = "scale",
        n_jobs: int | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        n_sample: int = 1000,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.n_jobs = n_jobs
        self.degree = degree
        self.coef0 = coef0
        self.n_sample = n_sample
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        """Distances have the dtype of the rows."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: ArrayLike, y: Given = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or K(train, train), of shape (n_samples, n_samples), for a precomputed kernel.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Of each row in the centres and the sizes of the clusters, >= 0. Rows of weight 0 get a label, and have no
            part in the centres.
        """
        with self._fitting(X, None, sample_weight) as (rows, progress):
            kernel = self._resolve_kernel(rows.X, rows.weights)
            samples = make_checked_samples(kernel, rows.X)
            with blas_limit(1), ThreadTeam(self.n_jobs) as team:
                division = self._divide(kernel, samples, rows.weights, progress, team)
                router: Any = division.router
                distances = router.distances_to_own(samples, division.labels, team)
            self.labels_ = division.labels.astype(np.int32)
            self.inertia_ = float(rows.weights @ distances)
            self.n_clusters_ = router.n_clusters
            self.sample_indices_ = division.sample_indices
            self.sample_labels_ = router.labels
            self._sample_weights = rows.weights[division.sample_indices]
            self._squared_centre_norms = router.squared_centre_norms
            self._diagonal = _common_value(kernel.diagonal(samples)) if self._is_gram else None
            self._points = np.empty((0, 0), rows.X.dtype) if self._is_gram else rows.X[division.sample_indices]
            self._model = self._make_model()
        return self

    def _check_parameters(self) -> None:
        check_integer("n_clusters", self.n_clusters, 1)
        check_integer("n_sample", self.n_sample, 1)
        check_kernel(self, *FUNCTION_KERNELS, "precomputed")
        check_n_jobs(self.n_jobs)
        check_seed(self.random_state)

    def _take_rows(self, X: Rows, targets: AnyArray, weights: Vector) -> TrainingRows:
        """Keep all rows: a row of weight 0 gets a label, too."""
        if self.n_clusters > (n := np.count_nonzero(weights)):
            name = "n_samples" if n == len(weights) else "the number of positive weights"
            raise ValueError(f"n_clusters must be at most {name}={n}, got {self.n_clusters}")
        return TrainingRows(X, targets, weights, np.arange(len(weights)), np.empty(0))

    def _divide(
        self, kernel: Kernel, samples: Samples, weights: Vector, progress: Progress, team: ThreadTeam
    ) -> Division:
        """The balanced division; of a fit that is stopped, that of the last round, or one by medoids."""
        division, rng = None, make_rng(self.random_state)
        rows, clustering = (
            KernelOperator(kernel, samples, team),
            ClusteringSettings(self.n_clusters, n_sample=self.n_sample),
        )
        with suppress(Stopped), progress.interrupting(team.native):
            for latest in divisions(rows, clustering, rng, weights=weights, go_on=progress.go_on):
                division = latest
                if not progress.go_on():
                    break
        if division is None:
            division = _divide_by_medoids(kernel, samples, min(self.n_clusters, FEW_CENTRES), weights, rng, team)
            state = f"before all rows had a cluster: the centres are {division.router.n_clusters} single rows."
            warn_of_stop(self, progress.stopped_by, state)
        elif progress.stopped_by:
            warn_of_stop(self, progress.stopped_by, "before its clusters were balanced: they may differ much in size.")
        return division

    def _make_model(self) -> KernelRouter:
        kernel = self._make_kernel()
        points = make_point_samples(kernel, self.sample_indices_ if self._is_gram else self._points)
        labels, norms = self.sample_labels_, self._squared_centre_norms
        return KernelRouter(kernel, points, labels, norms, weights=self._sample_weights)

    def _check_state(self, fitted: FittedState) -> None:
        super()._check_state(fitted)
        m, d = len(fitted.array("sample_indices_", np.integer, ..., least=0)), self.n_features_in_
        fitted.rows("_points", np.floating, *((0, 0) if self._is_gram else (m, d)))
        k = 1 + int(fitted.array("sample_labels_", np.integer, m, least=0, below=m).max())
        if (stated := fitted.integer("n_clusters_", 1)) != k:
            raise ValueError(f"n_clusters_ must be {k}, one more than the largest of sample_labels_, got {stated}")
        n = len(fitted.array("labels_", np.integer, d if self._is_gram else None, least=0, below=k))
        fitted.array("sample_indices_", np.integer, m, least=0, below=n)
        if (fitted.array("_sample_weights", np.float64, m) <= 0).any():
            raise ValueError(f"_sample_weights must be positive, got {self._sample_weights.min()}")
        fitted.array("_squared_centre_norms", np.float64, k)
        if fitted.value("_diagonal") is not None:
            fitted.number("_diagonal")
        fitted.number("inertia_", least=0)

    def _validate_new(self, X: Given) -> Rows:
        """Check new rows, and also the fitted attributes, as a user may have set them."""
        check_is_fitted(self)
        self._check_state(FittedState(vars(self)))
        return self._validate(X, reset=False, dtype=self._points.dtype)

    @lazy_on_dask
    def predict(self, X: ArrayLike) -> NDArray[np.int32]:
        """The cluster of each row, that of the nearest centre in feature space.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or K(X, train), of shape (n_samples, n_train), for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,), int32
        """
        rows = self._validate_new(X)
        with blas_limit(1), ThreadTeam(self.n_jobs) as team:
            return np.asarray(self._model.route(rows, team), np.int32)

    @lazy_on_dask
    def transform(self, X: ArrayLike) -> Array:
        """The distance of each row to each centre in feature space.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or K(X, train), of shape (n_samples, n_train), for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Of the dtype of the rows that were fitted.

        Raises
        ------
        ValueError
            For a precomputed kernel whose k(x, x) is not the same for all training rows: K(X, train) lacks that of
            the rows of X. Where it is the same (RBF, Laplacian, cosine), theirs is taken to be that too.
        """
        return np.sqrt(self._squared_distances(X)).astype(self._points.dtype)

    def score(self, X: ArrayLike, y: Given = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the weighted sum of the rows' squared distances to their nearest centre; X is as of `transform`."""
        nearest = self._squared_distances(X).min(axis=1)
        return -float(check_weights(sample_weight, nearest) @ nearest)

    def _squared_distances(self, X: Given) -> Vector:
        rows = self._validate_new(X)
        if self._is_gram and self._diagonal is None:
            raise ValueError(
                "kernel must not be 'precomputed' for distances where k(x, x) differs between the training rows: "
                "K(X, train) lacks that of X's rows"
            )
        with blas_limit(1), ThreadTeam(self.n_jobs) as team:
            return np.asarray(self._model.squared_distances_of(rows, self._diagonal, team))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters_)


def _divide_by_medoids(
    kernel: Kernel, samples: Samples, k: int, weights: Vector, rng: np.random.Generator, team: ThreadTeam
) -> Division:
    """Clusters around the k medoids of some rows, each its cluster's only sample point: k kernel values a row."""
    pool = np.flatnonzero(weights)
    some = np.sort(rng.choice(pool, min(len(pool), PROBE_ROWS), replace=False))
    K = np.empty((len(some), len(some)), samples.dtype)
    fill_gram(kernel, samples.take(some), K, team)
    medoids = some[select_medoids(K, k, rng, weights=weights[some], n_sample=len(some))]
    router = KernelRouter(kernel, samples.take(medoids), np.arange(len(medoids)), weights=weights[medoids])
    return Division(router, router.assign(samples, team), medoids)


def _common_value(values: Array) -> float | None:
    """The value of all entries of `values` (n,), up to float32 rounding; None if they differ."""
    is_common = np.ptp(values) <= 4 * np.finfo(np.float32).eps * np.abs(values).max()
    return float(values[0]) if is_common else None
