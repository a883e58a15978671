"""`is_fitted`, `unwrap`, `machines_in`: the machines in searches, frozen models, pipelines, calibrated classifiers."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .._types import Model


def unwrap(model: Model) -> Model:
    """The best estimator of a fitted search, or the one that is frozen; any other model itself."""
    while isinstance(model, FrozenEstimator) or hasattr(model, "best_estimator_"):
        model = model.estimator if isinstance(model, FrozenEstimator) else model.best_estimator_
    return model


def machines_in(model: Model) -> list[Any]:
    """The machines that predict: the last step of a pipeline, or all members of a calibrated classifier."""
    model = unwrap(model)
    if hasattr(model, "calibrated_classifiers_"):
        return [machine for member in model.calibrated_classifiers_ for machine in machines_in(member.estimator)]
    return machines_in(model.steps[-1][1]) if hasattr(model, "steps") else [model]


def is_fitted(model: Model) -> bool:
    """Whether scikit-learn calls a model fitted: also one that needs no fit, such as a `HashingVectorizer`."""
    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError):  # TypeError of what is no estimator, a class among them
        return False
    return True
