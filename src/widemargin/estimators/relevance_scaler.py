"""Columns scaled by their learned relevance, as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from .._memory import memory_plan
from .._types import AnyArray, Array, Given, KernelParameter, RandomState, RowIndices, Vector
from ..algorithms.relevance import learn_relevance, mean_differences, scale_columns
from ..data.rows import occupied_columns, sample_classes
from ..kernels.functions import make_kernel
from ._dual_machine import DualMachine
from ._estimator import Estimator, warn_of_stop, warn_user
from ._fitted_state import FittedState
from ._kernel_machine import TrainingRows
from ._predictor import lazy_on_dask
from ._scale import check_scale
from ._validation import (
    FLOATS,
    LARGEST_ENTRY,
    check_choice,
    check_integer,
    check_labels,
    check_magnitude,
    check_number,
    check_resources,
    check_seed,
    check_weights,
    make_rng,
    number_classes,
    shown,
    validate_rows,
)
from .dc_svm import DCSVMClassifier
from .dc_svm_regressor import DCSVMRegressor

ROUGH_TOL = 1e-2  # of machines whose gradients, or held-out values, are all that is asked of them
MOST_CLASSES = 100  # more different numbers are values of a regression, where it is not said
_EXACT_ROWS, _CLUSTER_ROWS = 10_000, 2_500  # above the first an early machine, of clusters of at most the second
POWERS: dict[KernelParameter, int] = {"laplacian": 1, "rbf": 2}  # of |x_j - z_j| in the distances of a kernel


class RelevanceScaler(OneToOneFeatureMixin, TransformerMixin, Estimator[TrainingRows]):
    r"""Columns multiplied by how much they matter, learned from the gradients of kernel machines.

    A kernel of distances counts every column alike, and columns that say nothing about y blur it. Here a machine is
    fitted, each column is multiplied by the root mean square of the machine's gradient by it, and a machine is fitted
    again, `n_iter` times: the diagonal form of recursive feature machines. Put it before `DCSVMClassifier` or
    `DCSVMRegressor` in a pipeline, and keep it if held-out scores rise: on some tables they do, on others they fall a
    little. It helps most where many columns are irrelevant, and with the Laplacian kernel.

    It starts from the columns as they are given: put them on one scale first, by
    `sklearn.preprocessing.StandardScaler` for example.

    Parameters
    ----------
    kernel : {"laplacian", "rbf"}, default="laplacian"
        Of the machines that are fitted here; that of the machine behind may be another one.
    C : float, default=3.0
        Weight of the losses of these machines, > 0. A regression's y is scaled to unit spread.
    gamma : "mean" or float, default="mean"
        Of their kernel. "mean": 2 / the mean distance of two rows, of the L1 norm, or squared for "rbf".
    n_iter : int, default=3
        Machines that are fitted one after the other, >= 1.
    n_rows : int, default=5000
        Random rows to learn from, >= 2. Above 10,000 the machines are early ones, a cluster of rows each.
    max_time : float or None, default=None
        Seconds after which the fit ends with what it has learned, with a warning.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.

    Other Parameters
    ----------------
    target : {"auto", "classes", "values"}, default="auto"
        What y is. "auto": values of a regression if they are numbers with a fraction, or more than 100 different ones.
    memory_budget : int or str or None, default=None
        Bytes to work in beside the data, such as "500MB"; None is `get_config`'s.
    verbose : int, default=0
    random_state : int, RandomState instance or None, default=None
        Chooses the rows.

    Attributes
    ----------
    relevance_ : ndarray of shape (n_features,), float64
        Root mean square gradients by the columns as they were given, divided by the largest. Multiply it by the
        columns' standard deviations to compare columns of different units.
    scale_ : ndarray of shape (n_features,), float64
        What `transform` multiplies the columns by: relevance, but at least 1e-6 of the largest, times the factor that
        keeps the mean distance of two rows. So a gamma means what it meant before.
    n_iter_ : int
        Machines that were fitted.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has them.

    Warns
    -----
    ConvergenceWarning
        When `max_time` or Ctrl-C ended `fit`: after how many machines.
    UserWarning
        When all gradients are zero: every column then has relevance 1. When the features should be scaled.

    Notes
    -----
    With f the machine of the rows X diag(s), whose gradients are averaged over m = 500 to 2,000 rows, and over all
    pairs of classes or targets,

    .. math:: r_j = s_j \sqrt{\tfrac1m \sum_i (\partial f(x_i) / \partial x_j)^2}, \qquad s \leftarrow c \, r.

    The cost is `n_iter` fits of `n_rows` rows, and of gradients m x n_SV x n_features multiply-adds for each class or
    target.

    Differences from the papers: (1) support vector machines instead of kernel ridge regression. (2) The diagonal of
    the average gradient outer product alone, so that columns stay columns. (3) The mean distance is kept, instead of
    the largest entry.

    References
    ----------
    A. Radhakrishnan, D. Beaglehole, P. Pandit, M. Belkin, "Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models", Science 383, 2024, doi:10.1126/science.adi5639. D. Beaglehole,
    D. Holzmueller, A. Radhakrishnan, M. Belkin, "xRFM: Accurate, scalable, and interpretable feature learning models
    for tabular data", 2025, arXiv:2508.10053.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin import DCSVMRegressor, RelevanceScaler
    >>> X = np.random.default_rng(0).normal(size=(1500, 20))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1]  # 18 of 20 columns say nothing
    >>> plain = DCSVMRegressor(C=10).fit(X[:1000], y[:1000])
    >>> scaled = make_pipeline(RelevanceScaler(random_state=0), DCSVMRegressor(C=10)).fit(X[:1000], y[:1000])
    >>> print(f"{plain.score(X[1000:], y[1000:]):.2f} {scaled.score(X[1000:], y[1000:]):.2f}")
    0.66 0.99
    """

    _memory_kinds = "kernel machine", "prediction of a kernel machine"

    def __init__(
        self,
        kernel: str = "laplacian",
        *,
        C: float = 3.0,
        gamma: float | str = "mean",
        n_iter: int = 3,
        n_rows: int = 5000,
        max_time: float | None = None,
        n_jobs: int | None = None,
        target: str = "auto",
        memory_budget: int | str | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.n_iter = n_iter
        self.n_rows = n_rows
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.target = target
        self.memory_budget = memory_budget
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        """Sparse input, y is needed, float32 stays float32."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the factors of the columns.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for several targets of a regression
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of each sample's loss, >= 0.
        """
        with self._fitting(X, y, sample_weight) as (rows, progress):
            d, (stored, columns) = rows.X.shape[1], occupied_columns(rows.X)
            memory_plan(self).require(16 * d, f"relevance and factors of {d} columns")
            if columns is not None:  # with one column that stands for those without values
                parts, shape = (stored.data, stored.indices, stored.indptr), (stored.shape[0], len(columns) + 1)
                rows = rows._replace(X=type(stored)(parts, shape))
            power = POWERS[self.kernel]
            rng = make_rng(self.random_state, seed_of_none=0)
            gamma = self._resolve_gamma(rows, power)
            check_scale(make_kernel(self.kernel, gamma=gamma), rows.X, rows.first_target)
            machine = self._machine(rows, gamma)
            learned = learn_relevance(
                rows.X,
                rows.weights,
                lambda X: machine.train_model(rows._replace(X=X), progress),
                int(self.n_iter),
                progress,
                rng,
                power=power,
                n_jobs=self.n_jobs,
                memory=memory_plan(self),
            )
            self.relevance_, self.scale_ = (_all_columns(v, columns, d) for v in (learned.relevance, learned.scale))
            self.n_iter_ = learned.n_iter
            if progress.stopped_by:
                state = f"after {self.n_iter_} of {self.n_iter} models: their relevance is kept."
                warn_of_stop(self, progress.stopped_by, state)
            elif not learned.is_known:
                warn_user("no column changes the model's decision values: every column has relevance 1", UserWarning)
        return self

    def set_factors(self, X: Given, factors: Vector) -> Self:
        """Take factors (d,) of the columns of X that were learned elsewhere, as if fitted."""
        self._validate(X)
        self.relevance_, self.scale_, self.n_iter_ = factors / factors.max(), np.asarray(factors), 1
        return self

    def _check_parameters(self) -> None:
        check_choice("kernel", self.kernel, tuple(POWERS))
        check_number("C", self.C, above=0)
        if not (isinstance(self.gamma, str) and self.gamma == "mean"):  # an array is not
            check_number("gamma", self.gamma, above=0)
        check_integer("n_iter", self.n_iter, 1)
        check_integer("n_rows", self.n_rows, 2)
        check_choice("target", self.target, ("auto", "classes", "values"))
        check_seed(self.random_state)
        check_resources(self)

    def _check_data(self, X: Given, y: Given, sample_weight: Given) -> TrainingRows:
        """At most `n_rows` rows of positive weight; their y as class numbers (n,), or as values of unit spread."""
        X, y = self._validate(X, y, multi_output=True)
        check_magnitude("X", X, LARGEST_ENTRY)
        weights = check_weights(sample_weight, X)
        kept, rng, most = np.flatnonzero(weights), make_rng(self.random_state, seed_of_none=0), int(self.n_rows)
        if len(kept) > most and self._is_regression(y):
            kept = np.sort(rng.choice(kept, most, replace=False))
        elif len(kept) > most:
            check_labels(y)
            kept = kept[sample_classes(number_classes(y[kept], weights[kept])[1], most, rng)[0]]
        X, y, weights = (X, y, weights) if len(kept) == X.shape[0] else (X[kept], y[kept], weights[kept])
        rows = np.arange(len(kept))
        if self._is_regression(y):
            return TrainingRows(X, _unit_spread(y, weights), weights, rows, np.empty(0))
        check_labels(y)
        classes, numbers = number_classes(y, weights)
        return TrainingRows(X, numbers, weights, rows, classes)

    def _validate(self, X: Given, y: Given = "no_validation", **how: Any) -> Any:
        form = {"accept_sparse": "csr", "dtype": FLOATS, "order": "C"}
        return validate_rows(self, X, y, sums_repeated=True, **form, **how)

    def _is_regression(self, y: AnyArray) -> bool:
        if self.target != "auto":
            return self.target == "values"
        if y.ndim > 1 or y.dtype.kind not in "iuf":
            return y.ndim > 1
        return type_of_target(y) == "continuous" or len(np.unique(y)) > MOST_CLASSES

    def _resolve_gamma(self, rows: TrainingRows, power: int) -> float:
        """The number that "mean" stands for; 1 if all rows are equal."""
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        mean = float(mean_differences(rows.X, rows.weights, power).sum())
        return 2.0 / mean if mean > 0 else 1.0

    def _machine(self, rows: TrainingRows, gamma: float) -> DualMachine:
        """What is fitted to the scaled rows: an estimator with parameters of its own."""
        n = rows.X.shape[0]
        level = int(np.ceil(np.log(n / _CLUSTER_ROWS) / np.log(4))) if n > _EXACT_ROWS else 0
        kind: Any = DCSVMClassifier if len(rows.classes) else DCSVMRegressor
        return kind(  # type: ignore[no-any-return]
            C=float(self.C),
            kernel=self.kernel,
            gamma=gamma,
            stop_level=level,
            tol=ROUGH_TOL,
            memory_budget=self.memory_budget,
            n_jobs=self.n_jobs,
            random_state=0,
        )

    @lazy_on_dask
    def transform(self, X: ArrayLike) -> Array:
        """Multiply the columns by `scale_`.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        {ndarray, CSR array} of shape (n_samples, n_features)
            A copy, of the dtype of X.
        """
        return self._multiply(X, lambda: self.scale_)

    @lazy_on_dask
    def inverse_transform(self, X: ArrayLike) -> Array:
        """Divide the columns by `scale_`: X and the result are as of `transform`."""
        return self._multiply(X, lambda: 1.0 / self.scale_)

    @property
    def _column_factors(self) -> Vector:
        return self.scale_

    def _multiply(self, X: Given, factors: Any) -> Array:
        check_is_fitted(self)
        scaled: Array = scale_columns(self._validate(X, reset=False), factors())
        return scaled

    def _check_state(self, fitted: FittedState) -> None:
        d = fitted.integer("n_features_in_", 1)
        fitted.integer("n_iter_", 1)
        if (fitted.array("relevance_", np.float64, d) < 0).any():
            raise ValueError(f"relevance_ must not be negative, got {self.relevance_.min()}")
        if (fitted.array("scale_", np.float64, d) <= 0).any():
            raise ValueError(f"scale_ must be positive, got {self.scale_.min()}")


def _all_columns(values: Vector, columns: RowIndices | None, d: int) -> Vector:
    """Values of d columns: values[:-1] belong to `columns`, values[-1] to every other column."""
    if columns is None:
        return values
    restored = np.full(d, values[-1])
    restored[columns] = values[:-1]
    return restored


def _unit_spread(y: AnyArray, weights: Vector) -> NDArray[np.float64]:
    """Values (n,) or (n, n_targets) of mean 0 and standard deviation 1, each row counted by its weight."""
    values = y.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"y must be finite, got {shown(values[~np.isfinite(values)][0])}")
    largest = np.abs(values).max(axis=0)
    values = values / np.where(largest > 0, largest, 1.0)
    values -= np.average(values, axis=0, weights=weights)
    spread = np.sqrt(np.average(values**2, axis=0, weights=weights))
    if not np.all(spread > 0) or not np.all(np.ptp(y.astype(np.float64), axis=0) > 0):
        constant = int(np.atleast_1d(spread).argmin())
        raise ValueError(f"y must have different values, got {shown(y.reshape(len(y), -1)[0, constant])} in every row")
    return np.asarray(values / spread)
