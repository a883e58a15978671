"""A model of LIBSVM and one of R's e1071 with some 20,000 support vectors each: read, compressed, and timed.

The table is like one of remote sensing: 12 bands, 8 classes that overlap. Times are processor seconds of predictions of
the same rows, of the other program less those of a run with few rows; ours of one thread.
"""

from __future__ import annotations

import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import dump_svmlight_file

from measuring.experiment import Experiment, Row
from widemargin import compress, read_machine

N_NEW, N_FEW = 4_000, 50
_R = """
suppressMessages(library(e1071))
x <- as.matrix(read.csv("x.csv", header = FALSE)); y <- factor(scan("y.csv", quiet = TRUE))
new <- as.matrix(read.csv("new.csv", header = FALSE))
model <- svm(x, y, cost = 2)
write.svm(model, "e1071.model", "e1071.scale", "e1071.yscale")
seconds <- system.time(labels <- predict(model, new))[["user.self"]]
writeLines(as.character(labels), "e1071.labels"); writeLines(as.character(seconds), "e1071.seconds")
"""


def table(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Reflectances of n pixels in 12 bands, from few sources, and their classes (n,)."""
    y = rng.integers(1, 9, n)
    centres = np.random.default_rng(1).normal(size=(9, 4))
    sources = centres[y] + 1.1 * rng.normal(size=(n, 4))
    mixing = np.random.default_rng(2).normal(size=(4, 12))
    return np.round(0.2 + 0.05 * sources @ mixing + 0.01 * rng.normal(size=(n, 12)), 4), y


def seconds_of(*command: str, folder: Path) -> float:
    """Processor seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def _compressed(name: str, model: Any, X: Any, new: Any, theirs: NDArray[np.int64], seconds: float) -> Row:
    """Compress, predict, and say what was gained and lost."""
    start = time.perf_counter()
    fast = compress(model, X, random_state=0, n_jobs=1)
    compressing = time.perf_counter() - start
    times = []
    for _ in range(5):
        begin = time.process_time()
        labels = fast.predict(new)
        times.append(time.process_time() - begin)
    machine = model[-1] if hasattr(model, "steps") else model
    return {
        "program": name,
        "support_vectors": len(machine.support_vectors_),
        "rows": len(new),
        "differ": int((model.predict(new) != theirs).sum()),
        "seconds": seconds,
        "compressed_seconds": min(times),
        "ratio": seconds / min(times),
        "agreement": float(np.mean(labels == theirs)),
        "compressing_seconds": compressing,
    }


def measure(n: int, run: Any = None) -> list[Row]:
    """Train, read, compress, predict."""
    rng = np.random.default_rng(0)
    X, y = table(n, rng)
    new, y_new = table(N_NEW, rng)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scaled, new_scaled = ((rows - X.mean(axis=0)) / X.std(axis=0) for rows in (X, new))
        dump_svmlight_file(scaled, y, folder / "rows", zero_based=False)
        dump_svmlight_file(new_scaled, y_new, folder / "new", zero_based=False)
        dump_svmlight_file(new_scaled[:N_FEW], y_new[:N_FEW], folder / "few", zero_based=False)
        seconds_of("svm-train", "-c", "2", "-m", "1000", "rows", "model", folder=folder)
        seconds = -seconds_of("svm-predict", "few", "model", "labels", folder=folder)
        seconds += seconds_of("svm-predict", "new", "model", "labels", folder=folder)
        labels = np.loadtxt(folder / "labels", dtype=int)
        libsvm = _compressed("LIBSVM", read_machine(folder / "model"), scaled, new_scaled, labels, seconds)
        for file, data in (("x.csv", X), ("y.csv", y), ("new.csv", new)):
            np.savetxt(folder / file, data, "%.6g", delimiter=",")
        (folder / "train.R").write_text(_R)
        seconds_of("Rscript", "train.R", folder=folder)
        labels = np.loadtxt(folder / "e1071.labels", dtype=int)
        model = read_machine(folder / "e1071.model", scale=folder / "e1071.scale", classes=range(1, 9))
        e1071 = _compressed("e1071", model, X, new, labels, float((folder / "e1071.seconds").read_text()))
    return [libsvm | {"trained": n}, e1071 | {"trained": n}]


COMPRESSED_PROGRAMS = Experiment(
    "compressed_programs", [(30_000,)], ("trained", "program"), measure, seconds=420.0, quick={"cells": [(1000,)]}
)
