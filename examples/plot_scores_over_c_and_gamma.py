"""
Scores over C and γ
===================

The usual picture of a kernel SVM's parameters: a diagonal ridge of good pairs. Below it the machine underfits,
above it it overfits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from widemargin import DCSVMClassifier

X, y = load_digits(return_X_y=True)
Cs, gammas = np.logspace(-2, 2, 5), np.logspace(-5, -2, 7)
search = GridSearchCV(DCSVMClassifier(), {"C": Cs, "gamma": gammas}, cv=3).fit(X[:800].astype(np.float32), y[:800])
scores = search.cv_results_["mean_test_score"].reshape(len(Cs), len(gammas))

figure, ax = plt.subplots(figsize=(6, 4))
picture = ax.pcolormesh(gammas, Cs, scores, cmap="viridis", shading="nearest")
ax.plot(search.best_params_["gamma"], search.best_params_["C"], "r*", markersize=14, label="best")
ax.set(xscale="log", yscale="log", xlabel="gamma", ylabel="C")
ax.legend()
figure.colorbar(picture, label="Accuracy of three folds")
figure.tight_layout()
