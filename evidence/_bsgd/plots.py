"""Pictures of the BSGD experiments, from their CSV files, for the user guide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from evidence._bsgd.runs import FAST, PAPER_RULE
from widemargin.solvers.sgd.lookup_table import merge_table

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
Rows = list[dict[str, Any]]


def draw_table(rows: Rows) -> None:
    """h and wd over the whole square, as in Figure 2: the table, and its mirror image for m < 1/2."""
    table_h, root = merge_table().grids
    h, wd = np.concatenate([1 - table_h[::-1], table_h]), np.concatenate([root[::-1], root]) ** 2
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    images = [
        left.imshow(h, origin="lower", extent=(0, 1, 0, 1), aspect="auto", cmap="coolwarm"),
        right.imshow(
            np.log10(np.maximum(wd, 1e-8)), origin="lower", extent=(0, 1, 0, 1), aspect="auto", cmap="viridis"
        ),
    ]
    titles = ("h: place of the merged point", "log10 wd: squared degradation")
    for axes, image, title in zip((left, right), images, titles, strict=True):
        axes.set(xlabel="κ = k(x_i, x_j)", ylabel="m = a_j / (a_i + a_j)", title=title)
        figure.colorbar(image, ax=axes)
    left.plot([0, np.exp(-2)], [0.5, 0.5], "k", lw=2)
    left.annotate("h jumps", (np.exp(-2), 0.5), (0.3, 0.55), arrowprops={"arrowstyle": "->"})
    _save(figure, "bsgd_table")


def draw_times(rows: Rows) -> None:
    """Figure 3: seconds of the search, of the rest of a merger, and of steps, for the rules that alternate."""
    rows = [row for row in rows if row["rule"] in FAST and "search seconds" in row]
    groups = list(dict.fromkeys((row["set"], row["budget"]) for row in rows))
    if not groups:  # rows of older commits have no time of the search
        return
    figure, axes = plt.subplots(figsize=(max(6, 1.1 * len(groups) + 2), 4), layout="constrained")
    for at, group in enumerate(groups):
        mine = [row for row in rows if (row["set"], row["budget"]) == group]
        whole = next(row["seconds"] for row in mine if row["rule"] == PAPER_RULE)
        width = 0.8 / len(mine)
        for place, row in enumerate(sorted(mine, key=lambda r: FAST.index(r["rule"]))):
            offset = ((len(mine) - 1) / 2 - place) * width
            search, merging, seconds = (row[f"{part}seconds"] for part in ("search ", "merging ", ""))
            bottom, parts = 0.0, (search, merging - search, max(seconds - merging, 0.0))
            for part, colour in zip(parts, ("tab:red", "tab:orange", "tab:blue"), strict=True):
                axes.bar(at - offset, part / whole, 0.93 * width, bottom, color=colour)
                bottom += part / whole
            axes.text(at - offset, bottom + 0.01, row["rule"], ha="center", va="bottom", fontsize=6, rotation=90)
    for colour, label in (("tab:red", "search (A)"), ("tab:orange", "rest of merging (B)"), ("tab:blue", "steps")):
        axes.bar(0, 0, color=colour, label=label)
    axes.set_xticks(range(len(groups)), [f"{name}\nB={budget}" for name, budget in groups], fontsize=8)
    axes.set(ylabel=f"time, {PAPER_RULE} = 1", ylim=(0, 1.35), title="Where the time goes")
    axes.legend(fontsize=7, ncols=3, loc="upper right")
    _save(figure, "bsgd_tables")


def _save(figure: Any, name: str) -> None:
    figure.savefig(IMAGES / f"{name}.png", dpi=110)
    plt.close(figure)
