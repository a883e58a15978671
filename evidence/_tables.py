"""Tables of the papers' experiments. Below each stand the machine, the commits and the days of its rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from measuring.load import QUIET, is_quiet
from measuring.tables import markdown

Rows = list[dict[str, Any]]
Table = Callable[[Rows], str]


def source(rows: Rows) -> str:
    """Return the line below a table: machine, commits, days, and how many rows had a busy neighbour."""
    parts = [_distinct(rows, "machine_card"), "commit " + _distinct(rows, "commit"), _distinct(rows, "date")]
    busy = sum(not is_quiet(row) for row in rows)
    unknown = sum("others" not in row for row in rows)
    if busy:
        parts.append(f"{busy} of {len(rows)} rows beside other processes on more than {QUIET} of a core")
    if unknown:
        parts.append(f"load beside {unknown} of {len(rows)} rows unknown")
    return "\n*" + "; ".join(parts) + ".*\n"


def _distinct(rows: Rows, column: str) -> str:
    return ", ".join(sorted({str(row.get(column, "unknown")) for row in rows}))


def _sourced(table: Table) -> Table:
    @wraps(table)
    def both(rows: Rows) -> str:
        return table(rows) + source(rows)

    return both


def _percent(value: Any, digits: int = 2) -> str:
    return "" if value is None else f"{100 * value:.{digits}f} %"


def _number(value: Any, form: str) -> str:
    return "" if value is None else format(value, form)


def _by(rows: Rows, *columns: str) -> dict[tuple[Any, ...], Rows]:
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(column) for column in columns), []).append(row)
    return groups


def _pivot(rows: Rows, lines: Sequence[str], column: str, cell: Callable[[dict[str, Any]], str]) -> str:
    """A line for each combination of values of `lines`, a column for each value of `column`."""
    values = list(dict.fromkeys(row[column] for row in rows))
    found = []
    for key, mine in _by(rows, *lines).items():
        cells = {row[column]: cell(row) for row in mine}
        found.append([*(_short(part) for part in key), *(cells.get(value, "") for value in values)])
    names = ["model" if name == "machine" else name for name in lines]
    return markdown([*names, *(_short(value) for value in values)], found)


def _short(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


# BSGD ----------------------------------------------------------------------------------------------------------------

_RULES = ("gss-paper, last step", "lookup-wd, last step", "gss-paper", "lookup-wd", "lookup-h", "gss", "gss-precise")


def _bsgd_table1(rows: Rows) -> str:
    header = ["set", "rows", "columns", "C", "γ", "exact model, accuracy %", "the paper's", "support vectors"]
    lines = [
        [
            row["set"],
            f"{row['n']:,}",
            row["features"],
            f"{row['C']:g}",
            f"{row['gamma']:.3g}",
            f"{row['accuracy %']:.2f}",
            _number(row.get("paper accuracy %"), ".2f"),
            f"{row['support_vectors']:,}",
        ]
        for row in rows
    ]
    return markdown(header, lines)


def _bsgd_accuracy(rows: Rows) -> str:
    """A line for each set and budget: accuracy of each rule; in brackets the paper's, beside its machine."""

    def cell(row: dict[str, Any] | None) -> str:
        if row is None:
            return ""
        is_published = "paper accuracy %" in row and row["rule"].endswith("last step")
        paper = f" ({row['paper accuracy %']:.2f})" if is_published else ""
        spread = f" ± {row['std']:.2f}" if "std" in row else ", one seed"
        return f"{row['accuracy %']:.2f}{spread}{paper}"

    lines = []
    for (name, budget, epochs), mine in _by(rows, "set", "budget", "epochs").items():
        known = {row["rule"]: row for row in mine}
        lines.append([f"{name}, {epochs}", budget, *(cell(known.get(rule)) for rule in _RULES)])
    return markdown(["set, passes", "B", *(f"`{rule}`" for rule in _RULES)], lines)


def _bsgd_time(rows: Rows) -> str:
    """A line for each set and budget: lookup-wd against golden section search, as published and ours."""
    compared = ("lookup-wd", "gss", "gss-paper")
    rows = [row for row in rows if row["rule"] in compared]
    lines = []
    for (name, budget), mine in _by(rows, "set", "budget").items():
        known = {row["rule"]: row for row in mine}
        ours = known["lookup-wd"]
        paper = f" ({ours['paper total saved %']:.1f})" if "paper total saved %" in ours else ""
        frequency = f" ({ours['paper merging frequency %']:.0f})" if "paper merging frequency %" in ours else ""
        saved = f"{ours['total saved %']:.1f}{paper}, {ours['total saved q1 %']:.1f} to {ours['total saved q3 %']:.1f}"
        times = [
            f"{known[rule]['merger ns']:.0f} ({_number(known[rule].get('search ns'), '.0f') or '-'})"
            if "merger ns" in known[rule]
            else ""
            for rule in compared
        ]
        equal = _number(ours.get("equal % lookup-wd"), ".2f") + (
            f" ({ours['paper equal %']:.1f})" if "paper equal %" in ours else ""
        )
        factors = [_number(ours.get(f"factor {rule}"), ".5f") for rule in compared]
        lines.append([name, budget, f"{ours['merging frequency %']:.1f}{frequency}", saved, *times, equal, *factors])
    header = ["set", "B", "merging frequency %", "total time saved %, quartiles"]
    header += ["ns a merger (its search), `lookup-wd`", "`gss`", "`gss-paper`", "decisions equal to `gss-paper`'s %"]
    return markdown([*header, *(f"factor `{rule}`" for rule in compared)], lines) + source(rows)


def _bsgd_rival(rows: Rows) -> str:
    lines = []
    for (name, program), mine in _by(rows, "set", "program").items():
        scores, seconds = [row["accuracy %"] for row in mine], [row["seconds a pass"] for row in mine]
        rate = statistics.median(row["steps per second"] for row in mine)
        accuracy = f"{statistics.fmean(scores):.1f}, {min(scores):.1f} to {max(scores):.1f}"
        lines.append([name, program, f"{statistics.median(seconds):.3g}", f"{rate:,.0f}", accuracy, len(mine)])
    return markdown(["set", "program", "seconds a pass", "steps a second", "accuracy %, mean and range", "runs"], lines)


def _bsgd_stream(rows: Rows) -> str:
    lines = [
        [
            f"{row['rows']:,}",
            f"{row['seconds']:.2f}",
            f"{row['peak bytes'] / 2**20:.0f} MiB",
            f"{row['accuracy %']:.2f}",
        ]
        for row in rows
    ]
    return markdown(["rows", "seconds", "peak memory", "accuracy %"], lines)


def _bsgd_tradeoff(rows: Rows) -> str:
    def cell(row: dict[str, Any]) -> str:
        return (
            f"{row['accuracy %']:.2f}" + (f" ± {row['std']:.2f}" if "std" in row else "") + f", {row['seconds']:.2g} s"
        )

    return _pivot(rows, ("set", "method"), "budget", cell)


def _bsgd_figure2(rows: Rows) -> str:
    columns = [f"{kind} error of {what}" for what in ("wd", "h") for kind in ("largest", "mean")]
    lines = [
        [row["nodes"], "half" if row["set"] == "grid" else "all"] + [f"{row[c]:.1g}" for c in columns] for row in rows
    ]
    return markdown(["nodes a side", "of the square", *columns], lines)


# OCAS ----------------------------------------------------------------------------------------------------------------


def _reach(rows: Rows) -> str:
    """A line for each set and C: seconds of each method, and LIBLINEAR's divided by ours."""
    rows = sorted(rows, key=lambda row: (row["set"], row["C"]))
    methods = ["OCAS", "OCAS, plain", "CPA", "LIBLINEAR", "SGD, averaged", "Pegasos"]
    lines = []
    for row in rows:
        limits = ["" if row.get(f"{method} reached") else "> " for method in methods]
        seconds = [
            f"{limit}{row[name]:.2g}" if name in row else "-" for limit, name in zip(limits, methods, strict=True)
        ]
        times = row.get("LIBLINEAR / OCAS", math.nan)
        shape = f"{row['n']:,} × {row['d']:,}"
        least = limits[methods.index("LIBLINEAR")]
        ratio = f"{least}{times:.0f}" if times >= 100 else f"{least}{times:.2g}"
        ratio = ratio if times == times else "-"
        lines.append([row["set"], shape, f"{row['C']:g}", *seconds, ratio])
    return markdown(["set", "rows × columns", "C", *methods, "LIBLINEAR ÷ OCAS"], lines)


def _ocas_table2(rows: Rows) -> str:
    """A line for each set: seconds of every solver, and the excess of its objective over the best one."""

    def cell(row: dict[str, Any]) -> str:
        if "squared" in row["solver"]:  # another problem
            return f"{row['seconds']:.2g} s"
        return f"{row['seconds']:.2g} s, +{100 * row['excess']:.2g} %"

    return _pivot(rows, ("set", "C"), "solver", cell)


def _ocas_table3(rows: Rows) -> str:
    return _pivot(rows, ("set",), "solver", lambda row: f"{row['seconds']:.2g} s, {row['test auROC']:.4f}")


def _ocas_slopes(rows: Rows) -> str:
    """A line for each setting and solver: the exponent of n, and iterations."""
    sizes = [key for row in rows for key in row if key.startswith("iterations")]
    columns = sorted(set(sizes), key=lambda key: int(key.partition("= ")[2].replace(",", "")))
    lines = [
        [row.get("set", "gaussians"), row["setting"], row["solver"], _number(row.get("slope"), ".2f")]
        + [_short(row[column]) if column in row else "" for column in columns]
        for row in rows
    ]
    return markdown(["set", "setting", "solver", "time grows as n^", *columns], lines)


def _ocas_table4(rows: Rows) -> str:
    rows = [row for row in rows if row["threads"] == 2]
    lines = [
        [
            row["set"],
            f"{row['n']:,}",
            f"{row['C']:g}",
            row.get("solver", "OCAS"),
            f"{row['seconds']:.3f}",
            f"{row['speedup']:.2f}",
            f"{row['speedup, least']:.2f}",
        ]
        for row in rows
    ]
    header = ["set", "rows", "C", "solver", "seconds, two threads", "times one thread's speed", "of the least times"]
    return markdown(header, lines)


def _ocas_bandwidth(rows: Rows) -> str:
    lines = [
        [
            row["set"],
            f"{row['megabytes']:.0f}",
            f"{row['gigabytes_per_second']:.1f}",
            f"{row['outputs / read']:.2f}",
            f"{row['plane / read']:.2f}",
        ]
        for row in rows
    ]
    return markdown(["set", "MB", "a threaded sum, GB/s", "decision values ÷ sum", "plane ÷ sum"], lines)


def _ocas_large(rows: Rows) -> str:
    lines = [
        [
            row["set"],
            f"{row['n']:,} × {row['columns']}",
            f"{row['gigabytes']:.2g}",
            f"{row['C']:g}",
            f"{row['seconds']:.3g}",
            row["rounds"],
            f"{row['values']}, {row['sums']}, {row['copies']}",
            f"{row['extra_mb']:,.0f}",
            f"{row['gap']:.1e}",
        ]
        for row in rows
    ]
    header = ["rows", "n × d", "GB", "C", "seconds", "rounds", "decision values, sums, copies", "MB beside X", "gap"]
    return markdown(header, lines)


def _crammer_singer(rows: Rows) -> str:
    rows = [row | {"who": f"{row['solver']}, {row['threads']} thread{'s' * (row['threads'] > 1)}"} for row in rows]
    return _pivot(rows, ("set", "n", "C"), "who", lambda r: f"{r['seconds']:.2g} s, +{100 * r['excess']:.2g} %")


# DC-SVM --------------------------------------------------------------------------------------------------------------


def _dc_svm_figure1(rows: Rows) -> str:
    rows = [row for row in rows if row["clusters"] in (8, 128)]
    return _pivot(rows, ("set", "n", "C", "gamma", "clusters"), "partition", _bound)


def _bound(row: dict[str, Any]) -> str:
    return f"{row['bound']:.2e} / {row['difference']:.2e}"


def _dc_svm_figure2(rows: Rows) -> str:
    def cell(row: dict[str, Any]) -> str:
        seconds = f", {row['seconds']:.2g} s" if "seconds" in row else ""
        return f"{100 * row['precision']:.0f} / {100 * row['recall']:.0f}{seconds}"

    return _pivot(rows, ("set", "kernel", "method"), "clusters", cell)


def _dc_svm_table1(rows: Rows) -> str:
    return _pivot(rows, ("set", "partition", "clusters"), "machine", _accuracy_and_us)


def _accuracy_and_us(row: dict[str, Any]) -> str:
    return f"{100 * row['accuracy']:.1f} % · {row['predict_us']:.1f} µs"


def _dc_svm_table2(rows: Rows) -> str:
    def cell(row: dict[str, Any]) -> str:
        if "seconds" not in row:
            return f"> {row['over_limit']:.0f} s"
        return _time_and_accuracy(row)

    sizes = {name: {row["n"] for row in mine} for (name,), mine in _by(rows, "set").items()}
    named = [row | {"of": row["set"] + (f", {row['n']:,}" if len(sizes[row["set"]]) > 1 else "")} for row in rows]
    return _pivot(named, ("machine",), "of", cell)


def _time_and_accuracy(row: dict[str, Any]) -> str:
    """Seconds, with a star beside busy processes, and accuracy."""
    return f"{row['seconds']:.3g} s{_star(row, 'others')} · {100 * row['accuracy']:.2f} %"


def _star(row: dict[str, Any], column: str) -> str:
    return "*" * (float(row.get(column) or 0.0) > QUIET)


def _subsamples(rows: Rows) -> str:
    return _pivot(rows, ("machine",), "set", _time_and_accuracy)


def _dc_svm_early(rows: Rows) -> str:
    exact = {row["set"]: row["accuracy"] for row in rows if row["machine"] == "DC-SVM"}
    lines = [
        [row["set"], row["machine"].removeprefix("early, "), _percent(exact[row["set"]])]
        + [f"{-row['points_lost']:+.2f}", f"{row['seconds']:.2f}"]
        + [f"{row[key]:.1f}" for key in ("times_intelex", "times_ours", "predict_gain")]
        for row in rows
        if "points_lost" in row
    ]
    header = ["set", "clusters", "exact accuracy", "early, points", "seconds", "training, × scikit-learn-intelex"]
    return markdown([*header, "training, × our exact", "prediction, × our exact"], lines)


def _dc_svm_points(rows: Rows) -> str:
    """Figures 3 and 4 at the tolerance of 1e-3: exact machines."""
    rows = [row for row in rows if "relative_error" in row and row["tol"] == 1e-3 and "stop_level" not in _options(row)]
    sizes = {key: len(mine) for key, mine in _by(rows, "set", "machine").items()}
    cells = (f"{row['seconds']:.2f} s · {row['relative_error']:.0e} · {_percent(row['accuracy'])}" for row in rows)
    lines = [
        [row["set"], row["machine"] + f", {_options(row)}" * (sizes[row["set"], row["machine"]] > 1), cell]
        for row, cell in zip(rows, cells, strict=True)
    ]
    return markdown(["set", "model", "seconds · relative error of the dual · accuracy"], lines)


def _options(row: dict[str, Any]) -> str:
    return str(row.get("options", ""))


def _sweep_totals(rows: Rows) -> str:
    lines = [
        [
            row["set"],
            row["machine"],
            row["settings"],
            row["won"],
            row.get("won_libsvm", ""),
            f"{row['seconds']:.2f}",
            _percent(row["best_accuracy"]),
        ]
        for row in rows
    ]
    header = ["set", "model", "settings", "faster than scikit-learn-intelex in", "than LIBSVM in"]
    return markdown([*header, "seconds in all", "best accuracy"], lines)


def _clustering(rows: Rows) -> str:
    lines = [
        [
            row["set"],
            row["machine"],
            f"{row['clustering_seconds']:.2f}",
            f"{row['training_seconds']:.2f}",
            _percent(row["share"], 0),
        ]
        for row in rows
        if row["level"] == "all"
    ]
    return markdown(["set", "levels", "clustering, s", "the rest, s", "share"], lines)


def _scale(rows: Rows) -> str:
    def cell(row: dict[str, Any]) -> str:
        if "seconds" not in row:
            return f"> {row['over_limit']:.0f} s"
        return f"{row['seconds']:.3g} s · {100 * row['accuracy']:.2f} % · {row['peak_mb'] / 1000:.2f} GB"

    return _pivot(sorted(rows, key=lambda row: (row["set"], row["n"])), ("set", "n"), "machine", cell)


def _levels(rows: Rows) -> str:
    def cell(row: dict[str, Any]) -> str:
        """With a dagger where memory was not touched before: page faults."""
        half = 100 * (row.get("spread") or 0) / 2
        return f"{row['seconds']:.2f} s{_star(row, 'others')} ± {half:.0f} %, {row['ratio']:.2f}" + "†" * (
            "memory" not in row
        )

    return _pivot(rows, ("set", "n"), "machine", cell)


# DC-Pred++ -----------------------------------------------------------------------------------------------------------


def _dc_pred_table1(rows: Rows) -> str:
    lines = [
        [
            row["set"],
            row["machine"],
            row["options"],
            _percent(row["accuracy"]),
            f"{row['operations']:,.0f}",
            _multiple(row),
            f"{row['seconds']:.2f}" + _star(row, "others"),
            f"{row['n']:,}",
        ]
        for row in rows
    ]
    return markdown(
        ["set", "model", "settings", "accuracy", "inner products", "× linear, measured", "training, s", "n"], lines
    )


def _multiple(row: dict[str, Any]) -> str:
    """The measured cost: with a star beside busy processes, with a dagger in units that were not measured alone."""
    return f"{row['multiple']:.1f}" + _star(row, "beside") + "†" * ("linear_drift" not in row)


def _gains(rows: Rows) -> str:
    """A line for each set and number of landmarks, a column for each rule."""

    def cell(row: dict[str, Any]) -> str:
        counted = f"{row['times_closer_counted']:.2f}" if "times_closer_counted" in row else "-"
        return counted + (f", {row['times_closer']:.2f} at {row['multiple']:.2f} ×" if "times_closer" in row else "")

    return _pivot(rows, ("set", "m"), "machine", cell)


def _ablation(rows: Rows) -> str:
    def cell(row: dict[str, Any]) -> str:
        return f"{_percent(row['accuracy'])} / {row['operations']:.0f} / {_multiple(row)} ×"

    landmarks = [{"n_landmarks": str(row["options"]).rpartition("n_landmarks=")[2].split()[0]} for row in rows]
    return _pivot([row | m for row, m in zip(rows, landmarks, strict=True)], ("set", "machine"), "n_landmarks", cell)


def _dc_pred_figure4(rows: Rows) -> str:
    """A line for each set, machine and number of leaves: gains of weighted landmarks, and of the better of both."""
    joined = []
    for (name, parts, clusters, m), mine in _by(rows, "set", "parts", "clusters", "n_landmarks").items():
        known = {row["landmarks"]: f"{row['gain']:+.2f} ± {row['standard_error']:.2f}" for row in mine}
        text = f"{known.get('weighted', '')} · {known.get('better of both', '')}"
        joined.append({"set": name, "machine": parts, "leaves": clusters, "m": m, "text": text})
    return _pivot(joined, ("set", "machine", "leaves"), "m", lambda row: str(row["text"]))


def _verdicts(rows: Rows) -> str:
    lines = []
    for (name, machine), mine in _by(rows, "set", "machine").items():
        counts: list[int] = []
        for column in ("operations", "multiple"):
            counts.append(sum(bool(row[f"lower_{column}"]) for row in mine))
            counts.append(sum(f"ours_{column}" not in row for row in mine))
        lines.append([name, machine, len(mine), *counts])
    header = ["set", "rival", "points", "ours lower, inner products", "of the others, cheaper than any of ours"]
    return markdown([*header, "ours lower, measured cost", "of the others, cheaper than any of ours"], lines)


def _compress(rows: Rows) -> str:
    """A line for each set and cost."""
    header = ["set", "support vectors", "`prediction_cost`", "× `SVC.predict`", "× scikit-learn-intelex"]
    header += ["labels that agree", "test accuracy", "points", "× smaller", "seconds"]
    lines = []
    for row in rows:
        shares = [f"{row['agreement']:.1%}", f"{row['accuracy']:.2%}", f"{row['points']:+.2f}"]
        times = [f"{row['times_sklearn']:,.0f}", f"{row['times_intelex']:.1f}"]
        end = [f"{row['times_smaller']:.0f}", f"{row['seconds']:.0f}"]
        lines.append([row["set"], f"{row['support_vectors']:,}", row["prediction_cost"], *times, *shares, *end])
    return markdown(header, lines)


FILES = {  # of tables that are not named after their file
    "bsgd/accuracy": "bsgd/tables",
    "bsgd/time": "bsgd/tables",
}
_OF_OTHERS: dict[str, Table] = {  # made from other tables, or of scripts whose rows have no commit
    "bsgd/time": _bsgd_time,
    "ocas/reach": _reach,
    "ocas/figure3_slopes": _ocas_slopes,
    "dc_svm/sweep_totals": _sweep_totals,
    "dc_pred/compress": _compress,
    "dc_pred/figure1_gains": _gains,
    "dc_pred/figure3_verdicts": _verdicts,
}
_MEASURED: Iterable[tuple[str, Table]] = (
    ("bsgd/table1", _bsgd_table1),
    ("bsgd/accuracy", _bsgd_accuracy),
    ("bsgd/rival", _bsgd_rival),
    ("bsgd/stream", _bsgd_stream),
    ("bsgd/tradeoff", _bsgd_tradeoff),
    ("bsgd/figure2", _bsgd_figure2),
    ("ocas/table2", _ocas_table2),
    ("ocas/table3", _ocas_table3),
    ("ocas/table4", _ocas_table4),
    ("ocas/bandwidth", _ocas_bandwidth),
    ("ocas/large", _ocas_large),
    ("ocas/crammer_singer", _crammer_singer),
    ("dc_svm/figure1", _dc_svm_figure1),
    ("dc_svm/figure2", _dc_svm_figure2),
    ("dc_svm/table1", _dc_svm_table1),
    ("dc_svm/table2", _dc_svm_table2),
    ("dc_svm/figure3", _dc_svm_points),
    ("dc_svm/figure4", _dc_svm_points),
    ("dc_svm/early", _dc_svm_early),
    ("dc_svm/clustering", _clustering),
    ("dc_svm/scale", _scale),
    ("dc_svm/levels", _levels),
    ("dc_svm/subsamples", _subsamples),
    ("dc_pred/table1", _dc_pred_table1),
    ("dc_pred/ablation", _ablation),
    ("dc_pred/figure4", _dc_pred_figure4),
)
TABLES: dict[str, Table] = _OF_OTHERS | {name: _sourced(table) for name, table in _MEASURED}
