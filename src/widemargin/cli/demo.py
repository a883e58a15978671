"""The command demo: predict from which photograph, and from which quadrant of it, a patch was cut."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from widemargin.cli.arguments import DEMO_PICTURE
from widemargin.cli.comparison import Measurement, measure
from widemargin.cli.outputs import open_output
from widemargin.cli.picture import Panel, nearest_patch_labels, paint
from widemargin.datasets import load_patches, patch_classes, photo_patches

_MACHINE: dict[str, Any] = {"C": 8.0, "gamma": 1.0, "tol": 1e-3}
_CAPTION = (
    "accuracy: of patches of both photographs, the pictures' are of one each. SVs: support vectors.\n"
    "dual: the dual objective, recomputed in float64 for both; larger is nearer to the optimum"
)


def demo(args: Namespace) -> int:
    """Train, compare and paint: `widemargin demo`."""
    from rich.console import Console

    console = Console(highlight=False)
    may_replace = args.force or args.out == DEMO_PICTURE  # so that the demo runs a second time
    with open_output(args.out, force=may_replace) as file:
        model, measurements = _compare(args, console)
        console.print(_table(measurements))
        with console.status("painting the predictions over the photographs"):
            paint([_panel(model, photo, args.task) for photo in patch_classes("photo")], patch_classes(args.task), file)
    console.print(f"The predictions over the photographs: {os.path.abspath(args.out)}", markup=False, soft_wrap=True)
    return 0


def _compare(args: Namespace, console: Any) -> tuple[Any, list[Measurement]]:
    """Fit DCSVMClassifier and, without `--no-compare`, scikit-learn's SVC on the same patches, one after the other."""
    n_train = args.n_samples
    X, y = load_patches(n_train + 5_000, task=args.task, random_state=args.random_state)
    train, test = (X[:n_train], y[:n_train]), (X[n_train:], y[n_train:])
    console.print(f"{n_train:,} patches of 5 x 5 pixels, {len(patch_classes(args.task))} classes")
    model = _make_dc_svm(args)
    measurements = [measure("widemargin", model, train, test, gamma=_MACHINE["gamma"])]
    if not args.no_compare:
        with console.status("waiting for scikit-learn's SVC, which shows no progress"):
            measurements.append(measure("sklearn SVC", _make_svc(), train, test, gamma=_MACHINE["gamma"]))
    return model, measurements


def _make_dc_svm(args: Namespace) -> Any:
    from widemargin import DCSVMClassifier

    # SVC always has an intercept: with one, both solve the same problem.
    return DCSVMClassifier(
        **_MACHINE,
        fit_intercept=True,
        verbose=int(sys.stderr.isatty() and not args.quiet),
        random_state=args.random_state,
    )


def _make_svc() -> Any:
    from sklearn.svm import SVC

    return SVC(**_MACHINE, cache_size=1_000)


def _table(measurements: Sequence[Measurement]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = "C={C:g}, RBF, gamma={gamma:g}, tol={tol:g}; accuracy on 5,000 other patches".format(**_MACHINE)
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", caption=_CAPTION, caption_justify="left")
    table.add_column("", no_wrap=True)
    for heading in ("fit, s", "ratio", "predict, s", "accuracy", "SVs", "dual"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in measurements:
        table.add_row(
            row.name,
            f"{row.fit_seconds:.2f}",
            f"{row.fit_seconds / measurements[0].fit_seconds:.1f}",
            f"{row.predict_seconds:.2f}",
            f"{row.accuracy:.4f}",
            f"{row.n_support}",
            f"{row.dual_objective:.2f}",
        )
    return table


def _panel(model: Any, photo: Any, task: Any) -> Panel:
    """One photograph with the predictions of its patches, every second pixel."""
    grid = photo_patches(photo, task=task, stride=2)
    predicted = model.predict(grid.X)
    accuracy = float(np.mean(predicted == grid.y))
    height, width = grid.image.shape[:2]
    caption = f"{photo}: {accuracy:.1%} of its patches, each 2 pixels from the next, are classified correctly"
    return Panel(grid.image, nearest_patch_labels(predicted, grid.centres, (height, width)), caption)
