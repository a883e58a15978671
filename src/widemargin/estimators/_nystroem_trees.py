"""Saved forests of Nyström machines: to arrays, checked, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.nystroem_tree import NystroemForest, NystroemTree
from ._fitted_state import FittedState

Arrays = dict[str, NDArray[Any]]


def tree_arrays(forest: NystroemForest) -> list[Arrays]:
    """The arrays of each tree, by name."""
    return [tree.arrays for tree in forest.trees]


def check_trees(fitted: FittedState, d: int, q: int | None) -> None:
    """Raise a ValueError that names the first array of `_trees` that does not fit the others.

    Parameters
    ----------
    fitted : FittedState
        With the dtype of the data as `_dtype`.
    d : int
        Features of the trees' rows, after the projection.
    q : int or None
        Decision functions; None for any number.
    """
    dtype = fitted.choice("_dtype", ("float32", "float64"))
    for tree in fitted.inners("_trees", ...):
        k, q = tree.array("intercept", np.float64, ..., ... if q is None else q).shape
        n_nodes = len(tree.array("sizes", np.int32, None))
        branching = tree.array("children", np.int32, n_nodes, ... if n_nodes else 0).shape[1]
        tree.array("centres", dtype, n_nodes, branching, d)
        m = tree.array("landmarks", dtype, k, ..., d).shape[1]
        p = tree.array("anchors", dtype, k, m, None).shape[2]
        tree.array("rules", np.int64, k, least=0, below=2)
        tree.array("coef", np.float64, k, q, m + p)
        tree.array("products", dtype, k, q, None)
        tree.array("slopes", dtype, k, None, d)


def make_forest(kernel: Any, trees: list[Arrays], projection: NDArray[np.floating] | None = None) -> NystroemForest:
    """The forest of the arrays that `tree_arrays` gave, with its projection."""
    return NystroemForest([NystroemTree.from_arrays(kernel, arrays) for arrays in trees], projection)
