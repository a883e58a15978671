"""Output files that are replaced as a whole or not at all."""

from __future__ import annotations

import errno
import glob
import io
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

if sys.platform != "win32":  # where a file that is open cannot be removed
    import fcntl

_NAME_BYTES = 200  # of the target's name in that of the new file: a name has at most 255


class _NamedFile(io.FileIO):
    """A file open for writing, whose errors have the name of an output: of a full disk, say."""

    def __init__(self, path: str | os.PathLike[str], name: str) -> None:
        super().__init__(path, "w")
        self._output = name

    def write(self, data: Any) -> int:
        with self._named():
            return super().write(data)

    def close(self) -> None:
        with self._named():
            super().close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._output) from error


def open_named(path: str | os.PathLike[str], name: str) -> io.BufferedWriter:
    """A file opened for writing, whose errors have this name."""
    return io.BufferedWriter(_NamedFile(path, name))


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file for writing that replaces `path` at the end of the block.

    Enter the block before the long computation: a path that cannot be written raises at once. If the block raises, or
    is interrupted, an old file at `path` stays. Pipes and devices are written to directly.

    Parameters
    ----------
    path : str or path-like
        Name of the file. A symbolic link stays a link.

    Yields
    ------
    BinaryIO
        The new file, open for writing.

    Raises
    ------
    OSError
        When `path` cannot be written. If only the replacement fails, the message has the name of the new file.
    """
    given = Path(path)
    if given.exists() and not (given.is_file() or given.is_dir()):
        with open_named(given, os.fspath(path)) as output:
            yield output
        return
    target = Path(os.path.realpath(path))
    _check_writable(target, path)
    prefix = f".{os.fsdecode(os.fsencode(target.name)[:_NAME_BYTES])}."
    _remove_leftovers(target, prefix)
    temporary, lock = _lock_new_file(target, prefix)
    with lock:
        try:
            with open_named(temporary, os.fspath(path)) as output:
                yield output
                output.flush()
                os.fsync(output.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _replace(target, temporary, path)


def _lock_new_file(target: Path, prefix: str) -> tuple[Path, BinaryIO]:
    """An empty file beside the target, and a descriptor whose lock shows that its process lives."""
    while True:
        temporary = target.with_name(f"{prefix}{secrets.token_hex(4)}.part")
        lock = temporary.open("xb")
        if sys.platform == "win32":
            lock.close()
            return temporary, lock
        with suppress(OSError):  # of a file system without locks, where leftovers stay
            fcntl.flock(lock, fcntl.LOCK_EX)
        if temporary.exists():  # nobody has taken it for a leftover before it was locked
            return temporary, lock
        lock.close()


def _remove_leftovers(target: Path, prefix: str) -> None:
    """Remove new files of processes that were killed before they could replace the target: nobody locks them."""
    for name in glob.glob(f"{glob.escape(prefix)}{'[0-9a-f]' * 8}.part", root_dir=target.parent):
        leftover = target.with_name(name)
        with suppress(OSError):
            if sys.platform == "win32":
                leftover.unlink()
                continue
            with leftover.open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                leftover.unlink()


def _check_writable(target: Path, path: str | os.PathLike[str]) -> None:
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "cannot be written: it is a folder", os.fspath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "cannot be written: its folder does not exist", os.fspath(path))
    # Replacing needs only the folder's permission; a file without write permission must stay all the same.
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise PermissionError(errno.EACCES, "cannot be written: permission denied", os.fspath(path))


def _replace(target: Path, temporary: Path, path: str | os.PathLike[str]) -> None:
    try:
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        reason = f"cannot be replaced ({error.strerror}); the new file was kept as {temporary}"
        raise OSError(error.errno, reason, os.fspath(path)) from error
