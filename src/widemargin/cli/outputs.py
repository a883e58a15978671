"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of `path` once the block has ended well.

    Enter the block before the long computation: a path that cannot be written is then found out at once. If the block
    fails, or is interrupted, whatever was at `path` before is still there. Pipes and devices are written to directly.

    Parameters
    ----------
    path : str or path-like
        Where the file shall be. A symbolic link stays a link.

    Yields
    ------
    BinaryIO
        The new file, open for writing.

    Raises
    ------
    OSError
        When `path` cannot be written. If only the last step fails, the message says under which name the new file was
        kept.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not (target.is_file() or target.is_dir()):
        with target.open("wb") as device:
            yield device
        return
    _check_writable(target, path)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _move(beside, target, path)


def _check_writable(target: Path, path: str | os.PathLike[str]) -> None:
    if target.is_dir():
        raise IsADirectoryError(21, "cannot be written: it is a folder", os.fspath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(2, "cannot be written: its folder does not exist", os.fspath(path))
    # Replacing needs the folder's permission alone; a file that its owner protected is to stay all the same.
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise PermissionError(13, "cannot be written: permission denied", os.fspath(path))


def _move(beside: Path, target: Path, path: str | os.PathLike[str]) -> None:
    try:
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except OSError as error:
        reason = f"cannot be replaced ({error.strerror}); the new file was kept as {beside}"
        raise OSError(error.errno, reason, os.fspath(path)) from error
