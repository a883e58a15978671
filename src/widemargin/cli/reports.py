"""What was trained on what, how good it is, what is in a model file; labels compared with the classes of a model."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import numpy as np

from widemargin._model_files import Summary
from widemargin.cli.streams import note, shown
from widemargin.datasets import Dataset
from widemargin.datasets.files import escaped, file_error, is_number

_SCORED_ROWS = 10_000  # of the training data, at most, drawn for the report


def report(args: Namespace, model: Any, data: Dataset, seconds: float, n_samples: int | None = None) -> None:
    """Print what was trained on what. The functions below return lines of the report, by their names."""
    machine, n_samples = last_step(model), n_samples or data.X.shape[0]
    classes = f", {len(machine.classes_)} classes" if hasattr(machine, "classes_") else ""
    n_support = machine.support_vectors_.shape[0] if hasattr(machine, "support_vectors_") else None
    lines = {
        "samples": f"{n_samples} ({data.X.shape[1]} features{classes})",
        "seconds": f"{seconds:.2f}",
        **({} if n_support is None else {"support vectors": f"{n_support} ({n_support / n_samples:.1%})"}),
        **_prediction(machine),
        "duality gap": _gap(machine) if hasattr(machine, "dual_gap_") else "none: bsgd has no lower bound",
        "converged": "yes" if machine.converged_ else "no",
        **_quality(args, model, data),
        "model": args.model,
    }
    print_lines(args, lines)


def print_lines(args: Namespace, lines: dict[str, str]) -> None:
    """Print a line for each number, with its name."""
    for name, text in lines.items():
        print(f"{name:16} {shown(text)}", file=report_stream(args.model))


def _prediction(machine: Any) -> dict[str, str]:
    if not hasattr(machine, "predictor_"):
        return {}
    return {"prediction": f"{machine.predictor_.n_operations:,.1f} inner products per sample"}


def _quality(args: Namespace, model: Any, data: Dataset) -> dict[str, str]:
    """Accuracy of a classifier, R2 of a regressor, the share of the training samples outside a one-class model."""
    from sklearn.utils import _safe_indexing

    y: Any = data.y_test
    if data.X_test is not None and y is not None:
        name = args.test or ("held out" if args.holdout else "test split of the file")
        X, where = data.X_test, f"{data.X_test.shape[0]} samples, {name}"
    else:
        name, n = args.data, data.X.shape[0]
        rows = np.sort(np.random.default_rng(0).choice(n, min(n, _SCORED_ROWS), replace=False))
        X, y = _safe_indexing(data.X, rows), None if data.y is None else data.y[rows]
        where = f"{len(rows)} training samples; use --holdout or --test for other ones"
    with errors_naming(name):
        if args.task == "one-class":
            return {"outside": f"{np.mean(model.predict(X) < 0):.4f} of the training samples"}
        score = model.score(X, y) if args.task == "regression" else accuracy(y, model.predict(X))
    return {"accuracy" if args.task == "classification" else "R2": f"{score:.4f} ({where})"}


def report_score(model: Any, data: Dataset, predicted: Any) -> None:
    """Print the accuracy of predicted labels, or R2 of predicted numbers, if the file has any to compare with."""
    from sklearn.base import is_regressor
    from sklearn.metrics import r2_score

    if data.y is None:
        return
    has_label = present_labels(data.y)
    y, predicted = data.y[has_label], predicted[has_label]
    if hasattr(model, "classes_"):
        print(agreement(y, predicted, model.classes_), file=sys.stderr)
    elif is_regressor(model) and y.dtype.kind in "iuf":
        print(f"R2 {r2_score(y, predicted):.4f}", file=sys.stderr)


def describe(model: Any) -> Summary:
    """Names and values that describe a model, for its file and for `widemargin info`."""
    from widemargin.kernels.functions import WITHOUT_GAMMA

    machine = last_step(model)
    parameters = machine.get_params() | chosen_parameters(machine)
    rows = [("type", type(machine).__name__)]
    if machine is not model:
        rows.append(("preparation", ", ".join(names_of(steps_of(model)[:-1]))))
    names = ("kernel", "C", "nu", "epsilon", "gamma", "tol")
    if parameters.get("kernel") in WITHOUT_GAMMA:
        parameters.pop("gamma", None)
    rows += [(name, _parameter(machine, name, parameters[name])) for name in names if name in parameters]
    rows.append(("features", str(getattr(model, "n_features_in_", "text"))))
    if hasattr(machine, "classes_"):
        rows.append(("classes", shorten(machine.classes_)))
    if hasattr(machine, "n_support_"):
        total = machine.support_vectors_.shape[0] or len(machine.support_)  # precomputed: indices only
        of_classes = f" ({shorten(machine.n_support_)} by class)" if len(machine.n_support_) > 1 else ""
        rows.append(("support vectors", f"{total}{of_classes}"))
    if level := getattr(machine, "early_level_", 0):
        rows.append(("early prediction", f"level {level}, {machine.levels_[-1]['n_clusters']} clusters"))
    rows += list(_prediction(machine).items())
    if hasattr(machine, "report_"):
        rows.append(("compressed", str(machine.report_)))
    if hasattr(machine, "dual_gap_"):
        rows += [("objective", f"{machine.objective_:.10g}"), ("duality gap", _gap(machine))]
        rows += [("converged", "yes" if machine.converged_ else "no"), ("iterations", str(machine.n_iter_))]
    return rows


def chosen_parameters(machine: Any) -> dict[str, Any]:
    """The kernel, C, gamma and epsilon that a search has chosen; empty for an estimator that is no search."""
    names = ("kernel", "C", "gamma", "epsilon")
    return {name: getattr(machine, f"{name}_") for name in names if hasattr(machine, f"{name}_")}


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


def names_of(steps: Any) -> list[str]:
    """The names of the transformers among steps, and in their branches."""
    found: list[str] = []
    for step in steps:
        if hasattr(step, "transformers"):
            found += names_of(branch for _, branch, _ in step.transformers)
        elif hasattr(step, "steps"):
            found += names_of(steps_of(step))
        elif not isinstance(step, str):
            found.append(type(step).__name__)
    return found


def steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline; another model is its own only one."""
    return [step for _, step in model.steps] if hasattr(model, "steps") else [model]


def last_step(model: Any) -> Any:
    """The machine of a pipeline; another model itself."""
    return steps_of(model)[-1]


def report_stream(path: str) -> TextIO:
    """The stream for reports: standard error if the model goes to standard output, else standard output."""
    return sys.stderr if path == "-" else sys.stdout


@contextmanager
def damage_reported(path: str) -> Iterator[None]:
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
def errors_naming(path: str) -> Iterator[None]:
    """Put the file's name before the message of a ValueError about its content."""
    try:
        yield
    except ValueError as error:
        raise file_error(path, str(error)) from error


# Labels ---------------------------------------------------------------------------------------------------------------


def as_numbers(path: str, y: Any) -> Any:
    """Labels for a regression. Raises a ValueError that names the file and the first that is no number."""
    try:
        return y if y.dtype.kind in "iuf" else y.astype(np.float64)
    except ValueError:
        wrong = next(label for label in y.tolist() if not is_number(str(label)))
        raise file_error(path, f"its labels must be numbers for --task regression, got {wrong!r}") from None


def check_classes(path: str, y: Any) -> None:
    """Raise a ValueError if labels are numbers with decimals, which are no classes."""
    decimals = y[y != np.rint(y)] if y.dtype.kind == "f" and np.isfinite(y).all() else y[:0]
    if len(decimals):
        first = decimals[0].item()
        raise file_error(path, f"its labels are numbers, not classes ({first!r}): did you mean --task regression?")


def note_rare_classes(y: Any, source: Any) -> None:
    """Say on stderr which class has a single row, in which line of a table, and if many classes may be quantities."""
    classes, firsts, counts = np.unique(y, return_index=True, return_counts=True)
    rare, are_numbers = np.flatnonzero(counts == 1), y.dtype.kind in "iuf"
    if len(rare) == 1:
        line = source.place_of(int(firsts[rare[0]]))[1] if source else None
        note(f"class {classes[rare[0]].item()!r} has 1 row{f' (line {line})' if line else ''}: a typo?")
    elif len(rare):
        # classes of one row / rows: beyond, labels are rather numbers to be predicted
        remedy = ": did you mean --task regression?" if are_numbers and len(rare) > 0.5 * len(y) else ""
        note(f"{len(rare)} classes have 1 row each: {shorten(classes[rare])}{remedy}")
    elif len(classes) > 30 and are_numbers:
        note(f"{len(classes)} classes, all whole numbers: if these are quantities, add --task regression")


def check_test_labels(path: str, y_test: Any, y: Any) -> None:
    """Raise a ValueError if no test label is a class of the training data; note on stderr if only some are none.

    Labels that end in a full stop where the training data's do not are an error, too.
    """
    found, classes = alike(np.unique(y_test), np.unique(y))
    unknown = found[~np.isin(found, classes)]
    if not len(unknown):
        return
    names = shorten(map(repr, unknown.tolist()))
    are_dotted = any(label[-1:] == "." and label[:-1] in set(map(str, classes)) for label in map(str, unknown))
    if len(unknown) < len(found) and not are_dotted:
        note(f"{path}: labels that the training data do not have count as errors: {names}")
        return
    reason = f"labels that the training data do not have: {names}; their classes are {shorten(classes)}"
    remedy = "; in this file alone they end in a full stop: remove it" if are_dotted else ""
    raise file_error(path, reason + remedy)


def present_labels(y: Any) -> Any:
    """Which labels (n,) are not missing: neither NaN nor an empty text."""
    if y.dtype.kind == "f":
        return ~np.isnan(y)
    return y != "" if y.dtype.kind == "U" else np.ones(len(y), dtype=bool)


def accuracy(y: Any, predicted: Any) -> float:
    """The share of equal labels; 1, "1" and "1.0" count as equal."""
    y, predicted = alike(y, predicted)
    return float(np.mean(y == predicted))


def agreement(y: Any, predicted: Any, classes: Any) -> str:
    """The accuracy in words, with the number of rows whose label is no class of the model."""
    y, predicted, classes = alike(y, predicted, classes)
    unknown = np.unique(y[~np.isin(y, classes)])
    n_unknown = int(np.isin(y, unknown).sum())
    if n_unknown == len(y):
        return f"no accuracy: no label of the data is a class of the model ({shorten(classes)})"
    right = int((y == predicted).sum())
    text = f"accuracy {right / len(y):.4f} ({right} of {len(y)} labels agree"
    if n_unknown:
        rows = "1 row has a label" if n_unknown == 1 else f"{n_unknown} rows have labels"
        text += f"; {rows} that the model does not know: {shorten(map(repr, unknown.tolist()))}"
    return f"{text})"


def alike(*labels: Any) -> tuple[Any, ...]:
    """Arrays of labels as they are; all as text if some are text and some are not: a label that is no number."""
    are_numbers = {one.dtype.kind in "iufb" for one in labels}
    return labels if len(are_numbers) == 1 else tuple(map(_as_text, labels))


def _as_text(labels: Any) -> Any:
    """Labels as text, equal numbers alike: "1" for 1, "1" and "1.0"."""
    texts, places = np.unique(labels.astype(str), return_inverse=True)
    plain = [f"{float(text):.15g}" if is_number(text) else text for text in texts.tolist()]
    return np.array(plain)[places]


def shorten(values: Iterable[Any], most: int = 12) -> str:
    """The first values in one line, control characters as escape sequences, and the number of all."""
    texts = [escaped(str(value)) for value in values]
    return ", ".join(texts[:most]) + (f", ... ({len(texts)} in all)" if len(texts) > most else "")
