"""The exact kernel SVM side by side with scikit-learn's SVC and scikit-learn-intelex's SVC, in one process run.

Every competitor gets the same rows (float32, or in `kernel_svm_float64` float64), C, gamma and tolerance; the order is
reversed with every repeat; times are medians. Dual objective, duality gap and violation are recomputed in float64 from
support vectors and coefficients, by one function for all. "widemargin" has the default parameters: an intercept, as
`SVC` has, and levels as it chooses. A set may be given a number of rows: ``patches:200000``.
"""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import numpy as np

from measuring import competitors, process
from measuring.competitors import OURS, Competitor, Settings
from measuring.experiment import Experiment, Row, Run


def measure_set(name: str, run: Run) -> list[Row]:
    """Run all competitors on one set, alternating, and return a row for each."""
    problem = load(name)
    runners = competitors.choose(skip=run.skip, sparse=problem.sparse)
    forms = competitors.make_forms(runners, *(X.astype(run.dtype) for X in (problem.X, problem.X_test)))
    settings = Settings(problem.C, problem.gamma, run.tol, run.budget_mb, run.cache_mb)
    predict: dict[str, list[float]] = {c.name: [] for c in runners}
    tests = {c.name: forms[c.form][1] for c in runners}
    for c in runners:
        c.warm_up(settings, forms[c.form][0], problem.y)
    models, seconds = process.in_turns(
        {c.name: partial(c.fit, settings, forms[c.form][0], problem.y) for c in runners},
        run.repeats,
        len(problem.y),
        lambda name, model: predict[name].append(process.time_predict(model, tests[name])),
    )
    rows = []
    for c in runners:
        row = _describe(problem, c, settings, run)
        mine = seconds[c.name]
        row |= {"seconds": statistics.median(mine), "seconds_min": min(mine), "seconds_max": max(mine)}
        row |= _judge(problem, c, models[c.name], tests[c.name])
        row["to_limit"] = row["seconds"] / row["limit_seconds"]
        row["predict_us"] = 1e6 * statistics.median(predict[c.name]) / len(problem.y_test)
        rows.append(row)
    _compare(rows)
    return rows


def _float64(name: str, run: Run) -> list[Row]:
    run.dtype = "float64"
    return measure_set(name, run)


def load(name: str) -> Any:
    """The problem of a set's name, with its number of rows after a colon."""
    from measuring.problems import load_problem

    base, _, n_rows = name.partition(":")
    problem = load_problem(base, n_rows=int(n_rows) if n_rows else None)
    return problem._replace(name=name)


def _describe(problem: Any, c: Competitor, settings: Settings, run: Run) -> Row:
    n, n_features = problem.X.shape
    return {
        "set": problem.name,
        "task": problem.task,
        "n": n,
        "n_features": n_features,
        **settings._asdict(),
        "competitor": c.name,
        "form": f"{c.form} {run.dtype}",
        "intercept": c.intercept,
        "repeats": run.repeats,
    }


def _judge(problem: Any, c: Competitor, model: Any, X_test: Any) -> Row:
    """Return the recomputed certificate of a competitor's last model, and the limit for its support vectors."""
    from measuring.recompute import certify, limit_seconds

    facts = certify(problem.X, problem.y, model, C=problem.C, gamma=problem.gamma, intercept=c.intercept)
    return {
        "native": competitors.is_native(c.name, model),
        "limit_seconds": limit_seconds(problem.X, facts.n_support),
        "support_vectors": facts.n_support,
        "dual": facts.dual,
        "primal": facts.primal,
        "gap": facts.gap,
        "rel_gap": facts.gap / facts.primal,
        "violation": facts.violation,
        "box": facts.box,
        "equality": facts.equality if c.intercept else None,
        "accuracy": float(np.mean(model.predict(X_test) == problem.y_test)),
        "n_test": len(problem.y_test),
    }


def _compare(rows: list[Row]) -> None:
    """Add the ratios to our default machine, and how far each dual falls short of the best one of its kind."""
    times = {row["competitor"]: row["seconds"] for row in rows}
    predict = {row["competitor"]: row["predict_us"] for row in rows}
    best = {kind: max((row["dual"] for row in rows if row["intercept"] == kind), default=0.0) for kind in (False, True)}
    for row in rows:
        row["ratio"] = row["seconds"] / times[OURS] if OURS in times else None
        row["predict_ratio"] = row["predict_us"] / predict[OURS] if OURS in predict else None
        row["dual_short"] = (best[row["intercept"]] - row["dual"]) / abs(best[row["intercept"]])


SETS = (
    *("a9a", "codrna", "covtype_20k", "ijcnn1", "kddcup99_10", "letter", "mnist", "one_hot", "patches:50000"),
    *("patches:200000", "sparse_wide", "usps"),
)
KERNEL_SVM = Experiment(
    "kernel_svm",
    SETS,
    ("set", "competitor"),
    measure_set,
    seconds={"mnist": 150.0, "kddcup99_10": 150.0, "patches:200000": 120.0, "": 40.0},
    settings={
        "repeats": 3,
        "tol": 1e-3,
        "dtype": "float32",
        "skip": ("sklearn",),
        "budget_mb": None,
        "cache_mb": 4000,
    },
    quick={"cells": ["patches:1500"], "repeats": 1},
)
FLOAT64 = KERNEL_SVM._replace(
    results="kernel_svm_float64",
    cells=("a9a", "codrna", "covtype_20k", "ijcnn1", "letter", "patches:50000", "usps"),
    measure=_float64,
    seconds=40.0,
)
SKLEARN = KERNEL_SVM._replace(
    results="kernel_svm_sklearn",
    cells=("a9a", "codrna", "covtype_20k", "ijcnn1", "letter"),
    settings={**KERNEL_SVM.settings, "skip": (), "repeats": 1},
    seconds=100.0,
)
