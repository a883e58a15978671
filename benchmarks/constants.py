"""Numeric constants of the library: how many there are, and what half and twice the value of each changes.

::

    python benchmarks/constants.py --count
    python benchmarks/constants.py --only solvers/cutting_plane partition/kmeans.py:_MAX_ITER

**Counted** is each name in capitals at the top of a module of `src/widemargin` whose value is a number or a tuple of
numbers, written as such or computed from numbers (not from other constants alone); and each such field of a class that
is instantiated once under a name in capitals (a decision's constants). A tuple counts once. Not counted are literals
where they are used, strings and flags.

**Measured** are, of exact kernel machines, kernel entries and working sets; of others processor seconds of one thread,
the least of `--repeats` fits or more, in turn with the value as it is; of all the answer, objective and score. Counts
and answers do not depend on the load of the machine, seconds by some percent. "change" is the ratio to the measure with
the value as it is, less 1, of the count that differs more; "answer" the relative change of objective or score,
whichever is larger. Rows of other constants stay in the file.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import scipy.sparse as sp

import widemargin
from benchmarks.shrinking import counted
from measuring import report
from measuring.linear_problems import load_linear
from measuring.problems import load_problem

_SOURCE = Path(widemargin.__file__).parent
_NAME = re.compile(r"_?[A-Z][A-Z0-9_]*")
_FITS: dict[str, tuple[str, str, int, dict[str, Any]]] = {
    "exact": ("DCSVMClassifier", "codrna", 20_000, {}),
    "tight": ("DCSVMClassifier", "letter", 4_000, {"memory_budget": "24MB"}),
    "level": ("DCSVMClassifier", "codrna", 10_000, {"n_levels": 2}),
    "early": ("DCSVMClassifier", "codrna", 20_000, {"n_levels": 1, "stop_level": 1}),
    "classes": ("DCSVMClassifier", "pendigits", 3_000, {"gamma": 0.1}),
    "regression": ("DCSVMRegressor", "cpusmall", 3_000, {"C": 10.0}),
    "pred": ("DCPredClassifier", "codrna", 10_000, {}),
    "ridge": ("DCPredRegressor", "cpusmall", 6_000, {}),
    "steps": ("BSGDClassifier", "codrna", 20_000, {"budget": 50, "n_epochs": 2, "random_state": 0}),
    "long": ("OCASClassifier", "codrna", 50_000, {"C": 10.0}),
    "narrow": ("OCASClassifier", "covtype", 200_000, {"C": 1.0}),
    "wide": ("OCASClassifier", "a9a", 30_000, {"C": 1.0}),
    "few": ("OCASClassifier", "mnist", 3_000, {"C": 1e-6}),
    "text": ("OCASClassifier", "spam_assassin", 9_000, {"C": 10.0}),
    "words": ("OCASClassifier", "news20_1", 4_000, {"C": 1.0}),
    "squared": ("OCASClassifier", "a9a", 30_000, {"C": 1.0, "loss": "squared_hinge"}),
    "multiclass": ("OCASClassifier", "pendigits", 4_000, {"C": 0.01, "multi_class": "crammer_singer"}),
    "search": ("DCSVMClassifierCV", "codrna", 3_000, {"random_state": 0}),
    "many": ("DCSVMClassifierCV", "codrna", 20_000, {"random_state": 0, "gammas": 3}),
    "landmarks": ("LandmarkNystroem", "codrna", 10_000, {"landmarks": "rpcholesky"}),
    "relevance": ("RelevanceScaler", "codrna", 6_000, {}),
}
_ROOMS: dict[str, tuple[str, ...]] = {
    "solvers/cutting_plane algorithms/ocas": ("long", "narrow", "wide", "few", "text", "words", "squared"),
    "solvers/dual kernels algorithms/dc_svm": ("exact", "tight", "level", "early", "classes", "regression"),
    "solvers/sgd algorithms/bsgd estimators/bsgd": ("steps",),
    "model_selection algorithms/held_out estimators/_near_gamma": ("search", "many"),
    "nystroem algorithms/dc_pred estimators/_cost partition/hierarchy": ("pred", "ridge", "landmarks"),
    "compression": ("compress",),
    "partition models data": ("level", "early", "pred", "long", "steps"),
    "estimators/relevance algorithms/relevance": ("relevance",),
    "": ("exact", "long", "steps", "pred"),
}
_COLUMNS = ["constant", "value", "problem", "measure", "change", "answer"]


class Constant(NamedTuple):
    """A name in a module, or NAME.field, and its value."""

    module: str  # path below src/widemargin
    name: str
    value: Any

    @property
    def key(self) -> str:
        """What `--only` takes."""
        return f"{self.module}:{self.name}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Count; or measure, print and write the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--only", nargs="+", default=[""], metavar="ROOM, FILE OR FILE:NAME")
    parser.add_argument("--problems", nargs="+", help="instead of those of the room")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    constants = [c for c in find_constants() if c.key.startswith(tuple(options.only))]
    if options.count:
        _print_count(constants)
        return
    path = report.RESULTS / "constants.csv"
    for constant in constants:
        rows = [row for name in options.problems or _problems_of(constant) for row in _rows(constant, name, options)]
        print(report.format_table(rows, _COLUMNS), flush=True)
        kept = [row for row in (report.read_csv(path) if path.exists() else []) if row["constant"] != constant.key]
        report.write_csv(path, [*kept, *rows])


# --------------------------------------------------------------------------------------------------------- counting


def find_constants() -> list[Constant]:
    """All numeric constants, by module."""
    return [
        Constant(path.relative_to(_SOURCE).as_posix(), *found) for path in _files() for found in _constants_of(path)
    ]


def _files() -> list[Path]:
    return sorted(path for path in _SOURCE.rglob("*.py") if "_pyinstaller" not in path.parts)


def _constants_of(path: Path) -> Iterator[tuple[str, Any]]:
    """Names and values of one file; of a class with an instance in capitals, its numeric fields."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    names: dict[str, Any] = {}
    for name, value in _assignments(body):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in classes:
            fields = dict(_assignments(classes[value.func.id].body, re.compile(".*")))
            numbers = [(field, _number(node, names)) for field, node in fields.items()]
            yield from ((f"{name}.{field}", number) for field, number in numbers if number is not None)
        elif (number := _number(value, names)) is not None:
            names[name] = number
            yield name, number


def _assignments(body: list[ast.stmt], pattern: re.Pattern[str] = _NAME) -> Iterator[tuple[str, ast.expr]]:
    """The names that statements set, and the expressions; of a tuple of names, each with its own."""
    for node in body:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        elif isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
        else:
            continue
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=True))
        yield from ((t.id, v) for t, v in pairs if isinstance(t, ast.Name) and pattern.fullmatch(t.id))


def _number(node: ast.expr, names: dict[str, Any]) -> Any:
    """The value of an expression of numbers, of tuples of them and of earlier constants; None of any other."""
    allowed = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.Name, ast.operator, ast.unaryop, ast.expr_context)
    if not all(isinstance(part, allowed) for part in ast.walk(node)):
        return None
    if not any(isinstance(part, ast.Constant) for part in ast.walk(node)):
        return None
    try:
        value = eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}}, dict(names))
    except (NameError, TypeError):
        return None
    parts = value if isinstance(value, tuple) else (value,)
    return value if parts and all(type(part) in (int, float) for part in parts) else None


def _print_count(constants: list[Constant]) -> None:
    for module in dict.fromkeys(c.module for c in constants):
        names = [c.name for c in constants if c.module == module]
        print(f"{len(names):4} {module}: {' '.join(names)}")
    print(f"{len(constants):4} in all")


# -------------------------------------------------------------------------------------------------------- measuring


def _problems_of(constant: Constant) -> tuple[str, ...]:
    return next(problems for rooms, problems in _ROOMS.items() if constant.module.startswith(tuple(rooms.split(" "))))


def _rows(constant: Constant, problem: str, options: Any) -> list[dict[str, Any]]:
    """A row for half the value, and one for twice it."""
    rows = []
    for factor in (0.5, 2.0):
        value = _scaled(constant.value, factor)
        (usual, usual_answer), (changed, answer) = _measure(problem, options.repeats, constant, value)
        changes = changed / np.maximum(usual, 1e-300) - 1
        answers = np.abs(answer - usual_answer) / np.maximum(np.abs(usual_answer), 1e-300)
        rows.append(
            {"constant": constant.key, "value": str(value), "problem": problem}
            | {"measure": "counts" if len(changes) > 1 else "seconds"}
            | {"change": float(max(changes, key=abs)), "answer": float(answers.max())}
        )
    return rows


def _scaled(value: Any, factor: float) -> Any:
    """The value, or each of a tuple, times the factor; a share above a half comes half as near to 1."""
    if isinstance(value, tuple):
        return tuple(_scaled(part, factor) for part in value)
    if isinstance(value, int):
        return max(1, int(value * factor))
    return (1 + value) / 2 if 0.5 <= value < 1 < factor else value * factor


@contextmanager
def _set_to(constant: Constant, value: Any) -> Iterator[None]:
    """Set a constant in its module and in those that have imported it."""
    module = import_module(
        "widemargin." + constant.module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    )
    name, _, field = constant.name.partition(".")
    old = getattr(module, name)
    new = old._replace(**{field: value}) if field else value
    with ExitStack() as stack:
        for other in [m for key, m in sys.modules.items() if key.startswith("widemargin")]:
            if other is module or (other.__dict__.get(name) is old and not name.startswith("_")):
                stack.enter_context(mock.patch.object(other, name, new))
        yield


def _measure(problem: str, repeats: int, constant: Constant, value: Any) -> list[tuple[Any, Any]]:
    """Counts or seconds, and the answer, of fits with predictions as the code is, and of fits with another value."""
    train = _training(problem)
    runs: tuple[list[float], list[float]] = [], []
    found: list[tuple[Any, Any]] = [(), ()]
    while len(runs[0]) < repeats or sum(runs[0]) < 0.2:
        for k in range(2):
            with _set_to(constant, value) if k else nullcontext(), warnings.catch_warnings(), counted() as counts:
                warnings.simplefilter("ignore")
                begin = time.process_time()
                *answer, n_iter = train()
                runs[k].append(time.process_time() - begin)
            entries = counts["rows"] + counts["active"]
            work = [entries, n_iter] if entries and n_iter else [min(runs[k])]
            found[k] = np.array(work, np.float64), np.nan_to_num(np.asarray(answer, np.float64))
        if len(found[0][0]) > 1:
            break
    return found


@cache
def _training(problem: str) -> Callable[[], tuple[float, float, int]]:
    """Fit the problem's model: its objective, its score, and its working sets if it is an exact machine."""
    if problem == "compress":
        X, y, X_test, _ = _load("codrna", 3_000)
        machine = widemargin.DCSVMClassifier(C=32.0, gamma=0.5).fit(X, y)
        labels = machine.predict(X_test)

        def shrink() -> tuple[float, float, int]:
            smaller = widemargin.compress(machine, X, random_state=0)
            return 0.0, float(np.mean(smaller.predict(X_test) == labels)), 0

        return shrink
    estimator, name, n_rows, options = _FITS[problem]
    X, y, X_test, y_test = _load(name, n_rows)
    published = load_problem(name, n_rows=1) if estimator in ("DCSVMClassifier", "BSGDClassifier") else None
    kernel = {} if published is None else {"C": published.C, "gamma": published.gamma}

    def train() -> tuple[float, float, int]:
        model = getattr(widemargin, estimator)(**{"n_jobs": 1, **kernel, **options}).fit(X, y)
        score = (
            model.score(X_test, y_test) if hasattr(model, "score") else float(np.abs(model.transform(X_test)).mean())
        )
        is_exact = estimator in ("DCSVMClassifier", "DCSVMRegressor")
        return float(getattr(model, "objective_", 0.0)), score, int(np.sum(model.n_iter_)) if is_exact else 0

    return train


@cache
def _load(name: str, n_rows: int) -> tuple[Any, Any, Any, Any]:
    """Rows and labels or targets to train on, and up to 2,000 to score on."""
    if name in ("spam_assassin", "news20_1"):
        problem = load_linear(name, n_rows)
        return problem.X, problem.labels, problem.X[:500], problem.labels[:500]
    if name in ("cpusmall", "pendigits"):
        X, y, *_ = widemargin.datasets.load_benchmark(name)
        order = np.random.default_rng(0).permutation(len(y))
        X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)[order]
        X, y = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-6), np.asarray(y)[order]
        return X[:n_rows], y[:n_rows], X[-2000:], y[-2000:]
    p = load_problem(name, n_rows=n_rows)
    X, X_test = (sp.csr_array(A) for A in (p.X, p.X_test)) if name == "a9a" else (p.X, p.X_test)
    return X, p.y, X_test[:2000], p.y_test[:2000]


if __name__ == "__main__":
    main()
