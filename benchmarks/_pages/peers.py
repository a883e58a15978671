"""Tables of exact solvers, tuning, reliability and small data."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from statistics import geometric_mean
from typing import Any

from measuring.tables import Rows, markdown


def _kernel_svm(rows: Rows) -> str:
    """A line for each set: seconds, the time of scikit-learn-intelex divided by ours, and ours by the limit."""
    sets, quotients = _machines_of_sets(rows), kernel_svm_quotients(rows)
    lines = []
    for row in quotients:
        machines = sets[row["set"]]
        ours, rival = (_faster(machines, key) for key in ("widemargin", "sklearnex"))
        forms = [machines[f"widemargin, no {part}"] for part in ("level", "intercept")]
        seconds = (f"{machine['seconds']:.2f} s" for machine in (ours, *forms, rival))
        shape = f"{rival['n']:,} × {rival['n_features']}"
        lines.append([row["set"].partition(":")[0], shape, *seconds, *(f"{row[key]:.2f}" for key in _QUOTIENTS)])
    means = [f"**{geometric_mean([row[key] for row in quotients]):.2f}**" for key in _QUOTIENTS]
    lines.append(["geometric mean", *[""] * 5, *means])
    header = ["set", "training rows × features", "default", "no level", "no intercept", "scikit-learn-intelex"]
    return markdown([*header, "its fit ÷ default", "its predict ÷ default", "default ÷ limit"], lines)


_QUOTIENTS = ("fit", "predict", "limit")


def kernel_svm_quotients(rows: Rows) -> Rows:
    """Rows with the rival's times of `fit` and `predict` divided by ours, and ours by the limit, as the table shows."""
    found = []
    for name, machines in _machines_of_sets(rows).items():
        ours, rival = (_faster(machines, key) for key in ("widemargin", "sklearnex"))
        fit, predict = (rival[key] / ours[key] for key in ("seconds", "predict_us"))
        limit = ours["seconds"] / ours["limit_seconds"]
        found.append({"set": name, "fit": fit, "predict": predict, "limit": limit})
    return found


def _machines_of_sets(rows: Rows) -> dict[str, dict[str, dict[str, Any]]]:
    sets: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        if "seconds" in row:  # others are means
            sets[row["set"]][row["competitor"]] = row
    return sets


def _kernel_svm_float64(rows: Rows) -> str:
    """A line for each set of float64 rows: seconds of both, and the quotients of fits and predictions."""
    sets, quotients = _machines_of_sets(rows), kernel_svm_quotients(rows)
    lines = []
    for row in quotients:
        ours, rival = (_faster(sets[row["set"]], key) for key in ("widemargin", "sklearnex"))
        seconds = (f"{machine['seconds']:.2f} s" for machine in (ours, rival))
        shown = (f"{row[key]:.2f}" for key in ("fit", "predict"))
        lines.append([row["set"].partition(":")[0], f"{ours['n']:,}", *seconds, *shown])
    means = [f"**{geometric_mean([row[key] for row in quotients]):.2f}**" for key in ("fit", "predict")]
    lines.append(["geometric mean", *[""] * 3, *means])
    return markdown(["set", "rows", "ours", "scikit-learn-intelex", "its fit ÷ ours", "its predict ÷ ours"], lines)


def _early(rows: Rows) -> str:
    """A line for each set: the fastest early machine that loses at most half a point, or the one that loses least."""
    sets: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        sets[row["set"]][row["competitor"]] = row
    lines = []
    for best in early_choices(rows):
        name, machines = best["set"], sets[best["set"]]
        rivals = [row for key, row in machines.items() if key.startswith("sklearnex")]
        rival = min(rivals, key=lambda row: row["seconds"])
        seconds = [f"{row['seconds']:.2f} s" for row in (machines["widemargin"], rival, best)]
        shape = f"{best['n']:,} × {best['n_features']}"
        parts = [f"{best['solving_seconds'] / best['seconds']:.0%}", f"{best['predict_us']:.2f}"]
        ratios = [f"{best['times_exact']:.1f}", f"{best['times_rival']:.1f}", f"{best['points_lost']:.2f}", *parts]
        lines.append([name.partition(":")[0], shape, *seconds, best["n_clusters"], *ratios])
    header = ["set", "training rows × features", "exact", "scikit-learn-intelex", "early", "clusters", "exact ÷ early"]
    header += ["its fit ÷ early", "points lost", "solving clusters", "µs to predict a row"]
    return markdown(header, lines)


def early_choices(rows: Rows) -> Rows:
    """The row of each set's early machine that the table shows."""
    sets: dict[str, Rows] = defaultdict(list)
    for row in rows:
        if row["competitor"].startswith("early"):
            sets[row["set"]].append(row)
    return [min(early, key=lambda row: (max(row["points_lost"], 0.5), row["seconds"])) for early in sets.values()]


def _faster(machines: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """The row of a machine on dense rows, or on CSR rows if that fit was faster."""
    return min((machines[key] for key in (name, f"{name}, CSR") if key in machines), key=lambda row: row["seconds"])


def _intercept(rows: Rows) -> str:
    """A line for each set: seconds, support vectors and accuracy with an intercept, and without."""
    machines = {(row["set"], row["competitor"]): row for row in rows if "seconds" in row}
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows if "seconds" in row):
        pair = [machines[name, kind] for kind in ("widemargin", "widemargin, no intercept")]
        cells = [("seconds", "{:.2f} s"), ("support_vectors", "{:,}"), ("accuracy", "{:.2%}")]
        shown = [form.format(row[key]) for key, form in cells for row in pair]
        lines.append([name.partition(":")[0], f"{pair[0]['n']:,}", *shown])
    header = [f"{what}{part}" for what in ("fit", "support vectors", "accuracy") for part in ("", ", no intercept")]
    return markdown(["set", "rows", *header], lines)


_SEARCHES = ("exhaustive", "exhaustive, cold", "GridSearchCV, ours", "GridSearchCV, intelex")


def _tuning(rows: Rows) -> str:
    """A line for each set: seconds of our search, how many times as long the others take, and what leaving costs."""
    lines, quotients = [], tuning_quotients(rows)
    for row in quotients:
        ours = row["default"]
        ratios = (f"{row[other]:.1f}" for other in _SEARCHES)
        cells = f"{int(ours['seen'])} of {len(ours['means'].split())}"
        seconds = f"{ours['seconds']:.1f} s"
        lines.append([row["set"], f"{int(ours['n']):,}", seconds, *ratios, cells, f"{ours['regret']:.2f}"])
    means = (f"{geometric_mean([row[other] for row in quotients]):.1f}" for other in _SEARCHES)
    lines.append(["geometric mean", "", "", *means, "", ""])
    header = ["set", "rows", "default", *(f"{other} ÷ default" for other in _SEARCHES), "cells in all folds"]
    return markdown([*header, "points lost"], lines)


def tuning_quotients(rows: Rows) -> Rows:
    """A row for each set on which all searches are measured: their times divided by the default's, and its own row."""
    sets: dict[tuple[str, Any], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        if "seconds" in row:  # others are means, of the sets of two classes
            sets[row["set"], row["n"]][row["machine"]] = row
    found = []
    for (name, _), machines in sets.items():
        if all(search in machines for search in _SEARCHES):
            ours, own = machines["default"], machines["default"]["seconds"]
            row = {search: machines[search]["seconds"] / own for search in _SEARCHES}
            rival = row["GridSearchCV, intelex"] / row["exhaustive"]
            found.append({"set": name, "default": ours, **row, "intelex ÷ exhaustive": rival})
    return found


def _linear_path(rows: Rows) -> str:
    """A line for each set: seconds of our search, the other machines' divided by them, and accuracies."""
    sets: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        sets[row["set"]][row["machine"]] = row
    others = [machine for machine in dict.fromkeys(row["machine"] for row in rows) if machine != "OCASClassifierCV"]
    lines = []
    for name, machines in sets.items():
        ours = machines["OCASClassifierCV"]
        ratios = [f"{machines[other]['ratio']:.2f}" if other in machines else "-" for other in others]
        shape = [f"{ours['n']:,} × {ours['d']:,}", f"{ours['seconds']:.2f} s"] if "n" in ours else ["", ""]
        scores = [f"{machines[key]['score']:.2%}" if "n" in ours else "" for key in ("OCASClassifierCV", "LIBLINEAR")]
        lines.append([name, *shape, *ratios, *scores])
    header = ["set", "rows × columns", "OCASClassifierCV", *(f"{other} ÷ ours" for other in others)]
    return markdown([*header, "accuracy", "LIBLINEAR's"], lines)


def _shrinking(rows: Rows) -> str:
    """A line for each fit: counts with shrinking, and without."""
    fits: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        fits[row["set"], row["rows"], row["levels"]][str(row["shrinking"])] = row
    lines = []
    for (name, n, levels), pair in fits.items():
        both = [pair[key] for key in ("True", "False")]
        cells = [("rows of n", "{:.2f}"), ("active", "{:.2f}"), ("rounds", "{:.0f}")]
        levels = "as chosen" if levels == "auto" else "none"
        lines.append([name, f"{int(n):,}", levels, *(form.format(row[key]) for key, form in cells for row in both)])
    header = [f"{what}{part}" for what in ("rows of n", "active", "rounds") for part in ("", ", before")]
    return markdown(["set", "rows", "levels", *header], lines)


def _kernel_entries(rows: Rows) -> str:
    """A line for each set: nanoseconds of an entry, before and now."""
    kinds = ("matrix", "with transpose", "sum")
    of = {(row["label"], row["set"]): row for row in rows}
    lines = [
        [row["set"], row["n_features"], *(f"{of['before', row['set']][kind]:.2f}, {row[kind]:.2f}" for kind in kinds)]
        for row in rows
        if row["label"] == "now"
    ]
    return markdown(["set", "columns", "a kernel matrix", "and its transpose", "a sum of rows"], lines)


def _landmarks(rows: Rows) -> str:
    """A line for each set and number of landmarks: error and seconds by how they are chosen."""
    of, methods = {(row["set"], row["m"], row["landmarks"]): row for row in rows}, ("kmeans", "uniform", "rpcholesky")
    lines = []
    for name, m in dict.fromkeys((row["set"], row["m"]) for row in rows):
        found = [of[name, m, method] for method in methods]
        lines.append([name, m, *(f"{row['error']:.2g}, {row['seconds']:.2f} s" for row in found)])
    return markdown(["set", "landmarks", *methods], lines)


def _losses(rows: Rows) -> str:
    """A line for each loss and set: seconds of ours and of the fastest rival for each C; for a loss the mean ratio."""
    strengths, lines = list(dict.fromkeys(row["C"] for row in rows)), []
    for loss in dict.fromkeys(row["loss"] for row in rows):
        own = [row for row in rows if row["loss"] == loss]
        for name in dict.fromkeys(row["set"] for row in own):
            cells = [f"{row['seconds']:.2g}, {row['rival_seconds']:.2g}" for row in own if row["set"] == name]
            lines.append([loss, name, *cells, ""])
        ratios = [row["rival_seconds"] / row["seconds"] for row in own]
        known = [ratio for ratio in ratios if 0 < ratio < math.inf]
        mean = math.exp(sum(map(math.log, known)) / len(known))
        lines[-1][-1] = f"{mean:.1f} ({len(known)} of {len(own)})"
    return markdown(["loss", "set", *(f"C = {C:g}" for C in strengths), "rival ÷ ours (cells)"], lines)


def _laplacian_entries(rows: Rows) -> str:
    """A line for each set and kind of rows: nanoseconds of an RBF entry, and of a Laplacian one before and now."""
    kinds = ("matrix", "with transpose", "sum")
    of = {(row["label"], row["kernel"], row["set"], row["rows"]): row for row in rows}
    lines = []
    for label, kernel, *where in of:
        if (label, kernel) == ("now", "laplacian"):
            compared = [of[(*which, *where)] for which in (("now", "rbf"), ("before", kernel), (label, kernel))]
            cells = [", ".join(f"{row[kind]:.2f}" for row in compared) for kind in kinds]
            lines.append([where[0], compared[-1]["n_features"], where[1], *cells])
    return markdown(["set", "columns", "rows", "a kernel matrix", "and its transpose", "a sum of rows"], lines)


def _seconds(rows: Rows) -> str:
    """A line for each set and version: seconds of a fit, and their shares by kind of work."""
    kinds = ["clustering", "kernel rows", "matrices", "copies", "working sets", "choices", "other"]
    order = {name: k for k, name in enumerate(dict.fromkeys((row["set"], row["rows"]) for row in rows))}
    lines = []
    for row in sorted(rows, key=lambda row: (order[row["set"], row["rows"]], row["label"])):
        shares = [f"{row[kind] / row['seconds']:.0%}" for kind in kinds]
        counts = [row["set"], f"{int(row['rows']):,}", row["label"]]
        lines.append([*counts, *(f"{row[key]:.2f}" for key in ("first", "seconds")), *shares, f"{row['entries']:.2f}"])
    return markdown(["set", "rows", "version", "first fit", "later fit", *kinds, "entries"], lines)


def _constants(rows: Rows) -> str:
    """A line for each value of a constant of the dual solver: by how much the counts change on each problem."""
    lines: dict[tuple[str, str], list[str]] = defaultdict(list)
    dual = [row for row in rows if row["constant"].startswith("solvers/dual/solver.py") and row["measure"] == "counts"]
    for row in dual:
        lines[row["constant"].partition(":")[2], str(row["value"])].append(f"{row['change']:+.0%}")
    problems = list(dict.fromkeys(row["problem"] for row in dual))
    return markdown(
        ["constant", "value", *problems], [[f"`{name}`", value, *cells] for (name, value), cells in lines.items()]
    )


def _limits_time(rows: Rows) -> str:
    """A line for each case: seconds over each limit."""
    limits = sorted({row["max_time"] for row in rows})
    over = {(row["case"], row["max_time"]): row["over"] for row in rows}
    shapes = {row["case"]: f"{int(row['rows']):,} × {int(row['columns']):,}" for row in rows}
    header = ["fit", "rows × columns", *(f"over {limit:g} s" for limit in limits)]
    return markdown(header, [[case, shapes[case], *(f"{over[case, t]:.2f}" for t in limits)] for case in shapes])


def _limits_interrupts(rows: Rows) -> str:
    """A line for each case: how its interrupts ended, and how soon."""
    cases: dict[str, Rows] = defaultdict(list)
    for row in rows:
        cases[row["case"]].append(row)
    lines = []
    for case, mine in cases.items():
        known = ("stopped", "checks", "finished")
        ends = Counter(row["outcome"] if row["outcome"] in known else "wrong" for row in mine)
        seconds = sorted(row["seconds"] for row in mine if row["outcome"] == "stopped")
        middle, last = (f"{seconds[len(seconds) // 2]:.2f}", f"{seconds[-1]:.2f}") if seconds else ("-", "-")
        lines.append([case, *(ends[outcome] for outcome in (*known, "wrong")), middle, last])
    header = ["fit", "stopped", "in the checks", "finished before", "wrong", "median seconds", "longest"]
    return markdown(header, lines)


def _soak(rows: Rows) -> str:
    """One line for the whole run."""
    total = {name: int(sum(row[name] for row in rows)) for name in ("fits", "limited", "different")}
    grown = rows[-1]["megabytes"] - rows[len(rows) // 2 - 1]["megabytes"]
    header = ["fits", "with a limit", "different for another n_jobs", "MB more at the end than half-way", "threads"]
    return markdown(header, [[*total.values(), f"{grown:.0f}", int(rows[-1]["threads"])]])


def _model_files(rows: Rows) -> str:
    """A line for each way of writing: what became of its changes."""
    ends = [name for name in rows[0] if name not in ("model", "format", "changes")]
    lines = []
    for way in dict.fromkeys(row["format"] for row in rows):
        mine = [row for row in rows if row["format"] == way]
        lines.append([way, *(f"{int(sum(row[name] for row in mine)):,}" for name in ("changes", *ends))])
    return markdown(["written with", "changes", *ends], lines)


def _memory(rows: Rows) -> str:
    """A line for each case and layout: the larger of fit's and predict's megabytes for each number of classes."""
    classes = sorted({int(row["classes"]) for row in rows})
    cells = {
        (row["case"], row["layout"], int(row["classes"])): f"{max(row['fit'], row['predict']):.0f}"
        if "fit" in row
        else str(row["outcome"])
        for row in rows
    }
    lines = [[*key, *(cells[(*key, k)] for k in classes)] for key in dict.fromkeys(key[:2] for key in cells)]
    budget = int(rows[0]["budget"])
    return markdown(["fit and predict", "layout", *(f"MB of {budget}, {k} classes" for k in classes)], lines)


def _linear_text(rows: Rows) -> str:
    """A line for each set and number of columns: the ratios for each C, and what the rule takes."""
    groups: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in rows:
        groups[row["set"], row["n"], row["d"]].append(row)
    costs = [row["C"] for row in next(iter(groups.values()))]
    lines = [
        [name, f"{n:,} × {d:,}", f"{d / n:.2g}", *map(_ratio_to_dual, group), group[0]["rule"]]
        for (name, n, d), group in groups.items()
    ]
    header = ["set", "rows × columns", "columns ÷ rows", *(f"C = {C:g}" for C in costs), "taken"]
    return markdown(header, lines)


def _ratio_to_dual(row: dict[str, Any]) -> str:
    """A ratio; a bound of it where one of the two was out of time, and nothing where both were."""
    late = row["planes_gap"] > 1e-3, row["dual_gap"] > 1e-3
    return "-" if all(late) else f"{'> ' if late[0] else '< ' if late[1] else ''}{row['ratio']:.2g}"


def _small_data(rows: Rows) -> str:
    """A line for each set and machine: our seconds and the rival's ratio to them, in `fit` and for one row."""
    fits = (row for row in rows if "machine" in row)  # the others are means
    cells = {(row["set"], row["machine"], row["rival"], row["what"]): row for row in fits}
    lines = []
    for key in dict.fromkeys(key[:3] for key in cells):
        fit, predict = (cells[(*key, what)] for what in ("fit", "predict one row"))
        lines.append([*key, f"{1e3 * fit['seconds']:.1f} ms", f"{fit['ratio']:.2f}", f"{predict['ratio']:.2f}"])
    return markdown(["set", "ours", "rival", "our fit", "its fit ÷ ours", "its prediction of one row ÷ ours"], lines)


def _regression(rows: Rows) -> str:
    """A line for each set and problem: our seconds, and the other machines' ratios to them."""
    problems: dict[tuple[str, Any, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        library, _, kind = str(row["machine"]).rpartition(" ")
        problems[row["set"], row.get("C", ""), kind][library] = row
    rivals = ["widemargin early", "scikit-learn-intelex", "scikit-learn"]
    lines = []
    for (name, C, kind), machines in problems.items():
        ours = machines["widemargin"]
        ratios = [f"{machines[rival]['ratio']:.2f}" if rival in machines else "-" for rival in rivals]
        own = [f"{ours['n']:,}", kind, C, f"{ours['seconds']:.2f} s"] if "n" in ours else ["", kind, "", ""]
        lines.append([name, *own, *ratios])
    return markdown(["set", "rows", "problem", "C", "ours", *(f"{rival} ÷ ours" for rival in rivals)], lines)


def regression_ratios(rows: Rows) -> dict[str, dict[str, float]]:
    """Of each set and problem, the times of other libraries divided by ours."""
    ratios: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        library, _, kind = str(row["machine"]).rpartition(" ")
        if "n" in row and library.startswith("scikit-learn"):
            ratios[f"{row['set']}, {kind}"][library] = row["ratio"]
    return ratios


def _many_classes(rows: Rows) -> str:
    """A line for each problem: seconds of both, their ratio, and equal labels."""
    lines = []
    for ours in rows:
        if ours["machine"] == "widemargin":
            rival = next(
                row for row in rows if row["ratio"] != 1 and (row["classes"], row["n"]) == (ours["classes"], ours["n"])
            )
            seconds = (f"{row['seconds']:.1f} s" for row in (ours, rival))
            lines.append(
                [ours["classes"], f"{ours['n']:,}", *seconds, f"{rival['ratio']:.2f}", f"{rival['equal_labels']:.2%}"]
            )
    return markdown(["classes", "rows", "ours", "scikit-learn-intelex", "its fit ÷ ours", "equal labels"], lines)


def _dask_kernel(rows: Rows) -> str:
    """A line for each fit on two workers: seconds beside the local fit's, equal labels and memory."""
    lines = [
        [
            row["set"],
            f"{int(row['rows']):,}",
            f"{row['local_seconds']:.2f} s",
            f"{row['seconds']:.2f} s",
            f"{row['ratio']:.2f}",
            f"{row['same_labels']:.2%}",
            f"{row['worker_mb'] - row['idle_mb']:.0f}",
        ]
        for row in rows
    ]
    return markdown(["set", "rows", "local", "two workers", "ratio", "same labels", "MB more"], lines)


def _novelty(rows: Rows) -> str:
    """A line for each task: the area under the ROC curve, and the share of new rows inside that are rejected."""
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    tasks: dict[tuple[str, str, bool], dict[str, Any]] = defaultdict(dict)
    for row in rows:
        tasks[row["set"], str(row["inside"]), row["is_chosen_on"]][row["machine"]] = row
    fresh = [task for (_, _, is_chosen_on), task in tasks.items() if not is_chosen_on]
    lines = [
        [name + "*" * is_chosen_on, inside, *_novelty_cells([task], machines)]
        for (name, inside, is_chosen_on), task in tasks.items()
    ]
    lines.append([f"mean of {len(fresh)} without *", "", *(f"**{cell}**" for cell in _novelty_cells(fresh, machines))])
    return markdown(["set", "inside", *machines, *(f"{name} rejects" for name in machines)], lines)


def _novelty_cells(tasks: Rows, machines: list[str]) -> list[str]:
    """Means over the tasks, of each machine: the areas, then the shares."""

    def means(column: str) -> list[float]:
        return [sum(task[name][column] for task in tasks) / len(tasks) for name in machines]

    return [*(f"{area:.3f}" for area in means("auc")), *(f"{share:.0%}" for share in means("rejected"))]


def _other_programs(rows: Rows) -> str:
    """A line for each program and direction: models, labels that differ, the largest difference of a value."""
    lines = [
        [
            f"{row['program']} {row['version']}",
            row["direction"],
            row["models"],
            f"{row['labels']:,}",
            row["differ"],
            row["border"],
            f"{row['difference']:.0e}" if row["difference"] else "",
            f"{row['digits']:.0e}",
        ]
        for row in rows
    ]
    header = [
        "program",
        "models are",
        "models",
        "labels",
        "differ",
        "at the border",
        "largest difference",
        "its digits",
    ]
    return markdown(header, lines)


def _compressed_programs(rows: Rows) -> str:
    """A line for each program: its prediction and that of the compressed model."""
    lines = [
        [
            row["program"],
            f"{row['support_vectors']:,}",
            row["differ"],
            f"{row['seconds']:.2f} s",
            f"{row['compressed_seconds']:.4f} s",
            f"{row['ratio']:,.0f}",
            f"{row['agreement']:.2%}",
        ]
        for row in rows
    ]
    header = [
        "model of",
        "support vectors",
        "labels read that differ",
        "its own prediction",
        "compressed",
        "times as fast",
    ]
    return markdown([*header, "labels that agree"], lines)


def _intervals(rows: Rows) -> str:
    """A line for each way to intervals: coverage over the sets, and widths and losses beside boosting's."""
    sets = {(row["set"], row["intervals"]): row for row in rows}
    lines = []
    for way in dict.fromkeys(row["intervals"] for row in rows):
        own = [row for row in rows if row["intervals"] == way]
        coverage = [row["coverage"] for row in own]
        shares = [f"{share:.1%}" for share in (sum(coverage) / len(own), min(coverage), max(coverage))]
        kind = "quantiles, boosting" if "pinball" in own[0] else "conformal quantiles, boosting"
        widths, losses = (
            [row[key] / sets[row["set"], kind][key] for row in own if key in row] for key in ("width", "pinball")
        )
        loss = f"{geometric_mean(losses):.2f}, larger on {sum(ratio > 1 for ratio in losses)}" if losses else ""
        lines.append([way, len(own), *shares, f"{geometric_mean(widths):.2f}", loss])
    header = ["intervals of 90 %", "sets", "coverage", "least of a set", "most", "width ÷ boosting's"]
    return markdown([*header, "pinball loss ÷ boosting's"], lines)


def _explanations(rows: Rows) -> str:
    """A line for each library and number of rows."""
    lines = [
        [row["machine"], row["rows"], f"{row['ms_per_row']:,.0f}", f"{row['ratio']:,.0f}", f"{row['difference']:.0e}"]
        for row in rows
    ]
    return markdown(["library", "rows at once", "ms a row", "times as fast", "largest difference"], lines)


FILES = {"intercept": "kernel_svm"}  # of tables that are not named after their file


TABLES: dict[str, Callable[[Rows], str]] = {
    "kernel_svm": _kernel_svm,
    "kernel_svm_float64": _kernel_svm_float64,
    "early": _early,
    "intercept": _intercept,
    "shrinking": _shrinking,
    "constants": _constants,
    "seconds": _seconds,
    "kernel_entries": _kernel_entries,
    "laplacian_entries": _laplacian_entries,
    "landmarks": _landmarks,
    "losses": _losses,
    "tuning": _tuning,
    "tuning_path": _tuning,
    "linear_path": _linear_path,
    "dask_kernel": _dask_kernel,
    "novelty": _novelty,
    "model_files": _model_files,
    "memory": _memory,
    "limits_time": _limits_time,
    "limits_interrupts": _limits_interrupts,
    "soak": _soak,
    "small_data": _small_data,
    "linear_text": _linear_text,
    "linear_text_intercept": _linear_text,
    "many_classes": _many_classes,
    "regression": _regression,
    "other_programs": _other_programs,
    "compressed_programs": _compressed_programs,
    "intervals": _intervals,
    "explanations": _explanations,
}
