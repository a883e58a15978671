"""Input files: standard input as a file, and the reader of a format."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from widemargin.datasets import Dataset, load_csv, load_npz, load_svmlight, reader_for

FORMATS: dict[str, Callable[..., Dataset]] = {"csv": load_csv, "npz": load_npz, "svmlight": load_svmlight}


def reader_of(path: str, args: Namespace) -> Callable[..., Dataset]:
    """The reader of `--format`, or that of the file's suffix."""
    return FORMATS[args.format] if args.format else reader_for(path)


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
