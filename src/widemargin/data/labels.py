"""Several classes as binary problems: one against the rest, or pairs in groups that share rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement

import numpy as np

from .._types import Labels, Matrix


def one_vs_rest_signs(numbers: Labels, n_classes: int) -> Matrix:
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


def group_pairs(class_sizes: Sequence[int], most_rows: int) -> list[tuple[int, list[int]]]:
    """Divide the pairs of classes into groups, each of which fits in one kernel matrix of `most_rows` rows.

    Consecutive classes form blocks of at most most_rows / 2 rows; a group has the pairs within a block, or those
    between two blocks.

    Parameters
    ----------
    class_sizes : sequence of int
        The number of rows of each class.
    most_rows : int
        Largest number of rows of a group, unless two classes alone have more.

    Returns
    -------
    list of (int, list of int)
        The number of rows of each group, and the numbers of its pairs in the order of
        ``itertools.combinations(range(k), 2)``.

    Examples
    --------
    >>> group_pairs([2, 2, 2], 6)
    [(6, [0, 1, 2])]
    >>> group_pairs([1, 1, 2], 4)  # the pairs (0, 1), (0, 2), (1, 2)
    [(4, [0, 1, 2])]
    >>> group_pairs([1, 1, 2, 2], 4)
    [(2, [0]), (4, [1, 3]), (4, [2, 4]), (4, [5])]
    """
    whole = sum(class_sizes) <= most_rows
    blocks: list[list[int]] = []
    rows: list[int] = []
    for number, size in enumerate(class_sizes):
        if not blocks or (rows[-1] + size > most_rows // 2 and not whole):
            blocks.append([])
            rows.append(0)
        blocks[-1].append(number)
        rows[-1] += size
    numbers = {pair: p for p, pair in enumerate(combinations(range(len(class_sizes)), 2))}
    groups = []
    for a, b in combinations_with_replacement(range(len(blocks)), 2):
        pairs = [numbers[i, j] for i in blocks[a] for j in blocks[b] if i < j]
        if pairs:
            groups.append((rows[a] + rows[b] * (a != b), pairs))
    return groups
