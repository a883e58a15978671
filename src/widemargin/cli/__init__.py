"""The program ``widemargin``: demo, train, tune, predict, compress, info and completion.

::

    program      main(): arguments, exit codes, one-line errors
    commands     train, tune, predict, compress, info
    machines     the estimators that commands make, and the options that these take
    inputs       standard input as a file, and the reader of a format
    demo         demo: patches of photographs, compared with scikit-learn's SVC
    comparison   seconds, accuracy and dual objective of several models
    picture      predictions painted over photographs
    model_files  saving and loading models with skops
    completion   scripts for shells
    outputs      output files that are replaced as a whole or not at all

Each command imports what it needs when it is run: ``--help`` takes no time.
"""

from widemargin.cli.program import main

__all__ = ["main"]
