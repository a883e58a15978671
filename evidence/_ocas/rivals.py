"""Other solvers of the linear machine with hinge loss, each with one parameter: its effort."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from evidence._ocas.pegasos import csr_steps
from measuring.linear_problems import Linear, Matrix, most_epochs


class Rival(NamedTuple):
    """A competitor.

    Attributes
    ----------
    name : str
    knob : str
        What its effort is.
    prepare : callable
        From the problem's rows to the form that the competitor works on; not timed.
    fit : callable
        From rows, problem, C and effort to W of shape (k, d); timed.
    efforts : callable
        The k-th effort of its ladder.
    """

    name: str
    knob: str
    prepare: Callable[[Any], Any]
    fit: Callable[[Any, Linear, float, int], Matrix]
    efforts: Callable[[int], int]


def _double(X: Any) -> Any:
    return X.astype(np.float64)


def _matrix(X: Any) -> Any:
    return sp.csr_matrix(X) if sp.issparse(X) else X


def _quietly(model: Any, X: Any, labels: NDArray[Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge is what a ladder of efforts is for
        return model.fit(X, labels)


def liblinear(X: Any, problem: Linear, C: float, *, epochs: int, tol: float, loss: str = "hinge") -> Matrix:
    """LIBLINEAR through scikit-learn; `loss="squared_hinge"` is its primal solver, for another problem than ours."""
    from sklearn.svm import LinearSVC

    dual = loss == "hinge"
    model = LinearSVC(C=C, loss=loss, dual=dual, fit_intercept=False, max_iter=epochs, tol=tol, random_state=0)
    return np.asarray(_quietly(model, X, problem.labels).coef_)


def sgd(X: Any, problem: Linear, C: float, epochs: int) -> Matrix:
    """scikit-learn's SGD, averaged over the second half of its steps."""
    from sklearn.linear_model import SGDClassifier

    n = X.shape[0]
    model = SGDClassifier(
        loss="hinge",
        alpha=1 / (C * n),
        fit_intercept=False,
        max_iter=epochs,
        tol=None,
        average=max(1, epochs * n // 2),
        n_jobs=-1,
        random_state=0,
    )
    return np.asarray(_quietly(model, X, problem.labels).coef_)


def pegasos(X: Any, problem: Linear, C: float, epochs: int) -> Matrix:
    """Pegasos (Shalev-Shwartz et al., ICML 2007): the last point, one row a step, each class on its own; X is CSR."""
    lam, steps = 1 / (C * X.shape[0]), epochs * X.shape[0]
    columns, rng = np.ascontiguousarray(problem.Y.T), np.random.default_rng(0)
    return np.array([csr_steps(X.data, X.indices, X.indptr, X.shape[1], y, lam, steps, rng) for y in columns])


def rehline(X: Any, problem: Linear, C: float, epochs: int) -> Matrix:
    """ReHLine (Dai and Qiu, NeurIPS 2023), of two classes, on one core."""
    from rehline import plqERM_Ridge

    model = plqERM_Ridge(loss={"name": "svm"}, C=C, max_iter=epochs, tol=1e-10)
    return np.atleast_2d(_quietly(model, X, problem.Y[:, 0]).coef_)


def snap(X: Any, problem: Linear, C: float, epochs: int) -> Matrix:
    """Snap ML, of two classes, on all cores."""
    from snapml import SupportVectorMachine

    model = SupportVectorMachine(regularizer=1 / C, max_iter=epochs, n_jobs=os.cpu_count(), tol=1e-10)
    return np.atleast_2d(_quietly(model, X, problem.Y[:, 0]).coef_)


def _doubled(k: int) -> int:
    return 2**k


LIBLINEAR_EPOCHS = Rival(
    "LIBLINEAR",
    "epochs",
    _double,
    lambda X, problem, C, epochs: liblinear(X, problem, C, epochs=epochs, tol=1e-10),
    _doubled,
)
# Its own rule lets it shrink and look again at what it shrank, which a tolerance it never reaches does not.
LIBLINEAR_TOL = Rival(
    "LIBLINEAR",
    "1 / tol",
    _double,
    lambda X, problem, C, effort: liblinear(X, problem, C, epochs=most_epochs(X), tol=1 / effort),
    lambda k: round(10 ** (k / 2)),
)
SGD = Rival("SGD, averaged", "epochs", lambda X: X, sgd, _doubled)

REHLINE = Rival("ReHLine", "epochs", _double, rehline, _doubled)
SNAP = Rival("Snap ML", "epochs", _matrix, snap, _doubled)

_OPTIONAL = {"rehline": REHLINE, "snapml": SNAP}  # by the package that they need
RIVALS = (LIBLINEAR_EPOCHS, LIBLINEAR_TOL, SGD, *(rival for package, rival in _OPTIONAL.items() if find_spec(package)))
