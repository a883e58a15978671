"""save and load: predictions survive to the last bit, foreign types are refused by name, files replaced as a whole."""

import multiprocessing
import os
import pickle
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import widemargin
from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCPredClassifier,
    DCPredRegressor,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    LandmarkNystroem,
    OCASClassifier,
    OCASRegressor,
    RelevanceScaler,
    compress,
    to_onnx,
)
from widemargin._model_files import TRUSTED_TYPES, load_any
from widemargin._output_files import replacing


def rows(n_classes: int = 3) -> tuple[Any, Any]:
    X, y = make_classification(150, 6, n_informative=4, n_classes=n_classes, random_state=0)
    return X, np.array(["ant", "bee", "cat"])[y]


def table() -> tuple[Any, Any]:
    X, y = rows()
    kind = np.where(X[:, 0] > 0, "long", "short").astype(object)
    return pd.DataFrame({"length": X[:, 1], "width": X[:, 2], "kind": kind}), y


MODELS: dict[str, Any] = {
    "exact": DCSVMClassifier(),
    "early": DCSVMClassifier(n_levels=1, stop_level=1),
    "tree": DCPredClassifier(random_state=0),
    "linear": OCASClassifier(),
    "logistic": OCASClassifier(loss="logistic"),
    "budgeted": BSGDClassifier(random_state=0),
    "novelty": DCOneClassSVM(),
    "exact regression": DCSVMRegressor(),
    "tree regression": DCPredRegressor(random_state=0),
    "linear regression": OCASRegressor(),
    "search": DCSVMClassifierCV(Cs=2, gammas=2, cv=2),
    "pipeline": make_pipeline(StandardScaler(), RelevanceScaler(), DCSVMClassifier()),
    "landmarks": make_pipeline(LandmarkNystroem(10), OCASClassifier()),
    "sigmoid": CalibratedClassifierCV(DCSVMClassifier(), cv=2),
    "isotonic": CalibratedClassifierCV(FrozenEstimator(DCSVMClassifier().fit(*rows())), method="isotonic"),
    "one against the rest": OneVsRestClassifier(DCSVMClassifier()),
}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_survive(name: str, tmp_path: Path) -> None:
    X, y = rows()
    model = MODELS[name].fit(X, X[:, 0] if "regression" in name else y)
    widemargin.save(model, tmp_path / "m.skops")
    again = widemargin.load(str(tmp_path / "m.skops"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for method in ("decision_function", "predict_proba"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))


@pytest.mark.slow
@pytest.mark.parametrize("remainder", ["drop", "passthrough"])
def test_a_table_with_columns_of_text_survives(remainder: str, tmp_path: Path) -> None:
    X, y = table()
    scaled = make_pipeline(SimpleImputer(), StandardScaler()), ["length"]
    encoded = OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector(dtype_exclude=float)
    columns = ColumnTransformer([("scaled", *scaled), ("encoded", *encoded)], remainder=remainder)
    model = make_pipeline(columns, DCSVMClassifier(n_levels=1, stop_level=1)).fit(X, y)
    widemargin.save(model, tmp_path / "m.skops")
    again = widemargin.load(tmp_path / "m.skops")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again[-1].early_level_ == 1


def test_what_is_not_a_predictor(tmp_path: Path) -> None:
    X, y = rows()
    landmarks = LandmarkNystroem(10, random_state=0).fit(X)
    widemargin.save(landmarks, tmp_path / "m")
    np.testing.assert_array_equal(widemargin.load(tmp_path / "m").transform(X), landmarks.transform(X))
    small = compress(DCSVMClassifier().fit(X, y), X, random_state=0)
    widemargin.save(small, tmp_path / "m")
    assert widemargin.load(tmp_path / "m").report_ == small.report_


TEXTS = ["a good film", "a bad film", "very good", "quite bad"] * 5
TEXT_STEPS = {
    "tfidf": TfidfVectorizer(),
    "count": CountVectorizer(ngram_range=(1, 2)),
    "hashing": HashingVectorizer(n_features=32),
    "union": make_union(TfidfVectorizer(), HashingVectorizer(n_features=16)),
}


TEXT_MACHINES = [OCASClassifier(), DCSVMClassifier(), BSGDClassifier(random_state=0), OCASClassifier()]


@pytest.mark.parametrize(("step", "machine"), [*zip(TEXT_STEPS, TEXT_MACHINES, strict=True)])
def test_a_pipeline_that_takes_text_survives(step: str, machine: Any, tmp_path: Path) -> None:
    model = make_pipeline(TEXT_STEPS[step], machine).fit(TEXTS, ["good", "bad"] * 10)
    widemargin.save(model, tmp_path / "m")
    loaded = widemargin.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.decision_function(TEXTS), model.decision_function(TEXTS))
    assert loaded.predict(["good", "bad"]).tolist() == ["good", "bad"]
    with pytest.raises(
        ValueError, match=r"model has the step \w+\(.*\), which is not written\. .* Export the last step, model"
    ):
        to_onnx(model)
    assert to_onnx(model[-1]).graph.input


def test_the_best_estimator_of_a_search_is_what_can_be_saved(tmp_path: Path) -> None:
    search = GridSearchCV(OCASClassifier(), {"C": [0.1, 1.0]}, cv=2).fit(*rows())
    with pytest.raises(ValueError, match="Save its best_estimator_ here, or all of it with joblib.dump"):
        widemargin.save(search, tmp_path / "m")
    widemargin.save(search.best_estimator_, tmp_path / "m")


def test_callbacks_are_left_out(tmp_path: Path) -> None:
    callback = pytest.importorskip("sklearn.callback")
    X, y = rows()
    for model in (DCSVMClassifier(), make_pipeline(StandardScaler(), OCASClassifier())):
        model = model.set_callbacks(callback.ProgressBar()).fit(X, y)
        widemargin.save(model, tmp_path / "m")
        loaded = widemargin.load(tmp_path / "m")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert model._skl_callbacks
        assert not getattr(loaded, "_skl_callbacks", None)


class Foreign(TransformerMixin, BaseEstimator):
    def fit(self, X: Any, y: Any = None) -> "Foreign":
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        return X


def own_kernel(A: Any, B: Any) -> Any:
    return A @ B.T


def test_foreign_types_are_refused_by_name_when_saved_and_when_loaded(tmp_path: Path) -> None:
    X, y = rows()
    model, path = make_pipeline(Foreign(), DCSVMClassifier()).fit(X, y), tmp_path / "m.skops"
    widemargin.save(model[-1], path)
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"model holds types that load does not trust: .*Foreign\. Save it with joblib"
    ):
        widemargin.save(model, path)
    with pytest.raises(ValueError, match="own_kernel"):
        widemargin.save(DCSVMClassifier(kernel=own_kernel).fit(X, y), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    skops.io.dump(model, path)
    with pytest.raises(ValueError, match=r"m\.skops: refused: it holds types that are not trusted: .*Foreign"):
        widemargin.load(path)


@pytest.mark.parametrize(
    "model",
    [
        DCSVMClassifier(),
        DCSVMClassifier,
        {"a": 1},
        make_pipeline(StandardScaler(), DCSVMClassifier()),
        make_pipeline(HashingVectorizer(), OCASClassifier()),
        TfidfVectorizer(),
    ],
)
def test_what_is_not_fitted_is_refused(model: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="model must be a fitted estimator, got "):
        widemargin.save(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    model = OCASClassifier().fit(*rows())
    with pytest.raises(FileNotFoundError, match="its folder does not exist"):
        widemargin.save(model, tmp_path / "none" / "m")
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        widemargin.save(model, tmp_path)


def test_without_skops_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = OCASClassifier().fit(*rows())
    widemargin.save(model, tmp_path / "m")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.delattr("skops.io")
    for call in (lambda: widemargin.save(model, tmp_path / "m"), lambda: widemargin.load(tmp_path / "m")):
        with pytest.raises(ImportError, match="model files need the package skops: pip install skops"):
            call()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (pickle.dumps(OCASClassifier()), "is a pickle, which joblib.load reads and which may run code"),
        (b"svm_type c_svc\nkernel_type rbf\n", "is a model of another program, which widemargin.read_machine reads"),
        (b"solver_type L2R_L2LOSS_SVC_DUAL\n", "is a model of another program, which widemargin.read_machine reads"),
    ],
    ids=["pickle", "LIBSVM", "LIBLINEAR"],
)
def test_other_files_are_called_what_they_are(content: bytes, kind: str, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ValueError, match=f"m: {kind}.*load reads files of widemargin.save"):
        widemargin.load(tmp_path / "m")


@pytest.mark.parametrize("suffix", [".zip", ".gz"])
def test_a_name_with_the_suffix_of_a_compression(suffix: str, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    widemargin.save(OCASClassifier().fit(X, X[:, 0] > 0), tmp_path / f"m{suffix}")
    assert isinstance(load_any(tmp_path / f"m{suffix}"), OCASClassifier)


@pytest.mark.parametrize("name", ["m" * 249 + ".skops", "ä" * 124 + ".skops", "[a]*?.skops"])
def test_names_of_any_length_that_the_system_takes(name: str, tmp_path: Path) -> None:
    with replacing(tmp_path / name) as file:
        file.write(b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: b"new"}


def _write_forever(path: str) -> None:
    with replacing(path) as file:
        file.write(b"half")
        file.flush()
        time.sleep(60)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal, and locks of files")
def test_what_killed_processes_leave_is_removed_and_what_others_write_is_not(tmp_path: Path) -> None:
    path = tmp_path / "m.skops"
    writers = [multiprocessing.get_context("spawn").Process(target=_write_forever, args=(str(path),)) for _ in range(2)]
    for writer in writers:
        writer.start()
    while len(list(tmp_path.iterdir())) < 2:
        time.sleep(0.02)
    os.kill(writers[0].pid or 0, signal.SIGKILL)
    writers[0].join()
    (tmp_path / ".other.skops.01234567.part").write_bytes(b"")
    assert len(list(tmp_path.glob(".m.skops.*.part"))) == 2
    with replacing(path) as file:
        file.write(b"new")
    try:
        assert path.read_bytes() == b"new"
        assert len(list(tmp_path.glob(".m.skops.*.part"))) == 1  # of the process that writes
        assert (tmp_path / ".other.skops.01234567.part").exists()
    finally:
        writers[1].kill()
        writers[1].join()


def test_trusted_types_are_ours_and_needed_and_exist(tmp_path: Path) -> None:
    skops.io.dump(DCSVMClassifier().fit(*rows()), tmp_path / "model")
    known = ("widemargin.", "scipy.sparse._csr.", "sklearn.calibration.", "sklearn.compose.", "numpy.dtype")
    assert all(name.startswith(known) for name in TRUSTED_TYPES)
    assert set(skops.io.get_untrusted_types(file=tmp_path / "model")) <= set(TRUSTED_TYPES)
    for name in TRUSTED_TYPES:
        module, _, kind = name.rpartition(".")
        assert hasattr(__import__(module, fromlist=[kind]), kind), name
    public = [getattr(widemargin, name) for name in widemargin.__all__]
    predictors = {f"{kind.__module__}.{kind.__qualname__}" for kind in public if hasattr(kind, "predict")}
    assert len(predictors) >= 8
    assert predictors <= set(TRUSTED_TYPES)


def test_replacing_keeps_mode_and_link_and_writes_devices_directly(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    with replacing(link) as file:
        file.write(b"new")
        assert real.read_text() == "old"
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    with replacing(os.devnull) as file:
        file.write(b"gone")
    assert not Path(os.devnull).is_file()
