"""Table 1, Figure 2, and the search of their settings."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from evidence._dc_pred.cost import Linear
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
from evidence._dc_pred.problems import CLASSES, hold_back, load_classes
from measuring.experiment import Experiment, Row, grouped, is_asked, is_wanted
from measuring.plots import Panel


def _published(C: float, gamma: float, n_clusters: int, n_landmarks: int, pseudo: str) -> dict[str, Any]:
    """One tree, and all products of two landmarks or as many points of the triangle rule as landmarks."""
    return {"C": C, "gamma": gamma, "n_clusters": n_clusters, "n_landmarks": n_landmarks, "pseudo": pseudo}


# Ours, and as published: chosen by `search`, on a fifth of the training rows; rivals: the best of two to four tried
# there by hand.
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "letter": {
        OURS + " / less": {"C": 10.0, "gamma": 1.0, "n_clusters": 64, "n_landmarks": 16},
        OURS: {"C": 10.0, "gamma": 1.0, "n_clusters": 128, "n_landmarks": 8, "n_trees": 3},
        OURS + " / more": {"C": 10.0, "gamma": 1.0, "n_clusters": 128, "n_landmarks": 16, "n_trees": 4},
        OURS + " / two trees": {"C": 10.0, "gamma": 1.0, "n_clusters": 32, "n_landmarks": 20, "n_trees": 2},
        PUBLISHED: _published(10.0, 1.0, 32, 32, "polynomial"),
        PUBLISHED + " / triangle": _published(10.0, 1.0, 128, 16, "triangle"),
        NYSTROEM: {"m": 140, "gamma": 1.0, "C": 10.0},
        FOURIER: {"m": 200, "gamma": 1.0, "C": 10.0},
        FASTFOOD: {"m": 200, "gamma": 1.0, "C": 10.0},
        REDUCED: {"m": 50, "gamma": 0.25, "C": 10.0},
        AESVM_NAME: {"gamma": 1.0, "C": 10.0, "distance": 0.1},
        LDKL_NAME: {"depth": 5, "penalty": 1e-5},
        EARLY: {"gamma": 4.0, "C": 32.0, "stop_level": 2},
        EXACT: {"gamma": 4.0, "C": 32.0},
    },
    "usps": {
        OURS: {"C": 10.0, "gamma": 0.03, "n_clusters": 1, "n_landmarks": 100, "n_pseudo_landmarks": 2000},
        OURS + " / less": {"C": 10.0, "gamma": 0.03, "n_clusters": 16, "n_landmarks": 8, "n_trees": 2},
        PUBLISHED: _published(10.0, 0.015, 4, 48, "polynomial"),
        PUBLISHED + " / triangle": _published(10.0, 0.015, 8, 32, "triangle"),
        NYSTROEM: {"m": 200, "gamma": 0.03, "C": 10.0},
        FOURIER: {"m": 200, "gamma": 0.03, "C": 10.0},
        FASTFOOD: {"m": 200, "gamma": 0.03, "C": 10.0},
        REDUCED: {"m": 50, "gamma": 0.015625, "C": 8.0},
        AESVM_NAME: {"gamma": 0.015625, "C": 8.0, "distance": 0.05},
        LDKL_NAME: {"depth": 4, "penalty": 1e-4},
        EARLY: {"gamma": 0.015625, "C": 8.0, "stop_level": 1},
        EXACT: {"gamma": 0.015625, "C": 8.0},
    },
    "a9a": {
        OURS: {"C": 1.0, "gamma": 0.0078125, "n_clusters": 1, "n_landmarks": 8},
        PUBLISHED: _published(1.0, 0.03, 1, 24, "polynomial"),
        PUBLISHED + " / triangle": _published(1.0, 0.03, 4, 32, "triangle"),
        NYSTROEM: {"m": 50, "gamma": 0.03, "C": 1.0},
        FOURIER: {"m": 100, "gamma": 0.0078125, "C": 10.0},
        FASTFOOD: {"m": 100, "gamma": 0.0078125, "C": 10.0},
        REDUCED: {"m": 50, "gamma": 0.0078125, "C": 32.0},
        AESVM_NAME: {"gamma": 0.0078125, "C": 32.0, "distance": 0.05},
        LDKL_NAME: {"depth": 2, "penalty": 1e-2, "epochs": 20},
        EARLY: {"gamma": 0.0078125, "C": 32.0, "stop_level": 1},
        EXACT: {"gamma": 0.0078125, "C": 32.0},
    },
    "covtype_20k": {
        OURS: {"C": 10.0, "gamma": 10.0, "n_clusters": 64, "n_landmarks": 16, "n_trees": 2},
        PUBLISHED: _published(10.0, 10.0, 128, 16, "polynomial"),
        PUBLISHED + " / triangle": _published(10.0, 10.0, 128, 16, "triangle"),
        NYSTROEM: {"m": 200, "gamma": 10.0, "C": 10.0},
        FOURIER: {"m": 200, "gamma": 10.0, "C": 10.0},
        FASTFOOD: {"m": 200, "gamma": 10.0, "C": 10.0},
        REDUCED: {"m": 50, "gamma": 3.0, "C": 10.0},
        AESVM_NAME: {"gamma": 10.0, "C": 32.0, "distance": 0.1},
        LDKL_NAME: {"depth": 5, "penalty": 1e-5},
        EARLY: {"gamma": 32.0, "C": 32.0, "stop_level": 2},
        EXACT: {"gamma": 32.0, "C": 32.0},
    },
    "covtype": {
        OURS: {"C": 10.0, "gamma": 32.0, "n_clusters": 1024, "n_landmarks": 16},
        OURS + " / two trees": {"C": 10.0, "gamma": 32.0, "n_clusters": 1024, "n_landmarks": 16, "n_trees": 2},
        PUBLISHED: _published(10.0, 32.0, 4096, 16, "polynomial"),
        PUBLISHED + " / triangle": _published(10.0, 32.0, 4096, 16, "triangle"),
        NYSTROEM: {"m": 200, "gamma": 10.0, "C": 10.0},
        FOURIER: {"m": 200, "gamma": 10.0, "C": 10.0},
        FASTFOOD: {"m": 200, "gamma": 10.0, "C": 10.0},
        REDUCED: {"m": 50, "gamma": 3.0, "C": 10.0},
        AESVM_NAME: {"gamma": 10.0, "C": 32.0, "distance": 0.1},
        LDKL_NAME: {"depth": 8, "penalty": 1e-7, "epochs": 6},
        EARLY: {"gamma": 32.0, "C": 32.0, "stop_level": 4},
        EXACT: {"gamma": 32.0, "C": 32.0},
    },
    "kddcup99_10": {
        OURS: {"C": 10.0, "gamma": 0.25, "n_clusters": 32, "n_landmarks": 12},
        PUBLISHED: _published(10.0, 0.25, 32, 12, "polynomial"),
        PUBLISHED + " / triangle": _published(10.0, 0.25, 32, 12, "triangle"),
        NYSTROEM: {"m": 100, "gamma": 0.25, "C": 10.0},
        FOURIER: {"m": 200, "gamma": 0.25, "C": 10.0},
        FASTFOOD: {"m": 200, "gamma": 0.25, "C": 10.0},
        REDUCED: {"m": 50, "gamma": 0.25, "C": 32.0},
        AESVM_NAME: {"gamma": 0.25, "C": 32.0, "distance": 0.01},
        LDKL_NAME: {"depth": 3, "epochs": 3},
        EARLY: {"gamma": 0.25, "C": 32.0, "stop_level": 2},
        EXACT: {"gamma": 0.25, "C": 32.0},
    },
    "patches": {
        OURS: {"C": 10.0, "gamma": 1.0, "n_clusters": 4, "n_landmarks": 8},
        PUBLISHED: _published(10.0, 1.0, 4, 8, "polynomial"),
        PUBLISHED + " / triangle": _published(10.0, 1.0, 4, 8, "triangle"),
        NYSTROEM: {"m": 20, "gamma": 1.0, "C": 10.0},
        FOURIER: {"m": 20, "gamma": 1.0, "C": 10.0},
        FASTFOOD: {"m": 20, "gamma": 1.0, "C": 10.0},
        REDUCED: {"m": 5, "gamma": 1.0, "C": 10.0},
        AESVM_NAME: {"gamma": 1.0, "C": 10.0, "distance": 0.1},
        LDKL_NAME: {"depth": 2, "epochs": 5},
        EXACT: {"gamma": 1.0, "C": 10.0},
    },
}
_ROWS_OF_SLOW = 50_000  # that the exact machines get at most
_SLOW = (EXACT, REDUCED, AESVM_NAME)
_KEYS = ("set", "machine", "options")
_COLUMNS = ("set", "machine", "options", "accuracy", "multiple", "operations", "predict_us", "seconds", "n", "beside")


def _stale(machines: Iterable[Machine], name: str, options: Namespace) -> list[Machine]:
    """The machines to be measured."""
    return [
        machine
        for machine in machines
        if is_wanted(options, machine.label, set=name, machine=machine.name, options=machine.settings)
    ]


def _measure(
    machines_of: Callable[[str, Namespace], Iterable[Machine]],
) -> Callable[[str, Namespace], Iterator[list[Row]]]:
    """`Experiment.measure`: of the machines of a set those that are still to be measured."""

    def measure(name: str, options: Namespace) -> Iterator[list[Row]]:
        if stale := _stale(machines_of(name, options), name, options):
            yield _run(stale, load_classes(name, options.rows), options)

    return measure


def _run(machines: Sequence[Machine], problem: Any, options: Namespace) -> list[Row]:
    compile_all()
    asked = [machine for machine in machines if is_asked(machine.label, options)]
    few = _few(problem) if len(problem.X) > _ROWS_OF_SLOW else problem
    return classify(asked, [few if machine.label in _SLOW else problem for machine in asked], Linear(problem.X_test))


def _few(problem: Any) -> Any:
    chosen = np.random.default_rng(0).choice(len(problem.X), _ROWS_OF_SLOW, replace=False)
    return problem._replace(X=problem.X[chosen], y=problem.y[chosen])


# ------------------------------------------------------------------------------------------------------- the search

_GRIDS: dict[str, list[dict[str, Any]]] = {
    "letter": [
        {"C": C, "gamma": gamma, "n_clusters": k, "n_landmarks": m, "n_trees": t}
        for C, gamma in ((10.0, 1.0), (30.0, 1.0), (10.0, 2.0))
        for k, m, t in ((32, 32, 1), (64, 16, 2), (128, 8, 3), (32, 20, 2))
    ],
    "usps": [
        {"C": C, "gamma": gamma, "n_clusters": k, "n_landmarks": m, "n_pseudo_landmarks": p, "n_trees": t}
        for C, gamma in ((10.0, 0.03), (10.0, 0.02))
        for k, m, p, t in ((1, 100, 2000, 1), (4, 48, 1176, 1), (16, 8, 36, 2))
    ],
    "a9a": [
        {"C": C, "gamma": 0.0078125, "n_clusters": k, "n_landmarks": m}
        for C in (0.3, 1.0)
        for k, m in ((1, 8), (1, 24), (4, 16))
    ],
    "covtype_20k": [
        {"C": 10.0, "gamma": gamma, "n_clusters": k, "n_landmarks": m, "n_trees": t}
        for gamma in (3.0, 10.0, 30.0)
        for k, m, t in ((64, 24, 1), (128, 12, 2), (64, 16, 2))
    ],
    "covtype": [
        {"C": 10.0, "gamma": 32.0, "n_clusters": k, "n_landmarks": 16, "n_trees": t}
        for k, t in ((256, 1), (1024, 1), (2048, 1), (1024, 2))
    ],
    "kddcup99_10": [
        {"C": 10.0, "gamma": gamma, "n_clusters": k, "n_landmarks": 12} for gamma in (0.25, 1.0) for k in (32, 64)
    ],
    "patches": [{"C": 10.0, "gamma": 1.0, "n_clusters": 4, "n_landmarks": 8}],
}
_PUBLISHED_GRIDS: dict[str, tuple[float, Sequence[float], Sequence[tuple[int, int]]]] = {
    "letter": (10.0, (1.0, 2.0), ((64, 16), (128, 16), (32, 32))),
    "usps": (10.0, (0.015, 0.03), ((1, 64), (4, 48), (8, 32))),
    "a9a": (1.0, (0.0078125, 0.03), ((1, 24), (4, 16), (4, 32))),
    "covtype_20k": (10.0, (10.0, 30.0), ((64, 24), (128, 16))),
    "covtype": (10.0, (32.0,), ((1024, 16), (4096, 16))),
    "kddcup99_10": (10.0, (0.25, 1.0), ((32, 12),)),
    "patches": (10.0, (1.0,), ((4, 8),)),
}
_SEARCH_ROWS = {"kddcup99_10": 100_000}


def _search(name: str, options: Namespace) -> Iterator[list[Row]]:
    grid = [Machine(OURS, given) for given in _GRIDS[name]]
    grid += [Machine(PUBLISHED, given) for given in _published_grid(*_PUBLISHED_GRIDS[name])]
    if stale := _stale(grid, name, options):
        yield _run(stale, hold_back(load_classes(name, options.rows or _SEARCH_ROWS.get(name))), options)


def _published_grid(C: float, gammas: Sequence[float], sizes: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """Products, and triangle rules of as many points as landmarks, for each gamma, number of leaves and landmarks."""
    for gamma in gammas:
        for k, m in sizes:
            yield from (_published(C, gamma, k, m, pseudo) for pseudo in ("polynomial", "triangle"))


def _cost_and_accuracy(rows: Sequence[Row]) -> list[Panel]:
    panels = []
    for (name,), mine in grouped(rows, "set"):
        for column, label in (("multiple", "measured cost, linear predictions"), ("operations", "inner products")):
            series = {
                str(who): _ordered([(row[column], 100 * row["accuracy"]) for row in some])
                for (who,), some in grouped(mine, "machine")
            }
            panels.append(Panel(str(name), label, "test accuracy, %", series, "x"))
    return panels


def _ordered(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    x, y = zip(*sorted(points), strict=True)
    return list(x), list(y)


SEARCH = Experiment(
    "settings of ours on a fifth of the training rows, held back",
    CLASSES,
    _KEYS,
    _COLUMNS,
    _search,
    _cost_and_accuracy,
)

# ---------------------------------------------------------------------------------------------------------- Table 1


def _everyone(name: str, options: Namespace) -> Iterator[Machine]:
    return (Machine(label.partition(" /")[0], given) for label, given in SETTINGS[name].items())


TABLE1 = Experiment(
    "Table 1: accuracy, prediction cost and training time",
    CLASSES,
    _KEYS,
    _COLUMNS,
    _measure(_everyone),
    lambda rows: [panel._replace(lines=False) for panel in _cost_and_accuracy(rows)],
)

# --------------------------------------------------------------------------------------------------------- Figure 2

_LEAVES = ((1, 8, 1), (1, 24, 1), (8, 16, 1), (32, 12, 1), (32, 24, 1), (64, 16, 2), (128, 16, 4))
_MANY_LEAVES = ((16, 16, 1), (64, 16, 1), (256, 8, 1), (256, 16, 1), (1024, 16, 1), (1024, 16, 2))
_SIZES = (10, 20, 40, 80, 160, 320)
_DEPTHS = (1, 2, 3, 4, 5, 6)


def _curves(name: str, options: Namespace) -> Iterator[Machine]:
    chosen = SETTINGS[name]
    ours = {key: chosen[OURS][key] for key in ("C", "gamma")}
    sizes = _MANY_LEAVES if name == "covtype" else _LEAVES
    for k, m, t in sizes:
        yield Machine(OURS, ours | {"n_clusters": k, "n_landmarks": m, "n_trees": t})
    published = {key: chosen[PUBLISHED][key] for key in ("C", "gamma", "pseudo")}
    for k, m, t in sizes[:-1]:  # one tree
        yield Machine(PUBLISHED, published | {"n_clusters": k * t, "n_landmarks": m})
    for label in (NYSTROEM, FOURIER, FASTFOOD, REDUCED):
        for m in _SIZES[: 4 if label == REDUCED else None]:
            yield Machine(label, chosen[label] | {"m": m})
    for depth in _DEPTHS:
        yield Machine(LDKL_NAME, chosen[LDKL_NAME] | {"depth": depth})


FIGURE2 = TABLE1._replace(
    summary="Figure 2: accuracy against prediction cost",
    sets=CLASSES,
    measure=_measure(_curves),
    panels=_cost_and_accuracy,
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
_ABLATION_SIZES = (8, 16, 32)


def _ablated(name: str, options: Namespace) -> Iterator[Machine]:
    base = {key: SETTINGS[name][OURS][key] for key in ("C", "gamma")} | {"n_clusters": options.clusters}
    for variant, without in _WITHOUT.items():
        for m in _ABLATION_SIZES:
            yield Machine(OURS, base | {"n_landmarks": m} | without, shown=variant)


ABLATION = TABLE1._replace(
    summary="pseudo-landmarks, the linear term, trees: each on and off",
    sets=("letter", "usps", "covtype_20k"),
    measure=_measure(_ablated),
    panels=_cost_and_accuracy,
    arguments={"--clusters": {"type": int, "default": 16}},
)

_CLUSTERS, _LANDMARKS = (1, 4, 16, 64, 128), (4, 8, 16, 32)


def _sized(name: str, options: Namespace) -> Iterator[Machine]:
    base = {key: SETTINGS[name][OURS][key] for key in ("C", "gamma")}
    for k in _CLUSTERS:
        for m in _LANDMARKS:
            yield Machine(OURS, base | {"n_clusters": k, "n_landmarks": m}, shown=f"{k} clusters")


TRADEOFF = TABLE1._replace(
    summary="clusters against landmarks (the paper's appendix 7.9)",
    sets=("letter", "covtype_20k"),
    measure=_measure(_sized),
    panels=_cost_and_accuracy,
)
