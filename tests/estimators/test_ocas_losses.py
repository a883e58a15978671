"""Linear machines of other losses than the hinge: the optima of LIBLINEAR and scikit-learn, forms of input, errors."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from naive.losses import objective
from widemargin import OCASClassifier

Data = tuple[NDArray[np.float64], NDArray[np.int64]]
SMOOTH = ["squared_hinge", "logistic"]


@pytest.mark.parametrize(
    ("C", "fit_intercept", "acceleration"),
    [(1e-2, False, "auto"), (1e-2, True, "auto"), (100.0, True, "auto"), (100.0, True, None)],
)
@pytest.mark.parametrize("loss", SMOOTH)
def test_as_liblinear(binary: Data, loss: str, C: float, fit_intercept: bool, acceleration: str | None) -> None:
    X, y = binary
    s, signs = np.random.default_rng(0).uniform(0.2, 3, len(y)), np.where(y == 1, 1.0, -1.0)
    # LIBLINEAR regularises the intercept: by next to nothing where the constant is large
    rival = LinearSVC(C=C, fit_intercept=fit_intercept, intercept_scaling=1e3, tol=1e-9, max_iter=100_000)
    if loss == "logistic":
        rival = LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-8, max_iter=1000)
    rival.fit(X, y, s)
    model = OCASClassifier(C, loss=loss, tol=1e-6, fit_intercept=fit_intercept, acceleration=acceleration).fit(X, y, s)
    assert model.converged_
    assert model.objective_ == pytest.approx(objective(model, X, signs, s, C, loss), rel=1e-9)
    assert model.objective_ == pytest.approx(objective(rival, X, signs, s, C, loss), rel=1e-5)
    assert model.objective_ - model.dual_gap_ <= objective(rival, X, signs, s, C, loss) * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("loss", SMOOTH)
def test_newton_steps_take_a_few_rounds(loss: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 40)) * np.logspace(0, 2, 40)
    y = X @ rng.normal(size=40) + 30.0 * rng.normal(size=2000) > 0
    assert OCASClassifier(10.0, loss=loss, acceleration=None, max_iter=1000).fit(X, y).n_iter_ > 40
    assert OCASClassifier(10.0, loss=loss).fit(X, y).n_iter_ < 15


@pytest.mark.slow
def test_a_start_from_a_sample() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40_000, 4)).astype(np.float32)
    y = X[:, 0] + rng.normal(size=len(X)) > 1.0
    for loss in SMOOTH:
        models = [OCASClassifier(loss=loss, tol=1e-7, acceleration=how).fit(X, y) for how in ("auto", None)]
        assert models[0].converged_
        assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-6)
        assert models[0].n_iter_ < models[1].n_iter_


def test_probabilities(binary: Data, four: Data) -> None:
    X, y = binary
    model = OCASClassifier(loss="logistic", tol=1e-8).fit(X, y)
    rival = LogisticRegression(tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), rival.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    several = OCASClassifier(loss="logistic").fit(*four)
    probabilities = several.predict_proba(four[0])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(several.classes_[probabilities.argmax(axis=1)], several.predict(four[0]))
    assert np.isfinite(several.predict_log_proba(1e6 * four[0])).all()
    for loss in ("hinge", "squared_hinge"):
        assert not hasattr(OCASClassifier(loss=loss), "predict_proba")


def test_far_from_the_origin_and_separable() -> None:
    X, y = np.arange(20.0)[:, None], np.arange(20) >= 10
    for loss in SMOOTH:
        near, far = (OCASClassifier(100.0, loss=loss, tol=1e-9).fit(rows, y) for rows in (X, X + 1e4))
        assert near.score(X, y) == 1.0
        np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-4)


def test_crammer_and_singers_loss_is_the_hinge(binary: Data) -> None:
    with pytest.raises(ValueError, match="multi_class='crammer_singer' needs loss='hinge', got loss='logistic'"):
        OCASClassifier(loss="logistic", multi_class="crammer_singer").fit(*binary)
