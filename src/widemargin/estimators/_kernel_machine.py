"""`KernelMachine`, the base of estimators with a kernel: its parameters, the rows of positive weight, `fit`, files."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._memory import memory_plan
from .._progress import Progress
from .._types import AnyArray, ClassWeight, Given, KernelParameter, Labels, Matrix, RowIndices, Rows, Vector
from ..kernels.functions import FUNCTION_KERNELS, KERNELS, CallableKernel, Kernel, Precomputed, make_kernel
from ..models.expansion import KernelExpansion
from ._estimator import Estimator
from ._fitted_state import FittedState
from ._predictor import convert_in_blocks, lazy_on_dask
from ._row_function import Response
from ._scale import resolve_gamma
from ._validation import (
    FLOATS,
    LARGEST_ENTRY,
    check_labels,
    check_magnitude,
    check_targets,
    check_weights,
    class_factors,
    number_classes,
    validate_rows,
)


class TrainingRows(NamedTuple):
    """The rows of positive weight; a row of weight 0 is one that is not there."""

    X: Rows  # (n, d), or a kernel matrix (n, n): the user's own array if all rows count
    y: AnyArray  # (n,), or (n, n_targets) for several targets: class numbers, or a regressor's targets
    weights: Vector  # (n,)
    kept: RowIndices  # (n,): the rows' numbers in the data that the user gave
    classes: AnyArray  # (k,): labels, at least two; none for a regressor

    @property
    def first_target(self) -> AnyArray:
        """Class numbers, or a regressor's values of the first target (n,)."""
        return self.y if self.y.ndim == 1 else self.y[:, 0]


class KernelMachine(Estimator[TrainingRows]):
    """An estimator with a kernel, and with a model of its fitted attributes.

    A subclass has `_check_parameters`, `_train`, which sets the fitted attributes and `_model` (or a `fit` of its own),
    and `_make_model`, which makes `_model` from these attributes.
    """

    kernel: KernelParameter
    gamma: float | str
    degree: int
    coef0: float
    n_jobs: int | None
    class_weight: ClassWeight  # of a classifier
    shape_fit_: tuple[int, int]
    _kernel: dict[str, Any]  # the parameters of the kernel, as they were in the fit
    _gamma: float
    _model: Any
    _dtype: str  # of the data, and so of the kernel
    _gamma_names: tuple[str, ...] = ("scale", "auto")
    intercept_: Vector

    @property
    def _is_gram(self) -> bool:
        """Whether X is a kernel matrix; a fitted machine remembers whether it was one in the fit."""
        own: dict[str, Any] | None = getattr(self, "_kernel", None)  # not `_own_kernel`: it is asked for often
        return bool((own["kernel"] if own else self.kernel) == "precomputed")

    @property
    def _own_kernel(self) -> dict[str, Any]:
        """The parameters of the kernel: those that the fit used, or the current ones before a fit."""
        return getattr(self, "_kernel", None) or self._kernel_parameters()

    def _forget(self) -> None:
        self.__dict__.pop("_kernel", None)

    def __sklearn_tags__(self) -> Tags:
        """Sparse input; pairwise for a precomputed kernel. Regressors take several targets."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = bool(self.kernel == "precomputed")
        tags.input_tags.sparse = not tags.input_tags.pairwise
        tags.target_tags.multi_output = isinstance(self, RegressorMixin)
        return tags

    def _validate(self, X: Given, y: Given = "no_validation", *, dtype: Any = FLOATS, **how: Any) -> Any:
        """scikit-learn's `validate_data`, in the form that kernels take; a kernel matrix keeps its own dtype."""
        form: dict[str, Any] = {"accept_sparse": False, "dtype": FLOATS} if self._is_gram else {"accept_sparse": "csr"}
        return validate_rows(self, X, y, sums_repeated=True, **{"dtype": dtype, "order": "C", **form, **how})

    def _resolve_kernel(self, X: Rows, weights: Vector) -> Kernel:
        """The kernel, with the number that "scale" and "auto" stand for on these rows, which is kept as `_gamma`."""
        self._kernel = self._kernel_parameters()
        self._gamma = self._resolve_gamma(X, weights)
        return self._make_kernel()

    def _resolve_gamma(self, X: Rows, weights: Vector) -> float:
        return resolve_gamma(self.gamma, X, weights, is_gram=self._is_gram)

    def _kernel_parameters(self) -> dict[str, Any]:
        """The parameters of the kernel, as the user has set them by now."""
        return {name: getattr(self, name) for name in ("kernel", "gamma", "degree", "coef0")}

    def _make_kernel(self) -> Kernel:
        own = self._own_kernel
        return make_kernel(own["kernel"], gamma=self._gamma, degree=own["degree"], coef0=own["coef0"])

    def _train(self, rows: TrainingRows, progress: Progress) -> None:
        """Train, set the fitted attributes and `_model`, and warn if the fit was stopped."""
        raise NotImplementedError

    def _make_model(self) -> Any:
        raise NotImplementedError

    def fit(self, X: ArrayLike, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> Self:
        """Train the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or K(train, train), of shape (n_samples, n_samples), for a precomputed kernel; or a dask array or data
            frame: for early prediction its rows stay on the workers, else they are computed into this process, if they
            fit in the memory budget.
        y : array-like of shape (n_samples,)
            Of a classifier labels of any kind, of at least two classes; of a regressor numbers, also of shape
            (n_samples, n_targets).
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of each sample's loss, >= 0.
        """
        with self._fitting(X, y, sample_weight) as (rows, progress):
            self._train(rows, progress)
        return self

    def _check_data(self, X: Given, y: Given, sample_weight: Given) -> TrainingRows:
        X, targets = self._accept_rows(X, y)
        return self._take_rows(X, targets, check_weights(sample_weight, X))

    def _accept_rows(self, X: Given, y: Given, *, reset: bool = True) -> tuple[Rows, AnyArray]:
        """Check the rows, and keep their number, features and dtype; return X and y.

        y is (n,) or (n, n_targets): labels, a regressor's targets, or zeros for an estimator without y.
        """
        if isinstance(self, ClassifierMixin):
            X, y = self._validate(X, y, reset=reset)
            check_labels(y)
        elif isinstance(self, RegressorMixin):
            X, y = self._validate(X, y, reset=reset, y_numeric=True, multi_output=True)
            y = check_targets(X, y)
        else:
            X = self._validate(X, reset=reset)
            y = np.zeros(X.shape[0])
        if (is_gram := self._is_gram) and X.shape[0] != X.shape[1]:
            raise ValueError(f"X must be a square kernel matrix for kernel='precomputed', got shape {X.shape}")
        if not is_gram and not callable(self.kernel):
            check_magnitude("X", X, LARGEST_ENTRY)
        if reset:
            self._dtype = X.dtype.type.__name__
        self.shape_fit_ = X.shape
        return X, y

    def _take_rows(self, X: Rows, targets: AnyArray, weights: Vector) -> TrainingRows:
        (kept,) = weights.nonzero()
        if len(kept) < X.shape[0]:
            X = X[np.ix_(kept, kept)] if self._is_gram else X[kept]
            targets, weights = targets[kept], weights[kept]
        classes, y = self._number_targets(targets, weights)
        return TrainingRows(X, y, weights, kept, classes)

    def _number_targets(self, targets: AnyArray, weights: Vector) -> tuple[AnyArray, AnyArray]:
        return number_classes(targets, weights) if isinstance(self, ClassifierMixin) else (np.empty(0), targets)

    def _set_class_weight(self, classes: AnyArray, y: Labels, weights: Vector) -> Vector:
        """Set `class_weight_` (n_classes,), the factors of the classes; return each row's weight (n,) times its own."""
        self.class_weight_ = class_factors(self.class_weight, classes, y, weights)
        return np.asarray(weights * self.class_weight_[y])

    def _decision_values(self, X: Given, convert: Response | None = None) -> AnyArray:
        """Decision values (n, n_functions), or `convert` of them, block by block within the memory budget."""
        check_is_fitted(self)
        X = self._validate(X, reset=False, dtype=self._dtype)
        memory = memory_plan(self)
        compute: Callable[[Any], Matrix] = partial(self._model.decision_values, n_jobs=self.n_jobs, memory=memory)
        return convert_in_blocks(compute, convert, X, self._n_functions, memory)

    @property
    def _n_functions(self) -> int:
        return len(self.intercept_)

    def __getstate__(self) -> dict[str, Any]:
        """The parameters and the fitted attributes, without what predict can make of them."""
        return {name: value for name, value in super().__getstate__().items() if name != "_model"}

    def _check_state(self, fitted: FittedState) -> None:
        parameters = fitted.nested("_kernel")
        if not callable(parameters.value("kernel")):
            parameters.choice("kernel", (*KERNELS, *FUNCTION_KERNELS, "precomputed"))
        parameters.integer("degree", 0)
        parameters.number("coef0")
        fitted.number("_gamma", above=0)
        d = fitted.integer("n_features_in_", 1)
        if "shape_fit_" in fitted:  # not of a compressed machine
            shape = fitted.nested("shape_fit_")
            if len([shape.integer(axis, 1) for axis in shape]) != 2 or self.shape_fit_[1] != d:
                raise ValueError(f"shape_fit_ must be (n_samples, {d}), got {self.shape_fit_!r}")

    def _check_dtype_and_weights(self, fitted: FittedState) -> None:
        fitted.choice("_dtype", ("float32", "float64"))
        if isinstance(self, ClassifierMixin):
            fitted.array("class_weight_", np.float64, fitted.count_classes())

    def _restore(self) -> None:
        self._model = self._make_model()


class ExpansionMachine(KernelMachine):
    """A kernel machine whose model is a kernel expansion, or one for each cluster: `coef_` and `decision_gradient`."""

    support_vectors_: Any

    @property
    def coef_(self) -> Any:
        """Weights of the features, of shape (n_functions, n_features), float64: one row for each intercept.

        A read-only array, or a CSR one if the machine was trained on sparse rows.

        Raises
        ------
        AttributeError
            If the kernel is not "linear", or the machine is an early one: it has no single vector of weights.
        """
        check_is_fitted(self)
        if (kernel := self._own_kernel["kernel"]) != "linear":
            raise AttributeError(f"coef_ is available for kernel='linear' alone, got kernel={kernel!r}")
        if not isinstance(self._model, KernelExpansion):
            raise AttributeError("coef_ is not available with early prediction: each cluster has its own weights")
        weights = self._model.weights
        return weights.copy() if sp.issparse(weights) else weights

    @lazy_on_dask
    def decision_gradient(self, X: ArrayLike) -> NDArray[np.float64]:
        r"""How the decision value of each row changes with its columns: the gradient of f at the row.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features), or (n_samples, n_functions, n_features), float64
            Of several decision functions one gradient each: of the pairs of classes in their order, as
            ``decision_function_shape="ovo"`` has them, of a machine against the rest for each class
            (`BSGDClassifier`), or of the targets of a regressor.

        Raises
        ------
        ValueError
            If the kernel has no gradient: "precomputed", a callable, or a function of scikit-learn's.

        Notes
        -----
        In closed form, of :math:`f(x) = \sum_j \beta_j k(x, z_j) + b` for example
        :math:`-2 \gamma \sum_j \beta_j k(x, z_j) (x - z_j)` with the RBF kernel,
        :math:`-\gamma \sum_j \beta_j k(x, z_j) \operatorname{sign}(x - z_j)` with the Laplacian one, whose sign is 0 in
        columns where x and :math:`z_j` are equal, and `coef_` with the linear one. It costs the kernel entries of
        `decision_function` and, for each entry and function, as many multiply-adds as there are columns.

        Of an early machine it is the gradient of the machine of the row's cluster, or of the mean of the machines that
        are averaged for the row: the choice of the cluster counts as constant. The result is dense, also of sparse
        rows.
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False, dtype=self._dtype)
        if isinstance(self._model.kernel, Precomputed | CallableKernel):
            raise ValueError(
                f"kernel must be one of {KERNELS} for gradients, got kernel={self.kernel!r}, whose gradient is unknown"
            )
        gradients = self._model.decision_gradients(X, n_jobs=self.n_jobs, memory=memory_plan(self))
        return np.asarray(gradients[:, 0] if gradients.shape[1] == 1 else gradients)


class FrozenMachine(KernelMachine):
    """A kernel machine from elsewhere, never fitted: parameters of its kernel, and attributes that are given to it."""

    def __init__(
        self, kernel: str = "rbf", *, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0, n_jobs: int | None = None
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_jobs = n_jobs

    def fit(self, X: Given, y: Given = None) -> Self:  # type: ignore[override]
        """Do nothing, as scikit-learn's `FrozenEstimator`: for other data, fit the original."""
        return self

    def __sklearn_clone__(self) -> Self:
        """A copy that predicts alike: as `FrozenEstimator`, it is never fitted."""
        return copy(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _set_kernel(self, dtype: str) -> None:
        """Keep the kernel's parameters as they are now, and the dtype of the rows."""
        self._kernel, self._gamma, self._dtype = self._kernel_parameters(), float(self.gamma), dtype
