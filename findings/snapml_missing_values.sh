#!/usr/bin/env bash
# Missing values are trained on without a word by Snap ML 1.17.2's SupportVectorMachine.
#
# Guess before the run: NaN in the training rows is a ValueError, as in scikit-learn's LinearSVC, whose interface it has.
# Seen: one NaN in a column of 2,000 rows gives a fitted model. That column's weight is NaN, the others are finite and a
# hundred times too large, and every row without a missing value gets the same label: half of them are right.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet "snapml==1.17.2" "scikit-learn==1.9.1"
"$place/venv/bin/python" - <<'PYTHON'
import warnings

import numpy as np
from sklearn.datasets import make_classification
from snapml import SupportVectorMachine

X, y = make_classification(2000, 20, random_state=0)
known = SupportVectorMachine(random_state=0).fit(X, y)
X_missing = X.copy()
X_missing[0, 3] = np.nan
with warnings.catch_warnings():
    warnings.simplefilter("error")
    model = SupportVectorMachine(random_state=0).fit(X_missing, y)
labels, weights = model.predict(X[1:]), np.ravel(model.coef_)
others = np.delete(np.abs(weights), 3)
print("accuracy without the missing value:", np.mean(known.predict(X) == y))
print("accuracy with it:", np.mean(labels == y[1:]), "labels:", np.unique(labels))
print("largest weight:", np.abs(known.coef_).max(), "->", others.max(), "NaN:", np.flatnonzero(np.isnan(weights)))
assert np.mean(known.predict(X) == y) > 0.98
assert np.isnan(weights[3])
assert np.isfinite(others).all()
assert others.max() > 100 * np.abs(known.coef_).max()
assert len(np.unique(labels)) == 1
PYTHON
echo "as described"
