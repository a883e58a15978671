"""Losses of linear machines the slow way: one sample at a time, or all pairs of samples."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

Vector = NDArray[np.float64]

LOSSES: dict[str, Callable[..., float]] = {
    "hinge": lambda f, y: max(0.0, 1.0 - y * f),
    "squared_hinge": lambda f, y: max(0.0, 1.0 - y * f) ** 2,
    "logistic": lambda f, y: math.log(1.0 + math.exp(-y * f)),
    "epsilon_insensitive": lambda f, y, epsilon: max(0.0, abs(y - f) - epsilon),
    "squared_epsilon_insensitive": lambda f, y, epsilon: max(0.0, abs(y - f) - epsilon) ** 2,
    "absolute": lambda f, y: abs(y - f),
    "quantile": lambda f, y, quantile: quantile * max(0.0, y - f) + (1.0 - quantile) * max(0.0, f - y),
}


def risk(loss: str, f: Vector, y: Vector, s: Vector, **parameters: float) -> float:
    """Return sum_i s_i loss(f_i, y_i)."""
    return sum(s[i] * LOSSES[loss](f[i], y[i], **parameters) for i in range(len(y)))


def objective(model: Any, X: Any, y: Any, s: Any, C: float, loss: str, **parameters: float) -> float:
    """Return 1/2 |w|^2 + C sum_i s_i loss(f(x_i), y_i) of a linear machine."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    return float(0.5 * w @ w + C * risk(loss, X @ w + b, y, s, **parameters))


def hinge_objective(model: Any, X: Any, labels: Any, C: float, s: Any = 1.0) -> float:
    """Return the sum over linear machines of 1/2 |w|^2 + C sum_i s_i max(0, 1 - y_i f(x_i)), in extended precision."""
    W = model.coef_.astype(np.longdouble)
    f = (X.toarray() if sp.issparse(X) else X).astype(np.longdouble) @ W.T + model.intercept_
    signs = np.where(labels[:, None] == model.classes_[-len(W) :], 1, -1)
    return float(0.5 * np.sum(W**2) + C * np.sum(np.reshape(s, (-1, 1)) * np.maximum(0.0, 1.0 - signs * f)))


def derivatives(loss: str, f: float, y: float, **parameters: float) -> tuple[float, float]:
    """Return the first and the second derivative in f, by central differences."""
    h = 1e-4
    below, at, above = (LOSSES[loss](f + step, y, **parameters) for step in (-h, 0.0, h))
    return (above - below) / (2 * h), (above - 2 * at + below) / h**2


def conjugate(loss: str, slope: float, y: float, **parameters: float) -> float:
    """Return max_f slope f - loss(f, y) over |f| <= 30."""
    found = minimize_scalar(
        lambda f: LOSSES[loss](f, y, **parameters) - slope * f, bounds=(-30.0, 30.0), options={"xatol": 1e-10}
    )
    return -float(found.fun)


def model_slopes(loss: str, f: Vector, f_end: Vector, y: Vector, **parameters: float) -> Vector:
    """Return loss' + loss'' (f_end - f), clipped to the slopes that the loss has."""
    slopes = []
    for start, end, target in zip(f, f_end, y, strict=True):
        first, second = derivatives(loss, start, target, **parameters)
        slope = first + second * (end - start)
        if loss == "squared_hinge":
            slope = target * min(0.0, target * slope)
        if loss == "logistic":
            slope = -target * min(max(-target * slope, 0.0), 1.0)
        slopes.append(slope)
    return np.array(slopes)


def pair_weights(y: Vector, groups: NDArray[np.int64], s: Vector) -> NDArray[np.float64]:
    """Return s_i s_j (n, n) of pairs of a group with y_i > y_j, and 0 of others."""
    return np.outer(s, s) * ((groups[:, None] == groups) & (y[:, None] > y))


def pair_risk(f: Vector, y: Vector, groups: NDArray[np.int64], s: Vector) -> float:
    """Return the sum of s_i s_j max(0, 1 - (f_i - f_j)) over pairs of a group with y_i > y_j."""
    return float(np.sum(pair_weights(y, groups, s) * np.maximum(0.0, 1.0 - (f[:, None] - f))))


def concordance(f: Vector, y: Vector, groups: NDArray[np.int64], s: Vector) -> float:
    """Return the weighted share of pairs of a group that f orders as y does; equal values count half."""
    weights, is_right = pair_weights(y, groups, s), (f[:, None] > f) + 0.5 * (f[:, None] == f)
    return float(np.sum(weights * is_right) / np.sum(weights))
