"""NumPy archives (``.npz``), and the folder of benchmark sets in that form."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.datasets.files import Dataset, PathLike, check_archive, file_error, with_short_indices

_HOME = "WIDEMARGIN_DATA"
_CSR_KEYS = ("data", "indices", "indptr", "shape")


def load_npz(path: PathLike, *, target: str = "y") -> Dataset:
    """Read a NumPy archive. Nothing in it is unpickled.

    Parameters
    ----------
    path : str or path-like
        An archive with the keys ``X`` (dense) or ``data``, ``indices``, ``indptr`` and ``shape`` (CSR); ``y``, if there
        are labels; and all of these once more with the ending ``_test``, if there is a test split.
    target : str, default="y"
        Key of the labels, for archives with several kinds of them.

    Returns
    -------
    Dataset
        X is an ndarray or csr_matrix of shape (n_samples, n_features): float32 and float64 are kept, booleans, 8- and
        16-bit integers become float32, 32- and 64-bit integers float64. y keeps its dtype.

    Raises
    ------
    ValueError
        Naming the file and what is wrong: a truncated or damaged archive, a missing key, an array with objects in
        it, shapes that disagree, CSR indices out of bounds.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.npz")
    ...     np.savez(path, X=np.eye(3, dtype="uint8"), y=["a", "b", "a"])
    ...     data = load_npz(path)
    >>> data.X.dtype, data.y.tolist()
    (dtype('float32'), ['a', 'b', 'a'])
    """
    arrays = _read_arrays(path)
    X = _samples(path, arrays, "")
    if X is None:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise file_error(path, f"neither the key 'X' nor the keys {_CSR_KEYS} are there, only: {found}")
    X_test = _samples(path, arrays, "_test")
    if X_test is not None and X_test.shape[1] != X.shape[1]:
        raise file_error(path, f"X has {X.shape[1]} features and X_test {X_test.shape[1]}")
    y = _labels(path, arrays, target, X)
    y_test = None if X_test is None else _labels(path, arrays, f"{target}_test", X_test)
    return Dataset(X, y, X_test, y_test)


def _read_arrays(path: PathLike) -> dict[str, NDArray[Any]]:
    with open(path, "rb") as file:
        # The directory of a zip file is at its end: a truncated file has none.
        if not check_archive(path, "save it by numpy.savez, which does not compress"):
            raise file_error(path, "not an .npz archive, or a truncated one")
        try:
            with np.load(file, allow_pickle=False) as archive:
                # A member that is no array is read as raw bytes, which later checks of dtype and shape refuse.
                return {key: np.asarray(archive[key]) for key in archive.files}
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
            raise file_error(path, f"a damaged archive, or an array in it cannot be read ({error})") from error


def _samples(path: PathLike, arrays: dict[str, NDArray[Any]], ending: str) -> Any:
    if f"X{ending}" in arrays:
        X = _as_float(path, f"X{ending}", arrays[f"X{ending}"])
        if X.ndim != 2 or 0 in X.shape:
            raise file_error(path, f"X{ending} must have two dimensions and at least one row and column, not {X.shape}")
        return X
    if f"data{ending}" not in arrays:
        return None
    from scipy.sparse import csr_array

    missing = [key + ending for key in _CSR_KEYS if key + ending not in arrays]
    if missing:
        raise file_error(path, f"keys of the CSR matrix are missing: {', '.join(missing)}")
    data, indices, indptr, shape = (arrays[key + ending] for key in _CSR_KEYS)
    try:
        n_rows, n_columns = shape.tolist()
        X = csr_array((_as_float(path, f"data{ending}", data), indices, indptr), shape=(n_rows, n_columns))
        X.check_format(full_check=True)  # compiled code does not check indices
    except (ValueError, TypeError) as error:
        raise file_error(path, f"data{ending}, indices{ending}, indptr{ending} are no CSR matrix ({error})") from error
    return with_short_indices(X)


def _as_float(path: PathLike, key: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "fiub":
        raise file_error(path, f"{key} must hold numbers, not {values.dtype}")
    wide = np.result_type(values.dtype, np.float32).itemsize > 4
    return values.astype(np.float64 if wide else np.float32, copy=False)


def _labels(path: PathLike, arrays: dict[str, NDArray[Any]], key: str, X: Any) -> NDArray[Any] | None:
    if key in arrays and arrays[key].shape != (X.shape[0],):
        found = arrays[key].shape
        raise file_error(path, f"{key} must have the shape ({X.shape[0]},) of the {X.shape[0]} samples, not {found}")
    if key not in arrays and key != "y" and not key.endswith("_test"):  # archives for prediction may have no labels
        raise file_error(path, f"there is no key {key!r}, only: {', '.join(sorted(arrays))}")
    return arrays.get(key)


def load_benchmark(name: str, data_home: PathLike | None = None, *, target: str = "y") -> Dataset:
    """Read a benchmark set, ``NAME.npz``, as `load_npz` does, from the folder that WIDEMARGIN_DATA names.

    Parameters
    ----------
    name : str
        The set, such as ``"a9a"``.
    data_home : str or path-like, default=None
        The folder. None takes that of the environment variable WIDEMARGIN_DATA.
    target : str, default="y"
        Key of the labels: some sets have ``"y_multi"`` as well.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        When the variable is not set, or the folder has no such set.
    """
    home = os.environ.get(_HOME) if data_home is None else os.fspath(data_home)
    if not home:
        raise FileNotFoundError(
            f"no folder of benchmark data is known: set the environment variable {_HOME} to a folder of .npz files "
            "(keys X and y, or data, indices, indptr, shape and y), or pass data_home"
        )
    path = Path(home) / f"{name}.npz"
    if not path.is_file():
        known = sorted(file.stem for file in Path(home).glob("*.npz"))
        raise FileNotFoundError(f"{home} has no data set {name!r}; it has: {', '.join(known) or 'no .npz files'}")
    return load_npz(path, target=target)
