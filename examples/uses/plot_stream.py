"""
A stream whose labels change
============================

After the labels turn, the model is right again within some thousand rows.

Rows arrive in chunks. Each chunk is predicted before it is learnt, which is an honest test. After half of the stream,
inside becomes outside.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import BSGDClassifier

rng = np.random.default_rng(0)
models = {
    "average of the last steps": BSGDClassifier(gamma=1.0, budget=50, lam=1e-3, random_state=0),
    "last step alone": BSGDClassifier(gamma=1.0, budget=50, lam=1e-3, average=False, random_state=0),
}
accuracy = {name: [] for name in models}
for chunk in range(120):
    X = rng.normal(size=(250, 2))
    y = ((X**2).sum(axis=1) < 1.4) == (chunk < 60)
    for name, model in models.items():
        if chunk:
            accuracy[name].append(model.score(X, y))
        model.partial_fit(X, y, classes=[False, True])

figure, ax = plt.subplots(figsize=(7, 3.4))
for name, scores in accuracy.items():
    ax.plot(250 * np.arange(1, 120), scores, label=name)
ax.axvline(250 * 60, color="0.5", ls=":", label="labels change")
ax.set(xlabel="Rows seen", ylabel="Accuracy on the next 250 rows", ylim=(0, 1))
ax.legend(loc="lower right")
figure.tight_layout()
