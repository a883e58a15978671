"""Random models of other programs read here, ours read there, and some trained by both: what differs.

Each direction and program has `--models` models: all types and kernels, 2 to 10 classes, labels as -1 and 1 in either
order, as other integers and as text, sparse columns, class weights, scales. A case whose program is not installed is
left out, and its rows in the results stay. NODE_PATH is the folder of libsvm-js.

A decision value is a sum. `difference` is the largest error of one, divided by the sum of the sizes of its terms, and
`digits` what the program's precision and its file leave of that. Labels of rows whose value is 0 within `digits` may
differ (`border`).
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from benchmarks.peers._random_models import (
    KERNELS,
    Comparison,
    Problem,
    add_written,
    debian_version,
    need,
    our_models,
    output,
    problems,
    run,
    run_script,
)
from measuring.experiment import Experiment, Row, Run
from widemargin import DCSVMClassifier, OCASClassifier, OCASRegressor, read_machine, write_libsvm

# LIBSVM and LIBLINEAR

_TYPES = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3}


def rows_of(X: NDArray[np.float64], *, is_sparse: bool) -> list[Any]:
    """Rows as LIBSVM's and LIBLINEAR's Python packages take them."""
    if not is_sparse:
        return list(map(list, X.tolist()))
    return [{j + 1: value for j, value in enumerate(row) if value} for row in X.tolist()]


def libsvm_options(problem: Problem, kind: int) -> str:
    kernel = f"-t {_TYPES[problem.kernel]} -g {problem.gamma} -r {problem.coef0} -d {problem.degree}"
    weights = " ".join(f"-w{label} {weight}" for label, weight in problem.weights.items()) if kind == 0 else ""
    return f"-s {kind} {kernel} -c {problem.C} -n 0.1 -p 0.1 {weights} -q"


def answers_of(svm: Any, theirs: Any, X: NDArray[np.float64]) -> tuple[Any, Any]:
    """Labels and values, by the function of the library: the wrapper around it does not take all types of model."""
    k = theirs.get_nr_class()
    found, buffer = [], (ctypes.c_double * max(1, k * (k - 1) // 2))()
    for row in rows_of(X, is_sparse=True):
        nodes, _ = svm.gen_svm_nodearray(row)
        found.append((svm.libsvm.svm_predict_values(theirs, nodes, buffer), buffer[:]))
    return np.array([label for label, _ in found]), np.array([values for _, values in found])


def read_libsvm(n_models: int, path: Path) -> Comparison:
    svm = import_module("libsvm.svmutil")
    found = Comparison(version("libsvm-official"), 1e-13)
    for number, problem in enumerate(problems(1, n_models)):
        kind = (0, 0, 1, 2, 3, 4)[number % 6]
        has_curves = number % 2 == 1
        y, rows = problem.labels if kind < 2 else problem.y, rows_of(problem.X, is_sparse=number % 3 == 0)
        options = libsvm_options(problem, kind) + " -b 1" * has_curves
        try:
            theirs = svm.svm_train(y.tolist(), rows, options)
        except ValueError:  # this nu cannot be had
            continue
        svm.svm_save_model(str(path), theirs)
        theirs = svm.svm_load_model(str(path))
        labels, values = answers_of(svm, theirs, problem.new)
        model = read_machine(path, n_features=problem.X.shape[1])
        found.add(model, problem.new, labels if kind < 3 else None, values)
        if has_curves and kind < 2:
            order = np.argsort(theirs.get_labels())
            new = rows_of(problem.new, is_sparse=True)
            probabilities = svm.svm_predict([0.0] * len(new), new, theirs, "-q -b 1")[2]
            found.add_error(np.abs(model.predict_proba(problem.new) - np.array(probabilities)[:, order]))
    return found


def written_libsvm(n_models: int, path: Path) -> Comparison:
    svm = import_module("libsvm.svmutil")
    found = Comparison(version("libsvm-official"), 1e-6)
    for model, X in our_models(n_models):
        write_libsvm(model, path)
        add_written(found, model, path, X, *answers_of(svm, svm.svm_load_model(str(path)), X))
    return found


def write_rows(path: Path, X: NDArray[np.float64], y: Iterable[Any]) -> None:
    """A file of data for LIBSVM's programs."""
    rows = (" ".join(f"{j}:{value!r}" for j, value in row.items()) for row in rows_of(X, is_sparse=True))
    path.write_text("".join(f"{label} {row}\n" for label, row in zip(y, rows, strict=True)))


def read_libsvm_programs(n_models: int, path: Path) -> Comparison:
    """The programs of the oldest LIBSVM in use; of every second model rows that `svm-scale` has scaled."""
    need("svm-train", "svm-predict", "svm-scale")
    folder, found = path.parent, Comparison(debian_version("libsvm-tools"), 1e-5)  # svm-scale and values: six digits
    for number, problem in enumerate(problems(11, n_models)):
        kind, scale = (0, 0, 1, 2, 3, 4)[number % 6], None
        write_rows(folder / "rows", problem.X, problem.labels if kind < 2 else problem.y)
        write_rows(folder / "new", problem.new, np.zeros(len(problem.new), int))
        if number % 2:
            limits = ["-l", "-1", "-u", "2"] + ["-y", "-1", "3"] * (kind > 2)
            scale = folder / "range"
            for action, name in (("-s", "rows"), ("-r", "new")):
                scaled = output("svm-scale", *(limits * (action == "-s")), action, str(scale), str(folder / name))
                (folder / name).write_text(scaled)
        if not run(folder, "svm-train", *libsvm_options(problem, kind).split(), "rows", "model"):
            continue
        assert run(folder, "svm-predict", "new", "model", "answers")
        answers = np.loadtxt(folder / "answers")
        model = read_machine(path, scale=scale, n_features=problem.X.shape[1])
        if kind < 3:
            found.add(model, problem.new, answers)
        elif scale is None:
            found.add(model, problem.new, None, answers)
        else:
            values = problem.y.min() + (answers + 1) * np.ptp(problem.y) / 4
            found.add(model, problem.new, None, values)
    return found


_SOLVERS = (0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 21)


def read_liblinear(n_models: int, path: Path) -> Comparison:
    linear = import_module("liblinear.liblinearutil")
    found = Comparison(version("liblinear-official"), 1e-13)
    for number, problem in enumerate(problems(3, n_models)):
        solver = _SOLVERS[number % len(_SOLVERS)]
        y = problem.y if solver in (11, 12, 13) else problem.labels
        bias = (-1, 1, 2.5)[number % 3] if solver != 21 else -1
        weights = " ".join(f"-w{label} {weight}" for label, weight in problem.weights.items()) if solver < 8 else ""
        rows = rows_of(problem.X, is_sparse=number % 3 == 0)
        options = f"-s {solver} -c {problem.C} -B {bias} {weights} -q"
        trained = linear.train(linear.problem(y.tolist(), rows, bias), linear.parameter(options))
        linear.save_model(str(path), trained)
        theirs = linear.load_model(str(path))
        X = np.vstack([problem.new, np.zeros_like(problem.new[:1])])
        new = rows_of(X, is_sparse=True)
        labels, _, values = linear.predict([0.0] * len(new), new, theirs, "-q")
        model = read_machine(path)
        found.add(model, X, None if solver in (11, 12, 13) else np.array(labels), values)
        if solver in (0, 6, 7):
            _, _, probabilities = linear.predict([0.0] * len(new), new, theirs, "-q -b 1")
            order = np.argsort(theirs.get_labels())
            found.add_error(np.abs(model.predict_proba(X) - np.array(probabilities)[:, order]))
    return found


def written_liblinear(n_models: int, path: Path) -> Comparison:
    linear = import_module("liblinear.liblinearutil")
    found = Comparison(version("liblinear-official"), 1e-13)
    for number, problem in enumerate(problems(4, n_models)):
        names = problem.labels if number % 3 else problem.names
        loss, has_bias = ("hinge", "logistic")[number % 2], number % 5 > 0
        model: Any
        if number % 4 == 0:
            model = OCASRegressor(C=problem.C, fit_intercept=has_bias).fit(problem.X, problem.y)
        else:
            model = OCASClassifier(C=problem.C, loss=loss, fit_intercept=has_bias).fit(problem.X, names)
        write_libsvm(model, path)
        new = rows_of(problem.new, is_sparse=True)
        labels, _, values = linear.predict([0.0] * len(new), new, linear.load_model(str(path)), "-q")
        add_written(found, model, path, problem.new, labels, values)
    return found


# ThunderSVM and OpenCV, which compute in float32


def read_thundersvm(n_models: int, path: Path) -> Comparison:
    """Its files, and of every second model its object."""
    thunder = import_module("thundersvm")
    found = Comparison(version("thundersvm-cpu"), 1e-5)  # rho has six digits
    for number, problem in enumerate(problems(5, n_models)):
        common = problem.kernel_parameters | {"kernel": {"poly": "polynomial"}.get(problem.kernel, problem.kernel)}
        kind = number % 6
        if kind < 3:
            trained, y = thunder.SVC(C=problem.C, **common), problem.labels
        elif kind == 3:
            trained, y = thunder.SVR(C=problem.C, **common), problem.y
        elif kind == 4:
            trained, y = thunder.OneClassSVM(nu=0.2, **common), None
        else:
            trained, y = thunder.NuSVR(nu=0.3, C=problem.C, **common), problem.y
        trained.fit(problem.X, y) if y is not None else trained.fit(problem.X)
        trained.save_to_file(str(path))
        answers = np.asarray(trained.predict(problem.new)).ravel()
        if "nan" in path.read_text() or not np.isfinite(answers).all():  # its float32 sums ended there
            continue
        model = read_machine(trained if number % 2 else path, n_features=problem.X.shape[1])
        is_regression = kind in (3, 5)
        found.add(model, problem.new, None if is_regression else answers, answers if is_regression else None)
    return found


def written_thundersvm(n_models: int, path: Path) -> Comparison:
    thunder = import_module("thundersvm")
    found = Comparison(version("thundersvm-cpu"), 1e-5)
    for model, X in our_models(n_models):
        write_libsvm(model, path)
        kind = "SVC" if is_classifier(model) else "SVR" if is_regressor(model) else "OneClassSVM"
        theirs = getattr(thunder, kind)()
        theirs.load_from_file(str(path))
        answers = np.asarray(theirs.predict(X)).ravel()
        add_written(found, model, path, X, answers, answers if kind == "SVR" else None)
    return found


def read_opencv(n_models: int, path: Path) -> Comparison:
    cv2 = import_module("cv2")
    if not hasattr(cv2, "ml"):
        raise ImportError("this wheel of OpenCV has no cv2.ml: opencv-contrib-python has it")
    found = Comparison(cv2.__version__, 2e-6)
    kernels = {name: getattr(cv2.ml, f"SVM_{name.upper()}") for name in KERNELS}
    types = (*[cv2.ml.SVM_C_SVC] * 2, cv2.ml.SVM_NU_SVC, cv2.ml.SVM_ONE_CLASS, cv2.ml.SVM_EPS_SVR, cv2.ml.SVM_NU_SVR)
    for number, problem in enumerate(problems(6, n_models)):
        path = path.with_suffix(".xml" if number % 2 else ".yml")
        kind = types[number % len(types)]
        machine = cv2.ml.SVM_create()
        settings = {"Type": kind, "Kernel": kernels[problem.kernel], "Gamma": problem.gamma, "Coef0": problem.coef0}
        settings |= {"Degree": problem.degree, "C": problem.C, "Nu": 0.1, "P": 0.1}
        has_labels = kind in (cv2.ml.SVM_C_SVC, cv2.ml.SVM_NU_SVC)
        if problem.weights and kind == cv2.ml.SVM_C_SVC:
            settings["ClassWeights"] = np.array([problem.weights[label] for label in sorted(problem.weights)])
        for name, value in settings.items():
            getattr(machine, f"set{name}")(value)
        new = problem.new.astype(np.float32)
        y = problem.labels.astype(np.int32) if has_labels else problem.y.astype(np.float32)
        try:
            machine.train(problem.X.astype(np.float32), cv2.ml.ROW_SAMPLE, y)
            machine.save(str(path))
        except cv2.error:  # this nu cannot be had, or it found no function
            continue
        theirs = cv2.ml.SVM_load(str(path))
        labels, values = theirs.predict(new)[1].ravel(), None
        model = read_machine(path)
        if kind == cv2.ml.SVM_ONE_CLASS:
            labels = np.where(labels > 0, 1, -1)
        elif not has_labels:
            labels, values = None, labels
        elif len(model.classes_) == 2:
            values = theirs.predict(new, flags=cv2.ml.StatModel_RAW_OUTPUT)[1].ravel()
            assert (values[values != 0] > 0).tolist() == (labels == model.classes_[0])[values != 0].tolist()
        found.add(model, problem.new, labels, values)
    return found


# Programs in other languages

_E1071 = """
suppressMessages(library(e1071))
writeLines(as.character(packageVersion("e1071")), "version")
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
  write.table(attr(answer, "decision.values"), name("values"), row.names = FALSE, col.names = FALSE)
}
"""
_R_TYPES = (
    *("C-classification", "C-classification", "nu-classification"),
    *("one-classification", "eps-regression", "nu-regression"),
)


def read_e1071(n_models: int, path: Path) -> Comparison:
    """Its files with their scales, and level names that begin with another one than the alphabet's."""
    folder, given, names = path.parent, list(problems(7, n_models)), {"poly": "polynomial", "rbf": "radial"}
    kinds = [_R_TYPES[number % len(_R_TYPES)] for number in range(len(given))]
    targets = [p.names if kind in _R_TYPES[:3] else p.y for p, kind in zip(given, kinds, strict=True)]
    more = [
        {"type": kind, "kernel": names.get(p.kernel, p.kernel), "scale": str(i % 4 > 0).upper()}
        for i, (p, kind) in enumerate(zip(given, kinds, strict=True))
    ]
    found = Comparison(
        run_script(folder, ("Rscript",), _E1071, given, targets, more), 1e-7
    )  # R has 17 digits, its file 8
    for i, (problem, kind) in enumerate(zip(given, kinds, strict=True), 1):
        if not (folder / f"{i}.svm").exists():  # this nu cannot be had
            continue
        levels = (folder / f"{i}.levels").read_text().splitlines() if kind in _R_TYPES[:3] else None
        scale: Any = folder / f"{i}.scale"
        if (folder / f"{i}.yscale").exists():
            scale = (scale, folder / f"{i}.yscale")
        model = read_machine(folder / f"{i}.svm", scale=scale, classes=levels, n_features=problem.X.shape[1])
        answers = np.array((folder / f"{i}.answer").read_text().splitlines())
        if "regression" in kind:
            found.add(model, problem.new, None, answers.astype(float))
        else:
            labels = answers.astype(float) if levels is None else answers
            found.add(model, problem.new, labels, np.loadtxt(folder / f"{i}.values"))
    return found


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


def run_js(folder: Path, given: list[dict[str, Any]]) -> tuple[str, Any]:
    """The version of libsvm-js, and what it answers."""
    need("node")
    where = Path(os.environ.get("NODE_PATH", "node_modules")).resolve()
    package = json.loads((where / "libsvm-js" / "package.json").read_text())
    (folder / "run.js").write_text(_JS)
    (folder / "problems.json").write_text(json.dumps(given))
    subprocess.run(["node", "run.js", str(where)], cwd=folder, check=True, capture_output=True)
    return package["version"], json.loads((folder / "answers.json").read_text())


def read_libsvm_js(n_models: int, path: Path) -> Comparison:
    given = list(problems(8, n_models))
    kinds = [(0, 0, 2, 3)[number % 4] for number in range(len(given))]
    package, answers = run_js(
        path.parent,
        [
            {"type": kind, "kernel": _TYPES[p.kernel], "gamma": p.gamma, "coef0": p.coef0, "degree": p.degree, "C": p.C}
            | {"X": p.X.tolist(), "y": (p.labels if kind == 0 else p.y).tolist(), "rows": p.new.tolist()}
            for p, kind in zip(given, kinds, strict=True)
        ],
    )
    found = Comparison(package, 1e-13)
    for problem, kind, (text, answer) in zip(given, kinds, answers, strict=True):
        path.write_text(text)
        model = read_machine(path, n_features=problem.X.shape[1])
        found.add(model, problem.new, *((None, answer) if kind == 3 else (answer,)))
    return found


def written_libsvm_js(n_models: int, path: Path) -> Comparison:
    given, models = [], list(our_models(n_models))
    for model, X in models:
        write_libsvm(model, path)
        given.append({"text": path.read_text(), "rows": X.tolist()})
    package, answers = run_js(path.parent, given)
    found = Comparison(package, 1e-6)
    for (model, X), one, answer in zip(models, given, answers, strict=True):
        path.write_text(one["text"])
        add_written(found, model, path, X, answer, answer if is_regressor(model) else None)
    return found


def read_orfeo(n_models: int, path: Path) -> Comparison:
    need("otbcli_TrainVectorClassifier")
    folder, found = path.parent, Comparison(debian_version("otb-bin"), 2e-6)
    for number, problem in enumerate(problems(10, n_models)):
        d, kind = problem.X.shape[1], ("csvc", "csvc", "nusvc")[number % 3]
        features = [f"f{j}" for j in range(d)]
        (folder / "rows.csvt").write_text(",".join(['"Real"'] * d + ['"Integer"']) + "\n")
        for name, X, y in (("rows", problem.X, problem.labels), ("new", problem.new, np.zeros(len(problem.new), int))):
            lines = [",".join(map(repr, [*row, label])) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
            (folder / f"{name}.csv").write_text("\n".join([",".join([*features, "class"]), *lines]) + "\n")
        shutil.copy(folder / "rows.csvt", folder / "new.csvt")
        options = {"k": problem.kernel, "m": kind, "c": problem.C, "nu": 0.1, "gamma": problem.gamma}
        options |= {"coef0": problem.coef0, "degree": problem.degree}
        path.unlink(missing_ok=True)
        (folder / "out.csv").unlink(missing_ok=True)
        common = ("-feat", *features, "-cfield")
        training = [word for key, value in options.items() for word in (f"-classifier.libsvm.{key}", str(value))]
        train = ("otbcli_TrainVectorClassifier", "-io.vd", "rows.csv", *common, "class", "-classifier", "libsvm")
        run(folder, *train, *training, "-io.out", path.name)
        if not path.exists():  # this nu cannot be had
            continue
        assert run(
            folder, "otbcli_VectorClassifier", "-in", "new.csv", "-model", path.name, *common, "p", "-out", "out.csv"
        )
        answers = [line.rpartition(",")[2].strip('"') for line in (folder / "out.csv").read_text().splitlines()[1:]]
        found.add(read_machine(path, n_features=d), problem.new, np.array(answers, int))
    return found


# Fitted objects


def read_objects(module: str, package: str) -> Callable[[int, Path], Comparison]:
    """Machines of scikit-learn, or of a package that has the same classes."""

    def read(n_models: int, _: Path) -> Comparison:
        svm, found = import_module(module), Comparison(version(package), 1e-13)
        for number, problem in enumerate(problems(9, n_models)):
            name = ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM")[number % 5]
            kind = getattr(svm, name, svm.SVC)  # scikit-learn-intelex has no OneClassSVM
            parameters = {"nu": 0.1} if "nu" in signature(kind).parameters else {"C": problem.C}
            is_classifying = kind in (svm.SVC, svm.NuSVC)
            y = (problem.labels if number % 3 else problem.names) if is_classifying else problem.y
            try:
                theirs = kind(**parameters, **problem.kernel_parameters).fit(problem.X, y)
            except ValueError:  # this nu cannot be had
                continue
            model, answers = read_machine(theirs), theirs.predict(problem.new)
            if "SVR" in name:
                found.add(model, problem.new, None, answers)
            else:
                has_one = not is_classifying or len(theirs.classes_) == 2
                found.add(model, problem.new, answers, theirs.decision_function(problem.new) if has_one else None)
        return found

    return read


# The same machine trained by both, where there is no file to read: C, intercept, signs


def trained(problem: Problem) -> DCSVMClassifier:
    """Our machine for a problem."""
    return DCSVMClassifier(C=problem.C, tol=1e-6, **problem.kernel_parameters).fit(problem.X, problem.labels)


_KERNLAB = """
suppressMessages(library(kernlab))
writeLines(as.character(packageVersion("kernlab")), "version")
for (i in seq_len(as.integer(commandArgs(TRUE)[1]))) {
  name <- function(suffix) sprintf("%d.%s", i, suffix)
  rows <- as.matrix(read.csv(name("rows"), header = FALSE)); new <- as.matrix(read.csv(name("new"), header = FALSE))
  y <- factor(read.csv(name("y"), header = FALSE)[, 1]); p <- as.list(read.csv(name("parameters")))
  kernel <- switch(p$kernel, rbf = rbfdot(p$gamma), linear = vanilladot(), poly = polydot(p$degree, p$gamma, p$coef0))
  model <- ksvm(rows, y, type = "C-svc", kernel = kernel, C = p$C, scaled = FALSE, tol = 1e-7)
  write.table(predict(model, new, type = "decision"), name("values"), row.names = FALSE, col.names = FALSE)
  writeLines(as.character(predict(model, new)), name("answer"))
}
"""


def alike_kernlab(n_models: int, path: Path) -> Comparison:
    given = [p for p in problems(12, n_models * 4 // 3) if p.kernel != "sigmoid"]  # not semidefinite: several optima
    found = Comparison(
        run_script(path.parent, ("Rscript",), _KERNLAB, given, [p.labels for p in given], [{}] * len(given)), 1e-4
    )
    for i, problem in enumerate(given, 1):
        labels, values = (np.loadtxt(path.parent / f"{i}.{suffix}") for suffix in ("answer", "values"))
        model = trained(problem)
        if values.ndim == 1:  # the second level
            assert np.array_equal(values > 0, labels == model.classes_[1])
        found.add(model, problem.new, labels, values)
    return found


def alike_dlib(n_models: int, _: Path) -> Comparison:
    """Two classes. Its linear trainer has C / n, and a bias that is regularised: a column of -1, without intercept."""
    dlib, found = import_module("dlib"), Comparison(version("dlib-bin"), 1e-2)
    for number, problem in enumerate(problems(13, n_models, most_classes=2)):
        is_linear, n = number % 2 == 0, len(problem.X)
        trainer = dlib.svm_c_trainer_linear() if is_linear else dlib.svm_c_trainer_radial_basis()
        trainer.epsilon = 1e-6
        trainer.set_c(problem.C * n if is_linear else problem.C)
        X, new = problem.X, problem.new
        if not is_linear:
            trainer.gamma = problem.gamma
        signs = np.where(problem.labels == problem.labels.max(), 1.0, -1.0)
        theirs = trainer.train(dlib.vectors([dlib.vector(row) for row in X]), dlib.array(signs.tolist()))
        values = np.array([theirs(dlib.vector(row)) for row in new])
        labels = np.where(values > 0, problem.labels.max(), problem.labels.min())
        if is_linear:
            X, new = (np.hstack([rows, np.full((len(rows), 1), -1.0)]) for rows in (X, new))
            model: Any = OCASClassifier(C=problem.C, fit_intercept=False, tol=1e-7).fit(X, problem.labels)
            terms = np.abs(new) @ np.abs(model.coef_).T
        else:
            model = trained(problem._replace(kernel="rbf"))
            terms = None
        found.add(model, new, labels, values, terms)
    return found


def alike_svmocas(n_models: int, path: Path) -> Comparison:
    need("svmocas")
    folder, found = path.parent, Comparison(debian_version("libocas-tools"), 1e-2)
    for number, problem in enumerate(problems(14, n_models, most_classes=2)):
        signs, has_bias = np.where(problem.labels == problem.labels.max(), 1, -1), number % 2
        write_rows(folder / "rows", problem.X, signs)
        assert run(folder, "svmocas", "-c", str(problem.C), "-b", str(has_bias), "-r", "1e-9", "rows", "model")
        weights = np.loadtxt(path)
        X, new = (
            (np.hstack([rows, np.ones((len(rows), 1))]) if has_bias else rows) for rows in (problem.X, problem.new)
        )
        values = new @ weights[: new.shape[1]]
        model = OCASClassifier(C=problem.C, fit_intercept=False, tol=1e-9).fit(X, problem.labels)
        labels = np.where(values > 0, problem.labels.max(), problem.labels.min())
        found.add(model, new, labels, values, np.abs(new) @ np.abs(model.coef_).T)
    return found


def alike_weka(n_models: int, path: Path) -> Comparison:
    """SMO without its normalisation. It prints labels.

    With its default ``-P``, 1e-12, it can stop far from the optimum: small steps near bounds are taken for rounding.
    """
    need("java")
    package = find_spec("weka")
    if package is None or package.origin is None:
        raise ImportError("weka.jar comes with python-weka-wrapper3")
    weka = ("java", "-cp", str(Path(package.origin).parent / "lib" / "weka.jar"))
    folder, found = path.parent, Comparison(re.findall(r"\d+\.\d+\.\d+", output(*weka, "weka.core.Version"))[0], 1e-3)
    for problem in problems(15, n_models):
        if problem.kernel == "sigmoid":
            problem = problem._replace(kernel="rbf")
        names, d = sorted(set(problem.labels.tolist())), problem.X.shape[1]
        head = ["@relation rows", *(f"@attribute f{j} numeric" for j in range(d))]
        head += ["@attribute class {" + ",".join(map(str, names)) + "}", "@data"]
        for name, X, y in (("rows", problem.X, problem.labels), ("new", problem.new, [names[0]] * len(problem.new))):
            lines = [",".join(map(repr, [*row, int(label)])) for row, label in zip(X.tolist(), y, strict=True)]
            (folder / f"{name}.arff").write_text("\n".join([*head, *lines]) + "\n")
        kernel = {
            "rbf": f"RBFKernel -G {problem.gamma!r}",
            "linear": "PolyKernel -E 1",
            "poly": f"PolyKernel -E {problem.degree}",
        }[problem.kernel]
        ours = problem._replace(gamma=1.0, coef0=0.0) if problem.kernel == "poly" else problem
        options = ("-C", repr(problem.C), "-N", "2", "-L", "1e-6", "-P", "1e-17")
        options += ("-K", f"weka.classifiers.functions.supportVector.{kernel}")
        files = ("-t", str(folder / "rows.arff"), "-T", str(folder / "new.arff"), "-p", "0")
        text = output(*weka, "weka.classifiers.functions.SMO", *files, *options)
        labels = re.findall(r"^ +\d+ +\S+ +\d+:(-?\d+) ", text, re.MULTILINE)
        found.add(trained(ours), problem.new, np.array(labels, int))
    return found


_OCTAVE = """
pkg load statistics
fprintf(fopen("version", "w"), "%s", ver("statistics").Version);
for i = 1:str2double(argv(){end})
  name = @(suffix) sprintf("%d.%s", i, suffix);
  rows = dlmread(name("rows"), ","); new = dlmread(name("new"), ",");
  options = strsplit(strtrim(fileread(name("parameters"))), ","){end};
  model = svmtrain(dlmread(name("y")), rows, options);
  dlmwrite(name("answer"), svmpredict(zeros(size(new, 1), 1), new, model, "-q"));
end
"""


def alike_octave(n_models: int, path: Path) -> Comparison:
    """The LIBSVM in its package statistics, with rows in the order of their labels: equal votes go to the first one.

    Labels alone: where all coefficients are at bounds, any intercept of an interval is optimal.
    """
    given = []
    for problem in problems(16, n_models):
        order = np.argsort(problem.labels, kind="stable")
        kernel = "rbf" if problem.kernel == "sigmoid" else problem.kernel  # not semidefinite: several optima
        given.append(problem._replace(X=problem.X[order], labels=problem.labels[order], kernel=kernel, weights={}))
    options = [{"options": libsvm_options(problem, 0) + " -e 1e-6"} for problem in given]
    targets = [problem.labels for problem in given]
    octave = run_script(path.parent, ("octave-cli", "--norc"), _OCTAVE, given, targets, options)
    found = Comparison(octave, 1e-4)
    for i, problem in enumerate(given, 1):
        answers = np.loadtxt(path.parent / f"{i}.answer")
        found.add(trained(problem), problem.new, answers)
    return found


CASES: dict[str, Callable[[int, Path], Comparison]] = {
    "LIBSVM, read": read_libsvm,
    "LIBSVM's programs, read": read_libsvm_programs,
    "LIBSVM, written": written_libsvm,
    "LIBLINEAR, read": read_liblinear,
    "LIBLINEAR, written": written_liblinear,
    "ThunderSVM, read": read_thundersvm,
    "ThunderSVM, written": written_thundersvm,
    "OpenCV, read": read_opencv,
    "e1071, read": read_e1071,
    "libsvm-js, read": read_libsvm_js,
    "libsvm-js, written": written_libsvm_js,
    "Orfeo ToolBox, read": read_orfeo,
    "scikit-learn, read": read_objects("sklearn.svm", "scikit-learn"),
    "scikit-learn-intelex, read": read_objects("sklearnex.svm", "scikit-learn-intelex"),
    "kernlab, trained alike": alike_kernlab,
    "dlib, trained alike": alike_dlib,
    "svmocas, trained alike": alike_svmocas,
    "Weka's SMO, trained alike": alike_weka,
    "Octave's statistics, trained alike": alike_octave,
}


def measure(case: str, n_models: int) -> dict[str, Any]:
    """The row of a case; an ImportError or a FileNotFoundError where its program is not installed."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[case](n_models, Path(folder, "model")).row(case)


def _measure(program: str, direction: str, options: Run) -> list[Row]:
    """The row of a case; none where its program is not installed."""
    case = f"{program}, {direction}"
    try:
        return [measure(case, options.models)]
    except (ImportError, FileNotFoundError) as error:
        print(f"{case}: left out, {error}", file=sys.stderr)
        return []


OTHER_PROGRAMS = Experiment(
    "other_programs",
    tuple(tuple(case.split(", ")) for case in CASES),
    ("program", "direction", "version"),
    _measure,
    seconds=120.0,
    settings={"models": 100},
    quick={"cells": [("scikit-learn", "read")], "models": 5},
)
