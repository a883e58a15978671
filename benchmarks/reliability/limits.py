"""Seconds until a fit returns after its time limit, and after Ctrl-C at a random moment.

`limits_time`: every case with several limits, in seconds; `over` is by how much `fit` exceeded its limit, validation
included. `limits_interrupts`: each case, interrupted at a moment that is drawn, in a child process that gets a real
SIGINT; `outcome` is "stopped" (a model, a warning naming the interrupt, and the process's own handler back), "checks"
(a KeyboardInterrupt while the data were checked, before there was a model), "finished" (before the signal), or what
went wrong.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import widemargin as wm
from measuring.experiment import Experiment, Row
from measuring.process import command

LIMITS = (0.0, 0.5, 2.0)


def _as_they_are(X: Any, y: Any) -> tuple[Any, Any]:
    return X, y


class Case(NamedTuple):
    """A long fit on rows (n, d) with k classes; `fit` takes a limit in seconds, or None, and what `prepare` returns."""

    n: int
    d: int
    k: int
    fit: Callable[[float | None, Any, Any], Any]
    prepare: Callable[[Any, Any], tuple[Any, Any]] = _as_they_are


def problem(n: int, d: int, k: int) -> tuple[Any, Any]:
    """Rows of noise, labelled by a noisy product of two columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    product = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, np.digitize(product, [0.0] if k == 2 else np.linspace(-1.5, 1.5, k - 1))


def _estimator(kind: type, **parameters: Any) -> Callable[[float | None, Any, Any], Any]:
    return lambda limit, X, y: kind(max_time=limit, **parameters).fit(X, y)


def _with_machine(X: Any, y: Any) -> tuple[Any, Any]:
    """The rows, and a machine to compress instead of labels."""
    return X, SVC(C=10).fit(X[:1000], y[:1000])


def _compressed(limit: float | None, X: Any, machine: Any) -> Any:
    start = time.perf_counter()
    small = wm.compress(machine, X, max_time=limit, random_state=0)
    small.seconds = time.perf_counter() - start
    return small


def _on_workers(X: Any, y: Any) -> tuple[Any, Any]:
    """The rows in eight blocks on two worker processes, which live as long as this one."""
    import dask.array as da
    from dask.distributed import Client, LocalCluster, wait

    client = Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))
    rows = [da.from_array(a, chunks=(-(-len(a) // 8), *a.shape[1:])).persist() for a in (X, y)]
    wait(rows)
    _clients.append(client)
    return rows[0], rows[1]


_clients: list[Any] = []
CASES = {
    "DCSVMClassifier": Case(200_000, 30, 2, _estimator(wm.DCSVMClassifier, C=10)),
    "DCSVMClassifier, intercept": Case(200_000, 30, 2, _estimator(wm.DCSVMClassifier, C=10, fit_intercept=True)),
    "DCSVMClassifier, no level": Case(200_000, 30, 2, _estimator(wm.DCSVMClassifier, C=10, n_levels=0)),
    "DCSVMClassifier, 10 classes": Case(200_000, 30, 10, _estimator(wm.DCSVMClassifier, C=10)),
    "DCSVMClassifier, stop_level": Case(
        200_000, 30, 2, _estimator(wm.DCSVMClassifier, C=10, n_levels=2, stop_level=2, partition="kernel")
    ),
    "DCSVMClassifier, wide": Case(8_000, 5_000, 2, _estimator(wm.DCSVMClassifier, C=10)),
    "DCSVMRegressor": Case(200_000, 30, 2, _estimator(wm.DCSVMRegressor, C=10)),
    "DCOneClassSVM": Case(200_000, 30, 2, _estimator(wm.DCOneClassSVM)),
    "DCSVMClassifierCV": Case(50_000, 30, 2, _estimator(wm.DCSVMClassifierCV)),
    "DCSVMClassifierCV, 10 classes": Case(20_000, 30, 10, _estimator(wm.DCSVMClassifierCV)),
    "DCSVMRegressorCV": Case(50_000, 30, 2, _estimator(wm.DCSVMRegressorCV)),
    "OCASClassifierCV": Case(200_000, 50, 5, _estimator(wm.OCASClassifierCV)),
    "DCSVMClassifier, dask, stop_level": Case(
        200_000, 30, 2, _estimator(wm.DCSVMClassifier, C=10, n_levels=2, stop_level=2), _on_workers
    ),
    "OCASClassifier, dask": Case(200_000, 50, 5, _estimator(wm.OCASClassifier, C=100, tol=1e-6), _on_workers),
    "DCPredClassifier": Case(200_000, 30, 2, _estimator(wm.DCPredClassifier)),
    "DCPredClassifier, 10 classes": Case(60_000, 30, 10, _estimator(wm.DCPredClassifier)),
    "DCPredClassifier, wide": Case(4_000, 5_000, 2, _estimator(wm.DCPredClassifier)),
    "DCPredRegressor": Case(200_000, 30, 2, _estimator(wm.DCPredRegressor)),
    "OCASClassifier": Case(200_000, 50, 20, _estimator(wm.OCASClassifier, C=100, tol=1e-6)),
    "OCASClassifier, Crammer-Singer": Case(
        200_000, 50, 20, _estimator(wm.OCASClassifier, C=100, tol=1e-6, multi_class="crammer_singer")
    ),
    "BSGDClassifier": Case(200_000, 30, 2, _estimator(wm.BSGDClassifier, budget=500)),
    "BSGDClassifier, 10 classes": Case(200_000, 30, 10, _estimator(wm.BSGDClassifier, budget=500)),
    "compress": Case(20_000, 30, 2, _compressed, _with_machine),
    "LandmarkNystroem": Case(20_000, 50, 2, lambda _, X, y: wm.LandmarkNystroem(2000).fit(X)),
    "TwoStepKernelKMeans": Case(200_000, 30, 2, lambda _, X, y: wm.TwoStepKernelKMeans(500).fit(X)),
}
WITHOUT_LIMIT = ("LandmarkNystroem", "TwoStepKernelKMeans")  # they have no `max_time`


def measure(name: str, limit: float, run: Any = None) -> Row:
    """One fit with a limit."""
    case = CASES[name]
    rows, labels = problem(case.n, case.d, case.k)
    X, y = case.prepare(rows, labels)
    _load_libraries(case, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model = case.fit(limit, X, y)
        seconds = getattr(model, "seconds", time.perf_counter() - start)
    return {
        "case": name,
        "rows": case.n,
        "columns": case.d,
        "classes": case.k,
        "max_time": limit,
        "seconds": seconds,
        "over": seconds - limit,
        "score": model.score(rows[:2000], labels[:2000]) if hasattr(model, "score") else None,
        "gap": model.dual_gap_ / abs(model.objective_) if hasattr(model, "dual_gap_") else None,
    }


def _load_libraries(case: Case, X: Any, y: Any) -> None:
    """Fit on some rows without time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.fit(0.0, X[:5000], y if isinstance(y, SVC) else y[:5000])


def child(name: str) -> Row:
    """Fit once; "begin" is printed for the parent process, which waits for it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore the signal
    case = CASES[name]
    rows, labels = problem(case.n, case.d, case.k)
    X, y = case.prepare(rows, labels)
    _load_libraries(case, X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        print("begin", flush=True)
        try:
            model = case.fit(None, X, y)
        except KeyboardInterrupt as error:
            if not is_in_checks(error):
                raise
            return {"end": time.time(), "outcome": "checks"}
        end = time.time()
    words = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    is_restored = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # one that comes late is not for the workers' end
    said = {"end": end, "warned": any("interrupt" in word for word in words), "restored": is_restored}
    use = getattr(model, "predict", None) or model.transform
    said["usable"] = bool(np.isfinite(use(rows[:100])).all())
    return said


def is_in_checks(error: BaseException) -> bool:
    """Whether an error was raised while `fit` checked the data."""
    checks = "_check_data", "_accept_rows", "_check_rows"
    return any(frame.name in checks for frame in traceback.extract_tb(error.__traceback__))


def _interrupts(name: str, run: Any) -> Iterator[Row]:
    """Some interrupts of a case."""
    draw = random.Random(name)
    yield from (interrupt(name, round(draw.uniform(0.0, 4.0), 3)) for _ in range(run.count))


def interrupt(name: str, after: float) -> Row:
    """One fit in a child process, interrupted after some seconds."""
    process = subprocess.Popen(
        [*command(child), json.dumps([name])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    sent = time.time()
    try:
        output, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        return {"case": name, "after": after, "outcome": "hung"}
    lines = output.splitlines()
    if process.returncode or not lines:
        words = (errors.strip().splitlines() or ["nothing said"])[-1]
        return {"case": name, "after": after, "outcome": f"exit {process.returncode}: {words}"}
    said = json.loads(lines[-1])
    if said["end"] < sent:
        return {"case": name, "after": after, "outcome": "finished"}
    if "outcome" in said:
        return {"case": name, "after": after, "outcome": said["outcome"], "seconds": said["end"] - sent}
    is_good = said["warned"] and said["restored"] and said["usable"]
    return {
        "case": name,
        "after": after,
        "outcome": "stopped" if is_good else json.dumps(said),
        "seconds": said["end"] - sent,
    }


TIME = Experiment(
    "limits_time",
    [(name, limit) for name in CASES if name not in WITHOUT_LIMIT for limit in LIMITS],
    ("case", "max_time"),
    measure,
    seconds=20.0,
    has_outcomes=True,
)
INTERRUPTS = Experiment(
    "limits_interrupts",
    tuple(CASES),
    ("case", "after"),
    _interrupts,
    seconds=60.0,
    settings={"count": 5},
    quick={"count": 1},
)
