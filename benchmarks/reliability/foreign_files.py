"""Files as other programs write them: read, refused with a reason, or read wrongly.

::

    python benchmarks/reliability/foreign_files.py

Each file holds the same six rows of three columns and their labels, or is damaged. `outcome` is "read" if rows and
labels are those; "refused" by a ValueError that names the file; "wrong" if other rows came out, or another error.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from measuring import campaign
from widemargin.datasets import load

X = np.array([[1, 0, 2.5], [-3, 4, 0], [0, 0.125, 7], [2, -1, 1], [0, 0, 1], [5e3, 1e-3, 2]])
LABELS = np.array([1, -1, 1, -1, 1, -1])
WORDS = np.where(LABELS > 0, "yes", "no")


def _csv(mark: str = ",", *, end: str = "\n", header: str = "", decimal: str = ".", quote: str = "") -> bytes:
    rows = [
        [*(repr(float(v)).replace(".", decimal) for v in x), quote + word + quote]
        for x, word in zip(X, WORDS, strict=True)
    ]
    return (header + "".join(mark.join(row) + end for row in rows)).encode()


def _svmlight(**options: Any) -> bytes:
    file = io.BytesIO()
    dump_svmlight_file(sp.csr_array(X), LABELS, file, **{"zero_based": False, **options})
    return file.getvalue()


def _zip(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _arff() -> bytes:
    columns = "".join(f"@attribute x{j} numeric\n" for j in range(3))
    return f"% by hand\n@relation r\n{columns}@attribute y {{yes,no}}\n@data\n".encode() + _csv()


_HEADER = "a{0}b{0}c{0}label\n"
_MARK = b"\xef\xbb\xbf"  # of the order of bytes, in UTF-8
_CSR = sp.csr_array(X)
# the program, the file's name, its bytes, and options of `load`
FILES: dict[str, tuple[str, Callable[[], bytes], dict[str, Any]]] = {
    "CSV, no header": ("a.csv", _csv, {}),
    "CSV, header": ("a.csv", lambda: _csv(header=_HEADER.format(",")), {}),
    "CSV of Excel (mark, CRLF, quotes)": (
        "a.csv",
        lambda: _MARK + _csv(end="\r\n", header=_HEADER.format(","), quote='"'),
        {},
    ),
    "CSV, semicolons": ("a.csv", lambda: _csv(";", header=_HEADER.format(";")), {}),
    "CSV, semicolons and decimal commas": ("a.csv", lambda: _csv(";", decimal=","), {}),
    "CSV, semicolons and decimal=','": ("a.csv", lambda: _csv(";", decimal=","), {"decimal": ","}),
    "CSV, old Mac line ends": ("a.csv", lambda: _csv(end="\r"), {}),
    "CSV, UTF-16": ("a.csv", lambda: _csv().decode().encode("utf-16"), {}),
    "CSV, a NUL byte": ("a.csv", lambda: _csv() + b"1,\x00,2,yes\n", {}),
    "CSV of R (row names)": (
        "a.csv",
        lambda: (
            b'"","a","b","c","label"\n'
            + b"".join(b'"%d",' % k + row + b"\n" for k, row in enumerate(_csv().splitlines()))
        ),
        {},
    ),
    "CSV, a row too short": ("a.csv", lambda: _csv() + b"1,2\n", {}),
    "TSV": ("a.tsv", lambda: _csv("\t"), {}),
    "CSV, blanks after commas": ("a.csv", lambda: _csv(", "), {}),
    "CSV, spaces": ("a.csv", lambda: _csv(" "), {}),
    "CSV, gzip": ("a.csv.gz", lambda: gzip.compress(_csv()), {}),
    "CSV, bzip2": ("a.csv.bz2", lambda: bz2.compress(_csv()), {}),
    "CSV, xz": ("a.csv.xz", lambda: lzma.compress(_csv()), {}),
    "CSV, zip": ("a.zip", lambda: _zip("a.csv", _csv()), {}),
    "CSV, xz cut off": ("a.csv.xz", lambda: lzma.compress(_csv())[:60], {}),
    "svmlight of scikit-learn": ("a.svm", _svmlight, {}),
    "svmlight, comment and query ids": ("a.svm", lambda: _svmlight(comment="by hand", query_id=np.arange(6)), {}),
    "svmlight, indices from 0": ("a.svm", lambda: _svmlight(zero_based=True), {}),
    "svmlight, indices from 0, zero_based=True": ("a.svm", lambda: _svmlight(zero_based=True), {"zero_based": True}),
    "svmlight, mark and CRLF": ("a.svm", lambda: _MARK + _svmlight().replace(b"\n", b"\r\n"), {}),
    "svmlight, xz": ("a.svm.xz", lambda: lzma.compress(_svmlight()), {}),
    "svmlight, indices that fall": ("a.svm", lambda: _svmlight() + b"1 3:1 2:1\n", {}),
    "svmlight, NaN": ("a.svm", lambda: _svmlight() + b"1 3:nan\n", {}),
    "ARFF": ("a.arff", _arff, {}),
    "ARFF, gzip": ("a.arff.gz", lambda: gzip.compress(_arff()), {}),
    "npz, dense": ("a.npz", lambda: _npz(X=X, y=LABELS), {}),
    "npz, CSR": (
        "a.npz",
        lambda: _npz(data=_CSR.data, indices=_CSR.indices, indptr=_CSR.indptr, shape=_CSR.shape, y=LABELS),
        {},
    ),
    "npz, objects": ("a.npz", lambda: _npz(X=X.astype(object), y=LABELS), {}),
    "npz, cut off": ("a.npz", lambda: _npz(X=X, y=LABELS)[:200], {}),
    "Parquet": ("a.parquet", lambda: b"PAR1", {}),
    "Excel": ("a.xlsx", lambda: _zip("xl/workbook.xml", b"<workbook/>"), {}),
}


def measure(case: str) -> campaign.Rows:
    """Write a file, and read it."""
    name, content, options = FILES[case]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, name)
        path.write_bytes(content())
        try:
            data = load(path, **options)
        except ValueError as error:
            named = name in str(error)
            words = str(error).replace(folder, "").lstrip("/")
            return [{"case": case, "file": name, "outcome": "refused" if named else "wrong", "words": words}]
        except Exception as error:
            return [{"case": case, "file": name, "outcome": "wrong", "words": f"{type(error).__name__}: {error}"}]
    rows = data.X.toarray() if sp.issparse(data.X) else data.X
    expected = LABELS if data.y.dtype.kind in "if" else WORDS
    is_same = rows.shape == X.shape and np.allclose(rows, X, rtol=1e-6) and np.array_equal(data.y, expected)
    words = "" if is_same else f"{rows.shape}, labels {data.y.tolist()}"
    return [{"case": case, "file": name, "outcome": "read" if is_same else "wrong", "words": words}]


if __name__ == "__main__":
    campaign.run(__doc__, "foreign_files", FILES, measure)
