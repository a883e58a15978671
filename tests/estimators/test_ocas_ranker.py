"""`OCASRanker`: all pairs by a linear machine on their differences, every form of input, errors."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import widemargin
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
@pytest.mark.parametrize("C", [1e-3, 1e-1, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
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
def test_forms_of_the_same_data(queries: Data, tmp_path: Path) -> None:
    X, y, groups = queries
    model = OCASRanker(0.1, tol=1e-7, n_jobs=1).fit(X, y, groups)
    np.save(tmp_path / "X.npy", X)
    for form in (sp.csr_array(X), np.asfortranarray(X), np.load(tmp_path / "X.npy", mmap_mode="r")):
        np.testing.assert_allclose(OCASRanker(0.1, tol=1e-7).fit(form, y, groups).coef_, model.coef_, atol=1e-3)
    np.testing.assert_array_equal(OCASRanker(0.1, tol=1e-7, n_jobs=2).fit(X, y, groups).coef_, model.coef_)
    widemargin.save(model, tmp_path / "m.skops")
    for copy in (pickle.loads(pickle.dumps(model)), widemargin.load(tmp_path / "m.skops")):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@pytest.mark.slow
def test_dask(queries: Data) -> None:
    da = pytest.importorskip("dask.array")
    X, y, groups = queries
    lazy = da.from_array(X, chunks=(25, 4))
    model, own = (OCASRanker(0.1, tol=1e-6).fit(rows, y, groups) for rows in (lazy, X))
    assert model.objective_ == pytest.approx(own.objective_, rel=1e-5)
    assert model.score(lazy, y, groups) == model.score(X, y, groups)


@pytest.mark.slow
def test_path_and_warm_start(queries: Data) -> None:
    X, y, groups = queries
    alone = OCASRanker(1.0, tol=1e-6).fit(X, y, groups)
    path = OCASRanker(tol=1e-6).fit_path(X, y, [0.01, 1.0], groups=groups)
    assert path[1].objective_ == pytest.approx(alone.objective_, rel=1e-5)
    warm = OCASRanker(1.0, tol=1e-6, warm_start=True).fit(X, y, groups).set_params(C=1.01).fit(X, y, groups)
    assert warm.n_iter_ < alone.n_iter_


def test_a_stopped_fit_has_the_best_machine_so_far(queries: Data) -> None:
    with pytest.warns(ConvergenceWarning, match="was stopped by max_iter before it converged: duality gap"):
        model = OCASRanker(tol=1e-9, max_iter=2).fit(*queries)
    assert 0 < model.dual_gap_ < model.objective_


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
