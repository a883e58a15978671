"""Intervals of 90 %: coverage, width and pinball loss of DCSVMRegressor's beside those of gradient boosting.

Parameters are chosen once on 1,000 rows of a set: ours by DCSVMRegressorCV, boosting's by a grid of 4 cells for each
quantile. Every split draws from the others 1,000 rows to train on, 1,000 to conformalise, and up to 2,000 to test. Of
several sets the target is a column. `coverage` and `width`, in units of the spread of y, are means over the splits,
`least` and `most` the coverage of single ones; `pinball` is the mean loss of the quantiles .05, .5 and .95. Quantiles
that are not conformalised, and cross-conformal residuals, have both thousands to train on; so have
residuals of a search, the out-of-fold ones of its five folds (`oof_prediction_`), over nine cells around those chosen.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

from measuring.experiment import Experiment, Run
from widemargin import DCSVMRegressorCV
from widemargin.datasets import load_benchmark

QUANTILES = [0.05, 0.95, 0.5]  # in the order of MAPIE
ROWS, TEST_ROWS = 1000, 2000  # to choose, train and conformalise; to test
GRID = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [7, 31]}
COLUMNS = {"covtype_20k": 0, "pendigits": 15, "codrna": 0}  # that are the target


class Split(NamedTuple):
    """Rows to train on, rows to conformalise, and test rows, each X and y."""

    train: tuple[Any, Any]
    held_back: tuple[Any, Any]
    test: tuple[Any, Any]

    @property
    def both(self) -> tuple[Any, Any]:
        """All rows but those to test."""
        return tuple(map(np.concatenate, zip(self.train, self.held_back, strict=True)))  # type: ignore[return-value]


class Column(RegressorMixin, BaseEstimator):
    """One of the quantiles of a fitted model."""

    def __init__(self, model: Any, k: int) -> None:
        self.model = model
        self.k = k
        self.fitted_ = True

    def fit(self, X: Any, y: Any) -> Column:
        """It is fitted; MAPIE wants this."""
        return self

    def predict(self, X: Any) -> Any:
        """That column of the predictions."""
        return self.model.predict(X)[:, self.k]


class Boosting(RegressorMixin, BaseEstimator):
    """A boosted ensemble for each quantile."""

    def __init__(self, ensembles: Sequence[Any]) -> None:
        self.ensembles = ensembles

    def fit(self, X: Any, y: Any) -> Boosting:
        """Fit them one by one."""
        self.fitted_ = [clone(one).fit(X, y) for one in self.ensembles]
        return self

    def predict(self, X: Any) -> Any:
        """A column for each quantile."""
        return np.column_stack([one.predict(X) for one in self.fitted_])


def generate(name: str) -> tuple[Any, Any]:
    """Rows and targets of a set of scikit-learn's, or of targets whose noise varies from row to row."""
    if name != "noise":
        return getattr(datasets, f"make_{name}")(8000, noise=1.0, random_state=0)  # type: ignore[no-any-return]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 4))
    return X, np.sin(2 * X[:, 0]) + (0.1 + np.abs(X[:, 1])) * rng.normal(size=8000)


def load(name: str) -> tuple[Any, Any]:
    """Standardised rows in a random order."""
    if name in ("friedman1", "friedman2", "friedman3", "noise"):
        X, y = generate(name)
    else:
        X, y, _, _ = load_benchmark(name)
        if name in COLUMNS:
            X, y = np.delete(X, COLUMNS[name], axis=1), X[:, COLUMNS[name]].astype(np.float64)
    order = np.random.default_rng(0).permutation(len(y))
    return StandardScaler().fit_transform(X[order]).astype(np.float32), (y[order] - y.mean()) / y.std()


def choose(X: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Estimators with their parameters: our quantiles and epsilon-regression, a search around it, boosted quantiles."""
    own = DCSVMRegressorCV(loss="quantile", quantile=QUANTILES, relevance=False).fit(X, y).best_estimator_
    values, factors = DCSVMRegressorCV(relevance=False).fit(X, y), np.array([0.25, 1.0, 4.0])
    cells = {"Cs": values.C_ * factors, "gammas": values.gamma_ * factors, "epsilons": [values.epsilon_]}
    around = DCSVMRegressorCV(**cells, kernels=values.kernel_, relevance=False)
    boosted = []
    for q in QUANTILES:
        ensemble = HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=0)
        scorer = make_scorer(mean_pinball_loss, greater_is_better=False, alpha=q)
        cv = KFold(3, shuffle=True, random_state=0)
        search = GridSearchCV(ensemble, GRID, scoring=scorer, cv=cv, refit=False).fit(X, y)
        boosted.append(ensemble.set_params(**search.best_params_))
    return own, values.best_estimator_, around, Boosting(boosted)


def quantiles(model: Any, split: Split) -> tuple[Any, Any]:
    """Intervals (n, 2) between two quantiles, and the values (n, 3) of all."""
    values = model.fit(*split.both).predict(split.test[0])
    return np.sort(values[:, :2], axis=1), values


def conformal_quantiles(model: Any, split: Split) -> tuple[Any, Any]:
    """Intervals between quantiles, widened or narrowed by how far held-back rows are outside."""
    from mapie.regression import ConformalizedQuantileRegressor

    fitted = model.fit(*split.train)
    columns = [Column(fitted, k) for k in range(3)]
    wrapped = ConformalizedQuantileRegressor(columns, confidence_level=0.9, prefit=True)
    return wrapped.conformalize(*split.held_back).predict_interval(split.test[0])[1][:, :, 0], None


def split_conformal(model: Any, split: Split) -> tuple[Any, Any]:
    """Intervals of one width, from residuals of held-back rows."""
    from mapie.regression import SplitConformalRegressor

    wrapped = SplitConformalRegressor(model.fit(*split.train), confidence_level=0.9, prefit=True)
    return wrapped.conformalize(*split.held_back).predict_interval(split.test[0])[1][:, :, 0], None


def cross_conformal(model: Any, split: Split) -> tuple[Any, Any]:
    """Intervals from residuals of five folds, around the predictions of the folds' models."""
    from mapie.regression import CrossConformalRegressor

    wrapped = CrossConformalRegressor(model, confidence_level=0.9, cv=5, method="plus")
    return wrapped.fit_conformalize(*split.both).predict_interval(split.test[0])[1][:, :, 0], None


def residuals_of_search(model: Any, split: Split) -> tuple[Any, Any]:
    """Intervals of one width around the predictions of a search, from its out-of-fold residuals."""
    X, y = split.both
    errors = np.abs(y - model.fit(X, y).oof_prediction_)
    width = np.nanquantile(errors, 0.9 * (1 + 1 / len(y)), method="higher")
    return model.predict(split.test[0])[:, None] + np.array([-width, width]), None


def measure(name: str, run: Run) -> list[dict[str, Any]]:
    """A row for each way to intervals."""
    warnings.simplefilter("ignore")
    X, y = load(name)
    own, values, around, boosted = choose(X[:ROWS], y[:ROWS])
    early = clone(own).set_params(stop_level=1)
    ways: dict[str, tuple[Callable[[Any, Split], tuple[Any, Any]], Any]] = {
        "quantiles": (quantiles, own),
        "quantiles, boosting": (quantiles, boosted),
        "conformal quantiles": (conformal_quantiles, own),
        "conformal quantiles, early": (conformal_quantiles, early),
        "conformal quantiles, boosting": (conformal_quantiles, boosted),
        "split conformal": (split_conformal, values),
        "cross-conformal": (cross_conformal, values),
        "residuals of a search": (residuals_of_search, around),
    }
    found: dict[str, list[tuple[float, ...]]] = {way: [] for way in ways}
    for seed in range(run.repeats):
        rows = ROWS + np.random.default_rng(seed).permutation(len(y) - ROWS)[: 2 * ROWS + TEST_ROWS]
        split = Split(*((X[part], y[part]) for part in np.split(rows, [ROWS, 2 * ROWS])))
        truth = split.test[1]
        for way, (intervals, model) in ways.items():
            begin = time.process_time()
            (low, high), predicted = (part if k else part.T for k, part in enumerate(intervals(clone(model), split)))
            seconds, loss = time.process_time() - begin, np.nan
            if predicted is not None:
                losses = [mean_pinball_loss(truth, f, alpha=q) for f, q in zip(predicted.T, QUANTILES, strict=True)]
                loss = float(np.mean(losses))
            found[way].append(
                (float(np.mean((low <= truth) & (truth <= high))), float(np.mean(high - low)), loss, seconds)
            )
    return [summary(name, way, np.array(of_way)) for way, of_way in found.items()]


def summary(name: str, way: str, found: Any) -> dict[str, Any]:
    """Means over the splits."""
    (coverage, width, pinball, _), seconds = found.mean(axis=0), float(np.median(found[:, 3]))
    row = {"set": name, "intervals": way, "coverage": coverage, "least": found[:, 0].min(), "most": found[:, 0].max()}
    return {**row, "width": width, "pinball": None if np.isnan(pinball) else pinball, "processor_seconds": seconds}


SETS = ("cadata", "census_house8L", "cpusmall", *COLUMNS, "friedman1", "friedman2", "friedman3", "noise")

INTERVALS = Experiment(
    "intervals", SETS, ("set", "intervals"), measure, seconds=300.0, settings={"repeats": 10}, quick={"repeats": 1}
)
