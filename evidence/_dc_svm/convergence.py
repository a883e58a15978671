"""Figures 3 and 4: objective error and accuracy against time. Every point is a fit of its own, without a warm start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

from evidence._dc_svm.compare import (
    DIRECT,
    EARLY_PAPER,
    EXACT,
    GREEDY,
    GREEDY_COLUMNS,
    GREEDY_LEVELS,
    INTELEX,
    LASVM,
    LIBSVM,
    PAPER,
    TIME_AND_ACCURACY,
    early,
)
from evidence._dc_svm.machines import (
    INTERCEPT,
    SETTINGS,
    Machine,
    describe,
    dual_value,
    is_large,
    limit_of,
    load,
    make,
    measure_apart,
    measure_often,
    settings_of,
    warm_up,
)
from measuring import report
from measuring.competitors import Settings
from measuring.experiment import Axes, Experiment, Row, Run, panels_of
from measuring.plots import Panel
from measuring.problems import Problem

_TOLERANCES = (1e-3, 0.1, 1.0)
_REFERENCE_TOL = 1e-6
_FEATURES = {"k-means Nyström": "nystroem", "Fourier features": "fourier", "Fastfood": "fastfood", "LTPU": "ltpu"}
_KEYS = ("set", "machine", "tol", "options")
_HERE = ("exact", "direct", "sklearnex")  # the others are ended after `limit` seconds, with a process of their own


def _points(n_columns: int, kernel: str, *, is_large: bool) -> Iterator[tuple[Machine, float]]:
    """Every machine, with each tolerance that it is fitted at; of a large set those that Table 2 does not have."""
    tolerances = _TOLERANCES[:1] if is_large else _TOLERANCES
    for level in (3, 4, 2, 1):
        yield EARLY_PAPER._replace(options={**EARLY_PAPER.options, "stop_level": level}), 1e-3
        yield early(level)._replace(label="DC-SVM early"), 1e-3
    if is_large and kernel == "rbf":
        yield from ((EXACT, tol) for tol in _TOLERANCES)
        return
    for tol in tolerances:
        yield from ((machine, tol) for machine in (EXACT, LIBSVM, INTELEX))
    yield LASVM, 1e-3
    yield from ((PAPER, tol) for tol in tolerances[::2])
    if is_large:
        return
    yield from ((DIRECT, tol) for tol in tolerances)
    for n_parts in (64, 4):
        yield Machine("Cascade SVM", "cascade", {"n_parts": n_parts}), 1e-3
    for n_basis in (50, 200):
        yield Machine("SpSVM", "spsvm", {"n_basis": n_basis}), 1e-3
    if kernel == "rbf":  # the others are made for kernels of differences alone
        if n_columns <= GREEDY_COLUMNS:
            yield from ((machine, tol) for machine in (GREEDY_LEVELS, GREEDY) for tol in (0.3, 0.01))
        for label, name in _FEATURES.items():
            for m in (100, 1000):
                yield Machine(label, name, {"m": m}), 1e-3


def _measure(name: str, options: Run, *, kernel: str, **changes: float) -> Iterator[Row]:
    problem = load(name, options.rows)
    chosen = settings_of(problem, kernel=kernel, **changes)
    with_dual = not (options.no_dual or is_large(problem))

    @cache
    def optimum(intercept: bool) -> float:
        return _reference(problem, chosen, intercept)

    warm = set()
    for machine, tol in _points(problem.X.shape[1], kernel, is_large=is_large(problem)):
        settings = chosen._replace(tol=tol)
        about = describe(machine, settings, problem)
        if not options.wants(machine.label, **{key: about[key] for key in _KEYS}):
            continue
        if machine.name in _HERE and not is_large(problem):
            if machine.name not in warm:
                warm.add(machine.name)
                warm_up(machine, settings, problem)
            row = _measure_here(machine, settings, problem, options, with_dual=with_dual)
        else:
            how = {"rows": options.rows, "limit": limit_of(problem, options), "with_dual": with_dual}
            row = measure_apart(machine, settings, problem, **how)
        if "dual" in row and row["n"] == len(problem.X):
            best = optimum(machine.name in INTERCEPT)
            row["relative_error"] = (best - row["dual"]) / best
        yield row


def _measure_here(machine: Machine, settings: Settings, problem: Problem, options: Run, *, with_dual: bool) -> Row:
    row, model = measure_often(machine, settings, problem, options.repeats if settings.tol == 1e-3 else 1)
    if hasattr(model, "dual_coef_") and with_dual:
        row["dual"] = dual_value(model, machine, settings, problem)
    return row


def _reference(problem: Problem, settings: Settings, intercept: bool) -> float:
    """Dual value at a tolerance of 1e-6."""
    machine = Machine("", "exact+b" if intercept else "direct")
    settings = settings._replace(tol=_REFERENCE_TOL)
    return dual_value(make(machine, settings).fit(problem.X, problem.y), machine, settings, problem)


def _panels(rows: Sequence[Row]) -> list[Panel]:
    """Of a set that Table 2 has, with its rows at the tolerance of 1e-3."""
    if rows[0]["kernel"] == "rbf":
        sets = {row["set"] for row in rows}
        rows = [*rows, *(row for row in report.results("dc_svm/table2") if row["set"] in sets)]
    error = Axes("seconds", "training time, seconds", "relative_error", "relative error of the dual", "xy")
    return panels_of(rows, ("set",), ("machine",), error, TIME_AND_ACCURACY)


FIGURE3 = Experiment(  # Figure 3: objective error and accuracy against time
    "dc_svm/figure3",
    ("covtype_20k", "covtype"),
    _KEYS,
    partial(_measure, kernel="rbf"),
    settings={**SETTINGS, "limit": 30.0, "no_dual": False},
    parts=True,
    seconds={"covtype": 370.0, "": 160.0},
    panels=_panels,
)
FIGURE4 = FIGURE3._replace(  # Figure 4: the same with the polynomial kernel of degree 3, C=2, gamma=1
    results="dc_svm/figure4",
    cells=("covtype_20k", "covtype"),
    measure=partial(_measure, kernel="poly", C=2.0, gamma=1.0),
    seconds={"covtype": 430.0, "": 130.0},
)
