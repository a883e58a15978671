"""Hundreds of classes: votes without a matrix of pairs and classes, tiny problems of pairs solved in common passes."""

import numpy as np
import pytest
from sklearn.utils.multiclass import _ovr_decision_function

from widemargin import DCSVMClassifier
from widemargin.estimators import _predictor


@pytest.mark.parametrize("n_classes", [33, 40])
def test_votes_of_many_classes_are_those_of_few(n_classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).standard_normal((5, n_classes * (n_classes - 1) // 2)).round(1)
    many = _predictor.votes(values, n_classes), _predictor.ordered_votes(values, n_classes)
    monkeypatch.setattr(_predictor, "_FEW_CLASSES", 100)
    np.testing.assert_array_equal(many[0], _predictor.votes(values, n_classes))
    np.testing.assert_allclose(many[1], _ovr_decision_function(values < 0, -values, n_classes), rtol=1e-12)


def test_votes_of_many_classes_take_memory_of_their_values_alone() -> None:
    """A dense matrix (n_pairs, n_classes) of 2,000 classes would take 16 GB."""
    n_classes = 2000
    values = np.ones((1, n_classes * (n_classes - 1) // 2), np.float32)
    assert _predictor.vote_winners(values, n_classes, break_ties=False).tolist() == [0]
    assert _predictor.vote_winners(-values, n_classes, break_ties=True).tolist() == [n_classes - 1]


def test_hundred_classes_of_three_rows() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(100), 3)
    X = rng.standard_normal((100, 20))[y] + 0.3 * rng.standard_normal((300, 20))
    model = DCSVMClassifier().fit(X, y)
    assert model.converged_
    assert model.score(X, y) == 1.0
