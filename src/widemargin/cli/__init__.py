"""The program ``widemargin``: demo, train, predict, compress and info.

::

    program      main(): arguments, exit codes, one-line errors
    commands     train, predict, compress, info
    demo         demo: patches of photographs, side by side with scikit-learn's SVC
    comparison   timing and scoring of models, and one dual objective for all of them
    picture      predictions painted over photographs
    model_files  saving and loading models with skops
    outputs      files that appear whole or not at all

Everything heavy is imported by the command that needs it, so that ``--help`` answers at once.
"""

from widemargin.cli.program import main

__all__ = ["main"]
