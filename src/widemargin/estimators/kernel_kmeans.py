"""Two-step kernel k-means as a scikit-learn clusterer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._progress import Progress
from .._threads import ThreadTeam, blas_limit
from ..data.samples import make_samples
from ..kernels.precision import ensure_precision
from ..partition.divide import divide
from ..partition.routing import KernelRouter
from ._estimator import warn_of_stop
from ._fitted_state import FittedState
from ._kernel import make_checked_samples
from ._kernel_machine import KernelMachine, TrainingRows
from ._lazy import lazy_on_dask
from ._validation import check_integer, check_kernel, check_n_jobs, check_seed


class TwoStepKernelKMeans(ClusterMixin, KernelMachine):
    """Kernel k-means for many rows: cluster a sample, then assign every row to its nearest centre in feature space.

    The clustering of DC-SVM: most of the sum of the kernel matrix is within its clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. Balancing may change it (see Notes).
    kernel : {"rbf", "poly", "linear", "sigmoid", "laplacian"} or callable, default="rbf"
    gamma : {"scale", "auto"} or float, default="scale"
    degree : int, default=3
    coef0 : float, default=0.0
    n_sample : int, default=1000
        Rows that are clustered, and whose means are the centres; at least 10 for each cluster.
    n_jobs : int or None, default=None
        Threads; the clusters do not depend on it.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
    n_clusters_ : int
        Number of clusters after balancing.
    sample_indices_ : ndarray of shape (m,), int
        The rows of the sample.
    sample_labels_ : ndarray of shape (m,), int
        Their clusters: a centre is the mean of a cluster's sample rows in feature space.
    shape_fit_ : tuple of int
        Shape of the training data.
    n_features_in_ : int

    Warns
    -----
    ConvergenceWarning
        When Ctrl-C ended `fit` before the clusters were balanced.

    Notes
    -----
    m^2 kernel entries for the sample of m rows and m for every row, and as many again in each of at most four rounds of
    balancing: clusters of more than three times the mean size are split, those of less than an eighth of it join their
    neighbours, and all rows are assigned anew.

    References
    ----------
    C.-J. Hsieh, S. Si, I. S. Dhillon, "A Divide-and-Conquer Solver for Kernel Support Vector Machines", ICML 2014,
    section 3. R. Ghitta, R. Jin, T. C. Havens, A. K. Jain, "Approximate kernel k-means", KDD 2011.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from widemargin import TwoStepKernelKMeans
    >>> X, y = make_circles(500, factor=0.1, noise=0.05, random_state=0)
    >>> model = TwoStepKernelKMeans(2, gamma=2.0, random_state=0).fit(X)
    >>> bool((model.predict(X) == model.labels_).all())
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        n_sample: int = 1000,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_sample = n_sample
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:  # type: ignore[override]  # no weights
        """Cluster the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        self._run(self._fit, X)
        return self

    def _check_parameters(self) -> None:
        check_integer("n_clusters", self.n_clusters, 1)
        check_integer("n_sample", self.n_sample, 1)
        check_kernel(self)
        check_n_jobs(self.n_jobs)
        check_seed(self.random_state)

    def _fit(self, rows: TrainingRows, progress: Progress) -> None:
        X = rows.X
        if self.n_clusters > X.shape[0]:
            raise ValueError(f"n_clusters must be at most n_samples={X.shape[0]}, got {self.n_clusters}")
        kernel = self._resolve_kernel(X, rows.weights)
        samples = make_checked_samples(kernel, X)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        with blas_limit(1), ThreadTeam(self.n_jobs) as team:
            division = divide(
                kernel,
                samples,
                self.n_clusters,
                n_sample=self.n_sample,
                rng=rng,
                team=team,
                go_on=progress.go_on,
            )
        if progress.stopped_by:
            warn_of_stop(self, progress.stopped_by, "before its clusters were balanced: they may differ much in size.")
        self.labels_ = division.labels.astype(np.int32)
        self.n_clusters_ = division.router.n_clusters
        self.sample_indices_ = division.sample_indices
        self.sample_labels_ = division.router.labels
        self._points = X[division.sample_indices]
        self._model = self._make_model()

    def _make_model(self) -> KernelRouter:
        kernel = self._make_kernel()
        points = ensure_precision(kernel, make_samples(self._points, kernel.sample_form))
        return KernelRouter(kernel, points, self.sample_labels_)

    def _check_state(self, fitted: FittedState) -> None:
        super()._check_state(fitted)
        points = fitted.rows("_points", np.floating, ..., self.n_features_in_)
        m = points.shape[0]
        k = 1 + int(fitted.array("sample_labels_", np.integer, m, least=0, below=m).max())
        if (stated := fitted.integer("n_clusters_", 1)) != k:
            raise ValueError(f"n_clusters_ must be {k}, one more than the largest of sample_labels_, got {stated}")
        n = len(fitted.array("labels_", np.integer, None, least=0, below=k))
        fitted.array("sample_indices_", np.integer, m, least=0, below=n)

    @lazy_on_dask
    def predict(self, X: ArrayLike) -> NDArray[np.int32]:
        """The cluster of each row, that of the nearest centre in feature space.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), int32
        """
        check_is_fitted(self)
        self._check_state(FittedState(vars(self)))
        rows = self._validate(X, reset=False, dtype=self._points.dtype)
        with blas_limit(1), ThreadTeam(self.n_jobs) as team:
            labels = self._model.route(rows, team)
        return np.asarray(labels, np.int32)
