"""The exact kernel SVM side by side with scikit-learn's SVC and scikit-learn-intelex's SVC, in one process run.

::

    python benchmarks/peers/kernel_svm.py                              # 20,000 bundled patches
    python benchmarks/peers/kernel_svm.py --sets a9a ijcnn1 codrna mnist letter --repeats 5
    python benchmarks/peers/kernel_svm.py --sets a9a --skip sklearn --memory --cold

Every competitor gets the same rows (float32, or `--dtype`), C, gamma and tolerance; the order is reversed with every
repeat; times are medians. Dual objective, duality gap and violation are recomputed in float64 from support vectors and
coefficients, by one function for all. "widemargin" has the default parameters: an intercept, as `SVC` has, and levels
as it chooses.
A set may be given a number of rows: ``patches:200000``.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from measuring import competitors, plots, process, provenance, report
from measuring.competitors import OURS, Competitor, Settings

_TABLE = ["set", "competitor", "form", "seconds", "ratio", "to_limit", "support_vectors"]
_TABLE += ["dual", "dual_short", "rel_gap", "violation", "accuracy", "predict_us", "predict_ratio"]
_MEMORY = ["fit_peak_mb", "fit_extra_mb", "predict_extra_mb"]
_COLD = ["import_seconds", "first_fit_cold", "first_fit_cached", "second_fit"]

Row = dict[str, Any]


def measure_set(name: str, options: argparse.Namespace) -> list[Row]:
    """Run all competitors on one set, alternating, and return a row for each."""
    problem = load(name)
    runners = competitors.choose(skip=options.skip, sparse=problem.sparse)
    forms = competitors.make_forms(runners, *(X.astype(options.dtype) for X in (problem.X, problem.X_test)))
    settings = _settings(problem, options)
    seconds: dict[str, list[float]] = {c.name: [] for c in runners}
    predict: dict[str, list[float]] = {c.name: [] for c in runners}
    models: Row = {}
    for c in runners:
        c.warm_up(settings, forms[c.form][0], problem.y)
    for repeat in range(options.repeats):
        for c in runners if repeat % 2 == 0 else runners[::-1]:
            train, test = forms[c.form]
            models.pop(c.name, None)
            gc.collect()
            process.touch_memory(len(problem.y))
            start = time.perf_counter()
            models[c.name] = c.fit(settings, train, problem.y)
            seconds[c.name].append(time.perf_counter() - start)
            predict[c.name].append(process.time_predict(models[c.name], test))
            _say(f"{name} {c.name}: {seconds[c.name][-1]:.2f} s")
    rows = []
    for c in runners:
        row = _describe(problem, c, settings, options)
        row |= _timings(seconds[c.name])
        row |= _judge(problem, c, models[c.name], forms[c.form][1])
        row["to_limit"] = row["seconds"] / row["limit_seconds"]
        row["predict_us"] = 1e6 * statistics.median(predict[c.name]) / len(problem.y_test)
        rows.append(row)
    _compare(rows)
    _measure_apart(rows, problem, settings, options)
    return rows


def load(name: str) -> Any:
    """The problem of a set's name, with its number of rows after a colon."""
    from measuring.problems import load_problem

    base, _, n_rows = name.partition(":")
    problem = load_problem(base, n_rows=int(n_rows) if n_rows else None)
    return problem._replace(name=name)


def _settings(problem: Any, options: argparse.Namespace) -> Settings:
    return Settings(problem.C, problem.gamma, options.tol, options.budget_mb, options.cache_mb)


def _describe(problem: Any, c: Competitor, settings: Settings, options: argparse.Namespace) -> Row:
    n, n_features = problem.X.shape
    return {
        "set": problem.name,
        "task": problem.task,
        "n": n,
        "n_features": n_features,
        **settings._asdict(),
        "competitor": c.name,
        "form": f"{c.form} {options.dtype}",
        "intercept": c.intercept,
        "repeats": options.repeats,
    }


def _timings(seconds: Sequence[float]) -> Row:
    return {"seconds": statistics.median(seconds), "seconds_min": min(seconds), "seconds_max": max(seconds)}


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


def geometric_means(rows: Sequence[Row]) -> list[Row]:
    """Return one row a competitor: geometric means over the sets, of ratios only (seconds don't average)."""
    means = []
    for name in dict.fromkeys(row["competitor"] for row in rows):
        mine = [row for row in rows if row["competitor"] == name]
        mean: Row = {"set": f"geometric mean ({len(mine)})", "competitor": name, "form": mine[0]["form"]}
        for key in ("ratio", "to_limit", "predict_ratio"):
            values = [row[key] for row in mine if row[key]]
            mean[key] = math.exp(sum(map(math.log, values)) / len(values)) if values else None
        means.append(mean)
    return means


# ----------------------------------------------------------------------- measurements in processes of their own


def _measure_apart(rows: list[Row], problem: Any, settings: Settings, options: argparse.Namespace) -> None:
    """Add peak memory and first fits, each competitor in fresh processes."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "rows.npz"
        np.savez(small, X=problem.X[:1000], y=problem.y[:1000])
        for k, row in enumerate(rows):
            asked = {"set": problem.name, "competitor": row["competitor"], "settings": settings}
            if options.memory:
                row |= process.run_apart(_run_task, asked | {"task": "memory"})
            if options.cold:
                row |= _measure_cold(asked | {"task": "cold", "file": str(small)}, str(Path(folder) / f"cache{k}"))


def _measure_cold(asked: Row, cache: str) -> Row:
    """Return import time and the first fit on 1,000 rows: with an empty cache folder, then with a full one."""
    empty = process.run_apart(_run_task, asked, environment={"WIDEMARGIN_CACHE": cache})
    full = process.run_apart(_run_task, asked, environment={"WIDEMARGIN_CACHE": cache})
    return {
        "import_seconds": full["import"],
        "first_fit_cold": empty["fit"],
        "first_fit_cached": full["fit"],
        "second_fit": full["again"],
    }


def _run_task(asked: Row) -> Row:
    competitor, settings = competitors.get_competitor(asked["competitor"]), Settings(*asked["settings"])
    task = _child_memory if asked["task"] == "memory" else _child_cold
    return task(competitor, settings, asked)


def _child_memory(c: Competitor, settings: Settings, asked: Row) -> Row:
    """Return peak megabytes of fit and predict: in all, and above what data and libraries held before."""
    problem = load(asked["set"])
    train, test = competitors.make_forms([c], problem.X, problem.X_test)[c.form]
    c.warm_up(settings, train, problem.y)
    gc.collect()
    before = process.resident_bytes()
    process.reset_peak()
    model = c.fit(settings, train, problem.y)
    peak = process.peak_bytes()
    between = process.resident_bytes()
    process.reset_peak()
    model.predict(test)
    return {
        "before_mb": before / 1e6,
        "fit_peak_mb": peak / 1e6,
        "fit_extra_mb": (peak - before) / 1e6,
        "predict_extra_mb": (process.peak_bytes() - between) / 1e6,
    }


def _child_cold(c: Competitor, settings: Settings, asked: Row) -> Row:
    with np.load(asked["file"]) as data:
        (X,), y = competitors.make_forms([c], data["X"])[c.form], data["y"]
    start = time.perf_counter()
    model = c.make(settings)  # imports the package
    imported = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    model.fit(X, y)
    return {"import": imported - start, "fit": fitted - imported, "again": time.perf_counter() - fitted}


# ---------------------------------------------------------------------------------------------------- command line


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    add = parser.add_argument
    add("--sets", nargs="+", default=["patches"], metavar="SET", help="patches (bundled), or sets of WIDEMARGIN_DATA")
    add("--repeats", type=int, default=3)
    add("--tol", type=float, default=1e-3)
    add("--dtype", default="float32", choices=["float32", "float64"], help="of the rows")
    add("--skip", nargs="+", default=[], choices=competitors.NAMES, metavar="NAME", help="competitors to leave out")
    add("--budget-mb", type=int, help="our memory_budget; absent: the package's own default")
    add("--cache-mb", type=int, default=4000, help="cache_size of both SVCs")
    add("--memory", action="store_true", help="peak memory, each competitor in a process of its own")
    add("--cold", action="store_true", help="first fit in a fresh process, with an empty and a full cache folder")
    add("--out", default="kernel_svm", help="name of the files in benchmarks/results")
    add("--no-files", action="store_true", help="print the table, write nothing")
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _save(rows: Sequence[Row], options: argparse.Namespace) -> None:
    path = report.RESULTS / f"{options.out}.csv"
    report.write_csv(path, [*rows, *geometric_means(rows)])
    bars: dict[str, dict[str, float]] = {}
    for row in rows:
        bars.setdefault(row["set"], {})[row["competitor"]] = row["seconds"]
    for row in rows:
        bars[row["set"]].setdefault("limit", row["limit_seconds"])
    title = f"exact RBF SVM, tol {options.tol:g}, median of {options.repeats}; {provenance.machine()}"
    plots.plot_bars(path.with_suffix(".png"), bars, title=title, ylabel="seconds to train")
    _say(f"wrote benchmarks/results/{path.name} and {path.stem}.png")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark of the command line."""
    options = _parse(arguments)
    from measuring.problems import NAMES

    unknown = [name for name in options.sets if name.partition(":")[0] not in NAMES]
    if unknown:
        raise SystemExit(f"unknown set {unknown[0]!r}: choose from {', '.join(NAMES)}")
    rows: list[Row] = []
    for name in options.sets:
        rows += measure_set(name, options)
        if not options.no_files:  # after every set: an interrupted run keeps what it has
            _save(rows, options)
    columns = _TABLE + _MEMORY * options.memory + _COLD * options.cold
    print("\n".join(f"{key}: {value}" for key, value in provenance.machine_card().items()) + "\n")
    print(report.format_table([*rows, *geometric_means(rows)], columns))


if __name__ == "__main__":
    main()
