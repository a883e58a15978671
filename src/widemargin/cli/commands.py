"""The commands train, tune, predict, compress and info."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from inspect import signature
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from widemargin._model_files import load_any, read_summary, write_model
from widemargin._types import Model
from widemargin.cli.data import Training, features_of, make_preparation, map_of_rows, read_to_predict, read_training
from widemargin.cli.reports import damage_reported, describe, errors_naming, report, report_score, steps_of
from widemargin.cli.streams import note, open_output, print_lines, report_stream
from widemargin.datasets import Dataset
from widemargin.datasets.files import escaped, file_error, shorten

# Options that are no parameters of an estimator, and the machines that do not take them
_NOT_TAKEN = {"estimator": {"regression", "one-class"}, "test": {"one-class"}, "holdout": {"one-class"}}


def train(args: Namespace) -> int:
    """Read, fit, save, and report: `widemargin train`."""
    # The output is opened first: a folder that does not exist is found before hours of training.
    may_stream = args.estimator == "ocas" and args.task == "classification"
    maps: Any = TemporaryDirectory(ignore_cleanup_errors=True) if may_stream else nullcontext()
    with open_output(args.model, force=args.force) as file, maps as folder:
        training = _split(read_training(args, folder), args)
        start = time.perf_counter()
        model = _fit(args, training, maintenance="merge" if args.kernel in (None, "rbf") else "projection")
        seconds = time.perf_counter() - start
        write_model(model, file, describe(model), asdict(training.features))
    report(args, model, training.data, seconds, training.whole and len(training.whole[2]))
    return 0


def tune(args: Namespace) -> int:
    """Choose parameters by cross-validation, train with the best, save, and report: `widemargin tune`."""
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.pipeline import make_pipeline

    folds = KFold if args.task == "regression" else StratifiedKFold
    with open_output(args.model, force=args.force) as file:
        training = _split(read_training(args), args)
        start = time.perf_counter()
        searched = _fit(args, training, cv=folds(args.folds, shuffle=True, random_state=args.random_state))
        seconds, search = time.perf_counter() - start, steps_of(searched)[-1]
        if np.isnan(search.best_score_) and not vars(search).get("history_"):
            limit = "" if args.max_time is None else f": raise --max-time (now {args.max_time:g} seconds)"
            raise ValueError(f"the search was stopped before it had scored anything, so there is no model{limit}")
        steps = [*steps_of(searched)[:-1], *steps_of(search.best_estimator_)]
        model = make_pipeline(*steps) if len(steps) > 1 else steps[0]
        write_model(model, file, describe(model), asdict(training.features))
    score = f"{search.best_score_:.4f} (mean of held-out rows; {len(search.cv_results_['params'])} cells)"
    report(args, model, training.data, seconds, score=score)
    return 0


def predict(args: Namespace) -> int:
    """Write a label, or decision values, for every sample: `widemargin predict`."""
    with open_output(args.out, force=args.force) as file:
        model = _load(args)
        if not hasattr(model, "predict"):
            raise file_error(args.model, f"holds a {type(model).__name__}, which predicts nothing")
        if args.decision and not hasattr(model, "decision_function"):
            reason = f"a {type(steps_of(model)[-1]).__name__} has no decision values: omit --decision"
            raise file_error(args.model, reason)
        data = read_to_predict(model, args)
        with damage_reported(args.model), errors_naming(args.data):
            values = model.decision_function(data.X) if args.decision else model.predict(data.X)
            rows = values if values.ndim == 2 else values[:, None]
        # a line for each row: its values, separated by tabs, with control characters as escape sequences
        file.writelines("\t".join(escaped(str(value)) for value in row).encode() + b"\n" for row in rows.tolist())
    if not args.decision:
        with damage_reported(args.model):
            report_score(model, data, values)
    return 0


def compress(args: Namespace) -> int:
    """Compress a saved kernel machine, save the result, and print a report: `widemargin compress`."""
    from widemargin import compress as compress_model
    from widemargin import to_onnx
    from widemargin.estimators._wrapped import machines_in

    second = nullcontext() if args.onnx is None else open_output(args.onnx, force=args.force)
    with open_output(args.out, force=args.force) as file, second as graph:
        model = _load(args)
        X = None if args.data is None else read_to_predict(model, args).X
        with damage_reported(args.model), errors_naming(args.model):
            small = compress_model(**parameters(compress_model, args, model=model, X=X))
            if graph is not None:
                graph.write(to_onnx(small).SerializeToString())
        write_model(small, file, describe(small), asdict(features_of(model, args.model)))
    for machine in machines_in(small):
        if hasattr(machine, "report_"):
            print(machine.report_, file=report_stream(args.out))
    return 0


def info(args: Namespace) -> int:
    """Describe a saved model: `widemargin info`."""
    description = read_summary(args.model)
    if not description:
        model = load_any(args.model)
        with damage_reported(args.model):
            description = describe(model)
    size = f"{os.path.getsize(args.model):,} bytes"
    print_lines({"model": escaped(args.model), **dict(description), "file": size}, sys.stdout)
    return 0


def _load(args: Namespace) -> Model:
    """The model, of ours or of another program."""
    return load_any(args.model, scale=args.scale, classes=args.classes, n_features=args.n_features)


def _split(training: Training, args: Namespace) -> Training:
    """The data; with `--holdout`, split at random into training and test data. A class of one row is trained on."""
    data, features, weights, whole = training
    if args.holdout is None or data.y is None:
        return training
    if whole is not None:
        problem = "it is streamed, as it exceeds a third of memory_budget"
        raise file_error(args.data, f"{problem}: give --test in place of --holdout")
    from sklearn.model_selection import train_test_split
    from sklearn.utils import _safe_indexing

    rows, single, y = np.arange(len(data.y)), np.empty(0, dtype=int), data.y
    if args.task == "classification":
        classes, firsts, counts = np.unique(y, return_index=True, return_counts=True)
        single = firsts[counts == 1]
        if len(single):
            names = shorten(map(repr, classes[counts == 1].tolist()))
            note(f"classes of one row, which are trained on and not held out: {names}")
            rows = np.setdiff1d(rows, single)
        n_held, n_classes = int(np.ceil(args.holdout * len(rows))), len(classes) - len(single)
        if min(n_held, len(rows) - n_held) < n_classes:
            reason = f"--holdout {args.holdout} holds out {n_held} of {len(rows)} rows"
            raise file_error(args.data, f"{reason}, and of {n_classes} classes both parts need one: give --test")
    with errors_naming(args.data):
        stratify = y[rows] if args.task == "classification" else None
        parts = train_test_split(rows, test_size=args.holdout, random_state=args.random_state, stratify=stratify)
    own, held = np.concatenate([parts[0], single]), parts[1]
    X, X_test = _safe_indexing(data.X, own), _safe_indexing(data.X, held)
    return Training(Dataset(X, y[own], X_test, y[held]), features, None if weights is None else weights[own])


def _fit(args: Namespace, training: Training, **others: Any) -> Model:
    """The machine with what comes before it, fitted; the options and `others` are parameters of the machine."""
    from sklearn.pipeline import make_pipeline

    import widemargin

    data, features, weights, whole = training
    steps, machine = make_preparation(args, features, data.X), getattr(widemargin, args.machines[_machine(args)])
    model = make_pipeline(*steps, machine(**parameters(machine, args, **others)))
    weighted = {} if weights is None else {f"{model.steps[-1][0]}__sample_weight": weights}
    with errors_naming(args.data):
        if whole is None:
            model.fit(data.X, data.y, **weighted)
        else:
            model[-1].fit(map_of_rows(args, training, steps), whole[2], sample_weight=weights)
    return model if steps else model[-1]


# Options and the machines that take them ------------------------------------------------------------------------------


def check_applicable(args: Namespace) -> None:
    """End with a usage error that names the first option which was given and which the machine does not take.

    An option that some machines have as a parameter is for these alone; one given with its default value passes.
    """
    import widemargin

    machine = _machine(args)
    having = {name: signature(getattr(widemargin, kind)).parameters for name, kind in args.machines.items()}
    for action in args.command._actions:
        if not action.option_strings or getattr(args, action.dest, None) in (None, action.default):
            continue
        takers = {name for name in having if action.dest in having[name]} or set(having)
        takers -= _NOT_TAKEN.get(action.dest, set())
        if machine not in takers:
            which = f"--{'estimator' if args.task == 'classification' else 'task'} {machine}"
            names = ", ".join(sorted(takers))
            args.command.error(f"{action.option_strings[0]} does not apply to {which}; it is for {names}")


def parameters(function: Callable[..., Any], args: Namespace, **others: Any) -> dict[str, Any]:
    """Keyword arguments of the function: the options that are not None and `others` that it has as parameters."""
    given = {name: value for name, value in vars(args).items() if value is not None}
    given |= {"verbose": int(sys.stderr.isatty() and not args.quiet), **others}
    return {name: given[name] for name in signature(function).parameters if name in given}


def _machine(args: Namespace) -> str:
    """The key in `args.machines` of what is to be trained: that of --estimator, or of --task."""
    return str(args.estimator if args.task == "classification" else args.task)
