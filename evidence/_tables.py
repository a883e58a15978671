"""Tables of the papers' experiments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from measuring.tables import Row, Rows, by, cell, listed, markdown, pivot, short, star

Table = Callable[[Rows], str]


# BSGD ----------------------------------------------------------------------------------------------------------------

_LAST_STEP = ", last step"
_RULES = ("gss-paper", "lookup-wd", "lookup-h", "gss-precise", "full square")
_RULES = (*(rule + _LAST_STEP for rule in _RULES), "gss-paper", "lookup-wd", "lookup-h")


def _bsgd_accuracy(rows: Rows) -> str:
    """A line for each set and budget: accuracy of each rule; in brackets the paper's, beside its machine."""

    def text(row: Row) -> str:
        is_published = "paper accuracy %" in row and row["rule"].endswith("last step")
        return _score(row) + (f" ({row['paper accuracy %']:.2f})" if is_published else "")

    lines = []
    for (name, budget, epochs), mine in by(rows, "set", "budget", "epochs").items():
        known = {row["rule"]: row for row in mine}
        lines.append([f"{name}, {epochs}", budget, *(cell(text, known.get(rule)) for rule in _RULES)])
    return markdown(["set, passes", "B", *(f"`{rule}`" for rule in _RULES)], lines)


def _score(row: Row) -> str:
    return f"{row['accuracy %']:.2f}" + (f" ± {row['std']:.2f}" if "std" in row else ", one seed")


def _bsgd_time(rows: Rows) -> str:
    """A line for each set and budget: lookup-wd against golden section search, as published and ours."""
    compared = ("lookup-wd", "gss", "gss-paper")
    rows = [row for row in rows if row["rule"] in compared]
    lines = []
    for (name, budget), mine in by(rows, "set", "budget").items():
        known = {row["rule"]: row for row in mine}
        ours = known["lookup-wd"]
        frequency = cell("{merging frequency %:.1f}", ours) + cell(" ({paper merging frequency %:.0f})", ours)
        saved = cell("{total saved %:.1f}", ours) + cell(" ({paper total saved %:.1f})", ours)
        saved += cell(", {total saved q1 %:.1f} to {total saved q3 %:.1f}", ours)
        times = [cell("{merger ns:.0f} ({search ns:.0f})", known[rule]) for rule in compared]
        equal = cell("{equal % lookup-wd:.2f}", ours) + cell(" ({paper equal %:.1f})", ours)
        factors = [cell(f"{{factor {rule}:.5f}}", ours) for rule in compared]
        lines.append([name, budget, frequency, saved, *times, equal, *factors])
    header = ["set", "B", "merging frequency %", "total time saved %, quartiles"]
    header += ["ns a merger (its search), `lookup-wd`", "`gss`", "`gss-paper`", "decisions equal to `gss-paper`'s %"]
    return markdown([*header, *(f"factor `{rule}`" for rule in compared)], lines)


# OCAS ----------------------------------------------------------------------------------------------------------------


def _reach(rows: Rows) -> str:
    """A line for each set and C: seconds of each method, and those of two rivals divided by ours."""
    rows = sorted(rows, key=lambda row: (row["set"], row["C"]))
    methods = ["OCAS", "OCAS, plain", "CPA", "LIBLINEAR", "ReHLine", "Snap ML", "SGD, averaged"]
    divided = ["LIBLINEAR", "ReHLine"]
    lines = []
    for row in rows:
        limits = {method: "" if row.get(f"{method} reached") else "> " for method in methods}
        seconds = [f"{limits[method]}{row[method]:.2g}" if method in row else "-" for method in methods]
        shape = f"{row['n']:,} × {row['d']:,}"
        ratios = []
        for rival in divided:
            times = row.get(f"{rival} / OCAS", math.nan)
            ratio = f"{times:.0f}" if times >= 100 else f"{times:.2g}"
            ratios.append(limits[rival] + ratio if times == times else "-")
        lines.append([row["set"], shape, f"{row['C']:g}", *seconds, *ratios])
    return markdown(["set", "rows × columns", "C", *methods, *(f"{rival} ÷ OCAS" for rival in divided)], lines)


def _ocas_slopes(rows: Rows) -> str:
    """A line for each setting and solver: the exponent of n, and iterations."""
    sizes = [key for row in rows for key in row if key.startswith("iterations")]
    columns = sorted(set(sizes), key=lambda key: int(key.partition("= ")[2].replace(",", "")))
    lines = [
        [row.get("set", "gaussians"), row["setting"], row["solver"], cell("{slope:.2f}", row)]
        + [short(row[column]) if column in row else "" for column in columns]
        for row in rows
    ]
    return markdown(["set", "setting", "solver", "time grows as n^", *columns], lines)


# DC-SVM --------------------------------------------------------------------------------------------------------------


_TIME = "{seconds:.3g} s{star} · {accuracy:.2%}"


def _fit(form: str) -> Callable[[Row], str]:
    """The format of a fit that ended, with a star beside busy processes; of one that did not, why; and its rows."""

    def text(row: Row) -> str:
        part = f", {row['n']:,} rows" * (row["n"] < row.get("most", 0))
        if "seconds" in row:
            return cell(form, row | {"star": star(row)}) + part
        return (f"> {row['over_limit']:.0f} s" if "over_limit" in row else "crashed") + part

    return text


def _dc_svm_table2(rows: Rows) -> str:
    most = {name: max(row["n"] for row in mine) for (name,), mine in by(rows, "set").items()}
    return pivot([row | {"most": most[row["set"]]} for row in rows], ("machine",), "set", _fit(_TIME))


def _dc_svm_figure2(row: Row) -> str:
    seconds = cell(", {seconds:.2g} s", row)
    return f"{100 * row['precision']:.0f} / {100 * row['recall']:.0f}{seconds}, {row['clusters']} clusters"


def _dc_svm_points(rows: Rows) -> str:
    """Figures 3 and 4 at the tolerance of 1e-3: machines that train on all rows, or say how many."""
    rows = [
        row for row in rows if "seconds" in row and row["tol"] == 1e-3 and "stop_level" not in str(row.get("options"))
    ]
    sizes = {key: len(mine) for key, mine in by(rows, "set", "machine").items()}
    lines = []
    for row in rows:
        options = f", {row.get('options', '')}" * (sizes[row["set"], row["machine"]] > 1)
        facts = f"{row['seconds']:.2f} s · {cell('{relative_error:.0e}', row) or '–'} · {row['accuracy']:.2%}"
        options += f", {row['n']:,} rows"
        lines.append([row["set"], row["machine"] + options, facts])
    return markdown(["set", "model", "seconds · relative error of the dual · accuracy"], lines)


# DC-Pred++ -----------------------------------------------------------------------------------------------------------


def _multiple(row: Row) -> str:
    """The measured cost: with a star beside busy processes, with a dagger in units that were not measured alone."""
    return f"{row['multiple']:.1f}" + star(row, "beside") + "†" * ("linear_drift" not in row)


def _gain(row: Row) -> str:
    counted = cell("{times_closer_counted:.2f}", row) or "-"
    return counted + cell(", {times_closer:.2f} at {multiple:.2f} ×", row)


def _ablation(rows: Rows) -> str:
    landmarks = [{"n_landmarks": str(row["options"]).rpartition("n_landmarks=")[2].split()[0]} for row in rows]
    return pivot(
        [row | m for row, m in zip(rows, landmarks, strict=True)],
        ("set", "machine"),
        "n_landmarks",
        lambda row: f"{row['accuracy']:.2%} / {row['operations']:.0f} / {_multiple(row)} ×",
    )


def _dc_pred_figure4(rows: Rows) -> str:
    """A line for each set, machine and number of leaves: gains of weighted landmarks, and of the better of both."""
    joined = []
    for (name, parts, clusters, m), mine in by(rows, "set", "parts", "clusters", "n_landmarks").items():
        known = {row["landmarks"]: f"{row['gain']:+.2f} ± {row['standard_error']:.2f}" for row in mine}
        text = f"{known.get('weighted', '')} · {known.get('better of both', '')}"
        joined.append({"set": name, "machine": parts, "leaves": clusters, "m": m, "text": text})
    return pivot(joined, ("set", "machine", "leaves"), "m", lambda row: str(row["text"]))


def _verdicts(rows: Rows) -> str:
    lines = []
    for (name, machine), mine in by(rows, "set", "machine").items():
        counts: list[int] = []
        for column in ("operations", "multiple"):
            counts.append(sum(bool(row[f"ours_lower_{column}"]) for row in mine))
            counts.append(sum(f"ours_{column}" not in row for row in mine))
        published = sum(bool(row.get("published_lower_operations")) for row in mine)
        lines.append([name, machine, len(mine), *counts, published])
    header = ["set", "rival", "points", "ours lower, inner products", "of the others, cheaper than any of ours"]
    header += ["ours lower, measured cost", "of the others, cheaper than any of ours"]
    return markdown([*header, "as published lower, inner products"], lines)


def _pivot(lines: tuple[str, ...], column: str, form: Any) -> Table:
    return lambda rows: pivot(rows, lines, column, form)


def _of(table: Table, **values: Any) -> Table:
    """The table of the rows with one of these values of a column."""
    return lambda rows: table([row for row in rows if all(row[key] in among for key, among in values.items())])


FILES = {"bsgd/accuracy": "bsgd/tables", "bsgd/time": "bsgd/tables"}  # of tables that are not named after their file
TABLES: dict[str, Table] = {
    "bsgd/table1": listed(
        {
            "set": "{set}",
            "rows": "{n:,}",
            "columns": "{features}",
            "C": "{C:g}",
            "γ": "{gamma:.3g}",
            "exact model, accuracy %": "{accuracy %:.2f}",
            "the paper's": "{paper accuracy %:.2f}",
            "support vectors": "{support_vectors:,}",
        }
    ),
    "bsgd/accuracy": _bsgd_accuracy,
    "bsgd/time": _bsgd_time,
    "bsgd/figure2": listed(
        {"nodes a side": "{nodes}", "of the square": lambda row: "half" if row["set"] == "grid" else "all"}
        | {
            f"{kind} error of {what}": f"{{{kind} error of {what}:.1g}}"
            for what in ("wd", "h")
            for kind in ("largest", "mean")
        }
    ),
    "ocas/reach": _reach,
    "ocas/table2": _pivot(
        ("set", "C"),
        "solver",  # the squared hinge is another problem
        lambda row: f"{row['seconds']:.2g} s" + f", +{100 * row['excess']:.2g} %" * ("squared" not in row["solver"]),
    ),
    "ocas/table3": _pivot(("set",), "solver", "{seconds:.2g} s, {test auROC:.4f}"),
    "ocas/figure3_slopes": _ocas_slopes,
    "ocas/table4": _of(
        listed(
            {
                "set": "{set}",
                "rows": "{n:,}",
                "C": "{C:g}",
                "solver": lambda row: row.get("solver", "OCAS"),
                "seconds, two threads": "{seconds:.3f}",
                "times one thread's speed": "{speedup:.2f}",
                "of the least times": "{speedup, least:.2f}",
            }
        ),
        threads=(2,),
    ),
    "ocas/authors": lambda rows: pivot(
        [row | {"who": f"{row['solver']}, {row['threads']} thread{'s' * (row['threads'] > 1)}"} for row in rows],
        ("set", "C"),
        "who",
        lambda row: f"{row['seconds']:.2g} s, {row['rounds']:,} rounds, +{100 * row['excess']:.2g} %",
    ),
    "ocas/large": listed(
        {
            "rows": "{set}",
            "n × d": "{n:,} × {columns}",
            "GB": "{gigabytes:.2g}",
            "C": "{C:g}",
            "seconds": "{seconds:.3g}",
            "rounds": "{rounds}",
            "MB beside X": "{extra_mb:,.0f}",
            "gap": "{gap:.1e}",
        }
    ),
    "dc_svm/figure1": _of(
        _pivot(("set", "n", "C", "gamma", "clusters"), "partition", "{bound:.2e} / {difference:.2e}"), clusters=(8, 128)
    ),
    "dc_svm/figure2": _pivot(("set", "kernel", "method"), "level", _dc_svm_figure2),
    "dc_svm/table1": _pivot(
        ("set", "partition", "level"), "machine", "{accuracy:.1%} · {predict_us:.1f} µs · {clusters}"
    ),
    "dc_svm/table2": _dc_svm_table2,
    "dc_svm/figure3": _dc_svm_points,
    "dc_svm/figure4": _dc_svm_points,
    "dc_svm/sweep_totals": listed(
        {
            "set": "{set}",
            "model": "{machine}",
            "settings": "{settings}",
            "faster than scikit-learn-intelex in": "{won}",
            "than LIBSVM in": "{won_libsvm}",
            "seconds in all": "{seconds:.2f}",
            "best accuracy": "{best_accuracy:.2%}",
            "within a point of it": "{near_best}",
            "accuracy of the setting that five folds choose": "{chosen_accuracy:.2%}",
        }
    ),
    "dc_svm/clustering": listed(
        {
            "set": "{set}",
            "levels": "{machine}",
            "clusters": "{clusters}",
            "clustering, s": "{clustering_seconds:.2f}",
            "the rest, s": "{training_seconds:.2f}",
            "share": "{share:.0%}",
        }
    ),
    "dc_svm/referees": listed(
        {
            "set": "{set}",
            "model": "{machine}",
            "rows": "{n:,}",
            "seconds": lambda row: f"{row['seconds']:.1f}" if "seconds" in row else row["why"],
            "peak memory, MB": "{peak_mb:,.0f}",
            "accuracy": "{accuracy:.2%} ± {accuracy_error:.2%}",
            "balanced accuracy": "{balanced:.2%} ± {balanced_error:.2%}",
            "area under the ROC curve": "{auc:.4f} ± {auc_error:.4f}",
        }
    ),
    "dc_pred/table1": listed(
        {
            "set": "{set}",
            "model": "{machine}",
            "settings": "{options}",
            "accuracy": "{accuracy:.2%}",
            "inner products": "{operations:,.0f}",
            "× linear, measured": _multiple,
            "training, s": lambda row: f"{row['seconds']:.2f}{star(row)}",
            "n": "{n:,}",
        }
    ),
    "dc_pred/figure1_gains": _pivot(("set", "m"), "machine", _gain),
    "dc_pred/ablation": _ablation,
    "dc_pred/figure3_verdicts": _verdicts,
    "dc_pred/figure4": _dc_pred_figure4,
    "dc_pred/compress": listed(
        {
            "set": "{set}",
            "support vectors": "{support_vectors:,}",
            "`prediction_cost`": "{prediction_cost}",
            "× `SVC.predict`": "{times_sklearn:,.0f}",
            "× scikit-learn-intelex": "{times_intelex:.1f}",
            "labels that agree": "{agreement:.1%}",
            "test accuracy": "{accuracy:.2%}",
            "points": "{points:+.2f}",
            "× smaller": "{times_smaller:.0f}",
            "seconds": "{seconds:.0f}",
        }
    ),
}
