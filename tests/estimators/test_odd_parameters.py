"""Invalid parameters: every one is answered with a ValueError that names it, or taken as the number it is."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from every_estimator import ESTIMATORS, SEARCHES, name_of
from widemargin import DCSVMClassifier, LandmarkNystroem, TwoStepKernelKMeans

GRIDS = ("Cs", "gammas", "epsilons", "cv", "scoring")  # take lists and objects too
CASES = [(one, name) for one in [*ESTIMATORS, *SEARCHES] for name in one.get_params() if name not in GRIDS]
NEVER: list[Any] = [np.nan, -np.inf, "x", "", np.array(1.0), np.array([1.0]), [1], (1,), {"a": 1}, 1 + 2j, object()]
NEVER += [np.array([1, 2]), np.array([1.5, 2.5]), np.array([]), {1, 2}, Decimal("0.5"), Fraction(1, 2)]
ODD: list[Any] = [np.inf, 0, 0.0, -1, -1.5, True, False, None, 1e308, 10**30]
SCALARS: list[Any] = [np.float32(0.5), np.float64(0.5), np.int32(3), np.int64(3), np.bool_(True), np.str_("rbf")]


def fit(estimator: Any) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (
            estimator.fit(X) if isinstance(estimator, LandmarkNystroem | TwoStepKernelKMeans) else estimator.fit(X, y)
        )


@pytest.mark.parametrize(("estimator", "name"), CASES, ids=lambda v: v if isinstance(v, str) else name_of(v))
def test_what_can_never_be_is_named(estimator: Any, name: str) -> None:
    for value in NEVER:
        with pytest.raises(ValueError, match=name) as caught:
            fit(clone(estimator).set_params(**{name: value}))
        assert "np." not in str(caught.value)


@pytest.mark.parametrize(("estimator", "name"), CASES, ids=lambda v: v if isinstance(v, str) else name_of(v))
def test_an_odd_value_is_taken_or_named(estimator: Any, name: str) -> None:
    for value in [*ODD, *SCALARS]:
        message = name
        try:
            fit(clone(estimator).set_params(**{name: value}))
        except ValueError as error:
            message = str(error)
        assert name in message
        assert "np." not in message


@pytest.mark.parametrize(("estimator", "name"), CASES, ids=lambda v: v if isinstance(v, str) else name_of(v))
def test_a_scalar_of_numpy_is_the_number_it_is(estimator: Any, name: str) -> None:
    default = estimator.get_params()[name]
    own: dict[type, Any] = {bool: np.bool_, int: np.int64, float: np.float32, str: np.str_}
    if type(default) in own and name != "random_state":
        fit(clone(estimator).set_params(**{name: own[type(default)](default)}))


def test_a_fraction_is_refused_with_what_to_pass() -> None:
    with pytest.raises(ValueError, match=r"C must be a finite number, got Fraction\(1, 2\): use float\(\.\.\.\)"):
        fit(DCSVMClassifier(C=Fraction(1, 2)))


@pytest.mark.parametrize("search", SEARCHES, ids=name_of)
@pytest.mark.parametrize("cv", [Fraction(5), np.array([1, 2]), {1, 2}, {"a": 1}, "five", b"x", True], ids=str)
def test_folds_that_are_none_are_named(search: Any, cv: Any) -> None:
    with pytest.raises(ValueError, match="cv must be None, a number of folds, a splitter or pairs of rows, got"):
        fit(clone(search).set_params(cv=cv))
