"""The tables and figures of Glasmachers and Qaadan's paper, measured again; and BSGD beside other machines.

::

    python evidence/bsgd.py tables --sets ijcnn1 a9a     # accuracy, times, decisions of the rules of merging
    python evidence/bsgd.py tradeoff --sets ijcnn1       # B = 50 ... 2000 beside SGD on random features
    python evidence/bsgd.py rival --folder BIN           # beside BudgetedSVM's programs, built elsewhere

Source: Glasmachers, Qaadan, Speeding Up Budgeted Stochastic Gradient Descent SVM Training with Precomputed Golden
Section Search, 2018. Every experiment writes a CSV below a machine card and a plot into evidence/results/bsgd.
One thread.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evidence._bsgd import plots, rivals, tables
from measuring import report
from measuring.command import Paper, run_command

PAPER = Paper(
    summary=str(__doc__).partition("\n")[0],
    results=report.EVIDENCE / "bsgd",
    experiments={
        "table1": tables.TABLE1,
        "tables": tables.TABLES,
        "figure2": tables.FIGURE2,
        "rival": rivals.RIVAL,
        "speed": rivals.SPEED,
        "stream": rivals.STREAM,
        "tradeoff": rivals.TRADEOFF,
    },
    draw=plots.draw_all,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment of the command line."""
    run_command(PAPER, arguments)


if __name__ == "__main__":
    main()
