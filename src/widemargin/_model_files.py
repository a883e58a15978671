"""`save` and `load`, with skops: files hold values and types from a fixed list, and no code is run."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from numbers import Integral
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from ._output_files import replacing
from ._types import Model
from .datasets.files import MODEL_STARTS, PathLike, check_expansion, expanded_size, file_error, most_expanded, opened

#: Types that a model file may hold beside those that skops itself trusts (scikit-learn's public ones, and most of
#: NumPy's and SciPy's): our estimators, the sparse matrices of their support vectors, which skops reads without
#: unpickling, the dtype that a `SimpleImputer` was fitted with, and parts of a `CalibratedClassifierCV` and of a
#: `ColumnTransformer`, which hold estimators, names and numbers.
TRUSTED_TYPES: tuple[str, ...] = (
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer.make_column_selector",
    "widemargin.compression.compressed.CompressedClassifier",
    "widemargin.compression.compressed.CompressedOutlierDetector",
    "widemargin.compression.compressed.CompressedRegressor",
    "widemargin.compression.compressed.CompressedVotes",
    "widemargin.compression.compressed.CompressionReport",
    "widemargin.estimators.bsgd.BSGDClassifier",
    "widemargin.estimators.dc_one_class_svm.DCOneClassSVM",
    "widemargin.estimators.dc_pred.DCPredClassifier",
    "widemargin.estimators.dc_pred.DCPredRegressor",
    "widemargin.estimators.dc_svm.DCSVMClassifier",
    "widemargin.estimators.dc_svm_regressor.DCSVMRegressor",
    "widemargin.estimators.kernel_kmeans.TwoStepKernelKMeans",
    "widemargin.estimators.landmark_nystroem.LandmarkNystroem",
    "widemargin.estimators.ocas.OCASClassifier",
    "widemargin.estimators.ocas_ranker.OCASRanker",
    "widemargin.estimators.ocas_regressor.OCASRegressor",
    "widemargin.estimators.relevance_scaler.RelevanceScaler",
    "widemargin.interchange.machines.ImportedClassifier",
    "widemargin.interchange.machines.ImportedOutlierDetector",
    "widemargin.interchange.machines.ImportedRegressor",
    "widemargin.interchange.machines.ImportedVotes",
    "widemargin.model_selection.dc_svm_cv.DCSVMClassifierCV",
    "widemargin.model_selection.dc_svm_cv.DCSVMRegressorCV",
    "widemargin.model_selection.ocas_cv.OCASClassifierCV",
    "widemargin.model_selection.ocas_cv.OCASRegressorCV",
)


_FOREIGN = tuple(MODEL_STARTS)
_OTHERS = {  # what other files start with
    (b"\x80", b"x\x01", b"x^", b"x\x9c", b"x\xda"): "a pickle, which joblib.load reads and which may run code",
    _FOREIGN: "a model of another program, which widemargin.read_machine reads",
}
_METADATA = "summary.json"  # in a model file: checksums of the other members, summary, how its tables are read

Summary = Sequence[tuple[str, str]]


def save(model: Model, path: PathLike) -> None:
    """Write a fitted model to a file that `load` reads, that runs no code when it is read, and that holds no pickle.

    Parameters
    ----------
    model : estimator
        Fitted: one of ours, or a pipeline, column transformer or calibrated classifier of scikit-learn's with one of
        ours in it, such as the ``best_estimator_`` of a search. Its callbacks are left out.
    path : str or path-like
        Name of the file, usually with the suffix .skops. A file that is there is replaced, as a whole or not at all.

    Raises
    ------
    ValueError
        When the model is not fitted, or holds types that `load` does not trust, which are named: functions of your own,
        such as a callable kernel, and classes of other packages.
    OSError
        When the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import widemargin
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = tempfile.mkdtemp() + "/irises.skops"
    >>> widemargin.save(widemargin.DCSVMClassifier().fit(X, y), path)
    >>> widemargin.load(path).predict(X[:3])
    array([0, 0, 0])
    """
    with replacing(path) as file:
        write_model(model, file)


def write_model(model: Model, file: BinaryIO, summary: Summary = (), table: Mapping[str, Any] | None = None) -> None:
    """Write a fitted model: a zip file of NumPy arrays and a JSON description, and a summary to be read without them.

    Parameters
    ----------
    model : estimator
        As for `save`.
    file : BinaryIO
        Open for writing.
    summary : sequence of (str, str), optional
        Names and values for `read_summary`.
    table : mapping, optional
        What `read_table_facts` returns: how a table is read for this model.
    """
    if not _is_fitted_model(model):
        raise ValueError(f"model must be a fitted estimator, got {model!r}")
    if getattr(model, "_skl_callbacks", None):  # of fits; they hold what no file of models does
        model = copy.copy(model).set_callbacks()
    buffer = _dump(model, ZIP_DEFLATED)
    foreign = _foreign_types(buffer.getvalue())
    if foreign:
        is_search = type(model).__module__.startswith("sklearn.") and hasattr(model, "best_estimator_")
        remedy = "its best_estimator_ here, or all of it" if is_search else "it"
        raise ValueError(
            f"model holds types that load does not trust: {', '.join(foreign)}. Save {remedy} with joblib.dump, whose "
            "files run code when they are read"
        )
    if expanded_size(buffer) > most_expanded(buffer.tell()):  # it would be refused
        buffer = _dump(model, ZIP_STORED)
    with ZipFile(buffer, "a") as archive:
        metadata = {"members": _checksums(archive), "rows": list(summary), "table": table}
        archive.writestr(_METADATA, json.dumps(metadata))
    file.write(buffer.getbuffer())


def _skops() -> Any:
    """skops.io, imported here, as it imports all of scikit-learn."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("model files need the package skops: pip install skops") from error
    return skops.io


def _dump(model: Model, compression: int) -> BytesIO:
    buffer = BytesIO()
    _skops().dump(model, buffer, compression=compression, compresslevel=1)
    return buffer


def _is_fitted_model(model: Model) -> bool:
    """Whether it predicts or transforms, and is fitted, or needs no fit, in the sense of scikit-learn."""
    from .estimators._wrapped import is_fitted

    is_estimator = hasattr(model, "predict") or hasattr(model, "transform")
    has_width = isinstance(getattr(model, "n_features_in_", 1), Integral)  # models of text have none
    return is_estimator and has_width and is_fitted(model)


def _foreign_types(content: bytes) -> list[str]:
    """The types in a file that are neither trusted here nor by skops itself."""
    return sorted(set(_skops().get_untrusted_types(data=content)) - set(TRUSTED_TYPES))


def read_summary(path: PathLike) -> Summary | None:
    """The summary of a model file, without the model: neither scikit-learn nor skops is imported.

    Returns
    -------
    sequence of (str, str), or None
        None where there is none, or where it was written for other contents: then the model itself must be loaded.

    Raises
    ------
    ValueError
        Naming the file, when it is not a model file.
    OSError
        When the file cannot be opened.
    """
    rows = _read_metadata(path, "rows")
    try:
        return None if rows is None else [(str(name), str(value)) for name, value in rows]
    except Exception:  # of another JSON document, of any kind
        return None


def read_table_facts(path: PathLike) -> dict[str, Any]:
    """How a table is read for a model, as `write_model` was told; empty where it was not."""
    facts = _read_metadata(path, "table")
    return facts if isinstance(facts, dict) else {}


def _read_metadata(path: PathLike, key: str) -> Any:
    """A value saved beside the model; None where there is none, or where it was written for other contents."""
    if _is_foreign(path):
        return None
    content = _content_of(path)
    try:
        with ZipFile(BytesIO(content)) as archive:
            found = json.loads(archive.read(_METADATA))
            is_valid = archive.testzip() is None and found["members"] == _checksums(archive)
            return found.get(key) if is_valid else None
    except Exception:  # of a damaged archive or another JSON document, of any kind
        return None


def _checksums(archive: ZipFile) -> dict[str, int]:
    """CRC-32 of every member of the archive but the metadata."""
    return {member.filename: member.CRC for member in archive.infolist() if member.filename != _METADATA}


def load(path: PathLike) -> Model:
    """Read a model that `save` or the command line wrote, or skops itself. No code in the file is run.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    estimator
        Fitted.

    Raises
    ------
    ValueError
        Naming the file: when it is not a model file, or damaged; when it holds types that are neither ours nor trusted
        by skops, which are named; when another version of widemargin saved it; when it holds another object than a
        fitted estimator.
    OSError
        When the file cannot be opened.
    """
    content = _content_of(path)  # checked before skops, and with it all of scikit-learn, is imported
    skops = _skops()
    from .estimators._wrapped import machines_in
    from .interchange.fitted import check_libsvm

    with _damage_named(path):
        foreign = _foreign_types(content)
    if foreign and all(name.startswith("widemargin.") for name in foreign):
        reason = f"saved by another version of widemargin, whose {', '.join(foreign)} this one does not have"
        raise file_error(path, f"{reason}: fit or compress the model again")
    if foreign:
        raise file_error(path, f"refused: it holds types that are not trusted: {', '.join(foreign)}")
    with _damage_named(path):
        model = skops.loads(content, trusted=list(TRUSTED_TYPES))
        is_model = _is_fitted_model(model)
        for machine in machines_in(model) if is_model else ():
            check_libsvm(machine)
    if not is_model:
        raise file_error(path, f"holds a {type(model).__name__}, not a fitted model")
    return model


def load_any(path: PathLike, **options: Any) -> Model:
    """`load`, also of what `read_machine` reads, with its options where they are not None."""
    if _is_foreign(path):
        from .interchange import read_machine  # it imports scikit-learn

        return read_machine(path, **options)
    if given := [name for name, value in options.items() if value is not None]:
        option = given[0].replace("_", "-")
        raise file_error(path, f"--{option} is for a model file of another program, which this is not")
    return load(path)


def _is_foreign(path: PathLike) -> bool:
    try:
        with opened(path) as file:
            return file.read(64).lstrip().startswith(_FOREIGN)
    except ValueError:  # a model of ours with the suffix of a compression, or a damaged file, which `load` names
        return False


def _content_of(path: PathLike) -> bytes:
    """The bytes of a zip archive with a description of a model, which does not expand to far more than its size."""
    content = Path(path).read_bytes()
    for starts, kind in _OTHERS.items():
        if content.startswith(starts):
            raise file_error(path, f"is {kind}. load reads files of widemargin.save")
    with _damage_named(path), ZipFile(BytesIO(content)) as archive:
        archive.getinfo("schema.json")
        expanded = expanded_size(BytesIO(content))
    check_expansion(path, expanded, len(content), "no model that was saved here does")
    return content


@contextmanager
def _damage_named(path: PathLike) -> Iterator[None]:
    """Raise any error, from that of a damaged zip file to that of a missing key, as one that names the file."""
    try:
        yield
    except Exception as error:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise file_error(path, f"not a model file, or a damaged one ({reason})") from error
