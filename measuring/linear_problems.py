"""The linear problems of the OCAS benchmarks: real sets, and the paper's two Gaussians."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from widemargin.datasets import load_benchmark

Matrix = NDArray[np.float64]


class Linear(NamedTuple):
    """Training rows, dense float32 or CSR float32, and a column of signs for each binary problem.

    Attributes
    ----------
    name : str
    X : ndarray or csr_array of shape (n, d), float32
    labels : ndarray of shape (n,)
        What `fit` gets.
    Y : ndarray of shape (n, k), float64
        +1 and -1: one column for two classes, else one for each class.
    """

    name: str
    X: Any
    labels: NDArray[Any]
    Y: Matrix

    @property
    def form(self) -> str:
        """Kind of storage of the rows."""
        return "CSR" if sp.issparse(self.X) else "dense"


class Parts(NamedTuple):
    """Training, validation and test rows of one set, for model selection."""

    train: Linear
    valid: Linear
    test: Linear


def scaled(X: Any) -> Any:
    """Divide each column by its largest absolute value."""
    top = abs(X).max(axis=0)
    top = np.asarray(top.toarray() if sp.issparse(top) else top, dtype=np.float64).ravel()
    factor = (1.0 / np.where(top > 0, top, 1.0)).astype(np.float32)
    return sp.csr_array(X.multiply(factor)) if sp.issparse(X) else X * factor


def _tf_idf(X: Any) -> Any:
    """Logarithmic counts times inverse document frequency, rows of length 1."""
    from sklearn.feature_extraction.text import TfidfTransformer

    return sp.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(X)).astype(np.float32)


def _real(
    name: str, prepare: Callable[[Any], Any] = lambda X: X, positive: Callable[[Any], Any] | None = None
) -> tuple[Any, NDArray[Any]]:
    data = load_benchmark(name)
    labels = data.y if positive is None else np.where(positive(data.y), 1, -1)
    return prepare(data.X), labels


def two_gaussians(n: int, n_features: int = 50, random_state: int = 0) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Two Gaussians with different diagonal covariances of several scales, as in the paper.

    Standard deviations are drawn log-uniformly from [0.1, 10] for each class and feature, the difference of the means
    is a fifth of the larger one: about 1 row in 5 is misclassified by the best linear rule. The paper gives neither
    the scales nor the means. A smaller sample is the beginning of a larger one.
    """
    labels, X = np.empty(n, dtype=np.int64), np.empty((n, n_features), dtype=np.float32)
    for rows, block, signs in gaussian_blocks(n, n_features, random_state):
        X[rows], labels[rows] = block, signs
    return X, labels


def gaussian_blocks(
    n: int, n_features: int = 50, random_state: int = 0
) -> Iterator[tuple[slice, NDArray[np.float32], NDArray[Any]]]:
    """The rows and labels of `two_gaussians`, 100,000 at a time."""
    rng = np.random.default_rng(random_state)
    scale = 10.0 ** rng.uniform(-1, 1, (2, n_features))
    mean = 0.1 * scale.max(axis=0) * np.array([[1.0], [-1.0]])
    for start in range(0, n, 100_000):  # by blocks, so that the beginning does not depend on n
        block = np.random.default_rng([random_state, start])
        sign = block.integers(2, size=100_000)
        noise = block.standard_normal((100_000, n_features), dtype=np.float32)
        rows = slice(start, min(start + 100_000, n))
        used = rows.stop - start
        yield rows, (noise * scale[sign] + mean[sign])[:used].astype(np.float32), (1 - 2 * sign)[:used]


_MAKERS: dict[str, Callable[[], tuple[Any, NDArray[Any]]]] = {
    "a9a": lambda: _real("a9a"),
    "spam_assassin": lambda: _real("spam_assassin", positive=lambda y: y == 1),
    "news20_1": lambda: _real("news20_bydate_counts", _tf_idf, lambda y: y == 0),
    "ijcnn1": lambda: _real("ijcnn1"),
    "codrna": lambda: _real("codrna"),
    "mnist": lambda: _real("mnist", scaled, lambda y: np.isin(y, (0, 3, 6, 8, 9))),
    "kddcup99_10": lambda: _real("kddcup99_10", scaled),
    "cov1": lambda: _real("covtype", scaled, lambda y: y == 1),
    "gaussians": lambda: two_gaussians(1_000_000),
}

DENSE = ("ijcnn1", "codrna", "mnist", "cov1", "gaussians")


def make_linear(name: str, X: Any, labels: NDArray[Any]) -> Linear:
    """Encode the labels: the larger of two is +1."""
    classes = np.unique(labels)
    positive = classes[1:] if len(classes) == 2 else classes
    return Linear(name, X, labels, np.where(labels[:, None] == positive, 1.0, -1.0))


def load_linear(name: str, n_rows: int | None = None) -> Linear:
    """Load a named problem: all its training rows, or some random ones."""
    X, labels = _MAKERS[name]()
    if n_rows is not None and n_rows < X.shape[0]:
        chosen = np.random.default_rng(0).choice(X.shape[0], n_rows, replace=False)
        X, labels = X[chosen], labels[chosen]
    return make_linear(name, X, labels)


def load_parts(name: str) -> Parts:
    """Load a named problem, its training rows divided at random: 3/5 for training, 1/5 for each of the others."""
    whole = load_linear(name)
    order = np.random.default_rng(0).permutation(whole.X.shape[0])
    cuts = np.split(order, [3 * len(order) // 5, 4 * len(order) // 5])
    return Parts(*(Linear(name, whole.X[rows], whole.labels[rows], whole.Y[rows]) for rows in cuts))


def objective(problem: Linear, W: Matrix, C: float) -> float:
    """1/2 |W|^2 + C sum of all hinges in float64, of weights W (k, d)."""
    W = np.asarray(W, dtype=np.float64)
    total = 0.5 * float(np.vdot(W, W))
    for start in range(0, problem.X.shape[0], 50_000):
        rows = slice(start, start + 50_000)
        outputs = np.asarray(problem.X[rows].astype(np.float64) @ W.T)
        total += C * float(np.maximum(0.0, 1.0 - problem.Y[rows] * outputs).sum())
    return total


def most_epochs(X: Any) -> int:
    """Number of epochs that read 2e9 entries: some ten seconds."""
    return int(2e9) // (X.nnz if sp.issparse(X) else X.size)
