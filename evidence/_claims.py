"""The claims of the four papers: what each says, what came out, and whether that agrees, from the results files."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, geometric_mean, median
from typing import Any

from measuring import report
from measuring.tables import markdown

Row = dict[str, Any]
Rows = list[Row]

_CLAIMS = Path(__file__).resolve().parent / "claims.toml"
_FIGURE = re.compile(r"\{([\w/]+) ([^}]+)\}")
_CONDITION = re.compile(r"(.+?)(!=|=|>|<)(.*)")
_OF_MANY: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "mean": fmean,
    "gmean": geometric_mean,
    "median": median,
    "count": len,
    "sum": sum,
}


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


# Figures of results files, and of rows computed from them -------------------------------------------------------------


def look_up(name: str, asked: str) -> str:
    """Return the figure `asked` for (as `figure` takes it) of a results file, or of rows derived from one."""
    return figure(rows_of(name), asked)


def rows_of(name: str) -> Rows:
    """Return the rows of a results file, or those derived from one under this name."""
    file, derived = OF_PAPERS.get(name, (name, None))
    rows = report.results(file)
    return derived(rows) if derived else rows


def figure(rows: Sequence[Row], asked: str) -> str:
    """Return one figure as text.

    Parameters
    ----------
    rows : sequence of dict
        Of the results file.
    asked : str
        The column, conditions `column=value` (also !=, >, <), one of min, max, mean, gmean, median, sum and count where
        there may be several rows, and a format. ``seconds set=a9a machine="DC-SVM" .2f``

    Raises
    ------
    ValueError
        If no row is left, or several and no function of them is named.
    """
    column, *words = shlex.split(asked)
    form = words.pop()
    of_many = _OF_MANY[words.pop()] if words and words[-1] in _OF_MANY else None
    chosen = [row for row in rows if column in row and all(_holds(row, word) for word in words)]
    if not chosen or (of_many is None and len(chosen) > 1):
        raise ValueError(f"{asked!r} is about {len(chosen)} rows")
    values = [row[column] for row in chosen]
    return format(of_many(values) if of_many else values[0], form).replace("e+0", "e").replace("e-0", "e-")


def _holds(row: Row, condition: str) -> bool:
    match = _CONDITION.fullmatch(condition)
    if match is None:
        raise ValueError(f"{condition!r} is no condition")
    column, sign, text = match.groups()
    value = row.get(column, "")
    if sign in "<>":
        return value != "" and (float(value) > float(text)) == (sign == ">") and float(value) != float(text)
    same = float(value) == float(text) if _is_number(value) and _is_number(text) else str(value) == text
    return same == (sign == "=")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _times_libsvm(rows: Rows) -> Rows:
    """Timed machines, with LIBSVM's time at 1e-3 on their set divided by theirs; its limit where it was ended."""
    libsvm = {
        row["set"]: row.get("seconds", row.get("over_limit"))
        for row in rows
        if row["machine"] == "LIBSVM" and row["tol"] == 1e-3
    }
    timed = [row for row in rows if "seconds" in row and row["set"] in libsvm]
    return [row | {"times_libsvm": libsvm[row["set"]] / row["seconds"]} for row in timed]


def _lead(rows: Rows, keys: tuple[str, ...], ours: str, rivals: tuple[str, ...]) -> Rows:
    """A row for each cell of `keys`: how far the best accuracy of ours is above the rivals' best one."""
    cells: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        cells.setdefault(tuple(row[key] for key in keys), []).append(row)
    found = []
    for cell, mine in cells.items():
        best, rival = ([row["accuracy"] for row in mine if row["machine"] in who] for who in ((ours,), rivals))
        if best and rival:
            commits = {str(row["commit"]) for row in mine if "commit" in row}
            lead = {"lead": max(best) - max(rival), "commit": ", ".join(sorted(commits))}
            found.append(dict(zip(keys, cell, strict=True)) | lead)
    return found


def _early_lead(rows: Rows) -> Rows:
    """Early prediction's accuracy less that of the better of naive and committee prediction; its speed over naive's."""
    keys = ("set", "partition", "clusters")
    us = {(*(row[key] for key in keys), row["machine"]): row["predict_us"] for row in rows}
    leads = _lead(rows, keys, "early", ("naive", "bcm"))
    cells = [tuple(row[key] for key in keys) for row in leads]
    return [row | {"faster": us[*cell, "naive"] / us[*cell, "early"]} for row, cell in zip(leads, cells, strict=True)]


def _ldkl_lead(rows: Rows) -> Rows:
    """For each set, ours less LDKL in accuracy, of all machines of at most 20 inner products, LDKL's most."""
    few = [row for row in rows if row["operations"] <= 20]
    return _lead(few, ("set",), "DC-Pred++", ("LDKL",))


def _random_parts(rows: Rows) -> Rows:
    """Differences in the dual of random parts divided by those of kernel k-means."""
    keys = ("set", "C", "clusters")
    random = {tuple(row[k] for k in keys): row["difference"] for row in rows if row["partition"] == "random"}
    return [
        row | {"times_random": random[tuple(row[k] for k in keys)] / row["difference"]}
        for row in rows
        if row["partition"] == "kernel k-means" and tuple(row[k] for k in keys) in random
    ]


def _times_rule(rows: Rows) -> Rows:
    """Of look-ups, what they save of `gss-paper`'s merger in percent, and what they lose in accuracy as published."""
    known = {(row["set"], row["budget"], row["rule"]): row for row in rows}
    found = []
    for (name, budget, rule), row in known.items():
        paper = known.get((name, budget, rule.replace("lookup-wd", "gss-paper")))
        if rule == "lookup-wd" and paper:
            found.append(row | {"merger saved %": 100 * (1 - row["merger ns"] / paper["merger ns"])})
        elif rule == "lookup-wd, last step" and paper:
            found.append(row | {"accuracy lost %": paper["accuracy %"] - row["accuracy %"]})
    return found


OF_PAPERS: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "dc_svm/table2/times": ("dc_svm/table2", _times_libsvm),
    "dc_svm/figure4/times": ("dc_svm/figure4", _times_libsvm),
    "dc_svm/table1/lead": ("dc_svm/table1", _early_lead),
    "dc_svm/figure1/random": ("dc_svm/figure1", _random_parts),
    "dc_pred/figure2/lead": ("dc_pred/figure2", _ldkl_lead),
    "bsgd/tables/saved": ("bsgd/tables", _times_rule),
}
