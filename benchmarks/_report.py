"""What a benchmark leaves behind: a machine card, a table on the terminal, a CSV, a plot."""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "daal", "numba", "threadpoolctl")

Row = Mapping[str, Any]


def machine_card() -> dict[str, str]:
    """Return what a reader needs to judge the seconds: processor, cores, memory, system, BLAS and versions."""
    from threadpoolctl import threadpool_info

    import widemargin

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    card = {
        "processor": _processor(),
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


def write_csv(path: Path, rows: Sequence[Row], card: Mapping[str, str]) -> None:
    """Write the rows, all keys of all rows as columns, below the card as `#` lines (`pandas.read_csv(comment="#")`)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="") as file:
        file.writelines(f"# {key}: {value}\n" for key, value in card.items())
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _exact(value) for key, value in row.items()} for row in rows)


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


def _aligned(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(cells, widths, numeric, strict=True))
    return "  ".join(parts).rstrip()


def _exact(value: Any) -> Any:
    return f"{value:.9g}" if isinstance(value, float) else value


def _short(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _processor() -> str:
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
