"""The tables and figures of the DC-SVM paper, measured again against today's solvers.

::

    python evidence/dc_svm.py figure1 --sets covtype_20k
    python evidence/dc_svm.py table2 --sets ijcnn1 --limit 300
    python evidence/dc_svm.py scale --sets patches --sizes 10000 100000
    python evidence/dc_svm.py figure3 --redraw

Source: Hsieh, Si, Dhillon, A Divide-and-Conquer Solver for Kernel Support Vector Machines, ICML 2014. Every experiment
writes a CSV below a machine card and a plot into evidence/results/dc_svm; rows measured again replace the old
ones, so that an experiment can be run in pieces.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evidence._dc_svm import combine, compare, convergence, division, scale, subsamples, sweep
from measuring import report
from measuring.command import Paper, run_command

PAPER = Paper(
    summary=str(__doc__).partition("\n")[0],
    results=report.EVIDENCE / "dc_svm",
    experiments={
        "figure1": division.FIGURE1,
        "figure2": division.FIGURE2,
        "table1": combine.TABLE1,
        "table2": compare.TABLE2,
        "figure3": convergence.FIGURE3,
        "figure4": convergence.FIGURE4,
        "sweep": sweep.SWEEP,
        "clustering": combine.SHARE,
        "scale": scale.SCALE,
        "early": compare.EARLY,
        "levels": compare.LEVELS,
        "subsamples": subsamples.SUBSAMPLES,
    },
    arguments={
        "--tol": {"type": float, "default": 1e-3},
        "--repeats": {"type": int, "default": 3, "help": "fits, of which the median counts; fewer above 10 s"},
        "--limit": {"type": float, "default": 300.0, "help": "seconds after which a competitor is ended"},
    },
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment of the command line."""
    run_command(PAPER, arguments)


if __name__ == "__main__":
    main()
