"""The numbers of leaves, landmarks and pseudo-landmarks of DC-Pred++ that a prediction cost buys, and their memory."""

from __future__ import annotations

import numpy as np

from .._threads import BLOCK_ROWS
from .._types import Model
from ..algorithms.dc_pred_leaves import LEAVES_AT_ONCE, ForestSettings
from ..partition.hierarchy import count_levels
from ._validation import check_flag, check_integer, check_number, check_pseudo_rule, is_auto

# inner products, with one output: as long as 5 to 10 linear predictions, as these mostly check the rows
DEFAULT_COST = 40.0
_LEAST_LEAF_ROWS = 100  # rows of a leaf that it is trained on, at least, however little memory there is
_LEAF_ROWS = 400  # rows of a leaf, at least: with fewer, it overfits
_MOST_LEAVES = 1024  # leaves of a tree, at most: from 400,000 rows on
_ROWS_PER_LANDMARK = 5  # rows of a leaf / landmarks, at least
_MOST_MULTIPLIED = 70  # landmarks that are multiplied with each other, at most: they make 2,485 features
_ROUTING_SHARE = 1 / 3  # cost of routing / prediction cost, at most
_LINEAR_SHARE = 1 / 4  # cost of the linear terms / prediction cost, at most: above, there is none


def check_cost(model: Model) -> None:
    """Raise a ValueError that names the first invalid parameter of prediction cost and its value."""
    if not is_auto(model.prediction_cost):
        check_number("prediction_cost", model.prediction_cost, least=4)
    for name, least in (("n_clusters", 1), ("n_landmarks", 1), ("n_pseudo_landmarks", 0)):
        if not is_auto(getattr(model, name)):
            check_integer(name, getattr(model, name), least)
    check_pseudo_rule(model.pseudo)
    check_flag(linear_term=model.linear_term)
    check_integer("n_trees", model.n_trees, 1)


def allocate_automatic_cost(model: Model, n: int, d: int, n_outputs: int) -> ForestSettings:
    """As `allocate_cost`; "auto" is what a cost of 40 buys for one output: q outputs share these leaves and landmarks.

    A prediction then costs at most 40 q. More than ten outputs have no linear terms, of d numbers each in every leaf.
    """
    if model.prediction_cost != "auto":
        return allocate_cost(model, n, d, n_outputs)
    settings = allocate_cost(model, n, d, 1)
    return settings._replace(linear=settings.linear and n_outputs <= DEFAULT_COST * _LINEAR_SHARE)


def allocate_cost(model: Model, n: int, d: int, n_outputs: int, *, default: float = DEFAULT_COST) -> ForestSettings:
    """Leaves, landmarks and pseudo-landmarks for a prediction cost of (n, d) rows; "auto" stands for `default`.

    Of a tree's share of the cost, up to a third goes into routing, as long as leaves have 400 rows; the rest into
    landmarks, with all their products ("polynomial") or as many pseudo-landmarks as landmarks ("triangle"), as long as
    a leaf has five rows for each landmark and one for each product.
    """
    cost = (default if model.prediction_cost == "auto" else float(model.prediction_cost)) / model.n_trees
    k = _max_leaves(cost * _ROUTING_SHARE, n) if model.n_clusters == "auto" else int(model.n_clusters)
    linear = model.linear_term and n_outputs <= cost * _LINEAR_SHARE
    left = max(1.0, cost - routing_cost(k) - n_outputs * linear)
    # m landmarks, and pseudo-landmarks as "auto" chooses them, cost per_landmark m + per_landmark_pair m^2 inner
    # products (`NystroemTree.n_operations`; "triangle": m pseudo-landmarks, m values each)
    per_landmark = 1 + n_outputs / d * (2 if model.pseudo == "triangle" and model.n_pseudo_landmarks == "auto" else 1)
    per_landmark_pair = {"polynomial": n_outputs / (2 * d), "triangle": 1 / d, None: 0.0}[model.pseudo]
    if model.n_pseudo_landmarks != "auto" and model.pseudo is not None:
        p, per_landmark_pair = int(model.n_pseudo_landmarks), 0.0
        left = max(1.0, left - p * n_outputs / d)
        per_landmark += p / d if model.pseudo == "triangle" else 0.0
    m, p, leaf_rows = model.n_landmarks, model.n_pseudo_landmarks, max(1, n // k)
    if m == "auto":
        largest = left / per_landmark
        if per_landmark_pair:
            largest = np.sqrt(per_landmark**2 + 4 * per_landmark_pair * left) - per_landmark
            largest /= 2 * per_landmark_pair
        most = leaf_rows // _ROWS_PER_LANDMARK
        m = int(np.clip(largest, 1, max(1, min(most, _MOST_MULTIPLIED) if model.pseudo == "polynomial" else most)))
    if p == "auto":
        p = min({"polynomial": m * (m + 1) // 2, "triangle": m, None: 0}[model.pseudo], leaf_rows)
    return ForestSettings(
        n_clusters=k,
        n_landmarks=int(m),
        n_pseudo_landmarks=int(p),
        pseudo=model.pseudo if p else None,
        linear=linear,
        n_trees=int(model.n_trees),
        n_jobs=model.n_jobs,
    )


def allocate_without_tree(
    model: Model, n: int, d: int, n_outputs: int, *, default: float, rank: int | None
) -> ForestSettings:
    """As `allocate_cost` for one leaf without a tree, in `rank` features after a projection if there is one."""
    cost = default if model.prediction_cost == "auto" else float(model.prediction_cost)
    share = 1.0 if rank is None else rank / d  # of an inner product with a projected row
    linear = model.linear_term and n_outputs <= cost * _LINEAR_SHARE
    left = cost - (rank or 0) - n_outputs * share * linear
    m = int(left / (share + n_outputs / d)) if model.n_landmarks == "auto" else int(model.n_landmarks)
    most = max(1, n // _ROWS_PER_LANDMARK)
    return ForestSettings(1, int(np.clip(m, 1, most)), 0, pseudo=None, linear=linear, n_jobs=model.n_jobs)


def forest_bytes(settings: ForestSettings, d: int, n_outputs: int) -> float:
    """Approximate bytes of a forest of float32 arrays, for rows of d features."""
    numbers = settings.n_landmarks * (d + n_outputs) + n_outputs * settings.n_pseudo_landmarks
    centres_and_slopes = d * (1 + n_outputs * settings.linear)
    return 4.0 * settings.n_trees * settings.n_clusters * (numbers + centres_and_slopes)


def training_bytes(settings: ForestSettings, n: int, d: int, n_outputs: int, *, is_hinge: bool = False) -> float:
    """Bytes that training on n rows takes, in the leaves that are trained side by side.

    Of least squares: the coordinates of each row and a copy in float32, the normal equations and their eigenvectors in
    float64. Of the hinge loss: the coordinates in float64 and a copy in float32, and d more float64 values of a row.
    Of both: four float64 values of a row for each output. Kernel matrices and the factor of W are not counted here, but
    by `_leaf_bytes` of `algorithms/dc_pred_leaves.py`, from the rest of the budget.
    """
    k = settings.n_clusters
    n_coordinates = settings.n_landmarks + settings.n_pseudo_landmarks + (d if settings.linear else 0)
    of_row = 32.0 * n_outputs + (12.0 * n_coordinates + 8.0 * d if is_hinge else 8.0 * n_coordinates)
    of_equations = 0.0 if is_hinge else n_coordinates * (16.0 * n_coordinates + 8.0 * BLOCK_ROWS)
    return min(LEAVES_AT_ONCE, k) * (of_row * n / k + of_equations)


def least_training_rows(settings: ForestSettings) -> int:
    """The fewest rows that a tree is trained on, however little memory there is."""
    return _LEAST_LEAF_ROWS * settings.n_clusters


def max_training_rows(settings: ForestSettings, d: int, n_outputs: int, n_bytes: float, *, is_hinge: bool) -> int:
    """How many rows take so many `training_bytes`, at least `least_training_rows`."""
    least = least_training_rows(settings)
    fixed, with_rows = (training_bytes(settings, n, d, n_outputs, is_hinge=is_hinge) for n in (0, least))
    return max(least, int(least * (n_bytes - fixed) / (with_rows - fixed)))


def _max_leaves(cost: float, n: int) -> int:
    """The largest number of leaves with this routing cost and at least 400 rows each."""
    most = max(1, min(n // _LEAF_ROWS, _MOST_LEAVES))
    return max(k for k in range(1, most + 1) if k == 1 or routing_cost(k) <= cost)


def routing_cost(k: int) -> float:
    """Cost of routing a row to one of k leaves: the number of distances computed on the way."""
    n_levels = count_levels(k)
    return n_levels * k ** (1 / n_levels) if k > 1 else 0.0
