"""Outcomes of loading and using model files with a damaged structure: a seeded fuzzer over all estimators.

A change takes one value of the state of one of `MODELS` (an array, a number, a name, a dict; also the inner arrays of
sparse matrices), and makes it something else: another size, order, dtype, shape or value, None, a text, a list, the
value of another attribute; or it leaves it out. The result is written with pickle or skops, loaded and used, in a child
process of its own with a limit on memory and time:

    rejected at load    a ValueError
    rejected at use     an exception in predict, decision_function, transform, partial_fit, or a fit that starts warm
    usable              none
    wrong error         another exception at load; of the program `widemargin`, a traceback or more than one line
    crashed, hung, out of memory
"""

from __future__ import annotations

import collections
import copy
import faulthandler
import io
import itertools
import os
import pickle
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from measuring.experiment import Experiment, Row

REJECTED_AT_LOAD, REJECTED_AT_USE, USABLE = "rejected at load", "rejected at use", "usable"
WRONG_ERROR, CRASHED, HUNG, OUT_OF_MEMORY = "wrong error", "crashed", "hung", "out of memory"
OUTCOMES = (REJECTED_AT_LOAD, REJECTED_AT_USE, USABLE, WRONG_ERROR, CRASHED, HUNG, OUT_OF_MEMORY)
FORMATS = ("pickle", "skops", "program")
_NOT_FOR_THE_PROGRAM = ("precomputed", "callable", "TwoStep", "Nystroem")
_GRID: dict[str, Any] = {"Cs": [0.1, 1.0], "cv": 2}

_N, _D = 150, 6
_BYTES = 2**30  # beside what the parent holds
_LIMITS = (  # timers, signals, seconds: of the processor, where a sound change takes some hundredths, and by the clock
    (signal.ITIMER_PROF, signal.SIGPROF, 20.0),
    (signal.ITIMER_REAL, signal.SIGALRM, 300.0),
)

Path_ = tuple[Any, ...]


# Models ---------------------------------------------------------------------------------------------------------------


def _rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((_N, _D))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(_N) > 0).astype(int)


def _three(X: Any) -> Any:
    return np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])


def _fit(name: str, *, kind: str = "dense", labels: str = "two", **parameters: Any) -> Any:
    import widemargin

    X, y = _rows()
    y = {"two": y, "three": np.array(["ant", "bee", "cow"])[_three(X)], "numbers": X[:, 0] - X[:, 1] ** 2}[labels]
    X = {"dense": X, "single": X.astype(np.float32), "csr": sp.csr_array(X * (np.abs(X) > 0.7)), "gram": X @ X.T}[kind]
    return getattr(widemargin, name)(n_jobs=1, **parameters).fit(X, y)


def _levels(name: str = "DCSVMClassifier", **parameters: Any) -> Callable[[], Any]:
    return lambda: _fit(name, n_levels=1, stop_level=1, n_sample=40, random_state=0, **parameters)


def _model(name: str, **parameters: Any) -> Callable[[], Any]:
    return lambda: _fit(name, **parameters)


def _compressed(model: str, kind: str = "dense", **parameters: Any) -> Callable[[], Any]:
    def make() -> Any:
        import sklearn.svm

        from widemargin import compress

        X, y = _rows()
        y = {"OneClassSVM": None, "SVR": X[:, 0]}.get(model, _three(X) if kind == "three" else y)
        fitted = getattr(sklearn.svm, model)().fit(X, y)
        limits = {"n_clusters": 2, "n_landmarks": 5, "n_pseudo_landmarks": 3, "n_jobs": 1, "random_state": 0}
        return compress(fitted, X, **{**limits, **parameters})

    return make


def _callable_kernel() -> Any:
    from sklearn.metrics.pairwise import rbf_kernel

    return rbf_kernel


def _stream(**parameters: Any) -> Callable[[], Any]:
    return lambda: _fit("BSGDClassifier", lam=1e-3, budget=10, n_epochs=1, table_size=16, random_state=0, **parameters)


MODELS: dict[str, Callable[[], Any]] = {
    "DCSVM": _model("DCSVMClassifier"),
    "DCSVM intercept": _model("DCSVMClassifier", fit_intercept=True, warm_start=True, kind="single"),
    "DCSVM three classes": _model("DCSVMClassifier", labels="three"),
    "DCSVM CSR": _model("DCSVMClassifier", kind="csr", warm_start=True),
    **{
        f"DCSVM {kernel}": _model("DCSVMClassifier", kernel=kernel)
        for kernel in ("linear", "poly", "sigmoid", "laplacian")
    },
    "DCSVM precomputed": _model("DCSVMClassifier", kernel="precomputed", kind="gram", warm_start=True),
    "DCSVM callable": lambda: _fit("DCSVMClassifier", kernel=_callable_kernel()),
    "early": _levels(),
    "early kernel": _levels(partition="kernel", labels="three"),
    "early CSR": _levels(kind="csr"),
    "early CSR kernel": _levels(kind="csr", partition="kernel", kernel="poly"),
    "early precomputed": _levels(kernel="precomputed", kind="gram"),
    "early callable": lambda: _levels(kernel=_callable_kernel())(),
    "regression": _model("DCSVMRegressor", labels="numbers", warm_start=True),
    "regression CSR": _model("DCSVMRegressor", labels="numbers", kind="csr", kernel="linear"),
    "early regression": _levels("DCSVMRegressor", labels="numbers"),
    "one-class": _model("DCOneClassSVM", warm_start=True),
    "early one-class": _levels("DCOneClassSVM", partition="kernel"),
    "DCPredClassifier": _model("DCPredClassifier", n_clusters=3, random_state=0),
    "DCPredClassifier three classes": _model(
        "DCPredClassifier", n_clusters=3, labels="three", n_trees=2, pseudo="triangle", random_state=0, kind="single"
    ),
    "DCPredClassifier CSR": _model("DCPredClassifier", kernel="poly", kind="csr", random_state=0),
    "DCPredRegressor": _model("DCPredRegressor", n_clusters=3, labels="numbers", random_state=0),
    "compressed": _compressed("SVC", pseudo="polynomial"),
    "compressed votes": _compressed("SVC", "three", n_clusters=1),
    "compressed regressor": _compressed("SVR", pseudo="triangle"),
    "compressed outlier detector": _compressed("OneClassSVM"),
    "OCAS": _model("OCASClassifier"),
    "OCAS three classes": _model("OCASClassifier", labels="three", warm_start=True),
    "OCAS Crammer-Singer": _model(
        "OCASClassifier", labels="three", multi_class="crammer_singer", warm_start=True, kind="csr"
    ),
    **{f"BSGD {rule}": _stream(merge=rule) for rule in ("lookup-wd", "gss-precise")},
    "BSGD three classes": _stream(labels="three", kind="single"),
    "BSGD CSR": _stream(kind="csr", fit_intercept=True),
    "BSGD removal": _stream(maintenance="removal", kernel="laplacian"),
    "BSGD projection": _stream(maintenance="projection"),
    "BSGD projection CSR": _stream(maintenance="projection", kind="csr", labels="three", kernel="poly"),
    "DCSVMClassifierCV": _model("DCSVMClassifierCV", gammas=2, labels="three", **_GRID),
    "DCSVMRegressorCV": _model("DCSVMRegressorCV", gammas=1, labels="numbers", kind="csr", **_GRID),
    "OCASClassifierCV": _model("OCASClassifierCV", **_GRID),
    "TwoStepKernelKMeans": _model("TwoStepKernelKMeans", n_clusters=4, n_sample=40, random_state=0),
    "TwoStepKernelKMeans CSR": _model("TwoStepKernelKMeans", n_clusters=4, n_sample=40, random_state=0, kind="csr"),
    "TwoStepKernelKMeans precomputed": _model(
        "TwoStepKernelKMeans", n_clusters=4, n_sample=40, random_state=0, kernel="precomputed", kind="gram"
    ),
    "LandmarkNystroem": _model("LandmarkNystroem", n_landmarks=10, n_pseudo_landmarks=4, random_state=0),
    "LandmarkNystroem triangle": _model(
        "LandmarkNystroem", n_landmarks=10, n_pseudo_landmarks=4, pseudo="triangle", random_state=0, kind="single"
    ),
    "LandmarkNystroem CSR": _model("LandmarkNystroem", n_landmarks=10, kernel="poly", kind="csr", random_state=0),
    "LandmarkNystroem precomputed": _model(
        "LandmarkNystroem", n_landmarks=10, n_pseudo_landmarks=4, random_state=0, kernel="precomputed", kind="gram"
    ),
}


@cache
def fitted(name: str) -> Any:
    """The undamaged model, after it was loaded from a file and used, so that child processes have all modules."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name]()
        for format in FORMATS[:2]:
            use(loaded(written(model, format), format), name)
        _use_program(written(model, "program"), name)
    return model


def state_of(model: Any) -> dict[str, Any]:
    """A copy of the model's state as a file holds it."""
    return copy.deepcopy(dict(model.__getstate__()))


def with_state(model: Any, state: dict[str, Any]) -> Any:
    """An estimator of the model's class that files write as if it had this state; nothing is checked."""
    made = type(model).__new__(type(model))
    made.__dict__.update(state)
    return made


# Changes --------------------------------------------------------------------------------------------------------------


class Change(NamedTuple):
    """One of a seed's changes.

    Attributes
    ----------
    model : str
        Of `MODELS`.
    format : {"pickle", "skops", "program"}
    seed : tuple of int
        Of what is changed, and how.
    """

    model: str
    format: str
    seed: tuple[int, ...]


def changes(n: int, seed: int = 0, models: list[str] | None = None) -> Iterator[Change]:
    """n changes: models and formats in turn, without the program for models that it refuses undamaged."""
    pairs = [(name, format) for format in FORMATS for name in models or MODELS]
    pairs = [pair for pair in pairs if pair[1] != "program" or not any(map(pair[0].count, _NOT_FOR_THE_PROGRAM))]
    for i in range(n):
        yield Change(*pairs[i % len(pairs)], (seed, i))


def _places(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Paths to everything in a state that is not a container, and to the containers."""
    if path:
        yield path
    for key in _keys(value):
        yield from _places(_child(value, key), (*path, key))


def _keys(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value)
    if isinstance(value, list | tuple):
        return list(range(len(value)))
    if sp.issparse(value):
        return list(vars(value))
    if hasattr(value, "get_params"):  # the machine within a search
        return list(value.__getstate__())
    return [field.name for field in fields(value)] if is_dataclass(value) else []


def _child(value: Any, key: Any) -> Any:
    return value[key] if isinstance(value, dict | list | tuple) else getattr(value, key)


def _replace(value: Any, path: Path_, new: Any, *, drop: bool = False) -> Any:
    """A state with another value at a path."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    inner = None if drop and not rest else _replace(_child(value, key), rest, new, drop=drop)
    if isinstance(value, tuple):
        return (*value[:key], *(() if drop and not rest else (inner,)), *value[key + 1 :])
    target = value if isinstance(value, dict | list) else vars(value)
    if drop and not rest:
        del target[key]
    else:
        target[key] = inner
    return value


_NUMBERS = (0, -1, 1, 7, 2**31, -(2**31), 2**62, 2**63 - 1, 10**30, 0.5, -1.0, 1e300, 1e-320, np.inf, np.nan)
_OTHERS: tuple[Any, ...] = (None, "", "text", [], {}, [1, 2], (1.0,), True, b"bytes", 3, -2.5, np.float32(1))
_DTYPES = ("f2", "f4", "f8", "i1", "i4", "i8", "u8", "?", "c16", "S3", "U3", "O", ">f8", ">i8", "M8[s]")


def _change_array(a: Any, rng: Any) -> Any:
    """Another size, order, shape, dtype or value."""
    axis = int(rng.integers(a.ndim)) if a.ndim else 0
    n = a.shape[axis] if a.ndim else 0
    kinds: list[Callable[[], Any]] = [
        lambda: a.astype(rng.choice(_DTYPES)),
        lambda: a.reshape(-1)[: rng.integers(a.size + 1)],
        lambda: a[None],
        lambda: a.T if a.ndim > 1 else a[:, None],
        lambda: np.full_like(a, _entry(a, rng)),
        lambda: _with_entry(a, rng),
        lambda: _with_entry(a, rng),
    ]
    if a.ndim:
        kinds += [
            lambda: np.take(a, np.arange(rng.integers(n + 1)), axis),
            lambda: np.take(a, np.arange(n - 1), axis) if n else a[None],
            lambda: np.concatenate([a, a], axis),
            lambda: np.concatenate([a, np.take(a, np.arange(min(n, 1)), axis)], axis),
            lambda: np.take(a, rng.permutation(n), axis),
            lambda: np.flip(a, axis),
            lambda: np.repeat(a, 2, axis)[(slice(None),) * axis + (slice(None, None, 2),)],
            lambda: a[(0,) * a.ndim] if a.size else None,
            lambda: a[0] if n and axis == 0 else a[..., None],
        ]
    return kinds[rng.integers(len(kinds))]()


def _entry(a: Any, rng: Any) -> Any:
    """A number of the dtype, most often one that no index or value should be."""
    value = _NUMBERS[rng.integers(len(_NUMBERS))]
    if a.dtype.kind in "iu":
        value = 0 if value != value else value
        return int(np.clip(value, np.iinfo(a.dtype).min, np.iinfo(a.dtype).max // 2))
    return value if a.dtype.kind in "fc" else a.reshape(-1)[rng.integers(a.size)] if a.size else 0


def _with_entry(a: Any, rng: Any) -> Any:
    changed = a.copy()
    if a.size:
        changed.reshape(-1)[rng.integers(a.size)] = _entry(a, rng)
    return changed


def changed(state: dict[str, Any], seed: tuple[int, ...]) -> tuple[dict[str, Any], str]:
    """The state with one change, and a description of it."""
    rng = np.random.default_rng(seed)
    places = list(_places(state))
    fitted = [path for path in places if str(path[0]).endswith("_") or str(path[0]).startswith("_")]
    path = places[rng.integers(len(places))] if rng.random() < 0.2 else fitted[rng.integers(len(fitted))]
    value: Any = state
    for key in path:
        value = _child(value, key)
    how = rng.random()
    if how < 0.08:
        return _replace(state, path, None, drop=True), f"{path} left out"
    if how < 0.16:
        other = places[rng.integers(len(places))]
        taken: Any = state
        for key in other:
            taken = _child(taken, key)
        return _replace(state, path, copy.deepcopy(taken)), f"{path} is {other}"
    if how < 0.26 or not isinstance(value, np.ndarray | int | float):
        new = _OTHERS[rng.integers(len(_OTHERS))]
    elif isinstance(value, np.ndarray):
        with np.errstate(all="ignore"):
            new = _change_array(value, rng)
    else:
        new = _NUMBERS[rng.integers(len(_NUMBERS))]
    text = f"{new.dtype} {new.shape}" if isinstance(new, np.ndarray) else repr(new)
    return _replace(state, path, new), f"{path}: {text}"


# Files ----------------------------------------------------------------------------------------------------------------


def written(model: Any, format: str) -> bytes:
    """The content of a file."""
    if format == "pickle":
        return pickle.dumps(model)
    from skops.io import dumps

    return dumps(model)


def loaded(content: bytes, format: str) -> Any:
    """The model in a file."""
    if format == "pickle":
        return pickle.loads(content)
    from skops.io import get_untrusted_types, loads

    return loads(content, trusted=get_untrusted_types(data=content))


def use(model: Any, name: str) -> None:
    """Everything that reads the fitted attributes."""
    X, y = _rows()
    labels = np.array(["ant", "bee", "cow"])[_three(X)] if len(getattr(model, "classes_", ())) == 3 else y
    X = X @ X.T if "precomputed" in name else X
    for rows in (X, X[:1], X.astype(np.float32), *(() if "precomputed" in name else (sp.csr_array(X),))):
        for method in ("predict", "decision_function", "transform"):
            if hasattr(model, method) and (method, name) != ("transform", "TwoStepKernelKMeans precomputed"):
                getattr(model, method)(rows)
    if hasattr(model, "predictor_"):
        model.predictor_.as_function()(X[0])
    if hasattr(model, "partial_fit"):
        model.partial_fit(sp.csr_array(X) if "CSR" in name else X, labels)
        model.predict(X)
    elif getattr(model, "warm_start", False):
        model.max_time = 1.0  # some change C, and a fit may take its time
        model.fit(X[:100, :100], labels[:100])
    pickle.dumps(model)


def _use_program(content: bytes, name: str) -> str:
    """The outcome of `widemargin info` and `widemargin predict`."""
    from widemargin.cli import main

    with tempfile.TemporaryDirectory() as folder:
        model, rows = Path(folder) / "model.skops", Path(folder) / "rows.csv"
        model.write_bytes(content)
        np.savetxt(rows, _rows()[0][:5], delimiter=",", header=",".join("abcdef"), comments="")
        codes = set()
        for arguments in (["info", str(model)], ["predict", str(rows), str(model)]):
            said, errors = io.StringIO(), io.StringIO()
            said.buffer = io.BytesIO()  # type: ignore[misc]
            with redirect_stdout(said), redirect_stderr(errors):
                code = main(arguments)
            lines = [line for line in errors.getvalue().splitlines() if not line.startswith("widemargin: warning")]
            if code not in (0, 1, 2) or (code and len(lines) != 1):
                return WRONG_ERROR
            codes.add(code)
    return USABLE if codes == {0} else REJECTED_AT_LOAD if codes == {1} else REJECTED_AT_USE


def _changed_file(change: Change) -> tuple[bytes, str]:
    """The content of a file with the first of this seed's changes that can be written in its format."""
    model = fitted(change.model)
    for attempt in itertools.count():
        try:
            state, what = changed(state_of(model), (*change.seed, attempt))
            return written(with_state(model, state), change.format), what
        except Exception:  # an array cannot be made that, or skops has no form for it
            continue
    raise AssertionError


def _is_ours(error: Exception) -> bool:
    """Whether this library's code raised: pickle, skops and SciPy may raise other errors before it."""
    import widemargin

    package = str(Path(widemargin.__file__).parent)
    return any(frame.filename.startswith(package) for frame in traceback.extract_tb(error.__traceback__))


def outcome(change: Change) -> tuple[str, str]:
    """Make one change, write it, load it, use it: the outcome, and a description."""
    content, what = _changed_file(change)
    try:
        if change.format == "program":
            return _use_program(content, change.model), what
        try:
            again = loaded(content, change.format)
        except Exception as error:
            is_right = isinstance(error, ValueError) or not _is_ours(error)
            return REJECTED_AT_LOAD if is_right else WRONG_ERROR, f"{what}: {type(error).__name__}: {error}"
        use(again, change.model)
    except MemoryError as error:
        return OUT_OF_MEMORY, f"{what}: {error}"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        kind = WRONG_ERROR if change.format == "program" else REJECTED_AT_USE
        return kind, f"{what}: {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
    return USABLE, what


# Children -------------------------------------------------------------------------------------------------------------


def in_child(change: Change) -> tuple[str, str]:
    """The outcome, found in a child process, which may crash."""
    fitted(change.model)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _run_child(change, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return HUNG if number in [limit[1] for limit in _LIMITS] else CRASHED, f"{said} {signal.Signals(number).name}"
    kind, _, what = said.partition("\n")
    return (kind, what) if kind in OUTCOMES else (CRASHED, f"exit {os.WEXITSTATUS(status)}: {said}")


def _run_child(change: Change, writing: int) -> None:
    """Never returns."""
    faulthandler.disable()  # of pytest
    for timer, number, seconds in _LIMITS:
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, seconds)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + _BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    kind, what = outcome(change)
    os.write(writing, f"{kind}\n{what}"[:4000].encode())
    os._exit(0)


def run(n: int, seed: int = 0, models: list[str] | None = None) -> Iterator[tuple[Change, str, str]]:
    """Changes, each with its outcome and a description."""
    for change in changes(n, seed, models):
        yield (change, *in_child(change))


def count(results: Iterator[tuple[Change, str, str]]) -> list[Row]:
    """A row for each model and format: how many changes had each outcome."""
    counts: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for change, kind, what in results:
        counts[change.model, change.format][kind] += 1
        if kind not in (REJECTED_AT_LOAD, REJECTED_AT_USE, USABLE):
            print(f"{kind}: {change.model}, {change.format}, seed {change.seed}: {what[:300]}", file=sys.stderr)
    return [
        {"model": model, "format": format, "changes": counter.total(), **{kind: counter[kind] for kind in OUTCOMES}}
        for (model, format), counter in counts.items()
    ]


def measure(model: str, options: Any) -> list[Row]:
    """The counts of a model's changes."""
    return count(run(options.changes // len(MODELS), options.seed, [model]))


MODEL_FILES = Experiment(
    "model_files",
    tuple(MODELS),
    ("model", "format"),
    measure,
    settings={"changes": 10_000, "seed": 0},
    quick={"changes": 30 * len(MODELS)},
)
