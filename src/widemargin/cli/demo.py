"""The command demo: predict from which photograph, and from which quadrant of it, a patch was cut."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from typing import Any, BinaryIO

import numpy as np

from widemargin._types import Given, Model
from widemargin.cli.arguments import DEMO_PICTURE
from widemargin.cli.streams import open_output
from widemargin.datasets import PATCH_CLASSES, load_patches, photo_patches

_MACHINE: dict[str, Any] = {"C": 8.0, "gamma": 1.0, "tol": 1e-3}
_TITLE = "C={C:g}, RBF, gamma={gamma:g}, tol={tol:g}; accuracy on 5,000 other patches, of both photographs"
_STRIDE = 2  # pixels from one painted patch to the next
# Four blues and greens for one photograph, four reds and yellows for the other: also for colour-blind readers.
_COLOURS = ("#4477aa", "#66ccee", "#228833", "#332288", "#ee6677", "#ccbb44", "#dd7733", "#aa3377")


def demo(args: Namespace) -> int:
    """Train, compare and paint: `widemargin demo`."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from sklearn.svm import SVC

    from widemargin import DCSVMClassifier

    console, n = Console(highlight=False), args.n_samples
    may_replace = args.force or args.out == DEMO_PICTURE  # so that the demo runs a second time
    with open_output(args.out, force=may_replace) as file:
        X, y = load_patches(n + 5_000, task="quadrant", random_state=args.random_state)
        console.print(f"{n:,} patches of 5 x 5 pixels, 8 classes")
        # SVC always has an intercept: with one, both solve the same problem.
        verbose = int(sys.stderr.isatty() and not args.quiet)
        ours = DCSVMClassifier(**_MACHINE, fit_intercept=True, verbose=verbose, random_state=args.random_state)
        table = Table("", title=_TITLE.format(**_MACHINE), box=SIMPLE_HEAD, title_justify="left")
        for heading in ("fit, s", "predict, s", "accuracy", "support vectors"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_row("widemargin", *_measure(ours, X, y, n))
        with console.status("waiting for scikit-learn's SVC, which shows no progress"):
            table.add_row("sklearn SVC", *_measure(SVC(**_MACHINE, cache_size=1_000), X, y, n))
        console.print(table)
        with console.status("painting the predictions over the photographs"):
            _paint(ours, file)
    console.print(f"The predictions over the photographs: {os.path.abspath(args.out)}", markup=False, soft_wrap=True)
    return 0


def _measure(model: Model, X: Given, y: Given, n: int) -> list[str]:
    """The cells of the table for a model fitted on the first n samples."""
    start = time.perf_counter()
    model.fit(X[:n], y[:n])
    fitted = time.perf_counter()
    accuracy = np.mean(model.predict(X[n:]) == y[n:])
    seconds = f"{fitted - start:.2f}", f"{time.perf_counter() - fitted:.2f}"
    return [*seconds, f"{accuracy:.4f}", str(len(model.support_))]


def _paint(model: Model, file: BinaryIO) -> None:
    """Write a PNG: each photograph, beside it the predictions of its patches over it, and a legend."""
    from PIL import Image, ImageColor, ImageDraw

    bands, palette = [], np.array(list(map(ImageColor.getrgb, _COLOURS)))
    for photo in PATCH_CLASSES["photo"]:
        grid = photo_patches(photo, stride=_STRIDE)  # type: ignore[arg-type]
        labels = np.kron(model.predict(grid.X).reshape(grid.shape), np.ones((_STRIDE, _STRIDE), dtype=np.int64))
        height, width = grid.image.shape[:2]
        missing = height - labels.shape[0], width - labels.shape[1]  # half a patch on each side
        labels = np.pad(labels, [(gap // 2, gap - gap // 2) for gap in missing], mode="edge")
        overlay = 0.35 * grid.image.mean(axis=2, keepdims=True) + 0.65 * palette[labels]
        bands.append(np.hstack([grid.image, overlay.astype(np.uint8)]))
    picture = np.vstack(bands)
    canvas = Image.new("RGB", (picture.shape[1], picture.shape[0] + 48), "white")
    canvas.paste(Image.fromarray(picture))
    draw = ImageDraw.Draw(canvas)
    for k, name in enumerate(PATCH_CLASSES["quadrant"]):
        x, y = k % 4 * canvas.width // 4 + 8, picture.shape[0] + k // 4 * 24 + 5
        draw.rectangle((x, y, x + 14, y + 14), fill=_COLOURS[k])
        draw.text((x + 20, y), name, fill="black")
    canvas.save(file, format="PNG")
