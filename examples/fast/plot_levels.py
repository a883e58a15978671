"""
The levels of DC-SVM, as maps
=============================

Most support vectors of the whole problem are found in its clusters.

DC-SVM divides the rows into clusters, finer at each level, and solves each cluster on its own. Support vectors found
there are the start of the next level.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from widemargin import DCSVMClassifier

X, y = make_moons(3000, noise=0.2, random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(8.4, 3.1))
for level, ax in zip((2, 1, 0), axes, strict=True):
    model = DCSVMClassifier(gamma=2.0, stop_level=level, n_levels=level, random_state=0).fit(X, y)
    if level:
        ax.scatter(*X.T, c=model.assign_clusters(X), s=8, cmap="tab20", alpha=0.5)
        title = f"level {level}: {model.levels_[-1]['n_clusters']} clusters"
    else:
        ax.scatter(*X.T, s=8, color="0.85")
        title = "the whole problem"
    ax.scatter(*model.support_vectors_.T, s=4, color="black")
    ax.set(title=f"{title}\n{len(model.support_vectors_)} support vectors", xticks=[], yticks=[])
figure.tight_layout()
