"""Rows and labels in the forms that files and frames give: fields of records, other byte orders, dask, gaps, bytes."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

from every_estimator import CLASSIFIERS, ESTIMATORS, SEARCHES, answer, name_of
from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCSVMClassifier,
    DCSVMRegressor,
    OCASClassifier,
    OCASRanker,
    OCASRegressor,
)
from widemargin.data.remote.partitions import partitions_of

LINEAR = [OCASClassifier(), OCASRegressor(), OCASRanker()]
EXACT = [DCSVMClassifier(), DCSVMRegressor(), DCOneClassSVM()]
N = 60
X = np.random.default_rng(0).normal(size=(N, 2))
Y = (X[:, 0] > 0).astype(int)


def field_of_records(dtype: str) -> NDArray[Any]:
    """X as the field of a structured array whose records are 4 bytes longer than X's rows, and unaligned."""
    records = np.zeros(N, [("flag", "u1"), ("x", dtype, 2), ("rest", "u1", 3)])
    records["x"] = X
    records = np.frombuffer(records.tobytes(), records.dtype)  # as from a file: read-only
    assert records["x"].strides[0] == 2 * np.dtype(dtype).itemsize + 4
    return records["x"]


@pytest.mark.parametrize("dtype", ["<f8", ">f4"])
@pytest.mark.parametrize("estimator", [DCSVMClassifier(), OCASClassifier()], ids=name_of)
def test_fields_of_records_are_rows_of_numbers(estimator: Any, dtype: str) -> None:
    rows, plain = field_of_records(dtype), X.astype(dtype[1:])
    model, wanted = (clone(estimator).fit(some, Y) for some in (rows, plain))
    np.testing.assert_array_equal(answer(model, rows), answer(wanted, plain))
    np.testing.assert_array_equal(answer(wanted, rows), answer(wanted, plain))


def test_fields_of_records_in_a_stream_and_in_a_frame() -> None:
    pd, rows = pytest.importorskip("pandas"), field_of_records("<f8")
    streams = [BSGDClassifier().partial_fit(some, Y, classes=[0, 1]) for some in (rows, X)]
    np.testing.assert_array_equal(*[answer(stream, X) for stream in streams])
    frame = pd.DataFrame(rows, columns=["a", "b"], copy=False)
    model, wanted = OCASClassifier().fit(frame, Y), OCASClassifier().fit(X, Y)
    np.testing.assert_array_equal(answer(model, frame), answer(wanted, X))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS + SEARCHES, ids=name_of)
def test_names_of_a_dask_frame_are_kept_and_checked(estimator: Any) -> None:
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    pytest.importorskip("distributed")
    frame = pd.DataFrame(X, columns=["a", "b"])
    swapped = frame[["b", "a"]]
    model = clone(estimator).fit(dd.from_pandas(frame, npartitions=2), Y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    for rows in (swapped, dd.from_pandas(swapped, npartitions=2)):
        with pytest.raises(ValueError, match="feature names should match"):
            answer(model, rows)


@pytest.mark.slow
def test_many_small_chunks_are_joined_and_others_are_not() -> None:
    da = pytest.importorskip("dask.array")
    rows = np.random.default_rng(0).normal(size=(300, 2))
    parts = [part.compute() for part in partitions_of(da.from_array(rows, chunks=(1, 1)))]
    assert len(parts) == 17
    np.testing.assert_array_equal(np.concatenate(parts), rows)
    wide = da.ones((40, 2**18), chunks=(1, -1))  # 2 MiB a row
    filtered = da.from_array(rows, chunks=(10, 2))[da.from_array(rows[:, 0] > 0, chunks=10)]  # of unknown sizes
    assert (len(partitions_of(wide)), len(partitions_of(filtered))) == (20, 30)


def test_a_dask_collection_without_rows_is_refused() -> None:
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=2)
    stream = partial(BSGDClassifier().partial_fit, classes=[0, 1])
    for fit in (*(clone(machine).fit for machine in [*LINEAR, *EXACT]), stream):
        with pytest.raises(ValueError, match=r"X must have rows, got none: shape \(0, 2\)"):
            fit(frame[frame.a > 99], np.zeros(0))


TEXT = np.where(Y, "yes", "no")
DATES = np.where(Y, np.datetime64("2026-01-01"), np.datetime64("2025-01-01"))


def with_gaps(labels: NDArray[Any], gap: Any, *rows: int) -> NDArray[Any]:
    labels = labels.copy()
    labels[list(rows)] = gap
    return labels


def missing_labels() -> dict[str, Any]:
    labels = {
        "NaT": with_gaps(DATES, "NaT", 3, 17),
        "NaN in text": with_gaps(TEXT.astype(object), np.nan, 3, 17),
        "None in text": with_gaps(TEXT.astype(object), None, 3, 17),
        "NaN": with_gaps(Y.astype(float), np.nan, 3, 17),
    }
    try:
        import pandas as pd
    except ImportError:
        return labels
    return {
        **labels,
        "NA": pd.Series(with_gaps(Y.astype(object), pd.NA, 3, 17), dtype="Int64"),
        "NA in text": pd.Series(with_gaps(TEXT.astype(object), pd.NA, 3, 17), dtype="string"),
        "no category": pd.Series(with_gaps(TEXT.astype(object), None, 3, 17), dtype="category"),
    }


@pytest.mark.parametrize("kind", missing_labels())
def test_rows_without_a_label_are_named_on_dask_and_in_streams(kind: str) -> None:
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    rows, labels = da.from_array(X, chunks=(10, 2)), dd.from_pandas(pd.Series(missing_labels()[kind]), npartitions=3)
    classes = np.unique(DATES) if kind == "NaT" else [0.0, 1.0] if kind in ("NaN", "NA") else ["no", "yes"]
    stream = BSGDClassifier()
    for fit in (
        DCSVMClassifier().fit,
        OCASClassifier().fit,
        lambda X, y: stream.partial_fit(X, y, classes=classes),
        lambda X, y: stream.partial_fit(X.compute(), y.compute(), classes=classes),
    ):
        with pytest.raises(ValueError, match="has NaN, None or NaT in rows 3, 17"):
            fit(rows, labels)
    assert not hasattr(stream, "t_")  # nor were the blocks before them learnt


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name_of)
def test_dates_are_labels(estimator: Any) -> None:
    model = clone(estimator).fit(X, DATES)
    np.testing.assert_array_equal(model.classes_, np.unique(DATES))
    assert model.predict(X[:5]).dtype == DATES.dtype


def test_targets_on_dask_are_checked_as_in_memory() -> None:
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, chunks=(30, 2))
    for targets, message in ((DATES, "has times"), (TEXT, "must hold numbers"), (Y * 1e200, "at most 1e\\+100")):
        with pytest.raises(ValueError, match=message):
            DCSVMRegressor().fit(rows, targets)
