"""Output of a benchmark: a machine card, a table on the terminal, a CSV, a plot."""

from __future__ import annotations

import csv
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

_ROOT = Path(__file__).resolve().parents[1]
_CODE = ("src", "benchmarks/*.py", "evidence/*.py")
RESULTS = Path(__file__).resolve().parent / "results"
EVIDENCE = _ROOT / "evidence" / "results"  # of the papers' experiments
_PACKAGES = ("numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "daal", "numba", "threadpoolctl")

_MARKERS = "osv^D*Xp<>h"

Row = Mapping[str, Any]


def machine_card() -> dict[str, str]:
    """Return the machine card: processor, cores, memory, system, BLAS and versions."""
    from threadpoolctl import threadpool_info

    import widemargin

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    card = {
        "processor": processor(),
        "cores": str(cores),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "blas": ", ".join(
            sorted({f"{p['internal_api']} {p['version']}" for p in threadpool_info() if p["user_api"] == "blas"})
        ),
    }
    card["widemargin"] = widemargin.__version__  # also where it runs from a checkout, not installed
    for name in _PACKAGES:
        try:
            card[name] = version(name)
        except PackageNotFoundError:
            card[name] = "absent"
    return card


def run_card() -> dict[str, str]:
    """Return the machine card, with the commit and the day of this run: its latest, where a file is made in pieces."""
    return machine_card() | {"commit": commit(), "date": datetime.now(UTC).date().isoformat()}


@cache
def commit() -> str:
    """Return the short name of the last commit that changed code, with + where code differs from it now.

    Commits of results or texts alone do not count, so a table measured in several parts has one commit. "unknown"
    without git.
    """
    name = git("log", "-1", "--format=%h", "--abbrev=9", "--", *_CODE)
    return name + "+" * bool(git("status", "--porcelain", "--", *_CODE)) if name else "unknown"


def git(*arguments: str) -> str:
    """Return what a git command prints in this repository; nothing where it fails, or there is no git."""
    try:
        done = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def write_csv(path: Path, rows: Sequence[Row], card: Mapping[str, str]) -> None:
    """Write the rows, all keys of all rows as columns, below the card as `#` lines (`pandas.read_csv(comment="#")`).

    Into a file beside it that then takes its place: a process that is ended meanwhile leaves all earlier rows. Where
    the card is that of a run, rows that the file did not have get its commit, date and machine.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if "commit" in card:
        rows = _with_origin(rows, read_csv(path), card)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    unfinished = path.with_suffix(".csv.part")
    with unfinished.open("w", newline="") as file:
        file.writelines(f"# {key}: {value}\n" for key, value in card.items())
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _exact(value) for key, value in row.items()} for row in rows)
    unfinished.replace(path)


def _with_origin(rows: Sequence[Row], old: Sequence[Row], card: Mapping[str, str]) -> list[Row]:
    origin = {key: card[key] for key in ("commit", "date")}
    origin["machine_card"] = f"{card['processor']}, {card['cores']} cores"
    known = {_as_read(row) for row in old}
    return [row if "commit" in row or _as_read(row) in known else {**row, **origin} for row in rows]


def _as_read(row: Row) -> frozenset[tuple[str, Any]]:
    """A row as `read_csv` gives it."""
    texts = {key: str(_exact(value)) for key, value in row.items() if value is not None}
    return frozenset((key, _parsed(text, key)) for key, text in texts.items() if text != "")


def results(name: str) -> list[dict[str, Any]]:
    """Return the rows of a results file: ``NAME``, or ``PAPER/NAME`` of a paper's experiment."""
    return read_csv(results_path(name))


def results_path(name: str) -> Path:
    """Return where the results file of this name is."""
    return (EVIDENCE if "/" in name else RESULTS) / f"{name}.csv"


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV that `write_csv` wrote, numbers as numbers; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        lines = csv.DictReader(line for line in file if not line.startswith("#"))
        return [{key: _parsed(value, key) for key, value in line.items() if value != ""} for line in lines]


def format_table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Return the chosen columns as aligned text: names to the left, numbers to the right, `-` where there is none."""
    cells = [list(columns)] + [[_short(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    numeric = [any(isinstance(row.get(column), int | float) for row in rows) for column in columns]
    cells.insert(1, ["-" * w for w in widths])
    return "\n".join(_aligned(line, widths, numeric) for line in cells)


def plot_bars(path: Path, values: Mapping[str, Mapping[str, float]], *, title: str, ylabel: str) -> None:
    """Draw grouped bars on a logarithmic axis: one group for each outer key, one colour for each inner key."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    series = list(dict.fromkeys(name for group in values.values() for name in group))
    width = 0.8 / max(1, len(series))
    figure, axes = plt.subplots(figsize=(max(6.0, 1.5 * len(values) + 2.0), 4.0), layout="constrained")
    for k, name in enumerate(series):
        at = [g + (k - (len(series) - 1) / 2) * width for g, group in enumerate(values.values()) if name in group]
        bars = axes.bar(at, [group[name] for group in values.values() if name in group], width, label=name)
        axes.bar_label(bars, fmt="%.2g", fontsize=6)
    axes.set_yscale("log")
    axes.set_xticks(range(len(values)), list(values))
    axes.set_ylabel(ylabel)
    axes.set_title(title, fontsize=9)
    axes.legend(fontsize=7, ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


class Panel(NamedTuple):
    """One pair of axes: named series of x and y, drawn as lines or, where x has no order, as points."""

    title: str
    xlabel: str
    ylabel: str
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    logarithmic: str = ""  # "x", "y" or "xy"
    lines: bool = True
    names: Sequence[str] = ()  # of x = 0, 1, ...


class Surface(NamedTuple):
    """One pair of axes: values (len(y), len(x)) as colours, at x and y."""

    title: str
    xlabel: str
    ylabel: str
    x: Sequence[float]
    y: Sequence[float]
    values: Sequence[Sequence[float]]


def plot_panels(path: Path, panels: Sequence[Panel | Surface], *, title: str = "", columns: int = 3) -> None:
    """Draw panels side by side, with one legend for all."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(columns, len(panels))
    n_rows = -(-len(panels) // columns)
    size = max(6.0, 3.6 * columns), 2.8 * n_rows + 0.5
    figure, grid = plt.subplots(n_rows, columns, figsize=size, layout="constrained", squeeze=False)
    names = list(dict.fromkeys(name for panel in panels if isinstance(panel, Panel) for name in panel.series))
    for axes, panel in zip(grid.flat, panels, strict=False):
        if isinstance(panel, Panel):
            _draw(axes, panel, names)
        else:
            _colour(axes, panel)
        axes.set_title(panel.title, fontsize=8)
        axes.set_xlabel(panel.xlabel, fontsize=7)
        axes.set_ylabel(panel.ylabel, fontsize=7)
        axes.tick_params(which="both", labelsize=6)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    handles = {label: h for a in grid.flat for h, label in zip(*a.get_legend_handles_labels(), strict=True)}
    figure.legend(
        handles.values(), handles.keys(), fontsize=7, ncols=4 if columns > 1 else 3, loc="outside lower center"
    )
    figure.suptitle(title, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _draw(axes: Any, panel: Panel, names: Sequence[str]) -> None:
    for name, (x, y) in panel.series.items():
        k = names.index(name)
        style = {"color": f"C{k % 10}", "marker": _MARKERS[k % len(_MARKERS)]}
        axes.plot(x, y, label=name, markersize=4, linewidth=1.2 if panel.lines else 0, **style)
    for axis in panel.logarithmic:
        getattr(axes, f"set_{axis}scale")("log")
    if panel.names:
        axes.set_xticks(range(len(panel.names)), panel.names, rotation=20)
    axes.grid(alpha=0.3)


def _colour(axes: Any, surface: Surface) -> None:
    image = axes.imshow(surface.values, origin="lower", aspect="auto")
    axes.set_xticks(range(len(surface.x)), [f"{x:g}" for x in surface.x])
    axes.set_yticks(range(len(surface.y)), [f"{y:g}" for y in surface.y])
    axes.figure.colorbar(image, ax=axes).ax.tick_params(labelsize=6)


def _aligned(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(cells, widths, numeric, strict=True))
    return "  ".join(parts).rstrip()


def _parsed(text: str, column: str) -> Any:
    if column == "commit":  # 569e37262 is no number
        return text
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _exact(value: Any) -> Any:
    return f"{value:.9g}" if isinstance(value, float) else value


def _short(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def processor() -> str:
    """Return the name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _memory() -> str:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return "unknown"
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
