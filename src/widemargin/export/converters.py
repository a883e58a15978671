"""`register_converters`: skl2onnx writes pipelines that hold our machines, by the graphs of `to_onnx`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClusterMixin, is_classifier, is_outlier_detector

from .. import estimators, model_selection
from .._types import Model
from ..compression.compressed import Compressed
from ..interchange.machines import ImportedMachine
from .estimators import Outputs, make_graph, n_scores, write_parts, write_step
from .graph import OPSET, Graph
from .parts import Parts, split

KINDS: tuple[Any, ...] = (
    *(kind for kind in vars(estimators).values() if hasattr(kind, "fit") and not issubclass(kind, ClusterMixin)),
    *(kind for kind in vars(model_selection).values() if hasattr(kind, "fit")),
    *Compressed.__subclasses__(),
    *ImportedMachine.__subclasses__(),
)

# Of classifiers, for skl2onnx's own code around the graph; "nocl", graphs without labels, is required but never True.
_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [False],
    "raw_scores": [True, False],
}


def register_converters() -> None:
    """Make skl2onnx convert our machines, alone or in its pipelines with other steps.

    Call it once, before ``skl2onnx.to_onnx``. Outputs have skl2onnx's names and shapes:

    - of a classifier "label" and "probabilities", (rows, n_columns): decision values, but of
      ``OCASClassifier(loss="logistic")`` without the option ``raw_scores=True``. Those of two classes are ``[f, -f]``,
      as skl2onnx writes them for `SVC`, and with that option ``[-f, f]``. Without the option ``zipmap=False`` skl2onnx
      makes dictionaries of them;
    - of an outlier detector "label" and "scores", of shape (rows, 1); of a regressor "variable", of shape (rows,
      n_targets); of `LandmarkNystroem` and `RelevanceScaler` what ``transform`` returns.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.

    Notes
    -----
    The graphs are those of `to_onnx`, and raise its errors; ``target_opset`` must be at least 18. A
    `CalibratedClassifierCV` around a machine is written by skl2onnx itself, or by `to_onnx`.

    Examples
    --------
    >>> import widemargin
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(PCA(20), widemargin.DCSVMClassifier()).fit(X, y)
    >>> import skl2onnx  # doctest: +SKIP
    >>> widemargin.register_converters()  # doctest: +SKIP
    >>> graph = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})  # doctest: +SKIP
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError("register_converters needs the package skl2onnx: pip install skl2onnx") from error
    for kind in KINDS:
        options = _OPTIONS if is_classifier(kind()) else None
        update_registered_converter(kind, f"Widemargin{kind.__name__}", _set_shapes, _convert, options=options)


def _set_shapes(operator: Any) -> None:
    """Types and shapes of the outputs, which skl2onnx declares before it asks for the graph."""
    from skl2onnx.common.data_types import Int64TensorType
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

    model, rows = operator.raw_operator, operator.inputs[0].get_first_dimension()
    if is_classifier(model):
        calculate_linear_classifier_output_shapes(operator)
    elif is_outlier_detector(model):
        operator.outputs[0].set_type(Int64TensorType([rows, 1]))
    elif not hasattr(model, "predict"):
        operator.outputs[0].set_type(operator.inputs[0].type.__class__([rows, _n_columns(model)]))
    operator.outputs[-1].type.shape = [rows, _n_columns(model)]


def _n_columns(model: Model) -> int:
    if not hasattr(model, "predict"):
        return int(getattr(model, "_n_features_out", model.n_features_in_))
    is_binary = is_classifier(model) and len(model.classes_) == 2
    return 2 if is_binary else n_scores(split(model).machine)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of a machine to skl2onnx's."""
    from skl2onnx.common.data_types import guess_numpy_type
    from skl2onnx.helpers import add_onnx_graph

    if container.target_opset < OPSET:
        raise ValueError(f"target_opset must be at least {OPSET}, got {container.target_opset}")
    model = operator.raw_operator
    input_dtype = np.dtype(guess_numpy_type(operator.inputs[0].type))
    is_step = not hasattr(model, "predict")
    parts = Parts([model], model, []) if is_step else split(model)
    graph = make_graph(parts, input_dtype)
    if is_step:
        write_step(graph, model)
        coordinates = graph.output(graph.x, _n_columns(model))
        add_onnx_graph(scope, operator, container, graph.finish({"coordinates": coordinates}))
        return
    is_raw = is_classifier(model) and container.get_options(model, {"raw_scores": False})["raw_scores"]
    outputs = _as_skl2onnx(graph, model, write_parts(graph, parts), is_raw=is_raw)
    add_onnx_graph(scope, operator, container, graph.finish(outputs))


def _as_skl2onnx(graph: Graph, model: Model, outputs: Outputs, *, is_raw: bool) -> Outputs:
    """Outputs in skl2onnx's form: two axes, integers as int64, decision values f of two classes as [f, -f].

    So it writes `SVC`; [-f, f] with its option `raw_scores`, which its graphs of calibrated classifiers set.
    """
    has_probabilities = "probabilities" in outputs and not is_raw
    scores, dtype, shape = outputs["probabilities" if has_probabilities else "scores"]
    scores = scores if shape else graph.unsqueeze(scores, 1)
    if is_classifier(model) and not shape:
        opposite = graph("Neg", scores)
        scores = graph("Concat", *((opposite, scores) if is_raw else (scores, opposite)), axis=1)
    written: Outputs = {"scores": (scores, dtype, (_n_columns(model),))}
    if "label" not in outputs:
        return written
    label, kind, _ = outputs["label"]
    if kind.kind in "iufb":
        label, kind = graph.cast(label, np.int64), np.dtype(np.int64)
    columns: tuple[int, ...] = () if is_classifier(model) else (1,)
    return {"label": (graph.unsqueeze(label, 1) if columns else label, kind, columns), **written}
