"""Everything that a first fit would compile or import, ahead of time."""

import numpy as np

from .._jit import compile_kernels
from .bsgd import BSGDClassifier
from .dc_svm import DCSVMClassifier
from .ocas import OCASClassifier


def warmup() -> None:
    """Compile every kernel and load every library that a fit may need, so that the first fit does not.

    Takes some tens of seconds with an empty cache and about a second with a filled one. Compiled kernels are kept in
    numba's cache folder where it is writable.

    Examples
    --------
    >>> from widemargin import warmup
    >>> warmup()  # doctest: +SKIP
    """
    compile_kernels()
    X = np.random.default_rng(0).normal(size=(64, 2))
    y = X[:, 0] > 0
    for dtype in (np.float32, np.float64):
        DCSVMClassifier(n_levels=1, branching=2, n_sample=20).fit(X.astype(dtype), y).predict(X)
        OCASClassifier(tol=0.1).fit(X.astype(dtype), y).predict(X)
        BSGDClassifier(gamma=1.0, budget=8, n_epochs=1, random_state=0).fit(X.astype(dtype), y).predict(X)
