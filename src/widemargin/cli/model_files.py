"""Saving and loading models with skops: files hold values and types from a fixed list, and no code is run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from io import BytesIO
from numbers import Integral
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from widemargin.datasets.compressed import check_expansion, most_expanded

#: Types that a model file may hold beside those that skops itself trusts (scikit-learn's public ones, and most of
#: NumPy's and SciPy's): our estimators, the sparse matrices of their support vectors, which skops reads without
#: unpickling, the dtype that a `SimpleImputer` was fitted with, and the parts of a `CalibratedClassifierCV`, which hold
#: estimators and numbers.
TRUSTED_TYPES: tuple[str, ...] = (
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
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
    "widemargin.model_selection.dc_svm_cv.DCSVMClassifierCV",
    "widemargin.model_selection.dc_svm_cv.DCSVMRegressorCV",
    "widemargin.model_selection.ocas_cv.OCASClassifierCV",
    "widemargin.model_selection.ocas_cv.OCASRegressorCV",
)


_METADATA = "summary.json"  # in a model file: checksums of the other members, summary, how its tables are read

Summary = Sequence[tuple[str, str]]


def save_model(model: Any, file: BinaryIO, summary: Summary = (), table: Mapping[str, Any] | None = None) -> None:
    """Write a fitted model: a zip file of NumPy arrays and a JSON description, and a summary to be read without them.

    Parameters
    ----------
    model : estimator
        Fitted: one of ours, or a scikit-learn pipeline that ends in one.
    file : BinaryIO
        Open for writing.
    summary : sequence of (str, str), optional
        Names and values for `read_summary`.
    table : mapping, optional
        What `read_table_facts` returns: how a table is read for this model.
    """
    from skops.io import dump

    buffer = BytesIO()
    dump(model, buffer, compression=ZIP_DEFLATED, compresslevel=1)
    if _expanded_size(buffer) > most_expanded(buffer.tell()):  # it would be refused
        buffer = BytesIO()
        dump(model, buffer, compression=ZIP_STORED)
    with ZipFile(buffer, "a") as archive:
        metadata = {"members": _checksums(archive), "rows": list(summary), "table": table}
        archive.writestr(_METADATA, json.dumps(metadata))
    file.write(buffer.getbuffer())


def read_summary(path: str | os.PathLike[str]) -> Summary | None:
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


def read_table_facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """How a table is read for a model, as `save_model` was told; empty where it was not."""
    facts = _read_metadata(path, "table")
    return facts if isinstance(facts, dict) else {}


def _read_metadata(path: str | os.PathLike[str], key: str) -> Any:
    """A value saved beside the model; None where there is none, or where it was written for other contents."""
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


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save_model` wrote. No code in the file is run.

    Returns
    -------
    estimator
        Fitted.

    Raises
    ------
    ValueError
        Naming the file: when it is not a model file, or damaged; when it holds types that are not in `TRUSTED_TYPES`,
        which are named; when another version of widemargin saved it; when it holds an object that cannot predict.
    OSError
        When the file cannot be opened.
    """
    content = _content_of(path)  # checked before skops, and with it all of scikit-learn, is imported
    from skops.io import loads

    foreign = sorted(_types_in(path, content) - set(TRUSTED_TYPES))
    if foreign and all(name.startswith("widemargin.") for name in foreign):
        raise ValueError(
            f"{os.fspath(path)}: saved by another version of widemargin, whose {', '.join(foreign)} this one does not "
            f"have: fit or compress the model again"
        )
    if foreign:
        raise ValueError(f"{os.fspath(path)}: refused: it holds types that are not trusted: {', '.join(foreign)}")
    try:
        model = loads(content, trusted=list(TRUSTED_TYPES))
        n_features = getattr(model, "n_features_in_", None)  # a damaged pipeline may raise any exception
    except Exception as error:  # an invalid description of types, too
        raise _damaged(path, error) from error
    if not hasattr(model, "predict") or not isinstance(n_features, Integral):
        raise ValueError(f"{os.fspath(path)}: holds a {type(model).__name__}, not a fitted model")
    _check_libsvm(path, model)
    return model


def _check_libsvm(path: str | os.PathLike[str], model: Any) -> None:
    from ..compression.sources import check_libsvm
    from ..estimators._wrapped import machines_in

    for machine in machines_in(model):
        try:
            check_libsvm(machine)
        except ValueError as error:
            raise _damaged(path, error) from error


def _content_of(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a zip archive with a description of a model, which does not expand to far more than its size."""
    content = Path(path).read_bytes()
    try:
        with ZipFile(BytesIO(content)) as archive:
            archive.getinfo("schema.json")
        expanded = _expanded_size(BytesIO(content))
    except Exception as error:  # of a damaged archive, of any kind
        raise _damaged(path, error) from error
    check_expansion(path, expanded, len(content), "no model that was saved here does")
    return content


def _expanded_size(file: BinaryIO) -> int:
    """The bytes of all members of an archive."""
    with ZipFile(file) as archive:
        return sum(member.file_size for member in archive.infolist())


def _types_in(path: str | os.PathLike[str], content: bytes) -> set[str]:
    from skops.io import get_untrusted_types

    try:
        return set(get_untrusted_types(data=content))
    except Exception as error:  # from a damaged zip file to a missing key
        raise _damaged(path, error) from error


def _damaged(path: str | os.PathLike[str], error: Exception) -> ValueError:
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ValueError(f"{os.fspath(path)}: not a model file, or a damaged one ({reason})")
