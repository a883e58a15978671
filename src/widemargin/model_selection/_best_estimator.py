"""The base of all ...CV estimators: scorers, `cv_results_`, and the best machine, trained on all rows."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from numbers import Integral
from time import perf_counter
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring, make_scorer
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, _safe_indexing, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._memory import memory_plan
from .._progress import Callback
from .._types import AnyArray, Given, Matrix, Model, RowIndices, Vector
from ..data import compute_rows, compute_values
from ..estimators._callbacks import CallbackSupportMixin, FitTask
from ..estimators._estimator import Loadable, all_or_nothing, reuse_freed_memory, warn_of_stop, warn_user
from ..estimators._fitted_state import FittedState, describe
from ..estimators._predictor import Classifier
from ..estimators._training_warnings import warn_of_wild_targets, wild_rows
from ..estimators._validation import check_flag, make_rng, shown
from ..solvers.quantile import pinball_loss

Method = TypeVar("Method", bound=Callable[..., Any])
Fold = tuple[RowIndices, RowIndices]  # the numbers of training rows, and of test rows
Score = Callable[[RowIndices], Callable[[Any], float]]  # of the numbers of test rows: the score of an estimator on them

_SEARCH_SHARE = 0.8  # of `max_time`; the rest is for the machine that is trained on all rows
_LAST_SECONDS = 0.4  # for this machine, when Ctrl-C has ended the search


def is_refitted(search: Any) -> bool:
    """Whether a model was trained on all rows; an AttributeError says why there are no predictions."""
    if not search.refit:
        raise AttributeError("refit=False: no model was trained on all rows, so there are no predictions")
    return True


def last_step(model: Model) -> Model:
    """The machine that predicts: of a pipeline, which scales the columns before it, the last step."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def needs_refit(method: Method) -> Method:
    """Make a method available only with `refit`."""
    return cast(Method, available_if(is_refitted)(method))


class Found(NamedTuple):
    """What a search has found.

    Attributes
    ----------
    parameters : dict
        Of the best cell.
    stopped_by : str or None
    mark : int or None
        A number that differs for other searches, whose scores are no scores of this one; None if all differ.
    before : estimator or None
        The model of an earlier search that was stopped, and that this one has gone on from.
    factors : ndarray of shape (d,) or None
        Of the columns; None where they stay as they are.
    problem : CVProblem or None
        Of all rows, where the model is trained in units of the targets' spread.
    seconds : float
    """

    parameters: dict[str, Any]
    stopped_by: str | None
    mark: int | None = None
    before: Any = None
    factors: Vector | None = None
    problem: Any = None
    seconds: float = 0.0


class BestEstimator(CallbackSupportMixin, Loadable):
    """Base of estimators that choose parameters, and predict by the machine trained with them, `best_estimator_`.

    A subclass has `_search`, and `_machine_type`, the class of that machine. Parameters of the same name are the same
    in both.
    """

    scoring: Given
    refit: bool
    max_time: float | None
    _machine_type: type[Any]

    @property
    def _memory_kinds(self) -> tuple[str, ...]:
        return tuple(self._machine_type._memory_kinds)

    def __getattr__(self, name: str) -> Any:
        """Fitted attributes of `best_estimator_`, and its methods `predict_...` or their AttributeErrors."""
        is_fitted_attribute = name.endswith("_") and not name.startswith("_")
        if (is_fitted_attribute or name.startswith("predict_")) and "best_estimator_" in self.__dict__:
            machine = last_step(self.__dict__["best_estimator_"])
            try:
                return getattr(machine, name)
            except AttributeError as error:
                raise AttributeError(str(error).replace(type(machine).__name__, type(self).__name__)) from None
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_tags__(self) -> Tags:
        """The tags of the machine, for inputs and targets."""
        tags, machine = super().__sklearn_tags__(), self._prototype().__sklearn_tags__()
        tags.input_tags, tags.target_tags = machine.input_tags, machine.target_tags
        return tags

    @needs_refit
    def predict(self, X: ArrayLike) -> AnyArray:
        """What `best_estimator_` predicts: labels (n_samples,), or values (n_samples,) or (n_samples, n_targets)."""
        check_is_fitted(self)
        return cast(AnyArray, self.best_estimator_.predict(X))

    @needs_refit
    def as_function(self, response_method: str = "predict") -> Callable[[ArrayLike], Any]:
        """A function of one row in microseconds: that of the `best_estimator_`, after its scaling of the columns."""
        check_is_fitted(self)
        best = self.best_estimator_
        steps = best[:-1] if isinstance(best, Pipeline) else None
        return cast(Callable[[ArrayLike], Any], last_step(best).as_function(response_method, steps=steps))

    def _check_state(self, fitted: FittedState) -> None:
        d = fitted.integer("n_features_in_", 1)
        if "best_estimator_" not in fitted and not self.refit:
            return
        machine = last_step(fitted.value("best_estimator_"))
        if not isinstance(machine, self._machine_type) or vars(machine).get("n_features_in_") != d:
            wanted = f"of class {self._machine_type.__name__}, fitted on {d} features"
            raise ValueError(f"best_estimator_ must be {wanted}, got {describe(machine)}")

    def _prototype(self, **parameters: Any) -> Model:
        """An unfitted machine with this estimator's parameters of the same name, and the given ones."""
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in self._machine_type._get_param_names() if name in own}
        return self._machine_type(**{**shared, **parameters})

    def _search_time(self) -> float | None:
        """Seconds for the search."""
        return None if self.max_time is None else (_SEARCH_SHARE if self.refit else 1.0) * self.max_time

    def _time_left(self, elapsed: float, stopped_by: str | None) -> float | None:
        """Seconds for the machine with the best parameters: the rest of `max_time`, or less after Ctrl-C."""
        left = math.inf if self.max_time is None else max(0.0, self.max_time - elapsed)
        left = min(left, _LAST_SECONDS) if stopped_by == "interrupt" else left
        return None if math.isinf(left) else left

    def _fit_best(self, X: Given, y: Given, sample_weight: Given, max_time: float | None, found: Found) -> Model:
        """Train the model with the best parameters on all rows."""
        return self._train(X, y, sample_weight, max_time, found, **found.parameters)

    def _train(
        self, X: Given, y: Given, sample_weight: Given, max_time: float | None, found: Found, **parameters: Any
    ) -> Model:
        """Train a model on all rows; the model of a stopped search with the same parameters goes on."""
        model = self._prototype(**parameters, max_time=max_time)
        if found.before is not None and found.before.get_params() == {**model.get_params(), "max_time": self.max_time}:
            model = copy(found.before).set_params(max_time=max_time, warm_start=True)
        return model.fit(X, y, sample_weight).set_params(max_time=self.max_time, warm_start=False)

    @property
    def _advice(self) -> str:
        """What the warning of a stopped search says of another fit."""
        return ""

    def _warn_of_stop(
        self, stopped_by: str | None, state: str, parameters: Mapping[str, Any], *, has_scores: bool
    ) -> None:
        """Warn that the search was stopped, and of what this means for the model that is trained now.

        Without any scores its parameters are no choice.
        """
        texts = (f"{value:.6g}" if isinstance(value, float) else repr(value) for value in parameters.values())
        chosen = ", ".join(f"{name}={text}" for name, text in zip(parameters, texts, strict=True))
        if has_scores:
            state += f" The best so far: {chosen}.{self._advice}"
        else:
            remedy = "" if self.max_time is None else f": give it more than max_time={shown(self.max_time)} seconds"
            state += f" Nothing was scored, and {chosen} is no choice, but the middle of what is tried first{remedy}."
        if self.refit and stopped_by == "interrupt":
            machine, rows = "best_estimator_", "X"
            if getattr(self, "relevance_", None) is not None:  # the columns are scaled before
                machine, rows = "best_estimator_[-1]", "best_estimator_[:-1].transform(X)"
            state += (
                f" A model with these is trained for at most {_LAST_SECONDS} s; to go on with it: "
                f"{machine}.set_params(warm_start=True).fit({rows}, y)."
            )
        warn_of_stop(self, stopped_by, state)

    def _take_features(self, machine: Model) -> None:
        """Take `n_features_in_`, and `feature_names_in_` where there are any, from a machine that has seen the rows."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(machine, name):
                setattr(self, name, getattr(machine, name))

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Self:
        """Score the cells of the grid, and train the machine of the best one on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
            Or K(train, train), of shape (n_samples, n_samples), for a precomputed kernel. A dask array or data frame
            is computed into memory, if the memory budget has room for it.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Factor of each sample's loss and of its part in the scores, >= 0.
        groups : array-like of shape (n_samples,), default=None
            For splitters that keep groups together.
        """
        X = compute_rows(X, memory_plan(self))
        y, sample_weight, groups = map(compute_values, (y, sample_weight, groups))
        with FitTask(self, X, y) as task, all_or_nothing(self):
            begin = perf_counter()
            reuse_freed_memory(self)
            self._check_scoring()
            found = self._search(X, y, sample_weight, groups, task if task.has_callbacks else None)
            is_finished = not found.stopped_by
            self.__dict__.pop("best_estimator_", None)  # of an earlier fit
            if self.refit:
                left = self._time_left(perf_counter() - begin, found.stopped_by)
                with warnings.catch_warnings():
                    if found.stopped_by == "interrupt":  # `_warn_of_stop` has said for how long the model is trained
                        warnings.simplefilter("ignore", ConvergenceWarning)
                    self.best_estimator_ = self._fit_best(X, y, sample_weight, left, found)
                is_finished = is_finished and bool(last_step(self.best_estimator_).converged_)
            if found.mark is not None and not is_finished:
                self._stopped_search = found.mark
            task.close()
        return self

    def _search(self, X: Given, y: Given, sample_weight: Given, groups: Given, callback: Callback | None) -> Found:
        """Score the cells, and set the fitted attributes but `best_estimator_`."""
        raise NotImplementedError

    def _check_refit(self) -> None:
        check_flag(refit=self.refit)

    def _check_scoring(self) -> None:
        self._check_refit()
        if not (self.scoring is None or callable(self.scoring) or isinstance(self.scoring, str)):
            raise ValueError(f"scoring must be None, the name of one scorer or a callable, got {shown(self.scoring)}")

    def _without_wild_tests(self, folds: list[Fold], y: AnyArray, numbers: RowIndices) -> list[Fold]:
        """The folds of a regression with robust losses, without wild targets among test rows unless a scorer is given.

        It warns of these rows, which are trained on. `numbers` are those of the rows of positive weight.
        """
        wild = numbers[wild_rows(y[numbers])]
        if not len(wild):
            return folds
        if self.scoring is not None:
            warn_of_wild_targets(y[numbers], numbers, "Drop them if they are errors")
            return folds
        advice = "They are trained on, but not scored: drop them if they are errors, or give scoring='r2' to score them"
        warn_of_wild_targets(y[numbers], numbers, advice)
        left = [(train, test[~np.isin(test, wild)]) for train, test in folds]
        return [(train, test) for train, test in left if len(test)]

    def _find_scorer(self, prototype: Model, y: AnyArray, folds: list[Fold], weights: Vector | None) -> Any:
        return find_scorer(prototype, self._scoring_of(prototype, folds, weights), y)

    def _make_score(self, scorer: Any, X: Given, y: AnyArray, weights: Vector | None) -> Score:
        is_weighted = weights is not None and takes_weights(scorer)
        (X,) = indexable(X)

        def score_of(rows: RowIndices) -> Callable[[Any], float]:
            rows = rows if weights is None else rows[weights[rows] > 0]  # a row of weight 0 is one that is not there
            test = _safe_indexing(X, rows), y[rows]
            how = {"sample_weight": weights[rows]} if is_weighted and weights is not None else {}
            return lambda model: self._checked_score(scorer, model, *test, **how)

        return score_of

    def _scoring_of(self, prototype: Model, folds: list[Fold], weights: Vector | None) -> Any:
        """`scoring`; if none is given minus the pinball loss of quantiles, or the absolute error in folds of a row."""
        if self.scoring is None and getattr(prototype, "loss", None) == "quantile":
            return make_scorer(pinball_loss, greater_is_better=False, quantile=prototype.quantile)
        sizes = [len(test) if weights is None else int(np.count_nonzero(weights[test])) for _, test in folds]
        if self.scoring is not None or not is_regressor(prototype) or min(sizes) != 1:
            return self.scoring
        warn_user(
            f"cv has folds of one test row ({sizes.count(1)} of {len(sizes)}), and R2 needs two: scores are minus the "
            "mean absolute error. Give fewer folds for R2, or scoring for another score",
            UserWarning,
        )
        return "neg_mean_absolute_error"

    def _checked_score(self, scorer: Callable[..., Any], *args: Any, **how: Any) -> float:
        """The score; a ValueError if it is no number, or needs probabilities."""
        try:
            value = scorer(*args, **how)
        except AttributeError as error:
            if "predict_proba" not in str(error):
                raise
            raise ValueError(
                f"scoring={self.scoring!r} needs probabilities, which these models do not have: choose a scorer of "
                "labels or of decision values"
            ) from error
        if not np.isscalar(value) or isinstance(value, str):
            raise ValueError(f"scoring must return a number, got {value!r}")
        return float(value)  # type: ignore[arg-type]


class BestClassifier(Classifier, BestEstimator):
    """Base of classifiers among them, with `decision_function`."""

    @needs_refit
    def decision_function(self, X: ArrayLike) -> Vector:
        """Decision values of `best_estimator_`: of a dask collection a lazy array, as `predict`."""
        check_is_fitted(self)
        return cast(Vector, self.best_estimator_.decision_function(X))


def find_scorer(estimator: Model, scoring: Given, y: AnyArray) -> Callable[..., Any]:
    """scikit-learn's scorer. Where one of a positive class is named, and no label is 1, that is the second of two."""
    scorer: Callable[..., Any] = check_scoring(estimator, scoring=scoring)
    if isinstance(scoring, str) and is_classifier(estimator):
        classes, how = np.unique(y).tolist(), getattr(scorer, "_kwargs", {})
        takes = "pos_label" in inspect.signature(getattr(scorer, "_score_func", len)).parameters
        if takes and len(classes) == 2 and 1 not in classes and how.get("average", "binary") == "binary":
            how.setdefault("pos_label", classes[1])
    return scorer


def explain_nan(score: Callable[[Any], float], model: Model, place: str) -> ValueError:
    """The error of a score that is NaN: where (a fold of a cell), why (by the scorer's warnings), and what helps."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        score(model)
    reasons = "; ".join(dict.fromkeys(str(w.message).strip().rstrip(".") for w in caught))
    reasons = reasons or "the scorer gives no reason"
    remedy = "give a cv whose test rows have what the score needs (fewer folds, shuffled rows, all classes in each)"
    return ValueError(f"scoring gave NaN in {place}: {reasons}. Either {remedy}, or another scoring")


def try_score(score: Callable[[Any], float], model: Model) -> None:
    """Call a scorer for the errors that it raises, on a machine of few rows: neither its warnings nor NaN count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score(model)


def score_or_nan(score: Callable[[Any], float], model: Model) -> float:
    """The score of a machine that scorers may not expect; NaN where they refuse it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return score(model)
        except ValueError:
            return math.nan


def takes_weights(scorer: Callable[..., Any]) -> bool:
    """Whether a scorer has the parameter `sample_weight`, or takes any; scikit-learn's do."""
    parameters = inspect.signature(scorer).parameters
    return "sample_weight" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _folds_of(cv: Given) -> Any:
    """None, a number of folds or a splitter as they are; otherwise the pairs of training and test rows."""
    is_number = isinstance(cv, Integral) and not isinstance(cv, bool)
    if cv is None or is_number or (hasattr(cv, "split") and not isinstance(cv, str | bytes)):
        return cv
    try:
        return [(train, test) for train, test in cv]
    except (TypeError, ValueError):
        reason = f"cv must be None, a number of folds, a splitter or pairs of rows, got {shown(cv)}"
        raise ValueError(reason) from None


def make_splits(cv: Given, y: AnyArray, groups: Given, *, classifier: bool, random_state: Given = None) -> list[Fold]:
    """The numbers of the training and the test rows of each fold, at least one of each; `cv` may also give masks.

    None are five folds, stratified ones of classes, of rows in a random order.
    """
    rows = np.arange(len(y))

    def numbers(chosen: Any) -> RowIndices:
        try:
            return rows[np.asarray(chosen)] if len(chosen) else rows[:0]
        except IndexError as error:
            raise ValueError(f"cv must give numbers of rows, or masks of them, for {len(y)} rows: {error}") from error

    splitter = check_cv(_folds_of(cv), y, classifier=classifier)
    if cv is None:
        splitter.shuffle, splitter.random_state = True, int(make_rng(random_state, seed_of_none=0).integers(2**31))
    splits = [(numbers(train), numbers(test)) for train, test in splitter.split(np.zeros(len(y)), y, groups)]
    if not splits or not all(len(train) and len(test) for train, test in splits):
        raise ValueError(f"cv must give folds with training rows and test rows, got {shown(cv)}")
    return splits


def cv_results(cells: Sequence[dict[str, Any]], scores: Matrix, sizes: Vector | None = None) -> dict[str, Any]:
    """`cv_results_` as of scikit-learn's `GridSearchCV`, from the cells' parameters and scores (n_folds, n_cells).

    With `sizes` (n_cells,), the numbers of held-out rows, NaN are folds that a cell was not scored in, and a cell of
    more held-out rows ranks before one of fewer.
    """
    has_scores = ~np.isnan(scores).all(axis=0)
    if sizes is None:
        mean, deviation, order = scores.mean(axis=0), scores.std(axis=0), np.zeros(scores.shape[1])
    else:
        known = np.where(has_scores, scores, 0.0)
        mean, deviation = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
        order = np.searchsorted(np.unique(sizes), sizes).astype(np.float64)
    keys = np.lexsort((-np.where(np.isnan(mean), -np.inf, mean), -order))
    place = np.empty(len(keys), np.intp)
    place[keys] = np.arange(len(keys))
    ranked = np.where(np.isnan(mean), np.inf, -mean) if sizes is None else place.astype(np.float64)
    return {
        **{f"param_{name}": np.array([cell[name] for cell in cells]) for name in cells[0]},
        "params": list(cells),
        **{f"split{k}_test_score": scores[k] for k in range(len(scores))},
        "mean_test_score": mean,
        "std_test_score": deviation,
        "rank_test_score": rankdata(ranked, method="min").astype(np.int32),
        **({} if sizes is None else {"n_test_rows": sizes.astype(np.int64)}),
    }
