"""The authors' own program beside ours: `svmocas` of Debian's libocas-tools, on one and on two threads, and its CPA.

All end at a relative gap of 1e-3. Its seconds are those that it reports, without the reading of the file.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file

from evidence._ocas import ours
from measuring.experiment import Experiment, Row, Run, repeated
from measuring.linear_problems import Linear, load_linear, objective

if shutil.which("svmocas") is None:
    raise ImportError("the program svmocas is not installed: apt install libocas-tools")

_GAP = 1e-3
_WAYS = (("svmocas", 1, 1), ("svmocas", 2, 1), ("svmocas, CPA", 1, 0))  # threads; its argument -m


def _measure(name: str, options: Run) -> Iterator[list[Row]]:
    problem = load_linear(name, options.rows)
    ours.warm_up(problem)
    with tempfile.TemporaryDirectory() as place:
        dump_svmlight_file(problem.X, problem.Y[:, 0].astype(int), f"{place}/rows", zero_based=False)
        for C in options.C or (1.0, 100.0):
            if options.wants(set=name, C=C):
                rows = [*_theirs(problem, C, Path(place), options.limit), *_ours(problem, C, options.limit)]
                best = min(float(row["objective"]) for row in rows)
                yield [{"set": name, "C": C, **row, "excess": row["objective"] / best - 1} for row in rows]


def _theirs(problem: Linear, C: float, place: Path, limit: float) -> Iterator[Row]:
    for solver, threads, method in _WAYS:
        runs = [run_svmocas(place, C, threads, method, limit)]
        while len(runs) < 3 and sum(seconds for seconds, _ in runs) < limit / 2:
            runs.append(run_svmocas(place, C, threads, method, limit))
        written = np.loadtxt(place / "model")[:-1]  # as many columns as occur in the file, and an intercept of 0
        W = np.zeros((1, problem.X.shape[1]))
        W[0, : len(written)] = written
        row = {"solver": solver, "threads": threads, **repeated([seconds for seconds, _ in runs])}
        yield row | {"rounds": runs[0][1], "objective": objective(problem, W, C)}


def run_svmocas(place: Path, C: float, threads: int, method: int, limit: float) -> tuple[float, int]:
    """Train on the file `rows` of a folder, and write `model`; its seconds and rounds."""
    how = ["-c", f"{C:.17g}", "-b", "0", "-r", str(_GAP), "-p", str(threads), "-m", str(method), "-t", str(limit)]
    command = ["svmocas", *how, str(place / "rows"), str(place / "model")]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=4 * limit + 60).stdout
    rounds, seconds = re.findall(r"^ *(\d+): tim=", said, re.MULTILINE), re.findall(r"ocas_time *: ([\d.]+)", said)
    return float(seconds[0]), int(rounds[-1])


def _ours(problem: Linear, C: float, limit: float) -> Iterator[Row]:
    for who, threads in ((ours.PLAIN, 1), (ours.PLAIN, 2), (ours.CPA, 1), (ours.OCAS, 2)):
        how = {"tol": _GAP, "n_jobs": threads, "max_time": limit, **ours.WAYS[who]}
        (model, _), seconds = ours.repeat(lambda how=how: ours.fit(problem, C, **how), 3, 5.0)
        row = {"solver": who, "threads": threads, **repeated(seconds), "rounds": model.n_iter_}
        yield row | {"objective": objective(problem, model.coef_, C)}


AUTHORS = Experiment(  # the authors' own program, beside Algorithm 1 of ours
    "ocas/authors",
    ("a9a", "ijcnn1", "codrna", "spam_assassin", "cov1"),
    ("set", "C"),
    _measure,
    settings=ours.SETTINGS,
    parts=True,
    seconds={"cov1": 100.0, "spam_assassin": 90.0, "a9a": 60.0, "": 25.0},
)
