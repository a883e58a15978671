"""What every estimator checks at its door, and the promise that a failed fit changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, check_scalar

Vector = NDArray[np.float64]


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Restore the estimator's attributes if the block fails: nothing is left half-fitted."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def check_positive(**values: Any) -> None:
    """Each value must be a number above 0; the error names it."""
    for name, value in values.items():
        check_scalar(value, name, Real, min_val=0, include_boundaries="neither")
        check_finite(**{name: value})


def check_finite(**values: Any) -> None:
    """Each value must be a finite number."""
    for name, value in values.items():
        check_scalar(value, name, Real)
        if not np.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value!r}")


def check_integer(name: str, value: Any, least: int) -> None:
    """The value must be an integer, at least `least`."""
    check_scalar(value, name, Integral, min_val=least)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """The value must be one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}")


def check_weights(sample_weight: Any, X: Any) -> Vector:
    """Sample weights as float64 of shape (n,): ones by default, none negative, not all zero."""
    weights: Vector = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if np.any(weights < 0):
        raise ValueError(f"sample_weight must not be negative, got {weights.min():g}")
    if not np.any(weights > 0):
        raise ValueError("sample_weight must have at least one positive value, all are zero")
    return weights


def class_factors(class_weight: Any, classes: NDArray[Any], y: NDArray[np.integer], weights: Vector) -> Vector:
    """The factor of C for each class: 1, the given one, or "balanced" by total sample weight.

    Parameters
    ----------
    class_weight : None, "balanced" or mapping from label to weight
    classes : ndarray of shape (k,)
    y : ndarray of shape (n,), int
        Class numbers.
    weights : ndarray of shape (n,)
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(y, weights, minlength=len(classes))
        return weights.sum() / (len(classes) * totals)
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}")
    unknown = set(class_weight) - set(classes.tolist())
    if unknown:
        raise ValueError(f"class_weight names labels that y does not have: {sorted(unknown, key=str)}")
    return np.array([_class_factor(class_weight, label) for label in classes.tolist()])


def _class_factor(class_weight: Mapping[Any, float], label: Any) -> float:
    factor = float(class_weight.get(label, 1.0))
    if not factor >= 0 or not np.isfinite(factor):
        raise ValueError(f"class_weight must not be negative, got {factor!r} for label {label!r}")
    return factor
