"""What `read_machine` returns: kernel expansions of other programs, with the interface of our estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import OutlierMixin

from .._types import AnyArray, Given, Labels, Matrix, Rows, Vector
from ..data.labels import class_pairs
from ..estimators._dual_attributes import compact_pair_coefficients
from ..estimators._fitted_state import FittedState
from ..estimators._kernel_machine import ExpansionMachine, FrozenMachine
from ..estimators._predictor import (
    Classifier,
    OneVsOnePredictor,
    OutlierPredictor,
    Regressor,
    ScorePredictor,
    ValuePredictor,
    lazy_on_dask,
    votes,
)
from ..kernels.functions import KERNELS
from ..models.expansion import KernelExpansion

_LEAST_PROBABILITY = 1e-7  # of a pair, as in LIBSVM


class ImportedMachine(ExpansionMachine, FrozenMachine):
    """Base of what `read_machine` returns.

    Attributes
    ----------
    support_vectors_ : ndarray or CSR array of shape (n_points, n_features)
        Of a linear machine whose file has no support vectors, its weights.
    dual_coef_ : ndarray of shape (n_functions, n_points)
        Of `ImportedVotes` in the layout of scikit-learn's `SVC`, (n_classes - 1, n_points).
    intercept_ : ndarray of shape (n_functions,)
    n_features_in_ : int
    """

    support_vectors_: Any
    dual_coef_: Matrix

    def take(self, points: Rows, coef: ArrayLike, intercept: ArrayLike, **further: Any) -> Any:
        """Set the fitted attributes, and `further` ones; return the machine."""
        self._set_kernel("float64")
        if not points.shape[0]:  # a constant function, such as a regressor of y within epsilon; models have a point
            points, coef = np.zeros((1, points.shape[1])), np.zeros((len(np.asarray(coef)), 1))
        self.support_vectors_, self.n_features_in_ = points, points.shape[1]
        self.dual_coef_ = np.ascontiguousarray(coef, np.float64)
        self.intercept_ = np.array(intercept, np.float64)
        for name, value in further.items():
            setattr(self, name, value)
        self._model = self._make_model()
        return self

    def widen(self, d: int) -> None:
        """Take d columns: those beyond the last one that its file names are 0 in all support vectors."""
        points, more = self.support_vectors_, d - self.n_features_in_
        if more < 0:
            raise ValueError(f"n_features must be at least {self.n_features_in_}, the columns of the model, got {d}")
        if sp.issparse(points):
            points = sp.csr_array((points.data, points.indices, points.indptr), shape=(points.shape[0], d))
        else:
            points = np.pad(points, ((0, 0), (0, more)))
        self.take(points, self.dual_coef_, self.intercept_)

    def _make_model(self) -> KernelExpansion:
        return KernelExpansion(self._make_kernel(), self.support_vectors_, self._function_coef, self.intercept_)

    @property
    def _function_coef(self) -> Any:
        """The coefficients (n_functions, n_points) of the decision functions."""
        return self.dual_coef_

    def _check_state(self, fitted: FittedState) -> None:
        super()._check_state(fitted)
        fitted.nested("_kernel").choice("kernel", KERNELS)
        fitted.choice("_dtype", ("float64",))
        n = fitted.rows("support_vectors_", np.float64, ..., self.n_features_in_).shape[0]
        n_functions, n_rows = self._sizes(fitted)
        fitted.array("dual_coef_", np.float64, n_rows, n)
        fitted.array("intercept_", np.float64, n_functions)

    def _sizes(self, fitted: FittedState) -> tuple[int, int]:
        """The numbers of decision functions and of rows of `dual_coef_` that the fitted state must have."""
        return 1, 1


class _AsTheProgram:
    """Ties between classes, and probabilities, as of the other program.

    Of equal votes or values the label that its file has first wins; a value of 0 of two classes means the second.
    """

    label_order_: Labels  # the numbers in `classes_` of the file's labels
    _ranks: Callable[[Matrix, int], AnyArray]  # votes or values, the largest of which wins
    _has_probabilities: bool
    _decision_values: Callable[..., Any]
    _class_probabilities: Callable[[Matrix], Matrix]

    def _winners(self, values: Matrix) -> Labels:
        order = self.label_order_
        if len(order) == 2:
            return np.where(values[:, 0] == 0, order[1], values[:, 0] > 0).astype(np.intp)
        return np.asarray(order[self._ranks(values, len(order))[:, order].argmax(axis=1)])

    def _count_classes(self, fitted: FittedState) -> int:
        """The number of classes, of fitted state whose `label_order_` fits it."""
        k = fitted.count_classes()
        if sorted(fitted.array("label_order_", np.integer, k, least=0, below=k)) != list(range(k)):
            raise ValueError(f"label_order_ must be the numbers below {k}, got {self.label_order_}")
        return k

    @property
    def predict_proba(self) -> Any:
        """The other program's probabilities (n_samples, n_classes) of rows X; an AttributeError if its file has none.

        Of LIBSVM with ``-b 1``: the class of the largest is not always that of `predict`.
        """
        return self._probabilities if self._has_probabilities else super().predict_proba  # type: ignore[misc]

    @lazy_on_dask
    def _probabilities(self, X: ArrayLike) -> Matrix:
        return np.asarray(self._decision_values(X, self._class_probabilities))


class ImportedVotes(_AsTheProgram, Classifier, OneVsOnePredictor, ImportedMachine):
    """A classifier with a decision function for every pair of classes, which vote.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_support_ : ndarray of shape (n_classes,), int
    platt_ : ndarray of shape (2, n_pairs), or None
        A and B of the probability 1 / (1 + exp(A f + B)) of the first class of each pair.
    """

    decision_function_shape = "ovr"
    break_ties = False
    n_support_: Labels
    platt_: Matrix | None
    _ranks = staticmethod(votes)

    @property
    def _has_probabilities(self) -> bool:  # type: ignore[override]
        return self.platt_ is not None

    @property
    def _function_coef(self) -> Any:
        return compact_pair_coefficients(self.dual_coef_, self.n_support_)

    def _winners(self, values: Matrix) -> Labels:
        """As the other program, unless `break_ties` is set."""
        return OneVsOnePredictor._winners(self, values) if self.break_ties else super()._winners(values)

    def _class_probabilities(self, values: Matrix) -> Matrix:
        assert self.platt_ is not None
        k, order = len(self.classes_), self.label_order_
        first, second = class_pairs(k)
        a, b = self.platt_
        p = expit(-(a * (-values if k == 2 else values) + b)).clip(_LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
        pairs = np.zeros((len(values), k, k))
        pairs[:, first, second], pairs[:, second, first] = p, 1 - p
        if k == 2:
            return np.asarray(pairs.sum(axis=2))
        coupled = np.empty((len(values), k))
        coupled[:, order] = couple(pairs[:, order[:, None], order])
        return coupled

    def _sizes(self, fitted: FittedState) -> tuple[int, int]:
        k = self._count_classes(fitted)
        counts = fitted.array("n_support_", np.integer, k, least=0)
        if counts.sum() != self.support_vectors_.shape[0]:
            raise ValueError(f"n_support_ must have the sum {self.support_vectors_.shape[0]}, got {counts}")
        n_pairs = k * (k - 1) // 2
        if fitted.value("platt_") is not None:
            fitted.array("platt_", np.float64, 2, n_pairs)
        return n_pairs, k - 1


class ImportedClassifier(_AsTheProgram, Classifier, ScorePredictor, ImportedMachine):
    """A classifier with one decision function for two classes, or one for each of more.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    """

    _ranks = staticmethod(lambda values, _: values)

    def _class_probabilities(self, values: Matrix) -> Matrix:
        p = expit(np.hstack([-values, values]) if len(self.classes_) == 2 else values)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _sizes(self, fitted: FittedState) -> tuple[int, int]:
        k = self._count_classes(fitted)
        n_functions = 1 if k == 2 else k
        return n_functions, n_functions


class ImportedRegressor(Regressor, ValuePredictor, ImportedMachine):
    """A regressor of one target.

    Attributes
    ----------
    laplace_scale_ : float or None
        LIBSVM's estimate of the scale of a Laplace distribution of the errors.
    """

    laplace_scale_: float | None = None


class ImportedOutlierDetector(OutlierMixin, OutlierPredictor, ImportedMachine):
    """An outlier detector: positive inside.

    Attributes
    ----------
    density_marks_ : ndarray of shape (10,), or None
        LIBSVM's deciles of decision values, from which it makes its one-class probabilities.
    """

    density_marks_: Vector | None = None


def couple(pairs: NDArray[np.float64]) -> Matrix:
    """Probabilities of the classes (n, k) from those of i against j (n, k, k), by LIBSVM's iteration.

    To LIBSVM's tolerance, and in its order: its own answer may be .005 / k from the limit of the iteration.

    References
    ----------
    T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling", JMLR
    5, 2004: Algorithm 2.
    """
    n, k = pairs.shape[:2]
    Q = -pairs * pairs.transpose(0, 2, 1)
    diagonal = np.square(pairs).sum(axis=1)
    Q[:, range(k), range(k)] = diagonal
    p, active = np.full((n, k), 1.0 / k), np.arange(n)
    for _ in range(max(100, k)):
        q = np.einsum("nij,nj->ni", Q[active], p[active])
        total = np.einsum("ni,ni->n", q, p[active])
        goes_on = np.abs(q - total[:, None]).max(axis=1) >= 0.005 / k
        active, q, total = active[goes_on], q[goes_on], total[goes_on]
        if not len(active):
            break
        for t in range(k):
            d = diagonal[active, t]
            step = (total - q[:, t]) / d
            total = (total + step * (step * d + 2 * q[:, t])) / (1 + step) ** 2
            q = (q + step[:, None] * Q[active, t]) / (1 + step)[:, None]
            p[active, t] += step
            p[active] /= (1 + step)[:, None]
    return p


def make_votes(
    kernel: dict[str, Any],
    labels: AnyArray,
    points: Rows,
    coef: Matrix,
    n_support: Labels,
    rho: Vector,
    platt: Matrix | None = None,
) -> ImportedVotes:
    """A classifier from LIBSVM's layout, whose classes are in the order of a file: labels (k,), points (n, d) by class.

    Row j of a column of class i of coef (k - 1, n) is for the j-th other class; positive values mean the first class of
    a pair. rho (n_pairs,) is subtracted from the values of the pairs; platt is (2, n_pairs).
    """
    by_label = np.argsort(labels, kind="stable")
    places, coef, n_support, rho, platt = in_order(by_label, coef, n_support, rho, platt)
    sign = 1.0 if len(labels) > 2 else -1.0  # our values of two classes mean the last
    return ImportedVotes(**kernel).take(  # type: ignore[no-any-return]
        points[places],
        sign * coef,
        -sign * rho,
        classes_=np.asarray(labels)[by_label],
        label_order_=np.argsort(by_label),
        n_support_=n_support,
        platt_=platt,
    )


def in_order(
    order: Labels, coef: Matrix, n_support: Labels, rho: Vector, platt: Matrix | None
) -> tuple[Labels, Matrix, Labels, Vector, Matrix | None]:
    """LIBSVM's layout with the classes `order` of another one, and the places of its points there."""
    k, number = len(order), np.argsort(order)
    first, second = class_pairs(k)
    place = np.zeros((k, k), np.intp)
    place[first, second] = place[second, first] = np.arange(len(first))
    pairs = place[order[first], order[second]]
    signs = np.where(order[first] < order[second], 1.0, -1.0)  # -1 where the classes of a pair change places
    columns, beta = np.split(np.arange(coef.shape[1]), np.cumsum(n_support)[:-1]), np.empty_like(coef)
    for a, own in enumerate(columns):
        others = np.delete(np.arange(k), a)
        is_later = number[others] > number[a]
        turn = np.where((others > a) == is_later, 1.0, -1.0)
        beta[(number[others] - is_later)[:, None], own] = turn[:, None] * coef[:, own]
    if platt is not None:
        platt = np.array([platt[0, pairs], signs * platt[1, pairs]])
    places = np.concatenate([columns[a] for a in order])
    return places, beta[:, places], np.asarray(n_support, np.intp)[order], signs * rho[pairs], platt


def class_blocks(coef: Matrix, k: int) -> tuple[Labels, Matrix, Labels]:
    """Coefficients of the pairs (n_pairs, n) of points in any order, in LIBSVM's layout.

    A point is of the first class of a pair where its coefficient is positive, and of the second where it is negative;
    one of several classes is there once for each. Returns the points by class (m,), their coefficients (k - 1, m) and
    the numbers of points of the classes (k,).
    """
    first, second = class_pairs(k)
    places, blocks = [], []
    for i in range(k):
        block = np.vstack([coef[second == i].clip(max=0), coef[first == i].clip(min=0)])
        places.append(np.flatnonzero(block.any(axis=0)))
        blocks.append(block[:, places[-1]])
    return np.concatenate(places), np.hstack(blocks), np.array([len(columns) for columns in places])


def name_labels(labels: AnyArray, classes: Given) -> AnyArray:
    """The labels of a file (k,), or the user's names of them: by label, or in ascending order of the labels."""
    if classes is None:
        return labels
    if not isinstance(classes, dict):
        names: Sequence[Any] = list(classes)
        if len(names) != len(labels):
            raise ValueError(
                f"classes must have a name for each of the {len(labels)} labels {sorted(labels.tolist())}, got "
                f"{len(names)}: {names[:5]}; a dict from labels to names may have more"
            )
        classes = dict(zip(sorted(labels.tolist()), names, strict=True))
    missing = [label for label in labels.tolist() if label not in classes]
    if missing:
        raise ValueError(f"classes must name the labels {missing} of the file too, got {list(classes)[:10]}")
    own = [classes[label] for label in labels.tolist()]
    named = np.array(own)
    if named.dtype.kind not in "iufbU" or named.ndim != 1 or named.tolist() != own or len(set(own)) != len(own):
        raise ValueError(f"classes must be different names, all of them strings or all numbers, got {own[:10]}")
    return named


def dense_if_full(rows: Rows) -> Rows:
    """Rows of a CSR array as a dense one where that takes no more memory, about."""
    return np.ascontiguousarray(rows.toarray()) if 2 * rows.nnz >= np.prod(rows.shape, dtype=float) else rows


def csr(values: Vector, indices: Labels, counts: Labels, d: int) -> Rows:
    """A CSR array (len(counts), d), from the values and column numbers of its rows one after another."""
    ends = np.concatenate([[0], np.cumsum(counts)])
    dtype = np.int32 if max(d, ends[-1]) < 2**31 else np.int64
    return sp.csr_array((values, indices.astype(dtype), ends.astype(dtype)), shape=(len(counts), d))
