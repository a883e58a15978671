"""A forest of Nystroem machines as plain arrays that can be saved, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.functions import Kernel
from ..landmarks.features import LandmarkFeatures
from ..models.nystrom import NystromForest, NystromTree
from ..partition.hierarchy import Hierarchy

Arrays = dict[str, NDArray[Any]]


def describe_trees(forest: NystromForest) -> list[Arrays]:
    """The arrays of each tree, by name."""
    return [tree.arrays for tree in forest.trees]


def forest_of(kernel: Kernel, trees: list[Arrays]) -> NystromForest:
    """The forest that `describe_trees` described."""
    return NystromForest([_tree_of(kernel, arrays) for arrays in trees])


def _tree_of(kernel: Any, arrays: Arrays) -> NystromTree:
    no_pairs = np.empty((len(arrays["landmarks"]), 2, 0), np.int32)
    return NystromTree(
        Hierarchy(arrays["centres"], arrays["sizes"], arrays["children"]),
        LandmarkFeatures(kernel, arrays["landmarks"], arrays["anchors"], arrays["rules"], no_pairs),
        *(arrays[name] for name in ("coef", "products", "slopes", "intercept")),
    )
