"""Training on tables larger than memory: their rows are prepared block by block, and written to a memory map."""

from __future__ import annotations

import shutil
import tempfile
from argparse import Namespace
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin._config import resolve_memory_budget
from widemargin.cli.data import Features, features_of_table, prepared_frame, training_source, with_test, within_budget
from widemargin.cli.labels import check_classes
from widemargin.cli.messages import note
from widemargin.cli.preparation import make_preparation
from widemargin.datasets import Dataset
from widemargin.datasets.columns import Batch, Codes, Collected, labels_in, take_rows
from widemargin.datasets.files import file_error
from widemargin.datasets.layouts import Layout

_SAMPLE_SHARE = 8  # memory budget / bytes of the rows that the preparation is fitted on


class _Drawn(NamedTuple):
    """Rows drawn of a table, their numbers, labels and weights of all rows, numbering of words, columns with gaps."""

    columns: dict[int, Any]
    rows: NDArray[np.intp]
    labels: Any
    weights: Any
    numbering: Collected
    lacking: set[int]


def train_streaming(args: Namespace, machine: Any) -> tuple[Any, Dataset, Features, int]:
    """A pipeline trained on all rows of a table; rows drawn of it for the report; what is known of it; its length.

    A first pass over the table draws the rows that the preparation is fitted on, a second one writes the map.
    """
    from sklearn.pipeline import make_pipeline

    if args.holdout is not None:
        raise file_error(args.data, "it exceeds memory_budget and is streamed: give --test in place of --holdout")
    with within_budget(args):
        source = training_source(args)
        drawn = source.in_one_pass(lambda batches: _draw(batches, source.layout))
    layout, columns = source.layout, drawn.columns
    with source.naming_unlabelled():
        y, kept, message = labels_in(layout, drawn.labels, source.options)
    check_classes(args.data, y)
    for text in (*layout.notes, message):
        if text:
            note(f"{args.data}: {text}")
    own = slice(None) if kept is None else kept[drawn.rows]
    y_drawn = y[drawn.rows] if kept is None else y[(np.cumsum(kept) - 1)[drawn.rows][own]]
    columns = take_rows(columns, own)
    weights = drawn.weights if kept is None or drawn.weights is None else drawn.weights[kept]
    features = features_of_table(args, layout, columns, drawn.lacking)
    X = prepared_frame(layout, columns, features.dtype)
    steps = make_preparation(args, features, X)
    preparation = make_pipeline(*steps).fit(X) if steps else None
    width = features.n_features if preparation is None else preparation.transform(X[:1]).shape[1]
    with tempfile.TemporaryDirectory() as folder:
        n_bytes = len(y) * width * np.dtype(features.dtype).itemsize
        if n_bytes > shutil.disk_usage(folder).free:
            raise file_error(args.data, f"its prepared rows need {n_bytes:,} bytes in {folder}: TMPDIR names a folder")
        note(f"{args.data}: {len(y):,} rows are streamed through {n_bytes:,} bytes in {folder}")
        rows = np.memmap(f"{folder}/rows", np.dtype(features.dtype), "w+", shape=(len(y), width))
        start = n_read = 0
        for batch in source.batches():
            parts = _renumbered(drawn.numbering, batch)
            own = slice(None) if kept is None else kept[n_read : n_read + len(parts[0])]
            n_read += len(parts[0])
            block = prepared_frame(layout, _columns(drawn.numbering, parts, own), features.dtype)
            block = block if preparation is None else preparation.transform(block)
            rows[start : start + block.shape[0]] = block.toarray() if hasattr(block, "toarray") else block
            start += block.shape[0]
        machine.fit(rows, y, sample_weight=weights)
        del rows
    data = with_test(Dataset(X, y_drawn), y, args, features)
    return make_pipeline(*steps, machine) if steps else machine, data, features, len(y)


def _draw(batches: Iterable[Batch], layout: Layout) -> _Drawn:
    """Rows drawn at random of a table, so many as a share of the memory budget holds, and all labels."""
    most = resolve_memory_budget() // _SAMPLE_SHARE
    numbering, rng = Collected(layout), np.random.default_rng(0)
    sample: list[list[NDArray[Any]]] = []  # of each block: the numbers of drawn rows, and their columns
    labels: list[NDArray[Any]] = []
    weights: list[NDArray[Any]] = []
    lacking: set[int] = set()
    place, n, held, chance = layout.used.index(layout.target or 0), 0, 0, 1.0
    for batch in batches:
        parts = _renumbered(numbering, batch)
        lacking |= {
            k
            for k, part in zip(layout.used, parts, strict=True)
            if k not in lacking and part.dtype.kind == "f" and np.isnan(part).any()
        }
        labels.append(np.array(parts[place]))
        if layout.weight is not None:
            weights.append(np.array(parts[layout.used.index(layout.weight)]))
        own = np.flatnonzero(rng.random(len(parts[0])) < chance)
        sample.append([own + n, *(part[own] for part in parts)])
        n, held = n + len(parts[0]), held + sum(part.nbytes for part in sample[-1])
        while held > most and chance > 1e-9:
            columns = [np.concatenate(column) for column in zip(*sample, strict=True)]
            kept = rng.random(len(columns[0])) < 0.5
            sample, chance = [[column[kept] for column in columns]], chance / 2
            held = sum(part.nbytes for part in sample[0])
    if not n:
        raise layout.error("the file has no samples")
    rows, *whole = (np.concatenate(column) for column in zip(*sample, strict=True))
    words, column = numbering.words[place], np.concatenate(labels)
    label = column if words is None else Codes(column, list(words))
    weight = np.concatenate(weights) if weights else None
    return _Drawn(_columns(numbering, whole, slice(None)), rows, label, weight, numbering, lacking)


def _renumbered(numbering: Collected, batch: Batch) -> list[NDArray[Any]]:
    """The arrays of a batch, with one numbering of words for the whole table."""
    return [numbering.renumbered(k, column) if isinstance(column, Codes) else column for k, column in enumerate(batch)]


def _columns(numbering: Collected, parts: list[NDArray[Any]], own: Any) -> dict[int, Any]:
    """The features among arrays, by position."""
    layout = numbering.layout
    named = zip(layout.used, parts, numbering.words, strict=True)
    columns = {k: part[own] if words is None else Codes(part[own], list(words)) for k, part, words in named}
    return {k: columns[k] for k in layout.features}
