"""The tables and figures of the DC-Pred++ paper, measured again; and `compress` on fitted SVCs of scikit-learn.

::

    python evidence/dc_pred.py table1 --sets letter
    python evidence/dc_pred.py figure3 --sets cadata cpusmall
    python evidence/dc_pred.py compress --sets a9a codrna mnist
    python evidence/dc_pred.py figure1 --redraw

Source: Hsieh, Si, Dhillon, Fast Prediction for Large-Scale Kernel Machines, NIPS 2014. Every experiment writes a CSV
below a machine card and a plot into evidence/results/dc_pred. `multiple` is the time of a prediction in
multiples of `LinearSVC.decision_function`'s on the same float32 rows, at least 10,000, each timed alone.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evidence._dc_pred import approximation, compression, regression, tables, weights
from measuring import report
from measuring.command import Paper, run_command

PAPER = Paper(
    summary=str(__doc__).partition("\n")[0],
    results=report.EVIDENCE / "dc_pred",
    experiments={
        "figure1": approximation.FIGURE1,
        "search": tables.SEARCH,
        "table1": tables.TABLE1,
        "figure2": tables.FIGURE2,
        "ablation": tables.ABLATION,
        "tradeoff": tables.TRADEOFF,
        "figure3": regression.FIGURE3,
        "figure4": weights.FIGURE4,
        "compress": compression.COMPRESS,
    },
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment of the command line."""
    run_command(PAPER, arguments)


if __name__ == "__main__":
    main()
