"""`OCASRanker`: all pairs by a linear machine on their differences, every form of input, errors."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from naive import losses as naive
from widemargin import OCASClassifier, OCASRanker

Data = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def queries() -> Data:
    """60 rows of 4 features, 4 levels, in 5 groups out of order that differ in their level."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(60, 4)), rng.integers(0, 5, 60)
    return X, np.digitize(X @ rng.normal(size=4) + rng.normal(size=60) + 3.0 * groups, [0, 4, 8]).astype(float), groups


@pytest.mark.slow
@pytest.mark.parametrize(("C", "weighted"), [(1e-3, False), (1e-1, True), (10.0, True)])
def test_as_a_classifier_of_differences(queries: Data, C: float, weighted: bool) -> None:
    X, y, groups = queries
    s = np.random.default_rng(1).uniform(0.0, 2.0, len(y)) if weighted else np.ones(len(y))
    higher, lower = np.nonzero((groups[:, None] == groups) & (y[:, None] > y))
    D, weights = X[higher] - X[lower], s[higher] * s[lower]
    both = np.concatenate([D, -D]), np.repeat([1, 0], len(D)), np.tile(0.5 * weights, 2)
    rival = OCASClassifier(C, fit_intercept=False, tol=1e-7).fit(*both)
    model = OCASRanker(C, tol=1e-6).fit(X, y, groups, s if weighted else None)
    assert model.converged_
    assert model.objective_ == pytest.approx(rival.objective_, rel=1e-5)
    w = model.coef_
    assert model.objective_ == pytest.approx(0.5 * w @ w + C * naive.pair_risk(X @ w, y, groups, s), rel=1e-9)
    assert model.objective_ - model.dual_gap_ <= rival.objective_ * (1 + 1e-9)


def test_score_is_the_share_of_ordered_pairs(queries: Data) -> None:
    X, y, groups = queries
    s = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    model = OCASRanker(0.1).fit(X, y, groups)
    ones = np.ones(len(y))
    assert model.score(X, y, groups) == pytest.approx(naive.concordance(model.predict(X), y, groups, ones))
    assert model.score(X, y, groups, s) == pytest.approx(naive.concordance(model.predict(X), y, groups, s))
    model.coef_ = np.zeros(4)
    assert model.score(X, y, groups) == 0.5
    assert np.isnan(model.score(X, np.zeros(len(y)), groups))


@pytest.mark.slow
def test_only_the_order_within_groups_counts(queries: Data) -> None:
    X, y, groups = queries
    names = np.array(["a", "e", "c", "b", "d"])[groups]
    model = OCASRanker(0.1).fit(X, y, groups)
    other = OCASRanker(0.1).fit(X, np.exp(y) + 10.0 * groups, groups=names.tolist())
    np.testing.assert_array_equal(other.coef_, model.coef_)
    assert OCASRanker(0.1).fit(X, y).objective_ != pytest.approx(model.objective_, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(59), "groups must have a label for each of the 60 samples, got 59"),
        (np.zeros((60, 2)), r"groups must be of shape \(60,\), got \(60, 2\)"),
        (np.where(np.arange(60) == 7, np.nan, 0.0), "groups must not have NaN"),
        (np.array(["a", 1, None] * 20, dtype=object), "groups must be labels of one kind"),
        (np.arange(60), "y must differ within a group of samples of positive weight: 60 samples have no pair"),
    ],
)
def test_wrong_groups(queries: Data, groups: Any, message: str) -> None:
    X, y, own = queries
    model = OCASRanker().fit(X, y, own)
    before = model.coef_
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, groups)
    assert model.coef_ is before


def test_bad_targets_and_parameters(queries: Data) -> None:
    X, y, groups = queries
    with pytest.raises(ValueError, match="y must have no missing values"):
        OCASRanker().fit(X, np.where(groups == 0, np.nan, y), groups)
    with pytest.raises(ValueError, match="C must be at most .* pairs, got 1e\\+308"):
        OCASRanker(1e308).fit(X, y, groups)
