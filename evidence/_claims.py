"""The claims of the four papers: what each says, what came out, and whether that agrees, from the results files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from evidence._figures import look_up, rows_of
from measuring.tables import markdown

_CLAIMS = Path(__file__).resolve().parent / "claims.toml"
_FIGURE = re.compile(r"\{([\w/]+) ([^}]+)\}")


def items(paper: str) -> list[dict[str, Any]]:
    """Return the claims of a paper: "dc_svm", "dc_pred", "ocas" or "bsgd"."""
    return list(tomllib.loads(_CLAIMS.read_text(encoding="utf-8"))[paper])


def table(paper: str) -> str:
    """Return the table of a paper's claims."""
    header = ["claim", "in the paper", "here", "holds", "commits"]
    return markdown(header, [_line(item) for item in items(paper)])


def _line(item: dict[str, Any]) -> list[str]:
    here = _FIGURE.sub(lambda match: look_up(*match.groups()), item["here"])
    claim = f"{item['claim']} ({item['where']})"
    return [claim, item["published"], here, f"**{verdict(item)}**{item.get('remark', '')}", _commits(item)]


def verdict(item: dict[str, Any]) -> str:
    """Return yes or no, by whether a figure is at least or at most what the claim needs."""
    if "figure" not in item:
        return "not measured"
    found = float(look_up(*item["figure"].split(" ", 1)))
    return "yes" if item.get("least", found) <= found <= item.get("most", found) else "no"


def _commits(item: dict[str, Any]) -> str:
    """The commits of the files that the claim is read from."""
    names = {match.group(1) for match in _FIGURE.finditer(item["here"] + " {" + item.get("figure", "") + "}")}
    rows = [row for name in sorted(names) for row in rows_of(name)]
    return ", ".join(dict.fromkeys(str(row["commit"]) for row in rows if "commit" in row))
