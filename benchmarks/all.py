"""Run or list the experiments of this folder: ``python benchmarks/all.py --help``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.command import main

README = ("scale", "kernel_svm", "kernel_svm_sklearn", "boosting_covtype")

if __name__ == "__main__":
    main("benchmarks", groups={"readme": README})
