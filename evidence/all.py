"""Run or list the experiments of this folder: ``python evidence/all.py --help``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evidence import _index
from measuring.command import main

if __name__ == "__main__":
    main("evidence", first=[item["results"] for item in _index.items()])
