"""
A path of C, with its certificate
=================================

A whole path of C costs little more than its most expensive fit.

Cutting planes do not depend on C. Left: the scores of five folds. Right: by which share each model's objective can be
above the optimum, at most.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from widemargin import CPathDisplay, OCASClassifierCV

X, y = load_breast_cancer(return_X_y=True)
X, Cs = StandardScaler().fit_transform(X), np.logspace(-4, 2, 13)
search = OCASClassifierCV(Cs).fit(X, y)
models = search.best_estimator_.fit_path(X, y, Cs)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2))
CPathDisplay.from_estimator(search, ax=left)
gap = [model.relative_gap_ for model in models]
right.loglog(Cs, gap, "o-", label="relative gap")
right.axhline(1e-3, color="0.5", ls=":", label="tol")
right.set(xlabel="C", ylabel="Share of the objective")
right.legend()
figure.tight_layout()
