"""The command line: what it prints, writes and refuses, and with which exit code."""

import importlib
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
import time
import zipfile
from inspect import signature
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_blobs
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR

import widemargin
from widemargin import OCASClassifier
from widemargin._model_files import TRUSTED_TYPES, load, save, write_model
from widemargin._output_files import replacing
from widemargin.cli import main
from widemargin.cli.comparison import dual_objective
from widemargin.cli.machines import TAKEN_BY
from widemargin.cli.program import _parse
from widemargin.datasets import load_patches


@pytest.fixture
def csv(tmp_path):
    """A table of three classes with a header and string labels."""
    path = tmp_path / "points.csv"
    path.write_text("length,width,kind\n" + "".join(_points(120)))
    return path


def _points(n):
    rng = np.random.default_rng(0)
    for i in range(n):
        x = rng.normal(size=2) + 4 * np.array([(0, 0), (0, 1), (1, 0)][i % 3])
        yield f"{x[0]:.6f},{x[1]:.6f},{('ant', 'bee', 'cat')[i % 3]}\n"


@pytest.fixture
def model(csv, tmp_path, capsys):
    """A model trained on `csv`."""
    path = tmp_path / "points.skops"
    assert main(["train", str(csv), str(path), "-C", "10"]) == 0
    capsys.readouterr()
    return path


def run(*arguments, cwd=None, **more):
    command = [sys.executable, "-m", "widemargin", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False, **more)


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.endswith(".part")]


def test_the_package_is_the_program_too():
    command = [sys.executable, "-m", "widemargin", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.startswith("widemargin ")


def test_options_have_no_abbreviations(csv, tmp_path, capsys):
    """--gamma 3 would be three values of gamma."""
    with pytest.raises(SystemExit):
        main(["tune", str(csv), str(tmp_path / "m.skops"), "--gamma", "3"])
    assert "--gamma" in capsys.readouterr().err


def test_the_report_scores_rows_of_all_parts_of_the_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("widemargin.cli.reports._SCORED_ROWS", 100)
    X = np.random.default_rng(0).normal(size=(1000, 2))
    y = np.arange(1000) >= 800
    X[800:] += 2.0
    X[:200], y[:200] = X[800:], False  # the first rows have the features of the other class
    np.savez(tmp_path / "a.npz", X=X, y=y.astype(int))
    assert main(["train", str(tmp_path / "a.npz"), str(tmp_path / "m.skops"), "-C", "1"]) == 0
    assert "100 training samples" in (out := capsys.readouterr().out)
    assert 0.6 < float(re.search(r"accuracy +([0-9.]+)", out)[1]) < 0.95


def assert_error(capsys, message, *where):
    """One line on stderr with the reason, nothing on stdout."""
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line for line in captured.err.splitlines() if "error" in line]
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("widemargin: error: ")
    for part in (message, *where):
        assert part in lines[0]


# Usage


def test_help_is_fast_and_loads_nothing_heavy():
    script = """
        import sys
        from widemargin.cli import main
        try:
            main(["train", "--help"])
        except SystemExit as end:
            assert end.code == 0
        assert not {"numpy", "sklearn", "rich", "skops", "PIL"} & set(sys.modules), sorted(sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--memory-budget" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["train", "data.csv"],
        ["train", "a", "b", "-C", "-1"],
        ["train", "a", "b", "-C", "0"],
        ["train", "a", "b", "-C", "nan"],
        ["train", "a", "b", "--gamma", "0"],
        ["train", "a", "b", "--gamma", "wide"],
        ["train", "a", "b", "--kernel", "magic"],
        ["train", "a", "b", "--tol", "inf"],
        ["train", "a", "b", "--holdout", "1"],
        ["train", "a", "b", "--holdout", "0.2", "--test", "c"],
        ["train", "a", "b", "--memory-budget", "much"],
        ["train", "a", "b", "--degree", "1.5"],
        ["compress", "model"],
        ["compress", "a", "b", "--n-clusters", "0"],
        ["compress", "a", "b", "--prediction-cost", "cheap"],
        ["compress", "a", "b", "--pseudo", "square"],
        ["train", __file__, "b", "--task", "regression", "--estimator", "ocas"],
        ["train", "-", "b", "--test", "-"],
        ["completion", "tcsh"],
        ["demo", "--n-samples", "0"],
        ["demo", "--task", "colour"],
    ],
)
def test_wrong_usage_is_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    error, more = capsys.readouterr().err.splitlines()
    program = error[: error.index(": error: ")]
    assert program.startswith("widemargin")
    assert more == f"see {program} --help"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--gamma", "auto2"], "'auto2' is not a number, nor scale, near, auto"),
        (["--n-clusters", "0"], "'0' is not a whole number of at least 1, nor auto"),
        (["-C", "-1"], "argument -C: -1 is not a finite number above 0"),
        (["--sclae", "1"], "widemargin train: error: unrecognized arguments: --sclae 1 (did you mean --scale?)"),
        (["spam"], "widemargin train: error: unrecognized arguments: spam"),
    ],
)
def test_wrong_usage_is_explained(options, reason, capsys):
    with pytest.raises(SystemExit):
        main(["train", "a", "b", *options])
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--estimator ocas --kernel poly", "--kernel does not apply to --estimator ocas; it is for bsgd, dcpred, "),
        ("--budget 10", "--budget does not apply to --estimator dcsvm; it is for bsgd"),
        ("--loss logistic", "--loss does not apply to --estimator dcsvm; it is for ocas"),
        ("--task regression --loss hinge", "--loss does not apply to --task regression; it is for ocas"),
        (
            "--estimator ocas --loss squared_epsilon_insensitive",
            "--loss does not apply to --estimator ocas; it is for regression",
        ),
        ("--estimator bsgd --tol 0.1", "--tol does not apply to --estimator bsgd"),
        ("--estimator dcpred --intercept", "--intercept does not apply to --estimator dcpred"),
        ("--n-trees 3", "--n-trees does not apply to --estimator dcsvm; it is for dcpred"),
        ("--task one-class -C 3", "-C does not apply to --task one-class"),
        ("--task regression --nu 0.1", "--nu does not apply to --task regression; it is for one-class"),
        ("--task regression --balanced", "--balanced does not apply to --task regression"),
    ],
)
def test_options_that_a_machine_does_not_take_are_refused(options, reason, csv, capsys):
    with pytest.raises(SystemExit) as end:
        main(["train", str(csv), "b", *options.split()])
    assert end.value.code == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "tune"])
def test_options_are_taken_by_the_estimators_that_have_such_a_parameter(command):
    machines = _parse([command, "a", "b"]).machines
    parameters = {machine: set(signature(getattr(widemargin, kind)).parameters) for machine, kind in machines.items()}
    options = {*vars(_parse([command, "a", "b"])), "fit_intercept"}  # which has no default of the program's
    for option in options & set.union(*parameters.values()):
        takers = {machine for machine, names in parameters.items() if option in names}
        named = set(TAKEN_BY.get(option, machines)) & set(machines)
        assert takers == named, option


def test_defaults_of_options_are_those_of_the_estimators():
    for args in (_parse(["train", "a", "b"]), _parse(["tune", "a", "b"])):
        for kind in args.machines.values():
            own = {name: one.default for name, one in signature(getattr(widemargin, kind)).parameters.items()}
            left_open = {name for name, value in vars(args).items() if value is None}
            common = set(own) & set(vars(args)) - {"random_state"}
            assert len(common) >= 5
            common -= left_open
            assert {name: getattr(args, name) for name in common} == {name: own[name] for name in common}


def test_output_files_are_replaced_by_force_alone(csv, model, tmp_path, capsys):
    before = model.read_bytes()
    assert main(["train", str(csv), str(model)]) == 1
    assert_error(capsys, "exists already: --force replaces it", model.name)
    assert model.read_bytes() == before
    assert main(["train", str(csv), str(model), "--force"]) == 0
    assert model.read_bytes() != before


def test_standard_input_and_output(csv, model, tmp_path, monkeypatch, capsys):
    def piped(content, *arguments):
        out = io.BytesIO()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
        assert main(list(map(str, arguments))) == 0
        return out.getvalue()

    labels = tmp_path / "labels"
    assert main(["predict", str(csv), str(model), str(labels)]) == 0
    assert piped(csv.read_bytes(), "predict", "-", model, "--format", "csv") == labels.read_bytes()
    trained = piped(csv.read_bytes(), "train", "-", "-", "--format", "csv", "-C", "10")
    assert "support vectors" in capsys.readouterr().err
    assert b"DCSVMClassifier" in piped(trained, "info", "-")


def test_standard_input_needs_a_format_and_is_named_in_errors():
    assert "standard input has no suffix: give --format" in run("train", "-", "m", input="1,2").stderr
    broken = run("train", "-", "m", "--format", "csv", input="1,2,a\n1,2\n")
    assert broken.stderr.startswith("widemargin: error: standard input:2:")
    assert broken.returncode == 1


def test_the_format_overrides_the_suffix(csv, tmp_path, capsys):
    strange = csv.rename(tmp_path / "points.data")
    assert main(["train", str(strange), str(tmp_path / "m"), "--format", "csv"]) == 0


@pytest.mark.parametrize(("suffix", "remedy"), [("mat", ".parquet"), ("npy", "numpy.savez")])
def test_formats_that_are_not_read_are_named(suffix, remedy, tmp_path, capsys):
    (tmp_path / f"data.{suffix}").touch()
    assert main(["train", str(tmp_path / f"data.{suffix}"), str(tmp_path / "m")]) == 1
    assert_error(capsys, remedy, f"data.{suffix}")


def test_a_feature_index_that_needs_too_much_memory_is_named(tmp_path, capsys):
    path, model = tmp_path / "wide.svm", str(tmp_path / "m")
    path.write_text("1 1:1\n-1 2:1\n1 1:1 2147483647:1\n-1 2:2\n")
    for command in (["train"], ["train", "--estimator", "ocas"], ["train", "--scale", "standard"], ["tune"]):
        assert main([command[0], str(path), model, *command[1:], "--memory-budget", "1GB"]) == 1
        assert "wide.svm:3: the feature index 2147483647 gives X" in capsys.readouterr().err
    assert main(["train", str(path), model, "--memory-budget", "18GB"]) == 0
    assert main(["predict", str(path), model]) == 0


def test_indices_from_zero_are_explained(tmp_path, capsys):
    (tmp_path / "zero.svm").write_text("1 0:1\n-1 0:2\n")
    assert main(["train", str(tmp_path / "zero.svm"), str(tmp_path / "m")]) == 1
    assert_error(capsys, "--zero-based")
    assert main(["train", str(tmp_path / "zero.svm"), str(tmp_path / "m"), "--zero-based"]) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "missing.csv", "model"],
        ["info", "model"],
        ["train", "bad.csv", "m", "-C", "10", "--gamma", "0.1"],
        ["train", "bad.csv", "m", "--budget", "10"],
        ["completion", "bash"],
    ],
)
def test_errors_and_completion_load_nothing_heavy(arguments, tmp_path):
    (tmp_path / "model").write_text("no archive")
    (tmp_path / "bad.csv").write_text("1,2,a\n1,2\n")
    script = f"""
        import sys
        from widemargin.cli import main
        try:
            print(main({arguments}))
        except SystemExit as end:
            assert end.code == 2
            print(1)
        assert not {{"sklearn", "rich", "skops", "PIL", "scipy"}} & set(sys.modules), sorted(sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("0\n" if arguments[0] == "completion" else "1\n")


def test_completion_scripts_have_commands_and_options(capsys):
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        script = capsys.readouterr().out
        assert "compress" in script
        assert "memory-budget" in script
    complete = 'eval "$(cat)"; COMP_WORDS=(widemargin train --ker); _widemargin x --ker; echo "${COMPREPLY[@]}"'
    main(["completion", "bash"])
    script = capsys.readouterr().out
    done = subprocess.run(["bash", "-c", complete], input=script, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["--kernel"]


# train, predict, info


def test_train_predict_info_as_a_program(csv, tmp_path):
    trained = run("train", csv, "m.skops", "-C", "10", "--gamma", "0.5", "--scale", "standard", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    for word in ("seconds", "support vectors", "duality gap", "accuracy"):
        assert re.search(rf"^{word} +\S", trained.stdout, re.MULTILINE), trained.stdout
    predicted = run("predict", csv, "m.skops", cwd=tmp_path)
    assert predicted.returncode == 0, predicted.stderr
    labels = predicted.stdout.split()
    truth = [line.split(",")[2] for line in csv.read_text().split()[1:]]
    assert np.mean(np.array(labels) == truth) > 0.9
    assert re.match(r"accuracy 0\.9\d+ \(1\d\d of 120 labels agree\)", predicted.stderr)
    shown = run("info", "m.skops", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for word in ("DCSVMClassifier", "StandardScaler", "rbf", "ant, bee, cat", "support vectors", "converged", " 0.5 "):
        assert word in shown.stdout


def test_info_has_gamma_as_a_number_where_the_kernel_has_one(csv, model, tmp_path, capsys):
    assert main(["info", str(model)]) == 0
    assert re.search(r"scale \(0\.\d+\)", capsys.readouterr().out)
    assert main(["train", str(csv), str(tmp_path / "m"), "--kernel", "linear", "-C", "0.30000000001"]) == 0
    capsys.readouterr()
    assert main(["info", str(tmp_path / "m")]) == 0
    out = capsys.readouterr().out
    assert "│ gamma" not in out
    assert " 0.3 " in out


def test_info_has_the_chosen_parameters_of_a_search(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(60, 2))
    search = widemargin.DCSVMClassifierCV(Cs=[0.7], gammas=[1.3], cv=2).fit(X, X[:, 0] > 0)
    skops.io.dump(search, tmp_path / "m")
    assert main(["info", str(tmp_path / "m")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"│ C +│ 0\.7 ", out)
    assert re.search(r"│ gamma +│ 1\.3 ", out)


def test_info_has_the_level_and_the_clusters_of_an_early_machine(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(200, 2))
    skops.io.dump(widemargin.DCSVMClassifier(stop_level=1).fit(X, X[:, 0] > 0), tmp_path / "m")
    assert main(["info", str(tmp_path / "m")]) == 0
    assert re.search(r"│ early machine +│ level 1, 4 clusters ", capsys.readouterr().out)


def test_predict_to_a_file_equals_the_estimator(csv, model, tmp_path):
    assert main(["predict", str(csv), str(model), str(tmp_path / "labels")]) == 0
    rows = np.array([line.split(",")[:2] for line in csv.read_text().split()[1:]], dtype=np.float32)
    labels = (tmp_path / "labels").read_text().split("\n")
    assert labels[-1] == ""
    assert labels[:-1] == load(model).predict(rows).tolist()
    assert main(["predict", str(csv), str(model), str(tmp_path / "values"), "--decision"]) == 0
    values = np.loadtxt(tmp_path / "values", delimiter="\t")
    np.testing.assert_allclose(values, load(model).decision_function(rows), rtol=1e-5, atol=1e-6)
    assert not leftovers(tmp_path)


def test_predict_on_a_table_without_labels(csv, model, tmp_path, capsys):
    bare = tmp_path / "bare.csv"
    bare.write_text("".join(line.rsplit(",", 1)[0] + "\n" for line in csv.read_text().splitlines()))
    assert main(["predict", str(bare), str(model), str(tmp_path / "a")]) == 0
    assert capsys.readouterr().err == ""
    assert main(["predict", str(csv), str(model), str(tmp_path / "b")]) == 0
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()


def _columns(csv, order, **renamed):
    """The table with its columns in this order, and other names."""
    rows = [[line.split(",")[k] for k in order] for line in csv.read_text().splitlines()]
    path = csv.with_name("new.csv")
    path.write_text("".join(",".join(row) + "\n" for row in [[renamed.get(n, n) for n in rows[0]], *rows[1:]]))
    return path


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (1, 0)])
def test_columns_are_known_by_their_names(order, csv, model, tmp_path, capsys):
    small = tmp_path / "small"
    assert main(["compress", str(model), str(small), "--data", str(_columns(csv, order)), "--n-landmarks", "8"]) == 0
    for machine in (model, small):
        assert main(["predict", str(csv), str(machine), str(tmp_path / "a"), "--force"]) == 0
        assert main(["predict", str(_columns(csv, order)), str(machine), str(tmp_path / "b"), "--force"]) == 0
        assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    headless = tmp_path / "headless.csv"
    headless.write_text(csv.read_text().split("\n", 1)[1])
    assert main(["predict", str(headless), str(model), str(tmp_path / "b"), "--force"]) == 0
    assert "valid feature names" not in capsys.readouterr().err


def test_other_columns_are_refused(csv, model, tmp_path, capsys):
    path = _columns(csv, (1, 0, 2), width="depth")
    for command in (["predict", str(path), str(model)], ["compress", str(model), "small", "--data", str(path)]):
        assert main(command) == 1
        assert_error(capsys, "new.csv:1: no column is named 'width', which the model was trained with", "'depth'")
    assert main(["train", str(csv), str(tmp_path / "m"), "--test", str(path)]) == 1
    assert_error(capsys, "new.csv:1: no column is named 'width', which ", "points.csv has", "'depth'")
    path = _columns(csv, (0, 1, 2), width="length")
    assert main(["predict", str(path), str(model)]) == 1
    assert_error(capsys, "new.csv:1: no column is named 'width', which the model was trained with; the columns are ")
    path.write_text("width,length,length,kind\n1,2,3,ant\n")
    assert main(["predict", str(path), str(model)]) == 1
    assert_error(capsys, "new.csv: 3 features, but the model was trained with 2")


@pytest.mark.parametrize("has_label", [True, False])
def test_a_missing_column_is_named(has_label, csv, model, tmp_path, capsys):
    rows = [row.split(",") for row in csv.read_text().splitlines()]
    place = rows[0].index("length")
    path = tmp_path / "short.csv"
    path.write_text("".join(",".join(row[:place] + row[place + 1 : 3 if has_label else 2]) + "\n" for row in rows))
    assert main(["predict", str(path), str(model)]) == 1
    assert_error(capsys, "short.csv:1: no column is named 'length', which the model was trained with; the columns are ")


def test_columns_of_a_model_of_scikit_learn(csv, tmp_path, capsys):
    frame = __import__("pandas").read_csv(csv)
    skops.io.dump(SVC().fit(frame[["width", "length"]], frame["kind"]), tmp_path / "model")
    assert main(["predict", str(csv), str(tmp_path / "model"), str(tmp_path / "out")]) == 0
    err = capsys.readouterr().err
    assert re.fullmatch(r"accuracy 0\.9\d+ \(1\d\d of 120 labels agree\)\n", err), err


def test_labels_that_the_model_does_not_know(csv, model, tmp_path, capsys):
    text = csv.read_text()
    csv.write_text(text.replace(",bee", ",bea", 1))
    assert main(["predict", str(csv), str(model), str(tmp_path / "out")]) == 0
    assert re.search(
        r"accuracy 0.9\d+ \(1\d\d of 120 labels agree; 1 row has a label that the model does not know: 'bea'\)",
        capsys.readouterr().err,
    )
    csv.write_text(re.sub(",(ant|bee|cat)\n", ",dog\n", text))
    assert main(["predict", str(csv), str(model), str(tmp_path / "out"), "--force"]) == 0
    assert "no accuracy: no label of the data is a class of the model (ant, bee, cat)" in capsys.readouterr().err


def test_one_label_that_is_no_number(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{k},{k // 10}\n" for k in range(20)))
    assert main(["train", str(path), str(tmp_path / "m"), "--scale", "standard"]) == 0
    path.write_text(path.read_text().replace("0,0", "0,o"))
    assert main(["predict", str(path), str(tmp_path / "m"), str(tmp_path / "out")]) == 0
    assert "(19 of 20 labels agree; 1 row has a label that the model does not know: 'o')" in capsys.readouterr().err
    path.write_text(re.sub(",([01])\n", r",\1.0\n", path.read_text()))
    assert main(["predict", str(path), str(tmp_path / "m"), str(tmp_path / "out"), "--force"]) == 0
    assert "(19 of 20 labels agree; 1 row has a label that the model does not know: 'o')" in capsys.readouterr().err


@pytest.mark.parametrize(("classes", "line"), [("ant|bee|cat", 3), ("bee", 2)])
def test_a_class_of_a_single_row_is_noted(csv, tmp_path, capsys, classes, line):
    header, *rows = csv.read_text().replace(",bee", ",bea", 1).splitlines(keepends=True)
    csv.write_text(header + "".join(row for row in rows if re.search(f",(bea|{classes})", row)))
    assert main(["train", str(csv), str(tmp_path / "m")]) == 0
    assert f"note: class 'bea' has 1 row (line {line}): a typo?" in capsys.readouterr().err


@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_train_on_sparse_data_with_a_test_file(tmp_path, capsys, scale, kernel):
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 12), density=0.3, rng=rng, format="csr")
    y = np.where(X.sum(axis=1) > 1.8, 1, -1)
    for name, rows in (("a.svm", slice(0, 150)), ("b.svm", slice(150, 200))):
        (tmp_path / name).write_text("".join(map(_svmlight_line, X[rows].tocsr(), y[rows])))
    arguments = ["train", str(tmp_path / "a.svm"), str(tmp_path / "m"), "--test", str(tmp_path / "b.svm")]
    assert main([*arguments, "--scale", scale, "--kernel", kernel, "-C", "100", "--intercept"]) == 0
    out = capsys.readouterr().out
    accuracy = re.search(r"accuracy +(\S+) \(50 samples, .*b\.svm\)", out)
    assert accuracy, out
    assert float(accuracy[1]) > 0.7
    assert main(["predict", str(tmp_path / "b.svm"), str(tmp_path / "m"), str(tmp_path / "out")]) == 0
    labels = np.loadtxt(tmp_path / "out")
    assert np.mean(labels == y[150:]) == pytest.approx(float(accuracy[1]), abs=1e-4)


def _svmlight_line(row, label):
    row = row.tocoo()
    pairs = sorted(zip(row.coords[-1].tolist(), row.data.tolist(), strict=True))
    return f"{label} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in pairs) + "\n"


@pytest.mark.parametrize(("kernel", "maintenance"), [("rbf", "merge"), ("linear", "projection")])
def test_train_with_a_budget(kernel, maintenance, csv, tmp_path, capsys):
    options = [
        "--estimator",
        "bsgd",
        "--budget",
        "12",
        "--epochs",
        "5",
        "--kernel",
        kernel,
        "--scale",
        "standard",
        "--quiet",
    ]
    assert main(["train", str(csv), str(tmp_path / "m"), *options]) == 0
    assert re.search(r"^support vectors +(\d+)", capsys.readouterr().out, re.MULTILINE)
    machine = load(tmp_path / "m")[-1]
    assert machine.maintenance == maintenance
    assert machine.n_support_.max() <= 12
    assert main(["info", str(tmp_path / "m")]) == 0
    assert "BSGDClassifier" in capsys.readouterr().out
    assert main(["predict", str(csv), str(tmp_path / "m"), str(tmp_path / "labels")]) == 0


def test_train_with_every_option(csv, tmp_path, capsys):
    options = "--kernel poly --degree 2 --coef0 1 --gamma auto --tol 0.01 --intercept --balanced --scale minmax"
    limits = "--max-time 60 --memory-budget 200MB --n-jobs 1 --holdout 0.25 --seed 7 --quiet --dtype float64"
    assert main(["train", str(csv), str(tmp_path / "m"), "--target", "kind", *options.split(), *limits.split()]) == 0
    assert "30 samples, held out" in capsys.readouterr().out
    machine = load(tmp_path / "m")[-1]
    expected = {"kernel": "poly", "degree": 2, "coef0": 1, "gamma": "auto", "tol": 0.01, "fit_intercept": True}
    assert expected.items() <= machine.get_params().items()
    assert machine.class_weight == "balanced"
    assert machine.random_state == 7
    assert machine.n_jobs == 1


def test_train_a_linear_machine(csv, tmp_path, capsys):
    path = tmp_path / "linear"
    assert (
        main(["train", str(csv), str(path), "--estimator", "ocas", "-C", "10", "--intercept", "--scale", "standard"])
        == 0
    )
    out = capsys.readouterr().out
    assert "support vectors" not in out
    assert re.search(r"converged +yes", out)
    assert main(["info", str(path)]) == 0
    assert "OCASClassifier" in capsys.readouterr().out
    assert main(["predict", str(csv), str(path), str(tmp_path / "labels")]) == 0
    assert float(re.search(r"accuracy ([0-9.]+)", capsys.readouterr().err)[1]) > 0.9


def test_loss_of_a_linear_machine(csv, tmp_path):
    options = ["--estimator", "ocas", "--loss", "logistic", "--target", "kind"]
    assert main(["train", str(csv), str(tmp_path / "one"), *options]) == 0
    assert main(["tune", str(csv), str(tmp_path / "best"), *options, "--Cs", "0.1,1"]) == 0
    for name in ("one", "best"):
        assert load(tmp_path / name).loss == "logistic"


def test_loss_of_a_regression(tmp_path):
    options = ["--task", "regression", "--loss", "squared_epsilon_insensitive", "--target", "y"]
    rng = np.random.default_rng(0)
    data = tmp_path / "numbers.csv"
    data.write_text("a,y\n" + "".join(f"{x},{2 * x}\n" for x in rng.normal(size=30)), encoding="utf-8")
    assert main(["train", str(data), str(tmp_path / "one"), *options]) == 0
    assert load(tmp_path / "one").loss == "squared_epsilon_insensitive"
    options[3:4] = ["quantile", "--quantile", "0.9", "--Cs", "1,10", "--gammas", "0.5"]
    assert main(["tune", str(data), str(tmp_path / "two"), *options]) == 0
    assert load(tmp_path / "two").quantile == 0.9


def test_train_with_the_relevance_of_the_columns(csv, tmp_path, capsys):
    path = tmp_path / "model"
    options = ["--target", "kind", "--kernel", "laplacian", "--scale", "standard", "--relevance"]
    assert main(["train", str(csv), str(path), *options]) == 0
    model = load(path)
    assert isinstance(model[1], widemargin.RelevanceScaler)
    assert model[1].relevance_.max() == 1.0
    assert main(["predict", str(csv), str(path), str(tmp_path / "labels"), "--target", "kind"]) == 0


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_tune(scale, csv, tmp_path, capsys):
    path = tmp_path / "best"
    options = ["--Cs", "0.1,10", "--gammas", "2", "--folds", "3", "--scale", scale, "--holdout", "0.25"]
    assert main(["tune", str(csv), str(path), "--target", "kind", *options]) == 0
    out = capsys.readouterr().out
    C = float(re.search(r"^C +([0-9.]+)", out, re.MULTILINE)[1])
    assert re.search(r"^score +0\.\d+ \(mean of held-out rows; \d+ cells\)", out, re.MULTILINE)
    model = load(path)
    machine = model if isinstance(model, widemargin.DCSVMClassifier) else model[-1]
    assert isinstance(machine, widemargin.DCSVMClassifier)
    assert machine.C == C
    assert main(["predict", str(csv), str(path), str(tmp_path / "labels"), "--target", "kind"]) == 0


def test_tune_other_machines(csv, digits, tmp_path, capsys):
    linear = ["--estimator", "ocas", "--Cs", "0.1,1", "--scoring", "balanced_accuracy", "--target", "kind"]
    assert main(["tune", str(csv), str(tmp_path / "linear"), *linear]) == 0
    assert isinstance(load(tmp_path / "linear"), widemargin.OCASClassifier)
    regression = ["--task", "regression", "--Cs", "1,10", "--gammas", "0.05", "--epsilons", "0.1,0.5", "--folds", "2"]
    assert main(["tune", str(digits), str(tmp_path / "regressor"), *regression]) == 0
    assert re.search(r"^epsilon +0\.[15]$", capsys.readouterr().out, re.MULTILINE)
    with pytest.raises(SystemExit):
        main(["tune", str(csv), str(tmp_path / "linear"), "--estimator", "ocas", "--gammas", "3"])
    assert "--gammas does not apply to --estimator ocas" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--Cs", "1,10", "--gammas", "2"], ["--estimator", "ocas"]])
def test_a_search_without_time_for_a_score_writes_no_model(options, csv, tmp_path, capsys):
    path = tmp_path / "none"
    assert main(["tune", str(csv), str(path), "--target", "kind", "--max-time", "1e-9", *options]) == 1
    error = capsys.readouterr().err
    assert "the search was stopped before it had scored anything" in error
    assert "raise --max-time (now 1e-09 seconds)" in error
    assert "The best so far:" not in error
    assert not path.exists()


@pytest.mark.parametrize("command", ["train", "tune"])
def test_a_class_of_one_row_is_not_held_out(command, csv, tmp_path, capsys):
    csv.write_text(csv.read_text() + "1.0,2.0,dog\n")
    assert main([command, str(csv), str(tmp_path / "m"), "--target", "kind", "--holdout", "0.3"]) == 0
    captured = capsys.readouterr()
    assert "classes of one row, which are trained on and not held out: 'dog'" in captured.err
    assert "(36 samples, held out)" in captured.out


def test_train_dcpred(csv, tmp_path, capsys):
    path = tmp_path / "small"
    options = "--estimator dcpred --n-clusters 2 --n-landmarks 5 --pseudo triangle --n-pseudo-landmarks 3 --n-trees 2"
    assert main(["train", str(csv), str(path), "-C", "10", *options.split()]) == 0
    assert re.search(r"^prediction +\S+ inner products per sample", capsys.readouterr().out, re.MULTILINE)
    machine = load(path)
    assert (machine.n_clusters, machine.n_landmarks, machine.pseudo, machine.n_trees) == (2, 5, "triangle", 2)
    assert main(["info", str(path)]) == 0
    assert "DCPredClassifier" in capsys.readouterr().out
    assert main(["predict", str(csv), str(path), str(tmp_path / "labels")]) == 0
    assert float(re.search(r"accuracy ([0-9.]+)", capsys.readouterr().err)[1]) > 0.9


# compress


@pytest.fixture
def digits(tmp_path):
    """An archive of 600 digits."""
    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "digits.npz", X=(X[:600] / 16).astype(np.float32), y=y[:600])
    return tmp_path / "digits.npz"


def test_compress_a_model_of_ours(digits, tmp_path, capsys):
    paths = [str(tmp_path / name) for name in ("model", "small", "labels", "small.onnx")]
    model, small, labels, graph = paths
    assert main(["train", str(digits), model, "--gamma", "0.05", "-C", "10", "--scale", "standard"]) == 0
    capsys.readouterr()
    cost = "--prediction-cost 30 --n-clusters 2 --n-trees 1 --pseudo none --seed 3 --quiet"
    assert main(["compress", model, small, "--data", str(digits), "--onnx", graph, *cost.split()]) == 0
    out = capsys.readouterr().out
    for line in ("same label", "cost of a prediction", "size", "note: its decision values are one for each class"):
        assert re.search(f"^{line},? +\\S", out, re.MULTILINE), out
    assert "nan" not in out
    machine = load(small)[-1]
    assert machine.report_.cost_after <= 31
    assert machine.predictor_.trees[0].tree.n_leaves == 2
    assert main(["predict", str(digits), small, labels]) == 0
    assert float(re.search(r"accuracy ([0-9.]+)", capsys.readouterr().err)[1]) > 0.9
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    with np.load(digits) as arrays:
        predicted = session.run(["label"], {"X": arrays["X"]})[0]
    assert np.mean(predicted == np.loadtxt(labels)) > 0.99
    assert main(["info", small]) == 0
    assert "CompressedClassifier" in capsys.readouterr().out


@pytest.mark.parametrize("machine", [SVC(gamma=0.05), SVR(gamma=0.05), KernelRidge(kernel="rbf", gamma=0.05)], ids=str)
def test_compress_a_model_of_scikit_learn(machine, digits, tmp_path, capsys):
    with np.load(digits) as arrays:
        machine.fit(arrays["X"], arrays["y"])
    skops.io.dump(machine, tmp_path / "model")
    small = tmp_path / "small"
    assert main(["compress", str(tmp_path / "model"), str(small), "--n-landmarks", "8"]) == 0
    assert "cost of a prediction" in capsys.readouterr().out
    assert main(["predict", str(digits), str(small), str(tmp_path / "out")]) == 0
    predicted, expected = np.loadtxt(tmp_path / "out"), load(small)
    with np.load(digits) as arrays:
        np.testing.assert_allclose(predicted, expected.predict(arrays["X"]), rtol=1e-12)
    # the arrays, a few numbers and names, and nothing twice
    arrays = [array for tree in expected.predictor_.trees for array in tree.arrays.values()]
    assert small.stat().st_size < sum(array.nbytes for array in arrays) + 20_000


def test_compress_says_that_few_labels_agree(digits, tmp_path, capsys):
    model, small = str(tmp_path / "model"), str(tmp_path / "small")
    assert main(["train", str(digits), model, "--gamma", "0.05", "-C", "10"]) == 0
    assert main(["compress", model, small, "--data", str(digits), "--prediction-cost", "4"]) == 0
    err = capsys.readouterr().err
    assert re.search(r"warning: only \d\d\.\d% of the labels agree with .*: raise prediction_cost \(now 4; ", err), err


def test_an_error_of_a_step_is_whole(tmp_path, capsys):
    path, model = tmp_path / "t.csv", str(tmp_path / "m.skops")
    path.write_text("a,work,y\n" + "".join(f"{i % 7},{'xyz'[i % 3]},{i % 2}\n" for i in range(60)))
    assert main(["train", str(path), model, "--one-hot", "auto"]) == 0
    capsys.readouterr()
    small, graph = str(tmp_path / "small"), str(tmp_path / "g.onnx")
    assert main(["compress", model, small, "--data", str(path), "--onnx", graph]) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "model has the step ColumnTransformer(" in error
    assert "Export the last step" in error
    assert not Path(graph).exists()


def test_a_model_of_text_is_described_and_not_predicted_with(csv, tmp_path, capsys):
    path = str(tmp_path / "m.skops")
    save(make_pipeline(HashingVectorizer(n_features=8), OCASClassifier()).fit(["good", "bad"] * 5, [1, 0] * 5), path)
    assert main(["info", path]) == 0
    assert re.search(r"features +│ text", capsys.readouterr().out)
    assert main(["predict", str(csv), path]) == 1
    assert_error(capsys, "m.skops: its model takes text, not a table: use it in Python, by widemargin.load")


def test_compress_a_calibrated_machine(digits, tmp_path, capsys):
    with np.load(digits) as arrays:
        X, y = arrays["X"], arrays["y"]
    skops.io.dump(CalibratedClassifierCV(SVC(gamma=0.05), cv=2).fit(X, y), tmp_path / "model")
    small, graph = tmp_path / "small", tmp_path / "small.onnx"
    sizes = ["--n-clusters", "1", "--n-landmarks", "8"]
    assert main(["compress", str(tmp_path / "model"), str(small), "--onnx", str(graph), *sizes]) == 0
    assert capsys.readouterr().out.count("cost of a prediction") == 2
    assert main(["predict", str(digits), str(small), str(tmp_path / "out")]) == 0
    assert main(["info", str(small)]) == 0
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(
        session.run(["probabilities"], {"X": X.astype(np.float32)})[0], load(small).predict_proba(X), atol=1e-3
    )


def test_a_damaged_machine_within_a_calibrated_one(tmp_path, capsys):
    model = CalibratedClassifierCV(SVC(), cv=2).fit(*make_blobs(40, centers=2, random_state=0))
    model.calibrated_classifiers_[1].estimator.support_ = np.zeros(1, np.int32)
    skops.io.dump(model, tmp_path / "model")
    assert main(["info", str(tmp_path / "model")]) == 1
    assert_error(capsys, "model: not a model file, or a damaged one")


def test_a_regressor_has_no_decision_values(digits, tmp_path, capsys):
    with np.load(digits) as arrays:
        skops.io.dump(SVR().fit(arrays["X"], arrays["y"]), tmp_path / "model")
    assert main(["predict", str(digits), str(tmp_path / "model"), "--decision"]) == 1
    assert_error(capsys, "model: a SVR has no decision values")


def test_what_cannot_be_compressed(csv, model, digits, tmp_path, capsys):
    skops.io.dump(LogisticRegression().fit(np.eye(2), [0, 1]), tmp_path / "bad")
    assert main(["compress", str(tmp_path / "bad"), str(tmp_path / "out")]) == 1
    assert_error(capsys, "bad: model must be a fitted kernel machine", "got LogisticRegression")
    assert main(["compress", str(model), str(tmp_path / "out"), "--data", str(digits)]) == 1
    assert_error(capsys, "digits.npz: 64 features, but the model was trained with 2")
    assert main(["compress", str(model), str(tmp_path / "out"), "--prediction-cost", "1"]) == 1
    assert_error(capsys, "prediction_cost must be at least 4, got 1.0")
    for arguments in ([str(tmp_path / "no" / "out")], [str(tmp_path / "out"), "--onnx", str(tmp_path / "no" / "x")]):
        assert main(["compress", str(model), *arguments]) == 1
        assert_error(capsys, "cannot be written: its folder does not exist")
    assert not (tmp_path / "out").exists()
    assert not leftovers(tmp_path)


def test_every_type_that_is_trusted_exists():
    for name in TRUSTED_TYPES:
        module, _, kind = name.rpartition(".")
        assert hasattr(importlib.import_module(module), kind), name


def test_every_public_estimator_is_trusted():
    public = [getattr(widemargin, name) for name in widemargin.__all__]
    predictors = [kind for kind in public if hasattr(kind, "predict")]
    assert len(predictors) >= 8
    assert {f"{kind.__module__}.{kind.__qualname__}" for kind in predictors} <= set(TRUSTED_TYPES)


@pytest.mark.parametrize("machine", [widemargin.DCSVMRegressor(gamma=0.05), widemargin.DCOneClassSVM(gamma=0.05)])
def test_models_without_classes(machine, digits, tmp_path, capsys):
    with np.load(digits) as arrays:
        X, y = arrays["X"], arrays["y"].astype(np.float64)
    with (tmp_path / "model").open("wb") as file:
        write_model(machine.fit(X, y), file)
    assert main(["info", str(tmp_path / "model")]) == 0
    out = capsys.readouterr().out
    assert "duality gap" in out
    assert not re.search("classes |by class", out)
    assert "(-" not in out  # the relative gap, where the objective is negative
    assert main(["predict", str(digits), str(tmp_path / "model"), str(tmp_path / "out")]) == 0
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out"), machine.predict(X), rtol=1e-6)
    assert "accuracy" not in capsys.readouterr().err


def test_train_uses_the_test_split_of_an_archive(tmp_path, capsys):
    X, y = load_patches(700)
    np.savez(tmp_path / "a.npz", X=X[:500], y=y[:500], X_test=X[500:], y_test=y[500:])
    assert main(["train", str(tmp_path / "a.npz"), str(tmp_path / "m"), "-C", "8", "--gamma", "1"]) == 0
    assert "200 samples, test split of the file" in capsys.readouterr().out


def test_training_is_repeatable(csv, tmp_path):
    for name in ("a", "b"):
        assert main(["train", str(csv), str(tmp_path / name)]) == 0
    a, b = load(tmp_path / "a"), load(tmp_path / "b")
    np.testing.assert_array_equal(a.dual_coef_, b.dual_coef_)


@pytest.mark.slow
def test_output_to_a_closed_pipe_is_quiet(csv, model):
    command = f"{sys.executable} -m widemargin predict {csv} {model} | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "ant\n"
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


# Faulty data


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("bad.svm", "1 1:1\n-1 1:1 2\n", ("bad.svm:2:", "'2' is not an index:value pair")),
        ("bad.svm", "1 1:1\n-1 2:1 1:1\n", ("bad.svm:2:", "indices must increase")),
        ("bad.svm", "1 1:1\nspam 1:1\n", ("bad.svm:2:", "'spam' is no number")),
        ("bad.svm", "1 0:1\n", ("bad.svm:1:", "below 1")),
        ("bad.svm", "", ("bad.svm:", "no samples")),
        ("bad.csv", "", ("bad.csv:", "empty")),
        ("bad.csv", "1,2,a\n1,2\n", ("bad.csv:2:", "2 fields")),
        ("bad.csv", "1,2,a\n1,2x,b\n", ("bad.csv:2:", "column 2 is '2x', which is not a number")),
        ("bad.csv", "1,2,a\n1,inf,b\n", ("bad.csv:2:", "not finite")),
        ("bad.npz", "no archive", ("bad.npz:", "not an .npz archive")),
        ("bad.svm.gz", "no gzip", ("bad.svm.gz:", "truncated or damaged")),
        ("one.svm", "1 1:1\n1 1:2\n", ("one.svm:", "class")),
        ("missing.svm", None, ("missing.svm:", "No such file")),
    ],
)
def test_faulty_training_data(tmp_path, capsys, name, content, parts):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    assert main(["train", str(path), str(tmp_path / "m")]) == 1
    assert_error(capsys, *parts)
    assert not (tmp_path / "m").exists()
    assert not leftovers(tmp_path)


def test_archive_with_nan_or_without_labels(tmp_path, capsys):
    np.savez(tmp_path / "nan.npz", X=[[1.0, np.nan], [0, 1]], y=[0, 1])
    assert main(["train", str(tmp_path / "nan.npz"), str(tmp_path / "m")]) == 1
    assert_error(capsys, "nan.npz: ", "NaN")
    np.savez(tmp_path / "bare.npz", X=np.eye(2))
    assert main(["train", str(tmp_path / "bare.npz"), str(tmp_path / "m")]) == 1
    assert_error(capsys, "bare.npz: it has no labels, which training needs")


def test_test_data_that_do_not_fit(csv, tmp_path, capsys):
    (tmp_path / "wide.csv").write_text("1,2,3,ant\n4,5,6,bee\n")
    assert main(["train", str(csv), str(tmp_path / "m"), "--test", str(tmp_path / "wide.csv")]) == 1
    assert_error(capsys, "wide.csv: 3 features, but ", "points.csv has 2")


def test_number_of_features_at_predict(model, tmp_path, capsys):
    (tmp_path / "wide.csv").write_text("1,2,3,ant\n4,5,6,bee\n")
    assert main(["predict", str(tmp_path / "wide.csv"), str(model)]) == 1
    assert_error(capsys, "wide.csv: 3 features, but the model was trained with 2")
    (tmp_path / "wide.svm").write_text("1 1:1\n1 5:1\n")
    assert main(["predict", str(tmp_path / "wide.svm"), str(model)]) == 0
    note = "wide.svm: features beyond the 2 that the model was trained with are ignored: 3"
    assert note in capsys.readouterr().err


# Faulty models


def test_truncated_damaged_and_missing_model(csv, model, tmp_path, capsys):
    content = model.read_bytes()
    for broken in (content[: len(content) // 2], b"", b"PK\x05\x06" + bytes(18), b"nothing of the kind"):
        (tmp_path / "bad").write_bytes(broken)
        assert main(["info", str(tmp_path / "bad")]) == 1
        assert_error(capsys, "bad: not a model file, or a damaged one")
        assert main(["predict", str(csv), str(tmp_path / "bad")]) == 1
        assert_error(capsys, "bad: not a model file, or a damaged one")
    assert main(["info", str(tmp_path / "none")]) == 1
    assert_error(capsys, "none: No such file")


class Foreign:
    """A type that no model of this library holds."""

    def __init__(self):
        self.a = 1


def test_model_with_foreign_types_is_refused(tmp_path, capsys):
    skops.io.dump({"model": Foreign()}, tmp_path / "bad")
    assert main(["info", str(tmp_path / "bad")]) == 1
    assert_error(capsys, "bad: refused: it holds types that are not trusted: ", "Foreign")


def with_type(model, path, module, name):
    """Copy a model file, with another type as that of its model."""
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(path, "w") as new:
        for part in old.namelist():
            content = old.read(part)
            if part == "schema.json":
                schema = json.loads(content)
                schema["__module__"], schema["__class__"] = module, name
                content = json.dumps(schema).encode()
            new.writestr(part, content)


def test_model_of_a_version_with_other_modules_is_refused_with_what_to_do(model, tmp_path, capsys):
    with_type(model, tmp_path / "old", "widemargin.estimators._compressed", "CompressedClassifier")
    assert main(["info", str(tmp_path / "old")]) == 1
    assert_error(
        capsys, "old: saved by another version of widemargin", "_compressed", "fit or compress the model again"
    )


def test_model_file_that_runs_code_is_refused(model, tmp_path, capsys):
    """Also where the file has a function in place of a type."""
    with_type(model, tmp_path / "bad", "os", "system")
    assert main(["info", str(tmp_path / "bad")]) == 1
    assert_error(capsys, "not trusted: os.system")


def test_something_else_than_a_model(tmp_path, capsys):
    skops.io.dump({"a": 1}, tmp_path / "bad")
    assert main(["info", str(tmp_path / "bad")]) == 1
    assert_error(capsys, "bad: holds a dict, not a fitted model")


def test_trusted_types_are_ours_and_needed(model):
    known = ("widemargin.", "scipy.sparse._csr.", "sklearn.calibration.", "sklearn.compose.", "numpy.dtype")
    assert all(name.startswith(known) for name in TRUSTED_TYPES)
    assert set(skops.io.get_untrusted_types(file=model)) <= set(TRUSTED_TYPES)


# Outputs


@pytest.mark.parametrize("command", ["train", "predict"])
def test_unwritable_output_is_found_before_the_computation(csv, model, tmp_path, capsys, command, monkeypatch):
    def never(*_, **__):
        raise AssertionError("worked although the result has no place")

    monkeypatch.setattr(widemargin.DCSVMClassifier, "fit", never)
    monkeypatch.setattr(widemargin.DCSVMClassifier, "predict", never)
    for place in (tmp_path / "no" / "such" / "out", tmp_path):
        arguments = [str(csv), str(place)] if command == "train" else [str(csv), str(model), str(place)]
        assert main([command, *arguments]) == 1
        assert_error(capsys, "cannot be written: ")


def test_old_output_survives_a_failure(csv, model, tmp_path, capsys):
    out = tmp_path / "out"
    out.write_text("precious")
    bad = tmp_path / "bad.csv"
    bad.write_text("1,2,a\n1,b,a\n")
    assert main(["predict", str(bad), str(model), str(out)]) == 1
    assert main(["train", str(bad), str(out)]) == 1
    assert out.read_text() == "precious"
    assert not leftovers(tmp_path)


def test_result_is_kept_when_only_the_replacement_fails(csv, model, tmp_path, capsys, monkeypatch):
    def refuse(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", refuse)
    assert main(["predict", str(csv), str(model), str(tmp_path / "out")]) == 1
    kept = re.search(r"error: .*out: cannot be replaced \(.*\); the new file was kept as (.*)", capsys.readouterr().err)
    assert kept
    assert len(Path(kept[1]).read_text().split()) == 120


def test_replacing_keeps_mode_and_link_and_writes_devices_directly(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    with replacing(link) as file:
        file.write(b"new")
        assert real.read_text() == "old"
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    with replacing(os.devnull) as file:
        file.write(b"gone")
    assert not Path(os.devnull).is_file()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everything")
def test_protected_output_stays(tmp_path):
    protected = tmp_path / "protected"
    protected.write_text("old")
    protected.chmod(0o444)
    with pytest.raises(PermissionError, match="permission denied"), replacing(protected):
        pass


# Interrupts


def test_interrupt_without_a_model_is_code_130(csv, tmp_path, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(widemargin.DCSVMClassifier, "fit", interrupt)
    assert main(["train", str(csv), str(tmp_path / "m")]) == 130
    assert_error(capsys, "interrupted; nothing was written")
    assert not (tmp_path / "m").exists()
    assert not leftovers(tmp_path)


def test_interrupt_while_modules_load_is_code_130():
    script = """
        import sys

        class Interrupting:
            def find_spec(self, name, *_):
                if name == "widemargin.cli.program":
                    raise KeyboardInterrupt

        sys.meta_path.insert(0, Interrupting())
        from widemargin.cli import main

        sys.exit(main(["--version"]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_interrupted_training_saves_the_best_model(tmp_path):
    X, y = load_patches(12_000, task="quadrant")
    np.savez(tmp_path / "a.npz", X=X, y=y)
    script = """
        import os, signal, sys, threading
        from widemargin._progress import Progress
        from widemargin.cli import main

        enter = Progress.__enter__

        def enter_and_interrupt(self):
            if not interrupts:
                interrupts.append(threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)))
                interrupts[0].start()
            return enter(self)

        interrupts = []
        Progress.__enter__ = enter_and_interrupt
        sys.exit(main(["train", "a.npz", "m.skops", "-C", "1000", "--gamma", "1", "--tol", "1e-6"]))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^converged +no$", done.stdout, re.MULTILINE), done.stdout
    assert "widemargin: warning: " in done.stderr
    assert load(tmp_path / "m.skops").n_features_in_ == 75


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_interrupt_while_waiting_for_data(tmp_path, csv):
    """A named pipe without a writer: the signal comes before there is anything to save."""
    os.mkfifo(tmp_path / "pipe.csv")
    command = [sys.executable, "-m", "widemargin", "train", str(tmp_path / "pipe.csv"), str(tmp_path / "m")]
    (tmp_path / "copies").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "copies")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        deadline = time.monotonic() + 60
        while not any((tmp_path / "copies").iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "widemargin: error: interrupted; nothing was written\n"
    assert not leftovers(tmp_path)
    assert not any((tmp_path / "copies").iterdir())


# demo


@pytest.mark.slow
@pytest.mark.parametrize("task", ["photo", "quadrant"])
def test_demo(tmp_path, task):
    done = run("demo", "--n-samples", "400", "--task", task, "--out", "demo.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("widemargin", "SVC", "accuracy", "dual"):
        assert word in done.stdout
    assert f"{tmp_path.resolve() / 'demo.png'}" in done.stdout
    from PIL import Image

    with Image.open(tmp_path / "demo.png") as picture:
        assert picture.format == "PNG"
        assert picture.width > 2 * 640
        assert len(picture.getcolors(2**24)) > 1000


def test_demo_without_comparison_and_with_an_unwritable_output(tmp_path, capsys):
    out = tmp_path / "demo.png"
    assert main(["demo", "--n-samples", "300", "--no-compare", "--out", str(out)]) == 0
    assert "SVC" not in capsys.readouterr().out.replace("DCSVMClassifier", "")
    assert out.exists()
    assert main(["demo", "--out", str(tmp_path / "no" / "demo.png")]) == 1
    assert_error(capsys, "cannot be written")


@pytest.mark.parametrize("task", ["photo", "quadrant"])
def test_dual_objective_agrees_with_the_definition(task):
    X, y = load_patches(240, task=task)
    machine = SVC(C=8, gamma=1).fit(X, y)
    expected = 0.0
    for i in range(len(machine.classes_)):
        for j in range(i + 1, len(machine.classes_)):
            rows = np.isin(y, [i, j])
            pair = SVC(C=8, gamma=1).fit(X[rows], y[rows])
            Z, coef = pair.support_vectors_.astype(float), pair.dual_coef_.ravel()
            K = np.exp(-((Z[:, None] - Z[None]) ** 2).sum(axis=2))
            expected += np.abs(coef).sum() - 0.5 * coef @ K @ coef
    found = dual_objective(machine.dual_coef_, machine.support_vectors_, machine.n_support_, gamma=1.0)
    assert found == pytest.approx(expected, rel=1e-5)


# Regression and novelty detection


def _numbers(path, n, *, target):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    columns = np.column_stack([X, np.sin(X[:, 0]) + 3.0]) if target else X
    path.write_text("".join(",".join(f"{value:.6f}" for value in row) + "\n" for row in columns))
    return path


def test_regression(tmp_path, capsys):
    data, model, out = _numbers(tmp_path / "a.csv", 300, target=True), tmp_path / "m.skops", tmp_path / "out.txt"
    arguments = ["--task", "regression", "-C", "10", "--epsilon", "0.01", "--holdout", "0.3", "--scale", "standard"]
    assert main(["train", str(data), str(model), *arguments]) == 0
    report = capsys.readouterr().out
    assert float(report.split("R2")[1].split()[0]) > 0.95
    assert "classes" not in report
    assert main(["predict", str(data), str(model), str(out)]) == 0
    assert "R2 0.99" in capsys.readouterr().err
    assert len(out.read_text().splitlines()) == 300
    assert main(["info", str(model)]) == 0
    assert "epsilon" in capsys.readouterr().out
    small = tmp_path / "small.skops"
    assert main(["compress", str(model), str(small), "--data", str(data)]) == 0
    capsys.readouterr()
    assert main(["predict", str(data), str(small), str(out), "--force"]) == 0


def test_one_class(tmp_path, capsys):
    data, model, out = _numbers(tmp_path / "a.csv", 300, target=False), tmp_path / "m.skops", tmp_path / "out.txt"
    assert main(["train", str(data), str(model), "--task", "one-class", "--nu", "0.1"]) == 0
    report = capsys.readouterr().out
    assert 0.0 < float(report.split("outside")[1].split()[0]) <= 0.1  # nu bounds the share of outliers
    assert "2 features" in report
    assert main(["predict", str(data), str(model), str(out)]) == 0
    assert set(out.read_text().split()) == {"1", "-1"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "one-class", "--nu", "2"], "nu must be at most 1"),
        (["--task", "regression", "--epsilon", "-1"], "epsilon must be at least 0"),
    ],
)
def test_tasks_with_options_that_do_not_fit(arguments, message, tmp_path, capsys):
    data = _numbers(tmp_path / "a.csv", 30, target=True)
    assert main(["train", str(data), str(tmp_path / "m.skops"), *arguments]) == 1
    assert_error(capsys, message)
    assert not (tmp_path / "m.skops").exists()


def test_regression_needs_numbers(csv, tmp_path, capsys):
    assert main(["train", str(csv), str(tmp_path / "m.skops"), "--task", "regression"]) == 1
    assert_error(capsys, "labels must be numbers", csv.name)


def test_info_reads_the_summary_without_the_model(csv, tmp_path, capsys, monkeypatch):
    path = tmp_path / "m"
    assert main(["train", str(csv), str(path), "--gamma", "1"]) == 0
    from widemargin.cli import commands

    capsys.readouterr()
    assert main(["info", str(path)]) == 0
    shown = capsys.readouterr().out
    monkeypatch.setattr(commands, "read_summary", lambda path: None)
    assert main(["info", str(path)]) == 0
    assert capsys.readouterr().out == shown  # what the model itself says


def test_info_does_not_trust_a_summary_of_other_contents(csv, tmp_path, capsys):
    path, changed = tmp_path / "m", tmp_path / "changed"
    assert main(["train", str(csv), str(path), "--gamma", "1"]) == 0
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for member in old.namelist():
            content = old.read(member)
            new.writestr(member, content.replace(b'"rbf', b'"???') if member == "schema.json" else content)
    capsys.readouterr()
    assert main(["info", str(changed)]) == 1
    assert "changed" in capsys.readouterr().err


def test_info_imports_neither_scikit_learn_nor_skops(csv, tmp_path):
    assert main(["train", str(csv), str(tmp_path / "m"), "--gamma", "1"]) == 0
    program = (
        "import sys; from widemargin.cli import main; main(['info', 'm']); "
        "print({'sklearn', 'skops', 'scipy.optimize', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")
