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
from measuring.tables import by, markdown

Row = dict[str, Any]
Rows = list[Row]

_CLAIMS = Path(__file__).resolve().parent / "claims.toml"
PAPERS = ("dc_svm", "dc_pred", "ocas", "bsgd")
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
    """Return the claims of a paper, one of `PAPERS`."""
    return list(tomllib.loads(_CLAIMS.read_text(encoding="utf-8"))[paper])


def table(paper: str) -> str:
    """Return the table of a paper's claims."""
    header = ["claim", "in the paper", "here", "holds", "commits"]
    return markdown(header, [_line(item) for item in items(paper)])


def _line(item: dict[str, Any]) -> list[str]:
    here = _FIGURE.sub(lambda match: look_up(*match.groups()) or "–", item["here"])
    claim = f"{item['claim']} ({item['where']})"
    return [claim, item["published"], here, f"**{verdict(item)}**{item.get('remark', '')}", _commits(item)]


def verdict(item: dict[str, Any]) -> str:
    """Return yes or no, by whether a figure is at least or at most what the claim needs; or that there is no figure."""
    text = look_up(*item["figure"].split(" ", 1)) if "figure" in item else ""
    if not text:
        return "not measured"
    found = float(text)
    return "yes" if item.get("least", found) <= found <= item.get("most", found) else "no"


def _commits(item: dict[str, Any]) -> str:
    """The commits of the files that the claim is read from."""
    names = {match.group(1) for match in _FIGURE.finditer(item["here"] + " {" + item.get("figure", "") + "}")}
    rows = [row for name in sorted(names) for row in rows_of(name)]
    return ", ".join(dict.fromkeys(str(row["commit"]) for row in rows if "commit" in row))


# Figures of results files, and of rows computed from them -------------------------------------------------------------


def look_up(name: str, asked: str) -> str:
    """Return the figure `asked` for (as `figure` takes it) of a results file, or of rows derived from one.

    Nothing where no row has it: it comes with the next run.
    """
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

    Returns
    -------
    str
        Nothing if no row is left.

    Raises
    ------
    ValueError
        If several rows are left and no function of them is named.
    """
    column, *words = shlex.split(asked)
    form = words.pop()
    of_many = _OF_MANY[words.pop()] if words and words[-1] in _OF_MANY else None
    chosen = [row for row in rows if column in row and all(_holds(row, word) for word in words)]
    if not chosen:
        return ""
    if of_many is None and len(chosen) > 1:
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


def unmeasured(paper: str) -> list[str]:
    """Return the figures that a paper's claims ask for and no row has."""
    texts = (item["here"] + (" {" + item["figure"] + "}" if "figure" in item else "") for item in items(paper))
    asked = [match.groups() for text in texts for match in _FIGURE.finditer(text)]
    return [f"{name} {words}" for name, words in asked if not look_up(name, words)]


def _times_libsvm(rows: Rows) -> Rows:
    """Timed machines, with LIBSVM's time at 1e-3 on their set divided by theirs.

    LIBSVM counts with its limit where it was ended, and with fewer rows of large sets: at least so many times faster.
    """
    libsvm = {row["set"]: row for row in rows if row["machine"] == "LIBSVM" and row["tol"] == 1e-3}
    found = []
    for row in rows:
        if "seconds" in row and (theirs := libsvm.get(row["set"])):
            times = theirs.get("seconds", theirs.get("over_limit", 0.0)) / row["seconds"]
            lead = {"lead": row["accuracy"] - theirs["accuracy"]} if "accuracy" in theirs else {}
            found.append(row | {"times_libsvm": times} | lead)
    return found


def _fastest_equal(rows: Rows) -> Rows:
    """For each set and form of ours, as published or by our defaults: LIBSVM's time / the least at its accuracy."""
    found = []
    for name in dict.fromkeys(row["set"] for row in rows):
        for form, is_of in (("published", True), ("ours", False)):
            equal = [
                row
                for row in _times_libsvm(rows)
                if row["set"] == name
                and row["machine"].startswith("DC-SVM")
                and ("paper" in row["machine"]) == is_of
                and row.get("lead", -1) >= 0
            ]
            if equal:
                found.append(max(equal, key=lambda row: float(row["times_libsvm"])) | {"form": form})
    return found


def _against_intelex(rows: Rows) -> Rows:
    """For each set the best accuracy with an intercept, scikit-learn-intelex's, less ours without one; in points."""
    return _lead(rows, ("set",), "scikit-learn-intelex", ("DC-SVM",))


def _robustness(rows: Rows) -> Rows:
    """For each set the settings of C and gamma within a point of the best: of early models, less LIBSVM's."""
    near = {(row["set"], row["machine"]): row for row in rows if "near_best" in row}
    return [
        row | {"more": row["near_best"] - near[name, "LIBSVM"]["near_best"]}
        for (name, machine), row in near.items()
        if machine == "early, 16 clusters, the paper's rule" and (name, "LIBSVM") in near
    ]


def _lead(rows: Rows, keys: tuple[str, ...], ours: str, rivals: tuple[str, ...]) -> Rows:
    """A row for each cell of `keys`: how far the best accuracy of ours is above the rivals' best one."""
    found = []
    for cell, mine in by(rows, *keys).items():
        best, rival = ([row["accuracy"] for row in mine if row["machine"] in who] for who in ((ours,), rivals))
        if best and rival:
            commits = {str(row["commit"]) for row in mine if "commit" in row}
            lead = {"lead": max(best) - max(rival), "commit": ", ".join(sorted(commits))}
            found.append(dict(zip(keys, cell, strict=True)) | lead)
    return found


def _early_lead(rows: Rows) -> Rows:
    """Early prediction's accuracy less that of the best of naive and both committees; its speed over naive's."""
    keys = ("set", "partition", "level")
    rows = [row for row in rows if "level" in row]
    us = {(*(row[key] for key in keys), row["machine"]): row["predict_us"] for row in rows}
    leads = _lead(rows, keys, "early", ("naive", "bcm", "platt"))
    cells = [tuple(row[key] for key in keys) for row in leads]
    return [row | {"faster": us[*cell, "naive"] / us[*cell, "early"]} for row, cell in zip(leads, cells, strict=True)]


def _ldkl_lead(rows: Rows) -> Rows:
    """For each set, ours less LDKL in accuracy, of all machines of at most 20 inner products, LDKL's most."""
    few = [row for row in rows if row["operations"] <= 20]
    return _lead(few, ("set",), "DC-Pred++", ("LDKL",))


def _published_against_ldkl(rows: Rows) -> Rows:
    """For each set the more accurate model as published against LDKL: accuracy, training time and cost."""
    found = []
    for name in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == name]
        ours, theirs = ([row for row in mine if row["machine"] == who] for who in ("DC-Pred++ as published", "LDKL"))
        if ours and theirs:
            best = max(ours, key=lambda row: float(row["accuracy"]))
            others = [row["accuracy"] for row in mine if row not in ours and row["machine"] in _PUBLISHED_RIVALS]
            ratios = {f"times_{key}": theirs[0][key] / best[key] for key in ("seconds", "operations", "multiple")}
            found.append(best | {"is_best": int(best["accuracy"] >= max(others))} | ratios)
    return found


_PUBLISHED_RIVALS = ("LDKL", "k-means Nyström", "AESVM", "reduced set", "Fastfood")


def _lemma_1(rows: Rows) -> Rows:
    """For each set and number of landmarks the error of the polynomials' regression / that of the products."""
    products = {(row["set"], row["m"]): row["error"] for row in rows if row["machine"] == "+ polynomial"}
    steps = [row for row in rows if row["machine"] == "+ regression, two steps"]
    return [row | {"times": row["error"] / products[row["set"], row["m"]]} for row in steps]


def _rounds_saved(rows: Rows) -> Rows:
    """For each set and C the iterations of Algorithm 1 / those without its line search."""
    last = {(row["set"], row["C"], row["solver"]): row for row in rows}
    return [
        row | {"share": row["iterations"] / last[name, C, "CPA"]["iterations"]}
        for (name, C, solver), row in last.items()
        if solver == "OCAS, plain" and (name, C, "CPA") in last
    ]


def _of_svmocas(rows: Rows) -> Rows:
    """Algorithm 1 of ours against the authors' program on one thread, each to its gap: rounds and seconds."""
    known = {(row["set"], row["C"], row["solver"], row["threads"]): row for row in rows}
    found = []
    for (name, C, solver, threads), row in known.items():
        theirs = known.get((name, C, "svmocas", threads))
        if solver == "OCAS, plain" and theirs and max(row["excess"], theirs["excess"]) <= 1e-3:
            one = known[name, C, "svmocas", 1]["seconds"]
            ratios = {"rounds_ratio": row["rounds"] / theirs["rounds"], "times": theirs["seconds"] / row["seconds"]}
            found.append(row | ratios | {"their_speedup": one / theirs["seconds"]})
    return found


def _frequencies(rows: Rows) -> Rows:
    """For each set how many times more often the smaller budget merges than the larger one."""
    known = {(row["set"], row["budget"]): row for row in rows if row["rule"] == "lookup-wd"}
    return [
        row | {"times_as_often": row["merging frequency %"] / known[name, 500]["merging frequency %"]}
        for (name, budget), row in known.items()
        if budget == 100 and (name, 500) in known
    ]


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
    "dc_svm/table2/equal": ("dc_svm/table2", _fastest_equal),
    "dc_svm/figure3/times": ("dc_svm/figure3", _times_libsvm),
    "dc_svm/figure3/equal": ("dc_svm/figure3", _fastest_equal),
    "dc_svm/figure4/times": ("dc_svm/figure4", _times_libsvm),
    "dc_svm/table1/lead": ("dc_svm/table1", _early_lead),
    "dc_svm/figure1/random": ("dc_svm/figure1", _random_parts),
    "dc_svm/sweep/intercept": ("dc_svm/sweep", _against_intelex),
    "dc_svm/sweep_totals/robustness": ("dc_svm/sweep_totals", _robustness),
    "dc_pred/figure1/lemma": ("dc_pred/figure1", _lemma_1),
    "dc_pred/figure2/lead": ("dc_pred/figure2", _ldkl_lead),
    "dc_pred/table1/ldkl": ("dc_pred/table1", _published_against_ldkl),
    "ocas/figure1/saved": ("ocas/figure1", _rounds_saved),
    "ocas/authors/ratios": ("ocas/authors", _of_svmocas),
    "bsgd/tables/saved": ("bsgd/tables", _times_rule),
    "bsgd/tables/frequencies": ("bsgd/tables", _frequencies),
}
