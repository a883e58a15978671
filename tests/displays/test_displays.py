"""The other displays: what is drawn is what the estimators say; wrong arguments are named."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import make_moons
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from widemargin import (
    BSGDClassifier,
    ClusterDisplay,
    CPathDisplay,
    DCSVMClassifier,
    OCASClassifier,
    PredictionCostDisplay,
    SupportVectorDisplay,
    TwoStepKernelKMeans,
)
from widemargin.model_selection.c_path import CPath

X, Y = make_moons(600, noise=0.2, random_state=0)

pytestmark = pytest.mark.usefixtures("plt")


@pytest.mark.parametrize("model", [DCSVMClassifier(gamma=1.0), BSGDClassifier(n_epochs=3)], ids=["DCSVM", "BSGD"])
def test_support_vectors_are_those_of_the_history(model: Any) -> None:
    display = SupportVectorDisplay.from_estimator(model.fit(X, Y), name="ours")
    assert np.array_equal(display.lines_[0].get_ydata(), model.history_["n_support"])
    assert display.lines_[0].get_label() == "ours"


def test_a_linear_machine_has_no_support_vectors_to_draw() -> None:
    with pytest.raises(ValueError, match="missing: n_support"):
        SupportVectorDisplay.from_estimator(OCASClassifier().fit(X, Y))


def test_cost_of_a_prediction() -> None:
    exact, linear = SVC().fit(X, Y), OCASClassifier().fit(X, Y)
    display = PredictionCostDisplay.from_estimators({"exact": exact, "linear": linear}, X, Y)
    drawn = [(len(exact.support_vectors_), exact.score(X, Y)), (1, linear.score(X, Y))]
    assert display.line_.get_xydata().tolist() == [list(map(float, point)) for point in drawn[::-1]]
    assert [text.get_text() for text in display.texts_] == ["linear", "exact"]
    with pytest.raises(ValueError, match=r"estimators\['near'\] must be a kernel model.*KNeighbors"):
        PredictionCostDisplay.from_estimators({"near": KNeighborsClassifier().fit(X, Y)}, X, Y)
    assert PredictionCostDisplay.from_estimators({"line": LinearRegression().fit(X, Y)}, X, Y).cost == [1]


def test_cost_of_kernel_ridge_and_of_a_kernel_matrix() -> None:
    ridge = KernelRidge(kernel="rbf").fit(X, Y)
    assert PredictionCostDisplay.from_estimators({"ridge": ridge}, X, Y).cost == [600]
    K = X @ X.T
    for model in (SVC(kernel="precomputed").fit(K, Y), DCSVMClassifier(kernel="precomputed").fit(K, Y)):
        assert PredictionCostDisplay.from_estimators({"given": model}, K, Y).cost == [len(model.support_)]


def test_clusters_of_an_early_machine_are_those_that_predict() -> None:
    one_level = {"stop_level": 1, "n_levels": 1, "fit_intercept": False}
    early = DCSVMClassifier(gamma=1.0, **one_level, random_state=0).fit(X, Y)
    clusters = early.assign_clusters(X)
    display = ClusterDisplay.from_estimator(early, X)
    assert np.array_equal(display.clusters, clusters)
    assert np.array_equal(display.points_.get_offsets(), X)
    values = replace(early._model, averages=False).decision_values(X)[:, 0]
    for c in np.unique(clusters):  # a cluster's machine has only its own support vectors
        mine = early._clusters["support_labels"] == c
        squares = ((X[clusters == c][:, None] - early.support_vectors_[mine][None]) ** 2).sum(axis=2)
        assert np.allclose(np.exp(-squares) @ early.dual_coef_[0, mine], values[clusters == c], atol=1e-4)


def test_many_features_are_drawn_on_their_principal_plane() -> None:
    wide = np.column_stack([X, 0.01 * np.random.default_rng(0).normal(size=(600, 3))])
    model = TwoStepKernelKMeans(3, gamma=1.0, random_state=0).fit(wide)
    drawn = ClusterDisplay.from_estimator(model, wide).points
    distances = [np.linalg.norm(points[:100] - points[100:200], axis=1) for points in (wide, drawn)]
    assert np.allclose(*distances, atol=0.05)


def test_an_exact_machine_has_no_clusters() -> None:
    with pytest.raises(ValueError, match="assign_clusters needs early prediction"):
        ClusterDisplay.from_estimator(DCSVMClassifier(gamma=1.0).fit(X, Y), X)
    with pytest.raises(ValueError, match=r"points \(600, 2\), clusters \(3,\)"):
        ClusterDisplay(X, [0, 1, 2])


def test_clusters_behind_a_scaler_are_those_of_its_early_machine() -> None:
    model = make_pipeline(StandardScaler(), DCSVMClassifier(gamma=1.0, stop_level=1, random_state=0)).fit(X, Y)
    wanted = model[-1].assign_clusters(model[0].transform(X))
    assert np.array_equal(ClusterDisplay.from_estimator(model, X).clusters, wanted)


@pytest.mark.parametrize(
    "model", [BSGDClassifier(n_epochs=1), OCASClassifier(), make_pipeline(StandardScaler(), SVC()), DBSCAN()]
)
def test_an_estimator_without_clusters_is_named(model: Any) -> None:
    with pytest.raises(ValueError, match="estimator must have clusters"):
        ClusterDisplay.from_estimator(model.fit(X, Y), X)


@pytest.mark.slow
def test_clusters_of_scikit_learn_are_drawn_too() -> None:
    model = KMeans(3, n_init=1, random_state=0).fit(X)
    assert np.array_equal(ClusterDisplay.from_estimator(model, X).clusters, model.labels_)
    model.fit(X[:, :1])
    display = ClusterDisplay.from_estimator(model, X[:, :1])
    assert np.array_equal(display.clusters, model.labels_)
    assert np.array_equal(display.points, np.column_stack([X[:, 0], np.zeros(600)]))


def test_path_of_c() -> None:
    path = CPath(np.array([10.0, 1.0, 0.1]), [], np.array([[0.8, 0.9, 0.5], [0.8, 0.7, 0.7]]))
    display = CPathDisplay.from_path(path, color="red")
    assert np.allclose(display.line_.get_xydata(), [[0.1, 0.6], [1.0, 0.8], [10.0, 0.8]])
    assert display.line_.get_color() == "red"
    assert list(display.best_line_.get_xdata()) == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"scores \(0, 3\)"):
        CPathDisplay.from_path(CPath(path.Cs, [], np.empty((0, 3))))
