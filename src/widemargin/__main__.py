"""Run the program as ``python -m widemargin``."""

import sys

from widemargin.cli import main

if __name__ == "__main__":
    sys.exit(main())
