"""
What a cheap prediction costs in accuracy
=========================================

A few dozen inner products predict nearly as well as hundreds of support vectors.

One exact model, compressed for several costs of a prediction. The scores are of rows that none of them has seen.
"""

from widemargin import DCSVMClassifier, OCASClassifier, PredictionCostDisplay, compress
from widemargin.datasets import load_patches

X, y = load_patches(5_000, task="photo", random_state=0)
X_train, y_train, X_test, y_test = X[:3_000], y[:3_000], X[3_000:], y[3_000:]

exact = DCSVMClassifier(C=8, gamma=1.0).fit(X_train, y_train)
models = {"linear": OCASClassifier().fit(X_train, y_train), "exact": exact}
for cost in (8, 40):
    models[f"cost {cost}"] = compress(exact, X_train, prediction_cost=cost, random_state=0)

display = PredictionCostDisplay.from_estimators(models, X_test, y_test)
display.ax_.set_ylabel("Accuracy on other patches")
display.ax_.margins(x=0.15, y=0.15)
