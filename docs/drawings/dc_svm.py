"""Left: clusters of the rows, with the decision boundary of each cluster's model. Right: the exact model."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from widemargin import DCSVMClassifier

X, y = make_moons(1200, noise=0.22, random_state=1)
exact = DCSVMClassifier(C=1, gamma=2.0).fit(X, y)
early = DCSVMClassifier(C=1, gamma=2.0, stop_level=1, n_levels=1, random_state=0).fit(X, y)

across, up = np.meshgrid(np.linspace(-1.7, 2.7, 300), np.linspace(-1.3, 1.8, 220))
grid = np.column_stack([across.ravel(), up.ravel()])

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), sharey=True)
for ax, model, title in zip(
    axes, (early, exact), ("level 1: four clusters, a model for each", "whole problem, from there"), strict=True
):
    ax.scatter(*X.T, c=y, s=5, cmap="coolwarm", alpha=0.5)
    ax.contour(across, up, model.decision_function(grid).reshape(across.shape), [0], colors="black", linewidths=1.6)
    ax.set(title=title, xticks=[], yticks=[])
figure.tight_layout()
