"""`load`: a data file of any format, by the reader that its suffix stands for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from widemargin.datasets.archives import load_npz
from widemargin.datasets.compressed import compression_of, member_of
from widemargin.datasets.files import Dataset, PathLike, file_error
from widemargin.datasets.svmlight import load_svmlight
from widemargin.datasets.tables import load_arff, load_csv

_CONVERT = "save it as .csv, or X and y by numpy.savez as .npz"
# Formats that are not read, and what to do.
_NOT_READ = {
    **dict.fromkeys((".parquet", ".pq"), f"Parquet files are not read: {_CONVERT}"),
    ".feather": f"Feather files are not read: {_CONVERT}",
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods"), f"spreadsheets are not read: {_CONVERT}"),
    **dict.fromkeys((".h5", ".hdf5"), f"HDF5 files are not read: {_CONVERT}"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), f"JSON files are not read: {_CONVERT}"),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), f"pickles are not read, as they can run code: {_CONVERT}"),
    ".mat": f"MATLAB files are not read: {_CONVERT}",
    ".npy": "a .npy file has one array: save X and y by numpy.savez as .npz",
    **dict.fromkeys((".tar", ".tgz", ".7z", ".rar", ".z"), "archives of this format are not read: unpack it first"),
}
_READERS: dict[str, Callable[..., Dataset]] = {
    ".npz": load_npz,
    ".csv": load_csv,
    ".tsv": load_csv,
    ".arff": load_arff,
}


def reader_for(path: PathLike) -> Callable[..., Dataset]:
    """The reader of a file, by its suffix without that of a compression, such as ``.gz``.

    ``.csv`` and ``.tsv`` are tables, ``.arff`` too, ``.npz`` archives; everything else is svmlight, whose files have
    many suffixes or none (``a9a``, ``a9a.t``, ``letter.scale``). A ``.zip`` file is what its one file is.

    Raises
    ------
    ValueError
        For a format that is not read, such as ``.parquet`` or ``.xlsx``, with what to do.

    Examples
    --------
    >>> reader_for("a9a.t").__name__, reader_for("irises.csv.gz").__name__
    ('load_svmlight', 'load_csv')
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    compression = compression_of(path)
    if compression:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if compression == ".zip" and suffix not in _READERS:
        suffix = Path(member_of(path)).suffix.lower()
    if suffix in _NOT_READ:
        raise file_error(path, _NOT_READ[suffix])
    return _READERS.get(suffix, load_svmlight)


def load(path: PathLike, **options: Any) -> Dataset:
    """Read a data file: svmlight, CSV, ARFF or ``.npz``, by its suffix (see `reader_for`).

    Parameters
    ----------
    path : str or path-like
        The file.
    **options
        Passed on to `load_svmlight`, `load_csv`, `load_arff` or `load_npz`.

    Returns
    -------
    Dataset
        As that reader returns it.

    Raises
    ------
    ValueError
        ``FILE:LINE: reason`` when the file is broken.
    """
    return reader_for(path)(path, **options)
