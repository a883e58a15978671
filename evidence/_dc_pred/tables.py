"""Table 1, Figure 2, and the search of their settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from evidence._dc_pred.cost import Linear, costs_and
from evidence._dc_pred.machines import (
    AESVM_NAME,
    EARLY,
    EXACT,
    FASTFOOD,
    FOURIER,
    LDKL_NAME,
    NYSTROEM,
    OURS,
    PUBLISHED,
    REDUCED,
    Machine,
    classify,
    compile_all,
)
from evidence._dc_pred.problems import CLASSES, load_classes
from measuring.experiment import Experiment, Row, Run, panels_of
from measuring.plots import Panel


def _published(polynomial: tuple[float, ...], triangle: tuple[float, ...] | None = None) -> dict[str, dict[str, Any]]:
    """C, gamma, leaves, landmarks: one tree, all products of two landmarks, or as many triangle points as landmarks."""
    names, ways = ("C", "gamma", "n_clusters", "n_landmarks"), (polynomial, triangle or polynomial)
    first, second = (dict(zip(names, values, strict=True)) for values in ways)
    return {
        PUBLISHED: {**first, "pseudo": "polynomial"},
        PUBLISHED + " / triangle": {**second, "pseudo": "triangle"},
    }


def _exact(gamma: float, C: float, stop_level: int) -> dict[str, dict[str, Any]]:
    return {EARLY: {"gamma": gamma, "C": C, "stop_level": stop_level}, EXACT: {"gamma": gamma, "C": C}}


# Ours, and as published: the best of a small grid on a fifth of the training rows, held back; rivals: the best of two
# to four tried there by hand.
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "letter": {
        OURS + " / less": {"C": 10.0, "gamma": 1.0, "n_clusters": 64, "n_landmarks": 16},
        OURS: {"C": 10.0, "gamma": 1.0, "n_clusters": 128, "n_landmarks": 8, "n_trees": 3},
        OURS + " / more": {"C": 10.0, "gamma": 1.0, "n_clusters": 128, "n_landmarks": 16, "n_trees": 4},
        OURS + " / two trees": {"C": 10.0, "gamma": 1.0, "n_clusters": 32, "n_landmarks": 20, "n_trees": 2},
        **_published((10.0, 1.0, 32, 32), (10.0, 1.0, 128, 16)),
        NYSTROEM: {"m": 140, "gamma": 1.0, "C": 10.0},
        **{key: {"m": 200, "gamma": 1.0, "C": 10.0} for key in (FOURIER, FASTFOOD)},
        REDUCED: {"m": 50, "gamma": 0.25, "C": 10.0},
        AESVM_NAME: {"gamma": 1.0, "C": 10.0, "distance": 0.1},
        LDKL_NAME: {"depth": 5, "penalty": 1e-5},
        **_exact(4.0, 32.0, 2),
    },
    "usps": {
        OURS: {"C": 10.0, "gamma": 0.03, "n_clusters": 1, "n_landmarks": 100, "n_pseudo_landmarks": 2000},
        OURS + " / less": {"C": 10.0, "gamma": 0.03, "n_clusters": 16, "n_landmarks": 8, "n_trees": 2},
        **_published((10.0, 0.015, 4, 48), (10.0, 0.015, 8, 32)),
        NYSTROEM: {"m": 200, "gamma": 0.03, "C": 10.0},
        **{key: {"m": 200, "gamma": 0.03, "C": 10.0} for key in (FOURIER, FASTFOOD)},
        REDUCED: {"m": 50, "gamma": 0.015625, "C": 8.0},
        AESVM_NAME: {"gamma": 0.015625, "C": 8.0, "distance": 0.05},
        LDKL_NAME: {"depth": 4, "penalty": 1e-4},
        **_exact(0.015625, 8.0, 1),
    },
    "a9a": {
        OURS: {"C": 1.0, "gamma": 0.0078125, "n_clusters": 1, "n_landmarks": 8},
        **_published((1.0, 0.03, 1, 24), (1.0, 0.03, 4, 32)),
        NYSTROEM: {"m": 50, "gamma": 0.03, "C": 1.0},
        **{key: {"m": 100, "gamma": 0.0078125, "C": 10.0} for key in (FOURIER, FASTFOOD)},
        REDUCED: {"m": 50, "gamma": 0.0078125, "C": 32.0},
        AESVM_NAME: {"gamma": 0.0078125, "C": 32.0, "distance": 0.05},
        LDKL_NAME: {"depth": 2, "penalty": 1e-2, "epochs": 20},
        **_exact(0.0078125, 32.0, 1),
    },
    "covtype_20k": {
        OURS: {"C": 10.0, "gamma": 10.0, "n_clusters": 64, "n_landmarks": 16, "n_trees": 2},
        **_published((10.0, 10.0, 128, 16)),
        NYSTROEM: {"m": 200, "gamma": 10.0, "C": 10.0},
        **{key: {"m": 200, "gamma": 10.0, "C": 10.0} for key in (FOURIER, FASTFOOD)},
        REDUCED: {"m": 50, "gamma": 3.0, "C": 10.0},
        AESVM_NAME: {"gamma": 10.0, "C": 32.0, "distance": 0.1},
        LDKL_NAME: {"depth": 5, "penalty": 1e-5},
        **_exact(32.0, 32.0, 2),
    },
    "covtype": {
        OURS: {"C": 10.0, "gamma": 32.0, "n_clusters": 1024, "n_landmarks": 16},
        OURS + " / two trees": {"C": 10.0, "gamma": 32.0, "n_clusters": 1024, "n_landmarks": 16, "n_trees": 2},
        **_published((10.0, 32.0, 4096, 16)),
        NYSTROEM: {"m": 200, "gamma": 10.0, "C": 10.0},
        **{key: {"m": 200, "gamma": 10.0, "C": 10.0} for key in (FOURIER, FASTFOOD)},
        REDUCED: {"m": 50, "gamma": 3.0, "C": 10.0},
        AESVM_NAME: {"gamma": 10.0, "C": 32.0, "distance": 0.1},
        LDKL_NAME: {"depth": 8, "penalty": 1e-7, "epochs": 6},
        **_exact(32.0, 32.0, 4),
    },
    "kddcup99_10": {
        OURS: {"C": 10.0, "gamma": 0.25, "n_clusters": 32, "n_landmarks": 12},
        **_published((10.0, 0.25, 32, 12)),
        NYSTROEM: {"m": 100, "gamma": 0.25, "C": 10.0},
        **{key: {"m": 200, "gamma": 0.25, "C": 10.0} for key in (FOURIER, FASTFOOD)},
        REDUCED: {"m": 50, "gamma": 0.25, "C": 32.0},
        AESVM_NAME: {"gamma": 0.25, "C": 32.0, "distance": 0.01},
        LDKL_NAME: {"depth": 3, "epochs": 3},
        **_exact(0.25, 32.0, 2),
    },
    "patches": {
        OURS: {"C": 10.0, "gamma": 1.0, "n_clusters": 4, "n_landmarks": 8},
        **_published((10.0, 1.0, 4, 8)),
        NYSTROEM: {"m": 20, "gamma": 1.0, "C": 10.0},
        **{key: {"m": 20, "gamma": 1.0, "C": 10.0} for key in (FOURIER, FASTFOOD)},
        REDUCED: {"m": 5, "gamma": 1.0, "C": 10.0},
        AESVM_NAME: {"gamma": 1.0, "C": 10.0, "distance": 0.1},
        LDKL_NAME: {"depth": 2, "epochs": 5},
        EXACT: {"gamma": 1.0, "C": 10.0},
    },
}
_ROWS_OF_SLOW = 50_000  # that slow machines get at most
_SLOW = (EXACT, REDUCED, AESVM_NAME, NYSTROEM)
_KEYS = ("set", "machine", "options")


def _stale(machines: Iterable[Machine], name: str, options: Run) -> list[Machine]:
    """The machines to be measured."""
    return [
        machine
        for machine in machines
        if options.wants(machine.label, set=name, machine=machine.name, options=machine.settings)
    ]


def _measure(
    machines_of: Callable[[str, Run], Iterable[Machine]],
) -> Callable[[str, Run], Iterator[list[Row]]]:
    """`Experiment.measure`: of the machines of a set those that are still to be measured."""

    def measure(name: str, options: Run) -> Iterator[list[Row]]:
        if stale := _stale(machines_of(name, options), name, options):
            yield _run(stale, load_classes(name, options.rows), options)

    return measure


def _run(machines: Sequence[Machine], problem: Any, options: Run) -> list[Row]:
    compile_all()
    asked = [machine for machine in machines if options.asks(machine.label)]
    few = _few(problem) if len(problem.X) > _ROWS_OF_SLOW else problem
    return classify(asked, [few if machine.label in _SLOW else problem for machine in asked], Linear(problem.X_test))


def _few(problem: Any) -> Any:
    chosen = np.random.default_rng(0).choice(len(problem.X), _ROWS_OF_SLOW, replace=False)
    return problem._replace(X=problem.X[chosen], y=problem.y[chosen])


def _cost_and_accuracy(rows: Sequence[Row], *, lines: bool = True) -> list[Panel]:
    return panels_of(rows, ("set",), ("machine",), *costs_and("accuracy", "test accuracy"), lines=lines)


# ---------------------------------------------------------------------------------------------------------- Table 1


def _everyone(name: str, options: Run) -> Iterator[Machine]:
    return (Machine(label.partition(" /")[0], given) for label, given in SETTINGS[name].items())


TABLE1 = Experiment(  # Table 1: accuracy, prediction cost and training time
    "dc_pred/table1",
    CLASSES,
    _KEYS,
    _measure(_everyone),
    settings={"rows": None},
    parts=True,
    seconds={"covtype": 210.0, "kddcup99_10": 80.0, "": 30.0},
    panels=partial(_cost_and_accuracy, lines=False),
)

# --------------------------------------------------------------------------------------------------------- Figure 2

_LEAVES = ((1, 8, 1), (1, 24, 1), (8, 16, 1), (32, 12, 1), (32, 24, 1), (64, 16, 2), (128, 16, 4))
_MANY_LEAVES = ((64, 16, 1), (256, 8, 1), (1024, 16, 1), (1024, 16, 2))
_SIZES = (10, 40, 160)
_DEPTHS = (1, 3, 5)


def _curves(name: str, options: Run) -> Iterator[Machine]:
    chosen = SETTINGS[name]
    ours = {key: chosen[OURS][key] for key in ("C", "gamma")}
    sizes = _MANY_LEAVES if name == "covtype" else _LEAVES
    for k, m, t in sizes:
        yield Machine(OURS, ours | {"n_clusters": k, "n_landmarks": m, "n_trees": t})
    published = {key: chosen[PUBLISHED][key] for key in ("C", "gamma", "pseudo")}
    for k, m, t in sizes[:-1]:  # one tree
        yield Machine(PUBLISHED, published | {"n_clusters": k * t, "n_landmarks": m})
    for m in _SIZES:
        yield Machine(NYSTROEM, chosen[NYSTROEM] | {"m": m})
    for depth in _DEPTHS:
        yield Machine(LDKL_NAME, chosen[LDKL_NAME] | {"depth": depth})


FIGURE2 = TABLE1._replace(  # Figure 2: accuracy against prediction cost
    results="dc_pred/figure2",
    cells=CLASSES,
    measure=_measure(_curves),
    panels=_cost_and_accuracy,
    seconds={"covtype": 140.0, "kddcup99_10": 75.0, "": 35.0},
)

# -------------------------------------------------------------------------- what each idea does, and the trade-off

_WITHOUT: dict[str, dict[str, Any]] = {
    "all": {},
    "no pseudo-landmarks": {"pseudo": None},
    "triangle": {"pseudo": "triangle"},
    "no linear term": {"linear_term": False},
    "landmarks alone": {"pseudo": None, "linear_term": False},
    "two trees": {"n_trees": 2},
}
_ABLATION_SIZES = (8, 32)


def _ablated(name: str, options: Run) -> Iterator[Machine]:
    base = {key: SETTINGS[name][OURS][key] for key in ("C", "gamma")} | {"n_clusters": options.clusters}
    for variant, without in _WITHOUT.items():
        for m in _ABLATION_SIZES:
            yield Machine(OURS, base | {"n_landmarks": m} | without, shown=variant)


ABLATION = TABLE1._replace(  # pseudo-landmarks, the linear term, trees: each on and off
    results="dc_pred/ablation",
    cells=("letter", "covtype_20k"),
    measure=_measure(_ablated),
    settings={"rows": None, "clusters": 16},
    panels=_cost_and_accuracy,
    seconds=25.0,
)

_CLUSTERS, _LANDMARKS = (1, 4, 16, 64, 128), (4, 8, 16, 32)


def _sized(name: str, options: Run) -> Iterator[Machine]:
    base = {key: SETTINGS[name][OURS][key] for key in ("C", "gamma")}
    for k in _CLUSTERS:
        for m in _LANDMARKS:
            yield Machine(OURS, base | {"n_clusters": k, "n_landmarks": m}, shown=f"{k} clusters")


TRADEOFF = TABLE1._replace(  # clusters against landmarks (the paper's appendix 7.9)
    results="dc_pred/tradeoff",
    cells=("letter",),
    measure=_measure(_sized),
    panels=_cost_and_accuracy,
    seconds=40.0,
)
