"""`load`: a data file of any format, by the reader that its suffix stands for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from widemargin.datasets.archives import load_npz
from widemargin.datasets.files import Dataset, PathLike, file_error
from widemargin.datasets.svmlight import load_svmlight
from widemargin.datasets.tables import load_csv

# Formats that are not read, and what to do.
_NOT_READ = {
    ".parquet": "Parquet files are not read: convert it to .csv, or save X and y by numpy.savez as .npz",
    ".feather": "Feather files are not read: convert it to .csv, or save X and y by numpy.savez as .npz",
    ".npy": "a .npy file has one array: save X and y by numpy.savez as .npz",
}
_READERS: dict[str, Callable[..., Dataset]] = {".npz": load_npz, ".csv": load_csv, ".tsv": load_csv}


def reader_for(path: PathLike) -> Callable[..., Dataset]:
    """The reader of a file, by its suffix without a final ``.gz`` or ``.bz2``.

    ``.csv`` and ``.tsv`` are tables, ``.npz`` archives; everything else is svmlight, whose files have many suffixes or
    none (``a9a``, ``a9a.t``, ``letter.scale``).

    Raises
    ------
    ValueError
        For a ``.parquet``, ``.feather`` or ``.npy`` file, with what to do.

    Examples
    --------
    >>> reader_for("a9a.t").__name__, reader_for("irises.csv.gz").__name__
    ('load_svmlight', 'load_csv')
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2"):
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix in _NOT_READ:
        raise file_error(path, _NOT_READ[suffix])
    return _READERS.get(suffix, load_svmlight)


def load(path: PathLike, **options: Any) -> Dataset:
    """Read a data file: svmlight, CSV or ``.npz``, by its suffix (see `reader_for`).

    Parameters
    ----------
    path : str or path-like
        The file.
    **options
        Passed on to `load_svmlight`, `load_csv` or `load_npz`.

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
