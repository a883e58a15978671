"""Fastfood: random Fourier features by Hadamard transforms (Le, Sarlos, Smola, ICML 2013)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

_BLOCK = 2000  # rows of a transform


class FastfoodFeatures(TransformerMixin, BaseEstimator):
    """sqrt(2 / m) cos(Vx + b), V the stacked blocks S H G P H B / (sigma sqrt(d)) of the paper.

    B are random signs, P a permutation, G Gaussian numbers, S the scales that give the rows of a block the lengths of
    Gaussian vectors, H the Hadamard matrix of the least power of two d that holds the columns of X.

    Parameters
    ----------
    n_components : int
    gamma : float
    random_state : int
    """

    def __init__(self, n_components: int = 3000, gamma: float = 1.0, random_state: int = 0) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.random_state = random_state

    def fit(self, X: NDArray[np.float32], y: Any = None) -> Self:
        """Draw the random parts."""
        rng = np.random.default_rng(self.random_state)
        d = 1 << max(0, (X.shape[1] - 1).bit_length())
        n_blocks = -(-self.n_components // d)
        self.signs_ = rng.choice(np.array([-1.0, 1.0], np.float32), (n_blocks, d))
        self.order_ = np.array([rng.permutation(d) for _ in range(n_blocks)])
        gaussian = rng.normal(size=(n_blocks, d))
        lengths = np.sqrt(rng.chisquare(d, (n_blocks, d)))
        self.gaussian_ = gaussian.astype(np.float32)
        scale = lengths / np.linalg.norm(gaussian, axis=1, keepdims=True) * np.sqrt(2 * self.gamma / d)
        self.scale_ = scale.astype(np.float32)
        self.phase_ = rng.uniform(0, 2 * np.pi, self.n_components).astype(np.float32)
        return self

    def transform(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features of shape (n, n_components), float32."""
        out = np.empty((len(X), self.n_components), np.float32)
        for start in range(0, len(X), _BLOCK):
            out[start : start + _BLOCK] = self._features(X[start : start + _BLOCK])
        return out

    def _features(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        n_blocks, d = self.signs_.shape
        padded = np.zeros((len(X), 1, d), np.float32)
        padded[:, 0, : X.shape[1]] = X
        Z = hadamard(padded * self.signs_)
        Z = np.take_along_axis(Z, np.broadcast_to(self.order_, Z.shape), axis=2) * self.gaussian_
        Z = (hadamard(Z) * self.scale_).reshape(len(X), n_blocks * d)[:, : self.n_components]
        return np.asarray(np.sqrt(2 / self.n_components) * np.cos(Z + self.phase_), np.float32)


def hadamard(Z: NDArray[np.float32]) -> NDArray[np.float32]:
    """Z H along the last axis, of length a power of two, in d log d additions."""
    d, half = Z.shape[-1], 1
    while half < d:
        pairs = Z.reshape(*Z.shape[:-1], d // (2 * half), 2, half)
        Z = np.stack([pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], -2).reshape(Z.shape)
        half *= 2
    return Z
