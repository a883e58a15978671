"""The machines of the tables and figures, by name, so that a child process can make them."""

from __future__ import annotations

import math
import statistics
import subprocess
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from evidence._dc_pred.rivals import Fastfood, Fourier, Landmarks
from evidence._dc_svm.cascade import CascadeSVC
from evidence._dc_svm.greedy import GreedySVC
from evidence._dc_svm.lasvm import LaSVM
from evidence._dc_svm.rules import with_rule
from evidence._dc_svm.spsvm import SpSVM
from measuring import process
from measuring.competitors import OURS, Settings, get_competitor
from measuring.experiment import Row, Run, repeated
from measuring.problems import Problem, load_problem

_CACHE_MB = 4000
_LONG = 10.0  # seconds of several fits after which there is no other
_LARGE, MANY = 100_000, 480_000  # training rows
SETTINGS: Row = {"rows": None, "tol": 1e-3, "repeats": 3, "limit": 45.0}  # limit: seconds of a competitor
# n^2 d of what takes half a minute, about: of larger sets a competitor gets as many random rows
_WORK = {"libsvm": 3e10, "lasvm": 2e10, "greedy": 4e10, "sklearnex": 1.5e11, "cascade": 2e12}
_TEST_ROWS = {"libsvm": 10_000, "lasvm": 10_000}  # at most: one thread predicts them
INTERCEPT = ("libsvm", "sklearnex", "exact+b", "lasvm")  # machines whose dual has the constraint y'alpha = 0


class Machine(NamedTuple):
    """A machine: label in tables, library, and constructor arguments beside those of `Settings`."""

    label: str
    name: str
    options: Mapping[str, Any] = {}


def _cascade(settings: Settings, **options: Any) -> CascadeSVC:
    return CascadeSVC(settings.C, settings.gamma, settings.kernel, settings.tol, **options)


def _of_peers(name: str, **fixed: Any) -> Callable[..., Any]:
    return lambda settings, **options: get_competitor(name).make(settings).set_params(**fixed | options)


def _exact(settings: Settings, combine: str = "soft", published: bool = False, **options: Any) -> Any:
    """Our exact model, or with a `stop_level` the early one, by a rule of `RULES`; as published, or by our defaults."""
    model = _of_peers(OURS, fit_intercept=False)(settings, **options)
    return with_rule(combine, published=published)(**model.get_params(deep=False))


_MAKERS: dict[str, Callable[..., Any]] = {
    "exact": _exact,
    "direct": _of_peers(OURS, fit_intercept=False, n_levels=0),
    "exact+b": _of_peers(OURS, n_levels=0),
    "libsvm": _of_peers("sklearn"),
    "sklearnex": _of_peers("sklearnex"),
    "cascade": _cascade,
    "nystroem": lambda s, m: Landmarks(m, s.gamma, s.C),
    "fourier": lambda s, m: Fourier(m, s.gamma, s.C),
    "fastfood": lambda s, m: Fastfood(m, s.gamma, s.C),
    "greedy": lambda s, **options: GreedySVC(s.C, s.gamma, s.tol, **options),
    "lasvm": lambda s, **options: LaSVM(s.C, s.gamma, s.kernel, s.tol, **options),
    "spsvm": lambda s, **options: SpSVM(s.C, s.gamma, s.kernel, **options),
    "ltpu": lambda s, m: Landmarks(m, s.gamma, s.C, whiten=False),
}


def settings_of(problem: Problem, *, tol: float = 1e-3, kernel: str = "rbf", **changes: float) -> Settings:
    """Return the settings of all machines for a problem; `changes` are C or gamma."""
    settings = Settings(problem.C, problem.gamma, tol, None, _CACHE_MB, kernel)
    return settings._replace(**changes)


def make(machine: Machine, settings: Settings) -> Any:
    """Return the machine, not yet fitted."""
    return _MAKERS[machine.name](settings, **machine.options)


def warm_up(machine: Machine, settings: Settings, problem: Problem) -> None:
    """Load libraries and start threads on 1,000 rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(machine, settings).fit(problem.X[:1000], problem.y[:1000]).predict(problem.X_test[:100])


def measure(machine: Machine, settings: Settings, problem: Problem) -> tuple[Row, Any]:
    """Fit once, predict the test rows; return the row of the table and the model."""
    model = make(machine, settings)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a stopped fit says so; `converged` has it
        model.fit(problem.X, problem.y)
    row = describe(machine, settings, problem) | {"seconds": time.perf_counter() - start}
    levels = getattr(model, "levels_", [])
    row |= {
        "accuracy": float(np.mean(model.predict(problem.X_test) == problem.y_test)),
        "predict_us": 1e6 * process.time_predict(model, problem.X_test) / len(problem.y_test),
        "support_vectors": len(getattr(model, "support_", ())) or None,
        "converged": getattr(model, "converged_", None),
        "clusters": " ".join(str(level["n_clusters"]) for level in levels),
        "clustering_seconds": sum(level["clustering_seconds"] for level in levels),
        "levels_seconds": sum(level["seconds"] for level in levels),
    }
    return row, model


def measure_often(machine: Machine, settings: Settings, problem: Problem, repeats: int) -> tuple[Row, Any]:
    """The row of several fits, fewer where they take long: median seconds and their spread, the rest of the last."""
    row, model = measure(machine, settings, problem)
    runs = [row]
    while len(runs) < repeats and sum(run["seconds"] for run in runs) < _LONG:
        row, model = measure(machine, settings, problem)
        runs.append(row)
    predict_us = statistics.median(run["predict_us"] for run in runs)
    return row | {"predict_us": predict_us} | repeated([run["seconds"] for run in runs]), model


def describe(machine: Machine, settings: Settings, problem: Problem) -> Row:
    """Return the columns that identify machine and problem."""
    n, n_features = problem.X.shape
    return {
        "set": problem.name,
        "machine": machine.label,
        "n": n,
        "n_features": n_features,
        "C": settings.C,
        "gamma": settings.gamma,
        "kernel": settings.kernel,
        "tol": settings.tol,
        "options": " ".join(f"{key}={value}" for key, value in machine.options.items()),
    }


def dual_value(model: Any, machine: Machine, settings: Settings, problem: Problem) -> float:
    """Return the dual value of a kernel expansion for the whole kernel, recomputed in float64."""
    from measuring.recompute import certify

    return certify(
        problem.X,
        problem.y,
        model,
        C=settings.C,
        gamma=settings.gamma,
        intercept=machine.name in INTERCEPT,
        kernel=settings.kernel,
    ).dual


# -------------------------------------------------------------------------------------------- in a process of its own


def limit_of(problem: Problem, options: Run) -> float:
    """Return the seconds after which a competitor is ended: more on a large set, of which reading takes some."""
    return options.limit * (3 if len(problem.X) > MANY else 2 if is_large(problem) else 1)


def is_large(problem: Problem) -> bool:
    """Whether a set is so large that fits at several tolerances, and duals recomputed in float64, take too long."""
    return len(problem.X) > _LARGE


def managed_rows(machine: Machine, problem: Problem) -> int:
    """Return how many of the training rows a machine gets: those of `_WORK`, in round numbers."""
    n, d = problem.X.shape
    most = math.sqrt(_WORK.get(machine.name, math.inf) / d)
    return n if n <= most else int(most) // 1000 * 1000


def measure_apart(
    machine: Machine,
    settings: Settings,
    problem: Problem,
    *,
    rows: int | None = None,
    limit: float,
    repeats: int = 1,
    with_dual: bool = False,
) -> Row:
    """Measure in a fresh process, which is ended after `limit` seconds; adds peak memory.

    `rows` is what `problem` was loaded with; the child loads as many, or fewer (`managed_rows`). With more rows than
    the training set has, the test rows are trained on as well. `with_dual` adds the dual value of kernel expansions.
    """
    if (n := managed_rows(machine, problem)) < len(problem.X):
        rows, problem = n, problem._replace(X=problem.X[:n], y=problem.y[:n])
    asked = {"set": problem.name, "rows": rows, "settings": settings, "machine": machine}
    asked |= {"with_dual": with_dual, "repeats": repeats}
    try:
        return process.run_apart(_measure_here, asked, timeout=limit)
    except subprocess.TimeoutExpired:
        return describe(machine, settings, problem) | {"over_limit": limit}
    except RuntimeError as error:  # of this machine alone: the others of the cell go on
        return describe(machine, settings, problem) | {"crashed": str(error).splitlines()[-1]}


def _measure_here(asked: Row) -> Row:
    """Run the measurement of `measure_apart` in this process."""
    problem = load(asked["set"], asked["rows"])
    machine, settings = Machine(*asked["machine"]), Settings(*asked["settings"])
    few = slice(_TEST_ROWS.get(machine.name))
    problem = problem._replace(X_test=problem.X_test[few], y_test=problem.y_test[few])
    warm_up(machine, settings, problem)
    process.touch_memory(len(problem.y))
    before = process.resident_bytes()
    process.reset_peak()
    row, model = measure_often(machine, settings, problem, asked["repeats"])
    peak = process.peak_bytes()
    if asked["with_dual"] and hasattr(model, "dual_coef_"):
        row["dual"] = dual_value(model, machine, settings, problem)
    return row | {"peak_mb": peak / 1e6, "extra_mb": (peak - before) / 1e6}


def load(name: str, rows: int | None) -> Problem:
    """Load a problem; where `rows` exceeds the training rows, test rows are added to them."""
    problem = load_problem(name, n_rows=rows)
    if rows is None or rows <= len(problem.X):
        return problem
    X, y = np.vstack([problem.X, problem.X_test]), np.concatenate([problem.y, problem.y_test])
    return problem._replace(X=X[:rows], y=y[:rows])
