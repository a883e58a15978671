"""Labels of files compared with a model's classes: which are unknown, rare, or no classes at all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from widemargin.cli.streams import note
from widemargin.datasets.files import escaped, file_error, is_number


def as_numbers(path: str, y: Any) -> Any:
    """Labels for a regression. Raises a ValueError that names the file and the first that is no number."""
    try:
        return y if y.dtype.kind in "iuf" else y.astype(np.float64)
    except ValueError:
        wrong = next(label for label in y.tolist() if not is_number(str(label)))
        raise file_error(path, f"its labels must be numbers for --task regression, got {wrong!r}") from None


def check_classes(path: str, y: Any) -> None:
    """Raise a ValueError if labels are numbers with decimals, which are no classes."""
    decimals = y[y != np.rint(y)] if y.dtype.kind == "f" and np.isfinite(y).all() else ()
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
    """The share of equal labels: 1, "1" and "1.0" are."""
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
