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


# What is wrong, the format, and how an array of it becomes so.
INVALID: dict[str, tuple[type, Callable[[Any], object]]] = {
    "every index far beyond": (sp.csr_array, lambda X: X.indices.fill(FAR)),
    "index far beyond": (sp.csr_array, lambda X: X.indices.put(57, FAR)),
    "index of 64 bits": (sp.csr_array, lambda X: X.indices.put(57, 2**40)),
    "index = n_features": (sp.csr_array, lambda X: X.indices.put(57, D)),
    "negative index": (sp.csr_array, lambda X: X.indices.put(57, -1)),
    "a matrix": (sp.csr_matrix, lambda X: X.indices.put(57, FAR)),
    "csc": (sp.csc_array, lambda X: X.indices.put(57, FAR)),
    "csc, negative": (sp.csc_array, lambda X: X.indices.put(57, -5)),
    "bsr": (sp.bsr_array, lambda X: X.indices.put(57, FAR)),
    "falling indptr": (sp.csr_array, lambda X: X.indptr.put(50, 0)),
    "negative indptr": (sp.csr_array, lambda X: X.indptr.put(50, -FAR)),
    "indptr far beyond": (sp.csr_array, lambda X: X.indptr.put(50, FAR)),
    "last indptr beyond": (sp.csr_array, lambda X: X.indptr.put(N, FAR)),
    "first indptr negative": (sp.csr_array, lambda X: X.indptr.put(0, -FAR)),
    "first indptr positive": (sp.csr_array, lambda X: X.indptr.put(0, 1)),
    "short data": (sp.csr_array, lambda X: vars(X).update(data=X.data[:5].copy())),
    "short indices": (sp.csr_array, lambda X: vars(X).update(indices=X.indices[:5].copy())),
    "short indptr": (sp.csr_array, lambda X: vars(X).update(indptr=X.indptr[:5].copy())),
    "narrowed": (sp.csr_array, lambda X: vars(X).update(_shape=(N, 3))),
    "more rows": (sp.csr_array, lambda X: vars(X).update(_shape=(10 * N, D))),
    "fewer rows": (sp.csr_array, lambda X: vars(X).update(_shape=(N - 1, D))),
    "coo row": (sp.coo_array, lambda X: X.coords[0].put(57, FAR)),
    "coo column": (sp.coo_array, lambda X: X.coords[1].put(57, FAR)),
    "coo negative": (sp.coo_array, lambda X: X.coords[0].put(57, -FAR)),
    "lil": (sp.lil_array, lambda X: X.rows.__setitem__(7, [FAR] * len(X.rows[7]))),
    "lil, uneven": (sp.lil_array, lambda X: X.data.__setitem__(7, X.data[7] * 1000)),
    "dia": (sp.dia_array, lambda X: vars(X).update(offsets=X.offsets[:1].copy())),
    "dok": (sp.dok_array, lambda X: X._dict.update({(FAR, 3): 1.0})),
}


@cache
def fitted(kind: type) -> Any:
    return kind().fit(valid(), Y)


def refuse_all(*calls: Callable[..., Any], with_labels: bool = True) -> None:
    """Every call refuses every array; the pytest report of a failure has its name."""
    for name, (kind, spoil) in INVALID.items():
        X = valid(kind, np.int64 if "64 bits" in name else np.int32)
        spoil(X)
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
