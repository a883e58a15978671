"""Tables with text: every estimator names the columns, and pipelines that encode them are trained and saved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from widemargin import DCSVMClassifier, DCSVMRegressor, compress, suggest

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def frame() -> Any:
    rng = np.random.default_rng(0)
    kinds = pd.Categorical(rng.choice(["u", "v"], 30))
    return pd.DataFrame({"a": rng.normal(size=30), "work": rng.choice(["x", "y"], 30), "kind": kinds, "n": ["1"] * 30})


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
