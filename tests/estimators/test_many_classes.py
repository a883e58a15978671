"""Hundreds of classes: votes without a matrix of pairs and classes, tiny problems of pairs solved in common passes."""

from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import _ovr_decision_function

from python_calls import count_calls
from widemargin import DCSVMClassifier
from widemargin.estimators import _predictor
from widemargin.solvers.dual import subproblems

Matrix: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.intp]


@pytest.mark.parametrize("n_classes", [3, 33])
def test_votes_of_many_classes_are_those_of_few(n_classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).standard_normal((5, n_classes * (n_classes - 1) // 2)).round(1)
    ordered = _ovr_decision_function(values < 0, -values, n_classes)
    np.testing.assert_allclose(_predictor.ordered_votes(values, n_classes), ordered, rtol=1e-12)
    monkeypatch.setattr(_predictor, "_FEW_CLASSES", 0)
    many = _predictor.votes(values, n_classes)
    monkeypatch.setattr(_predictor, "_FEW_CLASSES", 100)
    np.testing.assert_array_equal(many, _predictor.votes(values, n_classes))


def test_votes_of_many_classes_take_memory_of_their_values_alone() -> None:
    """A dense matrix (n_pairs, n_classes) of 2,000 classes would take 16 GB."""
    n_classes = 2000
    values = np.ones((1, n_classes * (n_classes - 1) // 2), np.float32)
    assert _predictor.vote_winners(values, n_classes, break_ties=False).tolist() == [0]
    assert _predictor.vote_winners(-values, n_classes, break_ties=True).tolist() == [n_classes - 1]


def rows_of_classes(k: int) -> tuple[Matrix, Labels]:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(k), 3)
    return rng.standard_normal((k, 20))[y] + 0.3 * rng.standard_normal((3 * k, 20)), y


@pytest.mark.slow
@pytest.mark.parametrize("C", [1.0, 1e5])  # with the larger one, pairs are corrected in float64
def test_pairs_are_arrays_and_no_calls_of_functions(C: float) -> None:
    """7,140 pairs are fitted with fewer calls than there are pairs."""
    X, y = rows_of_classes(120)
    model = DCSVMClassifier(C, gamma=0.001, n_jobs=1)
    assert count_calls(lambda: model.fit(X.astype(np.float32), y), times=1) < 7140
    n_rows = len(model.history_["time"])
    assert n_rows == 7140 if C == 1 else n_rows > 7140


def test_every_pair_of_classes_votes_where_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair has time for a working set."""
    monkeypatch.setattr(subproblems._Batch, "advance", lambda *args: False)
    X, y = rows_of_classes(100)
    with pytest.warns(ConvergenceWarning):
        model = DCSVMClassifier().fit(X, y)
    assert model.score(X, y) > 0.99
