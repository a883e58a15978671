"""compress: fitted kernel machines, ours and scikit-learn's, predicted at a fraction of the cost."""

import pickle
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM
from threadpoolctl import threadpool_limits

from naive.sparse import in_halves
from widemargin import BSGDClassifier, DCSVMClassifier, DCSVMClassifierCV, compress
from widemargin._progress import Progress
from widemargin.compression import search
from widemargin.compression.compressed import CompressedClassifier
from widemargin.compression.rows import as_float32
from widemargin.compression.sources import read_model

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(1200, 3))
WAVE = np.sin(2 * X[:, 0]) * X[:, 1]
BINARY = np.where(WAVE > 0.1, "up", "down")
FOUR = np.digitize(WAVE, [-0.8, 0, 0.8])
NOISY = np.where(np.random.default_rng(1).random(len(X)) < 0.3, "up", BINARY)
TRAIN, TEST = slice(0, 800), slice(800, 1200)


@pytest.mark.slow
def test_machines_of_other_libraries_have_other_integers() -> None:
    model = SVC().fit(X[TRAIN], FOUR[TRAIN])
    wanted = compress(model, X[TRAIN], n_landmarks=4, random_state=0).decision_function(X[TEST])
    for name in ("_n_support", "support_"):
        setattr(model, name, getattr(model, name).astype(np.int64))
    fast = compress(model, X[TRAIN], n_landmarks=4, random_state=0)
    np.testing.assert_array_equal(fast.decision_function(X[TEST]), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("has_rows", [True, False])
def test_of_many_support_vectors_some_are_evaluated(has_rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """And of many rows: with a progress that counts them, and then the candidates."""
    monkeypatch.setattr(search, "_MAX_ROWS", 100)
    stages: list[list[Any]] = []
    stage, advance = Progress.stage, Progress.advance

    def begin(progress: Progress, title: str, total: float | None = None) -> None:
        stages.append([title, total, 0])
        stage(progress, title, total)

    def count(progress: Progress, work: float = 1) -> None:
        stages[-1][2] += work
        advance(progress, work)

    monkeypatch.setattr(Progress, "stage", begin)
    monkeypatch.setattr(Progress, "advance", count)
    model = DCSVMClassifier(C=100, gamma=0.5, stop_level=2).fit(X[TRAIN], NOISY[TRAIN])
    assert len(model.support_) > 300
    stages.clear()
    fast = compress(model, X[TRAIN] if has_rows else None, n_landmarks=4, random_state=0)
    n = 200 if has_rows else 100
    assert stages[0] == ["the model's own predictions", n, n]
    title, most, done = stages[1]
    assert title.startswith("candidates")
    assert 0 < done <= most
    assert len(stages) < 4  # the stages of a candidate's training are not those of compress
    assert fast.report_.n_rows < n


def test_the_cost_of_an_early_machine_is_its_routing_and_a_cluster() -> None:
    model = DCSVMClassifier(C=100, gamma=0.5, stop_level=1).fit(X[TRAIN], NOISY[TRAIN])
    sizes = np.diff(model._model.starts)
    n_used = model._model.router.n_clusters + np.square(sizes).sum() / sizes.sum()
    report = compress(model, X[TRAIN], n_landmarks=4, n_clusters=1, random_state=0).report_
    assert report.cost_before == pytest.approx(n_used * (1 + 1 / X.shape[1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (SVC(C=100, gamma=0.5), FOUR),
        (SVC(C=10, kernel="poly", gamma=0.5, coef0=1.0), BINARY),
        (SVC(C=1, kernel="sigmoid", gamma=0.05), FOUR),
        (SVC(C=1, kernel="linear"), BINARY),
        (NuSVC(nu=0.2, gamma=0.5), BINARY),
        (DCSVMClassifier(C=100, gamma=0.5), BINARY),
        (DCSVMClassifier(C=100, gamma=0.5, n_levels=1, stop_level=1, random_state=0), BINARY),
        (DCSVMClassifier(C=100, gamma=0.5, n_levels=1, stop_level=1, random_state=0), FOUR),
        (DCSVMClassifier(C=10, kernel="laplacian", gamma=0.3), FOUR),
        (BSGDClassifier(C=100, gamma=0.5, budget=150, random_state=0), FOUR),
        (make_pipeline(StandardScaler(), SVC(C=100, gamma=0.5)), BINARY),
    ],
)
def test_classifiers(model: Any, labels: np.ndarray) -> None:
    model.fit(X[TRAIN], labels[TRAIN])
    fast = compress(model, X[TRAIN], prediction_cost=120, random_state=0)
    agreement = np.mean(fast.predict(X[TEST]) == model.predict(X[TEST]))
    assert agreement > (0.92 if labels is BINARY else 0.8)
    np.testing.assert_array_equal(fast.classes_, model.classes_)
    assert fast.decision_function(X[TEST]).shape == model.decision_function(X[TEST]).shape
    report = (fast[-1] if hasattr(fast, "steps") else fast).report_
    assert report.agreement == pytest.approx(agreement, abs=0.08)
    assert report.n_held == 160 // 2
    again = pickle.loads(pickle.dumps(fast))
    np.testing.assert_array_equal(again.decision_function(X), fast.decision_function(X))


@pytest.mark.slow
@pytest.mark.parametrize("model", [SVR(C=10, gamma=0.5), KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5)], ids=str)
def test_regressors(model: Any) -> None:
    model.fit(X[TRAIN], WAVE[TRAIN])
    fast = compress(model, X[TRAIN], prediction_cost=80, random_state=0)
    assert fast.score(X[TEST], model.predict(X[TEST])) > 0.97
    assert fast.report_.agreement is None
    assert fast.report_.error < 0.2 * fast.report_.spread
    both = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5).fit(X[TRAIN], np.c_[WAVE, X[:, 0]][TRAIN])
    assert compress(both, X[TRAIN], random_state=0).predict(X[TEST]).shape == (400, 2)


@pytest.mark.slow
def test_a_regressor_that_loses_much_says_so() -> None:
    model = SVR(C=10, gamma=0.5).fit(X[TRAIN], WAVE[TRAIN])
    with pytest.warns(UserWarning, match=r"only [0-9.]+% of the variance of the model's predictions is kept"):
        fast = compress(model, X[TRAIN], prediction_cost=12, random_state=0)
    assert fast.report_.determination == pytest.approx(fast.score(X[TEST], model.predict(X[TEST])), abs=0.15)
    assert fast.report_.determination < 0.97
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert compress(model, X[TRAIN], prediction_cost=80, random_state=0).report_.determination > 0.97


@pytest.mark.slow
def test_outlier_detectors() -> None:
    model = OneClassSVM(nu=0.1, gamma=0.5).fit(X[TRAIN])
    fast = compress(model, X[TRAIN], random_state=0)
    assert np.mean(fast.predict(X[TEST]) == model.predict(X[TEST])) > 0.9
    assert set(fast.predict(X)) == {-1, 1}
    assert fast.report_.agreement > 0.9
    with pytest.warns(UserWarning, match="labels were not compared with the model's: give X"):
        assert compress(model, random_state=0).report_.agreement is None


@pytest.mark.slow
def test_an_outlier_detector_that_loses_its_outliers_says_so() -> None:
    rows = np.random.default_rng(0).normal(size=(2000, 8))
    model = OneClassSVM(nu=0.05, gamma=0.2).fit(rows)
    with pytest.warns(UserWarning, match="only .* of the labels agree with the model's: raise prediction_cost"):
        fast = compress(model, rows, prediction_cost=4, random_state=0)
    outliers = model.predict(rows) < 0
    kept = [np.mean(fast.predict(rows[side]) == model.predict(rows[side])) for side in (outliers, ~outliers)]
    assert fast.report_.agreement == pytest.approx(np.mean(kept), abs=0.2)
    assert np.mean(fast.predict(rows) == model.predict(rows)) > 0.9 > fast.report_.agreement
    better = compress(model, rows, random_state=0)
    assert better.report_.agreement > fast.report_.agreement


def test_decision_values_are_close_to_the_models() -> None:
    model = SVC(C=10, gamma=0.5).fit(X[TRAIN], BINARY[TRAIN])
    fast = compress(model, X[TRAIN], random_state=0)
    own, its = model.decision_function(X[TEST]), fast.decision_function(X[TEST])
    assert np.corrcoef(own, its)[0, 1] > 0.98
    assert 1 / 3 < np.sqrt(np.mean((own - its) ** 2)) / fast.report_.error < 3


def test_a_linear_machine_stays_what_it_is() -> None:
    model = SVC(C=1, kernel="linear", gamma=0.0).fit(X[TRAIN], BINARY[TRAIN])  # which has no gamma
    fast = pickle.loads(pickle.dumps(compress(model, X[TRAIN], n_clusters=1, random_state=0)))
    np.testing.assert_allclose(fast.decision_function(X), model.decision_function(X), atol=1e-3)


@pytest.mark.slow
def test_the_model_and_its_values_depend_on_no_thread_and_no_other_row() -> None:
    digits, labels = load_digits(return_X_y=True)
    rows = np.concatenate([digits, digits[::-1] + 0.5]) / 16
    for target, options in ((labels, {}), (labels > 4, {}), (labels > 4, {"prediction_cost": 10})):
        model = SVC(C=5).fit(digits[:600] / 16, target[:600])
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            alone = compress(model, digits[:600] / 16, **options, n_jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fast = compress(model, digits[:600] / 16, **options, n_jobs=2)
        values = fast.decision_function(rows)
        np.testing.assert_array_equal(alone.decision_function(rows), values)
        single = [fast.decision_function(rows[i : i + 1])[0] for i in range(0, len(rows), 50)]
        np.testing.assert_array_equal(single, values[::50])
        np.testing.assert_array_equal(fast.decision_function(rows[3:333]), values[3:333])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fast)).decision_function(rows), values)


def test_few_rows_and_none() -> None:
    model = SVC(gamma=0.5).fit(X[:20], BINARY[:20])
    fast = compress(model, X[:20], random_state=0)
    assert fast.report_.n_held == 0
    assert "too few" in str(fast.report_)
    assert "no X was given" in str(compress(model, random_state=0).report_)


def test_sparse_rows() -> None:
    digits, y = load_digits(n_class=4, return_X_y=True)
    model = SVC(C=10).fit(sp.csr_matrix(digits[:500]), y[:500])
    fast = compress(model, sp.csr_matrix(digits[:500]), random_state=0)
    same = fast.predict(sp.csr_matrix(digits[500:])) == model.predict(sp.csr_matrix(digits[500:]))
    assert np.mean(same) > 0.95
    np.testing.assert_array_equal(fast.predict(digits[500:]), fast.predict(sp.csr_matrix(digits[500:])))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_machine_that_is_nearly_quadratic_becomes_squares(form: Any) -> None:
    rng = np.random.default_rng(0)
    levels = np.eye(3, dtype=np.float32)[rng.integers(3, size=(1500, 8))].reshape(1500, 24)
    a, b, c = (levels @ rng.normal(size=(24, 3))).T
    rows, y = form(levels), (a + 0.5 * b * c > 0).astype(int)
    model = SVC(gamma=0.05).fit(rows[:1000], y[:1000])
    fast = compress(model, rows[:1000], random_state=0)
    assert fast.kernel == "linear"
    assert "squares along the model's principal curvatures" in str(fast.report_)
    assert fast.report_.n_leaves == 1
    assert fast.report_.n_landmarks <= 24
    assert np.mean(fast.predict(rows[1000:]) == model.predict(rows[1000:])) > 0.97
    values = pickle.loads(pickle.dumps(fast)).decision_function(rows)
    np.testing.assert_array_equal(values, fast.decision_function(rows))
    np.testing.assert_allclose(values, model.decision_function(rows), atol=0.5)


@pytest.mark.slow
def test_many_features_are_projected() -> None:
    digits, y = load_digits(return_X_y=True)
    wide = np.hstack([digits, np.zeros((len(y), 30))]).astype(np.float32)
    model = SVC(C=10, gamma=1e-3).fit(wide[:1200], y[:1200])
    fast = compress(model, wide[:1200], prediction_cost=300, n_clusters=1, pseudo=None, random_state=0)
    assert np.mean(fast.predict(wide[1200:]) == model.predict(wide[1200:])) > 0.95
    again = pickle.loads(pickle.dumps(fast))
    np.testing.assert_array_equal(again.predict(wide), fast.predict(wide))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [slice(0, 1300), None], ids=["rows", "support vectors"])
def test_an_automatic_cost_grows_while_labels_differ(rows: Any) -> None:
    digits, y = load_digits(return_X_y=True)
    digits = StandardScaler().fit(digits[:1300]).transform(digits)
    model = DCSVMClassifier(C=10, gamma=0.01).fit(digits[:1300], y[:1300])
    fast = compress(model, None if rows is None else digits[rows], random_state=0)
    assert np.mean(fast.predict(digits[1300:]) == model.predict(digits[1300:])) > 0.94
    assert fast.report_.cost_after < fast.report_.cost_before / 4


@pytest.mark.slow
def test_too_few_labels_that_agree_are_warned_of() -> None:
    model = SVC(C=1000, gamma=2.0).fit(X[TRAIN], BINARY[TRAIN])
    start = "only [0-9.]+% of the labels agree with .*: raise prediction_cost"
    with pytest.warns(UserWarning, match=start + r" \(now 6; this machine costs 1?\d\) or give more rows"):
        compress(model, X[TRAIN], prediction_cost=6, n_clusters=1, random_state=0)
    with pytest.warns(UserWarning, match=start + r" \(now 3,000; this machine costs \d+\) or give more rows"):
        compress(model, X[TRAIN][:100], prediction_cost=3000, n_clusters=1, random_state=0)


@pytest.mark.parametrize("cost", [4, 10])
def test_a_small_cost_has_no_room_for_many_leaves(cost: int) -> None:
    rows, blob = make_blobs(1000, n_features=40, centers=40, random_state=0)[:2]
    model = SVC(C=10, gamma=0.01).fit(rows, np.random.default_rng(1).integers(2, size=40)[blob])
    assert compress(model, rows, prediction_cost=cost, random_state=0).report_.cost_after <= 1.2 * cost


def test_same_seed_same_model() -> None:
    model = SVC(C=10, gamma=0.5).fit(X[TRAIN], BINARY[TRAIN])
    one, two = (compress(model, X[TRAIN], n_jobs=n, random_state=5).decision_function(X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_the_report_is_readable() -> None:
    model = SVC(C=10, gamma=0.5).fit(X[TRAIN], BINARY[TRAIN])
    fast = compress(model, X[TRAIN], random_state=0)
    text = str(fast.report_)
    for words in ("same label", "cost of a prediction", "size", "decision values", "held back"):
        assert words in text
    html = replace(fast.report_, notes=("a < b",))._repr_html_()
    assert html.startswith("<table><tr><th>same label</th><td>")
    assert html.endswith("<tr><th>note</th><td>a &lt; b</td></tr></table>")
    report = replace(fast.report_, bytes_before=2_306_037, bytes_after=3_149_772, error=np.nan)
    assert "2,306,037 -> 3,149,772 bytes (1.4 times more)" in str(report)
    assert "decision values" not in str(report)


@pytest.mark.slow
def test_what_is_returned_is_an_estimator() -> None:
    frame = __import__("pandas").DataFrame(X[TRAIN], columns=["a", "b", "c"])
    model = SVC(C=10, gamma=0.5).fit(frame, BINARY[TRAIN])
    fast = compress(model, frame, random_state=0)
    assert fast.fit(X, BINARY) is fast
    assert fast.score(frame, BINARY[TRAIN]) > 0.9
    assert fast.get_params()["gamma"] > 0
    with pytest.raises(ValueError, match="features"):
        fast.predict(X[:, :2])
    with pytest.raises(ValueError, match="feature names should match"):
        fast.predict(frame[["b", "a", "c"]])


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (SVC(), NotFittedError, "not fitted"),
        (LogisticRegression().fit(X, BINARY), ValueError, "must be a fitted kernel machine.*got LogisticRegression"),
        (SVC(kernel=lambda A, B: A @ B.T).fit(X[:50], BINARY[:50]), ValueError, "kernel=.*compress takes the kernels"),
        (SVC(kernel="precomputed").fit(X[:50] @ X[:50].T, BINARY[:50]), ValueError, "kernel='precomputed'"),
    ],
)
def test_bad_models(model: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compress(model, X)


def test_bad_arguments() -> None:
    model = SVC(kernel="poly").fit(X[:100], BINARY[:100])
    with pytest.raises(ValueError, match="pseudo='triangle' needs a kernel of distances.*kernel='poly'"):
        compress(model, X, pseudo="triangle")
    with pytest.raises(ValueError, match="2 features, but SVC is expecting 3"):
        compress(model, X[:, :2])
    with pytest.raises(ValueError, match="prediction_cost must be at least 4, got 2"):
        compress(model, X, prediction_cost=2)
    with pytest.raises(ValueError, match="NaN"):
        compress(model, np.full((5, 3), np.nan))


def test_a_memory_budget_that_cannot_be_kept_is_refused_with_the_least_that_can() -> None:
    model = SVC(C=10, gamma=0.5).fit(X[TRAIN], BINARY[TRAIN])
    with pytest.raises(ValueError, match="memory_budget must be at least [0-9]+ bytes.*got 1000") as refusal:
        compress(model, X[TRAIN], memory_budget=1000)
    least = int(str(refusal.value).split("at least ")[1].split()[0])
    fast = compress(model, X[TRAIN], memory_budget=least, random_state=0)
    assert np.mean(fast.predict(X[TEST]) == model.predict(X[TEST])) > 0.8


@pytest.mark.slow
def test_few_rows_are_learnt_from_with_little_memory() -> None:
    model = SVC(C=1, gamma=0.5).fit(X[:100], BINARY[:100])
    many = np.tile(X, (40, 1)) + RNG.normal(scale=0.01, size=(48_000, 3))
    fast = compress(model, many, n_clusters=1, n_landmarks=10, memory_budget=2_000_000, random_state=0)
    assert "of 48,000 rows" in str(fast.report_)


@pytest.mark.parametrize(("make", "n_classes"), [(SVC, 2), (NuSVC, 4), (DCSVMClassifier, 2), (DCSVMClassifier, 4)])
def test_support_vectors_tell_which_class_they_had(make: Any, n_classes: int) -> None:
    X, y = load_digits(n_class=n_classes, return_X_y=True)
    y[::17] = (y[::17] + 1) % n_classes  # some that no machine gets right
    model = make(gamma=1e-3).fit(X, y)
    np.testing.assert_array_equal(read_model(model).classes, y[model.support_])


def test_support_vectors_of_two_classes_in_any_order() -> None:
    model = SVC().fit(X[:200], BINARY[:200])
    order = np.random.default_rng(0).permutation(len(model.support_))
    for name in ("support_", "support_vectors_"):
        setattr(model, name, getattr(model, name)[order])
    model._dual_coef_ = model._dual_coef_[:, order]
    model.dual_coef_ = model.dual_coef_[:, order]
    np.testing.assert_array_equal(model.classes_[read_model(model).classes], BINARY[:200][model.support_])


def test_support_vectors_of_a_stream_have_no_known_class() -> None:
    model = BSGDClassifier(budget=20, n_epochs=1, random_state=0).fit(X, FOUR)
    assert read_model(model).classes is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_features", [1, 4, 60])
def test_rows_that_are_all_equal(n_features: int) -> None:
    rows = np.ones((300, n_features))
    with pytest.warns(UserWarning, match="predicts the class True for all training rows"):
        model = DCSVMClassifier(kernel="polynomial").fit(rows, np.arange(300) % 3 > 0)
    np.testing.assert_array_equal(compress(model, rows, random_state=0).predict(rows), model.predict(rows))


def test_a_model_without_support_vectors_is_its_constant() -> None:
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = SVR().fit(X, np.ones(100))
    assert not len(model.support_)
    np.testing.assert_array_equal(compress(model, X).predict(X), model.predict(X))


@pytest.mark.slow
def test_repeated_entries_of_a_sparse_row_are_summed() -> None:
    model = SVC(C=10, gamma=0.5).fit(X[TRAIN], BINARY[TRAIN])
    options: dict[str, Any] = {"n_clusters": 4, "n_landmarks": 20, "random_state": 0}
    summed, halves = (compress(model, rows, **options) for rows in (sp.csr_array(X[TRAIN]), in_halves(X[TRAIN])))
    values = summed.decision_function(sp.csr_array(X))
    for machine in (summed, halves):
        np.testing.assert_allclose(machine.decision_function(in_halves(X)), values, atol=1e-6)
    ridge = KernelRidge(kernel="rbf").fit(in_halves(X[:50]), WAVE[:50])
    np.testing.assert_array_equal(read_model(ridge).points.toarray(), X[:50])
    assert read_model(ridge).points.nnz == 150


def learn_labels(self: search.Compression, progress: Any) -> list[search._Candidate]:
    """In place of `Compression._pilots`: one tree that learns labels."""
    plan = search._Plan(float(self.source.parameters["gamma"]), 4, learnt="labels")
    return [self._train(plan, self.split.pilot, progress)]


@pytest.mark.parametrize("bins", [[-0.5, 0.5], [-0.8, 0, 0.8]], ids=["three", "four"])
def test_values_of_classes_are_not_compared_with_those_of_pairs(
    bins: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search.Compression, "_pilots", learn_labels)
    model = SVC(C=100, gamma=0.5).fit(X[TRAIN], np.digitize(WAVE[TRAIN], bins))
    report = compress(model, X[TRAIN], prediction_cost=60, random_state=0).report_
    assert report.learnt == "labels"
    assert np.isnan(report.error)
    assert "one for each class" in str(report)


def test_only_whole_degrees() -> None:
    rows = np.abs(X)
    model = KernelRidge(kernel="poly", degree=2.5).fit(rows[TRAIN], WAVE[TRAIN])
    with pytest.raises(ValueError, match=r"model has degree=2\.5"):
        compress(model, rows[TRAIN])
    assert compress(model.set_params(kernel="rbf").fit(rows[TRAIN], WAVE[TRAIN]), rows[TRAIN], random_state=0)
    whole = KernelRidge(kernel="poly", degree=2.0).fit(rows[TRAIN], WAVE[TRAIN])
    assert read_model(whole).parameters["degree"] == 2


def test_a_degree_set_after_the_fit_is_not_that_of_the_machine() -> None:
    model = DCSVMClassifier(kernel="poly", degree=2).fit(np.abs(X[TRAIN]), WAVE[TRAIN] > 0)
    assert read_model(model.set_params(degree=5)).parameters["degree"] == 2


@pytest.mark.slow
def test_a_model_of_whole_numbers_is_learnt_from_rows_between_them() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 6, size=(300, 3))
    between = rows + rng.uniform(0, 0.9, size=(300, 3))
    model = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.2).fit(rows, np.sin(rows[:, 0]) + rows[:, 1])
    assert model.X_fit_.dtype.kind == "i"
    for given in (rows, between, None):
        fast = compress(model, given, prediction_cost=100, random_state=0)
        assert fast.predict(between).shape == (300,)
    fast = compress(model, between, prediction_cost=100, random_state=0)
    assert fast.score(between, model.predict(between)) > 0.9


def test_a_clone_is_a_copy() -> None:
    fast = compress(SVC().fit(X[TRAIN], BINARY[TRAIN]), X[TRAIN], n_clusters=1, random_state=0)
    copied = clone(fast)
    np.testing.assert_array_equal(copied.fit(X, BINARY).predict(X), fast.predict(X))
    copied.set_params(n_jobs=2)
    assert fast.n_jobs is None
    with pytest.raises(NotFittedError):
        CompressedClassifier().predict(X)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("kernel", "n_features"), [("rbf", 1), ("poly", 100)])
def test_a_machine_of_one_point(kernel: str, n_features: int) -> None:
    row = np.full((1, n_features), 0.1)
    model = KernelRidge(kernel=kernel).fit(row, [2.0])
    for given in (row, None):
        np.testing.assert_allclose(compress(model, given, random_state=0).predict(row), model.predict(row), rtol=1e-5)


def test_ties_are_broken_as_the_model_breaks_them() -> None:
    cycle = np.array([[1.0, -1.0, 2.0]])  # class 0 beats 1, 1 beats 2 by most, 2 beats 0
    parameters: Any = None
    for break_ties, winner in ((False, 0), (True, 1)):
        model = SVC(break_ties=break_ties).fit(X, np.arange(1200) % 3)
        assert search.Compression(model, X, parameters)._class_numbers(cycle, True) == [winner]


def test_predictions_keep_the_column_of_the_targets() -> None:
    targets = WAVE[TRAIN, None]
    model = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5).fit(X[TRAIN], targets)
    fast = compress(model, X[TRAIN], random_state=0)
    assert model.predict(X).shape == fast.predict(X).shape == (1200, 1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fast)).predict(X), fast.predict(X))
    flat = compress(model.fit(X[TRAIN], targets[:, 0]), X[TRAIN], random_state=0)
    assert flat.predict(X).shape == (1200,)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_float32_unless_a_spread_would_be_lost(form: Any) -> None:
    values = RNG.uniform(0, 1, 1000)
    assert as_float32(form(np.c_[1e6 + values, values])).dtype == np.float64
    assert as_float32(form(np.c_[1e19 * values, values])).dtype == np.float64
    one_hot = np.eye(3)[RNG.integers(3, size=1000)]
    assert as_float32(form(np.c_[values, np.full(1000, 0.1), np.zeros(1000), one_hot])).dtype == np.float32


@pytest.mark.slow
@pytest.mark.parametrize("is_in_pipeline", [False, True])
def test_a_search_that_scales_the_columns_becomes_one_pipeline(is_in_pipeline: bool) -> None:
    X = np.random.default_rng(0).normal(size=(400, 8))
    y = X[:, 0] * X[:, 1] > 0  # six columns mean nothing
    model = DCSVMClassifierCV([1.0], [0.1], kernels="rbf", search="early", relevance=True)
    model = make_pipeline(StandardScaler(), model) if is_in_pipeline else model
    fast = compress(model.fit(X, y), X)
    assert fast[-1].report_.n_rows > 0
    assert fast[-1].as_function() is not None
    assert np.mean(fast.predict(X) == model.predict(X)) > 0.9
