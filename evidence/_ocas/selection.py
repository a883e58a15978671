"""Table 2, every solver with its own stopping rule at C = 1, and Table 3, the choice of C by each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from evidence._ocas import ours
from evidence._ocas.rivals import liblinear, pegasos, sgd
from measuring.experiment import Experiment, Row, Run, repeated
from measuring.linear_problems import Linear, Matrix, load_linear, load_parts, most_epochs, objective

GRID = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
EPOCHS = 10  # of the approximate solvers, as in the paper for SGD
BINARY = ("ijcnn1", "codrna", "a9a", "spam_assassin", "news20_1", "cov1")

Train = Callable[[Linear, float], Matrix]


def _ours(**parameters: Any) -> Train:
    return lambda problem, C: ours.fit(problem, C, **parameters)[0].coef_


def _path(problem: Linear, costs: Sequence[float]) -> list[Matrix]:
    """All C in one call of `fit_path`: each starts with the planes of those before it."""
    model = ours.OCASClassifier(fit_intercept=False, max_iter=ours.MANY)
    return [fitted.coef_ for fitted in model.fit_path(problem.X, problem.labels, costs)]


def _double(problem: Linear) -> Linear:
    return problem._replace(X=problem.X.astype(np.float64))


def solvers(limit: float) -> dict[str, tuple[Train, Callable[[Linear], Linear]]]:
    """Name, training function, and what is done to the rows before the clock starts.

    LIBLINEAR's tolerances are those of its own command line.
    """

    def same(problem: Linear) -> Linear:
        return problem

    return {
        "OCAS": (_ours(), same),
        "OCAS, plain": (_ours(acceleration=None, max_time=limit), same),
        "CPA": (_ours(line_search=False, max_time=limit), same),
        "LIBLINEAR dual": (lambda p, C: liblinear(p.X, p, C, epochs=min(1000, most_epochs(p.X)), tol=0.1), _double),
        "LIBLINEAR primal (squared hinge)": (
            lambda p, C: liblinear(p.X, p, C, epochs=1000, tol=0.01, loss="squared_hinge"),
            _double,
        ),
        "SGD, averaged": (lambda p, C: sgd(p.X, p, C, EPOCHS), same),
        "Pegasos": (lambda p, C: pegasos(p.X, p, C, EPOCHS), lambda p: p._replace(X=sp.csr_array(p.X))),
    }


def _table2(name: str, options: Run) -> Iterator[list[Row]]:
    problem = load_linear(name, options.rows)
    _warm_up(problem, options.limit)
    for C in options.C or (1.0,):
        rows = []
        if not options.wants(set=name, C=C):
            continue
        for who, (train, prepare) in solvers(options.limit).items():
            ready = prepare(problem)
            W, seconds = ours.repeat(lambda C=C, train=train, ready=ready: train(ready, C))
            rows.append({"solver": who, **repeated(seconds), "objective": objective(problem, W, C)})
        hinge = [row["objective"] for row in rows if "squared" not in row["solver"]]
        yield [
            {"set": name, "form": problem.form, "C": C, **row, "excess": row["objective"] / min(hinge) - 1}
            for row in rows
        ]


def _warm_up(problem: Linear, limit: float) -> None:
    """Load libraries and start threads, on a few rows of the same kind."""
    few = np.unique(problem.labels, return_index=True)[1]
    rows = np.unique(np.concatenate([few, np.arange(min(200, len(problem.labels)))]))
    small = problem._replace(X=problem.X[rows], labels=problem.labels[rows], Y=problem.Y[rows])
    for train, prepare in solvers(limit).values():
        train(prepare(small), 1.0)


def _table3(name: str, options: Run) -> Iterator[Row]:
    parts = load_parts(name)
    costs = options.C or GRID
    _warm_up(parts.train, options.limit)
    ways: dict[str, tuple[Callable[[Linear], list[Matrix]], Callable[[Linear], Linear]]] = {
        "OCAS, path": (lambda problem: _path(problem, costs), lambda problem: problem)
    }
    for who, (train, prepare) in solvers(options.limit).items():
        ways[who] = (lambda problem, train=train: [train(problem, C) for C in costs], prepare)
    for who, (train_all, prepare) in ways.items():
        if not options.wants(who, set=name, solver=who):
            continue
        ready = prepare(parts.train)
        machines, seconds = ours.repeat(lambda train_all=train_all, ready=ready: train_all(ready))
        scores = [_auc(parts.valid, W) for W in machines]
        k = int(np.argmax(scores))
        row = {"set": name, "solver": who, **repeated(seconds), "best C": costs[k]}
        yield row | {"validation auROC": scores[k], "test auROC": _auc(parts.test, machines[k])}


def _auc(problem: Linear, W: Matrix) -> float:
    return float(roc_auc_score(problem.Y[:, 0] > 0, np.asarray(problem.X @ W[0])))


TABLE2 = Experiment(  # Table 2: time and objective of every solver with its own stopping rule
    "ocas/table2",
    (*BINARY, "kddcup99_10", "mnist", "gaussians"),
    ("set", "C"),
    _table2,
    settings=ours.SETTINGS,
    parts=True,
    seconds={"gaussians": 110.0, "": 25.0},
)
TABLE3 = Experiment(  # Table 3: seconds for a whole path of C, and the area under the ROC curve of its choice
    "ocas/table3",
    tuple(name for name in BINARY if name != "news20_1"),
    ("set", "solver"),
    _table3,
    settings=ours.SETTINGS,
    parts=True,
    seconds={"a9a": 25.0, "ijcnn1": 20.0, "codrna": 20.0, "": 80.0},
)
