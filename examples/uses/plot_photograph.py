"""
Two photographs, patch by patch
===============================

Sky, tower and leaves are told apart by 5 × 5 pixels; a blurred background is not.

From which photograph is each patch, and from which quarter of it? The model sees 6,000 patches, and then
labels every third pixel of both photographs. The white part of the right-hand pictures is where it is wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import DCSVMClassifier
from widemargin.datasets import load_patches, photo_patches

X, y = load_patches(6_000, task="quadrant", random_state=0)
model = DCSVMClassifier(C=8, gamma=1.0).fit(X, y)

figure, axes = plt.subplots(2, 2, figsize=(8, 5.6))
for (left, right), photo in zip(axes, ("china", "flower"), strict=True):
    grid = photo_patches(photo, task="quadrant", stride=3)
    labels = model.predict(grid.X)
    left.imshow(grid.image)
    right.imshow(np.where(labels == grid.y, labels, np.nan).reshape(grid.shape), cmap="tab10", vmin=0, vmax=9)
    right.set_title(f"{np.mean(labels == grid.y):.0%} of the patches are right")
for ax in axes.flat:
    ax.set_axis_off()
figure.tight_layout()
