"""Several classes as binary problems: one against the rest, or pairs in groups that share rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from .._types import Labels, Matrix, RowIndices


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


@lru_cache(maxsize=4)  # of many classes these are megabytes
def class_pairs(n_classes: int) -> tuple[RowIndices, RowIndices]:
    """The first and the second class (n_pairs,) of each pair, in the order of ``itertools.combinations(range(k), 2)``.

    Examples
    --------
    >>> class_pairs(3)
    (array([0, 0, 1]), array([1, 2, 2]))
    """
    first, second = np.triu_indices(n_classes, 1)
    first.flags.writeable = second.flags.writeable = False
    return first, second


def group_pairs(class_sizes: Sequence[int], most_rows: int) -> list[tuple[int, RowIndices]]:
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
    list of (int, ndarray of int)
        The number of rows of each group, and the numbers of its pairs in the order of
        ``itertools.combinations(range(k), 2)``. Groups follow each other so that any first ones have about equally many
        pairs of each class: those of the blocks a and b in the order of (a + b) modulo the number of blocks.

    Examples
    --------
    >>> group_pairs([2, 2, 2], 6)
    [(6, array([0, 1, 2]))]
    >>> group_pairs([1, 1, 2, 2], 4)  # (0, 1); (2, 3); (0, 2) and (1, 2); (0, 3) and (1, 3)
    [(2, array([0])), (4, array([5])), (4, array([1, 3])), (4, array([2, 4]))]
    """
    n_rows = sum(class_sizes)
    if n_rows <= most_rows:
        return [(n_rows, np.arange(len(class_sizes) * (len(class_sizes) - 1) // 2))]
    rows: list[int] = []
    block = np.zeros(len(class_sizes), np.intp)  # of each class
    for number, size in enumerate(class_sizes):
        if not rows or rows[-1] + size > most_rows // 2:
            rows.append(0)
        block[number] = len(rows) - 1
        rows[-1] += size
    first, second = (block[classes] for classes in class_pairs(len(class_sizes)))
    order = np.lexsort((second, (first + second) % len(rows) if rows else first))
    starts = np.flatnonzero(np.diff(first[order] * len(rows) + second[order], prepend=-1))
    groups = []
    for pairs in np.split(order, starts[1:]) if len(order) else []:
        a, b = first[pairs[0]], second[pairs[0]]
        groups.append((rows[a] + rows[b] * bool(a != b), pairs))
    return groups
