"""
Scores over C and γ
===================

Good pairs of C and γ lie on a ridge; candidates that cannot win are left early.

Below the ridge the model is too smooth, above it too narrow. Faded candidates were eliminated by their scores on a
quarter of the rows.
"""

import numpy as np

from widemargin import DCSVMClassifierCV, GridScoresDisplay
from widemargin.datasets import load_patches

X, y = load_patches(4_000, task="photo", random_state=0)
Cs, gammas = np.logspace(-2, 2, 5), np.logspace(-2, 1, 7)
search = DCSVMClassifierCV(Cs, gammas, kernels="rbf", search="exact", cv=3).fit(X, y)

display = GridScoresDisplay.from_estimator(search)
