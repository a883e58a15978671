"""Figures 3 and 4: objective error and accuracy against time. Every point is a fit of its own, without a warm start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

from evidence._dc_svm.approximate import most_features
from evidence._dc_svm.compare import (
    DIRECT,
    EARLY_PAPER,
    EXACT,
    GREEDY,
    GREEDY_LEVELS,
    INTELEX,
    LASVM,
    LIBSVM,
    PAPER,
    early,
)
from evidence._dc_svm.machines import (
    INTERCEPT,
    SETTINGS,
    Machine,
    describe,
    dual_value,
    load,
    make,
    measure_apart,
    measure_often,
    settings_of,
    warm_up,
)
from measuring.competitors import Settings
from measuring.experiment import Experiment, Row, Run, grouped
from measuring.plots import Panel
from measuring.problems import Problem

_TOLERANCES = (1.0, 0.3, 0.1, 0.01, 1e-3)
_REFERENCE_TOL = 1e-6
_FEATURES = {"k-means Nyström": "nystroem", "Fourier features": "fourier", "Fastfood": "fastfood", "LTPU": "ltpu"}
_KEYS = ("set", "n", "machine", "tol", "options")


def _points(n: int, n_columns: int, kernel: str) -> Iterator[tuple[Machine, float]]:
    """Every machine, with each tolerance that it is fitted at."""
    for machine in (EXACT, DIRECT, INTELEX):
        yield from ((machine, tol) for tol in _TOLERANCES)
    yield from ((machine, tol) for machine in (PAPER, LIBSVM) for tol in (1.0, 1e-3))
    for combine, ending in (("soft", ""), ("early", ", the paper's rule")):
        for partition, label in (("input", "DC-SVM early"), ("kernel", "DC-SVM early, kernel k-means")):
            for level in (4, 3, 2, 1):
                yield early(level, partition, combine)._replace(label=label + ending), 1e-3
    for level in (3, 2, 1):
        yield EARLY_PAPER._replace(options={**EARLY_PAPER.options, "stop_level": level}), 1e-3
    for n_parts in (64, 16, 4):
        yield Machine("Cascade SVM", "cascade", {"n_parts": n_parts}), 1e-3
    for n_epochs in (1, 2):
        yield LASVM._replace(options={"n_epochs": n_epochs}), 1e-3
    for n_basis in (50, 200, 800):
        yield Machine("SpSVM", "spsvm", {"n_basis": n_basis}), 1e-3
    if kernel == "rbf" and n <= 50_000 and n_columns <= 100:
        yield from ((machine, tol) for machine in (GREEDY_LEVELS, GREEDY) for tol in (0.3, 0.1, 0.01))
    if kernel == "rbf":  # the others are made for kernels of differences alone
        for label, name in _FEATURES.items():
            for n_components in sorted({min(k, most_features(n)) for k in (100, 300, 1000, 3000)}):
                yield Machine(label, name, {"n_components": n_components}), 1e-3


def _measure(name: str, options: Run, *, kernel: str, **changes: float) -> Iterator[Row]:
    problem = load(name, options.rows)
    chosen = settings_of(problem, kernel=kernel, **changes)

    @cache
    def optimum(intercept: bool) -> float:
        return _reference(problem, chosen, intercept)

    warm = set()
    for machine, tol in _points(*problem.X.shape, kernel):
        settings = chosen._replace(tol=tol)
        about = describe(machine, settings, problem)
        if not options.wants(machine.label, **{key: about[key] for key in _KEYS}):
            continue
        if machine.name not in warm:
            warm.add(machine.name)
            warm_up(machine, settings, problem)
        if machine.name in ("libsvm", "greedy", "lasvm", "spsvm"):  # nothing but the end of its process stops it
            apart = {"rows": options.rows, "limit": options.limit, "with_dual": not options.no_dual}
            row = measure_apart(machine, settings, problem, **apart)
        else:
            row = _measure_here(machine, settings, problem, options)
        if "dual" in row:
            best = optimum(machine.name in INTERCEPT)
            row["relative_error"] = (best - row["dual"]) / best
        yield row


def _measure_here(machine: Machine, settings: Settings, problem: Problem, options: Run) -> Row:
    row, model = measure_often(machine, settings, problem, options.repeats)
    if hasattr(model, "dual_coef_") and not options.no_dual:
        row["dual"] = dual_value(model, machine, settings, problem)
    return row


def _reference(problem: Problem, settings: Settings, intercept: bool) -> float:
    """Dual value at a tolerance of 1e-6."""
    machine = Machine("", "exact+b" if intercept else "direct")
    settings = settings._replace(tol=_REFERENCE_TOL)
    return dual_value(make(machine, settings).fit(problem.X, problem.y), machine, settings, problem)


def _panels(rows: Sequence[Row]) -> list[Panel]:
    panels = []
    for (name,), mine in grouped(rows, "set"):
        for column, label, axes in (
            ("relative_error", "relative error of the dual", "xy"),
            ("accuracy", "test accuracy", "x"),
        ):
            series = {}
            for (machine,), points in grouped([row for row in mine if column in row], "machine"):
                series[str(machine)] = [p["seconds"] for p in points], [max(p[column], 1e-9) for p in points]
            panels.append(Panel(str(name), "training time, seconds", label, series, axes))
    return panels


FIGURE3 = Experiment(  # Figure 3: objective error and accuracy against time
    "dc_svm/figure3",
    ("covtype_20k", "ijcnn1", "codrna", "covtype"),
    _KEYS,
    partial(_measure, kernel="rbf"),
    settings={**SETTINGS, "no_dual": False},
    parts=True,
    seconds={"covtype": 300.0, "": 100.0},
    panels=_panels,
)
FIGURE4 = FIGURE3._replace(  # Figure 4: the same with the polynomial kernel of degree 3, C=2, gamma=1
    results="dc_svm/figure4",
    cells=("covtype_20k", "ijcnn1", "covtype"),
    measure=partial(_measure, kernel="poly", C=2.0, gamma=1.0),
    seconds={"covtype": 180.0, "": 60.0},
)
