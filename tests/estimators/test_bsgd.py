"""`BSGDClassifier`: scikit-learn's contract, streams, kinds of data, limits, bad input."""

import pickle
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from peak_memory import peak_of
from widemargin import BSGDClassifier
from widemargin._progress import Progress
from widemargin.algorithms.bsgd_epochs import BudgetedSGD, EpochSettings, run_epochs
from widemargin.datasets import load_patches
from widemargin.estimators import bsgd
from widemargin.kernels.functions import RBF
from widemargin.solvers.sgd.budgeted_machine import StepSettings

Data = tuple[NDArray[np.float64], NDArray[np.int64]]


def machine(**options: Any) -> BSGDClassifier:
    return BSGDClassifier(**({"gamma": 0.2, "budget": 20, "n_epochs": 3, "random_state": 0} | options))


@pytest.fixture(scope="module")
def patches() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    return load_patches(2000)


# ------------------------------------------------------------------------------------------------ accuracy and options


@pytest.mark.slow
def test_with_a_budget_of_all_rows_it_reaches_the_optimum(binary: Data) -> None:
    X, y = binary
    ours = machine(C=1.0, budget=200, n_epochs=2000).fit(X, y)
    exact = SVC(C=1.0, gamma=0.2).fit(X, y)
    coef, f = exact.dual_coef_[0], exact.decision_function(X)
    norm = coef @ (f[exact.support_] - exact.intercept_[0])
    bound = 0.5 * norm + np.maximum(0, 1 - np.where(y == 1, f, -f)).sum()  # with an intercept: at most ours
    assert bound * 0.999 < ours.objective_ < bound * 1.05


@pytest.mark.parametrize("maintenance", ["removal", "projection"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid", "laplacian", "callable"])
def test_every_kernel(kernel: str, maintenance: str) -> None:
    y = np.arange(200) % 2
    X = np.random.default_rng(0).normal(size=(200, 6)) + 2.0 * np.where(y, 1, -1)[:, None] * (np.arange(6) < 3)

    def product(A: Any, B: Any) -> Any:
        return A @ B.T

    name = product if kernel == "callable" else kernel
    model = machine(kernel=name, maintenance=maintenance, gamma=0.05, budget=40).fit(X, y)
    assert model.score(X, y) > 0.9
    assert len(model.support_vectors_) <= 40


def test_several_classes_are_one_vs_rest(four: Data) -> None:
    X, y = four
    names = np.array(["ant", "bee", "cat", "dog"])[y]
    model = machine(budget=15).fit(X, names)
    assert model.classes_.tolist() == ["ant", "bee", "cat", "dog"]
    assert model.decision_function(X).shape == (len(X), 4)
    assert model.score(X, names) > 0.95
    assert np.all(model.n_support_ <= 15)
    assert model.dual_coef_.shape == (4, len(model.support_vectors_))
    alone = machine(budget=15).fit(X, y == 2)
    np.testing.assert_allclose(alone.decision_function(X), model.decision_function(X)[:, 2], rtol=1e-6)


@pytest.mark.parametrize("maintenance", ["merge", "removal", "projection"])
def test_threads_change_nothing(maintenance: str, four: Data) -> None:
    X, y = four
    models = [machine(maintenance=maintenance, n_jobs=n).fit(X, y) for n in (1, 2)]
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)
    np.testing.assert_array_equal(models[0].support_vectors_, models[1].support_vectors_)


@pytest.mark.slow
def test_weights_count_as_repetitions_on_average(binary: Data) -> None:
    """Means over seeds: weight 2 has the effect of two copies of a row, weight 0 that of none."""
    X, y = binary
    repeats = np.where(np.arange(len(y)) % 3 == 0, 2, np.arange(len(y)) % 3 - 1)
    rows, mean_weight = np.repeat(np.arange(len(y)), repeats), repeats[repeats > 0].mean()

    def values(*data: Any) -> list[Any]:
        how = {"budget": 150, "n_epochs": 60, "lam": 1 / repeats.sum()}
        return [machine(**how, random_state=s).fit(*data).decision_function(X) for s in range(12)]

    weighted, repeated, plain = values(X, y, repeats / mean_weight), values(X[rows], y[rows]), values(X, y)
    spread = np.std(weighted, axis=0).mean() + np.std(repeated, axis=0).mean()
    assert np.abs(np.mean(weighted, axis=0) - np.mean(repeated, axis=0)).mean() < spread
    assert np.abs(np.mean(plain, axis=0) - np.mean(repeated, axis=0)).mean() > spread


def test_rows_of_a_class_of_weight_zero_are_no_steps(four: Data) -> None:
    X, y = four
    options = {"class_weight": {0: 1.0, 1: 1.0, 2: 1.0, 3: 0.0}}
    whole = machine(shuffle=False, n_epochs=1, lam=1e-3, **options).fit(X, y)
    stream = machine(lam=1e-3, **options).partial_fit(X, y, classes=np.arange(4))
    assert whole.t_ == stream.t_ == np.count_nonzero(y < 3)
    np.testing.assert_array_equal(whole.dual_coef_, stream.dual_coef_)
    assert machine(**options).fit(X, y).lam_ == 1 / whole.t_


def test_a_chunk_of_weight_zero_is_skipped(binary: Data) -> None:
    X, y = binary
    weights = np.repeat([1.0, 0.0, 1.0], 40)
    whole, stream = (machine(lam=1e-3) for _ in range(2))
    whole.partial_fit(X, y, [0, 1], weights)
    for start in (0, 40, 80):
        rows = slice(start, start + 40)
        stream.partial_fit(X[rows], y[rows], [0, 1], weights[rows])
    assert stream.t_ == whole.t_ == 80
    np.testing.assert_array_equal(stream.dual_coef_, whole.dual_coef_)
    with pytest.raises(ValueError, match="at least one (non-zero|positive)"):
        machine(lam=1e-3).partial_fit(X, y, [0, 1], np.zeros(120))


def test_history_and_counts(patches: Any) -> None:
    X, y = patches
    model = machine(gamma=1.0, n_epochs=4).fit(X, y)
    history = model.history_
    expected = {"time", "steps", "hinge", "violations", "mergers", "merging_frequency", "mean_degradation", "n_support"}
    assert expected <= set(history)
    assert {len(column) for column in history.values()} == {4}
    assert history["steps"].tolist() == [2000, 4000, 6000, 8000]
    assert model.t_ == 8000
    assert model.n_iter_ == 4
    assert history["hinge"][-1] < history["hinge"][0]
    np.testing.assert_allclose(history["merging_frequency"], history["mergers"] / 2000)
    assert np.all(history["n_support"] <= 20)


def test_early_stopping_returns_the_best_model(patches: Any) -> None:
    X, y = patches
    model = machine(gamma=1.0, n_epochs=60, early_stopping=True, validation_fraction=0.2).fit(X, y)
    scores = model.history_["validation_score"]
    assert model.converged_
    assert model.n_iter_ < 60
    assert scores[:-3].max() == scores.max()  # three passes without a better one
    assert np.all(scores > 0.5)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_objective_is_the_primal_objective(n_classes: int, fit_intercept: bool, four: Data) -> None:
    """With the intercept regularised, and summed over machines with support vectors of their own."""
    X, y = four[0], four[1] % n_classes
    model = machine(C=2.0, fit_intercept=fit_intercept).fit(X, y)
    X32 = X.astype(np.float32).astype(np.float64)
    P, expected = model.support_vectors_.astype(np.float64), 0.0

    def k(A: Any, B: Any) -> Any:
        return np.exp(-0.2 * ((A[:, None] - B[None]) ** 2).sum(-1))

    for number, c, b in zip([1] if n_classes == 2 else range(4), model.dual_coef_, model.intercept_, strict=True):
        losses = np.maximum(0, 1 - np.where(y == number, 1, -1) * (k(X32, P) @ c + b))
        expected += 0.5 * (c @ k(P, P) @ c + b * b) + 2.0 * losses.sum()
    assert model.objective_ == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("options", [{"merge": "gss-precise"}, {"maintenance": "projection", "budget": 1000}])
def test_slow_budget_maintenance_keeps_max_time(options: dict[str, Any]) -> None:
    """Each row is within the margin, as labels are random: projection took 5 s here."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 10)), rng.integers(0, 2, 20_000)
    model = machine(gamma=5.0, n_epochs=10**6, max_time=0.3, **options)
    start = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X, y)
    assert time.perf_counter() - start < 4.0


# ------------------------------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize("maintenance", ["merge", "removal", "projection"])
@pytest.mark.parametrize(("n_classes", "average", "form"), [(2, True, np.asarray), (4, False, sp.csr_array)])
def test_chunks_give_the_model_of_one_pass(
    n_classes: int, maintenance: str, average: bool, form: Any, four: Data
) -> None:
    X, y = form(four[0]), four[1] % n_classes
    options = {"lam": 1e-3, "maintenance": maintenance, "average": average}
    whole = machine(shuffle=False, n_epochs=1, **options).fit(X, y)
    stream = machine(**options)
    for start, stop in ((0, 1), (1, 90), (90, 200), (200, len(y))):
        stream.partial_fit(X[start:stop], y[start:stop], classes=np.arange(n_classes))
        if start == 90:
            stream = pickle.loads(pickle.dumps(stream))  # as in another process
    for name in ("support_vectors_", "dual_coef_", "intercept_"):
        arrays = (getattr(model, name) for model in (whole, stream))
        np.testing.assert_array_equal(*(a.toarray() if sp.issparse(a) else a for a in arrays))
    np.testing.assert_array_equal(whole.decision_function(X), stream.decision_function(X))
    assert stream.n_iter_ == 4
    assert stream.t_ == len(y)


@pytest.mark.slow
def test_chunks_do_not_change_removal_with_a_callable_kernel() -> None:
    """k(x, x) is 1 but for rounding, and of equal coefficients the oldest is removed: rounding must not decide."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 200)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)

    def kernel(A: Any, B: Any) -> Any:
        return np.exp(-0.0015 * ((A * A).sum(1)[:, None] + (B * B).sum(1) - 2 * A @ B.T))

    whole, chunks = (machine(kernel=kernel, maintenance="removal", budget=30, lam=1e-3) for _ in range(2))
    whole.partial_fit(X, y, classes=[0, 1])
    for start in range(0, 700, 53):
        chunks.partial_fit(X[start : start + 53], y[start : start + 53], classes=[0, 1])
    np.testing.assert_array_equal(whole.support_vectors_, chunks.support_vectors_)


def test_first_chunks_of_one_class(binary: Data) -> None:
    X, y = binary
    model = machine(lam=1e-3)
    model.partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    assert model.predict(X).tolist().count(1) == len(y)
    model.partial_fit(X[y == 0], y[y == 0]).partial_fit(X, y)
    assert model.score(X, y) > 0.7


def test_labels_that_are_not_in_classes(binary: Data) -> None:
    X, y = binary
    model = machine(lam=1e-3).partial_fit(X, y, classes=[0, 1])
    before = dict(vars(model))
    with pytest.raises(ValueError, match=r"\[7\]"):
        model.partial_fit(X, np.where(y == 1, 7, 0))
    assert all(vars(model)[key] is before[key] for key in before)
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X, y, classes=[0, 1, 2])


@pytest.mark.parametrize(
    ("options", "classes", "word"),
    [
        ({"lam": 0.001}, None, "classes"),
        ({"lam": 0.001}, [1], "classes"),
        ({"lam": 0.001, "class_weight": "balanced"}, [0, 1], "class_weight"),
        ({"early_stopping": True}, [0, 1], "early_stopping must be False for partial_fit, got True"),
    ],
)
def test_parameters_that_a_stream_refuses(options: dict[str, Any], classes: Any, word: str, binary: Data) -> None:
    with pytest.raises(ValueError, match=rf"\b{word}\b"):
        machine(**options).partial_fit(*binary, classes=classes)


KERNEL = "coef0 must stay as the model was made, .* got .*"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": 500}, "budget must stay"),
        ({"maintenance": "projection"}, "budget must stay"),
        *(({name: value}, KERNEL + name) for name, value in (("kernel", "rbf"), ("gamma", "scale"), ("degree", 2))),
        ({"coef0": 1.0}, KERNEL + "coef0"),
    ],
)
def test_budget_maintenance_and_kernel_of_a_stream_are_fixed(change: Any, message: str, binary: Data) -> None:
    model = machine(kernel="poly", maintenance="removal", lam=1e-3).partial_fit(*binary, classes=[0, 1])
    with pytest.raises(ValueError, match=message):
        model.set_params(**change).partial_fit(*binary)
    assert model.t_ == len(binary[1])


def test_a_stream_after_fit_has_no_objective(binary: Data) -> None:
    X, y = binary
    model = machine(early_stopping=True).fit(X, y)
    n_passes = model.n_iter_
    model.set_params(early_stopping=False).partial_fit(X, y)
    assert not hasattr(model, "objective_")
    assert {len(column) for column in model.history_.values()} == {n_passes + 1}
    assert np.isnan(model.history_["validation_score"]).tolist() == [False] * n_passes + [True]


@pytest.mark.slow
def test_a_stream_of_any_length_takes_the_same_memory(binary: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bsgd, "_CALLS_KEPT", 20)
    X, y = binary
    model, sizes = machine(lam=1e-3), []
    for row in [*range(len(y))] * 2:
        model.partial_fit(X[row : row + 1], y[row : row + 1], classes=[0, 1])
        sizes.append(len(pickle.dumps(model)))
    assert sizes[-1] == sizes[len(y)]
    assert model.history_["steps"].tolist() == list(range(2 * len(y) - 19, 2 * len(y) + 1))
    assert {len(column) for column in model.history_.values()} == {20}
    assert model.n_iter_ == model.t_ == 2 * len(y)


@pytest.mark.slow
def test_a_memory_map_is_read_in_place(tmp_path: Path, patches: Any) -> None:
    X, y = patches
    path = tmp_path / "rows.npy"
    big = np.lib.format.open_memmap(path, "w+", np.float32, (60_000, 75))
    big[:] = np.tile(X, (30, 1))
    labels = np.tile(y, 30)
    rows = np.load(path, mmap_mode="r")
    options = {"gamma": 1.0, "lam": 1e-5, "n_epochs": 1, "shuffle": False, "memory_budget": "4MB"}
    machine(**options).fit(rows[:2000], y)  # imports, and tables read
    model, peak = peak_of(machine(**options).fit, rows, labels)
    assert model.t_ == 60_000
    assert peak < 0.6 * big.nbytes  # weights and predictions, not rows
    chunks = machine(**options)
    for start in range(0, 60_000, 7000):
        chunks.partial_fit(rows[start : start + 7000], labels[start : start + 7000], classes=[0, 1])
    np.testing.assert_array_equal(chunks.dual_coef_, model.dual_coef_)


# -------------------------------------------------------------------------------------------------------------- limits


def test_max_time_is_kept_and_reported(patches: Any) -> None:
    X, y = patches
    machine(gamma=1.0).fit(X, y)
    model = machine(gamma=1.0, n_epochs=10**6, max_time=0.3)
    start = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"stopped by max_time after \d+ steps: mean hinge loss") as caught:
        model.fit(X, y)
    assert 0.25 < time.perf_counter() - start < 4.0
    assert [w.filename for w in caught] == [__file__]
    assert model.converged_ is False
    assert model.score(X, y) > 0.8
    assert model.t_ == int(model.history_["steps"][-1])


def limited_passes(n_passes: int, n_rounds: int) -> tuple[int, bool, int]:
    """Train on 50 rows, a block a pass, until a callback says stop in round `n_rounds`: steps, result, rounds."""
    rng = np.random.default_rng(0)
    X, signs, rounds = rng.normal(size=(50, 3)).astype(np.float32), np.where(np.arange(50) < 25, -1.0, 1.0), []

    def callback(state: dict[str, float]) -> bool:
        rounds.append(state)
        return len(rounds) == n_rounds

    settings = StepSettings(kernel=RBF(0.5), lam=1e-2, budget=10)
    sgd = BudgetedSGD(settings, X, 1)
    with Progress(callback=callback) as progress:
        _, is_complete = run_epochs(sgd, X, signs[None], EpochSettings(n_passes), progress, rng)
    return sgd.totals().steps, is_complete, len(rounds)


def test_a_limit_in_the_last_block_has_stopped_nothing_and_one_before_begins_no_other_pass() -> None:
    assert limited_passes(3, n_rounds=3) == (150, True, 3)
    assert limited_passes(3, n_rounds=1) == (50, False, 1)


# ----------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "linear"}, "maintenance='merge'.*kernel='linear'"),
        ({"lam": 1e-310}, "lam must be at least 1e-100, got 1e-310"),
        ({"C": 1e300}, r"C must be at most .* with 120 rows, got 1e\+300"),
    ],
)
def test_parameters_that_a_fit_refuses(options: dict[str, Any], message: str, binary: Data) -> None:
    with pytest.raises(ValueError, match=message):
        machine(**options).fit(*binary)


@pytest.mark.filterwarnings("ignore:gamma=")
def test_gamma_so_large_that_the_kernel_underflows(binary: Data) -> None:
    X, y = binary
    model = machine(gamma=1e4, budget=5).fit(X, y)
    assert np.all(np.isfinite(model.dual_coef_))
    assert np.all(np.isfinite(model.support_vectors_))
    assert np.all(np.isfinite(model.decision_function(X)))


@pytest.mark.filterwarnings("ignore:gamma=")
def test_identical_rows_of_both_classes() -> None:
    model = machine(budget=3).fit(np.ones((50, 2)), np.arange(50) % 2)
    assert np.all(np.isfinite(model.decision_function(np.ones((1, 2)))))
    assert len(model.support_vectors_) <= 3


def test_values_beyond_float32_are_refused(binary: Data) -> None:
    X, y = binary[0].copy(), binary[1]
    X[3, 1] = 1e100
    with pytest.raises(ValueError, match="float32"):
        machine().fit(X, y)


def test_too_large_weights_are_refused(binary: Data) -> None:
    X, y = binary
    for learn in (machine().fit, partial(machine(lam=1e-3).partial_fit, classes=[0, 1])):
        with pytest.raises(ValueError, match=r"sample_weight.*1e\+300"):
            learn(X, y, sample_weight=np.full(len(y), 1e300))


def test_a_kernel_that_raises_in_a_stream(binary: Data) -> None:
    X, y = binary
    fails = {"now": False}

    def product(A: Any, B: Any) -> Any:
        if fails["now"]:
            raise RuntimeError("refused")
        return A @ B.T

    def stream() -> BSGDClassifier:
        model = machine(kernel=product, maintenance="removal", lam=1e-2)
        return model.partial_fit(X[:50], y[:50], classes=[0, 1])

    model = stream()
    coef = model.dual_coef_.copy()
    fails["now"] = True
    with pytest.raises(RuntimeError, match="refused"):
        model.partial_fit(X[50:], y[50:])
    np.testing.assert_array_equal(model.dual_coef_, coef)
    fails["now"] = False
    again = stream().partial_fit(X[50:], y[50:])
    np.testing.assert_array_equal(model.partial_fit(X[50:], y[50:]).dual_coef_, again.dual_coef_)


def test_a_stopped_fit_estimates_its_objective_from_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 4))
    y = X[:, 0] * X[:, 1] > 0
    weights = rng.uniform(0.5, 1.5, 5000)
    monkeypatch.setattr("widemargin.estimators.bsgd._ESTIMATE_SECONDS", 0.0)
    monkeypatch.setattr("widemargin.algorithms.bsgd_epochs._SAMPLED_ROWS", 1000)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = BSGDClassifier(budget=20, max_time=0, random_state=0).fit(X, y, sample_weight=weights)
    margins = np.where(y, 1, -1) * model.decision_function(X)
    K, coef = rbf_kernel(model.support_vectors_, gamma=model._gamma), model.dual_coef_[0]
    everything = 0.5 * coef @ K @ coef + weights @ np.maximum(0.0, 1 - margins) * model.C
    assert model.objective_ == pytest.approx(everything, rel=0.1)
    assert model.objective_ != pytest.approx(everything, rel=1e-9)


# ------------------------------------------------------------------------------------------------------------- streams


def test_a_stream_needs_no_lam(binary: Data) -> None:
    X, y = binary
    stream = BSGDClassifier(C=2.0).partial_fit(X, y, classes=[0, 1])
    assert stream.lam_ == 1 / (2.0 * 10_000)
    given = BSGDClassifier(C=2.0, lam=stream.lam_).partial_fit(X, y, classes=[0, 1])
    np.testing.assert_array_equal(stream.decision_function(X), given.decision_function(X))


def test_a_stream_after_fit_has_its_lam(binary: Data) -> None:
    X, y = binary
    model = BSGDClassifier(C=2.0, random_state=0).fit(X, y)
    assert model.lam_ == 1 / (2.0 * len(y))
    given = BSGDClassifier(C=2.0, lam=model.lam_, random_state=0).fit(X, y)
    for each in (model, given):
        each.partial_fit(X, y)
    assert model.lam_ == given.lam_
    np.testing.assert_array_equal(model.decision_function(X), given.decision_function(X))
    assert model.set_params(lam=0.5).partial_fit(X, y).lam_ == 0.5  # a given one takes precedence


def prequential_accuracy(model: BSGDClassifier, X: Any, y: Any, chunk: int = 200) -> float:
    right = []
    for start in range(0, len(y), chunk):
        rows = slice(start, start + chunk)
        if start:
            right.append(model.predict(X[rows]) == y[rows])
        model.partial_fit(X[rows], y[rows], classes=[0, 1])
    return float(np.mean(np.concatenate(right)))


@pytest.mark.slow
@pytest.mark.parametrize("maintenance", ["merge", "removal"])
def test_the_average_follows_inverted_labels(maintenance: str) -> None:
    """With few rows within the margin and so few mergers, the average must restart to forget the first labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 12_000)
    X = rng.normal(size=(len(y), 5)) + 4.0 * y[:, None]
    turned = np.where(np.arange(len(y)) < len(y) // 2, y, 1 - y)
    options: dict[str, Any] = {"lam": 1e-6, "gamma": 0.1, "maintenance": maintenance}
    assert prequential_accuracy(BSGDClassifier(**options), X, y) > 0.99
    last = prequential_accuracy(BSGDClassifier(average=False, **options), X, turned)
    assert prequential_accuracy(BSGDClassifier(**options), X, turned) > last - 0.01 > 0.9


@pytest.mark.parametrize("maintenance", ["removal", "projection"])
@pytest.mark.parametrize("first", [np.asarray, sp.csr_array])
def test_chunks_of_a_stream_may_be_dense_or_sparse(maintenance: str, first: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    second = sp.csr_array if first is np.asarray else np.asarray
    mixed, plain = (BSGDClassifier(budget=20, gamma=0.2, maintenance=maintenance, lam=0.01) for _ in range(2))
    for model, forms in ((mixed, (first, second)), (plain, (np.asarray, np.asarray))):
        for form, rows in zip(forms, (slice(200), slice(200, 400)), strict=True):
            model.partial_fit(form(X[rows]), y[rows], classes=[0, 1])
    np.testing.assert_allclose(mixed.decision_function(X), plain.decision_function(X), atol=1e-4)


def test_validation_rows_count_by_their_weights() -> None:
    """Rows of one class weigh so much that a model which is right on these alone is the better one."""
    model, values = BSGDClassifier(), np.array([[-1.0], [-1.0], [1.0]])
    weights, y = np.array([1.0, 1.0, 8.0]), np.array([0, 0, 0])

    class Fixed:
        def decision_values(self, X: Any, **_: Any) -> Any:
            return values

    assert model._score_validation_rows(None, y, weights, Fixed()) == pytest.approx(0.2)  # type: ignore[arg-type]
