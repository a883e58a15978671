"""BSGD beside other machines of the same prediction cost, beside BudgetedSVM, and on a long stream; steps a second."""

from __future__ import annotations

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

_BUDGETS = (50, 200, 1000)
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
    settings={"rows": None, "seeds": 3},
    parts=True,
    seconds=30.0,
    draw=plots.draw_tradeoff,
)

# A long stream ------------------------------------------------------------------------------------------------------


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
    seconds=20.0,
)
