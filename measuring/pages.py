"""Make the tables and pictures of the README and of the documentation from the files of results.

::

    python measuring/pages.py              # writes
    python measuring/pages.py --check      # exit code 1 where README.md or a picture and the results differ
    python measuring/pages.py --strict     # exit code 1 where a table compares several runs, or a claim has no row

A page of docs has the line ``<!-- table NAME -->`` alone, and the site's build puts the table there (`with_tables`);
in README.md the table is written, between this line and ``<!-- end -->``. Pictures of `benchmarks._pages.pictures`
whose results have changed are drawn anew. This module alone knows the tables of benchmarks and of evidence.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._pages import pictures
from benchmarks._pages import tables as benchmark_tables
from evidence import _claims, _index, _tables
from measuring import report, tables

README = Path(__file__).resolve().parents[1] / "README.md"
_SETTINGS = README.parent / "evidence" / "settings.toml"
_MARKER = re.compile(r"^<!-- table ([\w/]+) -->\n", re.MULTILINE)
_WRITTEN_TABLE = re.compile(rf"({_MARKER.pattern})(?:(?!<!--).*\n)*(<!-- end -->)", re.MULTILINE)
_TABLES: dict[str, Callable[[list[dict[str, Any]]], str]] = benchmark_tables.TABLES | _tables.TABLES
_FILES = benchmark_tables.FILES | _tables.FILES  # of tables that are not named after their file


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the README's tables and all pictures, or compare them; returns the number that differ, or are mixed."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if "--strict" in arguments:
        return _print_mixed()
    only_compare = "--check" in arguments
    text = README.read_text(encoding="utf-8")
    is_stale = text != with_written_tables(text)
    undrawn = [name for name in pictures.PICTURES if pictures.is_stale(name)]
    for name in [README.name] * is_stale + [f"{name}.svg" for name in undrawn]:
        print(f"{name} {'differs from' if only_compare else 'made from'} the results")
    if only_compare:
        return is_stale + len(undrawn)
    README.write_text(with_written_tables(text), encoding="utf-8")
    for name in undrawn:
        pictures.draw(name)
    return 0


def _print_mixed() -> int:
    """Print the tables that have rows of several runs of a set, and claims without rows; their number."""
    texts = [page.read_text(encoding="utf-8") for page in (README, *sorted((README.parent / "docs").rglob("*.md")))]
    names = {name for text in texts for name in _MARKER.findall(text) if name in _TABLES}
    lost = {name: len(rows := _rows_of(name)) - len(tables.of_one_run(rows)) for name in sorted(names)}
    mixed = [f"{name}: {n} rows of other runs" for name, n in lost.items() if n]
    lacking = [f"claims/{paper}: no row for {asked}" for paper in _claims.PAPERS for asked in _claims.unmeasured(paper)]
    print(*mixed, *lacking, sep="\n")
    return len(mixed) + len(lacking)


def with_written_tables(text: str) -> str:
    """Return the README's text with the tables that end with ``<!-- end -->`` as the results have them."""
    return _WRITTEN_TABLE.sub(lambda match: match[1] + table(match[2]) + match[3], text)


def with_tables(text: str) -> str:
    """Return the text of a page of docs with a table in the place of each marker, as the site shows it."""
    return _MARKER.sub(lambda match: table(match[1]), text)


def table(name: str) -> str:
    """Return a table of results in Markdown; of a paper's, only rows of one run for each set."""
    if name == "evidence":
        return _index.table()
    if name.startswith("claims/"):
        return _claims.table(name.removeprefix("claims/"))
    rows = _rows_of(name)
    if name in _tables.TABLES:
        rows = tables.of_one_run(rows)
    return _TABLES[name](rows) + tables.source(rows, _settings().get(name, "")) if rows else "Not measured yet.\n"


@cache
def _settings() -> dict[str, str]:
    """Of the papers' tables: tolerances, threads and where the parameters come from, by name."""
    return tomllib.loads(_SETTINGS.read_text(encoding="utf-8"))


def _rows_of(name: str) -> list[dict[str, Any]]:
    rows = report.results(_FILES.get(name, name))
    return [row for row in rows if row["machine"] != "linear"] if name in ("how_long", "scale") else rows


if __name__ == "__main__":
    sys.exit(main())
