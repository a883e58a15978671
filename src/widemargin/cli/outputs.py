"""The output of a command: a file that is replaced as a whole or not at all, or standard output."""

from __future__ import annotations

import errno
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO, cast

from widemargin._output_files import NamedOutput, replacing
from widemargin.cli.streams import ClosedStream


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
