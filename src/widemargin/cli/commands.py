"""The commands train, tune, predict, compress and info."""

from __future__ import annotations

import math
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, BinaryIO, TextIO

import numpy as np

from widemargin._config import config_context
from widemargin.cli.inputs import check_has_columns, in_order_of, label_column, reader_of
from widemargin.cli.machines import make_estimator, parameters
from widemargin.cli.model_files import Summary, load_model, read_feature_names, read_summary, save_model
from widemargin.cli.outputs import open_output
from widemargin.datasets import Dataset, load_csv, load_svmlight
from widemargin.datasets.files import file_error
from widemargin.datasets.tables import line_of, read_columns

_MOST_SCORED_ROWS = 10_000  # of the training data, for the report


def train(args: Namespace) -> int:
    """Read, fit, save, and report: `widemargin train`."""
    # The output is opened first: a folder that does not exist is found before hours of training.
    with open_output(args.model, force=args.force) as file:
        data, names = _read_training(args)
        data = _split(data, args)
        model = _make_model(args, sparse=not isinstance(data.X, np.ndarray))
        start = time.perf_counter()
        with _errors_naming(args.data):
            model.fit(data.X, data.y)
        seconds = time.perf_counter() - start
        save_model(model, file, _describe(model), names)
    _report(args, model, data, seconds)
    return 0


def tune(args: Namespace) -> int:
    """Choose parameters by cross-validation, train with the best, save, and report: `widemargin tune`."""
    from sklearn.pipeline import make_pipeline

    with open_output(args.model, force=args.force) as file:
        data, names = _read_training(args)
        data = _split(data, args)
        search, X = _make_search(args), data.X
        scaler = None if args.scale == "none" else _make_scaler(args.scale, sparse=not isinstance(X, np.ndarray))
        start = time.perf_counter()
        with _errors_naming(args.data):
            search.fit(X if scaler is None else scaler.fit_transform(X), data.y)
        seconds = time.perf_counter() - start
        model = search.best_estimator_ if scaler is None else make_pipeline(scaler, search.best_estimator_)
        save_model(model, file, _describe(model), names)
    for name, value in _chosen_parameters(search).items():
        print(f"{name:16} {value:.6g}", file=_report_stream(args.model))
    n_folds, n_seen = len(search.scores_), int(np.count_nonzero(~np.isnan(search.scores_)))
    score = f"{search.best_score_:.4f} (mean of {n_folds} folds; {n_seen} fits on whole training folds)"
    print(f"{'score':16} {score}", file=_report_stream(args.model))
    _report(args, model, data, seconds)
    return 0


def predict(args: Namespace) -> int:
    """Write a label, or decision values, for every sample: `widemargin predict`."""
    with open_output(args.out, force=args.force) as file:
        model = load_model(args.model)
        data = _read_to_predict(model, args)
        with _damage_reported(args.model), _errors_naming(args.data):
            values = _decision_function(model, args)(data.X) if args.decision else model.predict(data.X)
            rows = values if values.ndim == 2 else values[:, None]
        file.writelines("\t".join(map(str, row)).encode() + b"\n" for row in rows.tolist())
    if not args.decision:
        with _damage_reported(args.model):
            _report_score(model, data, values)
    return 0


def compress(args: Namespace) -> int:
    """Compress a saved kernel machine, save the result, and print a report: `widemargin compress`."""
    from widemargin import compress as compress_model
    from widemargin import to_onnx
    from widemargin.estimators._wrapped import machines_in

    with open_output(args.out, force=args.force) as file, _open_optional(args) as graph:
        model = load_model(args.model)
        X = None if args.data is None else _read_to_predict(model, args).X
        with _damage_reported(args.model), _errors_naming(args.model):
            small = compress_model(**parameters(compress_model, args, model=model, X=X))
            if graph is not None:
                graph.write(to_onnx(small).SerializeToString())
        save_model(small, file, _describe(small), read_feature_names(args.model, model))
    for machine in machines_in(small):
        if hasattr(machine, "report_"):
            print(machine.report_, file=_report_stream(args.out))
    return 0


def info(args: Namespace) -> int:
    """Describe a saved model: `widemargin info`."""
    description = read_summary(args.model) or _describe_file(args.model)
    from rich.console import Console
    from rich.table import Table

    # Without markup: file names and class names may have square brackets.
    table = Table(title=args.model, show_header=False, title_justify="left")
    for name, value in [*description, ("file", f"{os.path.getsize(args.model):,} bytes")]:
        table.add_row(name, value)
    Console(markup=False, highlight=False).print(table)
    return 0


# Reading ----------------------------------------------------------------------------------------------------------


def _options(reader: Callable[..., Dataset], args: Namespace) -> dict[str, Any]:
    """The arguments of a reader, from the options of the command line."""
    dtype = np.float64 if args.dtype == "float64" else np.float32
    if reader is load_svmlight:
        return {"zero_based": args.zero_based, "dtype": dtype}
    if reader is load_csv:
        return {"target": -1 if args.target is None else args.target, "dtype": dtype}
    return {"target": "y" if args.target is None else str(args.target)}


def _read(path: str, args: Namespace, **more: Any) -> Dataset:
    reader, budget = reader_of(path, args), getattr(args, "memory_budget", None)
    with config_context(**({} if budget is None else {"memory_budget": budget})):
        return reader(path, **{**_options(reader, args), **more})


def _read_training(args: Namespace) -> tuple[Dataset, list[str] | None]:
    """The training data with those of `--test`, and the names of the features, None where they have none."""
    is_table = reader_of(args.data, args) is load_csv
    target = (None if args.task == "one-class" else -1) if args.target is None else args.target
    names = read_columns(args.data, target=target).feature_names if is_table else None
    if args.task == "one-class":
        return Dataset(_read(args.data, args, **({"target": target} if is_table else {})).X, None), names
    data = _read(args.data, args)
    if data.y is None:
        raise file_error(args.data, "it has no labels, which training needs")
    if args.task == "regression" and data.y.dtype.kind not in "iuf":
        raise file_error(args.data, f"its labels must be numbers for --task regression, got {data.y[0]!r}")
    if args.task == "classification":
        _note_rare_classes(data.y, args, target if is_table else None)
    if args.test is None:
        return data, names
    owner = f"{args.data} has"
    if reader_of(args.test, args) is load_csv:
        check_has_columns(args.test, names, owner)
    more = {"n_features": data.X.shape[1]} if reader_of(args.test, args) is load_svmlight else {}
    test = _read(args.test, args, **more)
    if test.X.shape[1] != data.X.shape[1]:
        raise file_error(args.test, f"{test.X.shape[1]} features, but {args.data} has {data.X.shape[1]}")
    if test.y is None:
        raise file_error(args.test, "it has no labels, which the accuracy needs")
    if reader_of(args.test, args) is load_csv:
        test = in_order_of(test, read_columns(args.test, target=target), names, args.test, owner)
    return Dataset(data.X, data.y, test.X, test.y), names


def _note_rare_classes(y: Any, args: Namespace, target: int | str | None) -> None:
    """Say on stderr which class has a single row, and in which line of a table."""
    classes, firsts, counts = np.unique(y, return_index=True, return_counts=True)
    rare = np.flatnonzero(counts == 1)
    if len(rare) == 1:
        row = int(firsts[rare[0]])
        where = "" if target is None else f" (line {line_of(args.data, row, target=target)})"
        print(f"widemargin: note: class {y[row].item()!r} has 1 row{where}: a typo?", file=sys.stderr)
    elif len(rare):
        print(f"widemargin: note: {len(rare)} classes have 1 row each: {_shorten(classes[rare])}", file=sys.stderr)


def _split(data: Dataset, args: Namespace) -> Dataset:
    """The data; with `--holdout`, split at random into training and test data."""
    if args.holdout is None or data.y is None:
        return data
    from sklearn.model_selection import train_test_split

    with _errors_naming(args.data):
        X, X_test, y, y_test = train_test_split(
            data.X,
            data.y,
            test_size=args.holdout,
            random_state=args.random_state,
            stratify=data.y if args.task == "classification" else None,
        )
    return Dataset(X, y, X_test, y_test)


def _read_to_predict(model: Any, args: Namespace) -> Dataset:
    """The samples to predict, with the model's features in its order, and their labels if there are any."""
    reader, n_features = reader_of(args.data, args), model.n_features_in_
    names, target = read_feature_names(args.model, model), args.target
    owner = "the model was trained with"
    if reader is load_csv:
        check_has_columns(args.data, names, owner)
        target = label_column(args.data, names, n_features) if target is None else target
    more = {load_svmlight: {"n_features": n_features}, load_csv: {"target": target}}
    data = _read(args.data, args, **more.get(reader, {}))
    if data.X.shape[1] != n_features:
        raise file_error(args.data, f"{data.X.shape[1]} features, but the model was trained with {n_features}")
    if reader is not load_csv:
        return data
    return in_order_of(data, read_columns(args.data, target=target), names, args.data, owner)


# Models -----------------------------------------------------------------------------------------------------------


def _make_model(args: Namespace, *, sparse: bool) -> Any:
    from sklearn.pipeline import make_pipeline

    machine = make_estimator(args, maintenance="merge" if args.kernel == "rbf" else "projection")
    return machine if args.scale == "none" else make_pipeline(_make_scaler(args.scale, sparse), machine)


def _make_search(args: Namespace) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold

    folds = KFold if args.task == "regression" else StratifiedKFold
    return make_estimator(args, cv=folds(args.folds, shuffle=True, random_state=args.random_state))


def _make_scaler(name: str, sparse: bool) -> Any:
    """A scikit-learn scaler; for sparse data one that maps 0 to 0."""
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if name == "standard":
        return StandardScaler(with_mean=not sparse)
    return MaxAbsScaler() if sparse else MinMaxScaler()


def _decision_function(model: Any, args: Namespace) -> Callable[[Any], Any]:
    if not hasattr(model, "decision_function"):
        raise file_error(args.model, f"a {type(_last_step(model)).__name__} has no decision values: omit --decision")
    decide: Callable[[Any], Any] = model.decision_function
    return decide


def _last_step(model: Any) -> Any:
    return model[-1] if hasattr(model, "steps") else model


# Reports ----------------------------------------------------------------------------------------------------------


def _report(args: Namespace, model: Any, data: Dataset, seconds: float) -> None:
    """Print what was trained on what: a line for each number, with its name. The functions below return such lines."""
    machine, n_samples = _last_step(model), data.X.shape[0]
    classes = f", {len(machine.classes_)} classes" if hasattr(machine, "classes_") else ""
    lines = {
        "samples": f"{n_samples} ({data.X.shape[1]} features{classes})",
        "seconds": f"{seconds:.2f}",
        **_support(machine, n_samples),
        **_prediction(machine),
        "duality gap": _gap(machine) if hasattr(machine, "dual_gap_") else "none: bsgd has no lower bound",
        "converged": _yes_no(machine.converged_),
        **_quality(args, model, data),
        "model": args.model,
    }
    for name, text in lines.items():
        print(f"{name:16} {text}", file=_report_stream(args.model))


def _support(machine: Any, n_samples: int) -> dict[str, str]:
    if not hasattr(machine, "support_vectors_"):
        return {}
    n_support = machine.support_vectors_.shape[0]
    return {"support vectors": f"{n_support} ({n_support / n_samples:.1%})"}


def _prediction(machine: Any) -> dict[str, str]:
    if not hasattr(machine, "predictor_"):
        return {}
    return {"prediction": f"{machine.predictor_.n_operations:,.1f} inner products per sample"}


def _quality(args: Namespace, model: Any, data: Dataset) -> dict[str, str]:
    """Accuracy of a classifier, R2 of a regressor, the share of the training samples outside a one-class machine."""
    if args.task == "one-class":
        outside = float(np.mean(model.predict(data.X[:_MOST_SCORED_ROWS]) < 0))
        return {"outside": f"{outside:.4f} of the training samples"}
    where, score = _score(args, model, data)
    return {"accuracy" if args.task == "classification" else "R2": f"{score:.4f} ({where})"}


def _score(args: Namespace, model: Any, data: Dataset) -> tuple[str, float]:
    """The rows that the model is scored on, in words, and its score: of test data if there are any."""
    if data.X_test is not None and data.y_test is not None:
        where = args.test or ("held out" if args.holdout else "test split of the file")
        with _errors_naming(where):
            return f"{data.X_test.shape[0]} samples, {where}", float(model.score(data.X_test, data.y_test))
    rows = slice(_MOST_SCORED_ROWS)
    assert data.y is not None
    labels = data.y[rows]
    where = f"{len(labels)} training samples; use --holdout or --test for other ones"
    return where, float(model.score(data.X[rows], labels))


def _report_score(model: Any, data: Dataset, predicted: Any) -> None:
    """Print the accuracy of predicted labels, or R2 of predicted numbers, if the file has any to compare with."""
    from sklearn.base import is_regressor
    from sklearn.metrics import r2_score

    if data.y is not None and hasattr(model, "classes_"):
        print(_agreement(data.y, predicted, model.classes_), file=sys.stderr)
    elif data.y is not None and is_regressor(model) and data.y.dtype.kind in "iuf":
        print(f"R2 {r2_score(data.y, predicted):.4f}", file=sys.stderr)


def _agreement(y: Any, predicted: Any, classes: Any) -> str:
    """The accuracy in words, with the number of rows whose label is no class of the model."""
    if (y.dtype.kind in "iufb") != (classes.dtype.kind in "iufb"):  # one label that is no number makes all of them text
        y, predicted, classes = map(_as_text, (y, predicted, classes))
    unknown = np.unique(y[~np.isin(y, classes)])
    n_unknown = int(np.isin(y, unknown).sum())
    if n_unknown == len(y):
        return f"no accuracy: no label of the data is a class of the model ({_shorten(classes)})"
    right = int((y == predicted).sum())
    text = f"accuracy {right / len(y):.4f} ({right} of {len(y)} labels agree"
    if n_unknown:
        rows = "1 row has a label" if n_unknown == 1 else f"{n_unknown} rows have labels"
        text += f"; {rows} that the model does not know: {_shorten(map(repr, unknown.tolist()))}"
    return f"{text})"


def _as_text(labels: Any) -> Any:
    """Labels as text, equal numbers alike: "1" for 1, "1" and "1.0"."""
    texts, places = np.unique(labels.astype(str), return_inverse=True)
    return np.array([_plain(text) for text in texts.tolist()])[places]


def _plain(text: str) -> str:
    try:
        return text if "_" in text else f"{float(text):.15g}"
    except ValueError:
        return text


def _describe_file(path: str) -> Summary:
    model = load_model(path)
    with _damage_reported(path):
        return _describe(model)


def _describe(model: Any) -> Summary:
    from widemargin.estimators._validation import WITHOUT_GAMMA

    machine = _last_step(model)
    parameters = machine.get_params() | _chosen_parameters(machine)
    rows = [("type", type(machine).__name__)]
    if machine is not model:
        rows.append(("scaling", ", ".join(type(step).__name__ for step in model[:-1])))
    names = ("kernel", "C", "nu", "epsilon", "gamma", "tol")
    if parameters.get("kernel") in WITHOUT_GAMMA:
        parameters.pop("gamma", None)
    rows += [(name, _parameter(machine, name, parameters[name])) for name in names if name in parameters]
    rows.append(("features", str(model.n_features_in_)))
    if hasattr(machine, "classes_"):
        rows.append(("classes", _shorten(machine.classes_)))
    if hasattr(machine, "n_support_"):
        total = machine.support_vectors_.shape[0] or len(machine.support_)  # precomputed: indices only
        of_classes = f" ({_shorten(machine.n_support_)} by class)" if len(machine.n_support_) > 1 else ""
        rows.append(("support vectors", f"{total}{of_classes}"))
    rows += list(_prediction(machine).items())
    if hasattr(machine, "report_"):
        rows.append(("compressed", str(machine.report_)))
    if hasattr(machine, "dual_gap_"):
        rows += [("objective", f"{machine.objective_:.10g}"), ("duality gap", _gap(machine))]
        rows += [("converged", _yes_no(machine.converged_)), ("iterations", str(machine.n_iter_))]
    return rows


def _chosen_parameters(machine: Any) -> dict[str, Any]:
    """The values of C, gamma and epsilon that a search has chosen; empty for an estimator that is no search."""
    return {name: getattr(machine, f"{name}_") for name in ("C", "gamma", "epsilon") if hasattr(machine, f"{name}_")}


def _parameter(machine: Any, name: str, value: Any) -> str:
    """A parameter as `tune` prints it; gamma also as a number, where it is a rule."""
    if isinstance(value, str):
        number = getattr(machine, "_gamma", None) if name == "gamma" else None
        return value if number is None else f"{value} ({number:.3g})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _gap(machine: Any) -> str:
    if math.isnan(machine.dual_gap_):
        return "unknown: the kernel is not positive semidefinite"
    relative = f" ({machine.dual_gap_ / abs(machine.objective_):.1e} of the objective)" if machine.objective_ else ""
    return f"{machine.dual_gap_:.3g}{relative}"


def _yes_no(value: Any) -> str:
    return "yes" if value else "no"


def _shorten(values: Any, most: int = 12) -> str:
    texts = [str(value) for value in list(values)]
    return ", ".join(texts[:most]) + (f", ... ({len(texts)} in all)" if len(texts) > most else "")


# Outputs ----------------------------------------------------------------------------------------------------------


def _open_optional(args: Namespace) -> AbstractContextManager[BinaryIO | None]:
    return nullcontext() if args.onnx is None else open_output(args.onnx, force=args.force)


def _report_stream(path: str) -> TextIO:
    """The stream for reports: standard error if the model goes to standard output, else standard output."""
    return sys.stderr if path == "-" else sys.stdout


@contextmanager
def _damage_reported(path: str) -> Iterator[None]:
    """Raise errors other than ValueError, OSError and MemoryError again as ValueErrors of a damaged model file.

    scikit-learn's estimators don't check the state that they are loaded with.
    """
    try:
        yield
    except (ValueError, OSError, MemoryError):
        raise
    except Exception as error:
        raise file_error(path, f"a damaged model ({type(error).__name__}: {error})") from error


@contextmanager
def _errors_naming(path: str) -> Iterator[None]:
    """Put the file's name before the message of a ValueError about its content."""
    try:
        yield
    except ValueError as error:
        raise file_error(path, str(error)) from error
