"""
What is unusual?
================

Trained on zeros alone, the model finds the digits that look least like them.

A one-class model learns from rows without labels where most of them are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from widemargin import DCOneClassSVM

X, y = load_digits(return_X_y=True)
detector = DCOneClassSVM(nu=0.05, gamma=0.001).fit(X[y == 0])
scores = detector.score_samples(X)
order = np.argsort(scores)

figure, axes = plt.subplots(3, 8, figsize=(8, 3.6))
rows = {"usual": order[-8:], "odd zeros": order[y[order] == 0][:8], "unusual": order[:8]}
for line, (name, chosen) in zip(axes, rows.items(), strict=True):
    for ax, row in zip(line, chosen, strict=True):
        ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
figure.tight_layout()
