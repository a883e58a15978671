"""Error of `LandmarkNystroem` on rows it has not seen, and seconds, by how its landmarks are chosen.

::

    python benchmarks/landmarks.py --sets usps letter a9a covtype_20k ijcnn1 pendigits

The error is that of the kernel matrix of 2,000 test rows, in the Frobenius norm, divided by its norm; seconds are those
of a processor, on one thread; both are means over three seeds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from measuring import report
from measuring.problems import NAMES, load_problem
from widemargin import LandmarkNystroem

_ROWS, _TEST_ROWS = 5000, 2000
_LANDMARKS = (100, 500)
_METHODS = ("kmeans", "uniform", "rpcholesky")
_SEEDS = range(3)
_COLUMNS = ["set", "n", "n_features", "m", "landmarks", "error", "seconds"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--sets", nargs="+", default=["usps"], choices=NAMES, metavar="SET")
    parser.add_argument("--rows", type=int, default=_ROWS)
    options = parser.parse_args(arguments)
    rows = []
    for name in options.sets:
        problem = load_problem(name, n_rows=options.rows)
        for m in _LANDMARKS:
            rows += [measure(problem, m, landmarks) for landmarks in _METHODS]
            print(report.format_table(rows[-len(_METHODS) :], _COLUMNS), flush=True)
        report.write_csv(report.RESULTS / "landmarks.csv", rows)


def measure(problem: Any, m: int, landmarks: str) -> dict[str, Any]:
    """The error and the seconds, means over the seeds."""
    errors, seconds, X_test = [], [], problem.X_test[:_TEST_ROWS]
    K = rbf_kernel(X_test, gamma=problem.gamma)
    for seed in _SEEDS:
        model = LandmarkNystroem(m, landmarks=landmarks, gamma=problem.gamma, n_jobs=1, random_state=seed)
        start = time.process_time()
        model.fit(problem.X)
        seconds.append(time.process_time() - start)
        features = model.transform(X_test)
        errors.append(float(np.linalg.norm(K - features @ features.T) / np.linalg.norm(K)))
    n, d = problem.X.shape
    row = {"set": problem.name, "n": n, "n_features": d, "m": m, "landmarks": landmarks}
    return row | {"error": float(np.mean(errors)), "seconds": float(np.mean(seconds))}


if __name__ == "__main__":
    main()
