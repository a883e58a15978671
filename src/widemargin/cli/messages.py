"""Notes on standard error, and the names of inputs in what is printed."""

from __future__ import annotations

import sys

#: Of the inputs that were copied to temporary files, by the name of the copy.
names_of_copies: dict[str, str] = {}


def shown(text: str) -> str:
    """A message with the names of inputs as they were given."""
    for copy, name in names_of_copies.items():
        text = text.replace(copy, name)
    return text


def note(text: str) -> None:
    """Print a note on standard error."""
    print(f"widemargin: note: {shown(text)}", file=sys.stderr)
