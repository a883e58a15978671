"""The command line on real files: labels, columns, text, missing values, widths, precision."""

import json
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

import widemargin
from widemargin._model_files import load
from widemargin.cli import main
from widemargin.cli.data import Features, features_of


def error_of(capsys):
    lines = [line for line in capsys.readouterr().err.splitlines() if "error: " in line]
    assert len(lines) == 1
    return lines[0]


@pytest.fixture
def adult(tmp_path):
    """A table like Adult: numbers and text, gaps, labels with a space before them."""
    rng = np.random.default_rng(0)
    age, work = rng.integers(18, 80, 300), rng.choice(["State", "Private", "Self"], 300)
    pay = np.where((age > 45) ^ (work == "Private"), ">50K", "<=50K")
    rows = [
        f"{a}, {'?' if k % 50 == 7 else w}, {k}, {p}\n" for k, (a, w, p) in enumerate(zip(age, work, pay, strict=True))
    ]
    path = tmp_path / "adult.csv"
    path.write_text("age, work, number, pay\n" + "".join(rows))
    return path


OPTIONS = ["--one-hot", "auto", "--drop", "number", "--scale", "standard", "-C", "10"]


# Labels


def test_labels_of_the_test_file_that_the_model_cannot_know(adult, tmp_path, capsys, monkeypatch):
    test = tmp_path / "adult.test.csv"
    test.write_text(adult.read_text().replace("50K\n", "50K.\n"))
    monkeypatch.setattr(widemargin.DCSVMClassifier, "fit", None)  # the error comes before
    assert main(["train", str(adult), str(tmp_path / "m"), "--test", str(test), *OPTIONS]) == 1
    error = error_of(capsys)
    assert "adult.test.csv: labels that the training data do not have: '<=50K.', '>50K.'" in error
    assert "classes are <=50K, >50K; in this file alone they end in a full stop: remove it" in error


def test_some_unknown_labels_of_the_test_file_are_noted(tmp_path, capsys):
    for name, labels in (("a", "xy"), ("b", "xz")):
        (tmp_path / f"{name}.csv").write_text("".join(f"{k},{labels[k // 10]}\n" for k in range(20)))
    files = [str(tmp_path / name) for name in ("a.csv", "m", "b.csv")]
    assert main(["train", *files[:2], "--test", files[2], "-C", "100"]) == 0
    captured = capsys.readouterr()
    assert "note: " in captured.err
    assert "b.csv: labels that the training data do not have count as errors: 'z'" in captured.err
    assert "accuracy         0.5000 (20 samples" in captured.out


def test_a_test_file_with_one_label_that_is_no_number(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("".join(f"{k},{k % 2}\n" for k in range(20)))
    (tmp_path / "b.csv").write_text("".join(f"{k},{k % 2 if k != 5 else 'o'}\n" for k in range(20)))
    options = ["--test", str(tmp_path / "b.csv"), "-C", "1000", "--gamma", "10"]
    assert main(["train", str(tmp_path / "a.csv"), str(tmp_path / "m"), *options]) == 0
    assert "accuracy         0.9500" in capsys.readouterr().out


def test_missing_labels_in_training(adult, tmp_path, capsys):
    adult.write_text(adult.read_text() + "30, State, 300, NA\n")
    assert main(["train", str(adult), str(tmp_path / "m"), *OPTIONS]) == 1
    assert "adult.csv:302: the label is missing; --unlabelled drop" in error_of(capsys)
    assert main(["train", str(adult), str(tmp_path / "m"), *OPTIONS, "--unlabelled", "drop"]) == 0
    captured = capsys.readouterr()
    assert "rows without a label, left out: 1" in captured.err
    assert re.search(r"samples +300 ", captured.out)


@pytest.mark.parametrize("label", ["", "?", "NA"])
def test_predict_needs_no_labels(adult, tmp_path, capsys, label):
    assert main(["train", str(adult), str(tmp_path / "m"), *OPTIONS]) == 0
    new = tmp_path / "new.csv"
    new.write_text(re.sub(r"[<>]=?50K", label, adult.read_text()))
    capsys.readouterr()
    assert main(["predict", str(new), str(tmp_path / "m"), str(tmp_path / "out")]) == 0
    assert "accuracy" not in capsys.readouterr().err
    half = adult.read_text().splitlines(keepends=True)
    new.write_text("".join(re.sub(r"[<>]=?50K", label, row) if k % 2 else row for k, row in enumerate(half)))
    assert main(["predict", str(new), str(tmp_path / "m"), str(tmp_path / "b")]) == 0
    assert "of 150 labels agree)" in capsys.readouterr().err
    assert (tmp_path / "out").read_text() == (tmp_path / "b").read_text()


def test_labels_with_leading_zeros_and_many_digits_are_kept(tmp_path, capsys):
    for first, second in (("007", "042"), ("9007199254740993", "9007199254740992")):
        path = tmp_path / "a.csv"
        path.write_text("".join(f"{k},{first if k < 10 else second}\n" for k in range(20)))
        assert main(["train", str(path), str(tmp_path / "m"), "--scale", "standard", "--force"]) == 0
        assert main(["predict", str(path), str(tmp_path / "m"), str(tmp_path / "out"), "--force"]) == 0
        assert set((tmp_path / "out").read_text().split()) == {first, second}
        assert "(20 of 20 labels agree)" in capsys.readouterr().err
    assert main(["train", str(path), str(tmp_path / "m"), "--task", "regression", "--force"]) == 0


def test_numbers_as_classes_name_the_task(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{k},{k + 0.5}\n" for k in range(20)))
    assert main(["train", str(path), str(tmp_path / "m")]) == 1
    assert "its labels are numbers, not classes (0.5): did you mean --task regression?" in error_of(capsys)
    path.write_text("".join(f"{k},{k}\n" for k in range(20)))
    assert main(["train", str(path), str(tmp_path / "m")]) == 0
    assert "20 classes have 1 row each: " in (err := capsys.readouterr().err)
    assert "did you mean --task regression?" in err


def test_many_classes_of_whole_numbers_may_be_quantities(tmp_path, capsys):
    y = np.repeat(np.arange(31), 3)
    np.savez(tmp_path / "count.npz", X=y[:, None] + np.random.default_rng(0).normal(size=(93, 1)), y=y)
    main(["train", str(tmp_path / "count.npz"), str(tmp_path / "m.skops")])
    assert "31 classes, all whole numbers: if these are quantities, add --task regression" in capsys.readouterr().err


def test_labels_with_control_characters_are_escaped(tmp_path, capsys):
    path = tmp_path / "a.csv"
    labels = ["a\nb", "\x1b[31mred"]
    path.write_text("".join(f'{k},"{labels[k // 10]}"\n' for k in range(20)))
    assert main(["train", str(path), str(tmp_path / "m"), "--scale", "standard"]) == 0
    assert main(["predict", str(path), str(tmp_path / "m"), str(tmp_path / "out")]) == 0
    lines = (tmp_path / "out").read_text().splitlines()
    assert (len(lines), set(lines)) == (20, {r"a\nb", r"\x1b[31mred"})
    assert main(["info", str(tmp_path / "m")]) == 0
    assert "\x1b[31mred" not in capsys.readouterr().out


# Headers, columns, precision


def test_header_option(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("0,1,2,3\n" + "".join(f"{k}.5,{k * k},1,{k / 7:.3f}\n" for k in range(20)))
    for header, n_samples in (("auto", 20), ("yes", 20), ("no", 21)):
        options = ["--task", "regression", "--header", header, "--force"]
        assert main(["train", str(path), str(tmp_path / "m"), *options]) == 0
        captured = capsys.readouterr()
        assert re.search(rf"samples +{n_samples} ", captured.out)
        assert ("--header no" in captured.err) == (header == "auto")


def test_an_index_is_dropped_in_every_file(tmp_path, capsys):
    rows = "".join(f"{k},{k / 7:.3f},{k * k},{'ab'[k > 10]}\n" for k in range(20))
    (tmp_path / "a.csv").write_text(",x,y,kind\n" + rows)
    assert main(["train", str(tmp_path / "a.csv"), str(tmp_path / "m"), "--test", str(tmp_path / "a.csv")]) == 0
    captured = capsys.readouterr()
    assert "column 1 ('') counts the rows and was dropped" in captured.err
    assert "(2 features" in captured.out
    assert main(["predict", str(tmp_path / "a.csv"), str(tmp_path / "m"), str(tmp_path / "out")]) == 0
    (tmp_path / "b.csv").write_text(
        "".join(row.split(",", 1)[1] for row in (",x,y,kind\n" + rows).splitlines(keepends=True))
    )
    assert main(["predict", str(tmp_path / "b.csv"), str(tmp_path / "m"), str(tmp_path / "b")]) == 0
    assert (tmp_path / "out").read_text() == (tmp_path / "b").read_text()


@pytest.mark.parametrize("has_label", [True, False])
def test_dropped_columns_without_a_header(tmp_path, capsys, has_label):
    rows = [f"{k},{k / 7:.3f},{k * k},{'ab'[k > 10]}\n" for k in range(20)]
    (tmp_path / "a.csv").write_text("".join(rows))
    assert main(["train", str(tmp_path / "a.csv"), str(tmp_path / "m"), "--drop", "0"]) == 0
    assert "(2 features" in capsys.readouterr().out
    (tmp_path / "b.csv").write_text("".join(row if has_label else row.rsplit(",", 1)[0] + "\n" for row in rows))
    assert main(["predict", str(tmp_path / "b.csv"), str(tmp_path / "m"), str(tmp_path / "out")]) == 0
    data = np.array([row.split(",")[1:3] for row in rows], dtype=np.float32)
    assert (tmp_path / "out").read_text().split() == load(tmp_path / "m").predict(data).tolist()


@pytest.mark.parametrize("what", ["times", "metres"])
def test_columns_that_float32_would_round(tmp_path, capsys, what):
    rng = np.random.default_rng(0)
    offsets = rng.random(400)
    values = 1.6e12 + np.round(1e5 * offsets) if what == "times" else 5_432_100 + offsets
    y = np.sin(12 * offsets) > 0
    rows = [f"{v:.3f},{label}\n" for v, label in zip(values, y, strict=True)]
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(rows))
    (tmp_path / "one.csv").write_text("x,y\n" + rows[0])
    options = ["--scale", "standard", "-C", "100", "--gamma", "10"]
    assert (
        main(["train", str(tmp_path / "a.csv"), str(tmp_path / "m"), *options, "--test", str(tmp_path / "a.csv")]) == 0
    )
    captured = capsys.readouterr()
    assert "float32 would round column 1 ('x'): read as float64" in captured.err
    X = ((values - values.mean()) / values.std())[:, None]
    expected = SVC(C=100, gamma=10).fit(X, y).score(X, y)
    assert float(re.search(r"accuracy +(\S+)", captured.out)[1]) == pytest.approx(expected, abs=0.01)
    assert main(["predict", str(tmp_path / "a.csv"), str(tmp_path / "m"), str(tmp_path / "out")]) == 0
    assert main(["predict", str(tmp_path / "one.csv"), str(tmp_path / "m"), str(tmp_path / "one")]) == 0
    assert (tmp_path / "out").read_text().startswith((tmp_path / "one").read_text())


# svmlight


@pytest.mark.parametrize("width", [3, 9])
def test_svmlight_files_of_other_widths(tmp_path, capsys, width):
    train = "".join(f"{1 if k % 2 else -1} {1 if k % 2 else 2}:1 5:{k}\n" for k in range(40))
    (tmp_path / "a1a").write_text(train)
    test = [re.sub(r" 5:\d+", "", row) + f" {width}:1" for row in train.splitlines()]
    (tmp_path / "a1a.t").write_text("\n".join(test) + "\n")
    arguments = ["train", str(tmp_path / "a1a"), str(tmp_path / "m"), "--test", str(tmp_path / "a1a.t")]
    assert main([*arguments, "--scale", "minmax", "-C", "100"]) == 0
    captured = capsys.readouterr()
    assert ("a1a.t: features beyond the 5 that" in captured.err) == (width == 9)
    assert float(re.search(r"accuracy +(\S+)", captured.out)[1]) == 1
    assert main(["predict", str(tmp_path / "a1a.t"), str(tmp_path / "m"), str(tmp_path / "out")]) == 0
    assert "(40 of 40 labels agree)" in (err := capsys.readouterr().err)
    assert ("features beyond the 5 that the model was trained with are ignored: 4" in err) == (width == 9)


# Categories and missing values


def test_columns_of_dates_and_ids_are_named(tmp_path, capsys):
    path = tmp_path / "a.csv"
    rows = "".join(f"{k}.5,{'uv'[k % 2]},n{k},2026-01-{k + 1:02},{k % 2}\n" for k in range(20))
    path.write_text("x,city,who,since,y\n" + rows)
    assert main(["train", str(path), str(tmp_path / "m")]) == 1
    assert "columns of dates: since; --drop since leaves them out" in error_of(capsys)
    assert main(["train", str(path), str(tmp_path / "m"), "--drop", "since"]) == 0
    err = capsys.readouterr().err
    assert "'who' has 20 categories in 20 rows: --drop it, if it is a date or an id" in err
    assert "'city' has" not in err


@pytest.mark.parametrize("impute", ["none", "auto", "most_frequent"])
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_categories(adult, tmp_path, capsys, impute, scale):
    if impute != "none":
        adult.write_text(adult.read_text().replace("\n45, ", "\nNA, "))
    options = ["--one-hot", "auto", "--drop", "number", "--impute", impute, "--scale", scale, "-C", "100"]
    options += ["--gamma", "0.5"] if scale == "standard" else ["--gamma", "0.01"]
    assert main(["train", str(adult), str(tmp_path / "m"), *options, "--test", str(adult)]) == 0
    captured = capsys.readouterr()
    assert "adult.csv: columns taken as categories: 'work'" in captured.err
    assert "(2 features, 2 classes)" in captured.out
    assert float(re.search(r"accuracy +(\S+)", captured.out)[1]) > 0.9
    assert main(["predict", str(adult), str(tmp_path / "m"), str(tmp_path / "a")]) == 0
    table = [[cell.strip() for cell in row.split(",")] for row in adult.read_text().splitlines()]
    other = tmp_path / "other.csv"
    other.write_text("".join(";".join(row[k] for k in (1, 0)) + "\n" for row in table))
    assert main(["predict", str(other), str(tmp_path / "m"), str(tmp_path / "b")]) == 0
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    other.write_text("age,work\n50,Martian\n")
    assert main(["predict", str(other), str(tmp_path / "m"), str(tmp_path / "c")]) == 0
    assert main(["info", str(tmp_path / "m")]) == 0
    assert "OneHotEncoder" in capsys.readouterr().out


def test_categories_with_other_commands_and_tasks(adult, tmp_path, capsys):
    names = ["--one-hot", "work", "--drop", "number", "--scale", "standard"]
    model, small = str(tmp_path / "m"), str(tmp_path / "small")
    assert main(["tune", str(adult), model, *names, "--Cs", "1,10", "--gammas", "1", "--folds", "2"]) == 0
    assert main(["compress", model, small, "--data", str(adult), "--n-landmarks", "8"]) == 0
    assert main(["predict", str(adult), small, str(tmp_path / "out")]) == 0
    assert float(re.search(r"accuracy ([0-9.]+)", capsys.readouterr().err)[1]) > 0.8
    assert main(["compress", model, small, "--data", str(adult), "--onnx", str(tmp_path / "x"), "--force"]) == 1
    assert "the step ColumnTransformer(" in error_of(capsys)
    for task in (["regression", "--target", "age"], ["one-class", "--drop", "number,pay"]):
        assert main(["train", str(adult), model, *names, "--task", *task, *["--one-hot", "auto"], "--force"]) == 0
        assert main(["predict", str(adult), model, str(tmp_path / "out"), "--force"]) == 0


def test_missing_numbers_without_text(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    rows = [f"{'' if k % 9 == 3 else f'{a:.4f}'},{b:.4f},{int(a > 0)}\n" for k, (a, b) in enumerate(X)]
    path = tmp_path / "a.csv"
    path.write_text("".join(rows))
    assert main(["train", str(path), str(tmp_path / "m"), "--impute", "none"]) == 1
    assert "a.csv:4: column 1 is missing; --impute median" in error_of(capsys)
    assert main(["train", str(path), str(tmp_path / "m"), "--holdout", "0.01"]) == 1
    assert "a.csv: --holdout 0.01 holds out 1 of 60 rows, and of 2 classes both parts need one" in error_of(capsys)
    assert main(["train", str(path), str(tmp_path / "m"), "--holdout", "0.3"]) == 0
    assert "missing values are filled in by the median of their column: 0" in capsys.readouterr().err
    assert main(["predict", str(path), str(tmp_path / "m"), str(tmp_path / "out")]) == 0
    np.savez(tmp_path / "a.npz", X=np.where(np.arange(60)[:, None] % 9 == 3, np.nan, X), y=X[:, 0] > 0)
    assert main(["train", str(tmp_path / "a.npz"), str(tmp_path / "n"), "--impute", "most_frequent"]) == 0
    assert main(["predict", str(tmp_path / "a.npz"), str(tmp_path / "n"), str(tmp_path / "o")]) == 0


def test_a_streamed_table_has_the_errors_and_the_weights_of_one_in_memory(tmp_path, capsys):
    rng, path = np.random.default_rng(0), tmp_path / "a.arff"
    X = rng.normal(size=(30_000, 2)).round(3)
    y = np.where(rng.random(30_000) < 0.5, "u", "v")  # of which the weights alone make X[:, 0] > 0
    weights = np.where((X[:, 0] > 0) == (y == "u"), 1, 0)
    rows = [f"{a},{b},{label},{{{w}}}\n" for (a, b), label, w in zip(X.tolist(), y, weights, strict=True)]
    head = "@relation a\n@attribute a numeric\n@attribute b numeric\n@attribute y {u,v}\n@data\n"
    path.write_text(head + "".join(rows))
    train = ["train", str(path), str(tmp_path / "m"), "--estimator", "linear", "--memory-budget", "1700kB", "--force"]
    assert main(train) == 0
    assert "30,000 rows are streamed" in capsys.readouterr().err
    assert (load(tmp_path / "m").predict(X[:500]) == np.where(X[:500, 0] > 0, "u", "v")).mean() > 0.95
    (tmp_path / "test.csv").write_text("a,b\n1,2\n")
    assert main([*train, "--test", str(tmp_path / "test.csv")]) == 1
    assert "test.csv: it has no labels, which the accuracy needs" in error_of(capsys)
    path.write_text(head + "".join([*rows[:20_000], "1,2,?,{1}\n", *rows[20_000:]]))
    assert main(train) == 1
    assert "a.arff:20006: the label is missing; --unlabelled drop" in error_of(capsys)


def test_a_column_named_auto_is_dropped(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("u,auto,y\n" + "1.5,2.5,a\n3.5,0.5,b\n" * 5)
    assert main(["train", str(tmp_path / "a.csv"), str(tmp_path / "m"), "--drop", "auto"]) == 0
    assert "(1 features, 2 classes)" in capsys.readouterr().out


def test_no_line_is_named_where_unlabelled_rows_were_left_out(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("u,w,y\n1.5,1,\n" + "1.5,2.5,a\n3.5,0.5,b\n" * 5 + "3.5,,b\n")
    options = ["--unlabelled", "drop", "--impute", "none"]
    assert main(["train", str(tmp_path / "a.csv"), str(tmp_path / "m"), *options]) == 1
    assert "a.csv: column 2 ('w') is missing; --impute median fills it in" in error_of(capsys)


def test_a_class_of_one_row_in_a_format_without_lines(tmp_path, capsys):
    frame = pd.DataFrame({"a": range(5), "y": list("uuvvw")})
    frame.to_parquet(tmp_path / "a.parquet")
    assert main(["train", str(tmp_path / "a.parquet"), str(tmp_path / "m")]) == 0
    assert "note: class 'w' has 1 row: a typo?" in capsys.readouterr().err


def test_categories_that_training_never_saw_are_counted_and_named(adult, tmp_path, capsys):
    assert main(["train", str(adult), str(tmp_path / "m"), *OPTIONS]) == 0
    new = tmp_path / "new.csv"
    new.write_text("age,work\n50,Martian\n51,State\n52,Lunar\n53,Lunar\n")
    assert main(["predict", str(new), str(tmp_path / "m"), str(tmp_path / "out")]) == 0
    err = capsys.readouterr().err
    assert "column 2 ('work'): 3 rows have categories that the training data do not have: 'Martian', 'Lunar'" in err
    new.write_text("age,work\n?,State\n")
    assert main(["predict", str(new), str(tmp_path / "m")]) == 1
    assert "new.csv:2: column 1 ('age') is missing; no number was missing in training" in error_of(capsys)


def test_columns_are_for_tables(tmp_path, capsys):
    (tmp_path / "a1a").write_text("1 1:1\n-1 1:2\n")
    assert main(["train", str(tmp_path / "a1a"), str(tmp_path / "m"), "--one-hot", "0"]) == 1
    assert "a1a: --drop and --one-hot are for tables" in error_of(capsys)


def test_arff_files(tmp_path, capsys):
    rows = "".join(f"{k},{'sunny' if k % 3 else '?'},{'yes' if k > 9 else 'no'}\n" for k in range(20))
    header = "@relation r\n@attribute x real\n@attribute sky {sunny,rainy}\n@attribute play {yes,no}\n@data\n"
    (tmp_path / "a.arff").write_text(header + rows)
    for extra in ([], ["--format", "arff"]):
        options = ["--one-hot", "auto", "--scale", "standard", "--force", *extra]
        assert main(["train", str(tmp_path / "a.arff"), str(tmp_path / "m"), *options]) == 0
        assert main(["predict", str(tmp_path / "a.arff"), str(tmp_path / "m"), str(tmp_path / "out"), "--force"]) == 0
        assert re.search(r"of 20 labels agree\)", capsys.readouterr().err)


@pytest.mark.parametrize(("level", "expected"), [("2", 2), ("auto", "auto"), ("0", 0)])
def test_stop_level_is_passed_on(tmp_path, level, expected, monkeypatch):
    (tmp_path / "a.csv").write_text("".join(f"{k},{k % 2}\n" for k in range(80)))
    seen = []

    def remember(self, *_):
        seen.append(self.stop_level)
        raise ValueError("enough")

    monkeypatch.setattr(widemargin.DCSVMClassifier, "fit", remember)
    assert main(["train", str(tmp_path / "a.csv"), str(tmp_path / "m"), "--stop-level", level]) == 1
    assert seen == [expected]


@pytest.mark.parametrize(
    "wrong",
    [{"kinds": [2]}, {"kinds": "spam"}, {"names": ["a"]}, {"n_features": 3}, {"places": [[]]}, {"dtype": 3}, {"x": 1}],
)
def test_facts_of_a_model_that_do_not_fit_it_are_ignored(adult, tmp_path, wrong):
    assert main(["train", str(adult), str(tmp_path / "m"), *OPTIONS]) == 0
    with zipfile.ZipFile(tmp_path / "m") as old, zipfile.ZipFile(tmp_path / "n", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "summary.json":
                facts = json.loads(content)
                facts["table"] |= wrong
                content = json.dumps(facts).encode()
            new.writestr(name, content)
    assert features_of(load(tmp_path / "n"), tmp_path / "n") == Features(2, ["age", "work"])


# Weights, and more than memory


def test_weights_of_instances_are_sample_weights(tmp_path, capsys):
    head = "@relation r\n@attribute x real\n@attribute y {no,yes}\n@data\n"
    rows = [(k / 40, "yes" if k % 3 else "no") for k in range(40)]
    weighted = "".join(f"{x},{y},{{{1 if y == 'yes' else 50}}}\n" for x, y in rows)
    for name, text in (("plain", "".join(f"{x},{y}\n" for x, y in rows)), ("weighted", weighted)):
        (tmp_path / f"{name}.arff").write_text(head + text)
        for more in ([], ["--scale", "standard", "--holdout", "0.25"]):
            assert main(["train", str(tmp_path / f"{name}.arff"), str(tmp_path / name), "--force", *more]) == 0
        assert main(["train", str(tmp_path / f"{name}.arff"), str(tmp_path / name), "--force"]) == 0
    capsys.readouterr()
    assert set(load(tmp_path / "plain").predict([[0.1], [0.5]])) == {"yes"}
    assert set(load(tmp_path / "weighted").predict([[0.1], [0.5]])) == {"no"}


def _flights(folder, n):
    rng = np.random.default_rng(0)
    x, city = rng.normal(size=n).round(4), rng.choice(["Rome", "Oslo", "Paris"], n)
    y = np.where(x + (city == "Oslo") > 0.5, "late", "ok")
    half = n // 2
    for k, rows in enumerate((slice(0, half), slice(half, n))):
        parts = zip(x[rows], city[rows], y[rows], strict=True)
        cells = "".join(f"{'' if j % 50 == 7 else a},{b},{c}\n" for j, (a, b, c) in enumerate(parts))
        (folder / f"{k}.csv").write_text("x,city,y\n" + cells)


def test_a_linear_machine_streams_what_exceeds_the_budget(tmp_path, capsys):
    (tmp_path / "flights").mkdir()
    _flights(tmp_path / "flights", 40_000)
    common = [str(tmp_path / "flights" / "*.csv"), str(tmp_path / "m"), "--scale", "standard", "--force"]
    assert main(["train", *common, "--memory-budget", "600kB"]) == 1
    error = error_of(capsys)
    assert (
        "its rows exceed memory_budget, 600000 bytes: about 37,500 would fit; --memory-budget takes more, or --est"
        in error
    )
    assert main(["train", *common, "--memory-budget", "600kB", "--task", "regression", "--target", "x"]) == 1
    assert "takes more; in Python OCASRegressor trains on a memory map" in error_of(capsys)
    assert main(["train", *common, "--memory-budget", "1800kB", "--estimator", "linear", "--holdout", "0.2"]) == 1
    assert "it exceeds memory_budget and is streamed: give --test in place of --holdout" in error_of(capsys)
    accuracy = []
    for budget in ("1GB", "1800kB"):
        assert main(["train", *common, "--estimator", "linear", "--memory-budget", budget]) == 0
        captured = capsys.readouterr()
        assert ("40,000 rows are streamed" in captured.err) == (budget == "1800kB")
        assert "samples          40000 (2 features, 2 classes)" in captured.out
        accuracy.append(float(re.search(r"accuracy +(\S+)", captured.out)[1]))
    assert min(accuracy) > 0.95
    assert abs(accuracy[0] - accuracy[1]) < 0.01
    assert main(["predict", str(tmp_path / "flights" / "0.csv"), str(tmp_path / "m"), str(tmp_path / "out")]) == 0
