"""What the DC-Pred++ benchmark computes itself is right. The figures are its own to measure."""

import itertools

import numpy as np
import pytest
from sklearn.svm import SVC

from evidence._dc_pred import approximation, compression, cost, regression
from widemargin.datasets import load_patches


def test_cost_is_a_ratio_to_the_linear_machine():
    linear = cost.Linear(load_patches(300)[0])
    assert len(linear.rows) == 10_000
    (row,) = linear.multiples([lambda rows: [linear._model.decision_function(rows) for _ in range(5)]])
    assert row["multiple"] == pytest.approx(row["predict_us"] / row["linear_us"])
    assert row["multiple"] > 1


def test_the_linear_machine_is_timed_alone_before_and_after_the_others(monkeypatch):
    linear, called = cost.Linear(load_patches(300)[0]), []
    monkeypatch.setattr(linear, "_linear", lambda rows: called.append("linear"))
    rows = linear.multiples([lambda rows: called.append("first"), lambda rows: called.append("second")])
    order = [called[0]] + [name for last, name in itertools.pairwise(called) if name != last]
    assert order[:4] == ["linear", "first", "second", "linear"]
    assert len({row["linear_us"] for row in rows}) == 1


def test_settings_of_an_earlier_run_are_found():
    rows = [{"machine": "DC-Pred++", "options": "n_clusters=1 n_landmarks=2 n_trees=1 gamma=0.06 C=10.0"}]
    size = {"n_clusters": 1, "n_landmarks": 2, "n_trees": 1}
    for label in ("DC-Pred++", "DC-Pred++ as published"):
        assert regression._known(label, size, rows).options == {**size, "gamma": 0.06, "C": 10.0}
    assert regression._known("Nyström", {"m": 5}, rows) is None


def test_regression_is_compared_over_seeds():
    row = regression._over_seeds([1.0, 3.0])
    assert row == {"rmse": 2.0, "rmse_std": 1.0, "seeds": 2}


def test_pseudo_landmarks_are_compared_at_equal_cost():
    plain, cheap = {"set": "a", "machine": "landmarks alone"}, {"set": "a", "machine": "+ triangle"}
    rows = [
        {**plain, "m": 1, "multiple": 1.0, "operations": 1, "error": 0.4},
        {**plain, "m": 2, "multiple": 4.0, "operations": 16, "error": 0.1},
        {**cheap, "m": 1, "multiple": 2.0, "operations": 4, "error": 0.1},
        {**cheap, "m": 2, "multiple": 9.0, "operations": 99, "error": 0.01},
    ]
    (gain,) = approximation.gains(rows)
    assert gain["times_closer"] == pytest.approx(2.0)
    assert gain["times_closer_counted"] == pytest.approx(2.0)


def test_regression_is_judged_at_no_higher_cost():
    rows = [
        {"set": "a", "machine": who, "options": "", "multiple": x, "operations": 1 / x, "rmse": y}
        for who, x, y in (
            ("DC-Pred++", 2.0, 0.5),
            ("DC-Pred++", 4.0, 0.3),
            ("DC-Pred++ as published", 2.0, 0.35),
            ("Nyström", 3.0, 0.4),
            ("Nyström", 1.0, 0.9),
        )
    ]
    first, second = regression.verdicts(rows)
    assert (first["ours_multiple"], first["ours_lower_multiple"]) == (0.5, False)
    assert (second["ours_multiple"], second["ours_lower_multiple"]) == (None, False)
    assert (first["published_lower_multiple"], second["published_lower_multiple"]) == (True, False)
    assert (first["ours_operations"], first["ours_lower_operations"]) == (0.3, True)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_libsvm_predicts_from_intelex_support_vectors(n_classes):
    svm = pytest.importorskip("sklearnex.svm")
    X, _ = load_patches(400)
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], np.arange(1, n_classes) / n_classes))
    theirs = svm.SVC(C=5.0, gamma=0.5).fit(X, y)
    ours = compression.as_svc(theirs)
    assert type(ours) is SVC
    own = SVC(C=5.0, gamma=0.5).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), own.decision_function(X), atol=0.02)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
