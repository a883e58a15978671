"""Random models, and what differs between two programs' answers for them; how programs are run."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from widemargin import BSGDClassifier, DCOneClassSVM, DCSVMClassifier, DCSVMRegressor, compress, read_machine

KERNELS = ("linear", "poly", "rbf", "sigmoid")


class Problem(NamedTuple):
    """Rows to train on and to predict, labels, values, and parameters of a kernel."""

    X: NDArray[np.float64]
    new: NDArray[np.float64]
    labels: NDArray[np.int64]
    y: NDArray[np.float64]
    kernel: str
    gamma: float
    coef0: float
    degree: int
    C: float
    weights: dict[int, float]

    @property
    def kernel_parameters(self) -> dict[str, Any]:
        """Arguments of an estimator."""
        return {"kernel": self.kernel, "gamma": self.gamma, "coef0": self.coef0, "degree": self.degree}

    @property
    def names(self) -> NDArray[np.str_]:
        """The labels as text."""
        return np.array([f"class {label}" for label in self.labels])


def problems(seed: int, n_models: int, most_classes: int = 10) -> Iterator[Problem]:
    """Random problems: labels by distance from random centres, with every class among them."""
    for number in range(n_models):
        rng = np.random.default_rng([seed, number])
        n, d, k = rng.integers(40, 120), rng.integers(2, 9), min(rng.choice([2, 2, 3, 5, 10]), most_classes)
        X = rng.normal(size=(n + 300, d)) * rng.uniform(0.3, 3, size=d)
        if number % 3 == 0:
            X[rng.random(X.shape) < 0.5] = 0
            X[0] += 0.1  # so that no column is empty
        X = X.astype(np.float32).astype(np.float64)
        centres = rng.normal(size=(k, d))
        classes = np.square(X[:, None] - centres).sum(axis=2).argmin(axis=1)
        classes[rng.permutation(n)[:k]] = range(k)
        pairs = ([-1, 1], [1, -1], [0, 1], [7, 3])
        names = np.array(pairs[number % 4]) if k == 2 else rng.permutation(np.arange(-4, 20))[:k]
        labels = names[classes[:n]]
        weights = {int(label): float(rng.uniform(0.5, 3)) for label in names} if number % 2 else {}
        yield Problem(
            X[:n],
            np.vstack([X[n:], X[:20]]),
            labels,
            X[:n, 0] ** 2 + rng.normal(size=n),
            KERNELS[number % len(KERNELS)],
            float(rng.uniform(0.05, 1) / d),
            float(rng.uniform(0, 1)),
            int(rng.integers(1, 4)),
            float(rng.choice([0.3, 1, 10])),
            weights,
        )


@dataclass
class Comparison:
    """What differs between the answers of two programs for the same models.

    Parameters
    ----------
    digits : float
        The error of a decision value that its program and file explain, as a share of the sizes of its terms.
    """

    version: str
    digits: float
    models: int = 0
    labels: int = 0
    differ: int = 0
    border: int = 0
    difference: float = 0.0

    def add(self, model: Any, X: Any, labels: Any = None, values: Any = None, terms: Any = None) -> None:
        """Compare labels (n,), and values (n, q): of classifiers the sizes, as signs and order are in the labels."""
        self.models += 1
        ours, terms = values_of(model, X), terms_of(model, X) if terms is None else terms
        if labels is not None:
            wrong = model.predict(X) != labels
            on_border = wrong & (np.abs(ours) <= self.digits * terms).any(axis=1)
            self.labels += len(wrong)
            self.differ += int((wrong & ~on_border).sum())
            self.border += int(on_border.sum())
        if values is not None:
            theirs, scale = np.asarray(values, float).reshape(len(X), -1), terms
            if is_classifier(model):
                ours, theirs = np.sort(np.abs(ours), axis=1), np.sort(np.abs(theirs), axis=1)
                scale = terms.max(axis=1, keepdims=True)
            self.add_error(np.abs(ours - theirs) / scale)

    def add_error(self, errors: NDArray[np.float64]) -> None:
        """Take errors as shares of what they are errors of."""
        self.difference = max(self.difference, float(errors.max()))

    def row(self, case: str) -> dict[str, Any]:
        """A row of the results."""
        program, _, direction = case.partition(", ")
        return {"program": program, "direction": direction, **vars(self)}


def steps_of(model: Any, X: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
    """The machine of a pipeline, and the rows that it is given."""
    return (model[-1], model[:-1].transform(X)) if hasattr(model, "steps") else (model, X)


def values_of(model: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Decision values of pairs or classes, or of a regressor its predictions: (n, q)."""
    machine, rows = steps_of(model, X)
    return np.asarray(machine._decision_values(rows))


def terms_of(model: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums of the sizes of what each decision value is a sum of: (n, q). Rounding errors are parts of them."""
    machine, rows = steps_of(model, X)
    expansion = machine._model
    points, kernel = expansion.points, machine._own_kernel["kernel"]
    inner = np.abs(rows) @ np.abs(points.toarray() if sp.issparse(points) else points).T
    if kernel in ("rbf", "sigmoid"):
        inner = 1 + machine._gamma * inner
    elif kernel == "poly":
        inner = machine.degree * (machine._gamma * inner + machine.coef0) ** machine.degree
    coef = expansion.coef.toarray() if sp.issparse(expansion.coef) else expansion.coef
    return np.asarray(inner @ np.abs(coef).T + np.abs(expansion.intercept))


def our_models(n_models: int) -> Iterator[tuple[Any, NDArray[np.float64]]]:
    """Fitted kernel machines, and rows to predict."""
    for number, problem in enumerate(problems(2, n_models)):
        kernel = problem.kernel_parameters
        names = problem.labels if number % 3 else problem.names
        X = problem.X.astype(np.float32) if number % 2 else problem.X
        kind, rbf = number % 6, {"kernel": "rbf", "gamma": problem.gamma}
        model: Any
        if kind == 0:
            model = DCSVMRegressor(C=problem.C, **kernel).fit(X, problem.y)
        elif kind == 1:
            model = DCOneClassSVM(nu=0.2, **kernel).fit(X)
        elif kind == 2:
            model = BSGDClassifier(budget=30, random_state=0, **rbf).fit(X, names)
        elif number % 20 == 3:
            small = {"n_clusters": 1, "n_landmarks": 20, "pseudo": None, "linear_term": False}
            model = compress(DCSVMClassifier(C=problem.C, **rbf).fit(X, names), X, random_state=0, **small)
        else:
            weights = None if names.dtype.kind == "U" else problem.weights or None
            model = DCSVMClassifier(C=problem.C, class_weight=weights, **kernel).fit(X, names)
        yield model, problem.new


def add_written(found: Comparison, model: Any, path: Path, X: Any, labels: Any, values: Any = None) -> None:
    """Compare what another program says of the file that holds our model."""
    classes = getattr(model, "classes_", np.empty(0))
    labels = None if labels is None else np.asarray(labels, float).astype(int)
    if classes.dtype.kind == "U" and labels is not None:
        labels = classes[labels]
    again = read_machine(path, n_features=X.shape[1])
    ours = values_of(model, X)
    if len(classes) > 2 and not hasattr(model, "decision_function_shape"):
        values = None  # a function for each class here, for each pair there
    found.add(
        model,
        X,
        None if is_regressor(model) else labels,
        values,
        np.broadcast_to(terms_of(again, X).max(1)[:, None], ours.shape),
    )


def run(folder: Path, *command: str) -> bool:
    """Run a command; whether it ended well."""
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def output(*command: str) -> str:
    """What a command prints; a FileNotFoundError where it isn't installed."""
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def need(*programs: str) -> None:
    """Raise a FileNotFoundError if one of the programs isn't installed."""
    for name in programs:
        if shutil.which(name) is None:
            raise FileNotFoundError(name)


def debian_version(package: str) -> str:
    """The version of a Debian package, without Debian's own part."""
    return re.split(r"[+-]", output("dpkg-query", "-W", "-f", "${Version}", package))[0]


def run_script(
    folder: Path,
    command: Sequence[str],
    script: str,
    given: Sequence[Problem],
    targets: Iterable[Any],
    more: Sequence[Any],
) -> str:
    """Give a script of R or Octave numbered files of rows, labels and parameters; the version that it writes."""
    need(command[0])
    (folder / "script").write_text(script)
    for i, (problem, y, special) in enumerate(zip(given, targets, more, strict=True), 1):
        for suffix, rows in (("rows", problem.X), ("new", problem.new)):
            np.savetxt(folder / f"{i}.{suffix}", rows, "%.17g", delimiter=",")
        (folder / f"{i}.y").write_text("\n".join(map(str, y.tolist())) + "\n")
        parameters = problem.kernel_parameters | {"C": problem.C, **special}
        lines = [",".join(parameters), ",".join(map(str, parameters.values()))]
        (folder / f"{i}.parameters").write_text("\n".join(lines) + "\n")
    subprocess.run([*command, "script", str(len(given))], cwd=folder, check=True, capture_output=True)
    return (folder / "version").read_text().strip()
