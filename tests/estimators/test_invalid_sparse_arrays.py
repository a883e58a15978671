"""Sparse arrays whose indices are not what their shape says: every estimator refuses them before they are read.

SciPy and compiled loops read and write wherever such indices say. Without the check these tests end the process.
"""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import BSGDClassifier, DCSVMClassifier, OCASClassifier, compress
from widemargin.data.csr import check_sparse

N, D, FAR = 100, 40, 10**9
Y = np.arange(N) % 2


def valid(kind: type = sp.csr_array, width: type = np.int32) -> Any:
    rng = np.random.default_rng(0)
    X = kind(np.where(rng.random((N, D)) < 0.2, rng.normal(size=(N, D)), 0.0))
    for name in ("indices", "indptr"):
        if hasattr(X, name):
            setattr(X, name, getattr(X, name).astype(width))
    return X


def with_index(value: int, kind: type = sp.csr_array, width: type = np.int32) -> Any:
    X = valid(kind, width)
    X.indices[57] = value
    return X


def with_pointer(where: int, value: int) -> Any:
    X = valid()
    X.indptr[where] = value
    return X


def shortened(name: str) -> Any:
    X = valid()
    setattr(X, name, getattr(X, name)[:5].copy())
    return X


def narrowed(*shape: int) -> Any:
    X = valid()
    X._shape = shape
    return X


def coordinates(axis: int, value: int) -> Any:
    X = valid(sp.coo_array)
    X.coords[axis][57] = value
    return X


def lists(value: int) -> Any:
    X = valid(sp.lil_array)
    X.rows[7] = [value] * len(X.rows[7])
    return X


def too_few_diagonals() -> Any:
    X = sp.dia_array((np.ones((3, D)), [0, 1, -2]), shape=(N, D))
    X.offsets = X.offsets[:1].copy()
    return X


def far_keys() -> Any:
    X = valid(sp.dok_array)
    X._dict[FAR, 3] = 1.0
    return X


def uneven_lists() -> Any:
    X = valid(sp.lil_array)
    X.data[7] = X.data[7] * 1000
    return X


INVALID: dict[str, Callable[[], Any]] = {
    "every index far beyond": lambda: sp.csr_array(
        (np.ones(N), np.full(N, FAR, np.int32), np.arange(N + 1)), shape=(N, D)
    ),
    "index far beyond": lambda: with_index(FAR),
    "index of 64 bits": lambda: with_index(2**40, width=np.int64),
    "index = n_features": lambda: with_index(D),
    "negative index": lambda: with_index(-1),
    "a matrix": lambda: with_index(FAR, sp.csr_matrix),
    "csc": lambda: with_index(FAR, sp.csc_array),
    "csc, negative": lambda: with_index(-5, sp.csc_array),
    "bsr": lambda: with_index(FAR, sp.bsr_array),
    "falling indptr": lambda: with_pointer(50, 0),
    "negative indptr": lambda: with_pointer(50, -FAR),
    "indptr far beyond": lambda: with_pointer(50, FAR),
    "last indptr beyond": lambda: with_pointer(N, FAR),
    "first indptr negative": lambda: with_pointer(0, -FAR),
    "first indptr positive": lambda: with_pointer(0, 1),
    "short data": lambda: shortened("data"),
    "short indices": lambda: shortened("indices"),
    "short indptr": lambda: shortened("indptr"),
    "narrowed": lambda: narrowed(N, 3),
    "more rows": lambda: narrowed(10 * N, D),
    "fewer rows": lambda: narrowed(N - 1, D),
    "coo row": lambda: coordinates(0, FAR),
    "coo column": lambda: coordinates(1, FAR),
    "coo negative": lambda: coordinates(0, -FAR),
    "lil": lambda: lists(FAR),
    "lil, uneven": uneven_lists,
    "dia": too_few_diagonals,
    "dok": far_keys,
}


@cache
def fitted(kind: type) -> Any:
    return kind().fit(valid(), Y)


def refuse_all(*calls: Callable[..., Any], with_labels: bool = True) -> None:
    """Every call refuses every array; the pytest report of a failure has its name."""
    for name, make in INVALID.items():
        X = make()
        more = (np.arange(X.shape[0]) % 2,) if with_labels else ()
        for call in calls:
            with pytest.raises(ValueError) as caught:  # noqa: PT011
                call(X, *more)
            assert re.search(r"array|dimension", str(caught.value)), name


@pytest.mark.parametrize("kind", [DCSVMClassifier, OCASClassifier])
def test_fit_and_predict(kind: type) -> None:
    """`test_refused_data` has a few of these arrays for every estimator."""
    refuse_all(kind().fit)
    refuse_all(fitted(kind).predict, fitted(kind).decision_function, with_labels=False)


def test_a_stream() -> None:
    stream = BSGDClassifier(budget=20, lam=1e-2)
    refuse_all(lambda X, y: stream.partial_fit(X, y, [0, 1]))
    refuse_all(stream.partial_fit(valid(), Y, [0, 1]).partial_fit)


def test_compress() -> None:
    model = fitted(DCSVMClassifier)
    small = compress(model, valid(), random_state=0)
    refuse_all(partial(compress, model), small.predict, with_labels=False)


def test_a_path_of_C() -> None:
    refuse_all(lambda X, y: OCASClassifier().fit_path(X, y, [1.0]))


def test_rows_of_scikit_learns_models_are_checked_too() -> None:
    svm = pytest.importorskip("sklearn.svm")
    model = svm.SVC().fit(valid(), Y)
    model.support_vectors_.indices[3] = FAR
    with pytest.raises(ValueError, match="array"):
        compress(model)


@pytest.mark.parametrize(
    "change", ["read-only", "strided", "reversed", "mixed dtypes", "64 bits", "short integers", "spare room"]
)
@pytest.mark.parametrize("kind", [DCSVMClassifier, OCASClassifier])
def test_unusual_arrays_that_are_right(kind: type, change: str) -> None:
    X = valid()
    for key in ("data", "indices", "indptr"):
        values = getattr(X, key)
        if change == "read-only":
            values.flags.writeable = False
        elif change == "strided":
            setattr(X, key, np.repeat(values, 2)[::2])
        elif change == "reversed":
            setattr(X, key, values[::-1].copy()[::-1])
        elif change == "spare room" and key != "indptr":
            setattr(X, key, np.append(values, values[:3]))
    if change == "mixed dtypes":
        X.indptr = X.indptr.astype(np.int64)
    elif change == "64 bits":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    elif change == "short integers":
        X.indices = X.indices.astype(np.int16)
    estimator = fitted(kind)
    np.testing.assert_allclose(estimator.decision_function(X), estimator.decision_function(valid()), atol=1e-9)
    other = kind().fit(X, Y)
    np.testing.assert_allclose(other.decision_function(valid()), estimator.decision_function(valid()), atol=0.1)


@pytest.mark.parametrize("kind", [sp.csc_array, sp.coo_array, sp.bsr_array, sp.lil_array, sp.dok_array, sp.dia_array])
def test_other_formats_that_are_right(kind: type) -> None:
    estimator = fitted(OCASClassifier)
    np.testing.assert_allclose(
        estimator.decision_function(kind(valid())), estimator.decision_function(valid()), atol=1e-12
    )


def test_wide_indices_are_converted_once() -> None:
    X = sp.csr_array(np.eye(3))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    checked = check_sparse(X)
    assert checked.indices.dtype == np.int32
    assert X.indices.dtype == np.int64
    assert np.shares_memory(checked.data, X.data)
    assert check_sparse(checked) is checked
