"""Fits in one process that are interrupted.

They get a SIGINT at a random moment, and are counted by how they end; the fits after them must give the models of the
fits before them.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from measuring.experiment import Experiment, Row
from widemargin import BSGDClassifier, DCSVMClassifier, OCASClassifier, _progress


def count_interrupts(count: int) -> dict[str, int]:
    """How often interrupted fits converged before the signal, stopped with a model, or raised KeyboardInterrupt."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(3000, 6)).astype(np.float32), rng.normal(size=(60_000, 10))
    y, z = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=3000) > 0, Z[:, 0] + rng.normal(size=60_000) > 0
    fits: list[Callable[[], Any]] = [
        lambda: DCSVMClassifier(C=10.0, n_levels=0, n_jobs=2, random_state=0).fit(X, y),
        lambda: OCASClassifier(n_jobs=2).fit(Z, z),
        lambda: BSGDClassifier(budget=50, n_epochs=5, random_state=0).fit(X, y),
    ]
    samples = [X[:100], Z[:100], X[:100]]
    before = [fit().decision_function(rows) for fit, rows in zip(fits, samples, strict=True)]
    seconds = [_seconds(fit) for fit in fits]
    ends: Counter[str] = Counter()
    for k in range(count):
        ends[_interrupt(fits[k % 3], rng.uniform(0, 1.2 * seconds[k % 3]))] += 1
    after = [fit().decision_function(rows) for fit, rows in zip(fits, samples, strict=True)]
    return dict(ends) | {"models that changed": sum(map(lambda a, b: not np.array_equal(a, b), before, after))}


def measure(count: int, run: Any = None) -> Row:
    """The counts of so many interrupts."""
    return {"interrupts": count, **count_interrupts(count)}


def _interrupt(fit: Callable[[], Any], delay: float) -> str:
    _progress._last_sigint = -np.inf  # a second one within two seconds would raise
    sender = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    try:
        sender.start()
        model = fit()
        end = "converged" if model.converged_ else "stopped"
        sender.join()
        time.sleep(0)  # a signal after the fit is raised here
    except KeyboardInterrupt:
        end = "raised"
    sender.join()
    return end


def _seconds(fit: Callable[[], Any]) -> float:
    start = time.perf_counter()
    fit()
    return time.perf_counter() - start


THREADS = Experiment("threads_interrupts", [(1000,)], ("interrupts",), measure, seconds=300.0, quick={"cells": [(10,)]})
