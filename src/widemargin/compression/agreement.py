"""How near the decision values of a compressed machine are to its model's: as numbers, and as sides of a boundary."""

from __future__ import annotations

import numpy as np

from .._types import Matrix, Vector


def determination(values: Matrix, given: Matrix) -> float:
    """The coefficient of determination of values (n, q), given the model's (n, q)."""
    error, variation = np.square(values - given).sum(), np.square(given - given.mean(axis=0)).sum()
    return 1.0 - float(error / max(variation, 1e-300))


def side_agreement(values: Vector, given: Vector) -> float | None:
    """The mean of the shares of outliers and of inliers whose values (n,) have the sign of the model's (n,).

    None if the rows are outliers or inliers alone.
    """
    is_kept, is_inlier = (values >= 0) == (given >= 0), given >= 0
    if is_inlier.all() or not is_inlier.any():
        return None
    return float((is_kept[is_inlier].mean() + is_kept[~is_inlier].mean()) / 2)
