"""Early machines against exact ones on a share of the rows: what a random subsample reaches in as much time.

Horn et al., A Comparative Study on Large Scale Kernelized Support Vector Machines, 2016, ask it of every approximation.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evidence._dc_svm.compare import EARLY_PAPER, EXACT, LIBSVM, SIX, early
from evidence._dc_svm.machines import SETTINGS, Machine, load, measure_often, settings_of, warm_up
from measuring.experiment import Experiment, Row, Run
from measuring.problems import Problem

_SHARES = (4, 16, 64)  # of so many rows one
_MOST_OF_LIBSVM = 20_000  # rows: it takes minutes on more, and to predict
_MOST_OF_OURS = 200_000


def _machines(n: int) -> Iterator[tuple[Machine, int]]:
    """Each machine with the share of the rows that it gets; `n` are all of them."""
    yield from ((machine, 1) for machine in (early(3), EARLY_PAPER))
    yield from ((EXACT, share) for share in (1, *_SHARES) if n <= share * _MOST_OF_OURS)
    yield from ((LIBSVM, share) for share in _SHARES if n <= share * _MOST_OF_LIBSVM)


def _subsamples(name: str, options: Run) -> Iterator[Row]:
    whole = load(name, options.rows)
    settings = settings_of(whole, tol=options.tol)
    for machine, share in _machines(len(whole.X)):
        label = machine.label + (f", 1/{share} of the rows" if share > 1 else "")
        if options.wants(label, set=name, machine=label):
            warm_up(machine, settings, whole)
            row, _ = measure_often(machine, settings, _random_rows(whole, share), options.repeats)
            yield row | {"machine": label}


def _random_rows(problem: Problem, share: int) -> Problem:
    n = len(problem.X)
    rows = np.sort(np.random.default_rng(0).choice(n, n // share, replace=False)) if share > 1 else slice(None)
    return problem._replace(X=problem.X[rows], y=problem.y[rows])


SUBSAMPLES = Experiment(  # early machines against exact ones on a share of the rows
    "dc_svm/subsamples",
    (*SIX, "covtype"),
    ("set", "machine"),
    _subsamples,
    settings=SETTINGS,
    parts=True,
    seconds={"covtype": 60.0, "mnist": 50.0, "": 10.0},
)
