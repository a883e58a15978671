"""DCPredClassifier and DCPredRegressor: as scikit-learn estimators, against the exact machines, and at bad input."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge

from naive import dc_pred
from naive.dual import signed, solve_qp
from naive.nystroem import pairwise
from widemargin import DCPredClassifier, DCPredRegressor, DCSVMClassifier, DCSVMRegressor, _progress
from widemargin.algorithms import dc_pred_leaves as dc_pred_trees
from widemargin.estimators._cost import allocate_cost

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(900, 3))
WAVE = np.sin(2 * X[:, 0]) * X[:, 1]
BINARY = np.where(WAVE > 0.1, "up", "down")
FOUR = np.digitize(WAVE, [-0.8, 0, 0.8])


@pytest.mark.parametrize(("pseudo", "least"), [("polynomial", 0.92), ("triangle", 0.83), (None, 0.9)])
def test_a_classifier_learns(pseudo: str | None, least: float) -> None:
    model = DCPredClassifier(C=100, gamma=0.5, pseudo=pseudo, n_clusters=6, random_state=0).fit(X[:600], BINARY[:600])
    assert model.score(X[600:], BINARY[600:]) > least
    assert set(model.predict(X)) == {"up", "down"}
    assert model.decision_function(X).shape == (900,)
    assert 0 <= model.dual_gap_ < 0.05 * model.objective_
    assert model.converged_
    assert model.leaves_["n_rows"].sum() == 600


@pytest.mark.slow
def test_several_targets() -> None:
    targets = np.column_stack([WAVE, X[:, 0], -WAVE])
    model = DCPredRegressor(alpha=1e-3, gamma=0.3, n_clusters=3, random_state=0).fit(X[:600], targets[:600])
    assert model.predict(X).shape == targets.shape
    assert model.score(X[600:], targets[600:]) > 0.9
    np.testing.assert_allclose(model.predict(X)[:, 0], -model.predict(X)[:, 2], atol=1e-6)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    options: dict[str, Any] = {"gamma": 0.5, "n_clusters": 1, "n_landmarks": 300}
    one = DCPredRegressor(**options).fit(X[:300], WAVE[:300, None])
    np.testing.assert_array_equal(one.predict(X), DCPredRegressor(**options).fit(X[:300], WAVE[:300]).predict(X))


@pytest.mark.slow
def test_an_intercept_is_not_regularised() -> None:
    """Machines of shifted targets are shifted; with all rows as landmarks it is the exact one, of the dual solver."""
    options: dict[str, Any] = {"alpha": 0.1, "gamma": 0.5, "fit_intercept": True, "random_state": 0}
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 600)
    targets = np.column_stack([WAVE[:600], X[:600, 0]])
    shift = np.array([1e3, -50.0])
    small = DCPredRegressor(n_clusters=3, **options).fit(X[:600], targets, weights)
    shifted = DCPredRegressor(n_clusters=3, **options).fit(X[:600], targets + shift, weights)
    np.testing.assert_allclose(shifted.predict(X), small.predict(X) + shift, atol=1e-6)
    assert shifted.objective_ == pytest.approx(small.objective_, rel=1e-8)
    whole = DCPredRegressor(n_clusters=1, n_landmarks=300, **options).fit(X[:300], WAVE[:300] + 7.0)
    exact = DCSVMRegressor(C=5.0, gamma=0.5, epsilon=0.0, loss="squared_epsilon_insensitive", tol=1e-6)
    exact.fit(X[:300], WAVE[:300] + 7.0)
    np.testing.assert_allclose(whole.predict(X), exact.predict(X), atol=1e-6)
    assert whole.objective_ == pytest.approx(exact.objective_ / 5.0, rel=1e-6)
    with pytest.warns(ConvergenceWarning):
        constant = DCPredRegressor(fit_intercept=True, max_time=0).fit(X, WAVE + 7.0)
    assert np.abs(constant.predict(X) - 7.0).max() < 2.0


@pytest.mark.slow
def test_without_a_penalty() -> None:
    """Interpolation where all rows are landmarks; least squares; an error where the kernel matrix is singular."""
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 200)
    options: dict[str, Any] = {"kernel": "laplacian", "gamma": 2.0, "random_state": 0}
    model = DCPredRegressor(alpha=0, n_landmarks=200, n_clusters=1, **options)
    np.testing.assert_allclose(model.fit(X[:200], WAVE[:200], weights).predict(X[:200]), WAVE[:200], atol=1e-6)
    leaves = DCPredRegressor(alpha=0, n_clusters=4, landmark_weights=None, **options)
    leaves.fit(X[:200], WAVE[:200], weights)
    assert leaves.objective_ == pytest.approx(weights @ (leaves.predict(X[:200]) - WAVE[:200]) ** 2, rel=1e-6)
    for alpha in (1e-6, 1e-3):
        assert leaves.objective_ < clone(leaves).set_params(alpha=alpha).fit(X[:200], WAVE[:200], weights).objective_
    for alpha in (1e-16, 1e-12):  # hardly any: about the machine without
        tiny = clone(leaves).set_params(alpha=alpha).fit(X[:200], WAVE[:200], weights)
        assert tiny.score(X[:200], WAVE[:200]) == pytest.approx(leaves.score(X[:200], WAVE[:200]), abs=1e-3)
    twice = np.concatenate([X[:100], X[:100]])
    with pytest.raises(ValueError, match="alpha must be larger for this kernel, whose matrix is singular .* got 0"):
        DCPredRegressor(alpha=0, n_clusters=1, n_landmarks=20).fit(twice, WAVE[:200])
    assert DCPredRegressor(alpha=0, n_clusters=1, landmark_weights=None).fit(twice, np.r_[WAVE[:100], WAVE[:100]])


def test_all_rows_as_landmarks_give_the_exact_machines() -> None:
    parameters: dict[str, Any] = {"gamma": 0.5, "n_clusters": 1, "n_landmarks": 300}
    for targets in (WAVE[:300], np.column_stack([WAVE, X[:, 0]])[:300]):
        ridge = DCPredRegressor(alpha=0.1, **parameters).fit(X[:300], targets)
        exact = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5).fit(X[:300], targets)
        np.testing.assert_allclose(ridge.predict(X), exact.predict(X), atol=1e-8)
    machine = DCPredClassifier(C=2.0, tol=1e-6, **parameters).fit(X[:300], BINARY[:300])
    rival = DCSVMClassifier(C=2.0, gamma=0.5, tol=1e-6, fit_intercept=False).fit(X[:300], BINARY[:300])
    np.testing.assert_allclose(machine.decision_function(X), rival.decision_function(X), atol=1e-4)
    assert machine.objective_ == pytest.approx(rival.objective_, rel=1e-4)


@pytest.mark.parametrize("n_outputs", [1, 100])
def test_landmarks_and_pseudo_landmarks_cost_what_is_allowed(n_outputs: int) -> None:
    model, d = DCPredClassifier(prediction_cost=300, pseudo="triangle", n_clusters=1, linear_term=False), 784
    plan = allocate_cost(model, 10**6, d, n_outputs)
    m, p = plan.n_landmarks, plan.n_pseudo_landmarks
    assert 297 < m + ((m + p) * n_outputs + m * p) / d <= 300


@pytest.mark.slow
def test_an_automatic_cost_carries_many_outputs() -> None:
    rng = np.random.default_rng(0)
    centres, labels = 2 * rng.normal(size=(100, 20)), np.repeat(np.arange(100), 40)
    rows = centres[labels] + 0.7 * rng.normal(size=(4000, 20))
    model = DCPredClassifier(C=10, random_state=0).fit(rows[::2], labels[::2])
    assert model.score(rows[1::2], labels[1::2]) > 0.95  # 0.27 for a cost of 40
    X = rng.normal(size=(3000, 10))
    targets = np.sin(0.3 * X @ rng.normal(size=(10, 200)))
    ridge = DCPredRegressor(alpha=0.01, gamma=0.1, random_state=0).fit(X[::2], targets[::2])
    assert ridge.score(X[1::2], targets[1::2]) > 0.8  # 0.15 for a cost of 40
    one = DCPredRegressor(alpha=0.01, gamma=0.1, random_state=0).fit(X[::2], targets[::2, 0])
    assert one.leaves_["n_landmarks"].max() == ridge.leaves_["n_landmarks"].max()
    assert one.prediction_cost_ <= 1.2 * 40 < ridge.prediction_cost_ <= 1.2 * 40 * 200


def test_weights_act_as_repetitions_do() -> None:
    """Up to the draw of clusters: with one leaf and every row a landmark there is none."""
    weights = RNG.integers(0, 3, 200).astype(float)
    repeated = np.repeat(np.arange(200), weights.astype(int))
    parameters: dict[str, Any] = {"gamma": 0.5, "n_clusters": 1, "n_landmarks": 1000}
    for model, y in (
        (DCPredRegressor(alpha=0.1, **parameters), WAVE),
        (DCPredClassifier(C=2.0, tol=1e-6, **parameters), BINARY),
    ):
        by_weight = model.fit(X[:200], y[:200], sample_weight=weights)
        values = by_weight._decision_values(X)
        np.testing.assert_allclose(model.fit(X[repeated], y[repeated])._decision_values(X), values, atol=1e-3)


def test_leaves_of_one_class_and_of_constant_targets() -> None:
    far = np.vstack([RNG.normal(size=(60, 2)), 50 + RNG.normal(size=(60, 2))])
    y = np.r_[RNG.integers(0, 2, 60), np.ones(60, int)]
    model = DCPredClassifier(n_clusters=2, random_state=0).fit(far, y)
    np.testing.assert_array_equal(model.predict(far[60:]), 1)
    np.testing.assert_array_equal(model.decision_function(far[60:]), 1.0)
    flat = DCPredRegressor(alpha=1e-6, gamma=0.5, n_clusters=2, random_state=0).fit(far, np.r_[far[:60, 0], [3.0] * 60])
    np.testing.assert_allclose(flat.predict(far[60:]), 3.0, atol=0.1)


@pytest.mark.slow
def test_auto_takes_the_landmarks_that_the_exact_machine_is_estimated_from_best() -> None:
    """One leaf: least squares of the exact machine's values on kernel values, redone from what each choice gave."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 2))
    signs = np.where(np.square(rows).sum(axis=1) < 1.2, 1.0, -1.0)
    chosen = []
    for gamma, m in ((0.1, 4), (0.5, 8), (0.5, 16), (2.0, 16), (8.0, 6)):
        values = DCSVMClassifier(gamma=gamma, random_state=0).fit(rows, signs).decision_function(rows)
        errors = {}
        for weights in ("auto", "alpha"):
            model = DCPredClassifier(gamma=gamma, n_clusters=1, n_landmarks=m, pseudo=None, landmark_weights=weights)
            model.set_params(random_state=0).fit(rows, signs)
            landmarks = model.predictor_.trees[0].features.landmarks[0]
            C = np.exp(-gamma * np.square(rows[:, None] - landmarks).sum(axis=2))
            C = np.hstack([C, rows, np.ones((400, 1))])
            errors[weights] = np.square(values - C @ np.linalg.lstsq(C, values)[0]).sum()
        assert errors["auto"] <= 1.02 * errors["alpha"]  # the leaf's own machine is less exact
        chosen.append(bool(errors["auto"] == pytest.approx(errors["alpha"])))
    assert set(chosen) == {True, False}


PUBLISHED: dict[str, Any] = {"linear_term": False, "landmark_weights": "alpha", "damping": 0.0}


def published_values(model: Any, y: np.ndarray, solve: Callable[..., np.ndarray]) -> np.ndarray:
    """Decision values at X of the paper's two algorithms, with the clusters and points that a fit to X drew."""
    (tree,) = model.predictor_.trees
    label = tree.tree.route(X)
    clusters = []
    for landmarks, products in zip(tree.features.landmarks, tree.products[:, 0], strict=True):
        clusters.append(dc_pred.Cluster(landmarks, np.array(np.nonzero(products))))
    betas = dc_pred.train(X, y, label, clusters, rbf_kernel, solve)
    return dc_pred.decision_values(X, label, clusters, betas, rbf_kernel)


def rbf_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * pairwise(A, B, "squared_distance"))


def ridge_alpha(K: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.linalg.solve(K + 0.1 * np.eye(len(K)), y)


def hinge_alpha(K: np.ndarray, y: np.ndarray) -> np.ndarray:
    return y * solve_qp(signed(K, y), -np.ones(len(y)), np.full(len(y), 2.0))


@pytest.mark.slow
def test_the_published_regressor_is_the_papers_algorithm() -> None:
    parameters: dict[str, Any] = {"gamma": 0.5, "n_clusters": 4, "n_landmarks": 5, "n_pseudo_landmarks": 4}
    model = DCPredRegressor(alpha=0.1, **parameters, **PUBLISHED, random_state=0).fit(X, WAVE)
    truth = published_values(model, WAVE, ridge_alpha)
    np.testing.assert_allclose(model.predict(X), truth, atol=1e-8)
    for name, value in (("linear_term", True), ("damping", 0.05)):  # each is switched off by its own parameter
        other = DCPredRegressor(alpha=0.1, **parameters, **{**PUBLISHED, name: value}, random_state=0).fit(X, WAVE)
        assert np.abs(other.predict(X) - truth).max() > 1e-6, name
    (tree,) = model.predictor_.trees
    label = tree.tree.route(X)
    for c, landmarks in enumerate(tree.features.landmarks):  # landmarks: centroids of k-means weighted by alpha^2
        rows = X[label == c]
        alpha = ridge_alpha(rbf_kernel(rows, rows), WAVE[label == c])
        np.testing.assert_allclose(dc_pred.weighted_centroids(rows, landmarks, alpha), landmarks, atol=1e-8)


@pytest.mark.slow
def test_the_published_classifier_is_the_papers_algorithm() -> None:
    parameters: dict[str, Any] = {"gamma": 0.5, "n_clusters": 4, "n_landmarks": 5, "n_pseudo_landmarks": 4}
    model = DCPredClassifier(C=2.0, tol=1e-6, **parameters, **PUBLISHED, random_state=0).fit(X, BINARY)
    truth = published_values(model, np.where(BINARY == "up", 1.0, -1.0), hinge_alpha)
    np.testing.assert_allclose(model.decision_function(X), truth, atol=1e-3)


def test_rows_near_a_lonely_landmark_have_no_wild_values() -> None:
    """W is estimated on the landmarks, too: with a narrow kernel new rows are predicted better than by zero."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 6))
    y = np.sin(2 * rows[:, 0]) + 0.1 * rng.normal(size=3000)
    model = DCPredRegressor(alpha=0.1, gamma=3.0, prediction_cost=30, random_state=0).fit(rows[:1500], y[:1500])
    assert np.abs(model.predict(rows[1500:]) - y[1500:]).max() < 5.0
    assert model.score(rows[1500:], y[1500:]) > 0.0


@pytest.mark.parametrize("weights", ["auto", "alpha", None])
def test_where_all_kernel_values_vanish(weights: str | None) -> None:
    model = DCPredClassifier(gamma=1e6, n_clusters=1, n_landmarks=3, linear_term=False, landmark_weights=weights)
    assert np.isfinite(model.set_params(random_state=0).fit(X, BINARY).decision_function(X)).all()


def test_more_landmarks_and_leaves_than_rows() -> None:
    model = DCPredClassifier(n_clusters=50, n_landmarks=40, random_state=0).fit(X[:30], BINARY[:30])
    assert model.leaves_["n_landmarks"].max() <= 30
    assert model.score(X[:30], BINARY[:30]) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("model", [DCPredClassifier(C=10.0), DCPredRegressor(alpha=0.1)], ids=str)
def test_half_of_the_time_is_shared_among_all_leaves(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock of rows: of half the time no leaf goes without, and more than all of it changes nothing."""
    run, now, y = dc_pred_trees._LeafTrainer._run_algorithm, [0.0], FOUR if is_classifier(model) else WAVE

    def take_time(trainer: Any, rows: Any, rng: Any) -> Any:
        now[0] += len(rows)
        return run(trainer, rows, rng)

    monkeypatch.setattr(_progress, "perf_counter", lambda: now[0])
    monkeypatch.setattr(dc_pred_trees._LeafTrainer, "_run_algorithm", take_time)
    model = clone(model).set_params(n_clusters=8, n_jobs=1, random_state=0)
    whole = clone(model).fit(X, y)
    ample = clone(model).set_params(max_time=1.6 * len(X)).fit(X, y)
    np.testing.assert_array_equal(ample.predict(X), whole.predict(X))
    with pytest.warns(ConvergenceWarning, match="stopped by max_time"):
        half = clone(model).set_params(max_time=0.5 * len(X)).fit(X, y)
    assert half.score(X, y) > whole.score(X, y) - 0.15


def test_not_worse_than_a_nystroem_machine_of_its_cost() -> None:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    model = DCPredRegressor(alpha=1e-3, gamma=0.3, prediction_cost=40, random_state=0).fit(X[:600], WAVE[:600])
    rival = make_pipeline(Nystroem(gamma=0.3, n_components=40, random_state=0), Ridge(1e-3)).fit(X[:600], WAVE[:600])
    assert model.score(X[600:], WAVE[600:]) > rival.score(X[600:], WAVE[600:])
