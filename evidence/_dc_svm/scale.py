"""Time and memory against the number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evidence._dc_svm.compare import INTELEX
from evidence._dc_svm.machines import SETTINGS, Machine, load, measure_apart, settings_of
from measuring.experiment import Experiment, Row, Run, grouped
from measuring.plots import Panel


def _scale(name: str, options: Run) -> Iterator[Row]:
    for n in options.sizes:
        problem = load(name, n)
        level = max(1, round(np.log(n / 2000) / np.log(4)))
        memory = {"memory_budget": options.budget}
        machines = (
            Machine("DC-SVM", "exact", memory),
            Machine("DC-SVM early", "exact", {"stop_level": level, **memory}),
            INTELEX,
        )
        for machine in machines:
            if options.wants(machine.label, set=name, n=n, machine=machine.label):
                yield measure_apart(
                    machine, settings_of(problem, tol=options.tol), problem, rows=n, limit=options.limit
                )


def slopes(rows: Sequence[Row]) -> list[Row]:
    """Return for each set and machine the exponent p of the fitted time ~ n^p."""
    found = []
    for (name, machine), mine in grouped([row for row in rows if "seconds" in row], "set", "machine"):
        if len(mine) > 1:
            n, seconds = np.log([[row["n"] for row in mine], [row["seconds"] for row in mine]])
            found.append({"set": name, "machine": machine, "slope": float(np.polyfit(n, seconds, 1)[0])})
    return found


def _panels(rows: Sequence[Row]) -> list[Panel]:
    panels = []
    powers = {
        name: ", ".join(f"{row['machine']} n^{row['slope']:.2f}" for row in mine)
        for (name,), mine in grouped(slopes(rows), "set")
    }
    rows = [row for row in rows if row["set"] in powers]  # one size alone is no curve
    for column, label, factor in (("seconds", "training time, seconds", 1.0), ("peak_mb", "peak memory, GB", 1e-3)):
        for (name,), some in grouped(rows, "set"):
            series = {}
            for (machine,), mine in grouped([row for row in some if column in row], "machine"):
                mine = sorted(mine, key=lambda row: int(row["n"]))
                series[str(machine)] = [row["n"] for row in mine], [factor * row[column] for row in mine]
            title = powers[name] if column == "seconds" else str(name)
            panels.append(Panel(title, "training rows", label, series, "xy"))
    return panels


SCALE = Experiment(  # time and memory against the number of rows
    "dc_svm/scale",
    ("patches",),
    ("set", "n", "machine"),
    _scale,
    settings={**SETTINGS, "sizes": (10_000, 30_000, 100_000, 300_000), "budget": "2GB"},
    parts=True,
    seconds=110.0,
    panels=_panels,
)
