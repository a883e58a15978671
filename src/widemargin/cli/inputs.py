"""Input files: standard input as a file, the reader of a format, columns in the order of a model's features."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from widemargin.datasets import Dataset, load_csv, load_npz, load_svmlight, reader_for
from widemargin.datasets.files import file_error, quoted
from widemargin.datasets.tables import Columns, read_columns, suggestion

FORMATS: dict[str, Callable[..., Dataset]] = {"csv": load_csv, "npz": load_npz, "svmlight": load_svmlight}


def reader_of(path: str, args: Namespace) -> Callable[..., Dataset]:
    """The reader of `--format`, or that of the file's suffix."""
    return FORMATS[args.format] if args.format else reader_for(path)


def label_column(path: str, names: list[str] | None, n_features: int) -> int | None:
    """The column of the label in a table to predict: the one whose name is no feature of the model, or the last.

    Parameters
    ----------
    path : str
    names : list of str, or None
        The model's features.
    n_features : int

    Returns
    -------
    int or None
        None where the table has as many columns as the model has features.
    """
    if read_columns(path, target=None).width == n_features:
        return None
    others = [k for k, name in enumerate(read_columns(path).names or ()) if names and name not in names]
    return others[0] if len(others) == 1 else -1


def in_order_of(data: Dataset, columns: Columns, names: list[str] | None, path: str, owner: str) -> Dataset:
    """The data with the columns of X in the order of `names`, where both the file and its model name them.

    Parameters
    ----------
    data : Dataset
    columns : Columns
        Of the file. Without a header its columns are taken by position.
    names : list of str, or None
        Features of the model, or of the training data. None: by position.
    path, owner : str
        For the message: the file, and what the names belong to, with its verb ("train.csv has").

    Raises
    ------
    ValueError
        If the names differ by more than their order: naming the first column that has another name than expected.
    """
    found = columns.feature_names
    if found is None or names is None:
        return data
    warnings.filterwarnings("ignore", "X does not have valid feature names")  # until the command ends
    if found == names:
        return data
    if len(set(found)) == len(found) and set(found) == set(names):
        return data._replace(X=np.take(data.X, [found.index(name) for name in names], axis=1))
    k = next(k for k, name in enumerate(found) if name != names[k])
    message = f"column {columns.number(k)} is {quoted(found[k])}, {owner} {quoted(names[k])} there"
    raise file_error(path, message, columns.line)


def check_has_columns(path: str, names: list[str] | None, owner: str) -> None:
    """Raise a ValueError that names the first feature of `names` that is no column of a table with a header."""
    columns = read_columns(path, target=None)
    found = columns.names
    if found is None or names is None or set(names) <= set(found):
        return
    name = next(name for name in names if name not in found)
    raise file_error(path, f"no column is named {quoted(name)}, which {owner}{suggestion(name, found)}", columns.line)


@contextmanager
def standard_input_as_file(args: Namespace) -> Iterator[None]:
    """Replace the argument ``-`` by the name of a temporary file that has all of standard input.

    Files are read more than once: to find their layout, to name a broken line, or as a zip archive.

    Parameters
    ----------
    args : Namespace
        `inputs` has the names of the arguments that may be ``-``; at most one of them is.

    Raises
    ------
    ValueError
        If data come without `--format`, as there is no suffix. A ValueError of the ``with`` block is raised again
        with "standard input" in place of the temporary file's name.
    """
    given = [name for name in args.inputs if getattr(args, name) == "-"]
    if not given:
        yield
        return
    if given[0] != "model" and not args.format:
        raise ValueError("standard input has no suffix: give --format csv, npz or svmlight")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "input")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        setattr(args, given[0], path)
        try:
            yield
        except ValueError as error:
            raise ValueError(str(error).replace(path, "standard input")) from error
