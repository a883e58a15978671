"""
Exact or early?
===============

More clusters take less time, until there are too few rows in each.

Early prediction has one small kernel model for each cluster. Times are of the computer that made this page.
"""

from time import perf_counter

import matplotlib.pyplot as plt

from widemargin import DCSVMClassifier
from widemargin.datasets import load_patches

X, y = load_patches(16_000, random_state=0)
X_train, y_train, X_test, y_test = X[:12_000], y[:12_000], X[12_000:], y[12_000:]

figure, ax = plt.subplots(figsize=(6, 4))
for level in range(4):
    model = DCSVMClassifier(C=8, gamma=1.0, stop_level=level, random_state=0)
    start = perf_counter()
    model.fit(X_train, y_train)
    seconds = perf_counter() - start
    ax.scatter(seconds, model.score(X_test, y_test), color="C1" if level else "C0")
    name = f"{model.levels_[-1]['n_clusters']} clusters" if level else "exact"
    ax.annotate(name, (seconds, model.score(X_test, y_test)), xytext=(5, 5), textcoords="offset points")
ax.set(xlabel="Training time (s)", ylabel="Accuracy on other patches", xlim=(0, None))
ax.margins(x=0.2, y=0.2)
figure.tight_layout()
