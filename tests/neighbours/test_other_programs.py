"""Random machines of other programs, read here, and ours, read there: `nox -s neighbours`.

Each direction and program has `N_MODELS` machines: all types and kernels, 2 to 10 classes, labels as -1 and 1 in either
order, as other integers and as text, sparse columns, class weights, scales. Labels must be equal, and values within the
digits of the file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier

from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCSVMClassifier,
    DCSVMRegressor,
    OCASClassifier,
    OCASRegressor,
    compress,
    read_machine,
    write_libsvm,
)

pytestmark = pytest.mark.neighbours

N_MODELS = int(os.environ.get("WIDEMARGIN_RANDOM_MODELS", "100"))
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


def problems(seed: int) -> Iterator[Problem]:
    """`N_MODELS` random problems: labels by distance from random centres, with every class among them."""
    for number in range(N_MODELS):
        rng = np.random.default_rng([seed, number])
        n, d, k = rng.integers(40, 120), rng.integers(2, 9), rng.choice([2, 2, 3, 5, 10])
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


def values_of(model: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Decision values of pairs or classes, or of a regressor its predictions: (n, q)."""
    machine = model[-1] if hasattr(model, "steps") else model
    rows = model[:-1].transform(X) if hasattr(model, "steps") else X
    return np.asarray(machine._decision_values(rows))


def check(model: Any, X: NDArray[np.float64], labels: Any, values: Any, digits: float) -> None:
    """Compare labels (n,), all of them, and values (n, q), in the order of the file's labels (of a classifier)."""
    ours = values_of(model, X)
    machine = model[-1] if hasattr(model, "steps") else model
    if labels is not None:
        assert np.array_equal(model.predict(X), labels)
    if values is not None:
        # of classifiers the sizes: signs and order of the pairs are in the labels
        theirs = np.asarray(values).reshape(len(X), -1)
        if is_classifier(machine):
            ours, theirs = np.sort(np.abs(ours), axis=1), np.sort(np.abs(theirs), axis=1)
        np.testing.assert_allclose(ours, theirs, rtol=digits, atol=digits * (1 + np.abs(theirs).max()))


def terms_of(model: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums of the sizes of what each decision value is a sum of: (n, q). Rounding errors are parts of them."""
    machine = model[-1] if hasattr(model, "steps") else model
    rows = np.abs(model[:-1].transform(X) if hasattr(model, "steps") else X)
    points = machine.support_vectors_
    inner = rows @ np.abs(points.toarray() if sp.issparse(points) else points).T
    if machine.kernel in ("rbf", "sigmoid"):
        inner = 1 + machine.gamma * inner
    elif machine.kernel == "poly":
        inner = machine.degree * (machine.gamma * inner + machine.coef0) ** machine.degree
    return np.asarray(inner @ np.abs(machine._function_coef).T + np.abs(machine.intercept_))


def check_clear(model: Any, X: NDArray[np.float64], labels: Any, precision: float) -> float:
    """Compare the labels of a program that is less precise than we are, but of rows with a value that is about 0.

    Returns
    -------
    float
        The share of the rows that were compared.
    """
    clear = (np.abs(values_of(model, X)) > precision * terms_of(model, X)).all(axis=1)
    assert np.array_equal(model.predict(X)[clear], labels[clear])
    return float(clear.mean())


# LIBSVM and LIBLINEAR

_TYPES = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3}


def rows_of(X: NDArray[np.float64], *, is_sparse: bool) -> list[Any]:
    if not is_sparse:
        return list(map(list, X.tolist()))
    return [{j + 1: value for j, value in enumerate(row) if value} for row in X.tolist()]


def libsvm_options(problem: Problem, kind: int) -> str:
    kernel = f"-t {_TYPES[problem.kernel]} -g {problem.gamma} -r {problem.coef0} -d {problem.degree}"
    weights = " ".join(f"-w{label} {weight}" for label, weight in problem.weights.items()) if kind == 0 else ""
    return f"-s {kind} {kernel} -c {problem.C} -n 0.1 -p 0.1 {weights} -q"


def write_rows(path: Path, X: NDArray[np.float64], y: Any) -> None:
    """A file of data for `svm-train` and `svm-predict`."""
    rows = (" ".join(f"{j}:{value!r}" for j, value in row.items()) for row in rows_of(X, is_sparse=True))
    path.write_text("".join(f"{label} {row}\n" for label, row in zip(y, rows, strict=True)))


def run_libsvm(folder: Path, *arguments: str) -> bool:
    """Run `svm-train` or `svm-predict`; False where no such nu can be had."""
    if shutil.which(arguments[0]) is None:
        pytest.skip("LIBSVM's programs are not there")
    return subprocess.run(arguments, cwd=folder, capture_output=True, check=False).returncode == 0


def answers_of_libsvm(folder: Path, X: NDArray[np.float64], *options: str) -> list[list[str]]:
    """The lines that `svm-predict` writes for the model in the folder, as words."""
    write_rows(folder / "new", X, np.zeros(len(X), int))
    assert run_libsvm(folder, "svm-predict", *options, "new", "model", "answers")
    return [line.split() for line in (folder / "answers").read_text().splitlines()]


def test_models_of_libsvm(tmp_path: Path) -> None:
    n_read = 0
    for number, problem in enumerate(problems(1)):
        kind = (0, 0, 1, 2, 3, 4)[number % 6]
        write_rows(tmp_path / "rows", problem.X, problem.labels if kind < 2 else problem.y)
        has_curves = kind < 2 and number % 2 == 1
        options = libsvm_options(problem, kind).split() + (["-b", "1"] if has_curves else [])
        if not run_libsvm(tmp_path, "svm-train", *options, "rows", "model"):
            continue
        n_read += 1
        model = read_machine(tmp_path / "model", n_features=problem.X.shape[1])
        answers = [float(words[0]) for words in answers_of_libsvm(tmp_path, problem.new)]
        if kind < 3:
            assert np.array_equal(model.predict(problem.new), answers)
        else:  # values have six digits
            np.testing.assert_allclose(model.predict(problem.new), answers, rtol=2e-6, atol=1e-6)
        if has_curves:
            first, *lines = answers_of_libsvm(tmp_path, problem.new, "-b", "1")
            order = np.argsort(np.array(first[1:], int))
            theirs = np.array([words[1:] for words in lines], float)[:, order]
            np.testing.assert_allclose(model.predict_proba(problem.new), theirs, rtol=1e-5, atol=1e-5)
    assert n_read > 0.8 * N_MODELS


def our_models() -> Iterator[tuple[Any, NDArray[np.float64]]]:
    """Fitted kernel machines, and rows to predict."""
    for number, problem in enumerate(problems(2)):
        kernel = problem.kernel_parameters
        names = problem.labels if number % 3 else np.array([f"class {label}" for label in problem.labels])
        X = problem.X.astype(np.float32) if number % 2 else problem.X
        kind = number % 6
        if kind == 0:
            yield DCSVMRegressor(C=problem.C, **kernel).fit(X, problem.y), problem.new
        elif kind == 1:
            yield DCOneClassSVM(nu=0.2, **kernel).fit(X), problem.new
        elif kind == 2:
            yield (
                BSGDClassifier(budget=30, random_state=0, kernel="rbf", gamma=problem.gamma).fit(X, names),
                problem.new,
            )
        elif number % 20 == 3:
            exact = DCSVMClassifier(C=problem.C, kernel="rbf", gamma=problem.gamma).fit(X, names)
            small = {"n_clusters": 1, "n_landmarks": 20, "pseudo": None, "linear_term": False}
            yield compress(exact, X, random_state=0, **small), problem.new
        else:
            weights = None if names.dtype.kind == "U" else problem.weights or None
            yield DCSVMClassifier(C=problem.C, class_weight=weights, **kernel).fit(X, names), problem.new


def check_labels(model: Any, X: NDArray[np.float64], labels: NDArray[Any]) -> None:
    """Compare the labels that another program gives our file with the model's own."""
    if not is_classifier(model):
        return
    classes = model.classes_
    numbers = np.asarray(labels).astype(int)
    named = classes[numbers] if classes.dtype.kind == "U" else numbers
    assert np.array_equal(model.predict(X), named)


@pytest.mark.filterwarnings("ignore")
def test_our_models_in_libsvm(tmp_path: Path) -> None:
    for model, X in our_models():
        write_libsvm(model, tmp_path / "model")
        answers = np.array([float(words[0]) for words in answers_of_libsvm(tmp_path, X)])
        check_labels(model, X, answers)
        ours = values_of(model, X)
        if not is_classifier(model) and "OneClass" not in type(model).__name__:
            np.testing.assert_allclose(ours[:, 0], answers, rtol=2e-4, atol=1e-4 * np.abs(ours).max())


_SOLVERS = (0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 21)


def test_models_of_liblinear(tmp_path: Path) -> None:
    linear, path = pytest.importorskip("liblinear.liblinearutil"), str(tmp_path / "model")
    for number, problem in enumerate(problems(3)):
        solver = _SOLVERS[number % len(_SOLVERS)]
        y = problem.y if solver in (11, 12, 13) else problem.labels
        bias = (-1, 1, 2.5)[number % 3] if solver != 21 else -1
        weights = " ".join(f"-w{label} {weight}" for label, weight in problem.weights.items()) if solver < 8 else ""
        rows = rows_of(problem.X, is_sparse=number % 3 == 0)
        options = f"-s {solver} -c {problem.C} -B {bias} {weights} -q"
        trained = linear.train(linear.problem(y.tolist(), rows, bias), linear.parameter(options))
        linear.save_model(path, trained)
        theirs = linear.load_model(path)
        X = np.vstack([problem.new, np.zeros_like(problem.new[:1])])
        new = rows_of(X, is_sparse=True)
        labels, _, values = linear.predict([0.0] * len(new), new, theirs, "-q")
        model = read_machine(path)
        check(model, X, None if solver in (11, 12, 13) else np.array(labels), values, 1e-12)
        if solver in (0, 6, 7):
            _, _, probabilities = linear.predict([0.0] * len(new), new, theirs, "-q -b 1")
            order = np.argsort(theirs.get_labels())
            np.testing.assert_allclose(model.predict_proba(X), np.array(probabilities)[:, order], atol=1e-12)


def test_our_models_in_liblinear(tmp_path: Path) -> None:
    linear, path = pytest.importorskip("liblinear.liblinearutil"), str(tmp_path / "model")
    for number, problem in enumerate(problems(4)):
        names = problem.labels if number % 3 else np.array([f"class {label}" for label in problem.labels])
        loss, has_bias = ("hinge", "logistic")[number % 2], number % 5 > 0
        if number % 4 == 0:
            model = OCASRegressor(C=problem.C, fit_intercept=has_bias).fit(problem.X, problem.y)
        else:
            model = OCASClassifier(C=problem.C, loss=loss, fit_intercept=has_bias).fit(problem.X, names)
        write_libsvm(model, path)
        new = rows_of(problem.new, is_sparse=True)
        labels, _, values = linear.predict([0.0] * len(new), new, linear.load_model(path), "-q")
        check_labels(model, problem.new, np.array(labels))
        np.testing.assert_allclose(values_of(model, problem.new), np.array(values), atol=1e-9)


# ThunderSVM and OpenCV, which compute in float32


def test_models_of_thundersvm(tmp_path: Path) -> None:
    thunder, path, shares = pytest.importorskip("thundersvm"), str(tmp_path / "model"), []
    for number, problem in enumerate(problems(5)):
        common = problem.kernel_parameters | {"kernel": {"poly": "polynomial"}.get(problem.kernel, problem.kernel)}
        kind = number % 5
        if kind < 3:
            trained, y = thunder.SVC(C=problem.C, **common), problem.labels
        elif kind == 3:
            trained, y = thunder.SVR(C=problem.C, **common), problem.y
        else:
            trained, y = thunder.OneClassSVM(nu=0.2, **common), None
        trained.fit(problem.X, y) if y is not None else trained.fit(problem.X)
        trained.save_to_file(path)
        if "nan" in Path(path).read_text():  # its float32 sums ended in NaN
            continue
        labels = np.asarray(trained.predict(problem.new)).ravel()
        model = read_machine(path, n_features=problem.X.shape[1])
        if kind == 3:
            assert (np.abs(model.predict(problem.new) - labels) < 1e-5 * terms_of(model, problem.new)[:, 0]).all()
            continue
        shares.append(check_clear(model, problem.new, labels, 1e-5))  # rho has six digits
    assert np.mean(shares) > 0.9


def test_models_of_opencv(tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    if not hasattr(cv2, "ml"):
        pytest.skip("cv2.ml is not in this wheel of OpenCV")
    kernels = {name: getattr(cv2.ml, f"SVM_{name.upper()}") for name in KERNELS}
    types = (*[cv2.ml.SVM_C_SVC] * 2, cv2.ml.SVM_NU_SVC, cv2.ml.SVM_ONE_CLASS, cv2.ml.SVM_EPS_SVR, cv2.ml.SVM_NU_SVR)
    shares = []
    for number, problem in enumerate(problems(6)):
        path = str(tmp_path / ("model.xml" if number % 2 else "model.yml"))
        kind = types[number % len(types)]
        machine = cv2.ml.SVM_create()
        machine.setType(kind)
        machine.setKernel(kernels[problem.kernel])
        machine.setGamma(problem.gamma)
        machine.setCoef0(problem.coef0)
        machine.setDegree(problem.degree)
        machine.setC(problem.C)
        machine.setNu(0.1)
        machine.setP(0.1)
        X, new = problem.X.astype(np.float32), problem.new.astype(np.float32)
        has_labels = kind in (cv2.ml.SVM_C_SVC, cv2.ml.SVM_NU_SVC)
        if has_labels and problem.weights and kind == cv2.ml.SVM_C_SVC:
            machine.setClassWeights(np.array([problem.weights[label] for label in sorted(problem.weights)]))
        y = problem.labels.astype(np.int32) if has_labels else problem.y.astype(np.float32)
        try:
            machine.train(X, cv2.ml.ROW_SAMPLE, y)
        except cv2.error:  # this nu cannot be had
            continue
        try:
            machine.save(path)
        except cv2.error:  # it found no function
            continue
        theirs = cv2.ml.SVM_load(path)
        labels = theirs.predict(new)[1].ravel()
        model = read_machine(path)
        ours = values_of(model, new.astype(np.float64))
        bound = 2e-6 * terms_of(model, problem.new)
        if kind in (cv2.ml.SVM_EPS_SVR, cv2.ml.SVM_NU_SVR):
            assert (np.abs(ours[:, 0] - labels) < bound[:, 0]).all()
            continue
        if kind == cv2.ml.SVM_ONE_CLASS:
            labels = np.where(labels > 0, 1, -1)
        shares.append(check_clear(model, problem.new, labels, 2e-6))
        if has_labels and ours.shape[1] == 1:
            raw = theirs.predict(new, flags=cv2.ml.StatModel_RAW_OUTPUT)[1].ravel()
            assert (np.abs(ours[:, 0] + raw) < bound[:, 0]).all()
    assert np.mean(shares) > 0.95


# e1071 and libsvm-js: other languages

_R = """
suppressMessages(library(e1071))
for (i in seq_len(as.integer(commandArgs(TRUE)[1]))) {
  name <- function(suffix) sprintf("%d.%s", i, suffix)
  rows <- as.matrix(read.csv(name("rows"), header = FALSE)); new <- as.matrix(read.csv(name("new"), header = FALSE))
  y <- read.csv(name("y"), header = FALSE, colClasses = "character")[, 1]
  p <- as.list(read.csv(name("parameters")))
  y <- if (p$type %in% c("C-classification", "nu-classification")) factor(y, levels = unique(y)) else as.numeric(y)
  if (p$type == "one-classification") y <- NULL
  model <- tryCatch(svm(rows, y, type = p$type, kernel = p$kernel, gamma = p$gamma, coef0 = p$coef0,
    degree = p$degree, cost = p$C, nu = 0.1, scale = as.logical(p$scale)), error = function(e) NULL)
  if (is.null(model)) next
  write.svm(model, name("svm"), name("scale"), name("yscale"))
  writeLines(if (is.factor(y)) model$levels else character(0), name("levels"))
  answer <- predict(model, new, decision.values = TRUE)
  if (is.logical(answer)) answer <- ifelse(answer, 1, -1)
  writeLines(if (is.factor(answer)) as.character(answer) else sprintf("%.17g", answer), name("answer"))
  write.table(attr(predict(model, new, decision.values = TRUE), "decision.values"), name("values"),
    row.names = FALSE, col.names = FALSE)
}
"""
_R_TYPES = (
    *("C-classification", "C-classification", "nu-classification"),
    *("one-classification", "eps-regression", "nu-regression"),
)


def test_models_of_e1071(tmp_path: Path) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("R is not there")
    (tmp_path / "train.R").write_text(_R)
    given = list(problems(7))
    kinds = [_R_TYPES[number % len(_R_TYPES)] for number in range(len(given))]
    for i, (problem, kind) in enumerate(zip(given, kinds, strict=True), 1):
        for suffix, rows in (("rows", problem.X), ("new", problem.new)):
            np.savetxt(tmp_path / f"{i}.{suffix}", rows, "%.17g", delimiter=",")
        y = [f"c{label}" for label in problem.labels] if "class" in kind else problem.y.tolist()
        (tmp_path / f"{i}.y").write_text("\n".join(map(str, y)) + "\n")
        kernel = {"poly": "polynomial", "rbf": "radial"}.get(problem.kernel, problem.kernel)
        parameters = {"type": kind, "kernel": kernel, "gamma": problem.gamma, "coef0": problem.coef0}
        parameters |= {"degree": problem.degree, "C": problem.C, "scale": "TRUE" if i % 4 else "FALSE"}
        lines = [",".join(parameters), ",".join(map(str, parameters.values()))]
        (tmp_path / f"{i}.parameters").write_text("\n".join(lines) + "\n")
    subprocess.run(["Rscript", "train.R", str(len(given))], cwd=tmp_path, check=True, capture_output=True)
    n_read, shares = 0, []
    for i, (problem, kind) in enumerate(zip(given, kinds, strict=True), 1):
        path = tmp_path / f"{i}.svm"
        if not path.exists():  # this nu cannot be had
            continue
        levels = (tmp_path / f"{i}.levels").read_text().split() if kind in _R_TYPES[:3] else None
        scale: Any = tmp_path / f"{i}.scale"
        if (tmp_path / f"{i}.yscale").exists():
            scale = (scale, tmp_path / f"{i}.yscale")
        model = read_machine(path, scale=scale, classes=levels, n_features=problem.X.shape[1])
        answer = (tmp_path / f"{i}.answer").read_text().split()
        n_read += 1
        values = np.loadtxt(tmp_path / f"{i}.values")
        if "regression" in kind:
            errors = np.abs(model.predict(problem.new) - np.array(answer, float))
            assert (errors < 1e-7 * terms_of(model, problem.new)[:, 0]).all()
        else:
            labels = np.array(answer, float) if levels is None else answer
            shares.append(check_clear(model, problem.new, np.array(labels), 1e-7))  # R has 17 digits, its file 8
            ours, theirs = np.abs(values_of(model, problem.new)), np.abs(values.reshape(len(problem.new), -1))
            bound = 1e-7 * terms_of(model, problem.new).max(axis=1, keepdims=True)
            assert (np.abs(np.sort(ours) - np.sort(theirs)) < bound).all()
    assert np.mean(shares) > 0.95
    assert n_read > 0.8 * len(given)


_JS = """
const SVM = require(process.argv[2] + "/libsvm-js/asm"), fs = require("fs");
const answers = JSON.parse(fs.readFileSync("problems.json")).map((p) => {
  if (p.text) return SVM.load(p.text).predict(p.rows.concat(p.rows.slice(0, 1))).slice(0, p.rows.length);
  const svm = new SVM({type: p.type, kernel: p.kernel, gamma: p.gamma, coef0: p.coef0, degree: p.degree, cost: p.C,
    nu: 0.1, quiet: true});
  svm.train(p.X, p.y);
  const text = svm.serializeModel();
  return [text, SVM.load(text).predict(p.rows)];
});
fs.writeFileSync("answers.json", JSON.stringify(answers));
"""


def run_js(folder: Path, given: list[dict[str, Any]]) -> Any:
    """What libsvm-js answers: its package is in the folder that NODE_PATH names."""
    where = Path(os.environ.get("NODE_PATH", "node_modules")).resolve()
    if shutil.which("node") is None or not (where / "libsvm-js").is_dir():
        pytest.skip("Node or its package libsvm-js is not there")
    (folder / "run.js").write_text(_JS)
    (folder / "problems.json").write_text(json.dumps(given))
    subprocess.run(["node", "run.js", str(where)], cwd=folder, check=True, capture_output=True)
    return json.loads((folder / "answers.json").read_text())


def test_models_of_libsvm_js(tmp_path: Path) -> None:
    given = list(problems(8))
    kinds = [(0, 0, 2, 3)[number % 4] for number in range(len(given))]
    answers = run_js(
        tmp_path,
        [
            {"type": kind, "kernel": _TYPES[p.kernel], "gamma": p.gamma, "coef0": p.coef0, "degree": p.degree, "C": p.C}
            | {"X": p.X.tolist(), "y": (p.labels if kind == 0 else p.y).tolist(), "rows": p.new.tolist()}
            for p, kind in zip(given, kinds, strict=True)
        ],
    )
    for problem, kind, (text, answer) in zip(given, kinds, answers, strict=True):
        (tmp_path / "model").write_text(text)
        model = read_machine(tmp_path / "model", n_features=problem.X.shape[1])
        if kind == 3:
            np.testing.assert_allclose(model.predict(problem.new), answer, rtol=1e-9, atol=1e-9)
        else:
            assert np.array_equal(model.predict(problem.new), answer)


@pytest.mark.filterwarnings("ignore")
def test_our_models_in_libsvm_js(tmp_path: Path) -> None:
    given, models = [], list(our_models())
    for model, X in models:
        write_libsvm(model, tmp_path / "model")
        given.append({"text": (tmp_path / "model").read_text(), "rows": X.tolist()})
    for (model, X), answer in zip(models, run_js(tmp_path, given), strict=True):
        check_labels(model, X, np.array(answer))


# scikit-learn-intelex and ThunderSVM in Python


@pytest.mark.filterwarnings("ignore")
def test_intelex() -> None:
    svm, n_read = pytest.importorskip("sklearnex.svm"), 0
    for number, problem in enumerate(problems(9)):
        kernel = problem.kernel_parameters
        kind = (svm.SVC, svm.SVR, svm.NuSVC)[number % 3]
        parameters = {"nu": 0.1} if kind is svm.NuSVC else {"C": problem.C}
        y = problem.y if kind is svm.SVR else problem.labels
        try:
            theirs = kind(**parameters, **kernel).fit(problem.X, y)
        except ValueError:  # this nu cannot be had
            continue
        n_read += 1
        model = read_machine(theirs)
        if kind is svm.SVR:
            np.testing.assert_allclose(model.predict(problem.new), theirs.predict(problem.new), rtol=1e-7, atol=1e-7)
            continue
        assert np.array_equal(model.predict(problem.new), theirs.predict(problem.new))
        assert model.as_function()(problem.new[0]) == theirs.predict(problem.new)[0]
        if number % 20 == 0:
            fast = compress(theirs, problem.X, random_state=0)
            assert np.array_equal(fast.classes_, theirs.classes_)
    assert n_read > 0.8 * N_MODELS


@pytest.mark.filterwarnings("ignore")
def test_compress_thundersvm() -> None:
    thunder = pytest.importorskip("thundersvm")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, 3, -2)
    theirs = thunder.SVC(kernel="rbf", gamma=0.5, C=10).fit(X, y)
    fast = compress(theirs, X, random_state=0)
    assert np.mean(fast.predict(X) == theirs.predict(X)) > 0.97
