"""What the library does otherwise than the papers, undone for the time of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from widemargin.algorithms import dc_pred_leaves

_DC_SVM: dict[str, Any] = {
    "widemargin.partition.divide._balance": lambda *_: None,  # 4^l clusters, whatever their sizes
    "widemargin.partition.divide._POINTS_PER_CENTRE": 1,  # of a sample of 1,000 rows
    "widemargin.partition.kmeans._kmeans_plus_plus": lambda K, diagonal, weights, k, rng: np.sort(
        rng.choice(len(K), k, replace=False)  # random first centres
    ),
    "widemargin.algorithms.dc_svm_levels.START_TOL": 0.0,  # levels are solved to `tol`
}
_add_pseudo_landmarks = dc_pred_leaves.add_pseudo_landmarks
_DC_PRED: dict[str, Any] = {  # points of the triangle rule are random rows, each with the same probability
    "widemargin.algorithms.dc_pred_leaves.add_pseudo_landmarks": lambda *given, weights: _add_pseudo_landmarks(*given)
}


@contextmanager
def _changed(values: dict[str, Any]) -> Iterator[None]:
    with ExitStack() as patches:
        for name, value in values.items():
            patches.enter_context(mock.patch(name, value))
        yield


dc_svm = partial(_changed, _DC_SVM)  # a block in which DC-SVM divides and solves levels as its paper does
dc_pred = partial(_changed, _DC_PRED)  # and DC-Pred++ draws the points of the triangle rule
