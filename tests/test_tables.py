"""`load_table`: files as programs write them, with their right values, or an error that names line and option."""

import gzip
import os
import re
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import write
from widemargin import config_context, load_table
from widemargin.datasets import arrow, tables
from widemargin.datasets.files import labels_of


def read(path, **options):
    """Rows, labels and warnings of a table."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        X, y = load_table(path, **options)
    rows = [[None if cell != cell else cell for cell in row] for row in X.astype(object).to_numpy().tolist()]
    return rows, None if y is None else y.tolist(), " ".join(str(one.message) for one in caught)


def fails(path, *parts, path_read=None, **options):
    with pytest.raises(ValueError, match=re.escape(path.name)) as caught:
        read(path_read or path, **options)
    for part in parts:
        assert part in str(caught.value)


# Layouts of delimited text


@pytest.mark.parametrize(
    "text",
    [
        "price; EUR,b,kind\n1,2,x\n3,4,y\n",
        '"price; EUR",b,kind\n1,2,x\n3,4,y\n',
        "sep=;\na;b;kind\n1;2;x\n3;4;y\n",
        "sep=|\na|b|kind\n1|2|x\n3|4|y\n",
        "a|b|kind\n1|2|x\n3|4|y\n",
        "a,b,kind,\n1,2,x,\n3,4,y,\n",
        "a,b,kind\n1,2,x,\n3,4,y,\n",
        "price, EUR\tb\tkind\n1\t2\tx\n3\t4\ty\n",
        "\ufeffa,b,kind\r\n1,2,x\r\n\r\n3,4,y\r\n",
        "a,b,kind\r1,2,x\r3,4,y\r",
        '# by a program\n# on a day\n\na, b, kind\n1, 2, "x"\n3, 4, "y"\n',
        "# a b kind\n1.0e+00 2.0e+00 x\n3.0e+00 4.0e+00 y\n",  # np.savetxt
        "   1.0000e+00   2.0000e+00  x\n   3.0000e+00   4.0000e+00  y\n",  # Octave: save -ascii
        '"a" "b" "kind"\n"1" 1 2 "x"\n"2" 3 4 "y"\n',  # R: write.table
        '"","a","b","kind"\n"1",1,2,"x"\n"2",3,4,"y"\n',  # R: write.csv
        "Unnamed: 0,a,b,kind\n17,1,2,x\n4,3,4,y\n",  # pandas
    ],
)
def test_layouts(tmp_path, text):
    assert read(write(tmp_path, "a.csv", text))[:2] == ([[1, 2], [3, 4]], ["x", "y"])
    assert read(write(tmp_path, "b.csv", text.encode("utf-16") if "\ufeff" not in text else text))[1] == ["x", "y"]


@pytest.mark.parametrize("header", ["0,1,2,3", "0,1,2,label", ",0,1,2,3", "Unnamed: 0,0,1,2,label", "2019,2020,2021,k"])
def test_a_header_that_counts_the_columns_or_years(tmp_path, header):
    has_index = header.startswith((",", "U"))
    rows = "".join(f"{f'{k},' if has_index else ''}{k}.5,2,3,{'uv'[k % 2]}\n" for k in range(4))
    found, labels, notes = read(write(tmp_path, "a.csv", f"{header}\n{rows}"))
    assert (len(found), labels) == (4, ["u", "v", "u", "v"])
    assert "was taken for a header" in notes


def test_rows_that_are_no_header_stay_samples(tmp_path):
    for text in ("0,1,2\n5,6,7\n", "0,1,2,1\n5,6,7,0\n", "p,x,s\ne,x,s\np,y,s\n", "2019,2020,x\n1,2,x\n3,4,y\n"):
        assert len(read(write(tmp_path, "a.csv", text))[0]) == text.count("\n")
    for head in ["2018,2019,kind", "2018,2019,2020", "2018,2019,2021,kind", "town,2018,2019,kind", "town,0,1,kind"]:
        first = "" if head.count(",") == 2 else "1," if head[0] == "2" else "a,"
        path = write(tmp_path, "c.csv", f"{head}\n{first}1.5,2,u\n{first}3,4,v\n{first}5,6,u\n")
        fails(path, "c.csv:1: is the first row a header ('")
    path = write(tmp_path, "b.csv", "unknown,5.5,x\n1,2,x\n3,4,y\n")
    fails(path, "b.csv:1: is the first row a header ('unknown', '5.5')? --header yes or no")
    assert len(read(path, header=True)[0]) == 2
    fails(path, "column 1 is 'unknown', which is not a number", "--missing 'unknown'", header=False)
    assert read(path, header=False, missing=["unknown"])[0][0] == [None, 5.5]


def test_columns_that_count_the_rows_are_named(tmp_path):
    for name in ("rownames", "X", "id", "...1"):
        text = f"{name},a,kind\n" + "".join(f"{k + 1},{k % 3},{'xy'[k > 4]}\n" for k in range(9))
        assert f"column 1 ('{name}') counts the rows: --drop '{name}'" in read(write(tmp_path, "a.csv", text))[2]
    rows, _, notes = read(write(tmp_path, "b.csv", '"","mpg","am"\n"Fiat 128",2,x\n"Mazda",3,y\n'))
    assert rows == [[2], [3]]
    assert "column 1 ('') names the rows and was dropped" in notes
    fails(write(tmp_path, "b.csv", "a,y\nu,1,x\nu,2,y\n"), "b.csv:2: 3 fields where the first row has 2")
    path = write(tmp_path, "c.csv", "id,a,kind\n4,1,x\n2,3,y\n")
    assert read(path, drop=["id"])[0] == read(path, drop=[0], header=True)[0] == [[1], [3]]
    fails(path, "c.csv:1: no column is named 'ids': did you mean 'id'", drop=["ids"])
    fails(path, "no column is left as a feature", drop=["id", "a"])
    fails(path, "there is no column 7: a row has 3", target=7)
    assert read(path, target=None, drop=["kind"])[:2] == ([[4, 1], [2, 3]], None)


# Numbers, categories, dates


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("TRUE FALSE NA", [1, 0, None]),
        ("1e3 +1.5 .5", [1000, 1.5, 0.5]),
        ("1 . 2", [1, None, 2]),
        ("\\N 3 -", [None, 3, None]),
        ("red blue ?", ["red", "blue", None]),
        ("18-25 26-40 10.2.1", ["18-25", "26-40", "10.2.1"]),
        ("2026-11-27 2026-11-28T10:00:00.123456789 NA", ["2026-11-27", "2026-11-28T10:00:00.123456", None]),
    ],
)
def test_cells(tmp_path, cells, expected):
    text = "a,b,y\n" + "".join(f"{cell},{k}.5,{'uv'[k % 2]}\n" for k, cell in enumerate(cells.split()))
    found = [row[0] for row in read(write(tmp_path, "a.csv", text))[0]]
    if cells.startswith("2026"):
        expected = [None if cell is None else pd.Timestamp(cell) for cell in expected]
        found = [None if cell is pd.NaT else cell for cell in found]
    assert found == expected


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (['"7,074"', '"8,123"', '"6"'], "--thousands ,, or thousands=','"),
        (['"1,5"', '"2,75"'], "--decimal , or decimal=','"),
        (["3", "3+", "4", "5"], "--one-hot a, or text=['a']"),
        (["3", "7l", "4", "5"], "--missing '7l'"),
        (["12%", "13%"], "remove the mark beside the digits"),
        (["03/04/2026", "12/04/2026"], "write dates as 2026-11-27"),
        (["\u22125", "\u22126"], "remove the mark"),
        (["27-Nov-2026", "28-Nov-2026"], "write dates as 2026-11-27"),
        (["12:30", "13:45:10"], "write times as numbers"),
        (["1", "1_000"], "'1_000', which is not a number"),
        (["1", "1e600"], "not finite"),
        (["9007199254740993.0", "1"], "an id? --drop"),
    ],
)
def test_cells_that_would_be_a_guess_are_refused_with_the_option(tmp_path, cells, reason):
    bad = next(k for k, cell in enumerate(cells) if cell not in ("1", "3"))
    path = write(tmp_path, "a.csv", "b,a,y\n" + "".join(f"{k},{cell},{k % 2}\n" for k, cell in enumerate(cells)))
    fails(path, f"a.csv:{bad + 2}: column 2 ('a') is ", reason)


def test_the_options_that_errors_name_work(tmp_path):
    path = write(tmp_path, "a.csv", 'rooms,price,y\n3,"7,074",u\n3+,"8,123.5",v\n')
    assert read(path, text=["rooms"], thousands=",")[0] == [["3", 7074], ["3+", 8123.5]]
    assert read(path, missing=["3+"], thousands=",")[0] == [[3, 7074], [None, 8123.5]]
    path = write(tmp_path, "a.csv", 'a,y\n"12,34,567",u\n"1,000",v\n')
    assert read(path, thousands=",")[0] == [[1234567], [1000]]
    path = write(tmp_path, "b.csv", "a;b;y\n1,5;2;0,5\n2,5;1.234;1,5\n")
    fails(path, "b.csv:2: column 1 ('a') is '1,5', which is not a number; --decimal ,")
    fails(path, "b.csv:3: column 2 ('b') is '1.234'", "thousands: --thousands .", decimal=",")
    assert read(path, decimal=",", thousands=".")[:2] == ([[1.5, 2], [2.5, 1234]], [0.5, 1.5])
    path = write(tmp_path, "c.csv", 'a,y\n1,"1,5"\n2,"2,5"\n')
    fails(path, "column 2 ('y') is '1,5', which is not a number; --decimal ,")
    zips = write(tmp_path, "d.csv", "zip,a,y\n01234,1,u\n21234,2,v\n")
    assert "numbers with leading zeros lose them: 'zip'" in read(zips)[2]
    assert read(zips, text=["zip"])[0][0] == ["01234", 1]


# Labels


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["007", "7"], ["007", "7"]),
        (["9007199254740993", "-1"], [9007199254740993, -1]),
        (["9007199254740993", "1.5"], ["9007199254740993", "1.5"]),
        (["18446744073709551616", "1"], ["18446744073709551616", "1"]),
        (["1.0", "+2"], [1, 2]),
        (["1.0", "1"], [1, 1]),
        (["9007199254740993.0", "9007199254740992.0"], ["9007199254740993.0", "9007199254740992.0"]),
        (["1e3", "2"], [1000, 2]),
        (["1E5", "10E4"], ["1E5", "10E4"]),
        (["1_0", "2"], ["1_0", "2"]),
        (["TRUE", "FALSE"], ["TRUE", "FALSE"]),
    ],
)
def test_labels_are_numbers_where_that_loses_nothing(texts, expected, tmp_path):
    assert labels_of(texts).tolist() == expected
    path = write(tmp_path, "a.csv", "".join(f"{k},{text}\n" for k, text in enumerate(texts)))
    _, labels, notes = read(path, header=False)
    assert labels == expected
    assert ("labels that are one number are one class: 1.0 and 1" in notes) == (texts == ["1.0", "1"])


def test_ids_that_lost_their_digits_are_named(tmp_path):
    """A spreadsheet, and pandas where a value is missing, keep whole numbers as floats."""
    ids, lost = [2**53 + 1, 2**53 + 3, 5], "has whole numbers beyond 2**53, of which numbers of 64 bits keep 16 digits"
    frame = pd.DataFrame({"id": [None, *ids[1:]], "who": ids, "y": ids})
    frame.to_parquet(tmp_path / "a.parquet")
    notes = read(tmp_path / "a.parquet", drop=["who"])[2]
    assert (f"column 1 ('id') {lost}" in notes, "column 3" in notes) == (True, False)  # labels have all digits
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    rows, labels, notes = read(tmp_path / "a.xlsx")
    assert rows[2][1] == labels[2] == 5
    assert all(f"column {column} {lost}" in notes for column in ("1 ('id')", "2 ('who')", "3 ('y')"))
    path = write(tmp_path, "a.jsonl", '{"a":9007199254740993.0,"y":1}\n')
    fails(path, "a.jsonl:1: column 1 ('a') is '900719", "an id?")
    assert f"column 2 ('who') {lost}" in read(tmp_path / "a.xlsx", text=["who"], drop=["id"])[2]
    excel = write(tmp_path, "b.csv", "a,id,y\n1,1.23457E+17,u\n2,1.23458E+17,v\n")
    assert f"column 2 ('id') {lost}" in read(excel)[2]
    assert "2**53" not in read(write(tmp_path, "a.csv", "a,y\n1e300,u\n2.5,v\n"))[2]


def test_missing_labels(tmp_path):
    for word in ("", "NA", "null", "?", "-", "\\N"):
        path = write(tmp_path, "a.csv", f"a,kind\n1,x\n2,{word}\n3,y\n")
        fails(path, "a.csv:3: the label is missing; --unlabelled drop")
        assert read(path, unlabelled="drop")[:2] == ([[1], [3]], ["x", "y"])
        assert read(path, unlabelled="keep")[1] == ["x", "", "y"]
        none = write(tmp_path, "c.csv", f"a,kind\n1,{word}\n2,{word}\n")
        assert read(none, unlabelled="keep")[1] is None
    assert read(write(tmp_path, "a.csv", "1,+\n2,-\n"))[1] == ["+", "-"]
    numbers = "".join(f"{k},{k + 0.25 if k != 7 else 'NA'}\n" for k in range(30))
    fails(write(tmp_path, "b.csv", numbers), "b.csv:8: the label is missing")
    assert np.isnan(load_table(tmp_path / "b.csv", unlabelled="keep").y[7])
    path = write(tmp_path, "c.csv", "a,y\n3,1\n4,.\n5,0\n")  # SAS, Stata
    fails(path, "c.csv:3: the label is missing")
    assert read(path, unlabelled="drop")[:2] == ([[3], [5]], [1, 0])
    assert read(write(tmp_path, "c.csv", "a,y\n3,x\n4,.\n"))[1] == ["x", "."]


# Faults


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        ("\n\n", "", "the file is empty"),
        ("a,b\n", "", "a header and no samples"),
        ("a,b,y\n1,2,0\n1,0\n", ":3", "2 fields where the first row has 3"),
        ("5\n6\n", ":1", "one column only"),
        ("|1x3 Cross validator\n25, 1, <=50K.\n", ":1", "1 field where the next row has 3: a title? Remove the line"),
        ('a,b,y\n1,"2,x\n3,4,y\n5,6,x\n', ":2", "a quote that is opened in this row is not closed"),
        ('a,b,y\n1,2,x\n3,"u,y\n5,"v",x\n', ":3", "a quote that is opened in this row is not closed"),
        ('a,b,y\n1,"say \\"hi\\", ok",x\n2,"say \\"hi\\", ok",y\n', ":2", "a quote that is opened in this row"),
        (b"a,y\n1,\xff\xfe\n", "", "not a text file in UTF-8"),
        ("a,b,y\n1,u,x\n2,v,y\n".encode("utf-16-be"), "", "not a text file in UTF-8 (it has zero bytes)"),
        ("a,b,b\n1,2,x\n", ":1", "several columns are named 'b': give a position"),
    ],
)
def test_broken_text_is_named(tmp_path, text, where, reason):
    fails(write(tmp_path, "bad.csv", text), f"bad.csv{where}: ", reason, target="b" if "named" in reason else -1)


def test_an_unclosed_quote_many_columns_and_long_cells(tmp_path, monkeypatch):
    rows = [f"{k},name{k},{'xy'[k % 2]}" for k in range(5000)]
    rows[9], rows[4000] = '9,"name9,y', '4000,"name4000",x'
    path = write(tmp_path, "a.csv", "a,b,y\n" + "\n".join(rows) + "\n")
    assert all("a.csv:11: a quote" in found for found in _both(path, monkeypatch, drop=["b"]))
    monkeypatch.undo()
    wide = ",".join(f"x{k}" for k in range(20_000)) + ",y\n" + ("1," * 20_000 + "u\n") + ("2," * 20_000 + "v\n")
    assert load_table(write(tmp_path, "a.csv", wide)).X.shape == (2, 20_000)
    assert read(write(tmp_path, "b.csv", f"a,b,y\n1,{'z' * 150_000},u\n2,c,v\n"))[0][0][1] == "z" * 150_000


# pyarrow and the strict reader


def _both(path, monkeypatch, **options):
    """What pyarrow and the strict reader make of a file: a table, or an error."""
    found = []
    for least in (0, 2**40):
        monkeypatch.setattr(tables, "_LEAST_BYTES", least)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(load_table(path, **options))
        except ValueError as error:
            found.append(str(error))
    return found


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1", "-2.5", "1e3", "", "NA", "0.1", "3", "+4", "007"]),
            st.sampled_from(["u", "v w", 'say ""hi""', "", "NA", " x", "a,b", "Köln", "line\nbreak", "-"]),
            st.sampled_from(["yes", "no", "1", " yes"]),
        ),
        min_size=2,
        max_size=30,
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_both_readers_agree(tmp_path_factory, rows, end):
    text = "a,b,y" + end + "".join(f'{a},"{b}",{y}{end}' for a, b, y in rows)
    path = write(tmp_path_factory.mktemp("both"), "a.csv", text)
    with pytest.MonkeyPatch.context() as patch:
        one, other = _both(path, patch, text=["b"], header=True)
    if isinstance(other, str):
        assert one == other
    else:
        pd.testing.assert_frame_equal(one.X.astype(object), other.X.astype(object))
        assert one.y.tolist() == other.y.tolist()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1,x,2", "is 'x', which is not a number"),
        ("1,2", "2 fields where the first row has 3"),
        ('"1,2,u', "a quote that is opened"),
        ("inf,2,u", "not finite"),
        ("9007199254740993,2,u", "an id?"),
        ("0.4,2,u", ""),  # decimals are kept
    ],
)
def test_a_fault_far_below_is_named(tmp_path, monkeypatch, row, reason):
    monkeypatch.setattr(tables, "_HEAD_ROWS", 100)
    lines = [f"{k},{k * 2},{'uv'[k % 2]}" for k in range(5000)]
    lines[3999] = row
    one, other = _both(write(tmp_path, "a.csv", "a,b,y\n" + "\n".join(lines)), monkeypatch)
    if reason:
        assert one == other
        assert re.search(rf"a.csv:4001: .*{re.escape(reason)}", one)
    else:
        assert one.X["a"].iloc[3999] == other.X["a"].iloc[3999] == 0.4


def test_a_cell_of_many_lines_in_a_column_that_is_left_out(tmp_path, monkeypatch):
    """Which pyarrow ends with its block."""
    monkeypatch.setattr(arrow, "_BLOCK_BYTES", 150)
    text = "a,y,b\n" + "5,u,p\n" * 2 + '1,u,"x\n' + "9,u,p\n" * 25 + '6,u,x"\n' + "2,v,p\n" * 10
    path = write(tmp_path, "a.csv", text)
    assert [len(table.y) for table in _both(path, monkeypatch, target="y", drop=["b"])] == [13, 13]


def test_without_the_extra_the_strict_reader_reads(tmp_path, monkeypatch):
    text = "a,b,y\n" + "".join(f"{k},{'pq'[k % 2]},{k % 2}\n" for k in range(30))
    for name in ("pyarrow", "pandas", "python_calamine"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(tables, "_LEAST_BYTES", 0)
    X, _ = load_table(write(tmp_path, "a.csv", text), drop=["b"])
    assert (X.dtype, X.shape) == (np.float64, (30, 1))
    X, _ = load_table(tmp_path / "a.csv")
    assert X[:2].tolist() == [[0.0, "p"], [1.0, "q"]]
    for name in ("a.parquet", "a.xlsx", "a.feather"):
        with pytest.raises(ValueError, match=rf"{name}: .* pip install "):
            load_table(write(tmp_path, name, b"PAR1"))


# Parquet, Arrow, JSON, spreadsheets


def _frame():
    frame = pd.DataFrame({"n": [1, 2, 3], "f": [0.5, None, 2.5], "flag": [True, False, True]})
    when = pd.to_datetime(["2026-01-01", None, "2026-01-03"])
    return frame.assign(city=pd.Categorical(["a", None, "b"]), when=when, y=["u", "v", "u"])


ROWS = [[1, 0.5, 1, "a"], [2, None, 0, None], [3, 2.5, 1, "b"]]


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.arrow", "stream.arrow"])
def test_columnar_files(tmp_path, name):
    table, path = pa.Table.from_pandas(_frame()), tmp_path / name
    if name == "a.parquet":
        pq.write_table(table, path)
    elif name == "a.feather":
        pyarrow.feather.write_feather(table, path)
    else:
        make = pa.ipc.new_stream if name.startswith("stream") else pa.ipc.new_file
        with make(path, table.schema) as writer:
            writer.write_table(table)
    assert read(path, drop=["when"])[:2] == (ROWS, ["u", "v", "u"])
    assert load_table(path).X["when"].tolist()[0] == pd.Timestamp("2026-01-01")
    assert read(path, target="n", drop=["when"])[1] == [1, 2, 3]
    fails(path, "column 5 ('when') holds timestamp", target="when")
    content = path.read_bytes()
    fails(write(tmp_path, f"cut{path.suffix}", content[: len(content) // 2]), "truncated or damaged")


def test_columnar_types_and_missing_words(tmp_path):
    path = tmp_path / "a.parquet"

    def saved(**columns):
        pq.write_table(pa.table(columns), path)
        return path

    fails(saved(a=[1, 2], b=[[1], [2]], y=["u", None]), "column 2 ('b') holds list")
    fails(path, "the label is missing", drop=["b"])
    fails(saved(a=[2**53 + 1, 2], y=[True, False]), "beyond 2**53", "an id? --drop")
    assert read(path, text=["a"])[:2] == ([["9007199254740993"], ["2"]], [True, False])
    frame = pd.DataFrame({"a": [1, -9, 3], "s": ["u", "n/a", "v"], "y": [0, 1, -9]}, index=["p", "q", "r"])
    frame.rename_axis("name").to_parquet(path)
    rows, labels, notes = read(path, missing=["-9", "n/a"], unlabelled="keep")
    assert rows == [[1, "u"], [None, None], [3, "v"]]
    assert (labels[:2], np.isnan(labels[2])) == ([0, 1], True)
    assert "pandas' index was left out: 'name'; reset_index()" in notes
    pq.write_table(pa.table([[1], [2], [3]], names=["a", "a", "y"]), path)
    fails(path, "several columns are named 'a'")
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["u", None]))
    pyarrow.feather.write_feather(pa.table({"a": words, "y": [1, 2]}), tmp_path / "c.feather")
    assert read(tmp_path / "c.feather")[0] == [["u"], [None]]
    assert read(saved(a=[1, 2], y=["+", ""]))[1] == ["+", ""]  # words of a format that has nulls


def test_folders_and_patterns(tmp_path):
    for year in (2025, 2026):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"a": [year / 2], "y": ["uv"[year % 2]]}), tmp_path / f"year={year}" / "part.parquet")
    (tmp_path / "_SUCCESS").touch()
    rows, labels, notes = read(tmp_path)
    assert (rows, labels) == ([[1012.5], [1013]], ["v", "u"])
    assert "its folders named key=value are no columns" in notes
    assert read(tmp_path / "*" / "*.parquet")[:2] == (rows, labels)
    other = tmp_path / "year=2026" / "other.parquet"
    pq.write_table(pa.table({"b": [1.0], "y": ["u"]}), other)
    fails(other, f"its columns are others than those of {tmp_path}", path_read=tmp_path)
    pq.write_table(pa.table({"a": ["word"], "y": ["u"]}), other)
    fails(other, "column 1 ('a') has another type than in", path_read=tmp_path)
    pq.write_table(pa.table({"a": [7], "y": ["u"]}), other)
    assert [7] in read(tmp_path)[0]
    for name, text in (("1.csv", "a,y\n1,u\n"), ("2.csv", "a,y\n2.5,v\n"), ("3.csv", "a,z\n2.5,v\n")):
        write(tmp_path, name, text)
    assert read(tmp_path / "[12].csv")[:2] == ([[1], [2.5]], ["u", "v"])
    fails(tmp_path / "3.csv", "its columns are others than those of", path_read=tmp_path / "?.csv")
    for name, text in (("8.csv", '"",a,y\np,1,u\nq,2,v\n'), ("9.csv", '"",a,y\nr,3,u\nr,4,v\n')):
        write(tmp_path, name, text)
    assert read(tmp_path / "[89].csv")[0] == [[1], [2], [3], [4]]  # without the names of rows in the first
    with pytest.raises(FileNotFoundError):
        load_table(tmp_path / "no*.csv")


def test_json_lines(tmp_path):
    lines = '{"a":1,"b":"x","c":true,"y":"u"}\n{"a":null,"b":"z","c":false,"y":"v"}\n{"b":null,"c":true,"y":"u"}\n'
    expected = [[1, "x", 1], [None, "z", 0], [None, None, 1]]
    assert read(write(tmp_path, "a.jsonl", lines))[:2] == (expected, ["u", "v", "u"])
    listed = f"[{','.join(lines.splitlines())}]"
    assert read(write(tmp_path, "a.json", listed))[0] == expected
    fails(write(tmp_path, "b.jsonl", lines + '{"a":1\n'), "b.jsonl:4: not JSON")
    fails(write(tmp_path, "c.jsonl", lines + '{"d":1}\n'), "c.jsonl:4: the first object has no 'd'")
    fails(write(tmp_path, "d.jsonl", '{"a":[1],"y":"u"}\n'), "d.jsonl:1: 'a' is a list or an object")


def test_spreadsheets(tmp_path):
    path = tmp_path / "a.xlsx"
    _frame().to_excel(path, index=False)
    rows, labels, _ = read(path, drop=["when"])
    assert (rows, labels) == (ROWS, ["u", "v", "u"])
    assert load_table(path).X["when"].tolist()[0] == pd.Timestamp("2026-01-01")
    with pd.ExcelWriter(tmp_path / "two.xlsx") as writer:
        _frame().to_excel(writer, sheet_name="one")
        _frame().to_excel(writer, sheet_name="two")
    fails(tmp_path / "two.xlsx", "several sheets have rows: 'one', 'two'")
    fails(write(tmp_path, "cut.xlsx", path.read_bytes()[:2000]), "truncated or damaged spreadsheet")


# ARFF


def test_arff_of_weka_and_r(tmp_path):
    text = """% a comment
@RELATION weather
@attribute 'outlook today' {sunny, 'part cloudy', '?', "don't", "it's, ok", 'tab\\there'}
@attribute temperature REAL
@attribute c {1,2,3}
@attribute when date "yyyy-MM-dd HH:mm"
@attribute play {yes, no} % note

@DATA
sunny, 85, 1, "2026-01-02 03:04", no % trailing
% another
'part cloudy',?,3,?,yes
'?',1,2,?,yes
"don't" 2 2 ? no
"it's, ok",3,1,?,no
'tab\\there',4,1,?,no
"""
    path = write(tmp_path, "a.arff", text)
    X, y = load_table(path)
    words = ["sunny", "part cloudy", "?", "don't", "it's, ok", "tab\there"]
    assert X["outlook today"].tolist() == words
    assert X["c"].tolist() == ["1", "3", "2", "2", "1", "1"]
    assert X["when"].tolist()[0] == pd.Timestamp("2026-01-02 03:04")
    assert X["temperature"].isna().tolist() == [False, True] + 4 * [False]
    assert y.tolist() == ["no", "yes", "yes", "no", "no", "no"]
    assert load_table(path, target="temperature", unlabelled="drop").y.tolist() == [85, 1, 2, 3, 4]


def test_arff_dates_weights_and_sparse_rows(tmp_path):
    head = "@attribute a date 'yyyy-MM-dd'\n@attribute b date \"yyyy-MM-dd'T'HH:mm:ssZ\"\n@attribute y real\n@data\n"
    path = write(tmp_path, "a.arff", f"{head}2001-04-03,2001-04-03T01:02:03.500+0200,1\n?,?,NaN\n")
    X, y = load_table(path, missing=["NaN"], unlabelled="keep")
    assert X.iloc[0].tolist() == [pd.Timestamp("2001-04-03"), pd.Timestamp("2001-04-02 23:02:03.5")]
    assert (y[0], np.isnan(y[1]), X.iloc[1].isna().all()) == (1, True, True)
    fails(path, "a.arff:6: column 3 ('y') is 'NaN', which is not a number", "--missing 'NaN'")
    path = write(tmp_path, "b.arff", f"{head}'3. Apr 2001',?,1\n")
    fails(path, "b.arff:5: column 1 ('a') is '3. Apr 2001'", "no date")
    head = "@relation r\n@attribute a {u,v}\n@attribute b real\n@attribute y {no,yes}\n@data\n"
    with pytest.warns(UserWarning, match="its rows have weights: they are the table's sample_weight"):
        table = load_table(write(tmp_path, "a.arff", head + "u,1,no,{5}\nv,2,yes\n{1 5},{2}\n{0 v, 2 yes}\n"))
    assert table.sample_weight.tolist() == [5, 1, 2, 1]
    assert table.X.to_numpy().tolist() == [["u", 1], ["v", 2], ["u", 5], ["v", 0]]
    assert table.y.tolist() == ["no", "yes", "no", "yes"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("@relation a\n", "needs a line @data"),
        ("@attribute x relational\n@data\n", "bad.arff:1: attributes of the type 'relational' are not read"),
        ("@attribute\n@data\n", "'@attribute' is no attribute"),
        ("@attribute x real\n@attribute y real\n@data\n1,2,3\n", "bad.arff:4: 3 fields where 2 are declared"),
        ("@attribute x {u,v}\n@attribute y real\n@data\nw,2\n", "bad.arff:4: 'w' is no declared value of 'x'"),
        ("@attribute x real\n@attribute y real\n@data\n{0 1, 0 2}\n", "bad.arff:4: '{0 1, 0 2}' is no row of pairs"),
        ("@attribute x real\n@attribute y real\n@data\n'1,2\n", "bad.arff:4: a quote or brace is not closed"),
    ],
)
def test_broken_arff(tmp_path, text, reason):
    fails(write(tmp_path, "bad.arff", text), reason)


# Files that are no plain files, and sizes


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes(tmp_path):
    for name, text in (("a.csv", b"1,u\n2,v\n"), ("b.csv", b"1,u\n2\n")):
        os.mkfifo(tmp_path / name)
        threading.Thread(target=(tmp_path / name).write_bytes, args=(text,), daemon=True).start()
    assert read(tmp_path / "a.csv")[:2] == ([[1], [2]], ["u", "v"])
    fails(tmp_path / "b.csv", f"{tmp_path / 'b.csv'}:2: 1 fields")


def test_svmlight_and_npz_are_tables_too(tmp_path):
    X, y = load_table(write(tmp_path, "a.svm", "yes 1:1\nno 2:3\n"))
    assert (X.toarray().tolist(), y.tolist()) == ([[1, 0], [0, 3]], ["yes", "no"])
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=[0, 1], z=[2, 3])
    assert load_table(tmp_path / "a.npz", target="z").y.tolist() == [2, 3]
    fails(write(tmp_path, "a.txt", "1.5 2 3\n"), "a.txt:1: '2' is no pair", ": is it delimited text? --format")
    for name, wrong in {"format": "cvs", "decimal": "x", "header": "yes", "missing": "NA", "delimiter": ";;"}.items():
        with pytest.raises(ValueError, match=f"{name} .*must be .*{wrong}"):
            load_table(tmp_path / "a.csv", **{name: wrong})
    path = write(tmp_path, "b.csv.gz", gzip.compress(b"a,b,y\n" + b"1.5,2,u\n2.5,3,v\n" * 50_000))
    fitting = pytest.raises(ValueError, match=r"exceed memory_budget.* about 50,000 wo")
    with config_context(memory_budget=10**6), fitting:
        load_table(path)
    assert len(load_table(path).X) == 100_000
