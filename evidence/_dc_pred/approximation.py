"""Figure 1: how close C W C' comes to the kernel matrix, at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from evidence._dc_pred.cost import Linear, costs_and
from evidence._dc_pred.machines import compile_all
from evidence._dc_pred.problems import load_classes
from measuring.experiment import Experiment, Row, Run, panels_of
from measuring.tables import by
from widemargin._native import nystroem
from widemargin.kernels.functions import make_kernel
from widemargin.models.nystroem_tree import NystroemForest, NystroemTree
from widemargin.nystroem.features import LandmarkFeatures, nystroem_factor, stack_leaves
from widemargin.nystroem.landmarks import select_landmarks
from widemargin.nystroem.pseudo_landmarks import add_by_triangle_rule, add_products, landmark_features
from widemargin.partition.hierarchy import Hierarchy

_LANDMARKS = (2, 5, 10, 20, 30)  # as in the paper
_ROWS = 3000
_GAMMA = {"usps": 0.02, "mnist": 0.02, "patches": 1.0}
PLAIN, TRIANGLE, PRODUCTS = "landmarks alone", "+ triangle", "+ polynomial"
TWO_STEPS = "+ regression, two steps"  # a polynomial of degree 2 estimates each of 4 m points' values, section 4.2
_AS_MANY = "+ triangle, as many as products"
_EACH_BOUND = "+ triangle, as many as products, bound per point"
_POINTS = {
    TRIANGLE: lambda m: m,
    "+ triangle, 4 m": lambda m: 4 * m,
    _AS_MANY: lambda m: m * (m + 1) // 2,
    _EACH_BOUND: lambda m: m * (m + 1) // 2,
}


def _features(how: str, landmarks: LandmarkFeatures, X: NDArray[np.float32]) -> LandmarkFeatures:
    """m, 4 m or m (m + 1) / 2 pseudo-landmarks by the triangle rule; or all products, m (m + 1) / 2."""
    m = landmarks.landmarks.shape[1]
    if how in _POINTS:
        return add_by_triangle_rule(landmarks, _pseudo_landmarks(how, m, X), X)
    has_products = how in (PRODUCTS, TWO_STEPS)
    return add_products(landmarks, m * (m + 1) // 2, np.random.default_rng(1)) if has_products else landmarks


def _pseudo_landmarks(how: str, m: int, X: NDArray[np.float32]) -> NDArray[np.float32]:
    return select_landmarks(X, _POINTS[how](m), np.random.default_rng(1), method="uniform")


def _known_values(how: str, features: LandmarkFeatures, X: NDArray[np.float32], gamma: float) -> NDArray[Any]:
    """C (n, m + p): values with landmarks, and estimates, "per point" of each point by the bound that comes closer.

    The leaf of a fitted machine has one bound for all points: the one that comes closer in sum.
    """
    C = features.evaluate(X)
    if how == TWO_STEPS:
        m = features.landmarks.shape[1]
        points = select_landmarks(X, 4 * m, np.random.default_rng(1), method="uniform")
        exact = rbf_kernel(X, points, gamma=gamma)
        fitted = np.linalg.lstsq(C[:, m:], exact, rcond=1e-6)[0]
        return np.hstack([C[:, :m], C[:, m:] @ fitted])
    if how == _EACH_BOUND:
        m = features.landmarks.shape[1]
        exact = rbf_kernel(X, _pseudo_landmarks(how, m, X), gamma=gamma)
        other = replace(features, bounds=nystroem.LOWER + nystroem.UPPER - features.bounds).evaluate(X)
        is_closer = np.square(other[:, m:] - exact).sum(axis=0) < np.square(C[:, m:] - exact).sum(axis=0)
        C[:, m:][:, is_closer] = other[:, m:][:, is_closer]
    return C


def _machine(features: LandmarkFeatures) -> NystroemForest:
    """A machine of one leaf with some coefficients: for its time."""
    table, (place,), ((first, second),) = stack_leaves([features])
    m, d = features.landmarks.shape[1:]
    products = np.zeros((1, 1, m, m) if len(first) else (1, 1, 0, 0), np.float32)
    products[0, 0, first, second] = 1.0
    nowhere = np.empty((0, 0), np.int32)
    tree = Hierarchy(np.empty((0, 0, d), np.float32), np.empty(0, np.int32), nowhere)
    coef = np.ones((1, 1, len(place)))
    return NystroemForest(
        [NystroemTree(tree, table, coef, products, np.empty((1, 0, d), np.float32), np.zeros((1, 1)))]
    )


def _figure1(name: str, options: Run) -> Iterator[list[Row]]:
    """One cell a set: the unit of cost is measured with its machines."""
    if not options.wants(set=name):
        return
    compile_all()
    problem = load_classes(name, options.rows)
    scale = np.float32(1 / 255 if name == "mnist" else 1)
    X, gamma = problem.X[:_ROWS] * scale, _GAMMA[name]
    G, linear = rbf_kernel(X, gamma=gamma), Linear(X)
    kernel = make_kernel("rbf", gamma=gamma, degree=3, coef0=0.0)
    rows, decide = [], []
    for m in _LANDMARKS:
        landmarks = landmark_features(kernel, select_landmarks(X, m, np.random.default_rng(0)))
        for how in (PLAIN, *_POINTS, PRODUCTS, TWO_STEPS):
            if options.asks(how):
                features = _features(how, landmarks, X)
                C = _known_values(how, features, X, gamma)
                Z = C @ nystroem_factor(C, G)
                forest = _machine(features)
                error = float(np.linalg.norm(G - Z @ Z.T) / np.linalg.norm(G))
                row = {"set": name, "machine": how, "m": m, "error": error}
                more = 2 * m * m * (m + 1) / X.shape[1] if how == TWO_STEPS else 0.0  # the polynomials themselves
                rows.append(row | {"operations": forest.n_operations + more})
                decide.append(forest.decision_values)
    yield [row | cost for row, cost in zip(rows, linear.multiples(decide), strict=True)]


def gains(rows: Sequence[Row]) -> list[Row]:
    """Return error of the plain approximation over that with pseudo-landmarks, at the latter's measured, counted cost.

    The plain curve is interpolated, on logarithms; costs that it does not reach are left out.
    """
    found = []
    for _, mine in by(rows, "set").items():
        plain = [row for row in mine if row["machine"] == PLAIN]
        for row in mine:
            ratios = {
                name: ratio
                for name, cost in (("times_closer", "multiple"), ("times_closer_counted", "operations"))
                if (ratio := _times_closer(row, plain, cost)) is not None
            }
            if row["machine"] != PLAIN and ratios:
                found.append({key: row[key] for key in ("set", "machine", "m", "multiple", "operations")} | ratios)
    return found


def _times_closer(row: Row, plain: Sequence[Row], cost: str) -> float | None:
    x, y = np.log(np.array(sorted((other[cost], other["error"]) for other in plain)).T)
    at = np.log(row[cost])
    return float(np.exp(np.interp(at, x, y)) / row["error"]) if x[0] <= at <= x[-1] else None


FIGURE1 = Experiment(  # Figure 1: kernel error against prediction cost
    "dc_pred/figure1",
    ("usps", "mnist"),
    ("set",),
    _figure1,
    settings={"rows": None},
    parts=True,
    seconds=70.0,
    tables=lambda rows: {"figure1_gains": gains(rows)},
    panels=lambda rows: panels_of(rows, ("set",), ("machine",), *costs_and("error", "relative kernel error", "xy")),
)
