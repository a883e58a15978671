"""Tables as programs write them: headers, indices, labels, missing values, text, delimiters, precision, ARFF."""

from pathlib import Path

import numpy as np
import pytest

from widemargin.datasets import load, load_arff, load_csv
from widemargin.datasets.files import labels_of


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


# Headers and columns


@pytest.mark.parametrize("header", ["0,1,2,3", "0,1,2,label", ",0,1,2,3", "Unnamed: 0,0,1,2,label"])
def test_a_header_that_counts_the_columns(tmp_path, header):
    has_index = header.startswith((",", "U"))
    rows = "".join(f"{f'{k},' if has_index else ''}{k}.5,2,3,{k}\n" for k in range(4))
    path = write(tmp_path, "a.csv", f"{header}\n{rows}")
    with pytest.warns(UserWarning, match="counts the columns, 0, 1, 2, ..., and was taken for a header"):
        data = load_csv(path)
    assert data.X.shape == (4, 3)
    assert data.y.tolist() == [0, 1, 2, 3]


def test_rows_that_are_no_header_stay_samples(tmp_path):
    assert len(load_csv(write(tmp_path, "a.csv", "0,1,2\n5,6,7\n")).X) == 2
    assert len(load_csv(write(tmp_path, "b.csv", "0,1,2,1\n5,6,7,0\n")).X) == 2
    assert len(load_csv(write(tmp_path, "c.csv", "0,1,2,3\n5,6,7,8\n"), header=False).X) == 2


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_the_index_of_pandas_is_dropped(tmp_path, name):
    path = write(tmp_path, "a.csv", f"{name},a,b,kind\n17,1,2,x\n4,3,4,y\n")
    with pytest.warns(UserWarning, match="column 1 .* counts the rows and was dropped"):
        data = load_csv(path)
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    named = write(tmp_path, "b.csv", "id,a,kind\n0,1,x\n1,3,y\n")
    assert load_csv(named).X.shape == (2, 2)
    assert load_csv(named, drop=["id"]).X.tolist() == [[1], [3]]
    assert load_csv(named, drop=[0], header=True).X.tolist() == [[1], [3]]
    with pytest.raises(ValueError, match=r"b.csv:1: no column is named 'ids': did you mean 'id'"):
        load_csv(named, drop=["ids"])
    with pytest.raises(ValueError, match="no column is left as a feature"):
        load_csv(named, drop=["id", "a"])


# Labels


@pytest.mark.parametrize("word", ["", "NA", "N/A", "null", "NaN", "?", "-"])
def test_missing_labels(tmp_path, word):
    path = write(tmp_path, "a.csv", f"a,kind\n1,x\n2,{word}\n3,y\n")
    with pytest.raises(
        ValueError, match=rf"a.csv:3: the label is missing \('\{word}'\)" if word == "?" else "a.csv:3: the"
    ):
        load_csv(path)
    with pytest.warns(UserWarning, match="rows without a label, left out: 1"):
        data = load_csv(path, unlabelled="drop")
    assert (data.X.tolist(), data.y.tolist()) == ([[1], [3]], ["x", "y"])
    data = load_csv(path, unlabelled="keep")
    assert (len(data.X), data.y.tolist()) == (3, ["x", "", "y"])
    numbers = load_csv(write(tmp_path, "b.csv", f"a,kind\n1,4\n2,{word}\n"), unlabelled="keep")
    np.testing.assert_array_equal(numbers.y, [4, np.nan])
    assert load_csv(write(tmp_path, "c.csv", f"a,kind\n1,{word}\n2,{word}\n"), unlabelled="keep").y is None


def test_plus_and_minus_are_labels(tmp_path):
    assert load_csv(write(tmp_path, "a.csv", "1,+\n2,-\n")).y.tolist() == ["+", "-"]
    assert load_csv(write(tmp_path, "b.csv", "1,none\n2,Na\n")).y.tolist() == ["none", "Na"]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["007", "7"], ["007", "7"]),
        (["9007199254740993", "-1"], [9007199254740993, -1]),
        (["18446744073709551616", "1"], ["18446744073709551616", "1"]),
        (["1.0", "+2"], [1, 2]),
        (["0", "-0.5"], [0.0, -0.5]),
        (["1e3", "2"], [1000, 2]),
        (["1_0", "2"], ["1_0", "2"]),
        (["inf", "1"], ["inf", "1"]),
    ],
)
def test_labels_are_numbers_where_that_loses_nothing(texts, expected):
    assert labels_of(texts).tolist() == expected


# Text and missing values


def test_columns_of_text_are_named_with_the_option(tmp_path):
    path = write(tmp_path, "a.csv", "age,work,pay,kind\n1,State,9,x\n2,?,low,y\n")
    with pytest.raises(ValueError, match=r"a.csv:2: column 2 \('work'\) is 'State'") as caught:
        load_csv(path)
    assert "columns with text: 'work', 'pay'; --one-hot auto" in str(caught.value)
    data = load_csv(path, text="auto")
    assert data.X.dtype == object
    assert data.X.tolist() == [[1.0, "State", "9"], [2.0, "", "low"]]
    assert load_csv(path, text=["work", "pay"]).X.tolist() == data.X.tolist()
    assert load_csv(path, text=[1, 2], header=True).X.tolist() == data.X.tolist()


def test_a_mistake_makes_no_column_of_text(tmp_path):
    rows = "".join(f"{k if k != 7 else '7l'},{'ab'[k % 2] if k % 5 else k},{k % 2}\n" for k in range(40))
    path = write(tmp_path, "a.csv", "x,kind,y\n" + rows)
    with pytest.raises(ValueError, match=r"a.csv:9: column 1 \('x'\) is '7l', which is not a number$"):
        load_csv(path, text="auto")
    assert load_csv(write(tmp_path, "b.csv", path.read_text().replace("7l", "7")), text="auto").X[1].tolist() == [
        1.0,
        "b",
    ]


def test_missing_values(tmp_path):
    path = write(tmp_path, "a.csv", "a,b,kind\n1,?,x\n,2,y\n")
    with pytest.raises(ValueError, match=r"a.csv:2: column 2 \('b'\) is missing \('\?'\); --impute median"):
        load_csv(path)
    X = load_csv(path, may_lack_values=True).X
    np.testing.assert_array_equal(X, [[1, np.nan], [np.nan, 2]])
    assert X.dtype == np.float32


# Delimiters and decimals


@pytest.mark.parametrize(
    "text",
    [
        "price; EUR,b,kind\n1,2,x\n3,4,y\n",
        '"price; EUR",b,kind\n1,2,x\n3,4,y\n',
        "sep=;\na;b;kind\n1;2;x\n3;4;y\n",
        "sep=|\na|b|kind\n1|2|x\n3|4|y\n",
        "a,b,kind,\n1,2,x,\n3,4,y,\n",
        "a,b,kind\n1,2,x,\n3,4,y,\n",
        "price, EUR\tb\tkind\n1\t2\tx\n3\t4\ty\n",
    ],
)
def test_delimiters(tmp_path, text):
    data = load_csv(write(tmp_path, "a.csv", text))
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert data.y.tolist() == ["x", "y"]


def test_lines_are_counted_below_a_separator_line(tmp_path):
    with pytest.raises(ValueError, match=r"a.csv:4: column 1 \('a'\) is empty"):
        load_csv(write(tmp_path, "a.csv", "sep=;\na;b\n1;2\n;4\n"))


def test_decimal_commas(tmp_path):
    path = write(tmp_path, "a.csv", "a;b;y\n1,5;2;0,5\n2,5;3;1,5\n")
    with pytest.raises(ValueError, match=r"a.csv:2: column 1 \('a'\) is '1,5', which is not a number; --decimal ,"):
        load_csv(path)
    data = load_csv(path, decimal=",")
    assert (data.X.tolist(), data.y.tolist()) == ([[1.5, 2], [2.5, 3]], [0.5, 1.5])


def test_commas_between_thousands_are_no_decimals(tmp_path):
    with pytest.raises(ValueError, match=r"column 1 is '1,500', .*; if the commas divide thousands, remove them"):
        load_csv(write(tmp_path, "a.csv", '"1,500",2,x\n"2,500",3,y\n'), header=False)


def test_a_title_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"a.csv:1: 1 field where the next row has 3: a title\? Remove the line"):
        load_csv(write(tmp_path, "a.csv", "|1x3 Cross validator\n25, 1, <=50K.\n"))


def test_one_column_names_the_option(tmp_path):
    path = write(tmp_path, "a.csv", "1|2\n3|4\n")
    with pytest.raises(ValueError, match="--delimiter"):
        load_csv(path)
    assert load_csv(path, delimiter="|").y.tolist() == [2, 4]


# Precision


def test_columns_that_need_float64_get_it(tmp_path):
    rng = np.random.default_rng(0)
    metres, times = 5_432_100 + 100 * rng.random(50), (1.6e12 + 1e7 * rng.random(50)).round()
    rows = "".join(f"{m:.3f},{t:.0f},{k % 2}\n" for k, (m, t) in enumerate(zip(metres, times, strict=True)))
    path = write(tmp_path, "a.csv", "x,t,kind\n" + rows)
    with pytest.warns(
        UserWarning, match=r"a.csv: float32 would round column 1 \('x'\), column 2 \('t'\): read as float64"
    ):
        data = load_csv(path)
    np.testing.assert_array_equal(data.X[:, 1], times)
    assert load_csv(path, dtype=np.float32).X.dtype == np.float32


@pytest.mark.parametrize("row", ["{0:.6f},{1},300", "{0:.6f},2024,1.1", "{1},-0.1,?"])
def test_other_columns_stay_float32(tmp_path, row):
    rng = np.random.default_rng(0)
    rows = "".join(f"{row.format(rng.normal(300, 5), 2000 + k)},{k % 2}\n" for k in range(30))
    assert load_csv(write(tmp_path, "a.csv", rows), may_lack_values=True).X.dtype == np.float32


# ARFF


def test_arff(tmp_path):
    text = """% a comment
@RELATION weather
@attribute 'outlook today' {sunny, 'part cloudy'}
@attribute temperature REAL
@attribute "play" {yes, no}

@DATA
sunny, 85, no
% another
'part cloudy',?,yes
"""
    path = write(tmp_path, "a.arff", text)
    with pytest.raises(ValueError, match=r"a.arff:8: column 1 \('outlook today'\) is 'sunny'"):
        load(path)
    data = load_arff(path, text="auto", may_lack_values=True)
    assert data.X[:, 0].tolist() == ["sunny", "part cloudy"]
    assert data.y.tolist() == ["no", "yes"]
    assert load_arff(path, text="auto", may_lack_values=True, target="temperature", unlabelled="drop").y.tolist() == [
        85
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("@relation a\n", "needs a line @data"),
        ("@attribute x real\n@attribute y real\n@data\n{0 1}\n", "sparse ARFF rows are not read"),
        ("@attribute x date 'yyyy'\n@data\n", "attributes of the type 'date 'yyyy'' are not read"),
        ("@attribute\n@data\n", "'@attribute' is no attribute"),
        ("@attribute x real\n@attribute y real\n@data\n1,2,3\n", "3 fields where the first row has 2"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_broken_arff(tmp_path, text, reason):
    with pytest.raises(ValueError, match="bad.arff") as caught:
        load_arff(write(tmp_path, "bad.arff", text))
    assert reason in str(caught.value)
