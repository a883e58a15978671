"""The command line in the process of a test, in a folder of its own."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from widemargin.cli import main


def accuracy_in(text: str) -> float:
    """The accuracy that a command reports."""
    found = re.search(r"accuracy +([0-9.]+)", text)
    assert found is not None, text
    return float(found[1])


def write(folder: Path, name: str, content: str | bytes) -> Path:
    """A file in a folder."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class Program:
    """``program("train a.csv m -C 10")``, with a shell's quotes, gives what is printed: `out` and `err`."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def write(self, name: str, content: str | bytes) -> Path:
        """A file in the folder."""
        return write(self.folder, name, content)

    def __call__(self, command: str, code: int = 0) -> Any:
        """Run a command, which ends with this code; code 2 is an error of usage in two lines."""
        self._capsys.readouterr()
        try:
            found = main(shlex.split(command))
        except SystemExit as end:
            found = end.code  # type: ignore[assignment]
        printed = self._capsys.readouterr()
        assert found == code, printed.err
        if code == 2:
            error, more = printed.err.splitlines()
            assert more == f"see {error[: error.index(': error: ')]} --help"
        return printed

    def fails(self, command: str, *parts: str, code: int = 1) -> str:
        """Run a command that ends with one line of an error, which has these parts, and leaves nothing else."""
        printed = self(command, code)
        assert not list(self.folder.glob("*.part"))
        (line,) = (line for line in printed.err.splitlines() if "error: " in line)
        assert printed.out == ""
        assert line.startswith("widemargin: error: ")
        for part in parts:
            assert part in line
        return str(line)
