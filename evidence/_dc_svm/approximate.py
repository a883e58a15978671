"""Approximate kernel machines of the paper's Table 2: features first, then a linear machine on them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import LinearSVC

from evidence._fastfood import FastfoodFeatures

_PAPER = 3000
_LARGEST = 1e8  # numbers in the feature matrix: LIBLINEAR wants them as float64, 0.8 GB, and takes half a minute
_LEAST_EIGENVALUE = 1e-6  # of the landmarks' kernel matrix, relative: smaller ones are noise in float32


class KMeansFeatures(TransformerMixin, BaseEstimator):
    """Kernel values against k-means centres.

    Parameters
    ----------
    n_components : int
        Centres, or as many as there are rows.
    gamma : float
    whiten : bool
        True: times K^(-1/2) of the centres, so that inner products are the kernel's Nystroem approximation (LLSVM;
        Zhang, Tsang, Kwok 2008). False: locally tuned processing units (LTPU; Moody, Darken 1989).
    random_state : int
    """

    def __init__(
        self, n_components: int = 3000, gamma: float = 1.0, whiten: bool = True, random_state: int = 0
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.whiten = whiten
        self.random_state = random_state

    def fit(self, X: NDArray[np.float32], y: Any = None) -> Self:
        """Find the centres: five rounds of k-means from random rows."""
        kmeans = KMeans(
            min(self.n_components, len(X)),
            init="random",
            n_init=1,
            max_iter=5,
            tol=0,
            random_state=self.random_state,
        )
        self.centres_ = kmeans.fit(X).cluster_centers_
        self.map_ = self._inverse_root() if self.whiten else None
        return self

    def _inverse_root(self) -> NDArray[np.float32]:
        values, vectors = np.linalg.eigh(rbf_kernel(self.centres_.astype(np.float64), gamma=self.gamma))
        kept = values > _LEAST_EIGENVALUE * values[-1]
        return np.asarray(vectors[:, kept] / np.sqrt(values[kept]), np.float32)

    def transform(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return features of shape (n, at most n_components), float32."""
        K = rbf_kernel(X, self.centres_, gamma=self.gamma)
        return np.asarray(K if self.map_ is None else K @ self.map_)


def most_features(n: int) -> int:
    """Return how many features n rows may have: the paper's 3,000, or what memory allows."""
    return int(min(_PAPER, _LARGEST // n))


def nystroem(C: float, gamma: float, n_components: int) -> Pipeline:
    """Return k-means Nystroem and a linear machine (LLSVM)."""
    return make_pipeline(KMeansFeatures(n_components, gamma), _linear(C))


def ltpu(C: float, gamma: float, n_components: int) -> Pipeline:
    """Return radial basis functions at k-means centres and a linear machine (LTPU)."""
    return make_pipeline(KMeansFeatures(n_components, gamma, whiten=False), _linear(C))


def fourier(C: float, gamma: float, n_components: int) -> Pipeline:
    """Return random Fourier features and a linear machine."""
    return make_pipeline(RBFSampler(gamma=gamma, n_components=n_components, random_state=0), _linear(C))


def fastfood(C: float, gamma: float, n_components: int) -> Pipeline:
    """Return the paper's Fastfood and a linear machine."""
    return make_pipeline(FastfoodFeatures(n_components, gamma), _linear(C))


def _linear(C: float) -> LinearSVC:
    """LIBLINEAR's default: squared hinge, primal, its own tolerance."""
    return LinearSVC(C=C, dual=False, tol=0.01, fit_intercept=False, random_state=0)
