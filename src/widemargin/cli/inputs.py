"""Input files: what can be read only once is copied first."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from widemargin._output_files import NamedOutput
from widemargin.cli.messages import names_of_copies, shown
from widemargin.datasets.files import is_read_once


@contextmanager
def inputs_as_files(args: Namespace) -> Iterator[None]:
    """Replace arguments that are ``-``, pipes or devices by the names of temporary files with all that they hold.

    Files are read more than once: to find their layout, to name a broken line, or as a zip archive.

    Parameters
    ----------
    args : Namespace
        `inputs` has the names of the arguments; at most one of them is ``-``.

    Raises
    ------
    ValueError
        If data that have no suffix come without `--format`. A ValueError of the ``with`` block is raised again with
        the name of the input in place of the temporary file's.
    OSError
        If standard input is closed.
    """
    given = [name for name in args.inputs if _is_read_once(getattr(args, name))]
    if not given:
        yield
        return
    for name in given:
        _check_format(args, name)
    with tempfile.TemporaryDirectory() as folder:
        try:
            for number, name in enumerate(given):
                path = getattr(args, name)
                copy = os.path.join(folder, f"input{number}" + ("" if path == "-" else "".join(Path(path).suffixes)))
                names_of_copies[copy] = "standard input" if path == "-" else path
                _copy(path, copy)
                setattr(args, name, copy)
            yield
        except ValueError as error:
            raise ValueError(shown(str(error))) from error
        finally:
            names_of_copies.clear()


def _is_read_once(path: str | None) -> bool:
    return path is not None and (path == "-" or is_read_once(path))


def _check_format(args: Namespace, name: str) -> None:
    path = getattr(args, name)
    if name != "model" and not args.format and (path == "-" or not Path(path).suffix):
        what = "standard input" if path == "-" else path
        raise ValueError(f"{what} has no suffix: give --format csv, parquet, json, arff, npz, ...")


def _copy(path: str, copy: str) -> None:
    if path == "-" and sys.stdin is None:
        raise OSError(errno.EBADF, "is closed", "standard input")
    with NamedOutput(open(copy, "wb"), f"the copy in {tempfile.gettempdir()}") as target:
        if path == "-":
            shutil.copyfileobj(sys.stdin.buffer, target)
            return
        with open(path, "rb") as source:
            shutil.copyfileobj(source, target)
