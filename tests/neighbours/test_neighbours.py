"""Other libraries with our estimators, one smoke test each: `nox -s neighbours`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from widemargin import BSGDClassifier, DCOneClassSVM, DCSVMClassifier, DCSVMRegressor, OCASClassifier

pytestmark = pytest.mark.neighbours

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
NAMES = ["a", "b", "c", "d"]


def load(name: str) -> Any:
    return pytest.importorskip(name)


def calibrated() -> Any:
    from sklearn.calibration import CalibratedClassifierCV

    return CalibratedClassifierCV(DCSVMClassifier(random_state=0), cv=3)


def test_imbalanced_learn() -> None:
    load("imblearn")
    from imblearn.over_sampling import SMOTE
    from imblearn.pipeline import make_pipeline as make_sampling_pipeline

    rare = np.r_[np.flatnonzero(Y)[:20], np.flatnonzero(Y == 0)]
    model = make_sampling_pipeline(SMOTE(random_state=0), DCSVMClassifier()).fit(X[rare], Y[rare])
    assert model.score(X, Y) > 0.8


def test_mapie() -> None:
    load("mapie")
    from mapie.regression import ConformalizedQuantileRegressor, SplitConformalRegressor

    model = SplitConformalRegressor(DCSVMRegressor(), confidence_level=0.9, prefit=False)
    model.fit(X[:100], X[:100, 0]).conformalize(X[100:], X[100:, 0])
    assert model.predict_interval(X)[1].shape[:2] == (200, 2)
    quantiles = [DCSVMRegressor(loss="quantile", quantile=q).fit(X[:100], X[:100, 0]) for q in (0.1, 0.9, 0.5)]
    low_high = ConformalizedQuantileRegressor(quantiles, confidence_level=0.8, prefit=True)
    assert low_high.conformalize(X[100:], X[100:, 0]).predict_interval(X)[1].shape == (200, 2, 1)


def test_crepes() -> None:
    grouped = load("crepes").WrapRegressor(DCSVMRegressor().fit(X[:100], X[:100, 0]))
    grouped.calibrate(X[100:], X[100:, 0], mc=lambda rows: rows[:, 1] > 0)
    assert (np.diff(grouped.predict_int(X, confidence=0.8), axis=1) > 0).all()


def test_shap() -> None:
    shap = load("shap")
    model = DCSVMClassifier().fit(X, Y)
    values = shap.Explainer(model.decision_function, X[:20])(X[:2]).values
    assert np.abs(values[:, :2]).sum() > np.abs(values[:, 2:]).sum()


def test_lime() -> None:
    load("lime")
    from lime.lime_tabular import LimeTabularExplainer

    model = calibrated().fit(X, Y)
    explained = LimeTabularExplainer(X, random_state=0).explain_instance(X[0], model.predict_proba, num_features=2)
    assert {column for column, _ in explained.as_map()[1]} == {0, 1}


def test_mlxtend() -> None:
    load("mlxtend")
    from mlxtend.feature_selection import SequentialFeatureSelector

    assert set(SequentialFeatureSelector(OCASClassifier(), k_features=2, cv=2).fit(X, Y).k_feature_idx_) == {0, 1}


def test_fairlearn() -> None:
    load("fairlearn")
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    model = ExponentiatedGradient(OCASClassifier(), DemographicParity(), max_iter=5)
    model.fit(X, Y, sensitive_features=X[:, 2] > 0)
    assert set(model.predict(X, random_state=0)) == {0, 1}


def test_cleanlab() -> None:
    load("cleanlab")
    from cleanlab.classification import CleanLearning

    noisy = np.where(np.arange(200) < 10, 1 - Y, Y)
    assert CleanLearning(calibrated(), seed=0).fit(X, noisy).get_label_issues()["is_label_issue"][:10].sum() > 3


def test_feature_engine() -> None:
    load("feature_engine")
    pd = load("pandas")
    from feature_engine.selection import SelectByShuffling

    frame = pd.DataFrame(X, columns=NAMES)
    selector = SelectByShuffling(DCSVMClassifier(), scoring="accuracy", random_state=0)
    assert {"a", "b"} <= set(selector.fit_transform(frame, pd.Series(Y)).columns)


def test_skrub() -> None:
    skrub, pd = load("skrub"), load("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "city": np.where(Y, "Rome", "Oslo")})
    assert make_pipeline(skrub.TableVectorizer(), OCASClassifier()).fit(frame, Y).score(frame, Y) > 0.9


def test_optuna() -> None:
    optuna = load("optuna")

    def error(trial: Any) -> float:
        model = DCSVMClassifier(C=trial.suggest_float("C", 0.1, 10, log=True)).fit(X[:100], Y[:100])
        return float(1 - model.score(X[100:], Y[100:]))

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(error, n_trials=3, n_jobs=2)
    assert study.best_value < 0.2


def test_mlflow(tmp_path: Path) -> None:
    load("mlflow")
    import mlflow.sklearn

    model = DCSVMClassifier().fit(X, Y)
    mlflow.sklearn.save_model(model, str(tmp_path / "model"), serialization_format="cloudpickle")
    loaded = mlflow.sklearn.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("library", ["sktime", "aeon"])
def test_time_series(library: str) -> None:
    load(library)
    if library == "sktime":
        from sktime.classification.compose import SklearnClassifierPipeline
        from sktime.transformations.panel.reduce import Tabularizer

        model = SklearnClassifierPipeline(DCSVMClassifier(), [Tabularizer()])
    else:
        from aeon.classification.feature_based import SummaryClassifier

        model = SummaryClassifier(estimator=DCSVMClassifier())
    series = np.repeat(X[:, None, :1], 8, axis=2) + 0.1 * RNG.normal(size=(200, 1, 8))
    labels = (X[:, 0] > 0).astype(int)
    assert (model.fit(series, labels).predict(series) == labels).mean() > 0.9


def test_pyod() -> None:
    load("pyod")
    from pyod.models.ecod import ECOD
    from pyod.utils.utility import standardizer

    rows = np.r_[X, [[9.0, 9.0, 9.0, 9.0]]]
    scores = [-DCOneClassSVM().fit(rows).score_samples(rows), ECOD().fit(rows).decision_scores_]
    assert standardizer(np.column_stack(scores)).mean(axis=1).argmax() == 200


def test_river() -> None:
    load("river")
    from river.compat import convert_sklearn_to_river

    model = convert_sklearn_to_river(BSGDClassifier(lam=1e-2, random_state=0), classes=[0, 1])
    for row, label in zip(X, Y, strict=True):
        model.learn_one(dict(zip(NAMES, row, strict=True)), label)
    right = [model.predict_one(dict(zip(NAMES, row, strict=True))) == y for row, y in zip(X, Y, strict=True)]
    assert np.mean(right) > 0.8


def test_polars() -> None:
    pl = load("polars")
    frame = pl.DataFrame(X, schema=NAMES)
    model = DCSVMClassifier().fit(frame, pl.Series(Y))
    assert list(model.feature_names_in_) == NAMES
    np.testing.assert_array_equal(model.predict(frame), DCSVMClassifier().fit(X, Y).predict(X))


def test_pyarrow() -> None:
    pa, pd = load("pyarrow"), load("pandas")
    frame = pd.DataFrame(X, columns=NAMES).astype(pd.ArrowDtype(pa.float64()))
    np.testing.assert_array_equal(
        DCSVMClassifier().fit(frame, Y).predict(frame), DCSVMClassifier().fit(X, Y).predict(X)
    )
