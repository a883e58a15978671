"""Tables of the benchmarks."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean

from measuring.tables import Row, Rows, by, cell, listed, markdown, mean, named

_DIFFERENCES = Path(__file__).resolve().parents[1] / "peers" / "sklearn_differences.toml"


def _shape(row: Row) -> str:
    return f"{row['n']:,} × {row['n_features']:,}"


def _base(name: str) -> str:
    return name.partition(":")[0]


# Exact and early machines ---------------------------------------------------------------------------------------------

_QUOTIENTS = ("fit", "predict", "limit")


def _kernel_svm(rows: Rows) -> str:
    """A line for each set: seconds, the time of scikit-learn-intelex divided by ours, and ours by the limit."""
    sets, quotients = named(rows, "set", "competitor"), kernel_svm_quotients(rows)
    lines = []
    for row in quotients:
        machines = sets[row["set"]]
        ours, rival = _same_form(machines)
        forms = [machines[f"widemargin, no {part}"] for part in ("level", "intercept")]
        seconds = (f"{machine['seconds']:.2f} s" for machine in (ours, *forms, rival))
        lines.append([_base(row["set"]), _shape(rival), *seconds, *(f"{row[key]:.2f}" for key in _QUOTIENTS)])
    means = [mean(row[key] for row in quotients) for key in _QUOTIENTS]
    lines.append(["geometric mean", *[""] * 5, *means])
    header = ["set", "training rows × features", "default", "no level", "no intercept", "scikit-learn-intelex"]
    return markdown([*header, "its fit ÷ default", "its predict ÷ default", "default ÷ limit"], lines)


def kernel_svm_quotients(rows: Rows) -> Rows:
    """Rows with the rival's times of `fit` and `predict` divided by ours, and ours by the limit, as the table shows."""
    found = []
    for name, machines in named(rows, "set", "competitor").items():
        ours, rival = _same_form(machines)
        fit, predict = (rival[key] / ours[key] for key in ("seconds", "predict_us"))
        found.append({"set": name, "fit": fit, "predict": predict, "limit": ours["seconds"] / ours["limit_seconds"]})
    return found


def _kernel_svm_float64(rows: Rows) -> str:
    """A line for each set of float64 rows: seconds of both, and the quotients of fits and predictions."""
    sets, quotients = named(rows, "set", "competitor"), kernel_svm_quotients(rows)
    lines = []
    for row in quotients:
        ours, rival = _same_form(sets[row["set"]])
        seconds = (f"{machine['seconds']:.2f} s" for machine in (ours, rival))
        lines.append([_base(row["set"]), f"{ours['n']:,}", *seconds, f"{row['fit']:.2f}", f"{row['predict']:.2f}"])
    means = [mean(row[key] for row in quotients) for key in ("fit", "predict")]
    lines.append(["geometric mean", *[""] * 3, *means])
    return markdown(["set", "rows", "ours", "scikit-learn-intelex", "its fit ÷ ours", "its predict ÷ ours"], lines)


def _same_form(machines: dict[str, Row]) -> tuple[Row, Row]:
    """Ours and the rival's row on rows of one form, dense or CSR: that in which the rival is faster."""
    forms = [form for form in ("", ", CSR") if f"sklearnex{form}" in machines]
    best = min(forms, key=lambda form: float(machines[f"sklearnex{form}"]["seconds"]))
    return machines[f"widemargin{best}"], machines[f"sklearnex{best}"]


def _intercept(rows: Rows) -> str:
    """A line for each set: seconds, support vectors and accuracy with an intercept, and without."""
    forms = ("{seconds:.2f} s", "{support_vectors:,}", "{accuracy:.2%}")
    lines = []
    for name, machines in named(rows, "set", "competitor").items():
        pair = [machines[kind] for kind in ("widemargin", "widemargin, no intercept")]
        lines.append([_base(name), f"{pair[0]['n']:,}", *(cell(form, row) for form in forms for row in pair)])
    header = [f"{what}{part}" for what in ("fit", "support vectors", "accuracy") for part in ("", ", no intercept")]
    return markdown(["set", "rows", *header], lines)


def _early(rows: Rows) -> str:
    """A line for each set: the fastest early machine that loses at most half a point, or the one that loses least."""
    sets, lines = named(rows, "set", "competitor"), []
    for best in early_choices(rows):
        machines = sets[best["set"]]
        rivals = [row for key, row in machines.items() if key.startswith("sklearnex")]
        rival = min(rivals, key=lambda row: row["seconds"])
        seconds = [f"{row['seconds']:.2f} s" for row in (machines["widemargin"], rival, best)]
        share = f"{best['solving_seconds'] / best['seconds']:.0%}"
        ratios = [f"{best['times_exact']:.1f}", f"{best['times_rival']:.1f}", f"{best['points_lost']:.2f}"]
        facts = [best["n_clusters"], *ratios, share, f"{best['predict_us']:.2f}"]
        lines.append([_base(best["set"]), _shape(best), *seconds, *facts])
    header = ["set", "training rows × features", "exact", "scikit-learn-intelex", "early", "clusters", "exact ÷ early"]
    header += ["its fit ÷ early", "points lost", "solving clusters", "µs to predict a row"]
    return markdown(header, lines)


def early_choices(rows: Rows) -> Rows:
    """The row of each set's early machine that the table shows, chosen by rows held back where there are such."""

    def lost(row: Row) -> float:
        return float(row.get("held_points_lost", row["points_lost"]))

    early = by([row for row in rows if row["competitor"].startswith("early")], "set").values()
    return [min(mine, key=lambda row: (max(lost(row), 0.5), row["seconds"])) for mine in early]


def _scale(rows: Rows) -> str:
    """A line for each number of rows: the exact machine, the early one, and scikit-learn-intelex's."""
    exact_forms = ["{seconds:.2g} s", "{support_vectors:,}", "{relative_gap:.1e}", "{decision_seconds:.2g} s"]
    lines = []
    for n, found in named(rows, "rows", "machine").items():
        exact, early, rival = (found.get(name) for name in ("exact", "early", "intelex"))
        cells = [cell(form, exact) or "-" for form in [*exact_forms, "{accuracy:.2f} %"]]
        cells += [cell(form, early) or "-" for form in ("{seconds:.2g} s", "{accuracy:.2f} %")]
        ratio = f"{rival['seconds'] / exact['seconds']:.1f}" if rival and exact else "-"
        lines.append([f"{n:,}", *cells, cell("{seconds:.3g} s", rival) or "-", ratio])
    header = ["training rows", "exact", "support vectors", "relative gap", "decision values of all rows", "accuracy"]
    return markdown([*header, "early", "accuracy", "scikit-learn-intelex", "its fit ÷ exact"], lines)


def _how_long(rows: Rows) -> str:
    """A line for each number of rows: seconds and accuracy of the early and the exact machine, seconds of the rival."""
    lines = []
    for n, found in named(rows, "rows", "machine").items():
        forms = ("{seconds:.2g} s", "{accuracy:.1f} %")
        cells = [cell(form, found[name]) for name in ("early", "exact") for form in forms]
        lines.append([f"{n:,}", *cells, cell("{seconds:.3g} s", found.get("intelex")) or "-"])
    header = ["training rows", "early prediction", "accuracy", "exact", "accuracy", "scikit-learn-intelex"]
    return markdown(header, lines)


def _many_classes(rows: Rows) -> str:
    """A line for each problem: seconds of both, their ratio, and equal labels."""
    lines = []
    for (k, n), mine in by(rows, "classes", "n").items():
        ours, rival = sorted(mine, key=lambda row: row["machine"] != "widemargin")
        seconds = (f"{row['seconds']:.1f} s" for row in (ours, rival))
        lines.append([k, f"{n:,}", *seconds, f"{rival['ratio']:.2f}", f"{rival['equal_labels']:.2%}"])
    return markdown(["classes", "rows", "ours", "scikit-learn-intelex", "its fit ÷ ours", "equal labels"], lines)


def _small_data(rows: Rows) -> str:
    """A line for each set and machine: our seconds and the rival's ratio to them, in `fit` and for one row."""
    lines = []
    for key, mine in by(rows, "set", "machine", "rival").items():
        fit, predict = ({row["what"]: row for row in mine}[what] for what in ("fit", "predict one row"))
        lines.append([*key, f"{1e3 * fit['seconds']:.1f} ms", f"{fit['ratio']:.2f}", f"{predict['ratio']:.2f}"])
    return markdown(["set", "ours", "rival", "our fit", "its fit ÷ ours", "its prediction of one row ÷ ours"], lines)


def _library_and_kind(row: Row) -> tuple[str, str]:
    library, _, kind = str(row["machine"]).rpartition(" ")
    return library, kind


def _regression(rows: Rows) -> str:
    """A line for each set and problem: our seconds, and the other machines' ratios; below, means and least ones."""
    rows = [row | dict(zip(("library", "kind"), _library_and_kind(row), strict=True)) for row in rows]
    rivals = ["widemargin early", "scikit-learn-intelex", "scikit-learn"]
    lines = []
    for (name, C, kind), mine in by(rows, "set", "C", "kind").items():
        machines = {row["library"]: row for row in mine}
        own = [f"{mine[0]['n']:,}", kind, "" if C is None else C, f"{machines['widemargin']['seconds']:.2f} s"]
        lines.append([name, *own, *(cell("{ratio:.2f}", machines.get(rival)) or "-" for rival in rivals)])
    for name, of_many in (("geometric mean", geometric_mean), ("least", min)):
        for (kind,), mine in by(rows, "kind").items():
            ratios = [[row["ratio"] for row in mine if row["library"] == rival] for rival in rivals]
            lines.append([name, "", kind, "", "", *(f"{of_many(r):.2f}" if r else "-" for r in ratios)])
    return markdown(["set", "rows", "problem", "C", "ours", *(f"{rival} ÷ ours" for rival in rivals)], lines)


def regression_ratios(rows: Rows) -> dict[str, dict[str, float]]:
    """Of each set and problem, the times of other libraries divided by ours."""
    ratios: dict[str, dict[str, float]] = {}
    for row in rows:
        library, kind = _library_and_kind(row)
        if library.startswith("scikit-learn"):
            ratios.setdefault(f"{row['set']}, {kind}", {})[library] = row["ratio"]
    return ratios


def _novelty(rows: Rows) -> str:
    """A line for each task: the area under the ROC curve, and the share of new rows inside that are rejected."""
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    tasks = {
        key: {row["machine"]: row for row in mine} for key, mine in by(rows, "set", "inside", "is_chosen_on").items()
    }
    fresh = [task for (_, _, is_chosen_on), task in tasks.items() if not is_chosen_on]
    lines = [[f"{key[0]}{'*' * key[2]}", key[1], *_novelty_cells([task], machines)] for key, task in tasks.items()]
    lines.append([f"mean of {len(fresh)} without *", "", *(f"**{text}**" for text in _novelty_cells(fresh, machines))])
    return markdown(["set", "inside", *machines, *(f"{name} rejects" for name in machines)], lines)


def _novelty_cells(tasks: list[dict[str, Row]], machines: list[str]) -> list[str]:
    """Means over the tasks, of each machine: the areas, then the shares."""

    def means(column: str) -> list[float]:
        return [sum(task[name][column] for task in tasks) / len(tasks) for name in machines]

    return [*(f"{area:.3f}" for area in means("auc")), *(f"{share:.0%}" for share in means("rejected"))]


# Searches -------------------------------------------------------------------------------------------------------------

_SEARCHES = ("exhaustive", "exhaustive, cold", "GridSearchCV, ours", "GridSearchCV, intelex")


def _tuning(rows: Rows) -> str:
    """A line for each set: seconds of our search, how many times as long the others take, and what leaving costs."""
    lines, quotients = [], tuning_quotients(rows)
    for row in quotients:
        ours = row["default"]
        cells = f"{int(ours['seen'])} of {len(ours['means'].split())}"
        ratios = (f"{row[other]:.1f}" for other in _SEARCHES)
        seconds = f"{ours['seconds']:.1f} s"
        lines.append([row["set"], f"{int(ours['n']):,}", seconds, *ratios, cells, f"{ours['regret']:.2f}"])
    means = (f"{geometric_mean([row[other] for row in quotients]):.1f}" for other in _SEARCHES)
    lines.append(["geometric mean", "", "", *means, "", ""])
    header = ["set", "rows", "default", *(f"{other} ÷ default" for other in _SEARCHES), "cells in all folds"]
    return markdown([*header, "points lost"], lines)


def tuning_quotients(rows: Rows) -> Rows:
    """A row for each set on which all searches are measured: their times divided by the default's, and its own row."""
    found = []
    for name, machines in named(rows, "set", "machine").items():
        if all(search in machines for search in _SEARCHES):
            ours, own = machines["default"], machines["default"]["seconds"]
            row = {search: machines[search]["seconds"] / own for search in _SEARCHES}
            rival = row["GridSearchCV, intelex"] / row["exhaustive"]
            found.append({"set": name, "default": ours, **row, "intelex ÷ exhaustive": rival})
    return found


def _linear_path(rows: Rows) -> str:
    """A line for each set: seconds of our search, the other machines' divided by them, and accuracies."""
    others = [name for name in dict.fromkeys(row["machine"] for row in rows) if name != "OCASClassifierCV"]
    lines = []
    for name, machines in named(rows, "set", "machine").items():
        ours = machines["OCASClassifierCV"]
        ratios = [cell("{ratio:.2f}", machines.get(other)) or "-" for other in others]
        scores = [f"{machines[key]['score']:.2%}" for key in ("OCASClassifierCV", "LIBLINEAR")]
        lines.append([name, f"{ours['n']:,} × {ours['d']:,}", f"{ours['seconds']:.2f} s", *ratios, *scores])
    means = [geometric_mean([row["ratio"] for row in rows if row["machine"] == other]) for other in others]
    lines.append(["geometric mean", "", "", *(f"{value:.2f}" for value in means), "", ""])
    header = ["set", "rows × columns", "OCASClassifierCV", *(f"{other} ÷ ours" for other in others)]
    return markdown([*header, "accuracy", "LIBLINEAR's"], lines)


def _boosting(rows: Rows) -> str:
    """A line for each set: error and seconds of each machine; below, means of the ratios and how many sets were won."""
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    header = ["set", "rows × features"]
    for machine in machines:
        header += [f"{machine}: error", "seconds"]
    forms = "{error:.4f}", "{seconds:.2g}"
    lines = [
        [name, _shape(found["search"]), *(cell(form, found.get(m)) or "-" for m in machines for form in forms)]
        for name, found in named(rows, "set", "machine").items()
    ]
    means, won = ["its error ÷ ours, our seconds ÷ its", ""], ["sets with more, fewer errors than ours", ""]
    for machine in machines:
        mine = [row for row in rows if row["machine"] == machine]
        errors = [row["error_ratio"] for row in mine]
        is_ours = machine == "search"
        means += ["**1**"] * 2 if is_ours else [mean(errors), mean((row["seconds_ratio"] for row in mine), ".2g")]
        won += ["" if is_ours else f"{sum(e > 1 for e in errors)}, {sum(e < 1 for e in errors)}", ""]
    return markdown(header, [*lines, means, won])


def _ablation(rows: Rows) -> str:
    """A line for each set: the error of the whole search, and how many times that it is without a part."""
    machines = [machine for machine in dict.fromkeys(row["machine"] for row in rows) if machine != "search"]
    lines = [
        [name, f"{found['search']['error']:.4f}", *(cell("{error_ratio:.2f}", found.get(m)) or "-" for m in machines)]
        for name, found in named(rows, "set", "machine").items()
    ]
    ratios = [[row["error_ratio"] for row in rows if row["machine"] == machine] for machine in machines]
    lines.append(["geometric mean", "", *(f"{geometric_mean(mine):.2f}" for mine in ratios)])
    return markdown(["set", "error of the search", *machines], lines)


# Where time goes ------------------------------------------------------------------------------------------------------


def _shrinking(rows: Rows) -> str:
    """A line for each fit: counts with shrinking, and without."""
    forms = ("{rows of n:.2f}", "{active:.2f}", "{rounds:.0f}")
    lines = []
    for (name, n, levels), mine in by(rows, "set", "rows", "levels").items():
        pair = sorted(mine, key=lambda row: str(row["shrinking"]) != "True")
        levels = "as chosen" if levels == "auto" else "none"
        lines.append([name, f"{int(n):,}", levels, *(cell(form, row) for form in forms for row in pair)])
    header = [f"{what}{part}" for what in ("rows of n", "active", "rounds") for part in ("", ", before")]
    return markdown(["set", "rows", "levels", *header], lines)


def _constants(rows: Rows) -> str:
    """A line for each value of a constant of the dual solver: by how much the counts change on each problem."""
    dual = [row for row in rows if row["constant"].startswith("solvers/dual/solver.py") and row["measure"] == "counts"]
    problems = list(dict.fromkeys(row["problem"] for row in dual))
    lines = [
        [f"`{name.partition(':')[2]}`", value, *(f"{row['change']:+.0%}" for row in mine)]
        for (name, value), mine in by(dual, "constant", "value").items()
    ]
    return markdown(["constant", "value", *problems], lines)


def _landmarks(rows: Rows) -> str:
    """A line for each set and number of landmarks: error and seconds by how they are chosen."""
    lines, methods = [], ("kmeans", "uniform")
    for (name, m), mine in by(rows, "set", "m").items():
        of = {row["landmarks"]: row for row in mine}
        lines.append([name, m, *(cell("{error:.2g}, {seconds:.2f} s", of[method]) for method in methods)])
    return markdown(["set", "landmarks", *methods], lines)


def _losses(rows: Rows) -> str:
    """A line for each loss and set: seconds of ours and of the fastest rival for each C; for a loss the mean ratio."""
    strengths, lines = list(dict.fromkeys(row["C"] for row in rows)), []
    for (loss,), own in by(rows, "loss").items():
        for (name,), mine in by(own, "set").items():
            lines.append([loss, name, *(cell("{seconds:.2g}, {rival_seconds:.2g}", row) for row in mine), ""])
        known = [row["rival_seconds"] / row["seconds"] for row in own if 0 < row["rival_seconds"] < math.inf]
        lines[-1][-1] = f"{geometric_mean(known):.1f} ({len(known)} of {len(own)})"
    return markdown(["loss", "set", *(f"C = {C:g}" for C in strengths), "rival ÷ ours (cells)"], lines)


def _linear_text(rows: Rows) -> str:
    """A line for each set and number of columns: the ratios for each C, and what the rule takes."""
    groups = by(rows, "set", "n", "d")
    costs = [row["C"] for row in next(iter(groups.values()))]
    lines = [
        [name, f"{n:,} × {d:,}", f"{d / n:.2g}", *map(_ratio_to_dual, group), group[0]["rule"]]
        for (name, n, d), group in groups.items()
    ]
    header = ["set", "rows × columns", "columns ÷ rows", *(f"C = {C:g}" for C in costs), "taken"]
    return markdown(header, lines)


def _ratio_to_dual(row: Row) -> str:
    """A ratio; a bound of it where one of the two was out of time, and nothing where both were."""
    late = row["planes_gap"] > 1e-3, row["dual_gap"] > 1e-3
    return "-" if all(late) else f"{'> ' if late[0] else '< ' if late[1] else ''}{row['ratio']:.2g}"


def _streams(rows: Rows, of_labels: str, columns: Sequence[tuple[bool, float]]) -> list[list[str]]:
    lines = []
    for (name, order), own in by([row for row in rows if row.get("labels") == of_labels], "set", "order").items():
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


# Reliability ----------------------------------------------------------------------------------------------------------


def _offsets(rows: Rows) -> str:
    """A line for each estimator: how many of its fits came out right, warned, were refused, or were silently wrong."""
    ends, lines = ("ok", "warned", "refused", "wrong"), []
    for (name,), mine in by(rows, "estimator").items():
        counts = Counter(str(row["outcome"]).partition(":")[0] for row in mine)
        lines.append([name, counts.total(), *(counts[end] for end in ends)])
    return markdown(["fit", "fits", *ends], lines)


def _shares(rows: Rows) -> str:
    """A line for each case: its seconds and score without a limit, the scores with each, the most seconds over one."""
    factors = list(dict.fromkeys(row["factor"] for row in rows if row["factor"] != "none"))
    lines = []
    for case, cells in named(rows, "case", "factor").items():
        whole, limited = cells["none"], [cells[k] for k in factors]
        scores = [f"{row['score']:.3f}" + ("" if row["cut"] else " (whole)") for row in limited]
        head = [case, whole["parts"], f"{whole['seconds']:.1f}", f"{whole['score']:.3f}"]
        lines.append([*head, *scores, f"{max(row['over'] for row in limited):.2f}"])
    times = (f"of {k:g} × the seconds" for k in factors)
    return markdown(["fit", "parts", "seconds", "score", *times, "most seconds late"], lines)


def _wide_rows(rows: Rows) -> str:
    """A line for each estimator: the outcome and the peak for each number of columns."""
    widths = list(dict.fromkeys(row["columns"] for row in rows if "columns" in row))
    lines = []
    for case, cells in named(rows, "case", "columns").items():
        only = cells.get(None)  # of a process that crashed or hung
        shown = [f"{row['outcome']}, {row['peak']:.0f} MB" for row in cells.values() if row is not only]
        lines.append([case, *shown] if only is None else [case, only["outcome"], *[""] * (len(widths) - 1)])
    return markdown(["fit and predict", *(f"{width:,} columns" for width in widths)], lines)


def _tiny_classes(rows: Rows) -> str:
    """A line for each estimator: seconds and accuracy for each number of classes."""
    split = [(*str(row["case"]).rpartition(": ")[::2], row) for row in rows]
    counts = list(dict.fromkeys(count for _, count, _ in split))
    cells = {(name, count): row for name, count, row in split}
    lines = [
        [name, *(_seconds_and_accuracy(cells[name, count]) for count in counts)]
        for name in dict.fromkeys(name for name, _, _ in split)
    ]
    return markdown(["fit", *(f"{count} classes" for count in counts)], lines)


def _seconds_and_accuracy(row: Row) -> str:
    return f"{row['seconds']:.1f} s, {row['accuracy']:.3f}" if row["outcome"] == "ok" else str(row["outcome"])


def _foreign_files(rows: Rows) -> str:
    """A line for each library: how many files had each outcome."""
    counts = {name: Counter(row["outcome"] for row in mine) for (name,), mine in by(rows, "library").items()}
    lines = [[name, *(str(counts[name][letter]) for letter in "RTSLE")] for name in counts]
    return markdown([f"{len({row['case'] for row in rows})} files", *"RTSLE"], lines)


def _limits_time(rows: Rows) -> str:
    """A line for each case: seconds over each limit."""
    limits = sorted({row["max_time"] for row in rows})
    lines = []
    for case, of in named(rows, "case", "max_time").items():
        lines.append([case, cell("{rows:,} × {columns:,}", of[limits[0]]), *(f"{of[t]['over']:.2f}" for t in limits)])
    return markdown(["fit", "rows × columns", *(f"over {limit:g} s" for limit in limits)], lines)


def _limits_interrupts(rows: Rows) -> str:
    """A line for each case: how its interrupts ended, and how soon."""
    lines, known = [], ("stopped", "checks", "finished")
    for (case,), mine in by(rows, "case").items():
        ends = Counter(row["outcome"] if row["outcome"] in known else "wrong" for row in mine)
        seconds = sorted(row["seconds"] for row in mine if row["outcome"] == "stopped")
        middle, last = (f"{seconds[len(seconds) // 2]:.2f}", f"{seconds[-1]:.2f}") if seconds else ("-", "-")
        lines.append([case, *(ends[outcome] for outcome in (*known, "wrong")), middle, last])
    header = ["fit", "stopped", "in the checks", "finished before", "wrong", "median seconds", "longest"]
    return markdown(header, lines)


def _soak(rows: Rows) -> str:
    """One line for the whole run."""
    total = {name: int(sum(row[name] for row in rows)) for name in ("fits", "limited", "different")}
    grown = rows[-1]["in_use"] - rows[len(rows) // 2 - 1]["in_use"]
    header = [
        "fits",
        "with a limit",
        "different for another n_jobs",
        "MB more in use at the end than half-way",
        "threads",
    ]
    return markdown(header, [[*total.values(), f"{grown:.0f}", int(rows[-1]["threads"])]])


def _model_files(rows: Rows) -> str:
    """A line for each way of writing, and one for all: what became of its changes."""
    ends = [
        "changes",
        "rejected at load",
        "rejected at use",
        "usable",
        "wrong error",
        "crashed",
        "hung",
        "out of memory",
    ]
    groups = {way: mine for (way,), mine in by(rows, "format").items()} | {"all": rows}
    lines = [[way, *(f"{int(sum(row[name] for row in mine)):,}" for name in ends)] for way, mine in groups.items()]
    return markdown(["written with", *ends], lines)


def _memory(rows: Rows) -> str:
    """A line for each case and layout: the larger of fit's and predict's megabytes for each number of classes."""
    classes = sorted({int(row["classes"]) for row in rows})
    lines = []
    for key, mine in by(rows, "case", "layout").items():
        cells = {
            row["classes"]: f"{max(row['fit'], row['predict']):.0f}" if "fit" in row else str(row["outcome"])
            for row in mine
        }
        lines.append([*key, *(cells[k] for k in classes)])
    budget = int(rows[0]["budget"])
    return markdown(["fit and predict", "layout", *(f"MB of {budget}, {k} classes" for k in classes)], lines)


def _sklearn_tests(rows: Rows) -> str:
    """A line for each intended difference from scikit-learn: how many tests show it; then those that pass and fail."""
    tests, counts = Counter(row.get("difference") for row in rows), Counter(row["outcome"] for row in rows)
    known = tomllib.loads(_DIFFERENCES.read_text(encoding="utf-8"))["difference"]
    lines = [[f"**{d['name']}.** {' '.join(d['why'].split())}", tests[d["name"]]] for d in known]
    lines += [["tests that pass", counts["passed"]], ["tests that fail for none of these reasons", counts["failed"]]]
    return markdown(["difference", "tests"], lines)


FILES = {"how_long": "scale", "streams_turned": "streams", "intercept": "kernel_svm"}  # not named after their file


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


TABLES: dict[str, Callable[[Rows], str]] = {
    "kernel_svm": _kernel_svm,
    "kernel_svm_float64": _kernel_svm_float64,
    "early": _early,
    "intercept": _intercept,
    "scale": _scale,
    "how_long": _how_long,
    "shrinking": _shrinking,
    "constants": _constants,
    "landmarks": _landmarks,
    "losses": _losses,
    "tuning": _tuning,
    "tuning_path": _tuning,
    "folds": listed(
        {
            "training rows": "{rows:,}",
            "one exact fit": "{exact_seconds:.3g} s",
            "all candidates": "{seconds:,.0f} s",
            "a cell ÷ exact fit": "{share:.2f}",
            "memory": lambda row: f"{row['memory'] / 1e9:.2f} GB",
            "largest gap": "{gap:.1e}",
            "best C": "{C:.3g}",
            "default search": "{race_seconds:.0f} s",
            "its test accuracy": "{race_accuracy:.2f} %",
        }
    ),
    "linear_path": _linear_path,
    "boosting": _boosting,
    "boosting_ablation": _ablation,
    "novelty": _novelty,
    "model_files": _model_files,
    "memory": _memory,
    "limits_time": _limits_time,
    "limits_interrupts": _limits_interrupts,
    "offsets": _offsets,
    "shares": _shares,
    "soak": _soak,
    "wide_rows": _wide_rows,
    "tiny_classes": _tiny_classes,
    "foreign_files": _foreign_files,
    "small_data": _small_data,
    "linear_text": _linear_text,
    "linear_text_intercept": _linear_text,
    "many_classes": _many_classes,
    "regression": _regression,
    "streams": _streams_lam,
    "streams_turned": _streams_turned,
    "sklearn_tests": _sklearn_tests,
    "boosting_covtype": listed(
        {"model": "{machine}", "seconds": "{seconds:.0f}", "accuracy": lambda row: f"{1 - row['error']:.2%}"}
    ),
    "larger_sets": listed(
        {
            "set": "{set}",
            "training rows": "{rows:,}",
            "model": "{machine}",
            "seconds": "{seconds:.3g}",
            "support vectors": "{support_vectors:,}",
            "relative gap": "{relative_gap:.1e}",
            "accuracy": "{accuracy:.2f} %",
            "memory": lambda row: f"{row['memory'] / 2**20:,.0f} MiB",
        }
    ),
    "early_millions": listed(
        {
            "rows": "{rows:,}",
            "clusters": "{clusters}",
            "fit": "{seconds:.0f} s",
            "processor time": "{cpu_seconds:.0f} s",
            "data": lambda row: f"{row['data'] / 1e6:,.0f} MB",
            "memory beside them": lambda row: f"{row['memory'] / 1e6:,.0f} MB",
            "accuracy": "{accuracy:.1f} %",
            "a prediction": "{predict_us:.0f} µs",
        }
    ),
    "dask_kernel": listed(
        {
            "set": "{set}",
            "rows": "{rows:,}",
            "local": "{local_seconds:.2f} s",
            "two workers": "{seconds:.2f} s",
            "ratio": "{ratio:.2f}",
            "same labels": "{same_labels:.2%}",
            "MB more": lambda row: f"{row['worker_mb'] - row['idle_mb']:.0f}",
        }
    ),
    "processes": listed(
        {"situation": "{case}", "processes": "{repeats}"}
        | {end: f"{{{end}}}" for end in ("equal", "different", "crashed", "hung")}
    ),
    "other_programs": listed(
        {
            "program": "{program} {version}",
            "models are": "{direction}",
            "models": "{models}",
            "labels": "{labels:,}",
            "differ": "{differ}",
            "at the border": "{border}",
            "largest difference": lambda row: f"{row['difference']:.0e}" if row["difference"] else "",
            "its digits": "{digits:.0e}",
        }
    ),
    "compressed_programs": listed(
        {
            "model of": "{program}",
            "support vectors": "{support_vectors:,}",
            "labels read that differ": "{differ}",
            "its own prediction": "{seconds:.2f} s",
            "compressed": "{compressed_seconds:.4f} s",
            "times as fast": "{ratio:,.0f}",
            "labels that agree": "{agreement:.2%}",
        }
    ),
    "explanations": listed(
        {
            "library": "{machine}",
            "rows at once": "{rows}",
            "ms a row": "{ms_per_row:,.0f}",
            "times as fast": "{ratio:,.0f}",
            "largest difference": "{difference:.0e}",
        }
    ),
    "intervals": _intervals,
}
