"""gamma="near" of one-class machines: what it is, of which rows, and that it finds what lies between them."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from widemargin import DCOneClassSVM, DCSVMClassifier
from widemargin.estimators._near_gamma import near_gamma

X = np.random.default_rng(0).normal(size=(201, 3))


def slow_near_gamma(rows: Any, power: int) -> float:
    """1 / median of the distance to the nearest tenth of the others, row by row."""
    near = []
    for row in rows:
        distances = np.sort((np.abs(rows - row) ** power).sum(axis=1))[1:]
        near.append(distances[int(np.ceil(0.1 * len(distances))) - 1])
    return 1 / float(np.sort(near)[int(np.ceil(0.5 * len(near))) - 1])


@pytest.mark.parametrize(("kernel", "power"), [("rbf", 2), ("laplacian", 1)])
def test_is_the_reciprocal_of_a_median_distance(kernel: str, power: int) -> None:
    expected = slow_near_gamma(X, power)
    for rows in (X, X + 1e3, sp.csr_array(X)):
        assert near_gamma(kernel, rows, np.ones(201)) == pytest.approx(expected, rel=1e-6)
    model = DCOneClassSVM(nu=0.2, kernel=kernel).fit(X)
    same = clone(model).set_params(gamma=expected).fit(X)
    np.testing.assert_allclose(model.score_samples(X), same.score_samples(X), rtol=1e-5)


def test_a_weight_is_a_repeated_row() -> None:
    weights = np.random.default_rng(1).integers(1, 4, 50)
    few = X[:50]
    repeated = near_gamma("rbf", np.repeat(few, weights, axis=0), np.ones(weights.sum()))
    assert near_gamma("rbf", few, weights.astype(float)) == pytest.approx(repeated, rel=1e-12)


def test_many_rows_are_sampled() -> None:
    rows = np.random.default_rng(0).normal(size=(20_000, 3))
    gamma = near_gamma("rbf", rows, np.ones(20_000))
    assert gamma is not None
    assert gamma == pytest.approx(slow_near_gamma(X, 2), rel=0.2)


def test_equal_rows_and_other_kernels_have_the_gamma_of_scale() -> None:
    assert near_gamma("rbf", np.ones((5, 2)), np.ones(5)) is None
    assert DCOneClassSVM().fit(np.ones((5, 2))).predict(np.ones((1, 2))) == 1
    near, scale = (DCOneClassSVM(kernel="poly", coef0=1.0, degree=2, gamma=gamma).fit(X) for gamma in ("near", "scale"))
    np.testing.assert_array_equal(near.score_samples(X), scale.score_samples(X))


def test_finds_what_lies_between_the_rows() -> None:
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, 500)
    ring = np.column_stack([np.cos(angles), np.sin(angles)]) + 0.05 * rng.normal(size=(500, 2))
    centre = 0.3 * rng.normal(size=(200, 2))

    def area(**options: Any) -> float:
        model = DCOneClassSVM(nu=0.05, **options).fit(ring[:400])
        scores = [model.score_samples(rows) for rows in (ring[400:], centre)]
        return float(roc_auc_score(np.repeat([1, 0], [100, 200]), np.concatenate(scores)))

    assert area() > 0.95
    assert area() > area(gamma="scale")


def test_is_of_one_class_machines_alone() -> None:
    with pytest.raises(ValueError, match="gamma"):
        DCSVMClassifier(gamma="near").fit(X, X[:, 0] > 0)
