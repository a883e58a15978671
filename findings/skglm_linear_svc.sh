#!/usr/bin/env bash
# skglm 0.5: LinearSVC ends at its default limit of iterations without a warning, far from the optimum.
#
# Guess before the run: with default parameters it reaches the optimum of scikit-learn's LinearSVC(loss="hinge",
# fit_intercept=False), or warns. Seen (400 rows, 5 columns, C = 1): 50 iterations, no warning, objective 415.8 where
# w = 0 has 400.0 and the optimum is 167.1; training accuracy .4475 where the optimum's is .84. With max_iter=1000 it
# needs 73 iterations and arrives; so it does with p0=400, where the first working set holds all rows.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/python" -m pip install --quiet "skglm==0.5" "scikit-learn==1.9.1"
"$place/venv/bin/python" - <<'PYTHON'
import warnings

import numpy as np
import skglm
import sklearn
from sklearn.datasets import make_classification
from sklearn.svm import LinearSVC

X, y = make_classification(400, 5, flip_y=0.05, random_state=0)


def objective(w):
    return 0.5 * w @ w + np.maximum(0.0, 1.0 - (2 * y - 1) * (X @ w)).sum()


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    default = skglm.LinearSVC(C=1.0).fit(X, y)
longer = skglm.LinearSVC(C=1.0, max_iter=1000).fit(X, y)
reference = LinearSVC(loss="hinge", C=1.0, fit_intercept=False, max_iter=1_000_000).fit(X, y)
found, reached, best = (objective(model.coef_.ravel()) for model in (default, longer, reference))
print(f"skglm {skglm.__version__}, scikit-learn {sklearn.__version__}")
print(f"default: {default.n_iter_} iterations, {len(caught)} warnings, objective {found:.1f}, accuracy {default.score(X, y):.4f}")
print(f"max_iter=1000: {longer.n_iter_} iterations, objective {reached:.1f}; optimum {best:.1f}; w = 0: {objective(np.zeros(5)):.1f}")
assert default.n_iter_ == 50
assert not caught
assert found > objective(np.zeros(5)) > 2 * best
assert reached < 1.001 * best
PYTHON
echo "as described"
