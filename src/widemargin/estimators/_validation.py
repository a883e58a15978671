"""Checks of parameters, of rows in memory, in a file or on a cluster, of labels and of weights."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, _check_sample_weight, _num_samples, check_array, column_or_1d
from sklearn.utils.validation import validate_data as sklearn_validate_data

from .._config import SMALL_BYTES
from .._memory import memory_plan
from .._threads import MOST_THREADS, ONE_THREAD, ThreadTeam, value_blocks
from .._types import LEAST_NORMAL, AnyArray, Given, Labels, Model, RandomState, Rows, Vector
from ..data import compute_rows, compute_values, has_finite_rows, has_finite_values, is_dask_collection, mapped_pages
from ..data.csr import check_sparse, summed
from ..kernels.functions import DISTANCE_KERNELS, KERNELS

FLOATS = [np.float64, np.float32]  # the dtypes that data keep; others become the first
_NUMBERS = (int, float, np.integer, np.floating)  # NumPy computes with neither fractions nor decimals
LARGEST_ENTRY, LARGEST_TARGET = 1e150, 1e100  # magnitudes of X and y whose squares, and sums of these, are finite
_FEW_LABELS = 2**12  # labels that are sorted in less time than looking for two classes takes
_NUMBER_TYPES = re.compile("u?int|float|double|halffloat|bool|decimal|null")  # of Polars and pyarrow, in small letters


def validate_rows(
    estimator: Model, X: Given, y: Given = "no_validation", *, sums_repeated: bool = False, **how: Any
) -> Rows:
    """scikit-learn's `validate_data`, for sparse X whose indices are within its shape: all that follows trusts them.

    The ValueError names the first row that has a wrong index (0.3 ns a non-zero). A dask collection is computed into
    memory. With `sums_repeated`, entries of a sparse row that share a column are summed, in a copy of the rows.
    """
    if is_dask_collection(X):
        X = compute_rows(X, memory_plan(estimator))
    is_sparse = type(X) is not np.ndarray and sp.issparse(X)
    X = check_sparse(X) if is_sparse else X
    if is_valid := _is_valid_array(estimator, X, how):
        if how.get("reset", True):
            estimator.n_features_in_ = X.shape[1]
        if isinstance(y, str) or _are_valid_targets(y, X.shape[0]):  # "no_validation", or an array
            rows = summed(X) if is_sparse and sums_repeated else X
            return rows if isinstance(y, str) else (rows, y)
    validated = validate_data(
        estimator, _with_whole_items(X), y, **{**how, "ensure_all_finite": False} if is_valid else how
    )
    rows, *labels = validated if isinstance(validated, tuple) else (validated,)
    if not sp.issparse(rows):
        return validated
    if getattr(X, "format", None) != "csr":  # SciPy has made it CSR
        rows = check_sparse(rows)
    rows = _with_dtype(rows, how["dtype"])
    rows = summed(rows) if sums_repeated else rows
    return (rows, *labels) if labels else rows


def _is_valid_array(estimator: Model, X: Given, how: Mapping[str, Any]) -> bool:
    """Whether X is an array, or a CSR one, that scikit-learn's checks would leave as it is.

    They take longer than a small fit.
    """
    is_csr = type(X) in (sp.csr_array, sp.csr_matrix) and how.get("accept_sparse") == "csr"
    values, dtypes = X.data if is_csr else X, how["dtype"]
    if type(values) is not np.ndarray or X.ndim != 2 or 0 in X.shape or not values.flags.c_contiguous:
        return False
    is_kept = values.flags.aligned and X.dtype in (dtypes if isinstance(dtypes, list) else [dtypes])
    if not is_kept or hasattr(estimator, "feature_names_in_"):
        return False
    if not how.get("reset", True) and X.shape[1] != estimator.n_features_in_:
        return False
    if not how.get("ensure_all_finite", True) or get_config()["assume_finite"]:
        return True
    if values.nbytes < SMALL_BYTES:
        return has_finite_values(values, ONE_THREAD)
    with ThreadTeam(getattr(estimator, "n_jobs", None)) as team:
        return has_finite_values(values, team)


def _are_valid_targets(y: Given, n: int) -> bool:
    """Whether y is an array (n,) of numbers that scikit-learn's checks would leave as it is."""
    return (
        type(y) is np.ndarray
        and y.shape == (n,)
        and y.flags.c_contiguous
        and (y.dtype.kind in "biu" or (y.dtype in FLOATS and bool(np.isfinite(y).all())))
    )


def _with_whole_items(X: Given) -> Any:
    """X, an array of it in this processor's byte order and alignment, which fields of records and FITS files lack."""
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "biuf":
        return X
    is_whole = X.flags.aligned and X.dtype.isnative and not any(stride % X.itemsize for stride in X.strides)
    return X if is_whole else X.astype(X.dtype.newbyteorder("="))


def _with_dtype(rows: Rows, dtype: Any) -> Rows:
    """Rows of one of the dtypes, or converted to the first: scikit-learn leaves a frame of sparse booleans as it is."""
    dtypes = dtype if isinstance(dtype, list) else [dtype]
    return rows if rows.dtype in dtypes else rows.astype(dtypes[0])


def shown(value: object) -> str:
    """A value in a message, as the user wrote it: 1, not np.int64(1); an array as a list."""
    return repr(_to_python(value))


def _to_python(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.ndim:
        return [_to_python(entry) for entry in value.tolist()]
    return value.item() if isinstance(value, np.generic) else value


def check_number(
    name: str, value: Any, *, least: float = -np.inf, above: float = -np.inf, below: float = np.inf
) -> None:
    """The value must be a finite number, at least `least`, greater than `above` and less than `below`."""
    if type(value) is float and value > above and least <= value < below:  # of most fits
        return
    try:
        is_finite = not isinstance(value, bool) and isinstance(value, _NUMBERS) and math.isfinite(value)
    except OverflowError:  # of an integer beyond float64
        is_finite = False
    if not is_finite:
        remedy = ": use float(...)" if isinstance(value, Fraction) else ""
        raise ValueError(f"{name} must be a finite number, got {shown(value)}{remedy}")
    if value < least or value <= above or value >= below:
        bound = f"less than {below:g}" if value >= below else f"greater than {above:g}"
        raise ValueError(f"{name} must be {f'at least {least:g}' if value < least else bound}, got {shown(value)}")


def check_magnitude(name: str, values: Any, most: float) -> None:
    """The largest magnitude of X or y must be at most `most`, and at least 1 / `most` unless it is 0.

    Squares of others overflow, or are no normal numbers. float32 has neither. Of several targets each is checked.
    """
    entries = values if isinstance(values, np.ndarray) else values.data
    if entries.dtype != np.float64 or not entries.size:
        return
    columns = entries.T if name == "y" and entries.ndim == 2 else [entries]
    for largest in [max(float(column.max()), -float(column.min())) for column in columns]:
        if largest > most:
            raise ValueError(f"{name} must be at most {most:g} in magnitude, got {largest}: scale it")
        if 0 < largest < 1 / most:
            raise ValueError(f"{name} must have magnitudes of at least {1 / most:g}, got at most {largest}: scale it")


def check_integer(name: str, value: object, least: int) -> None:
    """The value must be an integer, at least `least`, of at most 64 bits."""
    if type(value) is int and least <= value <= sys.maxsize:  # `Integral` is slow to ask
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be an integer, at least {least}, got {shown(value)}")
    if int(value) > sys.maxsize:
        raise ValueError(f"{name} must be at most {sys.maxsize}, got {shown(value)}")


def check_flag(**values: object) -> None:
    """Each value must be True or False."""
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {shown(value)}")


def check_n_jobs(value: object) -> None:
    """None or an integer other than 0, at most 4096."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 < abs(int(value)) <= sys.maxsize:
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {shown(value)}")
    if int(value) > MOST_THREADS:
        raise ValueError(f"n_jobs must be at most {MOST_THREADS}, got {shown(value)}")


def check_verbose(value: object) -> None:
    """An integer, at least 0, or a flag."""
    if not isinstance(value, bool | np.bool_):
        check_integer("verbose", value, 0)


def check_seed(value: RandomState) -> None:
    """None, an integer or a RandomState."""
    try:
        if isinstance(value, bool):
            raise ValueError  # a flag, which scikit-learn takes for a number
        check_random_state(value)
    except ValueError as error:
        raise ValueError(f"random_state must be None, an integer >= 0 or a RandomState, got {shown(value)}") from error


def make_rng(random_state: RandomState, *, seed_of_none: int | None = None) -> np.random.Generator:
    """A generator from the parameter `random_state`; None gives a random seed, or `seed_of_none` if that is given."""
    if random_state is None and seed_of_none is not None:
        return np.random.default_rng(seed_of_none)
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def is_auto(value: object) -> bool:
    """Whether a parameter is the word "auto": an array is not."""
    return isinstance(value, str) and value == "auto"


def check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """The value must be one of the choices."""
    if not isinstance(value, str | int) or value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {shown(value)}")


def check_kernel(model: Model, *others: str) -> None:
    """Raise a ValueError that names the first invalid parameter of the kernel and its value.

    `others` are kernels beside `KERNELS`; where there are any, also callables are allowed.
    """
    if not (others and callable(model.kernel)):
        check_choice("kernel", model.kernel, (*KERNELS, *others))
    names = getattr(model, "_gamma_names", ("scale", "auto"))
    if model.gamma is None or (isinstance(model.gamma, str) and model.gamma not in names):
        raise ValueError(f"gamma must be a number above 0, or one of {list(names)}, got {shown(model.gamma)}")
    if not isinstance(model.gamma, str):
        check_number("gamma", model.gamma, above=0)
    check_integer("degree", model.degree, 0)
    check_number("coef0", model.coef0)


def check_resources(model: Model) -> None:
    """Raise a ValueError that names the first invalid one of `max_time`, `n_jobs`, `verbose` and the memory budget."""
    if model.max_time is not None:
        check_number("max_time", model.max_time, least=0)
    check_n_jobs(model.n_jobs)
    check_verbose(model.verbose)
    memory_plan(model)


def check_pseudo_rule(value: object) -> None:
    """None, or the name of a rule for pseudo-landmarks."""
    if value is not None and (not isinstance(value, str) or value not in ("triangle", "polynomial")):
        raise ValueError(f"pseudo must be one of ['triangle', 'polynomial', None], got {shown(value)}")


def check_pseudo(model: Model) -> None:
    """Raise a ValueError that names the kernel or the rule for pseudo-landmarks, where one does not fit the other."""
    check_pseudo_rule(model.pseudo)
    if model.pseudo == "triangle" and model.kernel not in DISTANCE_KERNELS:
        raise ValueError(
            f"pseudo='triangle' needs a kernel of distances, {' or '.join(DISTANCE_KERNELS)}, "
            f"got kernel={model.kernel!r}; use pseudo='polynomial' or None"
        )


def check_landmarks(landmarks: Given, X: Given) -> AnyArray:
    """A user's landmarks (m, d), as a dense copy of X's dtype."""
    if getattr(landmarks, "ndim", np.ndim(landmarks) if isinstance(landmarks, list | tuple) else 0) != 2:
        raise ValueError(
            f"landmarks must be the name of a method or an array of two dimensions, got {shown(landmarks)}"
        )
    points = check_array(landmarks, accept_sparse="csr", dtype=X.dtype, copy=True, input_name="landmarks")
    points = np.ascontiguousarray(points.toarray() if sp.issparse(points) else points)
    if points.shape[1] != X.shape[1]:
        raise ValueError(f"landmarks must have {X.shape[1]} columns, as X has, got {points.shape[1]}")
    check_magnitude("landmarks", points, LARGEST_ENTRY)
    return points


def check_labels(y: AnyArray) -> None:
    """Raise a ValueError unless y, which has no missing entry, can be class labels: whole numbers always can."""
    if y.dtype.kind in "biu":
        return
    kinds = list(dict.fromkeys(map(type, y))) if y.dtype.kind in "OS" else []
    if not all(issubclass(kind, str) for kind in kinds):
        rows = [next(row for row, label in enumerate(y) if type(label) is kind) for kind in kinds[:3]]
        found = ", ".join(f"{shown(y[row])} in row {row}" for row in rows)
        is_bytes = any(issubclass(kind, bytes) for kind in kinds)
        remedy = "np.char.decode(np.asarray(y, bytes))" if is_bytes else "y.astype(int) or y.astype(str)"
        wanted = "y must have labels of one type, numbers or text"
        raise ValueError(f"Unknown label type: {wanted}, got {found}: convert them by {remedy}")
    check_classification_targets(y)


def check_present(y: Given) -> None:
    """Raise a ValueError that names the rows in which labels or targets are missing: NaN, None, NaT or pandas' NA."""
    values: AnyArray = np.asarray(y)
    if values.dtype.kind in "mM" or (values.dtype.kind == "f" and np.isnan(values.sum())):
        is_missing = values != values
    elif values.dtype.kind == "O" and not set(map(type, values.flat)) <= {str, int, bool}:
        is_missing = np.reshape([_is_missing(value) for value in values.flat], values.shape)
    else:
        return
    rows = np.flatnonzero(is_missing.reshape(len(values), -1).any(axis=1)).tolist() if values.ndim else []
    if rows:
        found = f"rows {', '.join(map(str, rows[:10]))}" if len(rows) > 1 else f"row {rows[0]}"
        more = f", ... ({len(rows)} in all)" if len(rows) > 10 else ""
        raise ValueError(
            f"y must have no missing values, but has NaN, None or NaT in {found}{more}: leave these rows out"
        )


def check_targets(X: Given, y: AnyArray) -> Vector:
    """Targets of a regression on X as float64: a ValueError says which are no finite numbers."""
    if y.dtype.kind in "mM":
        raise ValueError(f"y must hold numbers, but has times: {y.flat[0]}. Use numbers of days, for example")
    with faults_named(X, y):
        targets: Vector = y.astype(np.float64, copy=False)
    if not np.isfinite(targets).all():
        check_present(targets)  # None among objects has become NaN
        raise ValueError(f"y must be finite, got {shown(targets[~np.isfinite(targets)][0])}")
    check_magnitude("y", targets, LARGEST_TARGET)
    return targets


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or bool(np.ndim(value) == 0 and value != value)


def column_of(y: Given) -> AnyArray:
    """The labels or targets (n,) of a dask collection X, computed where they are one too, without missing ones."""
    values = compute_values(y)
    check_present(values)
    return np.asarray(column_or_1d(values, warn=True))


def check_weights(sample_weight: Given, X: Given, *, may_be_zero: bool = False) -> Vector:
    """Sample weights as float64 of shape (n,): ones by default, none negative, not all zero unless they may be."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    if may_be_zero and np.shape(sample_weight) == (_num_samples(X),) and not np.any(sample_weight):
        return np.zeros(_num_samples(X))
    weights: Vector = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if np.any(weights < 0):
        raise ValueError(f"sample_weight must not be negative, got {weights.min():g}")
    if not may_be_zero and not np.any(weights > 0):
        raise ValueError("sample_weight must have at least one positive value, all are zero")
    return weights


def upper_bounds(C: float, weights: Vector) -> Vector:
    """C times the weights (n,), the bounds of the dual variables.

    Compiled loops take denormal numbers for zero, and so does this. Raises a ValueError unless the bounds are finite
    and one is left.
    """
    heaviest = float(weights.max(initial=0.0))
    if not math.isfinite(most := float(C) * heaviest):
        largest = f"C={shown(C)} and a weight of {heaviest:g}"
        raise ValueError(f"C times sample_weight (times class_weight) must be finite, got {largest}")
    if len(weights) and most < LEAST_NORMAL:
        largest = f"C={shown(C)} and a largest weight of {heaviest:g}"
        raise ValueError(f"C times sample_weight (times class_weight) must be at least {LEAST_NORMAL:g}, got {largest}")
    upper: Vector = float(C) * weights  # NumPy keeps integers beyond 64 bits as objects
    upper[upper < LEAST_NORMAL] = 0.0
    return upper


def number_classes(
    labels: AnyArray, weights: Vector | None = None, team: ThreadTeam | None = None
) -> tuple[AnyArray, NDArray[np.signedinteger]]:
    """The classes (k,) of positive weight, at least two, and each row's number (n,) among them; without weight any."""
    if weights is None or weights.min() > 0:
        if len(labels) > _FEW_LABELS and (two := _number_two(labels, team or ONE_THREAD)) is not None:
            return two
        classes = np.unique(labels)
    else:
        classes = np.unique(labels[weights > 0])
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes with positive weight, got one class: {shown(classes[0])}")
    return classes, np.minimum(classes.searchsorted(labels), len(classes) - 1)


def _number_two(labels: AnyArray, team: ThreadTeam) -> tuple[AnyArray, NDArray[np.int8]] | None:
    """`number_classes` of two classes, None of more: comparisons take a tenth of the time of sorting."""
    blocks, one = value_blocks(len(labels), 1), labels[0]
    is_other = np.concatenate(team.map(lambda rows: labels[rows] != one, blocks))
    other = labels[np.argmax(is_other)]
    if other == one or not all(team.map(lambda rows: np.array_equal(labels[rows] == other, is_other[rows]), blocks)):
        return None
    classes = np.unique(np.array([one, other], dtype=labels.dtype))
    return classes, (is_other if classes[1] == other else ~is_other).view(np.int8)


def class_factors(class_weight: Given, classes: AnyArray, y: Labels, weights: Vector) -> Vector:
    """The factor of each class (k,): 1, the given one, or "balanced" by total sample weight among those that have any.

    As in scikit-learn, labels that are not among the classes are ignored (a fold of cross-validation may lack one),
    unless the mapping lacks a class, too: then they are taken for a mistake. `y` (n,) are class numbers.
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(y, weights, minlength=len(classes))
        n_present = np.count_nonzero(totals)
        return np.asarray(np.divide(weights.sum(), n_present * totals, out=np.ones(len(classes)), where=totals > 0))
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {shown(class_weight)}")
    labels = _to_python(classes)
    unknown = [_to_python(label) for label in class_weight if label not in labels]
    lacking = [label for label in labels if label not in class_weight]
    if unknown and lacking:
        raise ValueError(
            f"class_weight has labels that y lacks, {unknown}, but not all that y has: {lacking} are missing"
        )
    return np.array([_class_factor(class_weight, label) for label in labels])


def _class_factor(class_weight: Mapping[Any, float], label: Any) -> float:
    factor = class_weight.get(label, 1.0)
    check_number(f"class_weight of label {label!r}", factor, least=0)
    return float(factor)


def validate_data(estimator: Model, X: Given, y: Given, **how: Any) -> Any:
    """scikit-learn's `validate_data`, whose errors name columns of text or dates and rows without a label."""
    if columns := _unread_columns(X):
        raise text_error(columns)
    with faults_named(X, y):
        validated = sklearn_validate_data(estimator, X, y, **how)
    if isinstance(validated, tuple) and validated[1].dtype.kind in "OmM":  # scikit-learn has found NaN in others
        check_present(validated[1])
    return validated


@contextmanager
def faults_named(X: Given, y: Given = None) -> Iterator[None]:
    """Raise scikit-learn's errors of X and y again, with the names or numbers of columns and rows that are wrong."""
    try:
        yield
    except (TypeError, ValueError) as error:
        message = str(error)
        first = next(iter(X), None) if isinstance(X, list | tuple) or getattr(X, "ndim", 0) == 1 else None
        if isinstance(first, str | bytes):
            raise ValueError(
                f"X must be a table of numbers, but is a list of text: {shown(first[:40])}. Make numbers of it by a "
                "sklearn.feature_extraction.text.TfidfVectorizer before the model, in a Pipeline"
            ) from error
        is_object = "float() argument" in message  # such as a date of Python's: a TypeError, as scikit-learn wants it
        is_of_types = is_object or "promot" in message or "could not convert string" in message
        if is_of_types and (columns := _text_columns(X)):
            named = text_error(columns)
            raise (TypeError(f"{message}. {named}") if is_object else named) from error
        if "Input X" not in message:
            check_present(y)
        if is_of_types:
            raise ValueError("y must hold numbers, but has text or other objects") from error
        raise


def text_error(columns: Sequence[Any]) -> ValueError:
    """The error for a table in which these columns are text."""
    names = ", ".join(map(shown, columns[:10]))
    more = f", ... ({len(columns)} in all)" if len(columns) > 10 else ""
    return ValueError(
        f"X has columns that are not numbers: {names}{more}. Encode them: text by a ColumnTransformer with a "
        "OneHotEncoder (categories) or a TfidfVectorizer (sentences) in a Pipeline, on the command line by --one-hot; "
        "dates as numbers of days"
    )


def _unread_columns(X: Given) -> list[Any]:
    """Columns of a frame whose type is no number though NumPy makes one of it: dates, durations, coded categories."""
    if hasattr(X, "schema"):  # Polars, pyarrow
        fields = X.schema.items() if hasattr(X.schema, "items") else ((field.name, field.type) for field in X.schema)
        return [name for name, dtype in fields if not _NUMBER_TYPES.match(str(dtype).lower())]
    pairs = X.dtypes.items() if hasattr(getattr(X, "dtypes", None), "items") else ()
    return [name for name, dtype in pairs if getattr(dtype, "kind", "O") in "mM"]


def _text_columns(X: Given) -> list[Any]:
    columns = np.atleast_2d(np.asarray(X, dtype=object)).T
    names = list(X.columns) if hasattr(X, "columns") else range(len(columns))
    return [name for name, column in zip(names, columns, strict=False) if not _is_numeric(column)]


def _is_numeric(column: AnyArray) -> bool:
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def to_float32(X: Given) -> Rows:
    """The rows, of a kernel machine's validation, as float32: themselves if they are."""
    with np.errstate(over="ignore"):
        converted = X.astype(np.float32, copy=False)
    if converted is X:
        return X
    if not np.isfinite(converted.data if sp.issparse(X) else converted).all():
        raise ValueError("X has values beyond the range of float32, in which the model learns. Scale X")
    return converted


def check_training_data(estimator: Model, X: Given, y: Given) -> tuple[Rows, AnyArray]:
    """Check X and labels (n,) as scikit-learn does: a large file block by block, a dask collection without its rows."""
    X, labels = _check_rows(estimator, X, y)
    check_labels(labels)
    return X, labels


def check_regression_data(estimator: Model, X: Given, y: Given) -> tuple[Rows, Vector]:
    """As `check_training_data`, of finite targets (n_samples,)."""
    X, targets = _check_rows(estimator, X, y, y_numeric=True)
    return X, check_targets(X, targets)


def _check_rows(estimator: Model, X: Given, y: Given, **how: Any) -> tuple[Rows, AnyArray]:
    if is_dask_collection(X):
        if y is None:
            raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
        check_collection(estimator, X)
        targets = column_of(y)
        check_has_rows(len(targets), X)
        return X, targets
    pages = mapped_pages(X, memory_plan(estimator).budget)
    how = {"accept_sparse": "csr", "dtype": FLOATS, "ensure_all_finite": pages is None, **how}
    X, labels = validate_rows(estimator, X, y, **how)
    if pages is not None and not has_finite_rows(X, pages):
        raise ValueError("Input X contains NaN or infinity.")
    return X, labels


def check_has_rows(n: int, X: Given) -> None:
    """Raise a ValueError if a dask collection X has n = 0 rows."""
    if n == 0:
        raise ValueError(f"X must have rows, got none: shape (0, {X.shape[1]})")


def check_collection(estimator: Model, X: Given) -> None:
    """Check that a dask collection has two dimensions, and keep the number and the names of its features."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    meta: Given = getattr(X, "_meta", X)  # an empty frame with X's columns
    if hasattr(meta, "dtypes"):
        text = [name for name, dtype in meta.dtypes.items() if getattr(dtype, "kind", "O") not in "biuf"]
        if text:
            raise text_error(text)
    _check_feature_names(estimator, meta, reset=True)
    estimator.n_features_in_ = X.shape[1]
