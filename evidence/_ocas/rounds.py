"""Figure 1: objective and lower bound over the iterations, with and without the line search."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evidence._ocas import ours
from measuring.experiment import Axes, Experiment, Row, Run, panels_of
from measuring.linear_problems import load_linear

_SHOWN = 60  # iterations of each curve, in geometric steps
_TOL = 1e-4


def _figure1(name: str, options: Run) -> Iterator[list[Row]]:
    problem = load_linear(name, options.rows)
    for C in options.C or (1.0,):
        for who in (ours.OCAS, ours.PLAIN, ours.CPA):
            if options.wants(who, set=name, C=C, solver=who):
                history = ours.fit(problem, C, tol=_TOL, max_time=options.limit, **ours.WAYS[who])[0].history_
                n = len(history["time"])
                yield [
                    {
                        "set": name,
                        "C": C,
                        "solver": who,
                        "iteration": int(k) + 1,
                        "objective": history["objective"][k],
                        "lower_bound": history["lower_bound"][k],
                        "iterations": n,
                    }
                    for k in np.unique(np.geomspace(1, n, _SHOWN).astype(int)) - 1
                ]


FIGURE1 = Experiment(  # Figure 1: objective and lower bound over the iterations
    "ocas/figure1",
    ("a9a", "codrna", "spam_assassin", "cov1"),
    ("set", "C", "solver"),
    _figure1,
    settings=ours.SETTINGS,
    parts=True,
    seconds=10.0,
    panels=lambda rows: panels_of(
        rows,
        ("set",),
        ("solver",),
        Axes("iteration", "iterations", "objective", "F", "xy"),
        Axes("iteration", "iterations", "lower_bound", "its lower bound", "xy"),
    ),
)
