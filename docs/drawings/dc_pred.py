"""Left: a kernel expansion needs every support vector. Right: a leaf of a tree, and in it some landmarks."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons
from sklearn.svm import SVC

X, y = make_moons(900, noise=0.22, random_state=1)
points = SVC(C=1, gamma=2.0).fit(X, y).support_vectors_
row = np.array([0.55, 0.35])
leaves = KMeans(5, n_init=3, random_state=0).fit(X)
leaf = leaves.predict(row[None])[0]
landmarks = KMeans(4, n_init=3, random_state=0).fit(X[leaves.labels_ == leaf]).cluster_centers_

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), sharey=True)
axes[0].plot(*np.stack([points, np.broadcast_to(row, points.shape)]).transpose(2, 0, 1), color="0.8", lw=0.5, zorder=0)
axes[0].scatter(*points.T, s=9, color="C0")
axes[0].set_title(f"exact model: {len(points)} kernel values")
axes[1].scatter(*X.T, s=5, c=leaves.labels_, cmap="Pastel1")
axes[1].plot(*np.stack([landmarks, np.broadcast_to(row, landmarks.shape)]).transpose(2, 0, 1), color="0.4", lw=1)
axes[1].scatter(*landmarks.T, s=45, color="C0", zorder=3)
axes[1].set_title(f"tree of {leaves.n_clusters} leaves: {len(landmarks)} kernel values")
for ax in axes:
    ax.scatter(*row, marker="*", s=160, color="C3", zorder=4)
    ax.set(xticks=[], yticks=[])
figure.tight_layout()
