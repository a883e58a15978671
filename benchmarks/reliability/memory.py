"""Peak memory of fit and predict beside `memory_budget`, for every estimator.

::

    python benchmarks/reliability/memory.py
    python benchmarks/reliability/memory.py --cases OCASClassifier --classes 2 100 --budgets 50

Each row is a process of its own: the data are made, a fit of the same kind on 200 rows, and one with clusters, load the
libraries, the kernel's peak of resident memory is reset, and `fit` and then `predict` run with the budget. `fit` and
`predict` are the bytes above what was resident before, in MB; `kept` says whether both are at most 1.1 times the budget
and 10 MB. `outcome` is "ok" or the error's words, the refusal of a budget that is too small among them.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp

import widemargin as wm
from benchmarks import _process, _report

MB = 10**6
CELL = ("case", "layout", "classes", "rows", "columns", "budget")
LAYOUTS = ("float32 C", "float64 C", "float64 F", "csr")


def _compressed(budget: int, X: Any, y: Any) -> Any:
    machine = wm.DCSVMClassifier(C=10, memory_budget=budget, random_state=0).fit(X[:2000], y[:2000])
    gc.collect()
    _process.reset_peak()
    return wm.compress(machine, X, memory_budget=budget, random_state=0)


def _path(budget: int, X: Any, y: Any) -> Any:
    return wm.C_path(wm.OCASClassifier(memory_budget=budget), X, y, [0.01, 0.1, 1.0]).models[-1]


def _estimator(kind: type, **parameters: Any) -> Callable[[int, Any, Any], Any]:
    return lambda budget, X, y: kind(memory_budget=budget, **parameters).fit(X, y)


def _search(kind: type, **parameters: Any) -> Callable[[int, Any, Any], Any]:
    return _estimator(kind, Cs=[0.1, 1.0], cv=2, **parameters)


CASES: dict[str, Callable[[int, Any, Any], Any]] = {
    "DCSVMClassifier": _estimator(wm.DCSVMClassifier, C=10, random_state=0),
    "DCSVMClassifier, early": _estimator(wm.DCSVMClassifier, C=10, n_levels=1, stop_level=1, random_state=0),
    "DCSVMRegressor": _estimator(wm.DCSVMRegressor, C=10),
    "DCOneClassSVM": _estimator(wm.DCOneClassSVM),
    "DCSVMClassifierCV": _search(wm.DCSVMClassifierCV, gammas=1),
    "DCSVMRegressorCV": _search(wm.DCSVMRegressorCV, gammas=1),
    "OCASClassifierCV": _search(wm.OCASClassifierCV),
    "DCPredClassifier": _estimator(wm.DCPredClassifier, random_state=0),
    "DCPredRegressor": _estimator(wm.DCPredRegressor, random_state=0),
    "OCASClassifier": _estimator(wm.OCASClassifier),
    "OCASClassifier, Crammer-Singer": _estimator(wm.OCASClassifier, multi_class="crammer_singer"),
    "BSGDClassifier": _estimator(wm.BSGDClassifier, budget=500, n_epochs=1, random_state=0),
    "BSGDClassifier, projection": _estimator(
        wm.BSGDClassifier, budget=500, n_epochs=1, maintenance="projection", random_state=0
    ),
    "C_path": _path,
    "compress": _compressed,
}


def problem(n: int, d: int, k: int, layout: str) -> tuple[Any, Any]:
    """Rows of noise (n, d), labelled by the quantiles of a noisy product of two columns; half of the CSR's are zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype("f4" if layout == "float32 C" else "f8")
    product = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n)
    y = np.digitize(product, np.quantile(product, np.arange(1, k) / k))
    if layout == "csr":
        X[rng.random((n, d)) < 0.5] = 0.0
        return sp.csr_array(X), y
    return np.asarray(X, order="F" if layout.endswith("F") else "C"), y


def measure(case: str, layout: str, classes: int, budget: int, rows: int, columns: int, limit: float) -> dict[str, Any]:
    """One fit and one predict in a process of its own; `budget` in MB."""
    asked = json.dumps([case, layout, classes, budget * MB, rows, columns])
    row = {"case": case, "layout": layout, "classes": classes, "rows": rows, "columns": columns, "budget": budget}
    try:
        said = _process.run_child([__file__, "--child", asked], timeout=limit)
    except subprocess.TimeoutExpired:
        return row | {"outcome": f"more than {limit:g} s"}
    if "fit" in said:
        allowed = 1.1 * budget + 10
        said["kept"] = bool(said["fit"] <= allowed and said["predict"] <= allowed)
    return row | said


def child(case: str, layout: str, classes: int, budget: int, rows: int, columns: int) -> dict[str, Any]:
    """Fit and predict in this process."""
    warnings.simplefilter("ignore")
    X, y = problem(rows, columns, classes, layout)
    fit = CASES[case]
    small = max(200, 4 * classes)
    fit(2**30, *problem(small, columns, classes, layout)).predict(X[:200])
    wm.DCSVMClassifier(n_levels=1, n_sample=100).fit(*problem(small, columns, classes, layout))  # imports k-means
    gc.collect()
    _process.reset_peak()
    before = _process.peak_bytes()
    try:
        model = fit(budget, X, y)
    except (ValueError, MemoryError) as error:
        return {"outcome": f"{type(error).__name__}: {error}"}
    taken = _process.peak_bytes() - before
    gc.collect()
    _process.reset_peak()
    before = _process.peak_bytes()
    model.predict(X)
    return {"fit": taken / MB, "predict": (_process.peak_bytes() - before) / MB, "outcome": "ok"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=tuple(CASES), default=list(CASES))
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=LAYOUTS)
    parser.add_argument("--classes", type=int, nargs="+", default=(2, 10, 100))
    parser.add_argument("--budgets", type=int, nargs="+", default=(50, 200), help="MB")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a row of the table")
    parser.add_argument("--output", type=Path, default=_report.RESULTS / "memory.csv")
    parser.add_argument("--add", action="store_true", help="keep the file's rows of other cells")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(child(*json.loads(options.child))))
        return
    measured = _report.read_csv(options.output) if options.add else []
    for cell in itertools.product(options.cases, options.layouts, options.classes, options.budgets):
        row = measure(*cell, options.rows, options.columns, options.limit)
        measured = [other for other in measured if any(other[key] != row[key] for key in CELL)] + [row]
        print(row, flush=True)
        _report.write_csv(options.output, measured, _report.run_card())
    print(_report.format_table(measured, list(dict.fromkeys(key for row in measured for key in row))))


if __name__ == "__main__":
    main()
