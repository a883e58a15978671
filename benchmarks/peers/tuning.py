"""Exact searches of DCSVMClassifierCV beside GridSearchCV around scikit-learn-intelex's SVC and around our classifier.

One run: the same rows, the same five stratified folds, the same 7 values of C (0.1 to 1,000) and 4 of gamma (1/4, 1, 4
and 16 times that of "scale"), accuracy, and a machine trained on all rows at the end. float32, tol = 1e-3: it
bounds violations, and in exhaustive searches gaps instead.
`tuning_path` has ten folds, 50 values of C and the one gamma of "scale": TorchKM's protocol. GridSearchCV gets every
tenth C there, and its seconds of folds are taken ten times. Machines:

    GridSearchCV, intelex      SVC
    GridSearchCV, ours         nothing shared: a fit for every fold and cell
    exhaustive, cold           kernel rows shared by folds and Cs, nothing predicted; each dual from zero
    exhaustive                 and each dual from the last C's solution
    default                    and cells left early

All machines have an intercept. `ratio` is the seconds of intelex's search divided by the machine's. `regret` is in
points of accuracy: the best mean score of the grid minus that of the cell chosen, both as `exhaustive` has them.
`difference` is the largest difference of a cell's mean score from that of intelex's search, in points; `seen` counts
the cells scored in all folds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from measuring.experiment import Experiment, Row, Run
from measuring.problems import load_problem
from widemargin import DCSVMClassifier, DCSVMClassifierCV
from widemargin.datasets import load_benchmark
from widemargin.solvers.dual.dual_path import DualPath, scale_bounds

_TOL = 1e-3
_RIVAL, _OURS = "GridSearchCV, intelex", "GridSearchCV, ours"


class Grid(NamedTuple):
    """Cells and folds of a search, and the rows of each set; `GridSearchCV` gets one C of `rivals_step`."""

    rows: dict[str, int]
    Cs: NDArray[np.float64]
    factors: tuple[float, ...]  # gamma / that of "scale"
    n_folds: int
    rivals_step: int = 1

    @property
    def folds(self) -> StratifiedKFold:
        return StratifiedKFold(self.n_folds)

    def gammas(self, X: NDArray[np.float32]) -> list[float]:
        """The values of gamma for these rows."""
        scale = 1.0 / (X.shape[1] * X.var(dtype=np.float64))
        return [factor * scale for factor in self.factors]


GRID = Grid(
    {"a9a": 10_000, "ijcnn1": 15_000, "codrna": 15_000, "letter": 15_000, "covtype_20k": 10_000, "mnist": 10_000},
    np.logspace(-1, 3, 7),
    (0.25, 1.0, 4.0, 16.0),
    5,
)
PATH = Grid(
    {"a9a": 10_000, "ijcnn1": 10_000, "sparse_wide": 10_000, "covtype": 10_000}, np.logspace(-1, 3, 50), (1.0,), 10, 10
)


def _grid(name: str, run: Run) -> Iterator[list[Row]]:
    yield compared(name, GRID, run)


def _path(name: str, run: Run) -> Iterator[list[Row]]:
    yield compared(name, PATH, run)


def compared(name: str, grid: Grid, run: Run) -> list[Row]:
    """The rows of a set's searches, with their ratios, regrets and differences."""
    warnings.simplefilter("ignore")
    X, y = load(name, run.rows or grid.rows[name])
    rows = []
    for machine, search in machines(grid).items():
        if run.asks(machine):
            search(X[:1000], y[:1000])  # libraries loaded, threads started
            common = {"set": name, "n": len(y), "classes": len(np.unique(y)), "machine": machine}
            rows.append(common | measure(search, X, y, grid))
    return [compare(row, {other["machine"]: other for other in rows}) for row in rows]


def load(name: str, n: int) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """n random training rows: of mnist ten classes with pixels in [0, 1], of the others the binary problem."""
    if name != "mnist":
        problem = load_problem(name, n_rows=n)
        return problem.X, problem.y
    X, y, _, _ = load_benchmark("mnist")
    chosen = np.random.default_rng(0).choice(len(y), n, replace=False)
    return np.ascontiguousarray(X[chosen] / 255, dtype=np.float32), y[chosen]


def machines(grid: Grid) -> dict[str, Callable[[Any, Any], Any]]:
    """Searches by name: each fits rows and labels, and returns a fitted search with `cv_results_`."""

    def separate(make: Callable[[], Any]) -> Callable[[Any, Any], Any]:
        def search(X: Any, y: Any) -> Any:
            values = {"C": grid.Cs[:: grid.rivals_step].tolist(), "gamma": grid.gammas(X)}
            return GridSearchCV(make(), values, cv=grid.folds, error_score="raise").fit(X, y)

        return search

    def shared(**options: Any) -> Callable[[Any, Any], Any]:
        options |= {"kernels": "rbf", "search": "exact", "cv": grid.folds, "tol": _TOL}
        return lambda X, y: DCSVMClassifierCV(grid.Cs, grid.gammas(X), **options).fit(X, y)

    def cold(X: Any, y: Any) -> Any:
        with mock.patch.object(DualPath, "step", step_from_zero):
            return shared(exhaustive=True)(X, y)

    return {
        "default": shared(),
        "exhaustive": shared(exhaustive=True),
        "exhaustive, cold": cold,
        _OURS: separate(lambda: DCSVMClassifier(tol=_TOL)),
        _RIVAL: separate(intelex),
    }


def intelex() -> Any:
    """scikit-learn-intelex's SVC."""
    from sklearnex.svm import SVC

    return SVC(tol=_TOL, cache_size=1000)


def step_from_zero(path: DualPath, C: float) -> Any:
    """`DualPath.step` without the last C's solution."""
    zero = np.zeros_like(path.beta)
    return path.solve(scale_bounds(path.unit, C), zero, zero)


def measure(search: Callable[[Any, Any], Any], X: Any, y: Any, grid: Grid) -> Row:
    """Seconds, the cell chosen, and the mean scores of all cells, C after C for each gamma; NaN where left."""
    begin = time.perf_counter()
    found = search(X, y)
    seconds, refit = time.perf_counter() - begin, getattr(found, "refit_time_", 0.0)
    gamma, C = (np.array(found.cv_results_[f"param_{name}"], float) for name in ("gamma", "C"))
    means = np.full((len(grid.factors), len(grid.Cs)), np.nan)
    means[np.searchsorted(grid.gammas(X), 0.999 * gamma), np.searchsorted(grid.Cs, 0.999 * C)] = found.cv_results_[
        "mean_test_score"
    ]
    best = int(np.nanargmax(means))
    row, column = divmod(best, len(grid.Cs))
    return {
        "seconds": (seconds - refit) * means.size / len(C) + refit,
        "C": float(grid.Cs[column]),
        "gamma": grid.factors[row],
        "score": float(means.flat[best]),
        "best": best,
        "seen": int(np.count_nonzero(~np.isnan(means))),
        "means": " ".join(f"{mean:.6f}" for mean in means.flat),
    }


def compare(row: Row, others: dict[str, Row]) -> Row:
    """A row beside the others of its set."""
    row = dict(row)
    if _RIVAL in others:
        row["ratio"] = others[_RIVAL]["seconds"] / row["seconds"]
    if full := others.get("exhaustive"):
        truth = mean_scores(full)
        row["regret"] = 100 * float(truth.max() - truth[row["best"]])
    if grid := others.get(_RIVAL):
        row["difference"] = 100 * float(np.nanmax(np.abs(mean_scores(row) - mean_scores(grid))))
    return row


def mean_scores(row: Row) -> NDArray[np.float64]:
    """The mean scores of all cells."""
    return np.array(row["means"].split(), dtype=np.float64)


TUNING = Experiment(
    "tuning", tuple(GRID.rows), ("set", "machine"), _grid, seconds=240.0, settings={"rows": None}, quick={"rows": 300}
)
TUNING_PATH = TUNING._replace(results="tuning_path", cells=tuple(PATH.rows), measure=_path)
