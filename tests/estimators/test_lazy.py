"""Prediction on dask collections: lazy, block by block, the values and dtypes of the same rows in memory."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from widemargin import (
    BSGDClassifier,
    DCOneClassSVM,
    DCPredClassifier,
    DCPredRegressor,
    DCSVMClassifier,
    DCSVMClassifierCV,
    DCSVMRegressor,
    DCSVMRegressorCV,
    LandmarkNystroem,
    OCASClassifier,
    OCASClassifierCV,
    RelevanceScaler,
    TwoStepKernelKMeans,
    compress,
)

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
LABELS = np.array(["left", "middle", "right"])[(X[:, :1] > [[-0.4, 0.4]]).sum(axis=1)]
TARGETS = np.column_stack([X[:, 0], np.sin(X[:, 1])])
BLOCKS = (40, 0, 50)  # one has no rows

FITTED = {
    "svm": lambda: DCSVMClassifier().fit(X, LABELS),
    "early": lambda: DCSVMClassifier(n_levels=1, stop_level=1).fit(X, LABELS == "left"),
    "regressor": lambda: DCSVMRegressor().fit(X, TARGETS),
    "one class": lambda: DCOneClassSVM().fit(X),
    "dc_pred": lambda: DCPredClassifier(n_clusters=2, n_landmarks=5).fit(X, LABELS),
    "dc_pred regressor": lambda: DCPredRegressor(n_clusters=2, n_landmarks=5).fit(X, TARGETS[:, 0]),
    "ocas": lambda: OCASClassifier().fit(X, LABELS),
    "bsgd": lambda: BSGDClassifier(budget=20).fit(X, LABELS),
    "nystroem": lambda: LandmarkNystroem(n_landmarks=5).fit(X.astype(np.float32)),
    "relevance": lambda: RelevanceScaler(n_iter=1).fit(X, LABELS),
    "clusters": lambda: TwoStepKernelKMeans(n_clusters=3).fit(X),
    "search": lambda: DCSVMClassifierCV([1.0], [0.5], cv=2).fit(X, LABELS),
    "regression search": lambda: DCSVMRegressorCV([1.0], [0.5], cv=2).fit(X, TARGETS),
    "linear search": lambda: OCASClassifierCV([0.1], cv=2).fit(X, LABELS),
    "compressed": lambda: compress(DCSVMRegressor().fit(X, TARGETS[:, 0]), X, n_clusters=2, n_landmarks=5),
}
METHODS = ("predict", "decision_function", "score_samples", "transform", "decision_gradient")


def with_blocks(rows: NDArray[Any], column_chunks: Any = -1) -> Any:
    return da.from_array(rows, chunks=(BLOCKS, column_chunks))


@pytest.fixture(scope="module", params=FITTED)
def model(request: pytest.FixtureRequest) -> Any:
    return FITTED[request.param]()


def test_values_dtype_and_shape_of_every_method(model: Any) -> None:
    names = [name for name in METHODS if hasattr(model, name)]
    assert names
    for name in names:
        values, lazy = getattr(model, name)(X), getattr(model, name)(with_blocks(X, 2))
        assert (lazy.dtype, lazy.shape, lazy.chunks[0]) == (values.dtype, values.shape, BLOCKS)
        assert isinstance(lazy._meta, np.ndarray)
        result = lazy.compute(scheduler="synchronous")
        assert result.dtype == values.dtype
        np.testing.assert_allclose(result, values, rtol=1e-5) if values.dtype.kind == "f" else (
            np.testing.assert_array_equal(result, values)
        )


def test_nothing_is_computed_before_it_is_asked_for() -> None:
    def fail(block: Any) -> Any:
        raise AssertionError("computed")

    lazy = FITTED["svm"]().predict(with_blocks(X).map_blocks(fail, dtype=float, meta=X[:0]))
    with pytest.raises(AssertionError, match="computed"):
        lazy.compute(scheduler="synchronous")


def test_a_later_fit_does_not_change_the_result() -> None:
    model = FITTED["svm"]()
    expected, lazy = model.predict(X), model.predict(with_blocks(X))
    model.fit(X, LABELS[::-1])
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), expected)


def test_dask_takes_a_machine_for_more_than_its_parameters() -> None:
    """As it would not for instances of dataclasses."""
    model, other = DCSVMClassifier().fit(X, LABELS), DCSVMClassifier().fit(X, LABELS[::-1])
    assert dask.base.tokenize(model) != dask.base.tokenize(other)
    result, _ = dask.compute(model, with_blocks(X), scheduler="synchronous")
    np.testing.assert_array_equal(result.predict(X), model.predict(X))


def test_the_model_is_one_node_of_the_graph() -> None:
    model = FITTED["svm"]()
    few, many = (
        len(pickle.dumps(dict(model.predict(da.zeros((64, 4), chunks=(size, 4))).__dask_graph__()))) for size in (64, 8)
    )
    assert many - few < len(pickle.dumps(model))


def test_sparse_blocks() -> None:
    rows = sp.csr_array(np.where(X > 0.5, X, 0.0))
    model = OCASClassifier().fit(rows, LABELS)
    lazy = with_blocks(rows.toarray()).map_blocks(sp.csr_array, meta=sp.csr_array((0, 4)), dtype=float)
    np.testing.assert_array_equal(model.predict(lazy).compute(scheduler="synchronous"), model.predict(rows))


def test_sparse_blocks_of_a_scaler_stay_sparse() -> None:
    scaler = RelevanceScaler(n_iter=1).fit(X, LABELS)
    blocks = with_blocks(X).map_blocks(sp.csr_array)
    lazy = scaler.transform(blocks)
    assert sp.issparse(lazy._meta)
    first = lazy.blocks[0].compute(scheduler="synchronous")
    assert sp.issparse(first)
    np.testing.assert_allclose(first.toarray(), scaler.transform(X[: BLOCKS[0]]))


def test_a_data_frame_keeps_its_column_names() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = OCASClassifier().fit(frame, LABELS)
    lazy = model.decision_function(dd.from_pandas(frame, npartitions=3))
    assert lazy.dtype == np.float64
    assert lazy.ndim == 2
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), model.decision_function(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(dd.from_pandas(frame.rename(columns={"a": "z"}), npartitions=3))


def test_errors_come_at_once() -> None:
    with pytest.raises(NotFittedError):
        DCSVMClassifier().predict(with_blocks(X))
    with pytest.raises(ValueError, match="3 features"):
        FITTED["svm"]().predict(with_blocks(X[:, :3]))
    with pytest.raises(ValueError, match="two dimensions, got 1"):
        FITTED["svm"]().predict(da.from_array(X[0]))


def test_partial_fit_on_blocks_is_that_on_the_rows() -> None:
    weights = RNG.uniform(size=len(X))
    whole, blocks = (BSGDClassifier(budget=10, gamma=0.3) for _ in range(2))
    with dask.config.set(scheduler="synchronous"):
        blocks.partial_fit(with_blocks(X), da.from_array(LABELS), np.unique(LABELS), weights)
        with pytest.raises(ValueError, match="same number of rows, got 90 and 91"):
            BSGDClassifier().partial_fit(with_blocks(X), np.append(LABELS, "left"), np.unique(LABELS))
    whole.partial_fit(X, LABELS, np.unique(LABELS), weights)
    np.testing.assert_array_equal(blocks.decision_function(X), whole.decision_function(X))


FRAME = pd.DataFrame(X, columns=[f"column {k}" for k in range(X.shape[1])])
SERIES = pd.Series(LABELS)


@pytest.mark.slow
@pytest.mark.parametrize("search", [DCSVMClassifierCV([1.0, 10.0], 2, cv=2), OCASClassifierCV([0.1, 1.0], cv=2)])
def test_a_search_computes_a_collection_into_memory(search: Any) -> None:
    wanted = clone(search).fit(FRAME, SERIES)
    for rows in (dd.from_pandas(FRAME, npartitions=3), da.from_array(FRAME.to_numpy(), chunks=(50, 2))):
        search.fit(rows, dd.from_pandas(SERIES, npartitions=3))
        np.testing.assert_array_equal(search.scores_, wanted.scores_)
        assert search.score(rows, LABELS) == wanted.score(rows.compute(), LABELS)
    with pytest.raises(ValueError, match="memory_budget must be at least [0-9]+ bytes for 1 blocks of X"):
        search.set_params(memory_budget=1000).fit(rows, LABELS)


@pytest.mark.slow
def test_scores_of_collections() -> None:
    rows, labels = dd.from_pandas(FRAME, npartitions=3), dd.from_pandas(SERIES, npartitions=3)
    for model in (DCSVMClassifier(), OCASClassifier(), DCPredClassifier(random_state=0)):
        model.fit(FRAME, SERIES)
        assert model.score(rows, labels) == model.score(FRAME, SERIES)
    for regressor in (DCSVMRegressor(), DCSVMRegressorCV([1.0], [0.1], epsilons=[0.1], cv=2)):
        regressor.fit(FRAME, FRAME["column 0"])
        lazy = regressor.score(rows, rows["column 0"], sample_weight=rows["column 1"] ** 2)
        assert lazy == pytest.approx(regressor.score(FRAME, FRAME["column 0"], FRAME["column 1"] ** 2))


def test_columns_of_other_kinds_are_predicted() -> None:
    frame = FRAME.assign(
        **{
            "column 0": FRAME["column 0"].astype("Float64"),
            "column 1": pd.cut(FRAME["column 1"], 3, labels=[1, 2, 3]),
            "column 2": (FRAME["column 2"] > 0).astype("boolean"),
        }
    )
    for model in (DCSVMClassifier(), OCASClassifier()):
        wanted = model.fit(frame, SERIES).predict(frame)
        np.testing.assert_array_equal(model.predict(dd.from_pandas(frame, npartitions=3)).compute(), wanted)
