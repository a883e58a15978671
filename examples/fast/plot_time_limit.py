"""
A time limit, and how far it got
================================

A fit that is stopped returns its best model, and says how far from the optimum it can be.

The same problem with several limits. Times are of the computer that made this page.
"""

import warnings

import matplotlib.pyplot as plt

from widemargin import ConvergenceDisplay, DCSVMClassifier
from widemargin.datasets import load_patches

X, y = load_patches(12_000, task="photo", random_state=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4))
for limit in (0.1, None):
    model = DCSVMClassifier(C=100, gamma=0.3, n_levels=0, max_time=limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it states the gap, as the picture does
        model.fit(X, y)
    name = f"{limit} s" if limit else "no limit"
    print(f"{name}: the objective is at most {model.relative_gap_:.1%} of itself above the optimum")
    ConvergenceDisplay.from_estimator(model, kind="gap", name=name, ax=left, marker="o")
    right.plot(model.history_["time"], model.history_["n_support"], "o-", label=name)
right.set(xlabel="Time (s)", ylabel="Support vectors")
right.legend()
figure.tight_layout()
