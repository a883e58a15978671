"""More columns than rows: the dual alone, against LinearSVC, Algorithm 1 as it is, and what must not depend on it."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from naive.cutting_plane import multiclass_risk
from naive.losses import hinge_objective
from widemargin import OCASClassifier
from widemargin._threads import ThreadTeam
from widemargin.data import make_design_matrix
from widemargin.estimators._linear_machine import _hold_nonzeros
from widemargin.solvers.cutting_plane.accelerations import choose_accelerations
from widemargin.solvers.cutting_plane.crammer_singer import MulticlassHingeLoss
from widemargin.solvers.cutting_plane.losses import HingeLoss


def word_counts(n_classes: int, n: int = 500) -> tuple[Any, np.ndarray]:
    rng, d = np.random.default_rng(0), 2000
    words = (d * rng.random((n, 120)) ** 3).astype(np.int32)
    y = rng.integers(n_classes, size=n)
    words[:, :25] = np.minimum(words[:, :25] // n_classes * n_classes + y[:, None], d - 1)
    X = sp.csr_array(
        (np.ones(words.size, np.float32), (np.repeat(np.arange(n, dtype=np.int32), 120), words.ravel())), shape=(n, d)
    )
    return X, np.where(rng.random(n) < 0.1, rng.integers(n_classes, size=n), y)


X, Y = word_counts(2)


def hashed(n: int, d: int, share: float) -> tuple[Any, np.ndarray]:
    """10 of d columns a row, and the sign of a noisy linear function, positive in a share of the rows."""
    rng = np.random.default_rng(0)
    columns = rng.integers(d, size=(n, 10))
    X = sp.csr_array((rng.random(10 * n), (np.repeat(np.arange(n), 10), columns.ravel())), shape=(n, d))
    f = X @ rng.standard_normal(d)
    f += 0.5 * f.std() * rng.standard_normal(n)
    return X.astype(np.float32), np.where(f > np.quantile(f, 1.0 - share), 1, -1)


@pytest.mark.parametrize(
    ("rows", "n_classes", "is_dual"),
    [
        (X, 2, True),
        (X.toarray(), 2, True),
        (X + 5000.0 * sp.csr_array(np.eye(1, 2000, dtype=np.float32).repeat(500, axis=0)), 2, False),  # far
        (hashed(4000, 1000, 0.5)[0], 2, True),
        (hashed(4000, 1000, 0.5)[0], 3, False),  # Crammer and Singer's
        (hashed(4000, 1000, 0.5)[0].toarray(), 2, False),
        (hashed(4001, 1000, 0.5)[0], 2, False),
        (sp.hstack([hashed(4000, 1000, 0.5)[0], np.full((4000, 1), 2.0)], format="csr"), 2, False),  # of one direction
    ],
)
def test_storage_and_shape_decide_for_the_dual_alone(rows: Any, n_classes: int, is_dual: bool) -> None:
    team, n = ThreadTeam(1), rows.shape[0]
    hinge = HingeLoss(np.ones(n), team)
    loss = hinge if n_classes == 2 else MulticlassHingeLoss(np.zeros(n, np.int64), np.ones(n), n_classes, team)
    assert choose_accelerations(make_design_matrix(rows, team), [loss]).dual_alone == is_dual


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_at_a_small_C_an_intercept_takes_few_rounds(share: float) -> None:
    rows, y = hashed(4000, 1000, share)
    model = OCASClassifier(C=0.01).fit(rows, y)
    assert model.converged_
    assert model.n_iter_ <= 4


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_objective_is_that_of_liblinear(C: float) -> None:
    model = OCASClassifier(C=C, fit_intercept=False, tol=1e-5).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rival = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-6, max_iter=3000, random_state=0)
        rival.fit(X.astype(np.float64), Y)
    assert model.converged_
    assert np.isclose(model.objective_, hinge_objective(model, X, Y, C), rtol=1e-9)
    assert model.objective_ - model.dual_gap_ <= hinge_objective(rival, X, Y, C) * (1 + 1e-9)
    assert model.objective_ <= hinge_objective(rival, X, Y, C) * (1 + 2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_squared_hinges_have_the_dual_too(C: float, fit_intercept: bool) -> None:
    s = np.random.default_rng(1).uniform(0.0, 2.0, len(Y)).round(1)
    model = OCASClassifier(C=C, loss="squared_hinge", fit_intercept=fit_intercept, tol=1e-5).fit(X, Y, s)
    plain = OCASClassifier(C=C, loss="squared_hinge", fit_intercept=fit_intercept, acceleration=None).fit(X, Y, s)
    assert model.history_["n_planes"].max() == 1  # the zero plane
    assert model.converged_
    assert model.objective_ - model.dual_gap_ <= plain.objective_
    assert plain.objective_ - plain.dual_gap_ <= model.objective_ <= plain.objective_ * (1 + 1e-5)
    (path,) = clone(model).fit_path(X, Y, [C], s)
    assert_array_equal(path.coef_, model.coef_)


@pytest.mark.parametrize(("n_classes", "form"), [(2, "csr"), (3, "csr"), (2, "float64"), (3, "dense")])
def test_the_machine_does_not_depend_on_threads(n_classes: int, form: str) -> None:
    samples, y = word_counts(n_classes)
    if form != "csr":
        samples = samples.astype(np.float64) if form == "float64" else samples.toarray()
    one, two = (OCASClassifier(C=1.0, n_jobs=n_jobs).fit(samples, y) for n_jobs in (1, 2))
    assert_array_equal(one.coef_, two.coef_)
    assert_array_equal(one.intercept_, two.intercept_)
    assert one.converged_
    assert len(one.coef_) == (1 if n_classes == 2 else 3)


@pytest.mark.parametrize(
    ("limit", "fit_intercept"),
    [
        ({"max_iter": 1}, True),
        ({"max_time": 0.0}, False),
        ({"max_time": 0.0}, True),
        ({"memory_budget": "100KB"}, True),
    ],
)
def test_a_limited_fit_has_a_certificate(limit: dict[str, Any], fit_intercept: bool) -> None:
    model = OCASClassifier(C=10.0, tol=1e-6, fit_intercept=fit_intercept, **({"max_time": 2.0} | limit))
    best = OCASClassifier(C=10.0, tol=1e-5, fit_intercept=fit_intercept).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y)
    assert np.isclose(model.objective_, hinge_objective(model, X, Y, 10.0), rtol=1e-9)
    assert model.objective_ - model.dual_gap_ <= best.objective_
    assert model.objective_ >= best.objective_ - best.dual_gap_


CLASSES = word_counts(5)


def multiclass_objective(model: Any, X: Any, y: np.ndarray, C: float) -> float:
    intercept = np.broadcast_to(model.intercept_, len(model.coef_))
    f = model.coef_ @ X.astype(np.float64).T + intercept[:, None]
    square = np.vdot(model.coef_, model.coef_) + intercept @ intercept
    return float(0.5 * square + C * multiclass_risk(f, y, np.ones(len(y))))


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_crammer_singers_objective_is_that_of_liblinear(C: float, fit_intercept: bool) -> None:
    X, y = CLASSES
    how: dict[str, Any] = {"C": C, "multi_class": "crammer_singer", "fit_intercept": fit_intercept}
    model = OCASClassifier(**how, tol=1e-5).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rival = LinearSVC(**how, tol=1e-6, max_iter=5000, random_state=0).fit(X.astype(np.float64), y)
    assert model.converged_
    assert np.isclose(model.objective_, multiclass_objective(model, X, y, C), rtol=1e-9)
    assert model.objective_ <= multiclass_objective(rival, X, y, C) * (1 + 2e-5)
    assert model.objective_ - model.dual_gap_ <= multiclass_objective(rival, X, y, C) * (1 + 1e-9)
    assert model.history_["n_planes"].max() == 1  # the zero plane


def test_crammer_singer_goes_on_from_a_machine_and_stops_in_time() -> None:
    X, y = CLASSES
    model = OCASClassifier(multi_class="crammer_singer", warm_start=True).fit(X, y)
    assert model.fit(X, y).converged_
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = OCASClassifier(multi_class="crammer_singer", max_time=0).fit(X, y)
    assert 0 < model.dual_gap_ <= model.objective_


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_hundreds_of_columns_of_very_different_scales_converge(loss: str) -> None:
    rng = np.random.default_rng(0)
    unit = rng.normal(size=(6000, 600))
    X = unit * 10.0 ** rng.uniform(0.0, 2.5, 600)
    y = (unit @ rng.normal(size=600) + 10.0 * rng.normal(size=6000) > 0.0).astype(int)
    model = OCASClassifier(loss=loss, max_iter=250).fit(X, y)  # rounds alone: a gap of 96 % after 1,000
    assert model.converged_
    assert model.relative_gap_ <= model.tol


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_samples_of_few_nonzeros_are_trained_as_sparse_ones(order: Any, dtype: Any) -> None:
    rows, y = hashed(4001, 300, 0.5)
    dense = np.asarray(rows.toarray(), dtype, order=order)
    model = OCASClassifier(loss="squared_hinge").fit(dense, y)
    assert_array_equal(model.coef_, clone(model).fit(rows.astype(dtype), y).coef_)
    assert_array_equal(model.decision_function(dense[:9]), model.decision_function(dense)[:9])


@pytest.mark.parametrize(("memory_budget", "is_sparse"), [("10MB", False), ("20MB", True)])
def test_they_stay_dense_where_a_quarter_of_the_budget_is_too_small(memory_budget: str, is_sparse: bool) -> None:
    """An eighth of 10,000 x 300 values and their columns, in float32, are 3 MB."""
    dense = hashed(10_000, 300, 0.5)[0].toarray()
    settings = OCASClassifier(memory_budget=memory_budget)._settings()
    held, left = _hold_nonzeros(dense, settings)
    assert sp.issparse(held) == is_sparse
    spent = settings.memory.budget - left.memory.budget
    assert spent == (held.data.nbytes + held.indices.nbytes + held.indptr.nbytes if is_sparse else 0)
