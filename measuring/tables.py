"""Tables of results in Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Rows = list[dict[str, Any]]


def markdown(header: list[str], rows: Iterable[list[Any]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)
