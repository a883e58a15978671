"""Tables of seconds by the number of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from measuring.tables import markdown

Rows = list[dict[str, Any]]


def _scale(rows: Rows) -> str:
    """A line for each number of rows: the exact machine, the early one, and scikit-learn-intelex's."""
    header = ["training rows", "exact", "support vectors", "relative gap", "decision values of all rows", "accuracy"]
    header += ["early", "accuracy", "scikit-learn-intelex", "its fit ÷ exact"]
    lines = []
    for n, found in _by_rows(rows).items():
        exact, early, rival = (found.get(name) for name in ("exact", "early", "intelex"))
        cells = [f"{n:,}"]
        cells += (
            [
                f"{exact['seconds']:.2g} s",
                f"{exact['support_vectors']:,}",
                f"{exact['relative_gap']:.1e}",
                f"{exact['decision_seconds']:.2g} s",
                f"{exact['accuracy']:.2f} %",
            ]
            if exact
            else ["-"] * 5
        )
        cells += [f"{early['seconds']:.2g} s", f"{early['accuracy']:.2f} %"] if early else ["-"] * 2
        ratio = f"{rival['seconds'] / exact['seconds']:.1f}" if rival and exact else "-"
        lines.append([*cells, f"{rival['seconds']:.3g} s" if rival else "-", ratio])
    return markdown(header, lines)


def _how_long(rows: Rows) -> str:
    """A line for each number of rows: seconds and accuracy of the early and the exact machine, seconds of the rival."""
    lines = []
    for n, found in _by_rows(rows).items():
        cells = [cell for name in ("early", "exact") for cell in _fit(found[name])]
        rival = f"{found['intelex']['seconds']:.3g} s" if "intelex" in found else "-"
        lines.append([f"{n:,}", *cells, rival])
    return markdown(
        ["training rows", "early prediction", "accuracy", "exact", "accuracy", "scikit-learn-intelex"], lines
    )


def _larger_sets(rows: Rows) -> str:
    """A line for each machine."""
    header = ["set", "training rows", "model", "seconds", "support vectors", "relative gap", "accuracy", "memory"]
    lines = []
    for row in rows:
        gap, memory = f"{row['relative_gap']:.1e}", f"{row['memory'] / 2**20:,.0f} MiB"
        fit = [row["machine"], f"{row['seconds']:.3g}", f"{row['support_vectors']:,}", gap]
        lines.append([row["set"], f"{row['rows']:,}", *fit, f"{row['accuracy']:.2f} %", memory])
    return markdown(header, lines)


def _streams(rows: Rows, of_labels: str, columns: Sequence[tuple[bool, float]]) -> list[list[str]]:
    lines = []
    mine = [row for row in rows if row.get("labels") == of_labels]
    for name, order in dict.fromkeys((row["set"], row["order"]) for row in mine):
        own = [row for row in mine if (row["set"], row["order"]) == (name, order)]
        known = {(row["average"], row["lam"]): row["accuracy"] for row in own}
        lines.append([f"{name}, own order" if order == "own" else name, *(f"{known[c]:.2f}" for c in columns)])
    return lines


def _streams_lam(rows: Rows) -> str:
    """Accuracy over lam, the average of the steps."""
    lams = sorted({row["lam"] for row in rows if "lam" in row}, reverse=True)
    return markdown(["set", *(f"{lam:g}" for lam in lams)], _streams(rows, "stay", [(True, lam) for lam in lams]))


def _streams_turned(rows: Rows) -> str:
    """Accuracy where labels change, with the average and with the machine of the last step."""
    columns = [(average, lam) for average in (True, False) for lam in (1e-4, 1e-6)]
    header = [f"{'average' if average else 'last step'}, λ = {lam:g}" for average, lam in columns]
    return markdown(["set", *header], _streams(rows, "turned", columns))


def _early_millions(rows: Rows) -> str:
    """A line for each number of rows."""
    header = ["rows", "clusters", "fit", "processor time", "data", "memory beside them", "accuracy", "a prediction"]
    lines = [
        [
            f"{row['rows']:,}",
            row["clusters"],
            f"{row['seconds']:.0f} s",
            f"{row['cpu_seconds']:.0f} s",
            f"{row['data'] / 1e6:,.0f} MB",
            f"{row['memory'] / 1e6:,.0f} MB",
            f"{row['accuracy']:.1f} %",
            f"{row['predict_us']:.0f} µs",
        ]
        for row in rows
    ]
    return markdown(header, lines)


def _fit(row: dict[str, Any]) -> tuple[str, str]:
    return f"{row['seconds']:.2g} s", f"{row['accuracy']:.1f} %"


def _by_rows(rows: Rows) -> dict[int, dict[str, dict[str, Any]]]:
    found: dict[int, dict[str, dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["rows"], {})[row["machine"]] = row
    return found


FILES = {"how_long": "scale", "streams_turned": "streams"}  # of tables that are not named after their file

TABLES: dict[str, Callable[[Rows], str]] = {
    "scale": _scale,
    "how_long": _how_long,
    "larger_sets": _larger_sets,
    "early_millions": _early_millions,
    "streams": _streams_lam,
    "streams_turned": _streams_turned,
}
