"""The program ``widemargin``: demo, train, tune, predict, compress and info.

::

    program, arguments   main(): checked files, exit codes, one-line errors; the arguments of each command
    streams              standard streams, notes, inputs and outputs as files, signals that end the program
    commands             train, tune, predict, compress, info; which machines take which options
    data                 the data of the commands, also streamed, with the columns that a model knows
    reports              what was trained on what, what is in a model file; labels compared with classes
    demo                 patches of photographs: compared with scikit-learn's SVC, and predictions painted over them

Each command imports what it needs when it is run: ``--help`` takes no time.
"""

from __future__ import annotations

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """`program.main`, whose modules are imported here: 130, without a traceback, if Ctrl-C comes meanwhile."""
    try:
        from widemargin.cli import program

        return program.main(argv)
    except KeyboardInterrupt:
        return 130
