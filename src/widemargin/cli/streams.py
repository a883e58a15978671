"""Standard streams, notes on them, inputs that can be read only once, the output; signals that end the program."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO

from widemargin._output_files import replacing

_names_of_copies: dict[str, str] = {}  # of the inputs that were copied to temporary files, by the name of the copy


def shown(text: str) -> str:
    """A message with the names of inputs as they were given."""
    for copy, name in _names_of_copies.items():
        text = text.replace(copy, name)
    return text


def note(text: str) -> None:
    """Print a note on standard error."""
    print(f"widemargin: note: {shown(text)}", file=sys.stderr)


def report_stream(path: str) -> TextIO:
    """The stream for reports: standard error if the model goes to standard output, else standard output."""
    return sys.stderr if path == "-" else sys.stdout


def print_lines(lines: Mapping[str, str], stream: TextIO) -> None:
    """Print texts with their names, each from a new line on."""
    for name, text in lines.items():
        print(f"{name:16} {shown(text)}".replace("\n", "\n" + 17 * " "), file=stream)


def make_streams_usable() -> None:
    """Take the null device for a stream that is closed; write as an escape sequence what an encoding does not have."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise SystemExit on a signal that ends the program, so that unfinished files are removed.

    Only in the main thread, and for signals that are neither ignored nor handled by others.
    """

    def end(number: int, _: Any) -> NoReturn:
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    is_main = threading.current_thread() is threading.main_thread()
    ours = [number for number in numbers if is_main and signal.getsignal(number) == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def open_output(path: str | None, *, force: bool) -> AbstractContextManager[BinaryIO]:
    """A new file, as `replacing` opens it; for None or ``-`` standard output.

    Without `force`, a file that exists is a FileExistsError.
    """
    if path is None or path == "-":
        sys.stdout.flush()
        return nullcontext(sys.stdout.buffer)
    if not force and Path(path).is_file():
        raise FileExistsError(errno.EEXIST, "exists already: --force replaces it", path)
    return replacing(path)


@contextmanager
def inputs_as_files(args: Namespace) -> Iterator[None]:
    """Replace arguments that are ``-``, pipes or devices by the names of temporary files with all that they hold.

    Errors of the block name the input in place of its copy. Raises a ValueError if data that have no suffix come
    without `--format`.
    """
    from widemargin.datasets.files import is_read_once  # here, as other errors should take no time
    from widemargin.datasets.tables import copied

    with ExitStack() as copies:
        copies.callback(_names_of_copies.clear)
        for name in args.inputs:
            path = getattr(args, name)
            if path is None or not (path == "-" or is_read_once(path)):
                continue
            what = "standard input" if path == "-" else path
            if name != "model" and not args.format and (path == "-" or not Path(path).suffix):
                raise ValueError(f"{what} has no suffix: give --format csv, parquet, json, arff, npz, ...")
            copy = copies.enter_context(copied(sys.stdin.buffer if path == "-" else path, what))
            _names_of_copies[copy] = what
            setattr(args, name, copy)
        yield
