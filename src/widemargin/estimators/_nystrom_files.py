"""A forest of Nystroem machines as plain arrays that can be saved, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.nystrom import NystromForest, NystromTree

Arrays = dict[str, NDArray[Any]]


def describe_trees(forest: NystromForest) -> list[Arrays]:
    """The arrays of each tree, by name."""
    return [tree.arrays for tree in forest.trees]


def forest_of(kernel: Any, trees: list[Arrays], projection: NDArray[np.floating] | None = None) -> NystromForest:
    """The forest that `describe_trees` described, behind a projection."""
    return NystromForest([NystromTree.from_arrays(kernel, arrays) for arrays in trees], projection)
