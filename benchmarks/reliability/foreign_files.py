"""Tables as other programs write them, read by this library and by those that people take, each with its defaults.

Most files hold the same six rows of three columns and their labels; some are damaged, and none of their rows is right.
The outcome is R: right; L: an error that names the file's line or the cause; E: another error; T: numbers came as text,
or all as one column, in silence; S: other numbers or rows in silence. Its rows do not become stale with the readers of
this library: measure them with ``--again``.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from measuring.experiment import Experiment, Row

X = [[1, 0, 2.5], [-3, 4, 0], [0, 0.125, 7], [2, -1, 1], [0, 0, 1], [5e3, 1e-3, 2]]
WORDS = ["high", "low", "high", "low", "high", "low"]
NAMES = ["a", "b", "c", "label"]
DAMAGED = None  # the rows of a file of which none can be right


def text(
    mark: str = ",",
    *,
    end: str = "\n",
    head: str | None = None,
    decimal: str = ".",
    form: str = "{}",
    rows: Any = X,
    labels: Any = WORDS,
) -> str:
    """The table as delimited text."""
    lines = [
        mark.join([*(form.format(str(v)).replace(".", decimal) for v in row), str(label)]) + end
        for row, label in zip(rows, labels, strict=True)
    ]
    return (mark.join(NAMES) + end if head is None else head) + "".join(lines)


def _with(column: list[Any], **how: Any) -> str:
    """The table with these cells in its second column."""
    return text(rows=[[row[0], cell, row[2]] for row, cell in zip(X, column, strict=True)], **how)


def _rows(column: list[Any]) -> list[list[Any]]:
    return [[row[0], cell, row[2]] for row, cell in zip(X, column, strict=True)]


def _svmlight(first: int = 1, labels: Any = (1, -1, 1, -1, 1, -1)) -> str:
    pairs = [" ".join(f"{k + first}:{v}" for k, v in enumerate(row) if v) for row in X]
    return "".join(f"{label} {row}\n" for label, row in zip(labels, pairs, strict=True))


def _zip(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _frame(**columns: Any) -> Any:
    import pandas

    return pandas.DataFrame(
        {**{name: [row[k] for row in X] for k, name in enumerate("abc")}, **columns, "label": WORDS}
    )


def _saved(how: str, **columns: Any) -> bytes:
    """The table by pandas and pyarrow: parquet, feather or xlsx."""
    file = io.BytesIO()
    getattr(_frame(**columns), f"to_{how}")(file, **({"index": False} if how == "excel" else {}))
    return file.getvalue()


ARFF = "@relation r\n@attribute a real\n@attribute b real\n@attribute c real\n@attribute label {high,low}\n@data\n"
GAP = [0, None, 0.125, -1, 0, 1e-3]
CITIES = ["Rome", "Paris", "Rome", "Oslo", "Oslo", "Paris"]
CODES = ["10.2.1", "10.2.2", "11.1.1", "10.2.1", "9.1.0", "9.1.1"]
AGES = ["18-25", "26-40", "18-25", "41-60", "26-40", "18-25"]
LONG = [[k, k % 7 + 0.5, k % 3] for k in range(30_000)]
LONG_WORDS = ["high" if k % 2 else "low" for k in range(30_000)]
ONES = [1, -1, 1, -1, 1, -1]


def _long(row: int, line: str) -> str:
    lines = text(rows=LONG, labels=LONG_WORDS).splitlines(keepends=True)
    lines[row] = line + "\n"
    return "".join(lines)


def _missing(word: str) -> tuple[str, str, Any, Any]:
    return "a.csv", _with(["" if v is None else v for v in GAP]).replace("-3,,", f"-3,{word},"), _rows(GAP), WORDS


# the program or the trap: the file's name, its content, its rows and its labels
FILES: dict[str, tuple[str, Any, Any, Any]] = {
    **{
        f"CSV, {case}": ("a.csv", content, X, WORDS)
        for case, content in {
            "header": text(),
            "no header": text(head=""),
            "semicolons": text(";"),
            "tabs": text("\t"),
            "bars": text("|"),
            "blanks after commas": text(", "),
            "single blanks": text(" "),
            "aligned by blanks": text("  ", form="{:>9}"),
            "of Excel: mark, CRLF": "\ufeff" + text(end="\r\n"),
            "of Excel: sep=": "sep=;\n" + text(";"),
            "old Mac line ends": text(end="\r"),
            "quotes around all": re.sub(r"[^,\n]+", r'"\g<0>"', text()),
            "blank lines": text().replace("\n", "\n\n", 3),
            "comments above": "# by a program\n# on a day\n" + text(),
            "np.savetxt, names in a comment": text(" ", head="# a b c label\n"),
            "delimiter at the ends of lines": text().replace("\n", ",\n"),
            "delimiter at the ends of rows": text(head="a,b,c,label\n", end=",\n"),
            "R, write.csv": text(head='"","a","b","c","label"\n')
            .replace("\n1,", '\n"1",1,', 1)
            .replace("\n-3,", '\n"2",-3,', 1)
            .replace("\n0,0.125", '\n"3",0,0.125')
            .replace("\n2,", '\n"4",2,')
            .replace("\n0,0,1", '\n"5",0,0,1')
            .replace("\n5000", '\n"6",5000'),
            "R, write.table": '"a" "b" "c" "label"\n'
            + "".join(f'"{k}" {line}\n' for k, line in enumerate(text(" ", head="").splitlines(), 1)),
            "pandas' index": ",a,b,c,label\n"
            + "".join(f"{k},{line}\n" for k, line in enumerate(text(head="").splitlines())),
            "plus signs": text().replace("\n1,", "\n+1,"),
            "exponents": text().replace("5000.0", "5e3"),
            "header of years": text(head="2019,2020,2021,label\n"),
            "header that counts": text(head="0,1,2,label\n"),
            "label with blanks": text(labels=["  high", "low ", "high", " low", "high", "low"]),
            "Octave, save -ascii": text("   ", form=" {}"),
            "a quoted name with a comma": text(head='"a, m","b; m",c,label\n'),
            "UTF-16": text().encode("utf-16"),
        }.items()
    },
    **{
        f"CSV, missing as {word or 'nothing'}": _missing(word)
        for word in ("", "NA", "?", "null", ".", "-", "\\N", "#N/A", "NaN", "<NA>", "n/a")
    },
    "CSV, text": ("a.csv", _with(CITIES), _rows(CITIES), WORDS),
    "CSV, codes of three numbers": ("a.csv", _with(CODES), _rows(CODES), WORDS),
    "CSV, ranges of ages": ("a.csv", _with(AGES), _rows(AGES), WORDS),
    "CSV, R's TRUE and FALSE": ("a.csv", _with(["TRUE", "FALSE"] * 3), _rows([1, 0] * 3), WORDS),
    "CSV, text with commas in quotes": (
        "a.csv",
        _with([f'"{c}, town"' for c in CITIES]),
        _rows([f"{c}, town" for c in CITIES]),
        WORDS,
    ),
    "CSV, quotes within quotes": (
        "a.csv",
        _with([f'"""{c}"""' for c in CITIES]),
        _rows([f'"{c}"' for c in CITIES]),
        WORDS,
    ),
    "CSV, several lines in a cell": (
        "a.csv",
        _with([f'"{c}\ntown"' for c in CITIES]),
        _rows([f"{c}\ntown" for c in CITIES]),
        WORDS,
    ),
    "CSV, text beyond ASCII": ("a.csv", _with(["Köln", "Łódź"] * 3), _rows(["Köln", "Łódź"] * 3), WORDS),
    "CSV, categories without header": (
        "a.csv",
        "p,x,e\nq,x,p\np,y,e\nq,y,p\np,x,e\nq,y,p\n",
        [["p", "x"], ["q", "x"], ["p", "y"], ["q", "y"], ["p", "x"], ["q", "y"]],
        ["e", "p"] * 3,
    ),
    "CSV, one row of text first": (
        "a.csv",
        _long(1, "?,1.5,2,high"),
        [[None, 1.5, 2], *LONG[1:]],
        ["high", *LONG_WORDS[1:]],
    ),
    "CSV, decimals begin far below": (
        "a.csv",
        _long(29_000, "28999.4,1.5,2,high"),
        [*LONG[:28999], [28999.4, 1.5, 2], *LONG[29000:]],
        [*LONG_WORDS[:28999], "high", *LONG_WORDS[29000:]],
    ),
    "CSV, a hash begins a row": ("a.csv", text().replace("\n0,0.125", "\n#0,0.125"), DAMAGED, WORDS),
    "CSV, thousands in quotes": (
        "a.csv",
        _with([f'"{k},{k}00"' for k in range(1, 7)]),
        _rows([k * 1100 for k in range(1, 7)]),
        WORDS,
    ),
    "CSV, decimal commas": ("a.csv", text(";", decimal=","), X, WORDS),
    "CSV, percent signs": ("a.csv", _with([f"{k}%" for k in range(6)]), _rows(list(range(6))), WORDS),
    "CSV, 3+ among numbers": ("a.csv", _with([1, 2, "3+", 1, 2, 2]), DAMAGED, WORDS),
    "CSV, a letter among digits": ("a.csv", _with([1, 2, "7l", 1, 2, 2]), DAMAGED, WORDS),
    "CSV, ids beyond 2**53": (
        "a.csv",
        _with([9007199254740993 + k for k in range(6)]),
        _rows([9007199254740993 + k for k in range(6)]),
        WORDS,
    ),
    "CSV, infinity": ("a.csv", _with([1, 2, "inf", 1, 2, 2]), DAMAGED, WORDS),
    "CSV, underscores in numbers": ("a.csv", _with([1, 2, "1_000", 1, 2, 2]), DAMAGED, WORDS),
    "CSV, labels 1E5 and 10E4": ("a.csv", text(labels=["1E5", "10E4"] * 3), X, ["1E5", "10E4"] * 3),
    "CSV, labels 007 and 7": ("a.csv", text(labels=["007", "7"] * 3), X, ["007", "7"] * 3),
    "CSV, labels of 20 digits": (
        "a.csv",
        text(labels=[10**19 + k % 2 for k in range(6)]),
        X,
        [str(10**19 + k % 2) for k in range(6)],
    ),
    "CSV, a label is missing": ("a.csv", text(labels=["high", "", *WORDS[2:]]), DAMAGED, WORDS),
    "CSV, a quote is not closed": ("a.csv", _long(10, '9,"1.5,2,high'), DAMAGED, LONG_WORDS),
    "CSV, a row too short": ("a.csv", text() + "1,2\n", DAMAGED, WORDS),
    "CSV, a row too long": ("a.csv", text() + "1,2,3,high,5\n", DAMAGED, WORDS),
    "CSV, a title": ("a.csv", "Table 1\n" + text(), DAMAGED, WORDS),
    "CSV, Latin-1": ("a.csv", _with(["Köln", "Rom"] * 3).encode("latin-1"), DAMAGED, WORDS),
    "CSV, 2,000 columns of long names": (
        "a.csv",
        ",".join(f"x{k:080}" for k in range(2000)) + ",label\n" + ("1," * 2000 + "high\n") + ("2," * 2000 + "low\n"),
        [[1] * 2000, [2] * 2000],
        ["high", "low"],
    ),
    "CSV, a cell of 150 kB": ("a.csv", _with(["z" * 150_000, *CITIES[1:]]), _rows(["z" * 150_000, *CITIES[1:]]), WORDS),
    **{
        f"CSV, {name}": (f"a.csv.{name}", pack(text().encode()), X, WORDS)
        for name, pack in (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress))
    },
    "CSV, zip": ("a.csv.zip", _zip("a.csv", text().encode()), X, WORDS),
    "CSV, gzip cut off": (
        "a.csv.gz",
        gzip.compress(text(rows=LONG, labels=LONG_WORDS).encode())[:9000],
        DAMAGED,
        WORDS,
    ),
    "Parquet": ("a.parquet", lambda: _saved("parquet"), X, WORDS),
    "Parquet, text and gaps": (
        "a.parquet",
        lambda: _saved("parquet", b=GAP, d=CITIES),
        [[*r, c] for r, c in zip(_rows(GAP), CITIES, strict=True)],
        WORDS,
    ),
    "Parquet, cut off": ("a.parquet", lambda: _saved("parquet")[:900], DAMAGED, WORDS),
    "Feather": ("a.feather", lambda: _saved("feather"), X, WORDS),
    "Excel": ("a.xlsx", lambda: _saved("excel"), X, WORDS),
    "Excel, gaps": ("a.xlsx", lambda: _saved("excel", b=GAP), _rows(GAP), WORDS),
    "JSON lines": ("a.jsonl", lambda: _frame().to_json(orient="records", lines=True), X, WORDS),
    "JSON lines, gaps": ("a.jsonl", lambda: _frame(b=GAP).to_json(orient="records", lines=True), _rows(GAP), WORDS),
    "ARFF": ("a.arff", ARFF + text(head=""), X, WORDS),
    "ARFF, blanks": ("a.arff", ARFF + text(" ", head=""), X, WORDS),
    "ARFF, comments behind rows": ("a.arff", ARFF + text(head="", end=" % note\n"), X, WORDS),
    "ARFF, sparse": (
        "a.arff",
        ARFF
        + "".join(
            "{" + ", ".join(f"{k} {v}" for k, v in enumerate([*row, word]) if v and v != "high") + "}\n"
            for row, word in zip(X, WORDS, strict=True)
        ),
        X,
        WORDS,
    ),
    "ARFF, weights": ("a.arff", ARFF + text(head="", end=",{2}\n"), X, WORDS),
    "svmlight": ("a.svm", _svmlight(), X, ONES),
    "svmlight, text labels": ("a.svm", _svmlight(labels=WORDS), X, WORDS),
    "svmlight, indices from 0": ("a.svm", _svmlight(0), DAMAGED, ONES),
    "svmlight, indices that fall": ("a.svm", _svmlight() + "1 3:1 2:1\n", DAMAGED, ONES),
    "svmlight, underscores": ("a.svm", _svmlight() + "1 1:1_0\n", DAMAGED, ONES),
    "npz": ("a.npz", _npz(X=np.array(X), y=WORDS), X, WORDS),
    "npz, objects": ("a.npz", _npz(X=np.array(X, dtype=object), y=WORDS), DAMAGED, WORDS),
}


def _reader(readers: dict[str, Callable[[str], Any]], path: str, otherwise: Callable[[str], Any]) -> Any:
    return readers.get(Path(path).name.split(".")[1], otherwise)


def _split(frame: Any) -> Any:
    """A frame's last column, the labels, apart."""
    return frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()


def _ours(path: str) -> Any:
    from widemargin import load_table

    return load_table(path)


def _pandas(path: str) -> Any:
    import pandas

    readers: dict[str, Callable[[str], Any]] = {
        "parquet": pandas.read_parquet,
        "feather": pandas.read_feather,
        "xlsx": pandas.read_excel,
        "jsonl": partial(pandas.read_json, lines=True),
    }
    return _split(_reader(readers, path, pandas.read_csv)(path))


def _polars(path: str) -> Any:
    import polars

    suffix = Path(path).name.split(".")[1]
    readers: dict[str, Callable[[str], Any]] = {
        "parquet": polars.read_parquet,
        "feather": polars.read_ipc,
        "xlsx": polars.read_excel,
        "jsonl": polars.read_ndjson,
    }
    frame = readers.get(suffix, polars.read_csv)(path)
    return frame[:, :-1], frame[:, -1].to_numpy()


def _pyarrow(path: str) -> Any:
    from pyarrow import csv, feather, json, parquet

    readers: dict[str, Callable[[str], Any]] = {
        "parquet": parquet.read_table,
        "feather": feather.read_table,
        "jsonl": json.read_json,
    }
    return _split(_reader(readers, path, csv.read_csv)(path).to_pandas())


def _duckdb(path: str) -> Any:
    import duckdb

    readers: dict[str, Callable[[str], Any]] = {"parquet": duckdb.read_parquet, "jsonl": duckdb.read_json}
    return _split(_reader(readers, path, duckdb.read_csv)(path).df())


LIBRARIES = {"widemargin": _ours, "pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow, "duckdb": _duckdb}
_CAUSE = re.compile(
    r":\d+: |\bline\b|\brow\b|truncated|damaged|UTF-8|utf-8|column|not supported|not read|pickle", re.IGNORECASE
)


def outcome(read: Callable[[str], Any], path: str, rows: Any, labels: Any) -> tuple[str, str]:
    """R, T, S, L or E, and in words what came."""
    try:
        found, y = read(path)
    except (ImportError, KeyboardInterrupt):
        raise
    except BaseException as error:  # of Polars, a panic
        words = " ".join(str(error).split()).replace(str(Path(path).parent), "")[:200]
        return ("L" if _CAUSE.search(words) else "E"), words
    table = found.toarray() if hasattr(found, "indptr") else np.asarray(found, dtype=object)
    is_whole = rows is not DAMAGED and table.shape == (len(rows), len(rows[0]))
    if is_whole and list(map(str, y)) == list(map(str, labels)):
        cells = zip(table.ravel().tolist(), (cell for row in rows for cell in row), strict=True)
        if all(_is_same(a, b) for a, b in cells):
            return "R", ""
    is_text = [any(isinstance(cell, str) for cell in column) for column in table.T]
    wanted = [any(isinstance(cell, str) for cell in column) for column in zip(*(rows or X), strict=True)]
    is_lost = table.shape[1] <= 1 or any(text and not word for text, word in zip(is_text, wanted, strict=False))
    return ("T" if is_lost else "S"), f"{table.shape}, labels {list(y[:3])}"


def _is_same(found: Any, right: Any) -> bool:
    if right is None:
        return found is None or found != found
    if isinstance(right, str) or isinstance(found, str):
        return bool(found == right)
    return found is not None and (
        int(found) == right
        if isinstance(right, int) and right > 2**52
        else bool(np.isclose(float(found), right, rtol=1e-6))
    )


def measure(case: str, run: Any = None) -> list[Row]:
    """Write a file, and read it by each library that is installed."""
    name, content, expected, labels = FILES[case]
    content = content() if callable(content) else content
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, name)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        for library, read in LIBRARIES.items():
            try:
                letter, words = outcome(read, str(path), expected, labels)
            except ImportError:
                continue
            found.append({"case": case, "library": library, "outcome": letter, "words": words})
    return found


FOREIGN_FILES = Experiment("foreign_files", tuple(FILES), ("case", "library"), measure, seconds=10.0)
