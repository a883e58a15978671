"""Every parameter takes the values that its docstring names, and refuses all others with a ValueError that names it."""

import itertools
import math
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from every_estimator import ESTIMATORS, SEARCHES, answer, name_of
from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    DCSVMRegressorCV,
    OCASClassifier,
    OCASRanker,
    OCASRegressor,
    TwoStepKernelKMeans,
)

GRIDS = ("Cs", "gammas", "epsilons", "cv", "scoring")  # take lists and objects too
FEW = {"kernels": "rbf", "relevance": False, "search": "exact"}  # the quickest search of kernels
SMALL = [clone(one).set_params(**{name: FEW[name] for name in FEW if hasattr(one, name)}) for one in SEARCHES]
ODD: list[Any] = [np.nan, np.inf, "x", np.array(1.0), np.array([1, 2]), (1,), {"a": 1}, 1 + 2j, object()]
ODD += [0, -1, -1.5, 1, 4097, True, None, 1e308, 10**30, np.float32(0.5), np.int64(3), np.bool_(True), np.str_("rbf")]
MORE: list[Any] = [-np.inf, "", np.array([1.0]), [1], np.array([1.5, 2.5]), np.array([]), {1, 2}, 0.0, False]
MORE += [Decimal("0.5"), Fraction(1, 2)]
REFUSED = object()
Rule = Callable[[Any], Any]  # from a value, of Python's own types, to what it means, or REFUSED


def number(*, least: float = -np.inf, above: float = -np.inf, most: float = np.inf, below: float = np.inf) -> Rule:
    def rule(value: Any) -> Any:
        is_one = type(value) in (int, float) and math.isfinite(value)
        return float(value) if is_one and least <= value <= most and above < value < below else REFUSED

    return rule


def integer(least: int, most: int = sys.maxsize) -> Rule:
    return lambda value: value if type(value) is int and least <= value <= most else REFUSED


def among(*choices: Any) -> Rule:
    return lambda value: value if any(type(value) is type(one) and value == one for one in choices) else REFUSED


FLAG, NONE, AUTO = among(True, False), among(None), among("auto")
DECLARED: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(("C", "tol"), (number(above=0),)),
    "gamma": (number(above=0, most=1e98),),  # larger ones overflow with these rows
    **dict.fromkeys(("damping", "epsilon", "alpha"), (number(least=0),)),
    **dict.fromkeys(("quantile", "validation_fraction"), (number(above=0, below=1),)),
    **dict.fromkeys(("mu", "nu"), (number(above=0, most=1),)),
    "coef0": (number(),),
    "lam": (number(least=1e-30), NONE),
    "max_time": (number(least=0), NONE),
    "memory_budget": (number(least=1), NONE),
    "prediction_cost": (number(least=4),),
    **dict.fromkeys(("degree", "n_levels", "n_pseudo_landmarks"), (integer(0),)),
    **dict.fromkeys(("n_clusters", "n_epochs", "n_iter", "n_landmarks", "n_sample", "n_trees"), (integer(1),)),
    **dict.fromkeys(("branching", "budget", "n_rows"), (integer(2),)),
    "table_size": (integer(2, 4096),),
    "max_iter": (integer(1),),
    "n_jobs": (integer(-sys.maxsize, -1), integer(1, 4096), NONE),
    "random_state": (integer(0, 2**32 - 1), NONE),
    "stop_level": (integer(0, 62),),
    "verbose": (integer(0), FLAG),
    **dict.fromkeys(("average", "break_ties", "early_stopping", "exhaustive", "fit_intercept"), (FLAG,)),
    **dict.fromkeys(("line_search", "linear_term", "refit", "relevance", "shuffle", "warm_start"), (FLAG,)),
    **dict.fromkeys(("acceleration", "class_weight", "landmark_weights", "pseudo"), (NONE,)),
    **dict.fromkeys(("kernel", "kernels"), (among("rbf"),)),
    **dict.fromkeys(("decision_function_shape", "landmarks", "loss", "maintenance", "merge"), ()),
    **dict.fromkeys(("multi_class", "partition", "search", "target"), ()),
}
DUAL = (DCSVMClassifier, DCSVMRegressor, DCOneClassSVM, DCSVMClassifierCV, DCSVMRegressorCV)
SUMMED = (OCASClassifier, OCASRegressor, OCASRanker, BSGDClassifier)  # C times the sum of the losses must be finite
SMALL_C = number(above=0, most=1e98)


def predictions_of(estimator: Any) -> Any:
    """Predictions of the estimator, fitted to 40 rows; of a transformer without any their coordinates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator.fit(X, Y)
        if getattr(model, "refit", True) is False:
            return model.best_score_
        return answer(model, X)


X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)


def names_of(estimator: Any) -> list[str]:
    return [name for name in estimator.get_params() if name not in GRIDS]


def rules_of(estimator: Any, name: str) -> tuple[Rule, ...]:
    if name == "max_iter" and isinstance(estimator, DUAL):
        return (integer(-1),)  # -1: no limit
    if name == "n_clusters" and isinstance(estimator, TwoStepKernelKMeans):
        return (integer(1, len(X)),)
    return (SMALL_C,) if name == "C" and isinstance(estimator, SUMMED) else DECLARED[name]


def meaning_of(value: Any, rules: tuple[Rule, ...]) -> Any:
    """What an odd value means by one of these rules, or REFUSED."""
    plain = value.item() if isinstance(value, np.generic) else value
    return next((meaning for rule in rules if (meaning := rule(plain)) is not REFUSED), REFUSED)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *SMALL], ids=name_of)
@pytest.mark.parametrize("values", [ODD, pytest.param(MORE, marks=pytest.mark.slow)], ids=["odd", "more"])
def test_an_odd_value_is_refused_by_name_or_passes_the_checks(values: list[Any], estimator: Any) -> None:
    for name in names_of(estimator):
        model, rules = clone(estimator), rules_of(estimator, name)
        for value in values:
            setattr(model, name, value)
            if meaning_of(value, rules) is not REFUSED:
                getattr(model, "_check_parameters", lambda: None)()
                continue
            before = set(vars(model))
            with pytest.raises(ValueError, match=rf"\b{name}\b") as caught:
                predictions_of(model)
            message = str(caught.value)
            assert "got" in message or f"{name}={value!r}" in message or "lacks, ['a']" in message
            assert "np." not in message
            assert set(vars(model)) == before


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [*ESTIMATORS, *SMALL], ids=name_of)
def test_an_odd_value_that_passes_the_checks_is_taken_as_what_it_means(estimator: Any) -> None:
    for name, value in itertools.product(names_of(estimator), ODD + MORE):
        if (meaning := meaning_of(value, rules_of(estimator, name))) is not REFUSED:
            found = predictions_of(clone(estimator).set_params(**{name: value}))
            if isinstance(value, np.generic) and name != "max_time":  # a time stops a fit anywhere
                same = predictions_of(clone(estimator).set_params(**{name: meaning}))
                np.testing.assert_array_equal(found, same, f"{name}={value!r}")


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *SMALL], ids=name_of)
def test_scalars_of_numpy_are_taken(estimator: Any) -> None:
    own: dict[type, Any] = {bool: np.bool_, int: np.int64, float: np.float64, str: np.str_}
    values = {name: estimator.get_params()[name] for name in names_of(estimator) if name != "random_state"}
    scalars = {name: own[type(value)](value) for name, value in values.items() if type(value) in own}
    found = predictions_of(clone(estimator).set_params(**scalars))
    np.testing.assert_array_equal(found, predictions_of(clone(estimator)))


def test_a_fraction_is_refused_with_what_to_pass() -> None:
    with pytest.raises(ValueError, match=r"C must be a finite number, got Fraction\(1, 2\): use float\(\.\.\.\)"):
        predictions_of(DCSVMClassifier(C=Fraction(1, 2)))


@pytest.mark.parametrize("search", SEARCHES, ids=name_of)
def test_folds_that_are_none_are_named(search: Any) -> None:
    for cv in (Fraction(5), np.array([1, 2]), {1, 2}, {"a": 1}, "five", b"x", True):
        with pytest.raises(ValueError, match="cv must be None, a number of folds, a splitter or pairs of rows, got"):
            predictions_of(clone(search).set_params(cv=cv))
