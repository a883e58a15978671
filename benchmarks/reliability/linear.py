"""Linear machines on ugly data against a QP solver: sample weights over twelve decades, columns over eight, few rows.

A case is a loss, whether weights are 10^-6 to 10^6 or 1, and whether columns are scaled by 10^-4 to 10^4. It has rows
and columns of several shapes, with and without an intercept, C from 0.01 to 10^6. Clarabel, an interior-point method of
others, solves each problem with slack variables for the losses. `worst` is the largest excess of a machine's objective
over the better of both, beyond what rounding can change and relative to that one, of the machines that claim to have
converged; `warned` counts the others, `dishonest` those whose lower bound is above a known objective, or whose
objective is not theirs. Both objectives are summed here, from weights and intercepts. `beaten` counts the problems
where Clarabel is more than tol above the machine.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import widemargin as wm
from measuring.experiment import Experiment, Row

SHAPES = (60, 55), (25, 140), (200, 20)
TOL, LIMIT = 1e-3, 5.0  # relative gap, and seconds, of a fit
ERROR, ROUNDING = 1e-6, 1e-15  # of an objective: relative error, and rounding / the terms of its decision values


class Problem(NamedTuple):
    """Minimise 1/2 |W|^2 + C sum_i s_i loss_i(X W' + b)."""

    X: Any
    y: Any
    s: Any
    C: float
    has_intercept: bool


class Pieces(NamedTuple):
    """A loss max(0, rows of offsets - A f) for each sample or pair, f (n k,) the decision values; or their squares."""

    A: Any  # (m, n k)
    offsets: Any  # (m,)
    owners: Any  # (m,): the slack variable of each row
    weights: Any  # of each slack variable
    is_squared: bool = False


def _signs(y: Any) -> Any:
    return np.where(y > 0, 1.0, -1.0)


def _hinges(p: Problem, *, is_squared: bool = False) -> Pieces:
    n = len(p.y)
    return Pieces(sp.diags_array(_signs(p.y)), np.ones(n), np.arange(n), p.s, is_squared)


def _residuals(p: Problem, epsilon: float, below: float = 1.0, *, is_squared: bool = False) -> Pieces:
    """Losses of targets: below (1 - below) / 1 of the part below (above) the band; 1 and 1 for below = 1."""
    n, above = len(p.y), 1.0 if below == 1.0 else 1.0 - below
    A, offsets = sp.vstack([sp.eye_array(n), -sp.eye_array(n)]), np.concatenate([p.y - epsilon, -p.y - epsilon])
    return Pieces(A, offsets, np.arange(2 * n), np.concatenate([below * p.s, above * p.s]), is_squared)


def _classes(p: Problem) -> Pieces:
    """f_c - f_y + 1 <= xi_i for all classes c but y; decision values are class after class."""
    n, k = len(p.y), int(p.y.max()) + 1
    i, c = (index.ravel() for index in np.meshgrid(np.arange(n), np.arange(k), indexing="ij"))
    i, c = i[c != p.y[i]], c[c != p.y[i]]
    rows, ones = np.arange(len(i)), np.ones(len(i))
    entries = np.concatenate([ones, -ones]), (np.tile(rows, 2), np.concatenate([p.y[i] * n + i, c * n + i]))
    return Pieces(sp.csr_array(entries, (len(i), n * k)), ones, i, p.s)


def _pairs(p: Problem) -> Pieces:
    i, j = np.nonzero(p.y[:, None] > p.y)
    rows, ones = np.arange(len(i)), np.ones(len(i))
    A = sp.csr_array((np.concatenate([ones, -ones]), (np.tile(rows, 2), np.concatenate([i, j]))), (len(i), len(p.y)))
    return Pieces(A, ones, rows, p.s[i] * p.s[j])


class Loss(NamedTuple):
    """An estimator of it, its pieces, and how many weight vectors it has."""

    make: Callable[..., Any]
    pieces: Callable[[Problem], Pieces]
    target: str  # "classes", "values" or "ranks"
    intercepts: tuple[bool, ...] = (False, True)


def _regressor(loss: str, **fixed: Any) -> Callable[..., Any]:
    return lambda **given: wm.OCASRegressor(loss=loss, **fixed, **given)


LOSSES: dict[str, Loss] = {
    "hinge": Loss(wm.OCASClassifier, _hinges, "classes"),
    "squared hinge": Loss(
        lambda **given: wm.OCASClassifier(loss="squared_hinge", **given),
        lambda p: _hinges(p, is_squared=True),
        "classes",
    ),
    "Crammer-Singer": Loss(
        lambda **given: wm.OCASClassifier(multi_class="crammer_singer", **given), _classes, "three classes", (False,)
    ),
    "epsilon-insensitive": Loss(_regressor("epsilon_insensitive", epsilon=0.1), lambda p: _residuals(p, 0.1), "values"),
    "absolute": Loss(_regressor("absolute"), lambda p: _residuals(p, 0.0), "values"),
    "quantile": Loss(_regressor("quantile", quantile=0.8), lambda p: _residuals(p, 0.0, 0.8), "values"),
    "squared epsilon-insensitive": Loss(
        _regressor("squared_epsilon_insensitive", epsilon=0.1),
        lambda p: _residuals(p, 0.1, is_squared=True),
        "values",
    ),
    "pairs": Loss(lambda fit_intercept, **given: wm.OCASRanker(**given), _pairs, "ranks", (False,)),
}
CASES = [f"{loss}: weights 1e+-{w}, columns 1e+-{c}" for loss, w, c in product(LOSSES, (0, 6), (0, 4))]


def problems(target: str, weights: int, columns: int, intercepts: tuple[bool, ...], seeds: int) -> Iterator[Problem]:
    """Noisy linear problems of all shapes."""
    for (n, d), has_intercept, seed in product(SHAPES, intercepts, range(seeds)):
        rng = np.random.default_rng([n, d, seed])
        Z = rng.normal(size=(n, d))
        f = Z @ rng.normal(size=(d, 3)) + rng.normal(size=(n, 3))
        y = f[:, 0] if target == "values" else f.argmax(axis=1) if target != "classes" else (f[:, 0] > 0).astype(int)
        X, s = Z * 10.0 ** rng.uniform(-columns, columns, d), 10.0 ** rng.uniform(-weights, weights, n)
        yield Problem(X, y, s, 10.0 ** rng.uniform(-2, 6), has_intercept)


def objective(p: Problem, pieces: Pieces, W: Any, b: Any) -> float:
    """Of weights W (k, d) and intercepts b (k,)."""
    f = (W @ p.X.T + np.atleast_1d(b)[:, None]).ravel()
    slack = np.zeros(len(pieces.weights))
    np.maximum.at(slack, pieces.owners, pieces.offsets - pieces.A @ f)
    losses = slack**2 if pieces.is_squared else slack
    return float(0.5 * np.vdot(W, W) + p.C * (pieces.weights @ losses))


def rounding(p: Problem, pieces: Pieces, W: Any, b: Any) -> float:
    """What rounding of decision values can change the objective by."""
    terms = (np.abs(W) @ np.abs(p.X).T + np.abs(np.atleast_1d(b))[:, None]).ravel()
    slack = np.zeros(len(pieces.weights))
    np.maximum.at(slack, pieces.owners, np.abs(pieces.offsets) + abs(pieces.A) @ terms)
    return float(p.C * ROUNDING * (pieces.weights @ (slack**2 if pieces.is_squared else slack)))


def solve(p: Problem, pieces: Pieces) -> tuple[Any, Any]:
    """Weights (k, d) and intercepts (k,) by Clarabel: variables W, b and slacks xi >= 0 with A f + xi >= offsets."""
    import clarabel

    (n, d), m = p.X.shape, len(pieces.weights)
    k = pieces.A.shape[1] // n
    columns = np.column_stack([p.X, np.ones(n)]) if p.has_intercept else p.X
    width = columns.shape[1]
    scale = 1.0 / (p.C * pieces.weights)  # of a slack variable: its loss is 1, or half its square
    scale = np.sqrt(0.5 * scale) if pieces.is_squared else scale
    of_points = sp.csc_array(pieces.A @ sp.block_diag([columns] * k))
    slacks = sp.csc_array(
        (scale[pieces.owners], (np.arange(len(pieces.owners)), pieces.owners)), (len(pieces.owners), m)
    )
    A = sp.csc_array(
        sp.vstack([sp.hstack([-of_points, -slacks]), sp.hstack([sp.csc_array((m, k * width)), -sp.eye_array(m)])])
    )
    is_weight = np.tile(np.arange(width) < d, k).astype(float)
    P = sp.diags_array(np.concatenate([is_weight, np.full(m, float(pieces.is_squared))]), format="csc")
    q = np.concatenate([np.zeros(k * width), np.full(m, 0.0 if pieces.is_squared else 1.0)])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, 200
    limits = np.concatenate([-pieces.offsets, np.zeros(m)])
    found = clarabel.DefaultSolver(P, q, A, limits, [clarabel.NonnegativeConeT(len(limits))], settings).solve()
    W = np.array(found.x[: k * width]).reshape(k, width)
    return W[:, :d], W[:, d] if p.has_intercept else np.zeros(k)


def measure(case: str, run: Any) -> list[Row]:
    """All problems of a case."""
    name, _, rest = case.partition(": ")
    weights, columns = (int(part.rpartition("-")[2]) for part in rest.split(","))
    loss = LOSSES[name]
    excesses, counts, slowest = [0.0], dict.fromkeys(("problems", "warned", "dishonest", "beaten"), 0), 0.0
    for p in problems(loss.target, weights, columns, loss.intercepts, run.seeds):
        pieces = loss.pieces(p)
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = loss.make(C=p.C, tol=TOL, fit_intercept=p.has_intercept, max_time=LIMIT)
            model.fit(p.X, p.y, sample_weight=p.s)
        slowest = max(slowest, time.perf_counter() - begin)
        W, b = np.atleast_2d(model.coef_), np.atleast_1d(getattr(model, "intercept_", 0.0))
        own, noise = objective(p, pieces, W, b), rounding(p, pieces, W, b) + ERROR * model.objective_
        other = objective(p, pieces, *solve(p, pieces))
        best = min(own, other) if np.isfinite(other) else own
        counts["problems"] += 1
        counts["beaten"] += not other <= own * (1.0 + TOL)
        counts["warned"] += not model.converged_
        is_honest = abs(own - model.objective_) <= noise and model.objective_ - model.dual_gap_ <= best + noise
        counts["dishonest"] += not is_honest
        if model.converged_:
            excesses.append((own - noise) / best - 1.0)
    return [{"case": case, **counts, "worst": max(excesses), "slowest": slowest}]


LINEAR = Experiment("linear", CASES, ("case",), measure, settings={"seeds": 3}, quick={"seeds": 1})
