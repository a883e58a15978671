"""`read_machine`: machines that other programs have trained."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, cast

from .._types import Given, Model
from ..datasets.files import MODEL_STARTS, PathLike, file_error, quoted
from ..estimators._validation import check_integer
from .fitted import adopt, is_libsvm, machine_of_libsvm
from .lines import Lines, lines_of
from .machines import ImportedMachine
from .opencv import parse_xml, parse_yaml, read_opencv
from .scales import scaled
from .text_models import read_liblinear, read_libsvm, read_svmlight_model


def read_machine(model: Any, *, scale: Given = None, classes: Given = None, n_features: int | None = None) -> Model:
    r"""Read a machine that another program has trained, from its file or its Python object.

    When to use: a machine is there already, and should predict faster (`compress`) or without Python (`to_onnx`).

    Parameters
    ----------
    model : path-like or estimator
        A text model of LIBSVM, LIBLINEAR, ThunderSVM, Orfeo ToolBox, libsvm-js, e1071 (``write.svm``) or SVMlight, or
        an SVM of OpenCV as XML or YAML; plain or compressed. Or a fitted `SVC`, `NuSVC`, `SVR`, `NuSVR` or
        `OneClassSVM` of scikit-learn or scikit-learn-intelex, or an SVM of ThunderSVM or cuML.
    scale : path-like, pair of path-likes, or array-like of shape (n_features, 2), default=None
        The range file of LIBSVM's ``svm-scale``, the scale file of e1071's ``write.svm``, or this and its y-scale
        file: the model then takes rows, and predicts values, as they were before they were scaled. As an array: the
        centre and the spread of each column.
    classes : sequence or dict, default=None
        Names for the labels of the file: in ascending order of these, such as R's ``levels(y)``, or by label.
    n_features : int, default=None
        The number of columns, where the last ones are 0 in all support vectors: text models do not say it.

    Returns
    -------
    estimator
        Fitted, with `predict`, `as_function`, and what its kind has of `decision_function`, `support_vectors_`,
        `dual_coef_`, `intercept_`, `classes_`, and `coef_` of a linear kernel. Signs are as everywhere here: of two
        classes positive values mean ``classes_[1]``, the larger label; of an outlier detector the inside. Ties are
        broken as the other program breaks them. `predict_proba` where the file has Platt's curves or a logistic loss.
        With `scale` a pipeline that ends in it. `compress`, `to_onnx`, `save` and the command line take it.

    Raises
    ------
    ValueError
        ``FILE:LINE: reason`` for a damaged file, or one of another kind. Also for precomputed kernels, OpenCV's kernels
        CHI2 and INTER, and models that were trained on one class alone.
    OSError
        When the file cannot be opened.

    Examples
    --------
    >>> import os, tempfile
    >>> from widemargin import read_machine
    >>> text = "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 -1\nnr_sv 1 1\nSV\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "colleague.model")
    ...     with open(path, "w") as file:
    ...         _ = file.write(text + "0.5 1:1 2:1\n-0.5 1:-1 2:-1\n")
    ...     model = read_machine(path)
    >>> model.predict([[3, 1], [-2, 0]]), model.coef_
    (array([ 1, -1]), array([[1., 1.]]))
    """
    if isinstance(model, str | os.PathLike):
        machine = _read_file(model, classes)
    else:
        machine = adopt(model)
        machine = machine_of_libsvm(machine) if is_libsvm(machine) else machine
        if not isinstance(machine, ImportedMachine):
            raise ValueError(f"model must be a file, or a fitted SVM of another package, got {type(model).__name__}")
        if classes is not None:
            raise ValueError("classes must be None for a fitted estimator, which has its labels")
    if n_features is not None:
        check_integer("n_features", n_features, 1)
        machine.widen(n_features)
    return machine if scale is None else scaled(machine, scale)


def _read_file(path: PathLike, classes: Given) -> Model:
    with lines_of(path) as lines:
        start = bytes(cast(Any, lines.file).peek(64)[:64].lstrip())
        for begins, kind in MODEL_STARTS.items():
            if start.startswith(begins):
                return _READERS[kind](lines, classes)
    kinds = "LIBSVM (svm_type), LIBLINEAR (solver_type), SVMlight (SVM-light Version) or OpenCV (<?xml, %YAML)"
    raise file_error(path, f"begins with {quoted(start[:20])}, as no model of {kinds} does", 1)


_READERS: dict[str, Callable[[Lines, Any], Any]] = {
    "LIBSVM": read_libsvm,
    "LIBLINEAR": read_liblinear,
    "SVMlight": read_svmlight_model,
    "OpenCV, XML": lambda lines, classes: read_opencv(parse_xml(lines), classes),
    "OpenCV, YAML": lambda lines, classes: read_opencv(parse_yaml(lines), classes),
}
