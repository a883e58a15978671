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
from widemargin.cli.data import Features, features_of_table, training_source, with_test, within_budget
from widemargin.cli.labels import check_classes
from widemargin.cli.machines import make_preparation
from widemargin.cli.streams import note
from widemargin.datasets import Dataset
from widemargin.datasets.columns import Batch, first_gaps, frame_of, take_rows
from widemargin.datasets.files import file_error
from widemargin.datasets.layouts import Layout

_SAMPLE_SHARE = 8  # memory budget / bytes of the rows that the preparation is fitted on


class _Drawn(NamedTuple):
    """Rows drawn of a table, their numbers; labels and weights of all rows; what `first_gaps` finds in them."""

    columns: dict[int, Any]
    rows: NDArray[np.intp]
    labels: Any
    weights: Any
    gaps: dict[int, int]


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
    layout = source.layout
    for text in layout.notes:
        note(f"{args.data}: {text}")
    target = layout.target or 0
    y, kept = source.labels(source.coded({target: drawn.labels})[target])
    check_classes(args.data, y)
    columns, rows_drawn, weights = source.coded(drawn.columns), drawn.rows, drawn.weights
    if kept is not None:
        own = kept[rows_drawn]
        columns, weights = take_rows(columns, own), None if weights is None else weights[kept]
        rows_drawn = (np.cumsum(kept) - 1)[rows_drawn[own]]
    features = features_of_table(args, source, columns, drawn.gaps)
    X = frame_of(layout, columns, features.dtype)
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
            parts = source.coded({k: part for k, part in zip(layout.used, batch, strict=True) if k in layout.features})
            own = slice(None) if kept is None else kept[n_read : n_read + len(batch[0])]
            n_read += len(batch[0])
            block = frame_of(layout, take_rows(parts, own), features.dtype)
            block = block if preparation is None else preparation.transform(block)
            rows[start : start + block.shape[0]] = block.toarray() if hasattr(block, "toarray") else block
            start += block.shape[0]
        machine.fit(rows, y, sample_weight=weights)
        del rows
    data = with_test(Dataset(X, y[rows_drawn]), y, args, features)
    return make_pipeline(*steps, machine) if steps else machine, data, features, len(y)


def _draw(batches: Iterable[Batch], layout: Layout) -> _Drawn:
    """Rows drawn at random of a table, so many as a share of the memory budget holds, and all labels."""
    most, rng = resolve_memory_budget() // _SAMPLE_SHARE, np.random.default_rng(0)
    sample: list[list[NDArray[Any]]] = []  # of each block: the numbers of drawn rows, and their columns
    whole: dict[int, list[NDArray[Any]]] = {k: [] for k in (layout.target, layout.weight) if k is not None}
    gaps: dict[int, int] = {}
    n, held, chance = 0, 0, 1.0
    for batch in batches:
        parts = dict(zip(layout.used, batch, strict=True))
        gaps = {**{k: n + row for k, row in first_gaps({k: parts[k] for k in layout.features}).items()}, **gaps}
        for k, column in whole.items():
            column.append(parts[k])
        own = np.flatnonzero(rng.random(len(batch[0])) < chance)
        sample.append([own + n, *(parts[k][own] for k in layout.features)])
        n, held = n + len(batch[0]), held + sum(part.nbytes for part in sample[-1])
        while held > most and chance > 1e-9:
            columns = [np.concatenate(column) for column in zip(*sample, strict=True)]
            kept = rng.random(len(columns[0])) < 0.5
            sample, chance = [[column[kept] for column in columns]], chance / 2
            held = sum(part.nbytes for part in sample[0])
    if not n:
        raise layout.error("the file has no samples")
    rows, *drawn = (np.concatenate(column) for column in zip(*sample, strict=True))
    labels, weights = (np.concatenate(whole[k]) if k in whole else None for k in (layout.target, layout.weight))
    return _Drawn(dict(zip(layout.features, drawn, strict=True)), rows, labels, weights, gaps)
