"""What was trained on what, how good it is, what is in a model file; labels compared with the classes of a model."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from widemargin._model_files import Summary
from widemargin._types import Given, Model
from widemargin.cli.streams import note, print_lines, report_stream
from widemargin.datasets import Dataset
from widemargin.datasets.files import file_error, is_number, shorten

_SCORED_ROWS = 10_000  # of the training data, at most, drawn for the report
_CHOSEN = ("kernel", "C", "gamma", "epsilon")  # attributes of a search


def report(
    args: Namespace, model: Model, data: Dataset, seconds: float, n_samples: int | None = None, **more: str
) -> None:
    """Print what was trained on what."""
    machine, n_samples = steps_of(model)[-1], n_samples or data.X.shape[0]
    classes = f", {len(machine.classes_)} classes" if hasattr(machine, "classes_") else ""
    lines = {"samples": f"{n_samples} ({data.X.shape[1]} features{classes})", "seconds": f"{seconds:.2f}", **more}
    lines |= dict(describe(model)) | _quality(args, model, data) | {"model": args.model}
    print_lines(lines, report_stream(args.model))


def _quality(args: Namespace, model: Model, data: Dataset) -> dict[str, str]:
    """Accuracy of a classifier, R2 of a regressor, the share of the training samples outside a one-class model."""
    from sklearn.utils import _safe_indexing

    y: Given = data.y_test
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


def report_score(model: Model, data: Dataset, predicted: Any) -> None:
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


def describe(model: Model) -> Summary:
    """Names and values that describe a model, for its file, for `widemargin info` and for the report of training."""
    from widemargin.kernels.functions import WITHOUT_GAMMA

    machine = steps_of(model)[-1]
    chosen = {name: getattr(machine, f"{name}_") for name in _CHOSEN if hasattr(machine, f"{name}_")}
    parameters = machine.get_params() | chosen
    rows = [("type", type(machine).__name__)]
    if machine is not model:
        parts = [one for one in model.get_params().values() if hasattr(one, "transform")]
        names = [type(one).__name__ for one in parts if not hasattr(one, "steps") and not hasattr(one, "transformers")]
        rows.append(("preparation", ", ".join(names)))
    if parameters.get("kernel") in WITHOUT_GAMMA:
        parameters.pop("gamma", None)
    for name in ("kernel", "C", "nu", "epsilon", "gamma", "tol"):
        if (value := parameters.get(name)) is not None:
            number = getattr(machine, "_gamma", None) if name == "gamma" and isinstance(value, str) else None
            text = f"{value:.6g}" if isinstance(value, float) else str(value)
            rows.append((name, text if number is None else f"{text} ({number:.3g})"))
    rows.append(("features", str(getattr(model, "n_features_in_", "text"))))
    if hasattr(machine, "classes_"):
        rows.append(("classes", shorten(machine.classes_)))
    if hasattr(machine, "n_support_"):
        total = machine.support_vectors_.shape[0] or len(machine.support_)  # precomputed: indices only
        of_classes = f" ({shorten(machine.n_support_)} by class)" if len(machine.n_support_) > 1 else ""
        rows.append(("support vectors", f"{total}{of_classes}"))
    if level := getattr(machine, "early_level_", 0):
        rows.append(("early prediction", f"level {level}, {machine.levels_[-1]['n_clusters']} clusters"))
    if hasattr(machine, "predictor_"):
        rows.append(("prediction", f"{machine.predictor_.n_operations:,.1f} inner products per sample"))
    if hasattr(machine, "report_"):
        rows.append(("compressed", str(machine.report_)))
    if hasattr(machine, "dual_gap_"):
        gap, objective = machine.dual_gap_, machine.objective_
        relative = f" ({gap / abs(objective):.1e} of the objective)" if objective else ""
        text = "unknown: the kernel is not positive semidefinite" if math.isnan(gap) else f"{gap:.3g}{relative}"
        rows += [("objective", f"{objective:.10g}"), ("duality gap", text), ("iterations", str(machine.n_iter_))]
    if hasattr(machine, "converged_"):
        rows.append(("converged", "yes" if machine.converged_ else "no"))
    return rows


def steps_of(model: Model) -> list[Model]:
    """The steps of a pipeline; another model is its own only one."""
    return [step for _, step in model.steps] if hasattr(model, "steps") else [model]


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


def as_numbers(path: str, y: Given) -> Any:
    """Labels for a regression. Raises a ValueError that names the file and the first that is no number."""
    try:
        return y if y.dtype.kind in "iuf" else y.astype(np.float64)
    except ValueError:
        wrong = next(label for label in y.tolist() if not is_number(str(label)))
        raise file_error(path, f"its labels must be numbers for --task regression, got {wrong!r}") from None


def check_classes(path: str, y: Given) -> None:
    """Raise a ValueError if labels are numbers with decimals, which are no classes."""
    decimals = y[y != np.rint(y)] if y.dtype.kind == "f" and np.isfinite(y).all() else y[:0]
    if len(decimals):
        first = decimals[0].item()
        raise file_error(path, f"its labels are numbers, not classes ({first!r}): did you mean --task regression?")


def note_rare_classes(y: Given, source: Any) -> None:
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


def check_test_labels(path: str, y_test: Any, y: Given) -> None:
    """Raise a ValueError if no test label is a class of the training data; note on stderr if only some are none."""
    found, classes = alike(np.unique(y_test), np.unique(y))
    unknown = found[~np.isin(found, classes)]
    names = shorten(map(repr, unknown.tolist()))
    if len(unknown) == len(found):
        reason = f"labels that the training data do not have: {names}; their classes are {shorten(classes)}"
        raise file_error(path, reason)
    if len(unknown):
        note(f"{path}: labels that the training data do not have count as errors: {names}")


def present_labels(y: Given) -> Any:
    """Which labels (n,) are not missing: neither NaN nor an empty text."""
    if y.dtype.kind == "f":
        return ~np.isnan(y)
    return y != "" if y.dtype.kind == "U" else np.ones(len(y), dtype=bool)


def accuracy(y: Given, predicted: Any) -> float:
    """The share of equal labels; 1, "1" and "1.0" count as equal."""
    y, predicted = alike(y, predicted)
    return float(np.mean(y == predicted))


def agreement(y: Given, predicted: Any, classes: Given) -> str:
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
