"""Tables with text: every estimator names the columns, and pipelines that encode them are trained and saved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import widemargin
from widemargin import DCSVMClassifier, DCSVMRegressor, compress, suggest

pd = pytest.importorskip("pandas")
KINDS = [kind for name in widemargin.__all__ if hasattr(kind := getattr(widemargin, name), "fit")]


@pytest.fixture(scope="module")
def frame() -> Any:
    rng = np.random.default_rng(0)
    kinds = pd.Categorical(rng.choice(["u", "v"], 30))
    return pd.DataFrame({"a": rng.normal(size=30), "work": rng.choice(["x", "y"], 30), "kind": kinds, "n": ["1"] * 30})


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_text_are_named(kind: Any, frame: Any) -> None:
    y = np.arange(30) % 2
    with pytest.raises(ValueError, match="X has columns that are not numbers: 'work', 'kind'. Encode them") as caught:
        kind().fit(frame, y)
    assert "--one-hot" in str(caught.value)
    for X in (frame.to_numpy(), frame.to_numpy().tolist(), frame.to_numpy().astype(str)):
        with pytest.raises(ValueError, match="X has columns that are not numbers: 1, 2. Encode them"):
            kind().fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_dates_are_named(kind: Any) -> None:
    X = pd.DataFrame({"a": np.arange(6.0), "when": pd.date_range("2026-01-01", periods=6)})
    polars, arrow = pytest.importorskip("polars").from_pandas(X), pytest.importorskip("pyarrow").Table.from_pandas(X)
    spans = X.assign(when=X["when"] - X["when"][0])
    coded = arrow.set_column(1, "when", arrow["a"].cast("string").dictionary_encode())  # categories
    for table in (X, X[["when"]], spans, polars, type(polars)(spans.to_dict("list")), arrow, coded):
        with pytest.raises(ValueError, match="X has columns that are not numbers: 'when'. .* dates as numbers of days"):
            kind().fit(table, np.arange(6) % 2)


def test_columns_of_text_are_named_by_functions_and_predictions(frame: Any) -> None:
    y = np.arange(30) % 2
    with pytest.raises(ValueError, match="not numbers: 'work', 'kind'"):
        suggest(frame, y)
    model = DCSVMClassifier().fit(frame[["a"]], y)
    text = frame[["work"]].set_axis(["a"], axis=1)
    for call in (model.predict, lambda X: compress(model, X)):
        with pytest.raises(ValueError, match="not numbers: 'a'"):
            call(text)


@pytest.mark.slow
def test_columns_of_text_of_a_dask_frame_are_named(frame: Any) -> None:
    dd = pytest.importorskip("dask.dataframe")
    with pytest.raises(ValueError, match="not numbers: 'work', 'kind'"):
        DCSVMClassifier().fit(dd.from_pandas(frame[["a", "work", "kind"]], npartitions=2), np.arange(30) % 2)


def test_text_among_targets_is_not_taken_for_columns() -> None:
    with pytest.raises(ValueError, match="y must hold numbers, but has text"):
        DCSVMRegressor().fit(np.eye(2), ["a", "b"])


def test_many_columns_of_text_are_counted() -> None:
    with pytest.raises(ValueError, match=r"not numbers: 0, 1, .*, 9, \.\.\. \(25 in all\)"):
        DCSVMClassifier().fit(np.full((4, 25), "a", dtype=object), [0, 1, 0, 1])
