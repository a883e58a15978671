"""Mixins: `decision_function` and `predict` from decision values, by votes, argmax or sign; lazy on dask."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._memory import MemoryPlan
from .._threads import row_blocks
from .._types import AnyArray, Given, Labels, Matrix, Model, Rows, Vector
from ..data import compute_values, is_dask_collection, map_rows
from ..data.labels import class_pairs
from ..solvers.quantile import pinball_loss
from ._row_function import Response, RowFunction

_VALUE_COPIES = 3  # of the decision values of a block of rows: the vote copies them twice
_FEW_CLASSES = 32  # votes of up to so many are a product with a dense matrix (n_pairs, n_classes)

Method = TypeVar("Method", bound=Callable[..., Any])


def lazy_on_dask(method: Method) -> Method:
    """Let a method of X also take a dask array or data frame, and return a dask array of the same blocks.

    Blocks are computed on one thread each, by the machine as it is now: the scheduler runs several of them at a time,
    and a later `fit` does not change the result.
    """

    @wraps(method)
    def apply(estimator: Model, X: Given) -> Any:
        if not is_dask_collection(X):
            return method(estimator, X)
        check_is_fitted(estimator)
        own = copy.copy(estimator)
        if hasattr(own, "n_jobs"):
            own.n_jobs = 1
        return map_rows(getattr(own, method.__name__), X)

    return apply  # type: ignore[return-value]  # of the same signature


class ScoreOnDask:
    """`score` of dask collections too: scikit-learn's metric of computed predictions."""

    predict: Callable[[Any], AnyArray]

    def score(self, X: Given, y: Given, sample_weight: Given = None) -> float:
        """The accuracy of a classifier, or the coefficient of determination of a regressor.

        Of a regressor of several quantiles it is minus the mean pinball loss.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or a dask array or data frame: its rows are predicted block by block, where they are.
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for several targets
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score, r2_score  # imported here, as fits do not need it

        metric = accuracy_score if is_classifier(self) else r2_score
        y, sample_weight, predicted = map(compute_values, (y, sample_weight, self.predict(X)))
        quantile: Given = getattr(self, "quantile", None)
        if getattr(self, "loss", None) == "quantile" and np.ndim(quantile):
            check_consistent_length(y, predicted)
            return -pinball_loss(np.asarray(y), predicted, sample_weight, quantile=quantile)
        return float(metric(y, predicted, sample_weight=sample_weight))


class Classifier(ScoreOnDask, ClassifierMixin):
    """scikit-learn's mixin of classifiers, whose `score` takes dask collections."""


class Regressor(ScoreOnDask, RegressorMixin):
    """scikit-learn's mixin of regressors, whose `score` takes dask collections."""


class ScorePredictor(RowFunction):
    """`decision_function` and `predict` of a classifier of scores; the error of `predict_proba` says what to do."""

    _decision_values: Callable[..., Any]
    classes_: AnyArray

    @lazy_on_dask
    def decision_function(self, X: ArrayLike) -> Vector:
        """Signed distances from the decision surfaces, in units of the margin.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or K(X, train), of shape (n_samples, n_train), for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs), float64
            With two classes, positive for ``classes_[1]``. With more, one column per class; of a machine for each pair
            of classes these are votes, ordered within equal votes by the decision values, or with
            ``decision_function_shape="ovo"`` one column per pair, positive for its first class.
        """
        if self._has_votes:
            return np.asarray(self._decision_values(X, self._scores))
        return self._scores(self._decision_values(X))

    @property
    def _has_votes(self) -> bool:
        """Whether scores are fewer than decision values, of which only a block of rows is held."""
        return False

    def _scores(self, values: Matrix) -> Matrix:
        """What `decision_function` returns, from decision values (n, n_functions)."""
        return values[:, 0] if len(self.classes_) == 2 else values

    @property
    def _responses(self) -> dict[str, Response]:
        return {"predict": lambda values: self.classes_[self._winners(values)], "decision_function": self._scores}

    def _winners(self, values: Matrix) -> Labels:
        """The class (n,) of each row of decision values (n, n_functions)."""
        return argmax_classes(values)

    @lazy_on_dask
    def predict(self, X: ArrayLike) -> AnyArray:
        """The label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or K(X, train), of shape (n_samples, n_train), for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,)
            That of the largest decision value; of a machine for each pair of classes, that with most votes among the
            pairs, of equal votes the first, unless `break_ties`.
        """
        self._check_votes()
        numbers = self._decision_values(X, self._winners)  # before `classes_`: raises NotFittedError
        return np.asarray(self.classes_[numbers])

    def _check_votes(self) -> None:
        """Raise a ValueError, before decision values are computed, if labels cannot be made of them."""

    @property
    def predict_proba(self) -> Any:
        """Always an AttributeError, so that `hasattr` is False and scikit-learn takes `decision_function` instead.

        Raises
        ------
        AttributeError
            With the code that gives probabilities.
        """
        return self._no_probabilities("predict_proba")

    @property
    def predict_log_proba(self) -> Any:
        """As `predict_proba`."""
        return self._no_probabilities("predict_log_proba")

    def _no_probabilities(self, name: str) -> Any:
        kind = type(self).__name__
        raise AttributeError(
            f"'{kind}' object has no attribute '{name}': decision values are not probabilities. Calibrate it: a fitted "
            f"DCSVMClassifier by widemargin.calibrate(model, X, y).{name}(X); others by cross-validation, "
            f"sklearn.calibration.CalibratedClassifierCV({kind}(...), ensemble=False).fit(X, y).{name}(X); a fitted "
            f"model on other rows: CalibratedClassifierCV(sklearn.frozen.FrozenEstimator(model)).fit(X_other, y_other)"
        )


class OneVsOnePredictor(ScorePredictor):
    """Predictions by votes of a machine for every pair of classes."""

    decision_function_shape: str
    break_ties: bool

    @property
    def _has_votes(self) -> bool:
        return self.decision_function_shape != "ovo"

    def _scores(self, values: Matrix) -> Matrix:
        k = len(self.classes_)
        return super()._scores(values) if k == 2 or not self._has_votes else ordered_votes(values, k)

    def _winners(self, values: Matrix) -> Labels:
        k = len(self.classes_)
        if k == 2:
            return (values[:, 0] > 0).astype(np.intp)
        self._check_votes()
        return vote_winners(values, k, break_ties=self.break_ties)

    def _check_votes(self) -> None:
        if self.break_ties and not self._has_votes and len(getattr(self, "classes_", ())) > 2:
            raise ValueError("break_ties must be False with decision_function_shape='ovo', got True")


class OutlierPredictor(RowFunction):
    """`decision_function` of an outlier detector, and `predict` by its sign."""

    _decision_values: Callable[..., Matrix]

    @lazy_on_dask
    def decision_function(self, X: ArrayLike) -> Vector:
        """Signed distance from the border of the region, in units of the machine's norm: negative outside.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or K(X, train), of shape (n_samples, n_train), for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        return self._scores(self._decision_values(X))

    def _scores(self, values: Matrix) -> Vector:
        """What `decision_function` returns for decision values (n, 1)."""
        return values[:, 0]

    @property
    def _responses(self) -> dict[str, Response]:
        return {"predict": lambda values: _inside(self._scores(values)), "decision_function": self._scores}

    @lazy_on_dask
    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """1 for each row inside the region, -1 for each outside.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), int
        """
        return _inside(self.decision_function(X))


def _inside(scores: Vector) -> NDArray[np.intp]:
    return np.where(scores >= 0.0, 1, -1)


class ValuePredictor(RowFunction):
    """`predict` of a regressor: its decision values."""

    _decision_values: Callable[..., Matrix]

    @lazy_on_dask
    def predict(self, X: ArrayLike) -> Vector:
        """The value of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or K(X, train), of shape (n_samples, n_train), for a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_targets) for several targets, float64
        """
        return self._values(self._decision_values(X))

    def _values(self, values: Matrix) -> Matrix:
        return values[:, 0] if values.shape[1] == 1 else values

    @property
    def _responses(self) -> dict[str, Response]:
        return {"predict": self._values}


def convert_in_blocks(
    compute: Callable[[Any], Matrix], convert: Response | None, X: Rows, n_values: int, memory: MemoryPlan
) -> AnyArray:
    """The decision values (n, n_values) of X, or `convert` of them for blocks of rows whose values fit their share."""
    if convert is None:
        return compute(X)
    n_rows = max(1, memory["decision values"] // (_VALUE_COPIES * 8 * n_values))
    if X.shape[0] <= n_rows:
        return convert(compute(X))
    return np.concatenate([convert(compute(X[rows])) for rows in row_blocks(X.shape[0], n_rows)])


def argmax_classes(values: Matrix) -> Labels:
    """The class of each row: that of the largest decision value, or of two classes by the sign of the only one."""
    numbers: AnyArray = values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(axis=1)
    return numbers.astype(np.intp)


def vote_winners(values: Matrix, n_classes: int, *, break_ties: bool) -> Labels:
    """The class (n,) with most votes of decision values (n, n_pairs); of equal votes the first, unless `break_ties`."""
    scores: Any = ordered_votes(values, n_classes) if break_ties else votes(values, n_classes)
    return np.asarray(scores.argmax(axis=1))


def ordered_votes(values: Matrix, n_classes: int) -> Matrix:
    """Votes ordered within equal ones by decision values: (n, n_classes), from decision values (n, n_pairs)."""
    totals, counts = np.zeros((2, len(values), n_classes))
    for i, block in enumerate(_blocks_of_pairs(values, n_classes)):
        totals[:, i] += block.sum(axis=1)
        totals[:, i + 1 :] -= block
        counts[:, i] += (block >= 0).sum(axis=1)
        counts[:, i + 1 :] += block < 0
    return np.asarray(counts + totals / (3 * (np.abs(totals) + 1)))


def votes(values: Matrix, n_classes: int) -> NDArray[np.float32]:
    """Votes (n, n_classes) from decision values (n, n_pairs); a value of exactly 0 is no vote."""
    if n_classes <= _FEW_CLASSES:
        for_first, for_second = pair_incidence(n_classes)
        counts: NDArray[np.float32] = (values > 0).astype(np.float32) @ for_first
        counts += (values < 0).astype(np.float32) @ for_second
        return counts
    counts = np.zeros((len(values), n_classes), np.float32)
    for i, block in enumerate(_blocks_of_pairs(values, n_classes)):
        counts[:, i] += (block > 0).sum(axis=1)
        counts[:, i + 1 :] += block < 0
    return counts


def _blocks_of_pairs(values: Matrix, n_classes: int) -> Iterator[Matrix]:
    """For each class but the last, the columns of `values` (n, n_pairs) of its pairs with all later classes."""
    ends = np.cumsum(np.arange(n_classes - 1, 0, -1))
    return (values[:, end - size : end] for end, size in zip(ends, range(n_classes - 1, 0, -1), strict=True))


@cache
def pair_incidence(n_classes: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """One-hot classes (n_pairs, n_classes) that get the vote of a positive, and of a negative decision value."""
    first, second = class_pairs(n_classes)
    return np.eye(n_classes, dtype=np.float32)[first], np.eye(n_classes, dtype=np.float32)[second]
