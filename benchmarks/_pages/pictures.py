"""Pictures of the README and of the documentation, drawn from the files in results/.

An SVG states in its metadata a digest of the results it was drawn from, so that a stale one is found without drawing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._pages.tables import early_choices, kernel_svm_quotients, regression_ratios, tuning_quotients
from measuring import report

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
Rows = list[dict[str, Any]]
Bars = Mapping[str, Mapping[str, float]]  # of a line of the picture: series and their ratios

_OURS, _EARLY, _SEARCH, _INTELEX, _SKLEARN, _TREES = "#1d5c85", "#4ea3d8", "#12324a", "#c8553d", "#8a8a8a", "#e0a030"
_STYLE = {
    "font.size": 11,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "svg.fonttype": "none",
    "svg.hashsalt": "widemargin",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


class Picture(NamedTuple):
    """What is drawn on a pair of axes, from the rows of which results, in how many inches."""

    sources: tuple[str, ...]
    draw: Callable[..., None]
    size: tuple[float, float]

    def digest(self) -> str:
        """A name of the contents of all sources."""
        texts = [report.results_path(name).read_bytes() for name in self.sources]
        return hashlib.sha256(b"".join(texts)).hexdigest()[:16]


def path_of(name: str) -> Path:
    """Return the file of a picture."""
    return IMAGES / f"{name}.svg"


def is_stale(name: str) -> bool:
    """Whether the file of a picture is absent, or drawn from other results than there are."""
    picture, path = PICTURES[name], path_of(name)
    is_measured = all(report.results_path(source).exists() for source in picture.sources)
    return is_measured and not (path.exists() and picture.digest() in path.read_text(encoding="utf-8"))


def draw(name: str) -> Any:
    """Write the file of a picture; returns its axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    picture = PICTURES[name]
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=picture.size, layout="constrained")
        picture.draw(axes, *(report.results(source) for source in picture.sources))
        figure.savefig(path_of(name), metadata={"Date": None, "Description": picture.digest()})
        plt.close(figure)
    return axes


def _covtype(axes: Any, scale: Rows, boosting: Rows) -> None:
    """Accuracy over seconds: each machine's curve over the number of rows, of trees, or of seconds given."""
    curves = {name: _curve(row for row in scale if row["machine"] == name) for name in ("exact", "early", "intelex")}
    for kind in ("search", "trees"):
        curves[kind] = sorted(
            (row["seconds"], 100 * (1 - row["error"])) for row in boosting if row["machine"].startswith(kind)
        )
    curves["linear"] = _curve(row for row in scale if row["machine"] == "linear")
    for name, (label, colour, shift, side) in _LABELS.items():
        x, y = zip(*curves[name], strict=True)
        axes.plot(x, y, "o-", color=colour, markersize=5, linewidth=2)
        at = {"textcoords": "offset points", "xytext": shift, "ha": side, "va": "center"}
        axes.annotate(label, (x[-1], y[-1]), color=colour, **at)
    axes.set_xscale("log")
    axes.set_xlim(0.01, 1000)
    axes.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.set_yscale("function", functions=(_depth_of, _accuracy_of))
    axes.set_ylim(74, 98.6)
    axes.set_yticks([76, 80, 85, 90, 95, 97, 98], minor=False)
    axes.set_yticks([], minor=True)
    axes.grid(alpha=0.25)
    axes.set(xlabel="seconds of a fit, two cores", ylabel="% of the test rows predicted correctly")


_LABELS = {
    "exact": ("exact", _OURS, (4, 8), "right"),
    "early": ("early", _EARLY, (-8, 8), "right"),
    "search": ("search of kernel, γ, C", _SEARCH, (8, 10), "right"),
    "intelex": ("scikit-learn-intelex,\n60,000 rows", _INTELEX, (40, -52), "right"),
    "trees": ("boosted trees", _TREES, (4, -10), "left"),
    "linear": ("linear", "#6a4c93", (9, 0), "left"),
}


def _curve(rows: Any) -> list[tuple[float, float]]:
    return [(row["seconds"], row["accuracy"]) for row in sorted(rows, key=itemgetter("rows"))]


def _depth_of(accuracy: Any) -> Any:
    """Minus the logarithm of the error: halving it is one step everywhere on the axis."""
    import numpy as np

    return -np.log(np.maximum(100.0 - np.asarray(accuracy), 1e-3))


def _accuracy_of(depth: Any) -> Any:
    import numpy as np

    return 100.0 - np.exp(-np.asarray(depth))


def _scale(axes: Any, rows: Rows, folds: Rows) -> None:
    """Seconds of a fit over the number of rows, and of one cell of a search: its share of those of the exact fit."""
    exact = {row["rows"]: row["seconds"] for row in rows if row["machine"] == "exact"}
    known = [row for row in folds if row["rows"] in exact]
    cells = [{**row, "machine": "cell", "seconds": row["share"] * exact[row["rows"]]} for row in known]
    rows = [*rows, *cells]
    names = {
        "intelex": ("scikit-learn-intelex", _INTELEX, 0),
        "exact": ("exact", _OURS, 0),
        "cell": ("a C and a fold", _OURS, 7),
        "early": ("early", _EARLY, -7),
    }
    for name, (label, colour, height) in names.items():
        own = sorted((row for row in rows if row["machine"] == name), key=itemgetter("rows"))
        n, seconds = [row["rows"] for row in own], [row["seconds"] for row in own]
        axes.plot(n, seconds, "o-", color=colour, markersize=5, linewidth=2)
        at = {"textcoords": "offset points", "xytext": (8, height), "va": "center"}
        axes.annotate(label, (n[-1], seconds[-1]), color=colour, **at)
    ticks = sorted({row["rows"] for row in rows})
    axes.set(xscale="log", yscale="log", xlabel="training rows", ylabel="seconds of a fit, two cores")
    axes.set_xticks(ticks, [f"{n:,}" for n in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(ticks[0] / 1.2, ticks[-1] * 1.7)
    axes.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    axes.grid(alpha=0.25)


def _fits(axes: Any, rows: Rows, sklearns: Rows) -> None:
    """Of each set, how many times as long other fits of the same machine take."""
    seconds = {(row["set"], row["competitor"]): row["seconds"] for row in sklearns}
    of = {(row["set"], row["competitor"]): row for row in rows}
    bars = {}
    for row in kernel_svm_quotients(rows):
        name = row["set"]
        n = of[name, "widemargin"]["n"]
        bars[f"{name.partition(':')[0]}, {n:,}"] = {"scikit-learn-intelex": row["fit"]} | (
            {"scikit-learn's SVC (LIBSVM)": seconds[name, "sklearn"] / seconds[name, "widemargin"]}
            if (name, "sklearn") in seconds
            else {}
        )
    _times(axes, bars, "times as long as our fit of the same model", [_INTELEX, _SKLEARN])


def _early(axes: Any, rows: Rows) -> None:
    """Of each set, how many times as long exact machines take as the early one."""
    bars = {
        f"{row['set'].partition(':')[0]}, {row['points_lost']:.2f} points lost": {
            "exact": row["times_exact"],
            "scikit-learn-intelex": row["times_rival"],
        }
        for row in early_choices(rows)
    }
    _times(axes, bars, "times as long as early prediction", [_OURS, _INTELEX])


def _tuning(axes: Any, rows: Rows) -> None:
    """Of each set, how many times as long searches of the same grid take."""
    names = {"GridSearchCV, intelex": "grid search of intelex", "GridSearchCV, ours": "grid search of ours"}
    names |= {"exhaustive": "all cells"}
    bars = {row["set"]: {label: row[key] for key, label in names.items()} for row in tuning_quotients(rows)}
    _times(axes, bars, "times as long as the search", [_INTELEX, _SKLEARN, _EARLY])


def _linear(axes: Any, rows: Rows) -> None:
    """Of each set, how many times as long LIBLINEAR takes, for the least C, 1 and the largest."""
    bars: dict[str, dict[str, float]] = {}
    for row in sorted(rows, key=lambda row: (row["set"], row["C"])):
        if row["C"] in (0.01, 1, 100) and "LIBLINEAR / OCAS" in row:
            bars.setdefault(f"{row['set']}, {row['n']:,}", {})[f"C = {row['C']:g}"] = row["LIBLINEAR / OCAS"]
    _times(axes, bars, "seconds of LIBLINEAR (1 thread) ÷ ours (2), or a bound", [_EARLY, _OURS, _SEARCH])


def _compress(axes: Any, rows: Rows) -> None:
    """Labels that differ over the speed of predictions: a point for each cost, a line through the best of each set."""
    colours = [_OURS, _EARLY, _INTELEX, _SKLEARN, _TREES]
    for name, colour in zip(dict.fromkeys(row["set"] for row in rows), colours, strict=True):
        own = sorted((row["times_sklearn"], 100 * (1 - row["agreement"])) for row in rows if row["set"] == name)
        best = [point for k, point in enumerate(own) if all(point[1] < other[1] for other in own[k + 1 :])]
        label = name.partition(":")[0]
        axes.plot(*zip(*own, strict=True), "o", color=colour, markersize=4, alpha=0.4)
        axes.plot(*zip(*best, strict=True), "o-", color=colour, label=label, linewidth=1.5, markersize=5)
    axes.set(xscale="log", yscale="log", ylabel="% of the labels that differ")
    axes.set_xlabel("times as fast as SVC.predict (one thread, ours two)")
    axes.set_xticks([1000, 2000, 5000, 10_000], ["1,000", "2,000", "5,000", "10,000"])
    axes.set_xticks([], minor=True)
    axes.set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes.set_yticks([], minor=True)
    axes.grid(alpha=0.25)
    axes.legend(ncols=2)


def _boosting(axes: Any, rows: Rows) -> None:
    """Of each set, the errors of boosted trees divided by those of the search."""
    names = {"trees": "trees by default", "trees, 500 × 63 leaves": "500 trees of 63 leaves"}
    bars: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["machine"] in names:
            bars.setdefault(f"{row['set']}, {row['n']:,}", {})[names[row["machine"]]] = row["error_ratio"]
    _times(axes, bars, "their test error ÷ ours", [_TREES, _SKLEARN])


def _regression(axes: Any, rows: Rows) -> None:
    """Of each set and problem, how many times as long other fits take."""
    _times(axes, regression_ratios(rows), "times as long as our fit", [_INTELEX, _SKLEARN])


def _small_data(axes: Any, rows: Rows) -> None:
    """Of each small set, how many times as long scikit-learn's machines take."""
    bars: dict[str, dict[str, float]] = {}
    for row in rows:
        what = {"fit": "fit", "predict one row": "prediction of a row"}[row["what"]]
        bars.setdefault(f"{row['set']}, {row['rival']}", {})[what] = row["ratio"]
    _times(axes, bars, "scikit-learn's time ÷ ours: below 1 we are slower", [_OURS, _SKLEARN])


def _times(axes: Any, bars: Bars, label: str, colours: Sequence[str]) -> None:
    """Horizontal bars of ratios on a logarithmic axis, from 1 to each, a group for each line."""
    series = list(dict.fromkeys(name for group in bars.values() for name in group))
    height = 0.8 / len(series)
    for k, (name, colour) in enumerate(zip(series, colours, strict=True)):
        at = [line + (k - (len(series) - 1) / 2) * height for line, group in enumerate(bars.values()) if name in group]
        ratios = [group[name] for group in bars.values() if name in group]
        axes.barh(at, [ratio - 1 for ratio in ratios], height, left=1, color=colour, label=name)
    axes.set_xscale("log")
    ratios = [ratio for group in bars.values() for ratio in group.values()]
    least, largest = min(ratios), max(ratios)
    digits = (1,) if largest > 100 else (1, 2, 5)
    steps = [digit * 10.0**power for power in range(-3, 7) for digit in digits]
    first = max(step for step in steps if step <= min(1.0, least))
    last = min(step for step in steps if step >= largest)
    ticks = [step for step in steps if first <= step <= last]
    axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
    axes.set_xlim(first, last)  # every bar ends between two ticks
    axes.set_xticks([], minor=True)
    axes.axvline(1, color="0.3", linewidth=1)
    axes.set_yticks(range(len(bars)), list(bars))
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)
    axes.set_xlabel(label)
    axes.figure.legend(loc="outside upper center", ncols=len(series))


PICTURES: dict[str, Picture] = {
    "covtype_accuracy": Picture(("scale", "boosting_covtype"), _covtype, (6.0, 4.2)),
    "fits": Picture(("kernel_svm", "kernel_svm_sklearn"), _fits, (6.4, 4.6)),
    "scale": Picture(("scale", "folds"), _scale, (6.4, 3.6)),
    "early": Picture(("early",), _early, (6.4, 4.2)),
    "tuning": Picture(("tuning",), _tuning, (6.4, 3.4)),
    "linear": Picture(("ocas/reach",), _linear, (6.4, 4.8)),
    "compress": Picture(("dc_pred/compress",), _compress, (6.4, 3.8)),
    "boosting": Picture(("boosting",), _boosting, (6.4, 4.8)),
    "regression": Picture(("regression",), _regression, (6.4, 3.4)),
    "small_data": Picture(("small_data",), _small_data, (6.4, 3.4)),
}
