"""`OCASClassifier` as a scikit-learn estimator: its checks, every form of input, and errors for bad input."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from widemargin import OCASClassifier

Data = tuple[NDArray[np.float64], NDArray[np.int64]]


# ------------------------------------------------------------------------------------------------- forms of input


@pytest.mark.slow
@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forms_of_the_same_data(four: Data, multi_class: str, dtype: type) -> None:
    X, y = four[0][:100].astype(dtype), four[1][:100]
    model = OCASClassifier(0.1, tol=1e-5, multi_class=multi_class).fit(X, y)
    shuffled = sp.csr_matrix(X)
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(shuffled.indptr, shuffled.indptr[1:], strict=False)])
    shuffled.data, shuffled.indices = shuffled.data[order], shuffled.indices[order]
    shuffled.has_sorted_indices = False
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    halves = sp.csr_array(
        (np.repeat(wide.data / 2, 2), np.repeat(wide.indices, 2), 2 * wide.indptr), shape=X.shape
    )  # every entry in two parts
    zeros = sp.csr_array(
        (X.ravel(), np.tile(np.arange(X.shape[1]), len(X)), np.arange(len(X) + 1) * X.shape[1]), X.shape
    )
    for form in (np.asfortranarray(X), sp.csc_matrix(X), wide, shuffled, halves, zeros, X[:, ::-1][:, ::-1]):
        other = OCASClassifier(0.1, tol=1e-5, multi_class=multi_class).fit(form, y)
        assert np.isclose(other.objective_, model.objective_, rtol=1e-4)
        np.testing.assert_array_equal(other.predict(form), model.predict(X))
        np.testing.assert_allclose(model.decision_function(form), model.decision_function(X), atol=1e-4)


def test_zero_rows_and_columns(binary: Data) -> None:
    X, y = binary
    model = OCASClassifier(tol=1e-6, fit_intercept=False).fit(X, y)
    padded = np.vstack([np.column_stack([X, np.zeros(len(X))]), np.zeros((3, X.shape[1] + 1))])
    for form in (padded, sp.csr_array(padded)):
        other = OCASClassifier(tol=1e-6, fit_intercept=False).fit(form, np.append(y, [0, 1, 0]))
        np.testing.assert_allclose(other.coef_[0, :-1], model.coef_[0], atol=1e-3)
        assert other.coef_[0, -1] == 0
        assert np.isclose(other.objective_, model.objective_ + 3.0)  # an all-zero row loses 1, whatever w
    assert OCASClassifier().fit(np.zeros((4, 2)), [0, 1, 1, 1]).predict([[0.0, 0.0]]) == [1]


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 1e308}, "rows of these weights, got 1e+308"),  # the objective at 0 overflows
        ({"C": 1e308, "multi_class": "crammer_singer"}, "C must be at most"),
        ({"C": 10**400}, "C must be a finite number, got 10"),
        ({"n_jobs": 4097}, "n_jobs must be at most 4096, got 4097"),
        (
            {"class_weight": {7: 1.0}},
            "class_weight has labels that y lacks, [7], but not all that y has: [0, 1] are missing",
        ),
    ],
)
def test_bad_parameters(binary: Data, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        OCASClassifier(**options).fit(*binary)


def test_bad_data(binary: Data) -> None:
    X, y = binary
    bad = X.copy()
    bad[3, 2] = np.nan
    for form in (bad, sp.csr_array(bad)):
        with pytest.raises(ValueError, match="contains NaN"):
            OCASClassifier().fit(form, y)
    with pytest.raises(ValueError, match="at least two classes with positive weight, got one class"):
        OCASClassifier().fit(X, y, sample_weight=y.astype(float))
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        OCASClassifier().fit(X, y, sample_weight=np.full(len(y), -1.0))
    with pytest.raises(NotFittedError):
        OCASClassifier().predict(X)
    with pytest.raises(ValueError, match="expecting 6 features"):
        OCASClassifier().fit(X, y).predict(X[:, :5])


def test_nan_in_a_memory_map(tmp_path: Path) -> None:
    X = np.zeros((1000, 4), np.float32)
    X[777, 1] = np.nan
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    with pytest.raises(ValueError, match="contains NaN"):
        OCASClassifier(memory_budget=8000).fit(mapped, np.arange(1000) % 2)
