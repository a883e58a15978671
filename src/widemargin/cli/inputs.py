"""Input files: standard input as a file, and the reader of a format."""

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
from widemargin.datasets.tables import Columns, read_columns

FORMATS: dict[str, Callable[..., Dataset]] = {"csv": load_csv, "npz": load_npz, "svmlight": load_svmlight}


def reader_of(path: str, args: Namespace) -> Callable[..., Dataset]:
    """The reader of `--format`, or that of the file's suffix."""
    return FORMATS[args.format] if args.format else reader_for(path)


def label_column(path: str, names: list[str] | None, n_features: int) -> int | None:
    """The label's column in a table for a model: the one that is no feature of the model, by its name, or the last.

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


def in_order(data: Dataset, columns: Columns, names: list[str] | None, path: str, whose: str) -> Dataset:
    """The data with their columns in the order of these names, where the file has the same names.

    Parameters
    ----------
    data : Dataset
    columns : Columns
        Of the file. Without a header its columns are taken by position.
    names : list of str, or None
        None: by position.
    path, whose : str
        For the message: the file, and who has the names.

    Raises
    ------
    ValueError
        Naming the first column with another name.
    """
    found = columns.feature_names
    if found is None or names is None:
        return data
    warnings.filterwarnings("ignore", "X does not have valid feature names")  # until the command ends
    if found == names:
        return data
    if len(set(found)) == len(found) and set(found) == set(names):
        return data._replace(X=np.take(data.X, [found.index(name) for name in names], axis=1))
    lacking = [name for name in names if name not in found]
    unknown = [k for k, name in enumerate(found) if name not in names]
    k = (unknown or [k for k, name in enumerate(found) if name != names[k]])[0]
    is_there = names[k] in lacking or not lacking
    own = f"{quoted(names[k])} there" if is_there else f"{quoted(lacking[0])}, which is not here"
    reason = f"column {columns.number(k)} is {quoted(found[k])}, {whose} {own}"
    raise file_error(path, reason, columns.line)


@contextmanager
def standard_input_as_file(args: Namespace) -> Iterator[None]:
    """Put the name of a temporary file with all of standard input in the place of the argument ``-``.

    Files are read more than once: to find their layout, to name a broken line, or as a zip archive.

    Parameters
    ----------
    args : Namespace
        `inputs` has the names of the arguments that may be ``-``; at most one of them is.

    Raises
    ------
    ValueError
        If data come without `--format`, as there is no suffix; and those of the block, which name standard input
        instead of the temporary file.
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
