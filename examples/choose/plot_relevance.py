"""
Which columns matter, and why this prediction?
==============================================

The five columns that matter are found, and scaling columns by relevance makes a better model.

Of thirty columns five matter: the first three through a sine and a parabola, the others through a straight line. The
relevance of the columns is learned from gradients of kernel models. The gradient at a row says what would change its
prediction.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import DCSVMRegressor, RelevanceDisplay, RelevanceScaler

X, y = make_friedman1(4_000, n_features=30, noise=1.0, random_state=0)
X_train, y_train, X_test, y_test = X[:2_000], y[:2_000], X[2_000:], y[2_000:]

machine = DCSVMRegressor(C=10)
plain = make_pipeline(StandardScaler(), machine).fit(X_train, y_train).score(X_test, y_test)
model = make_pipeline(StandardScaler(), RelevanceScaler(), machine).fit(X_train, y_train)
print(f"R2 {plain:.3f}, with relevance {model.score(X_test, y_test):.3f}")

_, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.8))
RelevanceDisplay.from_estimator(model, ax=left, n_columns=10)
left.set_title(f"R2 {plain:.2f}, with relevance {model.score(X_test, y_test):.2f}")

# one row: its gradient by the standardised columns, by the chain rule
row = model[:-1].transform(X_test[:1])
gradient = machine.decision_gradient(row)[0] * model[1].scale_
largest = np.argsort(-np.abs(gradient))[:10]
right.barh(np.arange(10)[::-1], gradient[largest])
right.set_yticks(np.arange(10), labels=[f"x{j}" for j in largest[::-1]])
right.set_xlabel("Gradient, per standard deviation")
right.set_title(f"One row: predicted {model.predict(X_test[:1])[0]:.1f}")
left.figure.tight_layout()
