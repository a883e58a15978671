"""Rows and labels that every estimator refuses with what to do: by `fit`, which changes nothing, and by predictions."""

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from every_estimator import CLASSIFIERS, ESTIMATORS, REGRESSORS, SEARCHES, answer, name_of
from widemargin import (
    DCSVMClassifier,
    DCSVMRegressor,
    DCSVMRegressorCV,
    OCASRanker,
    OCASRegressor,
    RelevanceScaler,
    compress,
    suggest,
)

N = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.arange(N) % 2
TEXT, TIMES = np.where(Y, "yes", "no"), np.datetime64("2026-01-01") + Y.astype("m8[D]")
COLUMNS_OF_TEXT = X.astype(object)
COLUMNS_OF_TEXT[:, 1], COLUMNS_OF_TEXT[:, 2] = TEXT, "1"


def replaced(values: Any, value: Any, *rows: int) -> Any:
    """A copy with another value in some rows, of a table in their second column."""
    copy = values.copy()
    copy[list(rows) if copy.ndim == 1 else (list(rows), 1)] = value
    return copy


def with_index(value: int, kind: type) -> Any:
    rows = kind(X)
    rows.indices[7] = value
    return rows


ROWS: list[tuple[Any, str]] = [
    (replaced(X, np.nan, 3), "Input X contains NaN"),
    (sp.csr_array(replaced(X, np.nan, 3)), "NaN"),
    (sp.csc_array(replaced(X, -np.inf, 3)), "infinity"),
    (with_index(10**9, sp.csr_array), r"row 2 of the CSR array has the column index 1000000000.*\[0, 3\)"),
    (with_index(-1, sp.csc_matrix), r"column 0 of the CSC array has the row index -1.*\[0, 30\)"),
    (COLUMNS_OF_TEXT, "X has columns that are not numbers: 1. Encode them: .* --one-hot"),
    (COLUMNS_OF_TEXT.tolist(), "X has columns that are not numbers: 1. Encode them"),
    (COLUMNS_OF_TEXT.astype(str), "X has columns that are not numbers: 1. Encode them"),
    (["good film", "bad film"] * 15, "X must be a table of numbers, but is a list of text: 'good film'.*Tfidf"),
    (np.array(["good film", "bad film"] * 15), "X must be a table of numbers, but is a list of text: 'good film'"),
]
MAGNITUDES: list[tuple[Any, str]] = [
    (form(scale * X), r"X must (be at most 1e\+150 in magnitude|have magnitudes of at least 1e-150)")
    for form in (np.asarray, sp.csr_array)
    for scale in (1e200, 1e160, 1e-160, 1e-200)
]


def tables() -> list[tuple[Any, str]]:
    pd, polars, arrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    frame = pd.DataFrame({"a": X[:, 0], "when": pd.date_range("2026-01-01", periods=N)})
    kind = pd.Categorical(np.where(Y, "u", "v"))
    table, spans = arrow.Table.from_pandas(frame), frame.assign(when=frame["when"] - frame["when"][0])
    coded = table.set_column(1, "when", table["a"].cast("string").dictionary_encode())  # categories
    dated = frame, frame[["when"]], spans, polars.from_pandas(frame), polars.from_pandas(spans), table, coded
    return [
        (frame.assign(work=TEXT, kind=kind, n="1")[["a", "work", "kind", "n"]], "are not numbers: 'work', 'kind'. Enc"),
        *((each, "X has columns that are not numbers: 'when'. .* dates as numbers of days") for each in dated),
    ]


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *SEARCHES], ids=name_of)
def test_rows(estimator: Any) -> None:
    model = clone(estimator)
    before = dict(vars(model))
    for rows, message in [*ROWS, *MAGNITUDES, *tables()]:
        with pytest.raises(ValueError, match=message):
            model.fit(rows, Y)
    assert vars(model) == before
    model.fit(X, Y)
    for rows, message in ROWS:
        with pytest.raises(ValueError, match=message):
            answer(model, rows)


@pytest.mark.parametrize(
    "estimator", [*CLASSIFIERS, *REGRESSORS, OCASRanker(), RelevanceScaler(), *SEARCHES], ids=name_of
)
def test_missing_labels(estimator: Any) -> None:
    for labels in (replaced(TIMES, "NaT", 3, 17), replaced(TEXT.astype(object), np.nan, 3, 17)):
        with pytest.raises(ValueError, match="y must have no missing values, .* NaN, None or NaT in rows 3, 17: leave"):
            clone(estimator).fit(X, labels)


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, RelevanceScaler(n_iter=1)], ids=name_of)
def test_labels_of_bytes(estimator: Any) -> None:
    for labels in (TEXT.astype(bytes), TEXT.astype(bytes).astype(object)):
        with pytest.raises(ValueError, match=r"y must have labels .*, got b'no' in row 0: .*np\.char\.decode"):
            clone(estimator).fit(X, labels)


@pytest.mark.parametrize("estimator", [*REGRESSORS, OCASRanker(), DCSVMRegressorCV(), None], ids=name_of)
def test_targets(estimator: Any) -> None:
    fit = suggest if estimator is None else clone(estimator).fit
    beyond = r"y must (be at most 1e\+100 in magnitude|have magnitudes of at least 1e-100), got .* scale it"
    for scale in (1e250, 1e160, 1e-160, 1e-250):
        with pytest.raises(ValueError, match=beyond):
            fit(X, X[:, 0] * scale)
        if estimator is not None and not isinstance(estimator, OCASRegressor | OCASRanker):  # several targets
            with pytest.raises(ValueError, match=beyond):
                fit(X, X[:, :2] * [1.0, scale])
    for times in (TIMES, TIMES - TIMES[0]) if estimator is not None else ():
        with pytest.raises(ValueError, match="y must hold numbers, but has times: "):
            fit(X, times)


def test_the_first_rows_are_named_and_all_are_counted() -> None:
    named = re.escape("rows 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (20 in all): leave these rows out")
    with pytest.raises(ValueError, match=named):
        DCSVMClassifier().fit(X, replaced(Y.astype(float), np.nan, *range(20)))
    with pytest.raises(ValueError, match=r"not numbers: 0, 1, .*, 9, \.\.\. \(25 in all\)"):
        DCSVMClassifier().fit(np.full((4, 25), "a", dtype=object), [0, 1, 0, 1])


def test_columns_of_text_are_named_by_functions_and_predictions() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "work": TEXT})
    with pytest.raises(ValueError, match="not numbers: 'work'"):
        suggest(frame, Y)
    model = DCSVMClassifier().fit(frame[["a"]], Y)
    for call in (model.predict, lambda rows: compress(model, rows)):
        with pytest.raises(ValueError, match="not numbers: 'a'"):
            call(frame[["work"]].set_axis(["a"], axis=1))
    with pytest.raises(ValueError, match="y must hold numbers, but has text"):
        DCSVMRegressor().fit(X, TEXT)


@pytest.mark.slow
def test_columns_of_text_of_a_dask_frame_are_named() -> None:
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"a": X[:, 0], "work": TEXT})
    with pytest.raises(ValueError, match="not numbers: 'work'"):
        DCSVMClassifier().fit(dd.from_pandas(frame, npartitions=2), Y)
