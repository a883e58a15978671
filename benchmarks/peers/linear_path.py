"""The choice of C of a linear machine: OCASClassifierCV beside LIBLINEAR, with and without warm starts.

10 values of C from 1e-4 to 10, 5 stratified folds, and at the end a machine with the best C trained on all rows:

    OCASClassifierCV                        hinge loss; each machine of a fold has the planes of those of smaller C
    LIBLINEAR                               hinge loss, dual coordinate descent: a fit for every fold and C
    LIBLINEAR, squared hinge                Newton's method, for another problem than ours: it has warm starts
    LIBLINEAR, squared hinge, warm starts   each fit from the weights of the last C (`pip install liblinear-official`)

Ours stop at a relative gap of 1e-3, LIBLINEAR at the tolerances of its command line, 0.1 and 0.01, or after as many
epochs as read 2e9 entries. Its rows are float64 and CSR, for the last machine in LIBLINEAR's own form, converted before
the clock starts; its intercept is the weight of a constant column. `ratio` is a machine's seconds divided by those of
OCASClassifierCV: the machines take turns, and seconds are the median of the repetitions. `score` is the mean accuracy
of the chosen C.
"""

from __future__ import annotations

import ctypes
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from measuring.experiment import Experiment, Row, Run
from measuring.linear_problems import load_linear, most_epochs
from widemargin import OCASClassifierCV

_SETS = ("a9a", "ijcnn1", "codrna", "spam_assassin", "kddcup99_10")
_CS = np.logspace(-4, 1, 10)
_OURS = "OCASClassifierCV"

Scores = NDArray[np.float64]  # (n_folds, n_C)


class Data(NamedTuple):
    """Rows as ours take them, rows as LIBLINEAR takes them, labels of two classes, and whether each is the second."""

    X: Any
    rows: sp.csr_array
    y: NDArray[Any]
    positive: NDArray[np.bool_]

    @property
    def folds(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Training and test rows."""
        return list(StratifiedKFold(5).split(self.rows, self.y))


def load(name: str, n_rows: int | None) -> Data:
    """A set with two classes."""
    problem = load_linear(name, n_rows)
    y = problem.labels if len(np.unique(problem.labels)) == 2 else problem.Y[:, 0]
    return Data(problem.X, sp.csr_array(problem.X, dtype=np.float64), y, y == np.unique(y)[1])


def measure(name: str, run: Run) -> list[Row]:
    """A row for each machine."""
    warnings.simplefilter("ignore")
    data = load(name, run.rows)
    searches = machines(data)
    seconds: dict[str, list[float]] = {machine: [] for machine in searches}
    found: dict[str, Scores] = {}
    for _ in range(run.repeats):
        for machine, search in searches.items():
            begin = time.perf_counter()
            found[machine] = search().mean(axis=0)
            seconds[machine].append(time.perf_counter() - begin)
    times = {machine: statistics.median(values) for machine, values in seconds.items()}
    rows = []
    for machine, scores in found.items():
        best = int(np.argmax(scores))
        rows.append(
            {
                "set": name,
                "n": data.X.shape[0],
                "d": data.X.shape[1],
                "machine": machine,
                "seconds": times[machine],
                "ratio": times[machine] / times[_OURS],
                "C": float(_CS[best]),
                "score": float(scores[best]),
                "scores": " ".join(f"{score:.6f}" for score in scores),
            }
        )
    return rows


def machines(data: Data) -> dict[str, Callable[[], Scores]]:
    """Searches by name, with rows in the form that they take."""
    hinge = partial(separate, LinearSVC(loss="hinge", dual=True, tol=0.1, max_iter=most_epochs(data.rows)))
    squared = partial(separate, LinearSVC(loss="squared_hinge", dual=False, tol=0.01))
    arrays = [(data.rows[train], data.y[train]) for train in training_rows(data)]
    known = {
        _OURS: lambda: OCASClassifierCV(_CS, cv=5).fit(data.X, data.y).scores_,
        "LIBLINEAR": lambda: cross_validated(data, arrays, hinge),
        "LIBLINEAR, squared hinge": lambda: cross_validated(data, arrays, squared),
    }
    try:
        from liblinear import liblinear
    except ImportError:
        return known
    signs = np.where(data.positive, 1.0, -1.0)
    problems = [liblinear.problem(signs[t], sp.csr_matrix(data.rows[t]), bias=1) for t in training_rows(data)]
    return {
        **known,
        "LIBLINEAR, squared hinge, warm starts": lambda: cross_validated(data, problems, partial(warm, liblinear)),
    }


def training_rows(data: Data) -> list[NDArray[np.intp]]:
    """Of each fold, then all."""
    return [*(train for train, _ in data.folds), np.arange(len(data.y))]


def cross_validated(data: Data, parts: Sequence[Any], train: Callable[[Any, Sequence[float]], list[Any]]) -> Scores:
    """Scores of the weights (d + 1,) for all Cs in each fold, and a machine with the best C on all rows."""
    scores = []
    for part, (_, test) in zip(parts, data.folds, strict=False):
        weights = np.array(train(part, _CS))
        decision = data.rows[test] @ weights[:, :-1].T + weights[:, -1]
        scores.append(np.mean((decision > 0) == data.positive[test][:, None], axis=0))
    train(parts[-1], [float(_CS[np.argmax(np.mean(scores, axis=0))])])
    return np.array(scores)


def separate(model: LinearSVC, part: tuple[Any, Any], Cs: Sequence[float]) -> list[NDArray[np.float64]]:
    """Weights by LIBLINEAR through scikit-learn, each machine from zero."""
    fits = (model.set_params(C=C, random_state=0).fit(*part) for C in Cs)
    return [np.r_[fit.coef_.ravel(), fit.intercept_] for fit in fits]


def warm(liblinear: Any, problem: Any, Cs: Sequence[float]) -> list[NDArray[np.float64]]:
    """Weights by LIBLINEAR's primal Newton method, each machine from those of the last C."""
    weights, start = [], None
    for C in Cs:
        options = liblinear.parameter(f"-s 2 -e 0.01 -c {C} -B 1 -q")
        options.init_sol = start
        model = liblinear.liblinear.train(ctypes.byref(problem), ctypes.byref(options))
        w = np.ctypeslib.as_array(model.contents.w, (problem.n,)).copy()
        start = (ctypes.c_double * len(w))(*w)
        weights.append(w * model.contents.label[0])  # the weights are those of the first label
        liblinear.liblinear.free_and_destroy_model(ctypes.byref(model))
    return weights


LINEAR_PATH = Experiment(
    "linear_path",
    _SETS,
    ("set", "machine"),
    measure,
    seconds=40.0,
    settings={"rows": None, "repeats": 3},
    quick={"cells": ["a9a"], "rows": 500, "repeats": 1},
)
