"""Standard streams, notes on them, inputs that can be read only once, the output; signals that end the program."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from widemargin._output_files import NamedOutput, replacing

_ENDING = ("SIGTERM", "SIGHUP")
_names_of_copies: dict[str, str] = {}  # of the inputs that were copied to temporary files, by the name of the copy


def shown(text: str) -> str:
    """A message with the names of inputs as they were given."""
    for copy, name in _names_of_copies.items():
        text = text.replace(copy, name)
    return text


def note(text: str) -> None:
    """Print a note on standard error."""
    print(f"widemargin: note: {shown(text)}", file=sys.stderr)


class ClosedStream(io.TextIOWrapper):
    """In place of a standard stream that was closed before the program started: what is written is lost."""

    def __init__(self) -> None:
        super().__init__(open(os.devnull, "wb"), encoding="utf-8")  # noqa: SIM115 - closed with the wrapper


@contextmanager
def usable_streams() -> Iterator[None]:
    """Streams that exist, and write as an escape sequence what their encoding does not have."""
    for descriptor in range(3):  # a file must not be opened as a standard stream
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    old = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = old[0] or ClosedStream(), old[1] or ClosedStream()
    handlers = [(stream, stream.errors) for stream in (sys.stdout, sys.stderr) if isinstance(stream, io.TextIOWrapper)]
    try:
        for stream, _ in handlers:
            stream.reconfigure(errors="backslashreplace")
        yield
    finally:
        for stream, errors in handlers:
            if not stream.closed:
                stream.reconfigure(errors=errors)
        sys.stdout, sys.stderr = old


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise SystemExit on a signal that ends the program, so that unfinished files are removed.

    Only in the main thread, and for signals that are neither ignored nor handled by others.
    """

    def end(number: int, _: Any) -> NoReturn:
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    try:
        ours = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
        for number in ours:
            signal.signal(number, end)
    except ValueError:  # in another thread
        ours = []
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def open_output(path: str | None, *, force: bool) -> AbstractContextManager[BinaryIO]:
    """A new file, as `replacing` opens it; for None or ``-`` standard output. An OSError says that it is closed.

    Without `force`, a file that exists is a FileExistsError.
    """
    if path is None or path == "-":
        if isinstance(sys.stdout, ClosedStream):
            raise OSError(errno.EBADF, "is closed", "standard output")
        sys.stdout.flush()
        return nullcontext(cast(BinaryIO, NamedOutput(sys.stdout.buffer, "standard output", is_standard=True)))
    if not force and Path(path).is_file():
        raise FileExistsError(errno.EEXIST, "exists already: --force replaces it", path)
    return replacing(path)


@contextmanager
def inputs_as_files(args: Namespace) -> Iterator[None]:
    """Replace arguments that are ``-``, pipes or devices by the names of temporary files with all that they hold.

    Errors of the block name the input in place of its copy. Raises a ValueError if data that have no suffix come
    without `--format`, and an OSError if standard input is closed.
    """
    from widemargin.datasets.files import is_read_once  # here, as other errors should take no time
    from widemargin.datasets.tables import copied

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
                _names_of_copies[copy] = what
                setattr(args, name, copy)
            yield
    except ValueError as error:
        raise ValueError(shown(str(error))) from error
    finally:
        _names_of_copies.clear()
