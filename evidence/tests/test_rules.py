"""Other rules of early prediction than the library's, against their formulas."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from evidence._dc_svm.rules import RULES, fit_slope, with_rule
from widemargin._threads import ONE_THREAD
from widemargin.datasets import load_patches

X, Y = make_moons(600, noise=0.3, random_state=0)
EARLY = {"gamma": 2.0, "stop_level": 1, "n_levels": 1, "random_state": 0}


def by_cluster(model):
    """Decision values (n, k) of all clusters, and the clusters (n,) of the rows."""
    values = np.column_stack([machine.decision_values(X)[:, 0] for machine in model.machines])
    return values, model.router.route(X, ONE_THREAD)


def test_the_own_cluster_decides_alone():
    model = with_rule("early")(**EARLY).fit(X, Y)
    values, labels = by_cluster(model._model)
    np.testing.assert_allclose(model.decision_function(X), values[np.arange(len(X)), labels], atol=1e-9)


def test_naive_is_the_sum_over_all_clusters():
    early, naive = (with_rule(rule)(**EARLY).fit(X, Y) for rule in ("soft", "naive"))
    values, _ = by_cluster(early._model)
    intercepts = early._model.intercept[0]
    expected = (values - intercepts).sum(axis=1) + intercepts.mean()
    np.testing.assert_allclose(naive.decision_function(X), expected, atol=1e-9)


def test_the_committee_multiplies_the_clusters_probabilities():
    """p(y|x) ~ prod_c p_c(y|x) / p(y)^(k-1), computed as it stands here; each slope is the most likely one."""
    model = with_rule("bcm")(**EARLY).fit(X, Y)
    values, labels = by_cluster(model._model)
    a, b = model._model.sigmoids[0].T
    positive, prior, k = 1 / (1 + np.exp(a * values + b)), Y.mean(), values.shape[1]
    odds = (positive.prod(axis=1) / prior ** (k - 1)) / ((1 - positive).prod(axis=1) / (1 - prior) ** (k - 1))
    np.testing.assert_allclose(model.decision_function(X), np.log(odds), atol=1e-7)
    log_prior = np.log(prior / (1 - prior))
    for c in range(k):
        decision = values[labels == c, c] - model._model.intercept[0, c]
        assert -a[c] == pytest.approx(fit_slope(decision, Y[labels == c] == 1, log_prior), abs=1e-6)
    far = model.decision_function(np.full((1, 2), 1e3))[0]
    assert far == pytest.approx(log_prior)  # clusters without information leave the odds unchanged


def test_the_slope_is_the_most_likely():
    rng = np.random.default_rng(0)
    f = rng.normal(size=200)
    is_positive = f + rng.normal(size=200) > 0.5
    n = np.bincount(is_positive)
    targets = np.where(is_positive, (n[1] + 1) / (n[1] + 2), 1 / (n[0] + 2))
    slopes = np.linspace(0, 5, 50_001)
    p = [1 / (1 + np.exp(-s * f + 0.4)) for s in slopes]
    likelihood = [np.sum(targets * np.log(q) + (1 - targets) * np.log(1 - q)) for q in p]
    assert fit_slope(f, is_positive, -0.4) == pytest.approx(slopes[np.argmax(likelihood)], abs=1e-3)
    assert fit_slope(f, f < 0, -0.4) == pytest.approx(0.0, abs=1e-4)  # against its own decision: not to be heeded
    assert fit_slope(f, f > 0, -0.4) < 100.0


@pytest.mark.parametrize("rule", RULES)
def test_rules_take_several_classes(rule):
    y = Y + (X[:, 0] > 1)
    least = 0.5 if rule == "platt" else 0.7  # clusters that know nothing outvote the others
    assert with_rule(rule)(**EARLY).fit(X, y).score(X, y) > least


def test_the_paper_s_committee_has_platt_s_sigmoids():
    model = with_rule("platt")(**EARLY).fit(X, Y)
    values, labels = by_cluster(model._model)
    for c, (a, b) in enumerate(model._model.sigmoids[0]):
        f, y = values[labels == c, c], Y[labels == c]
        targets = np.where(y, (y.sum() + 1) / (y.sum() + 2), 1 / ((1 - y).sum() + 2))
        p = 1 / (1 + np.exp(a * f + b))
        assert abs(np.sum(p - targets)) < 1e-2 * len(y)  # both derivatives of the likelihood are 0
        assert abs(np.sum((p - targets) * f)) < 1e-2 * len(y)


def test_levels_as_published_have_as_many_clusters_as_the_paper_s():
    X, y = load_patches(3000)
    given = {"gamma": 1.0, "partition": "kernel", "n_levels": 3, "stop_level": 1, "random_state": 0}
    ours, published = (with_rule("early", published=p)(**given).fit(X, y) for p in (False, True))
    assert [level["n_clusters"] for level in published.levels_] == [64, 16, 4]
    assert [level["n_clusters"] for level in ours.levels_] != [64, 16, 4]  # they are balanced
