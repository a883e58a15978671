"""What `compress` returns: estimators that predict as the model they come from, and say how well."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from html import escape

from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from .._types import AnyArray, Array, Given, Matrix
from ..estimators._dc_pred_machine import Arrays, check_trees, make_forest
from ..estimators._fitted_state import FittedState
from ..estimators._kernel_machine import FrozenMachine
from ..estimators._predictor import (
    Classifier,
    OneVsOnePredictor,
    OutlierPredictor,
    Regressor,
    ScorePredictor,
    ValuePredictor,
)
from ..estimators._row_function import Response
from ..models.nystroem_tree import NystroemForest


@dataclass(frozen=True)
class CompressionReport:
    """What compression gained and lost.

    Attributes
    ----------
    agreement : float or None
        Share of the rows held back that get the model's own label; of an outlier detector the mean of this share of the
        outliers and that of the inliers, None without X or without rows of either; None for regressors.
    error : float
        Root mean square difference of decision values on these rows; NaN if labels were learnt by functions of single
        classes, and the model has those of pairs.
    spread : float
        Standard deviation of the model's own decision values there.
    cost_before, cost_after : float
        Of a prediction, in inner products.
    bytes_before, bytes_after : int
        Of the pickled models.
    n_rows, n_held : int
        Rows that were learnt from, and held back for these figures; with n_held = 0 the figures are of the former.
    n_leaves, n_landmarks : int
        Leaves of all trees, and landmarks in the largest.
    gamma : float
        Of the landmarks' kernel.
    learnt : {"decision values", "labels"}
    notes : tuple of str
        What was reduced, and why.
    determination : float
        The coefficient of determination of the decision values there, given the model's own; NaN where `error` is, and
        of files of earlier versions.
    """

    agreement: float | None
    error: float
    spread: float
    cost_before: float
    cost_after: float
    bytes_before: int
    bytes_after: int
    n_rows: int
    n_held: int
    n_leaves: int
    n_landmarks: int
    gamma: float
    learnt: str
    notes: tuple[str, ...] = ()
    determination: float = math.nan

    def __str__(self) -> str:
        lines = [f"{name:<22} {text}" for name, text in self._lines()]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """A table, in a notebook."""
        lines = [*self._lines(), *(("note", note) for note in self.notes)]
        cells = (f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in lines)
        return f"<table>{''.join(cells)}</table>"

    def _lines(self) -> list[tuple[str, str]]:
        """What is reported, and its figures in words."""
        where = f"{self.n_held:,} rows held back" if self.n_held else "the rows learnt from (too few to hold any back)"
        cost = f"{self.cost_before:,.0f} -> {self.cost_after:,.0f} inner products"
        size = f"{self.bytes_before:,} -> {self.bytes_after:,} bytes"
        lines = [
            ("cost of a prediction", f"{cost} ({_times(self.cost_before, self.cost_after)})"),
            ("size", f"{size} ({_times(self.bytes_before, self.bytes_after)})"),
        ]
        if not math.isnan(self.error):
            off = f"off by {self.error:.3g} (their spread: {self.spread:.3g}), on {where}"
            lines.append(("decision values", off))
        if self.agreement is not None:
            lines.insert(0, ("same label", f"{self.agreement:.2%} of {where}"))
        return lines


def _times(before: float, after: float) -> str:
    """The ratio in words, "12 times less" or "1.5 times more"."""
    ratio, word = (before / after, "less") if after <= before else (after / before, "more")
    return f"{ratio:,.1f} times {word}" if ratio < 10 else f"{ratio:,.0f} times {word}"


class Compressed(FrozenMachine):
    """Base of what `compress` returns: an estimator whose decision functions are a forest of Nystroem machines.

    Attributes
    ----------
    report_ : CompressionReport
    predictor_ : NystroemForest
        The model.
    n_features_in_ : int
    """

    report_: CompressionReport
    _model: NystroemForest
    _trees: list[Arrays]
    _projection: Array | None
    _dtype: str

    def load(self, trees: list[Arrays], projection: Array | None) -> None:
        """Set the fitted attributes: the arrays of each tree, and the projection (d, rank) of rows or None."""
        self._trees = trees
        self._projection = projection
        self._set_kernel(trees[0]["landmarks"].dtype.name)
        self.n_features_in_ = len(trees[0]["landmarks"][0, 0] if projection is None else projection)
        self._model = self._make_model()

    def _make_model(self) -> NystroemForest:
        return make_forest(self._make_kernel(), self._trees, self._projection)

    @property
    def predictor_(self) -> NystroemForest:
        """The forest of Nyström machines."""
        return self._model

    def _decision_values(self, X: Given, convert: Response | None = None) -> AnyArray:
        check_is_fitted(self)
        values = self._model.decision_values(self._validate(X, reset=False, dtype=self._dtype), n_jobs=self.n_jobs)
        return values if convert is None else convert(values)

    def _check_state(self, fitted: FittedState) -> None:
        super()._check_state(fitted)
        if not isinstance(fitted.value("report_"), CompressionReport):
            raise ValueError(f"report_ must be a CompressionReport, got {self.report_!r}")
        d, dtype = self.n_features_in_, fitted.choice("_dtype", ("float32", "float64"))
        if fitted.value("_projection") is not None:
            d = fitted.array("_projection", dtype, d, ...).shape[1]
        check_trees(fitted, d, self._n_outputs(fitted))

    def _n_outputs(self, fitted: FittedState) -> int | None:
        """The number of decision functions that the fitted state must have; None for any number."""
        return None

    @property
    def nbytes(self) -> int:
        """Bytes of the pickled model."""
        return len(pickle.dumps(self))


class CompressedClassifier(Classifier, ScorePredictor, Compressed):
    """A classifier with one decision function for two classes, or one for each of more."""

    def _n_outputs(self, fitted: FittedState) -> int:
        k = fitted.count_classes()
        return 1 if k == 2 else k


class CompressedVotes(Classifier, OneVsOnePredictor, Compressed):
    """A classifier with a decision function for every pair of classes."""

    def _n_outputs(self, fitted: FittedState) -> int:
        k = fitted.count_classes()
        return k * (k - 1) // 2


class CompressedRegressor(Regressor, ValuePredictor, Compressed):
    """A regressor of one target or several."""

    _keeps_column: bool  # of predictions of one target

    def _values(self, values: Matrix) -> Matrix:
        """As of `ValuePredictor`; (n_samples, 1) where the model was fitted to such y."""
        return values if self._keeps_column else super()._values(values)


class CompressedOutlierDetector(OutlierMixin, OutlierPredictor, Compressed):
    """An outlier detector: positive inside."""

    def _n_outputs(self, fitted: FittedState) -> int:
        return 1
