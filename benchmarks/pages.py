"""Write figures and pictures of the README and of the documentation from the files in results/; make their tables.

::

    python benchmarks/pages.py              # writes
    python benchmarks/pages.py --check      # exit code 1 where a page and the results differ

Everything between ``<!-- value NAME COLUMN ... -->`` and ``<!-- end -->`` is replaced by a figure of ``NAME.csv``
(`_pages.figures`), or of rows computed from it (`_pages.derived`): ``kernel_svm/quotients`` has those of the table.
A page of docs has the line ``<!-- table NAME -->`` alone, and the site's build puts the table there (`with_tables`);
in README.md the table is written, between this line and ``<!-- end -->``. Pictures of `_pages.pictures` whose results
have changed are drawn anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import _report
from benchmarks._pages import boosting, peers, pictures, reliability, scale
from benchmarks._pages.derived import look_up
from evidence import _claims, _index, _tables

_ROOT = Path(__file__).resolve().parents[1]
PAGES = [_ROOT / "README.md", *sorted((_ROOT / "docs").rglob("*.md"))]
_MARKER = re.compile(r"^<!-- table ([\w/]+) -->\n", re.MULTILINE)
_WRITTEN_TABLE = re.compile(rf"({_MARKER.pattern})(?:(?!<!--).*\n)*(<!-- end -->)", re.MULTILINE)
_VALUE = re.compile(r"(<!-- value ([\w/]+) (.+?) -->).*?(<!-- end -->)", re.DOTALL)
_TABLES: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    **peers.TABLES,
    **boosting.TABLES,
    **_tables.TABLES,
    **reliability.TABLES,
    **scale.TABLES,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write all pages and pictures, or compare them; returns the number that differ."""
    only_compare = "--check" in (sys.argv[1:] if arguments is None else arguments)
    stale = [path for path in PAGES if path.read_text(encoding="utf-8") != render(path)]
    for path in stale:
        print(f"{path.relative_to(_ROOT)} {'differs from' if only_compare else 'written from'} the results")
        if not only_compare:
            path.write_text(render(path), encoding="utf-8")
    undrawn = [name for name in pictures.PICTURES if pictures.is_stale(name)]
    for name in undrawn:
        print(f"{name}.svg {'differs from' if only_compare else 'drawn from'} the results")
        if not only_compare:
            pictures.draw(name)
    return len(stale) + len(undrawn) if only_compare else 0


def render(path: Path) -> str:
    """Return the source of a page as the results have it: its figures, and tables that end with ``<!-- end -->``."""

    def value(match: re.Match[str]) -> str:
        begin, name, asked, end = match.groups()
        try:
            return begin + look_up(name, asked) + end
        except ValueError as error:
            raise ValueError(f"{path}: {name}: {error}") from error

    text = _WRITTEN_TABLE.sub(lambda match: match[1] + table(match[2]) + match[3], path.read_text(encoding="utf-8"))
    return _VALUE.sub(value, text)


def with_tables(text: str) -> str:
    """Return the text of a page of docs with a table in the place of each marker, as the site shows it."""
    return _MARKER.sub(lambda match: table(match[1]), text)


def table(name: str) -> str:
    """Return a table of results in Markdown."""
    if name == "evidence":
        return _index.table()
    if name.startswith("claims/"):
        return _claims.table(name.removeprefix("claims/"))
    rows = _report.results(_FILES.get(name, name))
    return _TABLES[name](rows) if rows else "Not measured yet.\n"


_FILES = {**peers.FILES, **_tables.FILES, **scale.FILES}  # of tables that are not named after their file


if __name__ == "__main__":
    sys.exit(main())
