"""
Probabilities
=============

Calibrated decision values are right about as often as they say.

Decision values are not probabilities. scikit-learn's calibration makes probabilities of them; here it is checked
against how often the predicted class is right.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import make_moons

from widemargin import DCSVMClassifier

X, y = make_moons(6000, noise=0.4, random_state=0)
figure, ax = plt.subplots(figsize=(5, 4.4))
for method in ("sigmoid", "isotonic"):
    model = CalibratedClassifierCV(DCSVMClassifier(gamma=1.0), method=method, ensemble=False)
    model.fit(X[:3000], y[:3000])
    CalibrationDisplay.from_estimator(model, X[3000:], y[3000:], n_bins=10, name=method, ax=ax)
figure.tight_layout()
