"""Seconds and log loss of `calibrate` beside `CalibratedClassifierCV`, of an early machine on the bundled patches.

python benchmarks/probabilities.py

40,000 rows train, 20,000 are scored; one thread, seconds of the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss

from widemargin import DCSVMClassifier, calibrate
from widemargin.datasets import load_patches

_TRAIN, _TEST = 40_000, 20_000


def main() -> None:
    """Print a line for the fit, and one for each calibration."""
    X, y = load_patches(_TRAIN + _TEST)
    X_train, y_train = X[:_TRAIN], y[:_TRAIN]
    model = DCSVMClassifier(C=8, gamma=1.0, n_levels=3, stop_level=3, n_jobs=1)
    again = CalibratedClassifierCV(clone(model), ensemble=False)
    calls: dict[str, Callable[[], Any]] = {
        "fit": lambda: model.fit(X_train, y_train),
        "calibrate": lambda: calibrate(model, X_train, y_train),
        "CalibratedClassifierCV": lambda: again.fit(X_train, y_train),
    }
    for name, call in calls.items():
        start = time.process_time()
        fitted = call()
        seconds = time.process_time() - start
        loss = f", log loss {log_loss(y[_TRAIN:], fitted.predict_proba(X[_TRAIN:])):.4f}" if fitted is not model else ""
        print(f"{name:24}{seconds:.2f} s{loss}")


if __name__ == "__main__":
    main()
