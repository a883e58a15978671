"""
Five models side by side
==========================

Four models follow the moons; the linear one is the cheapest, and cuts straight.

The same two moons, and the decision boundary of each method: exact, early, approximated, of fixed size, linear.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from widemargin import BSGDClassifier, DCPredClassifier, DCSVMClassifier, OCASClassifier

X, y = make_moons(1500, noise=0.22, random_state=0)
models = {
    "exact: DCSVMClassifier": DCSVMClassifier(gamma=2.0),
    "early: stop_level=1": DCSVMClassifier(gamma=2.0, stop_level=1, random_state=0),
    "approximated: DCPredClassifier": DCPredClassifier(gamma=2.0, prediction_cost=20, random_state=0),
    "budget of 20: BSGDClassifier": BSGDClassifier(C=10, gamma=2.0, budget=20, random_state=0),
    "linear: OCASClassifier": OCASClassifier(),
}

figure, axes = plt.subplots(2, 3, figsize=(8.4, 5))
for ax, (name, model) in zip(axes.flat, models.items(), strict=False):
    model.fit(X, y)
    DecisionBoundaryDisplay.from_estimator(model, X, response_method="predict", cmap="coolwarm", alpha=0.4, ax=ax)
    ax.scatter(*X.T, c=y, s=3, cmap="coolwarm")
    ax.set_title(f"{name}\naccuracy {model.score(X, y):.3f}", fontsize="medium")
    ax.set(xticks=[], yticks=[])
axes[1, 2].set_axis_off()
figure.tight_layout()
