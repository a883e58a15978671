"""Standard streams that are closed or take ASCII alone; signals that end the program."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

_ENDING = ("SIGTERM", "SIGHUP")


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
