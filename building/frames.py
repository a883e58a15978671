"""The way from `fit` to the compiled code: frames of the package on the stack of the deepest call.

::

    python building/frames.py                    # of each estimator: frames to a step of its solver, and to any call
    python building/frames.py DCSVMRegressor     # every way of one of them, as a tree of functions
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import widemargin as wm
from widemargin import _native

_STEPS = "solve_working_sets", "Subproblems64.solve", "find_root", "MergingState.run"  # a fit makes one kind of them
_HOW = {"n_jobs": 1, "random_state": 0}

Ways = dict[str, "Ways"]  # of a function those that it calls on the way to compiled code


def main(names: list[str]) -> None:
    """Print the table, or the ways of one estimator."""
    warnings.simplefilter("ignore")
    ways: Ways = {}
    _watch_compiled_code(ways)
    for name, fit in _fits().items():
        if names and name not in names:
            continue
        ways.clear()
        fit()
        frames = list(_walk(ways))
        to_a_step = max(depth for depth, function in frames if function in _STEPS)
        print(f"{name:36}{to_a_step:4}{max(depth for depth, _ in frames):4}")
        for depth, function in frames if names else ():
            print(f"{depth:4} {'  ' * depth}{function}")


def _fits() -> dict[str, Callable[[], Any]]:
    """Fits of a few thousand rows, by name."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5))
    f = X[:, 0] * X[:, 1]
    y, several = np.sign(f + 0.3 * rng.normal(size=len(f))), np.digitize(f, [-0.5, 0.5])
    few = slice(1000)
    return {
        "DCSVMClassifier": lambda: wm.DCSVMClassifier(**_HOW).fit(X, y),
        "DCSVMClassifier, few rows": lambda: wm.DCSVMClassifier(**_HOW).fit(X[few], y[few]),
        "DCSVMClassifier, three classes": lambda: wm.DCSVMClassifier(**_HOW).fit(X, several),
        "DCSVMClassifier, early": lambda: wm.DCSVMClassifier(stop_level=1, **_HOW).fit(X, y),
        "DCSVMRegressor": lambda: wm.DCSVMRegressor(**_HOW).fit(X, f),
        "DCOneClassSVM": lambda: wm.DCOneClassSVM(**_HOW).fit(X),
        "OCASClassifier": lambda: wm.OCASClassifier(n_jobs=1).fit(X, y),
        "BSGDClassifier": lambda: wm.BSGDClassifier(n_epochs=1, **_HOW).fit(X, y),
        "DCPredClassifier": lambda: wm.DCPredClassifier(**_HOW).fit(X, y),
        "DCSVMClassifierCV": lambda: wm.DCSVMClassifierCV(kernels="rbf", relevance=False, **_HOW).fit(X[few], y[few]),
    }


def _watch_compiled_code(ways: Ways) -> None:
    """Add to `ways` the stack of every call of a compiled function or method from now on."""
    for module in (part for part in vars(_native).values() if isinstance(part, type(sys))):
        for owner in (module, *(part for part in vars(module).values() if isinstance(part, type))):
            for name, function in list(vars(owner).items()):
                if callable(function) and not name.startswith("_") and not isinstance(function, type):
                    label = name if owner is module else f"{owner.__name__}.{name}"
                    setattr(owner, name, _watched(function, label, ways))


def _watched(function: Callable[..., Any], label: str, ways: Ways) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        inner = ways
        for outer in (*_stack(), label):
            inner = inner.setdefault(outer, {})
        return function(*arguments, **named)

    return call


def _stack() -> list[str]:
    """The package's functions on the stack, the outermost first."""
    functions, frame = [], sys._getframe(2)
    while frame is not None:
        package, _, module = frame.f_globals.get("__name__", "").partition(".")
        if package == wm.__name__:
            functions.append(f"{frame.f_code.co_qualname.replace('<locals>.', '')}  {module}")
        frame = frame.f_back
    return functions[::-1]


def _walk(ways: Ways, n_outer: int = 0) -> Iterator[tuple[int, str]]:
    """Each function in the order of the calls, with the number of functions above it."""
    for function, inner in ways.items():
        yield n_outer, function
        yield from _walk(inner, n_outer + 1)


if __name__ == "__main__":
    main(sys.argv[1:])
