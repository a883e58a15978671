"""BSGD beside other machines of the same prediction cost, beside BudgetedSVM, and on a long stream; steps a second."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from evidence._bsgd import plots
from evidence._bsgd.runs import accuracy, load, train
from measuring.experiment import Experiment, Row, Run, repeated
from measuring.problems import Problem
from measuring.process import peak_bytes
from widemargin import BSGDClassifier
from widemargin._threads import blas_limit

_BUDGETS = (50, 100, 200, 500, 1000, 2000)
_FOURIER, _NYSTROEM = "random Fourier features + SGD", "Nystroem + SGD"

# Accuracy against time -----------------------------------------------------------------------------------------------


def _tradeoff(name: str, options: Run) -> Iterator[Row]:
    """BSGD, and linear SGD on as many random features or landmarks, so that a prediction costs as much."""
    problem = load(name, options.rows)
    for budget in _BUDGETS:
        for method in ("BSGD lookup-wd", _FOURIER, _NYSTROEM):
            if options.wants(method, set=name, method=method, budget=budget):
                yield {
                    "set": name,
                    "method": method,
                    "budget": budget,
                    "epochs": 5,
                    **_over_seeds(_trainer(problem, method, budget), options.seeds),
                }


def _trainer(problem: Problem, method: str, budget: int) -> Callable[[int], tuple[float, float]]:
    return lambda seed: (
        _bsgd(problem, budget, 5, seed) if method.startswith("BSGD") else _linear_sgd(problem, method, budget, seed)
    )


def _over_seeds(run: Callable[[int], tuple[float, float]], n_seeds: int) -> Row:
    """Seconds and accuracy in percent over seeds: median and spread; mean and standard deviation."""
    seconds, scores = zip(*(run(seed) for seed in range(n_seeds)), strict=True)
    std = float(np.std(scores, ddof=1)) if n_seeds > 1 else None
    return repeated(seconds) | {"accuracy %": float(np.mean(scores)), "std": std}


def _bsgd(problem: Problem, budget: int, n_epochs: int, seed: int) -> tuple[float, float]:
    run = train(problem, budget, ["lookup-wd"], n_epochs, seed)["lookup-wd"]
    return float(run.seconds.sum()), accuracy(problem, run.sgd)


def _linear_sgd(problem: Problem, label: str, n_features: int, seed: int) -> tuple[float, float]:
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline

    maker = Nystroem if label.startswith("Nystroem") else RBFSampler
    features = maker(gamma=problem.gamma, n_components=n_features, random_state=seed)
    linear = SGDClassifier(alpha=1 / (problem.C * len(problem.y)), max_iter=5, tol=None, random_state=seed)
    model = make_pipeline(features, linear)
    start = time.perf_counter()
    with blas_limit(1):
        model.fit(problem.X, problem.y)
    seconds = time.perf_counter() - start
    return seconds, 100 * float(model.score(problem.X_test, problem.y_test))


TRADEOFF = Experiment(  # accuracy against time, beside linear SGD on as many random features or landmarks
    "bsgd/tradeoff",
    ("ijcnn1", "a9a"),
    ("set", "method", "budget"),
    _tradeoff,
    settings={"rows": None, "seeds": 5},
    parts=True,
    seconds=60.0,
    draw=plots.draw_tradeoff,
)

# BudgetedSVM ---------------------------------------------------------------------------------------------------------


def _rival(name: str, options: Run) -> Iterator[Row]:
    """Same problem, budget and passes, a row a run. BudgetedSVM's seconds do not count the reading of the file.

    They are the difference of runs of one and of several passes. It has no argument for the seed; every run is another.
    """
    if not options.folder:
        print("rival: left out, as it needs --folder, where BudgetedSVM's programs are", file=sys.stderr)
        return
    problem, n_epochs = load(name, options.rows), options.epochs
    for seed in range(5):
        if options.wants("widemargin", set=name, program="widemargin", run=seed):
            seconds, score = _bsgd(problem, options.budget, n_epochs, seed)
            yield _rival_row(problem, "widemargin", seed, options, seconds / n_epochs, score)
    with tempfile.TemporaryDirectory() as place:
        _write_files(problem, place)
        one, _ = _run_rival(problem, options.folder, place, 1, options.budget)
        for run in range(5):
            if options.wants("BudgetedSVM", set=name, program="BudgetedSVM BSGD", run=run):
                many, score = _run_rival(problem, options.folder, place, n_epochs, options.budget)
                yield _rival_row(problem, "BudgetedSVM BSGD", run, options, (many - one) / (n_epochs - 1), score)


def _rival_row(problem: Problem, program: str, run: int, options: Run, seconds: float, score: float) -> Row:
    return {
        "set": problem.name,
        "program": program,
        "run": run,
        "budget": options.budget,
        "epochs": options.epochs,
        "seconds a pass": seconds,
        "steps per second": len(problem.y) / seconds,
        "accuracy %": score,
    }


def _write_files(problem: Problem, place: str) -> None:
    from sklearn.datasets import dump_svmlight_file

    files = {"train": (problem.X, problem.y), "test": (problem.X_test, problem.y_test)}
    for part, (X, y) in files.items():
        dump_svmlight_file(X, y.astype(int), f"{place}/{part}", zero_based=False)


def _run_rival(problem: Problem, folder: str, place: str, n_epochs: int, budget: int) -> tuple[float, float]:
    """Seconds of its training program, and its test accuracy.

    Its kernel is exp(-g/2 |x - z|^2). It has one function a class, f and -f here, whose difference 2 f must be above 1:
    L/2 |2 f|^2 / 2 is then what is regularised, and twice our lam gives our problem.
    """
    twice_lam = 2 / (problem.C * len(problem.y))
    flags = f"-A 4 -B {budget} -L {twice_lam:.12g} -b 0 -e {n_epochs} -g {2 * problem.gamma} -m 1 -S 0"
    start = time.perf_counter()
    subprocess.run(
        [f"{folder}/budgetedsvm-train", *flags.split(), f"{place}/train", f"{place}/model"],
        check=True,
        capture_output=True,
    )
    seconds = time.perf_counter() - start
    subprocess.run(
        [f"{folder}/budgetedsvm-predict", f"{place}/test", f"{place}/model", f"{place}/out"],
        check=True,
        capture_output=True,
    )
    labels = np.loadtxt(f"{place}/out", usecols=0)
    return seconds, 100 * float(np.mean(labels == problem.y_test))


RIVAL = Experiment(  # beside BudgetedSVM's programs, built elsewhere
    "bsgd/rival",
    ("ijcnn1",),
    ("set", "program", "run"),
    _rival,
    settings={"rows": None, "folder": "", "epochs": 3, "budget": 100},
    parts=True,
    seconds=30.0,
)

# Steps a second, and a long stream ------------------------------------------------------------------------------------


def _speed(name: str, options: Run) -> Iterator[Row]:
    """Steps a second over the budget, and over the number of features (columns of the same rows, repeated)."""
    problem = load(name, options.rows)
    d = problem.X.shape[1]
    for budget, copies in [(50, 1), (100, 1), (200, 1), (400, 1), (800, 1), (1600, 1), (100, 2), (100, 4), (100, 8)]:
        if options.wants(set=name, budget=budget, features=d * copies):
            wide = problem._replace(X=np.tile(problem.X, copies) / np.float32(copies**0.5))
            runs = [train(wide, budget, ["lookup-wd"], 3, seed)["lookup-wd"] for seed in range(3)]
            times = repeated([float(run.seconds.sum()) for run in runs])
            rate = runs[0].steps / times["seconds"]
            row = {"set": name, "budget": budget, "features": d * copies, **times, "steps per second": rate}
            yield row | {"multiply-adds per second": rate * budget * d * copies}


SPEED = Experiment(  # steps a second over the budget and the features
    "bsgd/speed",
    ("ijcnn1",),
    ("set", "budget", "features"),
    _speed,
    settings={"rows": None},
    parts=True,
    seconds=40.0,
    draw=plots.draw_speed,
)


def _stream(name: str, options: Run) -> Iterator[list[Row]]:
    """Rows of a set with a little noise, made chunk by chunk and not kept."""
    if not options.wants(set=name):
        return
    problem, rng, n_rows, chunk = load(name), np.random.default_rng(0), options.rows or 5_000_000, 100_000
    model = BSGDClassifier(gamma=problem.gamma, lam=1 / (problem.C * n_rows), budget=100)
    seconds, rows, n_chunks = 0.0, [], max(1, n_rows // chunk)
    for part in range(n_chunks):
        chosen = rng.integers(len(problem.y), size=min(chunk, n_rows))
        X = problem.X[chosen] + rng.normal(0, 0.01, (len(chosen), problem.X.shape[1])).astype(np.float32)
        start = time.perf_counter()
        model.partial_fit(X, problem.y[chosen], classes=[-1, 1])
        seconds += time.perf_counter() - start
        if (part + 1) in (5, 10, 20, n_chunks):
            row: dict[str, Any] = {"set": name, "rows": (part + 1) * chunk, "seconds": seconds, "repeats": 1}
            row |= {"peak bytes": peak_bytes(), "accuracy %": 100 * float(model.score(problem.X_test, problem.y_test))}
            rows.append(row)
    yield rows


STREAM = Experiment(  # a stream of 5,000,000 rows: seconds and peak memory
    "bsgd/stream",
    ("ijcnn1",),
    ("set",),
    _stream,
    settings={"rows": None},
    parts=True,
    seconds=40.0,
)
