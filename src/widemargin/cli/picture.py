"""Predictions painted over photographs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Four blues and greens for one photograph, four reds and yellows for the other: also for colour-blind readers.
_COLOURS = (
    (68, 119, 170),
    (102, 204, 238),
    (34, 136, 51),
    (51, 34, 136),
    (238, 102, 119),
    (204, 187, 68),
    (221, 119, 51),
    (170, 51, 119),
)


class Panel(NamedTuple):
    """One photograph, and the label predicted at each of its pixels.

    Attributes
    ----------
    image : ndarray of shape (height, width, 3), uint8
    labels : ndarray of shape (height, width), int64
    caption : str
    """

    image: NDArray[np.uint8]
    labels: NDArray[np.int64]
    caption: str


def nearest_patch_labels(labels: NDArray[Any], centres: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    """The label of each pixel: that of the patch whose centre is nearest.

    Parameters
    ----------
    labels : ndarray of shape (n_rows * n_columns,)
        Predictions on a regular grid, row by row.
    centres : ndarray of shape (n_rows * n_columns, 2)
        Row and column of each patch's centre.
    shape : tuple (height, width)
        Size of the photograph.

    Returns
    -------
    ndarray of shape (height, width), int64

    Examples
    --------
    >>> centres = np.array([[1, 1], [1, 4]])
    >>> nearest_patch_labels(np.array([7, 8]), centres, (1, 6))
    array([[7, 7, 7, 8, 8, 8]])
    """
    rows, columns = np.unique(centres[:, 0]), np.unique(centres[:, 1])
    grid = np.asarray(labels, dtype=np.int64).reshape(len(rows), len(columns))
    nearest = [_nearest(axis, length) for axis, length in zip((rows, columns), shape, strict=True)]
    return grid[np.ix_(*nearest)]


def _nearest(centres: NDArray[np.int64], length: int) -> NDArray[np.intp]:
    return np.searchsorted((centres[1:] + centres[:-1]) / 2, np.arange(length), side="left")


def paint(panels: Sequence[Panel], classes: Sequence[str], file: BinaryIO) -> None:
    """Write a PNG with one row per photograph: the photograph, and beside it the same with the predictions over it.

    All panels have one size; at most eight classes, named in the legend. With more than two, white lines separate the
    quadrants.
    """
    from PIL import Image, ImageDraw

    (height, width), margin, line = panels[0].labels.shape, 12, 22
    row_height = height + line + margin
    legend_rows = -(-len(classes) // 4)
    size = (2 * width + 3 * margin, len(panels) * row_height + legend_rows * line + 2 * margin)
    canvas = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(canvas)
    palette = _palette(len(classes))
    for number, panel in enumerate(panels):
        top = margin + number * row_height
        canvas.paste(Image.fromarray(panel.image), (margin, top))
        canvas.paste(Image.fromarray(_overlay(panel, palette)), (2 * margin + width, top))
        if len(classes) > 2:
            _draw_cross(draw, (2 * margin + width, top), (width, height))
        draw.text((2 * margin + width, top + height + 4), panel.caption, fill="black", font=_font())
    _draw_legend(draw, classes, palette, (margin, margin + len(panels) * row_height), (size[0] - margin) // 4, line)
    canvas.save(file, format="PNG")


def _palette(n_classes: int) -> NDArray[np.uint8]:
    """The colours (n_classes, 3): with two classes one from each half."""
    chosen = (_COLOURS[0], _COLOURS[4]) if n_classes == 2 else _COLOURS[:n_classes]
    return np.array(chosen, dtype=np.uint8)


def _overlay(panel: Panel, palette: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Tint the photograph's brightness with the predicted classes' colours."""
    brightness = panel.image.mean(axis=2, keepdims=True)
    return np.asarray(0.35 * brightness + 0.65 * palette[panel.labels], dtype=np.uint8)


def _draw_cross(draw: Any, corner: tuple[int, int], size: tuple[int, int]) -> None:
    """White lines between the quadrants."""
    (x, y), (width, height) = corner, size
    draw.line((x + width // 2, y, x + width // 2, y + height - 1), fill="white")
    draw.line((x, y + height // 2, x + width - 1, y + height // 2), fill="white")


def _font() -> Any:
    from PIL import ImageFont

    try:
        return ImageFont.load_default(size=14)
    except (ImportError, OSError, TypeError):  # Pillow 10.0, or one built without FreeType, has one size only
        return ImageFont.load_default()


def _draw_legend(
    draw: Any, classes: Sequence[str], palette: NDArray[np.uint8], corner: tuple[int, int], step: int, line: int
) -> None:
    for number, name in enumerate(classes):
        x, y = corner[0] + (number % 4) * step, corner[1] + (number // 4) * line
        draw.rectangle((x, y + 2, x + 14, y + 16), fill=tuple(palette[number].tolist()))
        draw.text((x + 20, y), name, fill="black", font=_font())
