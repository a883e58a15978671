"""Where a linear machine is trained on its dual alone: cutting planes beside the dual, by the number of columns.

Each set keeps its most frequent columns, d of them, or (dense) its rows. `planes` are rounds of cutting planes that
alternate with epochs of dual coordinate ascent; `dual` are epochs and conjugate gradients on the dual, without a plane.
Processor seconds of a fit on one thread, without an intercept but in `linear_text_intercept`, to a relative gap of 1e-3
or for 10 seconds (`gap` says which); `ratio` is the seconds of planes divided by those of the dual. `rule` is what
`choose_accelerations` takes.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp

from measuring.experiment import Experiment, Row, Run
from measuring.linear_problems import load_linear
from widemargin import OCASClassifier
from widemargin.algorithms import ocas
from widemargin.solvers.cutting_plane.accelerations import Accelerations, choose_accelerations

_SHARES = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)  # d / n
_COSTS = (0.01, 1.0, 100.0)
_SPARSE, _DENSE = ("spam_assassin", "news20_1"), ("mnist",)


def _all(name: str, run: Run) -> Iterator[Row]:
    problem = load_linear(name, run.rows)
    for X, y in _restricted(problem.X, problem.labels, run.shares):
        yield from (_measure(name, X, y, C, run) for C in _COSTS)


def _with_intercept(name: str, run: Run) -> Iterator[Row]:
    run.intercept = True
    yield from _all(name, run)


def _restricted(X: Any, y: Any, shares: Sequence[float]) -> Iterator[tuple[Any, Any]]:
    """The most frequent columns of sparse rows, or the first rows of dense ones, for each share d / n there is."""
    n, d = X.shape
    for share in shares:
        if not sp.issparse(X) and 1024 < d / share <= n:
            yield X[: int(d / share)], y[: int(d / share)]
        elif sp.issparse(X) and share * n <= d:
            order = np.argsort(-np.bincount(X.indices, minlength=d), kind="stable")
            yield sp.csr_array(X.tocsc()[:, order[: math.ceil(share * n)]]), y


def _measure(name: str, X: Any, y: Any, C: float, run: Run) -> Row:
    row: Row = {"set": name, "n": X.shape[0], "d": X.shape[1], "C": C}
    model = OCASClassifier(C=C, fit_intercept=run.intercept, max_time=run.limit, max_iter=10**6, n_jobs=1)
    rules: list[Accelerations] = []
    for method in ("planes", "dual"):

        def choose(*given: Any, alone: bool = method == "dual") -> Accelerations:
            rules.append(choose_accelerations(*given))
            active_rows = rules[-1].active_rows and not alone
            return replace(rules[-1], dual_epochs=not alone, dual_alone=alone, active_rows=active_rows)

        start = time.process_time()
        with mock.patch.object(ocas, "choose_accelerations", choose), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # out of time
            model.fit(X, y)
        row |= {method: time.process_time() - start, f"{method}_gap": model.relative_gap_}
    return row | {"ratio": row["planes"] / row["dual"], "rule": "dual" if rules[-1].dual_alone else "planes"}


LINEAR_TEXT = Experiment(
    "linear_text",
    (*_SPARSE, *_DENSE),
    ("set", "n", "d", "C"),
    _all,
    seconds=90.0,
    settings={"rows": None, "shares": _SHARES, "intercept": False, "limit": 10.0},
    quick={"rows": 300, "shares": (0.5,), "limit": 1.0},
)
INTERCEPT = LINEAR_TEXT._replace(results="linear_text_intercept", measure=_with_intercept)
