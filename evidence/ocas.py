"""The tables and figures of the OCAS paper, measured again against today's solvers.

::

    python evidence/ocas.py figure2 --sets a9a ijcnn1 --C 1
    python evidence/ocas.py figure2 --redraw
    python evidence/ocas.py table4

Source: Franc, Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector Machines, ICML 2008. Every experiment
writes a CSV below a machine card and a plot into evidence/results/ocas; rows measured again replace the old
ones, so that an experiment can be run in pieces. The machines have no intercept, as in the paper. The column `others`
of every CSV is the number of cores that other processes kept busy meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evidence._ocas import large, reach, rounds, scaling, selection, several_classes
from measuring import report
from measuring.command import Paper, run_command

PAPER = Paper(
    summary=str(__doc__).partition("\n")[0],
    results=report.EVIDENCE / "ocas",
    experiments={
        "figure1": rounds.FIGURE1,
        "table2": selection.TABLE2,
        "figure2": reach.FIGURE2,
        "table3": selection.TABLE3,
        "figure3": scaling.FIGURE3,
        "table4": scaling.TABLE4,
        "bandwidth": scaling.BANDWIDTH,
        "large": large.LARGE,
        "crammer_singer": several_classes.CRAMMER_SINGER,
    },
    arguments={
        "--C": {"nargs": "+", "type": float, "help": "default: the experiment's own"},
        "--limit": {"type": float, "default": 30.0, "help": "seconds after which a single fit is given up"},
        "--reference": {"type": float, "default": 60.0, "help": "seconds at most for the fit that finds F*"},
        "--factor": {
            "type": float,
            "default": 10.0,
            "help": "a rival that takes so many times ours is given up",
        },
    },
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment of the command line."""
    run_command(PAPER, arguments)


if __name__ == "__main__":
    main()
