"""
What a cheap prediction costs in accuracy
=========================================

A few dozen inner products predict nearly as well as hundreds of support vectors.

One exact model, compressed for several costs of a prediction. The scores are of rows that none of them has seen.
"""

import matplotlib.pyplot as plt

from widemargin import DCSVMClassifier, OCASClassifier, compress
from widemargin.datasets import load_patches

X, y = load_patches(5_000, task="photo", random_state=0)
X_train, y_train, X_test, y_test = X[:3_000], y[:3_000], X[3_000:], y[3_000:]

exact = DCSVMClassifier(C=8, gamma=1.0).fit(X_train, y_train)
models = {
    1: OCASClassifier().fit(X_train, y_train),
    len(exact.support_vectors_): exact,
}  # by inner products a prediction
models |= {cost: compress(exact, X_train, prediction_cost=cost, random_state=0) for cost in (8, 40)}
accuracy = {cost: models[cost].score(X_test, y_test) for cost in sorted(models)}

figure, ax = plt.subplots(layout="constrained")
ax.plot(accuracy.keys(), accuracy.values(), marker="o")
for name, cost in zip(("linear", "cost 8", "cost 40", "exact"), accuracy, strict=True):
    ax.annotate(name, (cost, accuracy[cost]), xytext=(4, 4), textcoords="offset points")
ax.set(xscale="log", xlabel="Inner products of a prediction", ylabel="Accuracy on other patches")
ax.margins(x=0.15, y=0.15)
