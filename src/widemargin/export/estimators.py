"""`to_onnx`: labels and scores of an estimator as an ONNX model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from .._types import AnyArray, DType, Model
from ..compression.rows import MAX_ROUNDING
from ..data.labels import class_pairs
from ..estimators import LandmarkNystroem, OCASClassifier
from ..estimators._estimator import warn_user
from ..estimators._row_function import Operations
from ..estimators._validation import check_choice, shown
from ..estimators._wrapped import machines_in
from ..models.clustered import ClusteredExpansion
from ..models.expansion import KernelExpansion
from ..models.linear import LinearModel
from ..models.nystroem_tree import NystroemForest
from .clusters import write_clustered
from .graph import Graph, Output
from .machines import write_coordinates, write_expansion, write_forest, write_linear
from .parts import Parts, find_writer, split, step_operations

Outputs = dict[str, Output]  # by name

_WRITERS: dict[type, Callable[[Graph, Any], str]] = {
    NystroemForest: write_forest,
    KernelExpansion: write_expansion,
    ClusteredExpansion: write_clustered,
    LinearModel: write_linear,
}


def to_onnx(model: Model, *, dtype: Any = None) -> Any:
    """Export a fitted machine as an ONNX model, which predicts without Python.

    Parameters
    ----------
    model : estimator
        Fitted: what `compress` returns, `DCPredClassifier`, `DCPredRegressor`, `OCAS...`, `BSGDClassifier`, or
        `DCSVMClassifier`, `DCSVMRegressor` and `DCOneClassSVM`, exact or early, if the kernel is not a callable or
        precomputed; what `read_machine` returns; a pipeline of `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`,
        `RelevanceScaler`, `LandmarkNystroem` or `SimpleImputer` that ends in one of these;
        ``CalibratedClassifierCV(method="sigmoid")`` or `TransformedTargetRegressor` around one. Of a fitted search,
        such as `DCSVMClassifierCV` or `GridSearchCV`, its ``best_estimator_``.
    dtype : {"float32", "float64"} or None, default=None
        Of the input, and of all that is computed from it. None: float32, or float64 for a kernel machine that was
        trained with float64, as scikit-learn's are. Few runtimes other than ONNX Runtime compute in float64.

    Returns
    -------
    onnx.ModelProto
        Input: "X", dense, of shape (rows, n_features) for any number of rows, of `dtype`. Outputs: "label", of shape
        (rows,) and the dtype of ``classes_``, and "scores", the values of ``decision_function``; for a regressor
        "scores" alone, the values of ``predict``; for a calibrated classifier "label" and "probabilities", the values
        of ``predict_proba``; for ``OCASClassifier(loss="logistic")`` all three. Scores and probabilities have the dtype
        of the input.

    Raises
    ------
    ImportError
        If onnx is not installed (``pip install onnx``).
    ValueError
        Naming the estimator, its kernel or its labels, if ONNX cannot express them, or `dtype`.

    Warns
    -----
    UserWarning
        Where the input is float32, and a scaling has columns whose spread is lost in rounding to it, such as seconds
        since 1970: with their numbers.

    Notes
    -----
    Generic operators of opset 18 (MatMul, Gather, Exp, ArgMax and the like); the operators for support vector machines
    have float32 coefficients and other formats of scores. Distances are in float64 where float32 is too inexact. A
    tree gathers the landmarks of each row's leaf, (rows, landmarks, features) numbers, and a laplacian expansion
    computes (rows, points, features) differences: predict some hundreds of rows at a time.

    An early machine costs a distance to each cluster's centre and the kernel values of the row's own cluster, as in
    `predict`: the graph has all support vectors as one dense matrix, beside q coefficients for each, and
    loops over the clusters that a call's rows are in. 256 clusters of 1,000 support vectors with 54 features are 59 MB.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import OCASClassifier, to_onnx
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X.astype(np.float32)
    >>> graph = to_onnx(OCASClassifier(C=0.1).fit(X, y))
    >>> import onnxruntime
    >>> session = onnxruntime.InferenceSession(graph.SerializeToString())
    >>> label, scores = session.run(None, {"X": X[:5]})
    >>> label.tolist(), scores.shape
    ([0, 1, 2, 3, 4], (5, 10))
    """
    if dtype is not None:
        check_choice("dtype", getattr(dtype, "__name__", dtype), ("float32", "float64"))
    parts = split(model)
    graph = make_graph(parts, None if dtype is None else np.dtype(dtype))
    return graph.finish(write_parts(graph, parts))


def make_graph(parts: Parts, input_dtype: DType | None = None) -> Graph:
    """An empty graph for a fitted model, by default in its machine's dtype."""
    machine = machines_in(parts.machine)[0]  # of several calibrated ones, on the same data, the first
    landmarks = [step.landmarks_.dtype for step in parts.steps if isinstance(step, LandmarkNystroem)]
    own = getattr(machine, "_dtype", landmarks[0] if landmarks else None)  # None of a linear machine of features
    dtype = input_dtype if input_dtype in (np.float32, np.float64) else own or np.float32
    graph = Graph(np.dtype(dtype).name, parts.n_features, input_dtype)
    lost = _columns_lost(parts.steps[0]) if parts.steps and graph.input_dtype == np.float32 else ()
    if len(lost):
        warn_user(
            f"the input is float32, in which the spread of columns {shown(lost[:5])} is lost in rounding: export with "
            'dtype="float64"',
            UserWarning,
        )
    return graph


def write_parts(graph: Graph, parts: Parts) -> Outputs:
    """Write the steps of a model, and its machine or calibrated ones; return the outputs."""
    for step in parts.steps:
        write_step(graph, step)
    if hasattr(parts.machine, "calibrated_classifiers_"):
        return _write_calibrated(graph, parts.machine)
    machine, write = find_writer(_WRITERS, parts.machine)
    return _write_outputs(graph, parts.machine, _apply(graph, write(graph, machine), parts.of_target))


def write_step(graph: Graph, step: Model) -> None:
    """Scale the samples of the graph, or replace them by `LandmarkNystroem`'s; a ValueError names another step."""
    if isinstance(step, LandmarkNystroem):
        graph.x = write_coordinates(graph, step._model)
    else:
        graph.x = _apply(graph, graph.x, step_operations(step))


def _apply(graph: Graph, values: str, operations: Operations) -> str:
    """Values (rows, n) after operations on their columns."""
    for operator, operand in operations:
        if operator == "Where":  # of an imputer
            values = graph("Where", graph("IsNaN", values), operand, values)
        else:
            values = graph(operator, values, *([] if operator == "Exp" else [operand]))
    return values


def _columns_lost(step: Model) -> NDArray[np.intp]:
    """The columns whose spread, which a scaling has kept, float32 rounds away: by over 1e-4 of it."""
    if isinstance(step, StandardScaler) and step.scale_ is not None and step.mean_ is not None:
        largest, spread = np.abs(step.mean_), step.scale_
    elif isinstance(step, MinMaxScaler):
        largest, spread = np.maximum(np.abs(step.data_min_), np.abs(step.data_max_)), step.data_range_
    else:
        return np.empty(0, np.intp)
    return np.flatnonzero((largest * np.finfo(np.float32).eps > MAX_ROUNDING * spread) & (spread > 0))


def _write_calibrated(graph: Graph, model: Model) -> Outputs:
    """The mean of the members' probabilities, and the class of the largest."""
    members = [_probabilities(graph, member) for member in model.calibrated_classifiers_]
    mean = graph.mean(members)
    return {
        "label": _write_label(graph, model.classes_, _largest(graph, mean)),
        "probabilities": graph.output(mean, len(model.classes_)),
    }


def _probabilities(graph: Graph, member: Any) -> str:
    """1 / (1 + exp(a f + b)) of a member's decision values f, normalised over the classes: (rows, n_classes)."""
    if member.method != "sigmoid":
        raise ValueError(f"model must be calibrated with method='sigmoid', got method={member.method!r}")
    x, outputs = graph.x, write_parts(graph, split(member.estimator))
    scores, _, shape = outputs["scores"]
    graph.x = x
    k, q = len(member.classes), len(member.calibrators)
    if shape not in ((), (q,)):
        raise ValueError(f"model has {shape[0]} decision values and {q} calibrators: use decision_function_shape='ovr'")
    scores = scores if shape else graph.unsqueeze(scores, 1)
    a, b = (np.array([getattr(curve, name) for curve in member.calibrators], np.float64) for name in ("a_", "b_"))
    p = graph.sigmoid(graph("Sub", graph("Mul", scores, -a), b))
    if k == 2:
        return graph("Concat", graph("Sub", np.array(1.0), p), p, axis=1)
    places = np.searchsorted(member.classes, member.estimator.classes_)[:q]  # a fold may lack a class
    p = graph("MatMul", p, np.eye(k)[places])
    total = graph.reduce("Sum", p, 1, keep=True)
    is_zero = graph("Equal", total, np.array(0.0))
    return graph("Where", is_zero, np.full(k, 1.0 / k), graph("Div", p, total))


def _write_outputs(graph: Graph, model: Model, values: str) -> Outputs:
    """The outputs of a classifier, outlier detector or regressor, from its decision values (rows, q)."""
    further: Outputs = {}
    if is_classifier(model):
        number, scores, shape = _classify(graph, model, values)
        label, k = _write_label(graph, model.classes_, number), len(model.classes_)
        if isinstance(model, OCASClassifier) and model.loss == "logistic":
            further["probabilities"] = graph.output(_sigmoids(graph, values, k), k)
    elif is_outlier_detector(model):
        scores, shape, signs = graph.squeeze(values, 1), (), np.array([-1, 1])
        label = _write_label(graph, signs, graph.cast(graph.is_at_least_zero(scores), np.int64))
    else:
        q = n_scores(model)
        return {"scores": graph.output(graph.squeeze(values, 1)) if q == 1 else graph.output(values, q)}
    return {"label": label, "scores": graph.output(scores, *shape), **further}


def _sigmoids(graph: Graph, values: str, n_classes: int) -> str:
    """Probabilities 1 / (1 + exp(-f)) of decision values f (rows, q), divided by their sum: (rows, n_classes)."""
    opposite = graph("Neg", values)
    if n_classes == 2:
        return graph.sigmoid(graph("Concat", opposite, values, axis=1))
    return graph("Softmax", graph("Neg", graph("Softplus", opposite)), axis=1)


def n_scores(model: Model) -> int:
    """Number of scores of a row: 1 also where they have the shape (rows,)."""
    if is_classifier(model) and getattr(model, "decision_function_shape", "ovo") == "ovr":
        return len(model.classes_)
    return len(model.intercept_) if hasattr(model, "intercept_") else model.predictor_.n_outputs


def _write_label(graph: Graph, classes: AnyArray, number: str) -> Output:
    """The class of each row, by its number: numbers, or strings as objects."""
    if classes.dtype.kind not in "iufb":
        if not all(isinstance(label, str) for label in classes.tolist()):
            raise ValueError(f"classes_ must be numbers or strings to be written, got {classes[:3]!r}")
        classes = classes.astype(object)
    return graph.rows_of(graph.as_given(classes), number), classes.dtype, ()


def _classify(graph: Graph, model: Model, values: str) -> tuple[str, str, tuple[int, ...]]:
    """Class numbers, scores, and the shape of one row's scores, as in `estimators._predictor`."""
    k, order = len(model.classes_), getattr(model, "label_order_", None)
    if k == 2:
        score = graph.squeeze(values, 1)
        is_second_at_zero = order is not None and order[1] == 1
        is_second = graph.is_at_least_zero(score) if is_second_at_zero else graph("Greater", score, np.array(0.0))
        return graph.cast(is_second, np.int64), score, ()
    if not hasattr(model, "break_ties"):
        return _largest(graph, values, order), values, (k,)
    against = _write_pair_matrix(graph, values, k)
    votes = graph.reduce("Sum", graph.cast(graph("Greater", against, np.array(0.0)), graph.dtype), 2)
    if model.decision_function_shape == "ovo":
        if model.break_ties:  # as `predict` says
            raise ValueError("break_ties must be False with decision_function_shape='ovo', got True")
        return _largest(graph, votes, order), values, (k * (k - 1) // 2,)
    scores = _write_vote_scores(graph, against, votes, k)
    return _largest(graph, scores) if model.break_ties else _largest(graph, votes, order), scores, (k,)


def _write_pair_matrix(graph: Graph, values: str, k: int) -> str:
    """Decision values for class i against class j: (rows, k, k), antisymmetric, from those of the pairs."""
    first, second = class_pairs(k)
    place = np.full((k, k), 2 * len(first))  # on the diagonal a zero
    place[first, second] = np.arange(len(first))
    place[second, first] = place[first, second] + len(first)
    return graph("Gather", graph.with_zero(graph("Concat", values, graph("Neg", values), axis=1)), place, axis=1)


def _largest(graph: Graph, values: str, order: AnyArray | None = None) -> str:
    """The column of each row's largest value: (rows,); of equal ones the first, or the first in an order."""
    if order is None:
        return graph("ArgMax", values, axis=1, keepdims=0)
    order = order.astype(np.int64)
    return graph.rows_of(order, graph("ArgMax", graph("Gather", values, order, axis=1), axis=1, keepdims=0))


def _write_vote_scores(graph: Graph, against: str, votes: str, k: int) -> str:
    """Votes plus a term below 1/2 that orders equal ones by sums of decision values, as scikit-learn does.

    A decision value of exactly zero is a vote for the first class of its pair.
    """
    is_zero = graph.cast(graph("Equal", against, np.array(0.0)), graph.dtype)
    ties = graph("Mul", is_zero, np.triu(np.ones((k, k)), 1))
    sums = graph.reduce("Sum", against, 2)
    scale = graph("Mul", graph("Add", graph("Abs", sums), np.array(1.0)), np.array(3.0))
    counts = graph("Add", votes, graph.reduce("Sum", ties, 2))
    return graph("Add", counts, graph("Div", sums, scale))
