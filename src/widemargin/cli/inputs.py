"""Input files: what can be read only once is copied first."""

from __future__ import annotations

import errno
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from widemargin.cli.messages import names_of_copies, shown
from widemargin.datasets.files import is_read_once
from widemargin.datasets.tables import copied


@contextmanager
def inputs_as_files(args: Namespace) -> Iterator[None]:
    """Replace arguments that are ``-``, pipes or devices by the names of temporary files with all that they hold.

    Errors of the block name the input in place of its copy. Raises a ValueError if data that have no suffix come
    without `--format`, and an OSError if standard input is closed.
    """
    try:
        with ExitStack() as copies:
            for name in args.inputs:
                path = getattr(args, name)
                if path is None or not (path == "-" or is_read_once(path)):
                    continue
                what = "standard input" if path == "-" else path
                if name != "model" and not args.format and (path == "-" or not Path(path).suffix):
                    raise ValueError(f"{what} has no suffix: give --format csv, parquet, json, arff, npz, ...")
                if path == "-" and sys.stdin is None:
                    raise OSError(errno.EBADF, "is closed", "standard input")
                copy = copies.enter_context(copied(sys.stdin.buffer if path == "-" else path))
                names_of_copies[copy] = what
                setattr(args, name, copy)
            yield
    except ValueError as error:
        raise ValueError(shown(str(error))) from error
    finally:
        names_of_copies.clear()
