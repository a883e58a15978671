"""Models that come from files: sound ones to the last bit, damaged ones with an error that names what is wrong."""

import contextlib
import copy
import pickle
import threading
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM
from skops.io import dump

from widemargin import (
    BSGDClassifier,
    DCPredClassifier,
    DCSVMClassifier,
    LandmarkNystroem,
    OCASClassifier,
    OCASClassifierCV,
    RelevanceScaler,
    TwoStepKernelKMeans,
    compress,
)
from widemargin.cli import main

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 5))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
ROWS = sp.csr_array(X * (np.abs(X) > 0.5))

MODELS: dict[str, Callable[[], Any]] = {
    "exact": lambda: DCSVMClassifier().fit(X, THREE),
    "CSR": lambda: DCSVMClassifier().fit(ROWS, Y),
    "precomputed": lambda: DCSVMClassifier(kernel="precomputed").fit(X @ X.T, Y),
    "early": lambda: DCSVMClassifier(n_levels=1, stop_level=1, n_sample=40, random_state=0).fit(X, Y),
    "tree": lambda: DCPredClassifier(n_clusters=2, random_state=0).fit(X, Y),
    "linear": lambda: OCASClassifier(warm_start=True).fit(X, THREE),
    "merging": lambda: BSGDClassifier(budget=10, lam=1e-3, n_epochs=1, random_state=0).fit(X, Y),
    "removal": lambda: BSGDClassifier(
        budget=10, lam=1e-3, n_epochs=1, maintenance="removal", kernel="linear", random_state=0
    ).fit(ROWS, Y),
    "clusters": lambda: TwoStepKernelKMeans(3, random_state=0).fit(X),
    "clusters of a matrix": lambda: TwoStepKernelKMeans(3, kernel="precomputed", random_state=0).fit(X @ X.T),
    "landmarks": lambda: LandmarkNystroem(8, n_pseudo_landmarks=3, random_state=0).fit(X),
    "landmarks of a matrix": lambda: LandmarkNystroem(8, kernel="precomputed", random_state=0).fit(X @ X.T),
    "relevance": lambda: RelevanceScaler(n_iter=1).fit(X, Y),
    "search": lambda: OCASClassifierCV(Cs=[0.1, 1.0]).fit(X, Y),
    "compressed": lambda: compress(SVC().fit(X, THREE), X, n_landmarks=4, n_clusters=2, random_state=0),
}


@cache
def model(name: str) -> Any:
    return MODELS[name]()


def answer(model: Any, rows: Any) -> Any:
    """As every_estimator's, but of predictions before coordinates, which a matrix need not allow."""
    method = next(name for name in ("decision_function", "predict", "transform") if hasattr(model, name))
    return getattr(model, method)(rows)


def from_file(name: str, change: Callable[[dict[str, Any]], Any]) -> Any:
    """The model of a pickle whose state was changed."""
    sound = model(name)
    state = copy.deepcopy(dict(sound.__getstate__()))
    change(state)
    made = type(sound).__new__(type(sound))
    made.__dict__.update(state)
    return pickle.loads(pickle.dumps(made))


def place(*path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of what is at a path into `value`, or `value` of what was there."""

    def change(state: dict[str, Any]) -> None:
        inner: Any = state
        for key in path[:-1]:
            inner = inner[key] if isinstance(inner, dict | list) else vars(inner)[key]
        inner = inner if isinstance(inner, dict | list) else vars(inner)
        inner[path[-1]] = value(inner[path[-1]]) if callable(value) else value

    return change


def entry(value: Any) -> Callable[[Any], Any]:
    """The same array with another first entry."""
    return lambda a: np.concatenate([np.full(1, value, a.dtype), a.reshape(-1)[1:]]).reshape(a.shape)


def short(a: Any) -> Any:
    return a[..., :-1]


DAMAGES = [
    ("exact", ("dual_coef_",), short, r"dual_coef_ must be an array of float64 of shape \(2, \d+\), got float64 of"),
    ("exact", ("dual_coef_",), entry(np.nan), "dual_coef_ must have entries that are finite, got nan"),
    ("exact", ("dual_coef_",), lambda a: a.astype(np.float32), "dual_coef_ must be an array of float64 .* got float32"),
    ("exact", ("dual_coef_",), None, "dual_coef_ must be an array of float64 .* got NoneType: None"),
    ("exact", ("support_",), entry(-1), r"support_ must have entries that are in .0, inf., got -1"),
    ("exact", ("n_support_",), entry(0), r"n_support_ must have the sum \d+, got"),
    ("exact", ("support_vectors_",), short, r"support_vectors_ must be an array of float64 of shape \(\d+, 5\)"),
    ("exact", ("classes_",), lambda a: a[::-1], "classes_ must be distinct labels in ascending order"),
    ("exact", ("classes_",), lambda a: a[:2], "class_weight_ must be an array of float64"),
    ("exact", ("intercept_",), short, r"intercept_ must be an array of float64 of shape \(3,\)"),
    ("exact", ("_gamma",), -1.0, "_gamma must be greater than 0, got -1.0"),
    ("exact", ("_kernel", "kernel"), "none", r"_kernel\['kernel'\] must be one of"),
    ("exact", ("_kernel", "degree"), 2.5, r"_kernel\['degree'\] must be an integer, at least 0, got 2\.5"),
    ("exact", ("_dtype",), "int8", "_dtype must be one of"),
    ("exact", ("objective_",), "text", "objective_ must be a number, got str: 'text'"),
    ("exact", ("class_weight_",), short, r"class_weight_ must be an array of float64 of shape \(3,\), got"),
    ("exact", ("shape_fit_",), (120, 4), r"shape_fit_ must be \(n_samples, 5\), got \(120, 4\)"),
    ("exact", ("shape_fit_",), (0, 5), r"shape_fit_\[0\] must be an integer, at least 1, got 0"),
    ("exact", ("early_level_",), 1, "_clusters must be a dict or a list, got NoneType"),
    ("CSR", ("support_vectors_", "indices"), entry(10**9), "support_vectors_ is a damaged sparse array: row 0"),
    ("CSR", ("support_vectors_", "indptr"), entry(7), "support_vectors_ is a damaged sparse array"),
    ("CSR", ("support_vectors_", "data"), entry(np.inf), "support_vectors_ is a damaged sparse array: data .* inf"),
    ("CSR", ("support_vectors_", "_shape"), (3, 5), "support_vectors_ is a damaged sparse array"),
    ("CSR", ("support_vectors_", "_shape"), {}, "support_vectors_ is a damaged sparse array"),
    ("precomputed", ("support_",), entry(120), r"support_ must have entries that are in \[0, 120\), got 120"),
    ("early", ("_clusters", "labels"), entry(2**40), r"_clusters\['labels'\] must have entries that are in \[0, 4\)"),
    ("early", ("_clusters", "points"), short, r"_clusters\['points'\] must be an array of float64"),
    ("early", ("_clusters", "support_labels"), entry(-1), r"_clusters\['support_labels'\] must have entries .* got -1"),
    ("tree", ("_trees",), [], "_trees must be a list of one or more dicts, got 0"),
    ("tree", ("_trees", 0), 3, r"_trees\[0\] must be a dict or a list, got int: 3"),
    ("tree", ("_trees", 0, "landmarks"), short, r"_trees\[0\]\['landmarks'\] must be an array of float64 of shape"),
    ("tree", ("_trees", 0, "centres"), short, r"'centres'\] must be an array of float64 of shape \(1, 2, 5\)"),
    ("tree", ("n_features_in_",), 4, r"shape_fit_ must be \(n_samples, 4\), got \(120, 5\)"),
    ("linear", ("coef_",), short, r"coef_ must be an array of float64 of shape \(3, 5\), got .* \(3, 4\)"),
    ("linear", ("intercept_",), entry(np.inf), "intercept_ must have entries that are finite, got inf"),
    ("linear", ("_points", 1), None, r"_points\[1\] must be an array of float64"),
    ("merging", ("_budget", "budget"), 2**29, r"_budget\['budget'\] must be below the \d+ columns of _st"),
    ("merging", ("_states", 0, "counts"), entry(-5), r"_states\[0\]\['counts'\] must have entries .* got -5"),
    ("merging", ("_states", 0, "counts"), lambda c: np.full_like(c, 2**62), "must be of at most 10 points, got 46"),
    ("merging", ("_states", 0, "counts"), lambda c: c * [1, 0, 1, 1, 1, 1, 1], r"'slots'\] must be 0 between the 0"),
    ("merging", ("_states", 0, "points"), short, r"_states\[0\]\['points'\] must be an array of float32"),
    ("merging", ("_states",), lambda states: states * 2, "_states must be a list of 1 dicts, got 2"),
    ("removal", ("_states", 0, "columns"), entry(10**6), r"_states\[0\]\['columns'\] must have entries"),
    ("removal", ("_states", 0, "points", "indptr"), entry(-1), r"_states\[0\]\['points'\] is a damaged sparse array"),
    ("clusters", ("sample_labels_",), entry(2**31), r"sample_labels_ must have entries that are in \[0, 120\)"),
    ("clusters", ("n_clusters_",), 10**9, "n_clusters_ must be 3, one more than the largest of sample_labels_"),
    ("clusters", ("_points",), lambda a: a[1:], r"_points must be an array of floats of shape \(120, 5\)"),
    ("clusters", ("_sample_weights",), entry(-1.0), "_sample_weights must be positive, got -1.0"),
    ("clusters", ("_squared_centre_norms",), short, r"_squared_centre_norms must be an array of float64 of shape"),
    ("clusters", ("inertia_",), np.nan, "inertia_ must be a finite number, got nan"),
    ("clusters of a matrix", ("sample_indices_",), entry(120), r"sample_indices_ must have entries .* got 120"),
    ("relevance", ("relevance_",), short, r"relevance_ must be an array of float64 of shape \(5,\)"),
    ("relevance", ("relevance_",), entry(-1.0), "relevance_ must not be negative, got -1.0"),
    ("relevance", ("scale_",), entry(0.0), "scale_ must be positive, got 0.0"),
    ("relevance", ("n_iter_",), 0, "n_iter_ must be an integer, at least 1, got 0"),
    ("landmarks", ("factor_",), lambda a: a[1:], r"factor_ must be an array of float64 of shape \(11, any\)"),
    ("landmarks", ("_pseudo", "pairs"), entry(8), r"_pseudo\['pairs'\] must have entries that are in \[0, 8\), got 8"),
    ("landmarks of a matrix", ("landmark_indices_",), entry(120), r"landmark_indices_ must have entries .* got 120"),
    ("landmarks of a matrix", ("landmark_indices_",), short, r"landmarks_ must be .* of shape \(7, 0\)"),
    ("compressed", ("_trees", 0, "coef"), short, r"_trees\[0\]\['coef'\] must be an array of float64"),
    ("compressed", ("_trees", 0, "children"), entry(9), "trees? of Nystroem machines do not fit|has the child 9"),
    ("compressed", ("_gamma",), None, "_gamma must be a finite number, got None"),
    ("compressed", ("report_",), None, "report_ must be a CompressionReport, got None"),
    ("search", ("best_estimator_",), None, "must be of class OCASClassifier, fitted on 5 features, got NoneType"),
    ("search", ("best_estimator_",), OCASClassifier(), "must be of class OCASClassifier, fitted on 5 features"),
    ("search", ("n_features_in_",), 4, "best_estimator_ must be of class OCASClassifier, fitted on 4 features"),
    ("search", ("best_estimator_", "coef_"), short, r"coef_ must be an array of float64 of shape \(1, 5\)"),
]


@pytest.mark.parametrize(
    ("name", "path", "value", "message"), DAMAGES, ids=lambda v: getattr(v, "__name__", str(v)[:40])
)
def test_damage_is_named(name: str, path: tuple[Any, ...], value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_file(name, place(*path, value=value))


OPTIONAL = (  # a compressed machine has no shape of its fit, an SGD machine no certificate
    *("shape_fit_", "leaves_", "levels_", "prediction_cost_"),
    *("objective_", "dual_gap_", "relative_gap_"),
)


def test_arrays_without_entries_ask_for_no_memory() -> None:
    """Their other axes may have any size, and be in agreement with the rest."""

    def no_nodes(state: dict[str, Any]) -> None:
        tree, d = state["_trees"][0], state["n_features_in_"]
        tree["centres"], tree["sizes"] = np.empty((0, 2**28, d)), np.empty(0, np.int32)
        tree["children"] = np.empty((0, 2**28), np.int32)

    def no_leaves(state: dict[str, Any]) -> None:
        tree, q, m = state["_trees"][0], 1, 2**28
        tree["intercept"], tree["bounds"] = np.empty((0, q)), np.empty(0, np.int64)
        tree["landmarks"], tree["pseudo_distances"] = np.empty((0, m, state["n_features_in_"])), np.empty((0, m, 0))
        tree["coef"], tree["products"] = np.empty((0, q, m)), np.empty((0, q, m * (m + 1) // 2))
        tree["slopes"] = tree["slopes"][:0]

    def no_rank(state: dict[str, Any]) -> None:
        state["landmarks_"] = state["landmarks_"][:0]
        state["_pseudo"]["pseudo_distances"] = np.empty((1, 0, 2**40))
        state["_pseudo"]["pairs"] = np.empty((1, 2, 0), np.int32)
        state["factor_"] = np.empty((2**40, 0))

    def many_clusters(state: dict[str, Any]) -> None:
        state["sample_labels_"][0], state["n_clusters_"] = 2**40, 2**40 + 1

    for name, change in (("tree", no_nodes), ("tree", no_leaves), ("landmarks", no_rank), ("clusters", many_clusters)):
        with pytest.raises(ValueError, match="must (be an array of .* shape|have entries)"):
            from_file(name, change)


def test_a_search_without_a_machine_loads() -> None:
    search = OCASClassifierCV(Cs=[0.1, 1.0], refit=False).fit(X, Y)
    assert pickle.loads(pickle.dumps(search)).C_ == search.C_


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"search"}))
def test_whatever_is_missing_is_named(name: str) -> None:
    for attribute in model(name).__getstate__():
        if attribute.endswith("_") and attribute not in OPTIONAL:
            with pytest.raises(ValueError, match=f"{attribute} is missing among the fitted attributes"):
                from_file(name, lambda state, attribute=attribute: state.pop(attribute))


@pytest.mark.parametrize("name", MODELS)
def test_parameters_that_a_file_lacks_have_their_defaults(name: str) -> None:
    given = model(name).get_params()
    for parameter, value in type(model(name))().get_params().items():
        if given[parameter] == value:
            again = from_file(name, lambda state, parameter=parameter: state.pop(parameter))
            assert getattr(again, parameter) == value


@pytest.mark.parametrize(
    "machine",
    [DCSVMClassifier(kernel="poly", degree=2), BSGDClassifier(kernel="poly", degree=2, maintenance="removal")],
)
def test_a_parameter_set_after_the_fit_is_not_that_of_the_machine(machine: Any) -> None:
    values = machine.fit(X, Y).set_params(degree=3, coef0=1.0).decision_function(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(machine)).decision_function(X), values)


@pytest.mark.parametrize("name", MODELS)
def test_no_parameter_changes_a_fitted_machine_or_keeps_it_from_loading(name: str) -> None:
    sound = model(name)
    rows = X @ X.T if "matrix" in name or name == "precomputed" else X
    expected = answer(sound, rows)
    for parameter in sound.get_params().keys() - {"n_jobs", "memory_budget", "decision_function_shape"}:
        for value in (-1.0, "precomputed"):
            machine = copy.copy(sound).set_params(**{parameter: value})
            for other in (machine, pickle.loads(pickle.dumps(machine))):
                np.testing.assert_array_equal(answer(other, rows), expected, err_msg=f"{parameter}={value}")
                assert other.get_params()[parameter] == value


def test_a_fit_takes_the_new_kernel() -> None:
    for machine in (DCSVMClassifier(), TwoStepKernelKMeans(3, random_state=0), LandmarkNystroem(8, random_state=0)):
        machine.fit(X, Y).set_params(kernel="precomputed")
        assert machine.fit(X @ X.T, Y).n_features_in_ == len(X)
        with pytest.raises(ValueError, match="square kernel matrix"):
            machine.fit(X, Y)
        assert (
            machine.predict(X @ X.T).shape == (120,)
            if hasattr(machine, "predict")
            else machine.transform(X @ X.T).any()
        )


@pytest.mark.parametrize("machine", [OCASClassifier(), DCSVMClassifier(), OCASClassifierCV([0.1], cv=2)], ids=str)
def test_a_fit_that_fails_in_another_thread_leaves_the_good_one(machine: Any) -> None:
    begun, gone_on = threading.Event(), threading.Event()

    class Slow(list):  # validated in the midst of the failing fit, which has begun first
        def __array__(self, *_: Any, **__: Any) -> Any:
            begun.set()
            gone_on.wait(1.0)
            raise ValueError("no numbers")

    def fail() -> None:
        with contextlib.suppress(ValueError):
            machine.fit(Slow(X.tolist()), Y)

    thread = threading.Thread(target=fail)
    thread.start()
    begun.wait(5.0)
    good = threading.Thread(target=machine.fit, args=(X, Y))
    good.start()
    good.join(0.3)  # it waits for the other, or has ended
    gone_on.set()
    thread.join()
    good.join()
    assert machine.predict(X).shape == (120,)


def test_attributes_that_a_user_sets() -> None:
    clusters = pickle.loads(pickle.dumps(model("clusters")))
    clusters.sample_labels_ = np.full_like(clusters.sample_labels_, 2**40)
    with pytest.raises(ValueError, match=r"sample_labels_ must have entries that are in \[0, 120\), got 1099511627776"):
        clusters.predict(X)
    warm = DCSVMClassifier(warm_start=True).fit(X, Y)
    warm.support_ = np.where(np.arange(len(warm.support_)) > 3, warm.support_, 2**50)  # no array of that size is made
    assert warm.fit(X, Y).converged_


@pytest.mark.parametrize("name", MODELS)
def test_deep_copies_and_integers_of_another_c_type(name: str) -> None:
    """int64 is `long` or `long long`, by platform; a deep copy of a compiled loop's array has the other one."""

    def as_long_long(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype == np.int64:
            return value.astype(np.longlong)
        if isinstance(value, dict):
            return {key: as_long_long(part) for key, part in value.items()}
        return [as_long_long(part) for part in value] if isinstance(value, list) else value

    machine = model(name)
    rows = X @ X.T if "matrix" in name or name == "precomputed" else X
    state = {key: as_long_long(value) for key, value in machine.__getstate__().items()}
    moved = type(machine).__new__(type(machine))
    moved.__setstate__(state)
    for other in (copy.deepcopy(machine), moved):
        np.testing.assert_array_equal(answer(other, rows), answer(machine, rows))


def test_estimators_without_a_fit_load_whatever_their_parameters() -> None:
    for estimator in (DCSVMClassifier(C=-1, kernel="none"), OCASClassifier(mu="x"), BSGDClassifier(budget=None)):
        again = pickle.loads(pickle.dumps(estimator))
        assert again.get_params() == estimator.get_params()


def test_a_copy_shares_the_attributes_and_checks_nothing() -> None:
    """scikit-learn's callbacks copy estimators in the midst of a fit."""
    sound = model("exact")
    shared = copy.copy(sound)
    assert shared.support_vectors_ is sound.support_vectors_
    half = DCSVMClassifier()
    half.n_features_in_ = 3
    assert copy.copy(half).n_features_in_ == 3


def test_refits_with_callbacks_on_other_data() -> None:
    callback = pytest.importorskip("sklearn.callback")
    for estimator in (OCASClassifier(), DCSVMClassifier(gamma=0.1)):
        estimator.fit(X, Y).set_callbacks(callback.ScoringMonitor(scoring="accuracy"))
        np.testing.assert_array_equal(estimator.fit(X[:, :3], Y).predict(X[:, :3]).shape, (120,))


def test_a_pipeline_s_damaged_scaler_is_one_line(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = make_pipeline(StandardScaler(), OCASClassifier()).fit(X, Y)
    pipeline[0].mean_ = "text"
    dump(pipeline, tmp_path / "model")
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b,c,d,e", comments="")
    assert main(["predict", str(tmp_path / "rows.csv"), str(tmp_path / "model")]) == 1
    assert "model: a damaged model (" in capsys.readouterr().err
    del pipeline[-1].coef_
    dump(pipeline, tmp_path / "model")
    for arguments in (["info"], ["predict", str(tmp_path / "rows.csv")], ["compress"]):
        more = [str(tmp_path / "out")] if arguments == ["compress"] else []
        assert main([*arguments, str(tmp_path / "model"), *more]) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "coef_ is missing among the fitted attributes" in error


SVC_DAMAGES = [
    ("_n_support", lambda a: a + 1000),
    ("_n_support", lambda a: a[:1]),
    ("support_", lambda a: a[:3]),
    ("support_vectors_", lambda a: a[:3]),
    ("_dual_coef_", lambda a: a[:, :3]),
    ("_intercept_", lambda a: a[:0]),
    ("_probA", lambda a: np.ones(10**6)),
    ("shape_fit_", None),
    ("n_features_in_", "five"),
]


@pytest.mark.parametrize(("name", "value"), SVC_DAMAGES)
def test_a_damaged_machine_of_scikit_learn_is_one_line(
    name: str, value: Any, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """LIBSVM reads beyond the ends of arrays that do not fit one another."""
    machine = SVC().fit(ROWS if name == "support_vectors_" else X, THREE)
    damaged = value(getattr(machine, name)) if callable(value) else value
    vars(machine)[name] = damaged
    dump(make_pipeline(machine) if name == "support_" else machine, tmp_path / "model")
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b,c,d,e", comments="")
    for arguments in (
        ["predict", str(tmp_path / "rows.csv"), str(tmp_path / "model")],
        ["info", str(tmp_path / "model")],
    ):
        assert main(arguments) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "not a fitted model" in error if name == "n_features_in_" else "a damaged one" in error


@pytest.mark.parametrize("machine", [SVC(), NuSVC(), SVR(), OneClassSVM(), SVC(kernel="precomputed")], ids=str)
def test_sound_machines_of_scikit_learn_predict(machine: Any, tmp_path: Any) -> None:
    for rows in [X @ X.T] if machine.kernel == "precomputed" else [X, ROWS]:
        dump(machine.fit(rows, THREE), tmp_path / "model")
        np.savez(tmp_path / "rows.npz", X=rows.toarray() if sp.issparse(rows) else rows, y=THREE)
        files = [str(tmp_path / name) for name in ("rows.npz", "model", "out")]
        assert main(["predict", *files, "--force"]) == 0
        dense = rows.toarray() if sp.issparse(rows) else rows
        np.testing.assert_allclose(np.loadtxt(tmp_path / "out"), machine.predict(dense))


# The fuzzer's models ------------------------------------------------------------------------------------------------


@pytest.fixture
def fuzzer() -> Any:
    return pytest.importorskip("benchmarks.reliability.model_files", reason="the benchmarks are not shipped")


@pytest.mark.slow
def test_no_change_of_a_file_ends_the_process(fuzzer: ModuleType) -> None:
    wrong = [
        (change, kind, what)
        for change, kind, what in fuzzer.run(600, seed=1)
        if kind not in (fuzzer.REJECTED_AT_LOAD, fuzzer.REJECTED_AT_USE, fuzzer.USABLE)
    ]
    assert not wrong
