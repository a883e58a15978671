"""Labels of binary problems."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def one_vs_rest_signs(numbers: NDArray[np.integer], n_classes: int) -> NDArray[np.float64]:
    """y of each binary problem of several classes: +1 in the rows of one class, -1 in the rest.

    Parameters
    ----------
    numbers : ndarray of shape (n,), int
        Class numbers, in [0, n_classes).
    n_classes : int
        At least 2.

    Returns
    -------
    ndarray of shape (q, n), float64
        One problem for two classes, in which class 1 is positive; else q = n_classes.

    Examples
    --------
    >>> one_vs_rest_signs(np.array([0, 1, 1]), 2)
    array([[-1.,  1.,  1.]])
    >>> one_vs_rest_signs(np.array([0, 2, 1]), 3).shape
    (3, 3)
    """
    positive = [1] if n_classes == 2 else range(n_classes)
    return np.array([np.where(numbers == number, 1.0, -1.0) for number in positive])
