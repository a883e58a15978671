"""Pictures of results: panels of lines, points or colours."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_MARKERS = "osv^D*Xp<>h"


class Panel(NamedTuple):
    """One pair of axes: named series of x and y, drawn as lines or, where x has no order, as points."""

    title: str
    xlabel: str
    ylabel: str
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    logarithmic: str = ""  # "x", "y" or "xy"
    lines: bool = True


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
    _save(figure, path, dpi=80)


def _draw(axes: Any, panel: Panel, names: Sequence[str]) -> None:
    for name, (x, y) in panel.series.items():
        k = names.index(name)
        style = {"color": f"C{k % 10}", "marker": _MARKERS[k % len(_MARKERS)]}
        axes.plot(x, y, label=name, markersize=4, linewidth=1.2 if panel.lines else 0, **style)
    for axis in panel.logarithmic:
        getattr(axes, f"set_{axis}scale")("log")
    axes.grid(alpha=0.3)


def _colour(axes: Any, surface: Surface) -> None:
    image = axes.imshow(surface.values, origin="lower", aspect="auto")
    axes.set_xticks(range(len(surface.x)), [f"{x:g}" for x in surface.x])
    axes.set_yticks(range(len(surface.y)), [f"{y:g}" for y in surface.y])
    axes.figure.colorbar(image, ax=axes).ax.tick_params(labelsize=6)


def _save(figure: Any, path: Path, dpi: int) -> None:
    """Write a PNG of few colours: a quarter of the bytes."""
    import matplotlib.pyplot as plt
    from PIL import Image

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=dpi)
    plt.close(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(drawn).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
