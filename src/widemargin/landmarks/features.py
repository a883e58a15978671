"""What landmarks say about a row: kernel values, and estimates of others that cost next to nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._jit import nystrom as compiled
from .._jit.workspace import Rows, make_rows
from ..kernels.functions import Transform

Array = NDArray[np.floating]
Index = NDArray[np.integer]

_MEASURES = {"products": compiled.PRODUCTS, "squares": compiled.SQUARES, "differences": compiled.DIFFERENCES}


@dataclass
class LandmarkFeatures:
    """Features of k leaves, each with m landmarks and p pseudo-landmarks.

    Attributes
    ----------
    kernel : Transform
    landmarks : ndarray of shape (k, m, d)
    anchors : ndarray of shape (k, m, p)
        Triangle rule: distances of pseudo-landmarks and landmarks. Empty without it.
    rules : ndarray of shape (k,), int
        Triangle rule: whether the lower or the upper bound stands for the distance.
    pairs : ndarray of shape (k, 2, p), int32
        Polynomial rule: which two landmarks' values are multiplied. Empty without it.
    """

    kernel: Transform
    landmarks: Array
    anchors: Array
    rules: NDArray[np.int64]
    pairs: NDArray[np.int32]

    @property
    def n_leaves(self) -> int:
        """k."""
        return len(self.landmarks)

    @property
    def n_values(self) -> int:
        """Kernel values and bounds that `measure` writes."""
        return int(self.landmarks.shape[1] + self.anchors.shape[2])

    @property
    def n_features(self) -> int:
        """Those, and the products of the polynomial rule."""
        return int(self.n_values + self.pairs.shape[2])

    @cached_property
    def _at_zero(self) -> Array:
        """Measures of the zero row, which sparse rows start from."""
        if self.kernel.measure == "products":
            return np.zeros(self.landmarks.shape[:2], self.landmarks.dtype)
        return np.asarray((np.abs(self.landmarks) ** self._power).sum(axis=2))

    @property
    def _power(self) -> int:
        return 2 if self.kernel.measure == "squares" else 1

    def measure(self, rows: Rows, order: NDArray[np.int64], leaf: NDArray[np.int32], F: Array) -> None:
        """Write kernel values and those of the triangle rule.

        Parameters
        ----------
        rows : Rows
        order : ndarray of shape (b,), int64
            Which of the rows.
        leaf : ndarray of shape (b,), int32
            Their leaves.
        F : ndarray of shape (b, n_values)
        """
        kind = _MEASURES[self.kernel.measure]
        compiled.measure(rows, order, leaf, self.landmarks, self._at_zero, kind, F)
        if self.anchors.shape[2]:
            compiled.bound(F, leaf, self.anchors, self.rules, self._power)
        self.kernel.transform(F)

    def values(self, X: Any) -> Array:
        """All features of every row of X, of the only leaf: shape (n, n_features)."""
        n = X.shape[0]
        F = np.empty((n, self.n_values), self.landmarks.dtype)
        self.measure(make_rows(X), np.arange(n), np.zeros(n, np.int32), F)
        first, second = self.pairs[0]
        return np.hstack([F, F[:, first] * F[:, second]]) if len(first) else F

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_at_zero"}


def join_features(parts: list[LandmarkFeatures]) -> tuple[LandmarkFeatures, list[Index]]:
    """Single leaves as one table, padded to the widest.

    Returns
    -------
    LandmarkFeatures
    list of ndarray of int
        For each leaf, the columns of the table that its own features became.
    """
    m, bounds, products = (max(w) for w in zip(*(_widths(part) for part in parts), strict=True))
    k, d, dtype = len(parts), parts[0].landmarks.shape[2], parts[0].landmarks.dtype
    table = LandmarkFeatures(
        parts[0].kernel,
        np.zeros((k, m, d), dtype),
        np.zeros((k, m, bounds), dtype),
        np.array([part.rules[0] for part in parts]),
        np.zeros((k, 2, products), np.int32),
    )
    places = []
    for c, part in enumerate(parts):
        mine = _widths(part)
        table.landmarks[c, : mine[0]] = part.landmarks[0]
        # a missing landmark is the first one again: its bounds are the first one's too
        table.landmarks[c, mine[0] :] = part.landmarks[0, :1]
        if mine[1]:
            table.anchors[c, :, : mine[1]] = part.anchors[0, :1]
            table.anchors[c, : mine[0], : mine[1]] = part.anchors[0]
        table.pairs[c, :, : mine[2]] = part.pairs[0]
        starts = (0, m, m + bounds)
        places.append(np.concatenate([start + np.arange(width) for start, width in zip(starts, mine, strict=True)]))
    return table, places


def _widths(part: LandmarkFeatures) -> tuple[int, int, int]:
    return part.landmarks.shape[1], part.anchors.shape[2], part.pairs.shape[2]
