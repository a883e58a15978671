"""The Nystroem method with a choice of landmarks, and pseudo-landmarks, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._memory import memory_plan
from .._native import Stopped
from .._threads import ThreadTeam, blas_limit, row_blocks, run_interruptibly
from .._types import Array, Given, RandomState, RowIndices, Rows
from ..data.origin import dense_if_far
from ..data.samples import make_samples
from ..kernels.entry_precision import ensure_precision
from ..kernels.functions import FUNCTION_KERNELS, Kernel
from ..kernels.tiles import fill_gram
from ..models.nystroem_coordinates import NystroemCoordinates
from ..nystroem.features import LandmarkFeatures, nystroem_factor
from ..nystroem.landmarks import distinct_rows, select_landmarks, select_medoids
from ..nystroem.pseudo_landmarks import add_pseudo_landmarks, landmark_features
from ..partition.kmeans import max_sample_values
from ._estimator import warn_of_stop, warn_user
from ._fitted_state import FittedState
from ._kernel_machine import KernelMachine, TrainingRows
from ._predictor import lazy_on_dask
from ._scale import check_scale
from ._validation import (
    check_choice,
    check_integer,
    check_kernel,
    check_landmarks,
    check_n_jobs,
    check_pseudo,
    check_seed,
    make_rng,
)
from .kernel_kmeans import FEW_CENTRES

_GoOn = Callable[[], bool]

_METHODS = ("kmeans", "uniform")
_LANDMARK_COPIES, _DENSE_ROWS = 3, 6  # of the landmarks at one time; dense rows of d beside them, at least
_ERROR_ROWS = 2000  # at least, whose error is measured
_BYTES_OF_FEATURE, _BYTES_OF_PAIR = 24.0, 8.0  # three copies of C, and one of the kernel matrix, in float64


class LandmarkNystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelMachine):
    r"""Coordinates whose inner products approximate a kernel: a better `Nystroem`.

    The kernel matrix is approximated through a few landmark points, as by `sklearn.kernel_approximation.Nystroem`, with
    three differences: landmarks are centroids of k-means, weighted where some rows matter more, or points of your own,
    instead of random rows; pseudo-landmarks, whose kernel values are estimated from those of the landmarks, add to the
    approximation at next to no cost; and the matrix between them is the best one for many rows, not for the landmarks
    alone. It is algorithm 1 of the paper that `DCPredClassifier` comes from. Put a linear machine behind it,
    `OCASClassifier` say, where many rows are to be learnt; where predictions are to be fast, take `DCPredClassifier`.

    Parameters
    ----------
    n_landmarks : int, default=100
        Rows that a row is compared with, >= 1. Of fewer distinct rows all are landmarks: the approximation is exact on
        them, and a warning says so. Unused where `landmarks` is an array.
    kernel : {"rbf", "poly", "linear", "sigmoid", "laplacian", "precomputed"} or callable, default="rbf"
        As in `DCSVMClassifier`. For "precomputed", `fit` takes K(train, train) and `transform` takes K(new, train).
    gamma : {"scale", "auto"} or float, default="scale"
    landmarks : {"kmeans", "uniform"} or array-like of shape (m, n_features), default="kmeans"
        Centroids; random rows; or these points. For a precomputed kernel "kmeans" are the rows nearest to the centres
        of kernel k-means on `n_sample` rows, and an array is an error.
    n_pseudo_landmarks : int, default=0
        Further features, >= 0; by the polynomial rule at most :math:`m (m + 1) / 2` of m landmarks.
    n_jobs : int or None, default=None
        Threads; the coordinates do not depend on it.

    Other Parameters
    ----------------
    degree, coef0
        As in `DCSVMClassifier`.
    pseudo : {"triangle", "polynomial"} or None, default="polynomial"
        How pseudo-landmarks are estimated: the distance to a random row by the triangle inequality, for the kernels rbf
        and laplacian; or a product of the kernel values of two landmarks, for any kernel. None is without them.
    n_sample : int, default=2000
        Rows on which the matrix between the features is estimated, the landmarks among them, >= 1: at most as many as
        `memory_budget` has room for, at least as many as there are features.
    memory_budget : int or str or None, default=None
        Bytes to work in beside data and result, such as "500MB"; None is `get_config`'s. A ValueError names the least
        that can be kept.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_landmarks, n_features)
        Fewer than asked for where rows are equal. Of shape (n_landmarks, 0) for a precomputed kernel.
    landmark_indices_ : ndarray of shape (n_landmarks,), int
        Which rows the landmarks are, for a precomputed kernel; else empty, as landmarks may lie between rows.
    factor_ : ndarray of shape (n_landmarks + n_pseudo_landmarks, rank)
        What a row's features are multiplied with: ``W = factor_ @ factor_.T``.
    trace_error_ : float
        ``tr(K - C W C') / tr(K)`` of the rows of X: 0 if the approximation is exact there. It is measured on all of up
        to 4,000 rows; of more rows it is estimated, from 2,000 random ones on which W is not. For the sigmoid kernel,
        and others that are not positive semidefinite, it may be negative.
    shape_fit_ : tuple of int
        Shape of the training data.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has them.

    Warns
    -----
    ConvergenceWarning
        When Ctrl-C ended `fit`: the landmarks are random rows, at most 100, W is estimated on these, and there are no
        pseudo-landmarks. A k-means or a decomposition under way goes on to its end, in another thread.

    Notes
    -----
    With the features :math:`c(x) = [k(x, u_1), \dots, k(x, u_m), f_1(x), \dots, f_p(x)]` of n_sample rows, of which the
    first are the landmarks, as the rows of C, and K the kernel matrix of these rows, :math:`W = C^+ K (C^+)^\top`
    minimises the Frobenius norm of :math:`K - C W C^\top` (equation 5). The pseudo-landmark v has

    .. math:: f(x) = \kappa(\max_j \big| \|x - u_j\| - \|v - u_j\| \big|)
        \quad\text{or}\quad \kappa(\min_j (\|x - u_j\| + \|v - u_j\|))

    (equation 6), whichever is closer to the kernel on these rows; or :math:`f(x) = k(x, u_i) k(x, u_j)` (equation 7).
    The coordinates of x are :math:`c(x) F` with :math:`W = F F^\top`.

    `fit` costs k-means with 20 iterations of :math:`n m d` multiply-adds, on at most 20,000 rows, and, of r =
    `n_sample` rows, :math:`r^2` kernel entries and :math:`r^2 (m + p)` multiply-adds. `transform` costs m d + (m + p)
    rank multiply-adds a row.

    Differences from the paper: (1) directions in which W is negative, or is nothing but rounding errors, are left out,
    so that coordinates exist for any kernel. (2) All pseudo-landmarks have the same bound, lower or upper. (3) Products
    of two landmarks' values are features themselves, not regressors for those of a pseudo-landmark: with all products
    that is at least as good (lemma 1). (4) W is estimated on the landmarks, too: else the features of a new row near a
    landmark that is far from all n_sample rows are of any size.

    References
    ----------
    C.-J. Hsieh, S. Si, I. S. Dhillon, "Fast Prediction for Large-Scale Kernel Machines", NIPS 2014. K. Zhang, I. W.
    Tsang, J. T. Kwok, "Improved Nystroem Low-Rank Approximation and Error Analysis", ICML 2008,
    doi:10.1145/1390156.1390311.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin import LandmarkNystroem, OCASClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(LandmarkNystroem(100, random_state=0), OCASClassifier(C=10)).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    """

    _memory_kinds = ("landmarks",)

    def __init__(
        self,
        n_landmarks: int = 100,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        landmarks: str | ArrayLike = "kmeans",
        n_pseudo_landmarks: int = 0,
        n_jobs: int | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        pseudo: str | None = "polynomial",
        n_sample: int = 2000,
        memory_budget: int | str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.kernel = kernel
        self.gamma = gamma
        self.landmarks = landmarks
        self.n_pseudo_landmarks = n_pseudo_landmarks
        self.n_jobs = n_jobs
        self.degree = degree
        self.coef0 = coef0
        self.pseudo = pseudo
        self.n_sample = n_sample
        self.memory_budget = memory_budget
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        """Sparse input; float32 gives float32."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: ArrayLike, y: Given = None, sample_weight: ArrayLike | None = None) -> Self:
        """Choose landmarks, and the matrix between them.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            How much the error at each row matters, >= 0: the weights of k-means, or of the draws. The paper's are the
            squared dual variables of the machine that is to be approximated.
        """
        with self._fitting(X, None, sample_weight) as (rows, progress):
            kernel: Any = self._resolve_kernel(rows.X, rows.weights)
            check_scale(kernel, rows.X)
            rows = rows._replace(X=dense_if_far(rows.X))
            own = None if isinstance(self.landmarks, str) else check_landmarks(self.landmarks, rows.X)
            m = self.n_landmarks if own is None else len(own)
            self._check_memory(rows.X, m)
            rng = make_rng(self.random_state)
            try:
                features, factor, used = self._learn(kernel, rows, m, own, rng, progress.go_on)
            except Stopped:
                (features, factor), used = self._learn_from_few_rows(kernel, rows, rng), np.empty(0, np.intp)
                m = len(features.landmarks[0])
                state = f"before W was known: {m} random rows are landmarks, and W is theirs."
                warn_of_stop(self, progress.stopped_by, state)
            self._set_attributes(features, factor)
            self.trace_error_ = self._trace_error(kernel, rows, used, rng)
        return self

    def _check_parameters(self) -> None:
        check_kernel(self, *FUNCTION_KERNELS, "precomputed")
        check_pseudo(self)
        check_integer("n_landmarks", self.n_landmarks, 1)
        check_integer("n_pseudo_landmarks", self.n_pseudo_landmarks, 0)
        check_integer("n_sample", self.n_sample, 1)
        if isinstance(self.landmarks, str) or self.kernel == "precomputed":
            check_choice("landmarks", self.landmarks, _METHODS)
        check_n_jobs(self.n_jobs)
        check_seed(self.random_state)
        memory_plan(self)

    def _check_memory(self, X: Rows, m: int) -> None:
        n_features = m + self.n_pseudo_landmarks
        size = min(X.shape[0] + m * (X.shape[0] > m), n_features)
        needed = size * (_BYTES_OF_FEATURE * n_features + (X.dtype.itemsize + _BYTES_OF_PAIR) * size)
        what = f"{n_features} features, whose W is estimated on as many rows"
        if not self._is_gram:
            n_dense = _LANDMARK_COPIES * min(m, X.shape[0]) + _DENSE_ROWS
            needed += n_dense * X.shape[1] * X.dtype.itemsize
            what += f", and landmarks of {X.shape[1]} columns"
        memory_plan(self).require(needed, what)

    def _learn(
        self, kernel: Any, rows: TrainingRows, m: int, own: Array | None, rng: np.random.Generator, go_on: _GoOn
    ) -> tuple[LandmarkFeatures, Array, RowIndices]:
        """The features of m landmarks, the factor of W, and the rows beside the landmarks on which it is estimated.

        Raises `Stopped` once `go_on` returns False.
        """
        X, points, weights = rows.X, own, rows.weights
        if points is None:
            X, points = self._select(rows, m, str(self.landmarks), rng, go_on)
        if own is None and not self._is_gram and min(X.shape[0], len(points) + 1) <= m:
            distinct = distinct_rows(X, m)
            if len(distinct) <= m:  # every one is a landmark
                X = points = distinct
                weights = np.ones(len(points))
            else:  # the rows that were clustered were a sample, which has fewer
                points = select_landmarks(distinct, m, rng)
        if len(points) < m:
            message = f"n_landmarks={m}, but there are {len(points)} distinct rows: these are the landmarks."
            warn_user(message, UserWarning)
        elif len(points) > X.shape[0]:
            warn_user(f"landmarks has {m} rows, but X has {X.shape[0]}: W is estimated on these.", UserWarning)
        chosen = np.arange(len(points)) if X is points else self._sample(X, len(points), rng)
        features = landmark_features(kernel, points)
        features = add_pseudo_landmarks(
            features, X[chosen], self.pseudo, self.n_pseudo_landmarks, rng, weights=weights[chosen]
        )
        if self._is_gram:
            both = np.concatenate([np.searchsorted(rows.kept, self.landmark_indices_), chosen])
            return features, self._factor(rows.X[np.ix_(both, both)], features, X[both], go_on), chosen
        sample = X[chosen]
        if X is not points:
            sample = (
                sp.vstack([sp.csr_array(points), sample], "csr") if sp.issparse(X) else np.concatenate([points, sample])
            )
        return features, self._factor(self._gram(kernel, sample), features, sample, go_on), chosen

    def _learn_from_few_rows(
        self, kernel: Any, rows: TrainingRows, rng: np.random.Generator
    ) -> tuple[LandmarkFeatures, Array]:
        """A few random rows as landmarks, and the factor of W on these: a fraction of a second."""
        unweighted = rows._replace(weights=np.ones(len(rows.weights)))
        m = min(self.n_landmarks, FEW_CENTRES)
        X, points = self._select(unweighted, m, "uniform", rng, lambda: True)
        features = landmark_features(kernel, points)
        if self._is_gram:
            chosen = np.searchsorted(rows.kept, self.landmark_indices_)
            points, gram = X[chosen], rows.X[np.ix_(chosen, chosen)]
        else:
            gram = self._gram(kernel, points)
        with blas_limit(1):  # else every product waits for those of the task that was left
            return features, self._factor(gram, features, points, lambda: True)

    def _select(
        self, rows: TrainingRows, m: int, method: str, rng: np.random.Generator, go_on: _GoOn
    ) -> tuple[Any, Array]:
        """The rows as `NystroemCoordinates` takes them, and landmarks; raises `Stopped` once `go_on` returns False.

        For a precomputed kernel the rows are kernel values with the landmarks, (n, m), and these are of shape (m, 0).
        """
        how: dict[str, Any] = {"weights": rows.weights, "method": method}
        with blas_limit(1):  # the seeding of k-means makes thousands of short products
            if not self._is_gram:
                how["max_values"] = max_sample_values(memory_plan(self)["clustered rows"], rows.X.dtype.itemsize)
                return rows.X, run_interruptibly(partial(select_landmarks, rows.X, m, rng, **how), go_on)
            columns = run_interruptibly(partial(select_medoids, rows.X, m, rng, n_sample=self.n_sample, **how), go_on)
        self.landmark_indices_ = rows.kept[columns]
        return np.ascontiguousarray(rows.X[:, columns]), np.empty((len(columns), 0), rows.X.dtype)

    def _sample(self, X: Rows, m: int, rng: np.random.Generator) -> RowIndices:
        """Rows to estimate on beside m landmarks: as memory has room for, in all at least as many as features."""
        n_features = m + self.n_pseudo_landmarks
        of_row, of_pair = _BYTES_OF_FEATURE * n_features, X.dtype.itemsize + _BYTES_OF_PAIR
        n_bytes = memory_plan(self)["factor"]
        room = (np.sqrt(of_row**2 + 4 * of_pair * n_bytes) - of_row) / (2 * of_pair)
        size = min(X.shape[0], max(n_features, min(self.n_sample, int(room))) - m)
        return np.sort(rng.choice(X.shape[0], size, replace=False))

    def _gram(self, kernel: Kernel, sample: Rows) -> Array:
        samples = ensure_precision(kernel, make_samples(sample, kernel.sample_form))
        K = np.empty((len(samples), len(samples)), samples.dtype)
        with blas_limit(1), ThreadTeam(self.n_jobs) as team:
            fill_gram(kernel, samples, K, team)
        return K

    def _factor(self, K: Array, features: LandmarkFeatures, sample: Rows, go_on: _GoOn) -> Array:
        """The factor of W, with each column's largest entry positive: any other signs would do as well."""
        coordinates = NystroemCoordinates(features, K[:0])
        blocks = coordinates.blocks(sample, memory_plan(self)["features"])
        C = np.concatenate([coordinates.evaluate(sample[rows]) for rows in blocks])
        factor = run_interruptibly(partial(nystroem_factor, C, K), go_on)
        factor *= np.where(factor.max(axis=0, initial=0.0) < -factor.min(axis=0, initial=0.0), -1.0, 1.0)
        return factor.astype(sample.dtype)

    def _trace_error(self, kernel: Kernel, rows: TrainingRows, used: RowIndices, rng: np.random.Generator) -> float:
        """tr(K - C W C') / tr(K) of all rows; of many, of random ones on which W was not estimated (`used`)."""
        X, memory, chosen = rows.X, memory_plan(self), np.arange(rows.X.shape[0])
        if len(chosen) > 2 * _ERROR_ROWS:
            others = np.setdiff1d(chosen, used)
            chosen = np.sort(rng.choice(others if len(others) >= _ERROR_ROWS else chosen, _ERROR_ROWS, replace=False))
        columns = np.searchsorted(rows.kept, self.landmark_indices_)
        trace = explained = 0.0
        for block in row_blocks(len(chosen)):
            some = chosen[block]
            if self._is_gram:
                values, diagonal = X[np.ix_(some, columns)], X[some, some]
            else:
                values = X[some]
                diagonal = kernel.diagonal(make_samples(values, kernel.sample_form))
            trace += float(np.sum(diagonal, dtype=np.float64))
            Z = self._model.transform(values, n_jobs=self.n_jobs, memory=memory)
            explained += float(np.square(Z, dtype=np.float64).sum())
        return (trace - explained) / trace if trace else 0.0

    def _set_attributes(self, features: LandmarkFeatures, factor: Array) -> None:
        self.landmarks_ = features.landmarks[0]
        if not self._is_gram:
            self.landmark_indices_ = np.empty(0, np.intp)
        self.factor_ = factor
        self._pseudo: dict[str, Any] = {
            "pseudo_distances": features.pseudo_distances,
            "bounds": features.bounds,
            "pairs": features.pairs,
        }
        self._model = self._make_model()

    def _make_model(self) -> NystroemCoordinates:
        kernel: Any = self._make_kernel()
        pseudo = (self._pseudo[name] for name in ("pseudo_distances", "bounds", "pairs"))
        return NystroemCoordinates(LandmarkFeatures(kernel, self.landmarks_[None], *pseudo), self.factor_)

    @lazy_on_dask
    def transform(self, X: ArrayLike) -> Array:
        """The coordinates of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, rank)
            Of the dtype of the rows that were fitted.
        """
        check_is_fitted(self)
        rows = self._validate(X, reset=False, dtype=self.landmarks_.dtype)
        if self._is_gram:  # a kernel matrix keeps its own dtype until then
            rows = rows[:, self.landmark_indices_].astype(self.factor_.dtype, copy=False)
        return np.asarray(self._model.transform(rows, n_jobs=self.n_jobs, memory=memory_plan(self)))

    @property
    def _n_features_out(self) -> int:
        return int(self.factor_.shape[1])

    def _check_state(self, fitted: FittedState) -> None:
        super()._check_state(fitted)
        n_indices = len(fitted.array("landmark_indices_", np.integer, None, least=0, below=self.n_features_in_))
        fitted.number("trace_error_")
        size = (n_indices, 0) if self._is_gram else (..., self.n_features_in_)
        landmarks, pseudo = fitted.array("landmarks_", np.floating, *size), fitted.nested("_pseudo")
        m, dtype = len(landmarks), landmarks.dtype
        p = pseudo.array("pseudo_distances", dtype, 1, m, None).shape[2]
        pseudo.array("bounds", np.int64, 1, least=0, below=2)
        n_pairs = pseudo.array("pairs", np.int32, 1, 2, None, least=0, below=m).shape[2]
        fitted.array("factor_", dtype, m + p + n_pairs, None)
