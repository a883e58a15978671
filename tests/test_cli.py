"""The command line: what it prints, writes and refuses, and with which exit code."""

import io
import os
import re
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skops.io
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import widemargin
from command_line import accuracy_in
from widemargin import OCASClassifier
from widemargin._model_files import load, save
from widemargin.cli import commands
from widemargin.cli import program as program_module


@pytest.fixture
def csv(program):
    """A table of three classes with a header and string labels."""
    rng, rows = np.random.default_rng(0), ["length,width,kind"]
    for i in range(120):
        x = rng.normal(size=2) + 4 * np.array([(0, 0), (0, 1), (1, 0)][i % 3])
        rows.append(f"{x[0]:.6f},{x[1]:.6f},{('ant', 'bee', 'cat')[i % 3]}")
    return program.write("points.csv", "\n".join(rows) + "\n")


@pytest.fixture
def model(program, csv):
    """A model trained on `csv`."""
    program("train points.csv model -C 10")
    return program.folder / "model"


@pytest.fixture
def digits(program):
    """An archive of 600 digits."""
    X, y = load_digits(return_X_y=True)
    X, y = (X[:600] / 16).astype(np.float32), y[:600]
    np.savez("digits.npz", X=X, y=y)
    return X, y


def run_script(script, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


# Usage


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("fly", "invalid choice: 'fly'"),
        ("train data.csv", "required: MODEL"),
        ("train a b -C -1", "argument -C: '-1' is not a finite number above 0"),
        ("train a b --gamma 0", "'0' is not a finite number above 0, nor scale, near, auto"),
        ("train a b --holdout 1", "'1' is not between 0 and 1"),
        ("train a b --holdout 0.2 --test c", "not allowed with argument --holdout"),
        ("train a b --memory-budget much", "'much'"),
        ("train a b --degree 1.5", "'1.5' is not a whole number of at least 1"),
        ("train a b --delimiter ,,", "',,' is not one character, nor tab, space"),
        ("train a b --sclae 1", "train: error: unrecognized arguments: --sclae 1 (did you mean --scale?)"),
        ("train - b --test -", "only one of data, test can be standard input"),
        ("tune a b --gamma 3", "--gamma 3 (did you mean --gammas?)"),  # no abbreviation
        ("train a b --estimator ocas --kernel poly", "--kernel does not apply to --estimator ocas; it is for bsgd"),
        ("tune a b --estimator ocas --relevance", "--relevance does not apply to --estimator ocas; it is for dcsvm, "),
        ("train a b --task regression --estimator bsgd", "--estimator does not apply to --task regression; it is for"),
        ("train a b --n-landmarks 3", "--n-landmarks does not apply to --estimator dcsvm; it is for dcpred"),
    ],
)
def test_wrong_usage_is_explained(program, command, reason):
    program.write("a", "")
    assert reason in program(command, 2).err


def test_output_files_are_replaced_by_force_alone(program, model):
    before = model.read_bytes()
    program.fails("train points.csv model", "exists already: --force replaces it", "model")
    assert model.read_bytes() == before
    program.write("bad.csv", "1,2,a\n1,b,a\n")
    program("train bad.csv model --force", 1)
    assert model.read_bytes() == before
    program("train points.csv model --force")
    assert model.read_bytes() != before


def test_standard_input_and_output(program, csv, model, monkeypatch):
    def piped(content, command, code=0):
        out = io.BytesIO()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
        return program(command, code).err, out.getvalue()

    program("predict points.csv model labels")
    assert piped(csv.read_bytes(), "predict - model --format csv")[1] == Path("labels").read_bytes()
    report, trained = piped(csv.read_bytes(), "train - - --format csv -C 10")
    assert "support vectors" in report
    assert b"DCSVMClassifier" in piped(trained, "info -")[1]
    assert "standard input has no suffix: give --format" in piped(b"1,2", "train - m", 1)[0]
    broken, _ = piped(b"1,2,a\n1,2\n", "train - m --format csv", 1)
    assert broken.startswith("widemargin: error: standard input:2: 2 fields")


def test_help_and_errors_load_nothing_heavy(program):
    program.write("model", "no archive")
    program.write("bad.csv", "1,2,a\n1,2\n")
    script = """
        import sys
        from widemargin.cli import main

        def heavy(*commands):
            for command in commands:
                try:
                    assert main(command.split()) == 1
                except SystemExit as end:
                    assert end.code == (0 if "--help" in command else 2)
            return {"numpy", "sklearn", "rich", "skops", "PIL", "scipy"} & set(sys.modules)

        assert not heavy("train --help")
        assert heavy("predict no.csv model", "info model", "train no.csv m -C 10") <= {"numpy"}
    """
    done = run_script(script)
    assert done.returncode == 0, done.stderr
    assert "--memory-budget" in done.stdout


# train, predict, info


def test_train_predict_info_as_a_program(program, csv):
    command = f"{sys.executable} -m widemargin train points.csv m.skops -C 10 --gamma 0.5 --scale standard".split()
    trained = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert trained.returncode == 0, trained.stderr
    for word in ("seconds", "support vectors", "duality gap", "accuracy"):
        assert re.search(rf"^{word} +\S", trained.stdout, re.MULTILINE), trained.stdout
    predicted = program("predict points.csv m.skops labels").err
    program("predict points.csv m.skops values --decision")
    frame, machine = pd.read_csv(csv)[["length", "width"]].astype(np.float32), load("m.skops")
    assert Path("labels").read_text() == "".join(f"{label}\n" for label in machine.predict(frame))
    values = np.loadtxt("values", delimiter="\t")
    np.testing.assert_allclose(values, machine.decision_function(frame), rtol=1e-5, atol=1e-6)
    labels, truth = Path("labels").read_text().split(), [row.split(",")[2] for row in csv.read_text().split()[1:]]
    assert np.mean(np.array(labels) == truth) > 0.9
    assert re.match(r"accuracy 0\.9\d+ \(1\d\d of 120 labels agree\)", predicted)
    shown = program("info m.skops").out
    for word in ("DCSVMClassifier", "StandardScaler", "rbf", "ant, bee, cat", "support vectors", "converged", " 0.5\n"):
        assert word in shown


def test_the_report_scores_rows_of_all_parts_of_the_file(program, monkeypatch):
    monkeypatch.setattr("widemargin.cli.reports._SCORED_ROWS", 100)
    X = np.random.default_rng(0).normal(size=(1000, 2))
    y = np.arange(1000) >= 800
    X[800:] += 2.0
    X[:200], y[:200] = X[800:], False  # the first rows have the features of the other class
    np.savez("a.npz", X=X, y=y.astype(int))
    out = program("train a.npz m -C 1").out
    assert "100 training samples" in out
    assert 0.6 < accuracy_in(out) < 0.95


def test_info_has_the_parameters_of_the_machine(program, csv, model):
    assert re.search(r"scale \(0\.\d+\)", program("info model").out)
    program("train points.csv m --kernel linear -C 0.30000000001")
    out = program("info m").out
    assert ("\ngamma" not in out, " 0.3\n" in out) == (True, True)
    X = np.random.default_rng(0).normal(size=(200, 2))
    skops.io.dump(widemargin.DCSVMClassifierCV(Cs=[0.7], gammas=[1.3], cv=2).fit(X, X[:, 0] > 0), "search")
    skops.io.dump(widemargin.DCSVMClassifier(stop_level=1).fit(X, X[:, 0] > 0), "early")
    assert re.search(r"\nC +0\.7\n(.*\n)*gamma +1\.3\n", program("info search").out)
    assert re.search(r"\nearly prediction +level 1, 4 clusters\n", program("info early").out)


def test_info_reads_a_summary_that_belongs_to_the_model_and_imports_nothing_for_it(program, csv, monkeypatch):
    program("train points.csv m --gamma 1")
    script = """
        import sys; from widemargin.cli import main; main(["info", "m"])
        print({"sklearn", "skops", "scipy.optimize", "pandas"} & set(sys.modules))
    """
    assert run_script(script).stdout.endswith("set()\n")
    shown = program("info m").out
    with zipfile.ZipFile("m") as old, zipfile.ZipFile("changed", "w") as new:
        for member in old.namelist():
            content = old.read(member)
            new.writestr(member, content.replace(b'"rbf', b'"???') if member == "schema.json" else content)
    assert "changed" in program("info changed", 1).err
    monkeypatch.setattr(commands, "read_summary", lambda path: None)
    assert program("info m").out == shown  # what the model itself says


def _columns(csv, order, **renamed):
    """The table with its columns in this order, and other names, as new.csv."""
    rows = [[line.split(",")[k] for k in order] for line in csv.read_text().splitlines()]
    rows[0] = [renamed.get(name, name) for name in rows[0]]
    csv.with_name("new.csv").write_text("".join(",".join(row) + "\n" for row in rows))


@pytest.mark.parametrize("order", [(0, 1), (1, 0, 2), (2, 1, 0), (1, 0)])
def test_columns_are_known_by_their_names(order, program, csv, model):
    """With labels or without; where a file has no header, by their positions."""
    program("predict points.csv model a")
    _columns(csv, order)
    assert ("accuracy" in program("predict new.csv model b").err) == (2 in order)
    program("compress model small --data new.csv --n-landmarks 8")
    program("predict points.csv small c")
    program("predict new.csv small d")
    csv.write_text(csv.read_text().split("\n", 1)[1])
    assert "valid feature names" not in program("predict points.csv model e").err
    assert Path("a").read_text() == Path("b").read_text() == Path("e").read_text()
    assert Path("c").read_text() == Path("d").read_text()


def test_columns_of_a_model_of_scikit_learn(program, csv):
    frame = pd.read_csv(csv)
    skops.io.dump(SVC().fit(frame[["width", "length"]], frame["kind"]), "model")
    csv.rename("points.data")
    printed = program("predict points.data model o --format csv").err
    assert re.fullmatch(r"accuracy 0\.9\d+ \(1\d\d of 120 labels agree\)\n", printed)


def test_other_columns_are_refused(program, csv, model):
    missing = "new.csv:1: no column is named 'width', which the model was trained with"
    _columns(csv, (1, 0, 2), width="depth")
    program.fails("predict new.csv model", missing, "'depth'")
    program.fails("compress model small --data new.csv", missing, "'depth'")
    wanted = "new.csv:1: no column is named 'width', which points.csv has"
    program.fails("train points.csv m --test new.csv", wanted, "'depth'")
    for order, names in (((0, 1, 2), {"width": "length"}), ((0, 2), {}), ((0,), {})):
        _columns(csv, order, **names)
        program.fails("predict new.csv model", f"{missing}; the columns are ")
    program.write("new.csv", "width,length,length,kind\n1,2,3,ant\n")
    program.fails("predict new.csv model", "new.csv: 3 features, but the model was trained with 2")
    program.write("wide.csv", "1,2,3,ant\n4,5,6,bee\n")
    program.fails("predict wide.csv model", "wide.csv: 3 features, but the model was trained with 2")
    program.fails("train points.csv m --test wide.csv", "wide.csv: 3 features, but points.csv has 2")
    program.write("wide.svm", "1 1:1\n1 5:1\n")
    note = "wide.svm: features beyond the 2 that the model was trained with are ignored: 3"
    assert note in program("predict wide.svm model").err


def test_labels_that_the_model_does_not_know(program, csv, model):
    text, unknown = csv.read_text(), r"accuracy 0.\d+ \(\d+ of %d labels agree; 1 row has a label .* not know: '%s'\)"
    csv.write_text(text.replace(",bee", ",bea", 1))
    assert re.search(unknown % (120, "bea"), program("predict points.csv model out").err)
    csv.write_text(re.sub(",(ant|bee|cat)\n", ",dog\n", text))
    none = "no accuracy: no label of the data is a class of the model (ant, bee, cat)"
    assert none in program("predict points.csv model b").err
    rows = "x,y\n" + "".join(f"{k},{k // 10}\n" for k in range(20))
    program.write("a.csv", rows)
    program("train a.csv m --scale standard")
    for text in (rows.replace("0,0", "0,o"), re.sub(",([01])\n", r",\1.0\n", rows).replace("0,0.0", "0,o")):
        program.write("b.csv", text)
        assert re.search(unknown % (20, "o"), program("predict b.csv m b --force").err)


def test_a_class_of_a_single_row_is_noted_and_not_held_out(program, csv):
    header, *rows = csv.read_text().replace(",bee", ",bea", 1).splitlines(keepends=True)
    for classes, line in (("ant|bee|cat", 3), ("bee", 2)):
        csv.write_text(header + "".join(row for row in rows if re.search(f",(bea|{classes})", row)))
        assert f"note: class 'bea' has 1 row (line {line}): a typo?" in program("train points.csv m --force").err
    csv.write_text(header + "".join(rows).replace(",bea", ",bee") + "1.0,2.0,dog\n")
    for command in ("train", "tune"):
        printed = program(f"{command} points.csv m --target kind --holdout 0.3 --force")
        assert "classes of one row, which are trained on and not held out: 'dog'" in printed.err
        assert "(36 samples, held out)" in printed.out


TRAINED = [
    ("--estimator bsgd --budget 12 --epochs 5 --kernel rbf", "BSGDClassifier", {"maintenance": "merge", "budget": 12}),
    ("--estimator bsgd --budget 12 --epochs 5 --kernel linear", "BSGDClassifier", {"maintenance": "projection"}),
    (
        "--kernel poly --degree 2 --coef0 1 --gamma auto --tol 0.01 --intercept --balanced --max-time 60 "
        "--n-jobs 1 --memory-budget 200MB --holdout 0.25 --seed 7 --dtype float64",
        "DCSVMClassifier",
        {"kernel": "poly", "degree": 2, "coef0": 1, "gamma": "auto", "tol": 0.01, "fit_intercept": True}
        | {"class_weight": "balanced", "random_state": 7, "n_jobs": 1},
    ),
    ("--estimator linear --loss logistic -C 10 --intercept", "OCASClassifier", {"loss": "logistic", "C": 10.0}),
    ("--kernel laplacian", "DCSVMClassifier", {"kernel": "laplacian"}),
    ("--stop-level 2", "DCSVMClassifier", {"stop_level": 2}),
    ("--stop-level auto", "DCSVMClassifier", {"stop_level": "auto"}),
    ("--estimator dcpred --n-clusters 2 --n-landmarks 5", "DCPredClassifier", {"n_clusters": 2, "n_landmarks": 5}),
]


@pytest.mark.parametrize(("options", "type_", "expected"), TRAINED)
def test_options_of_the_machines(options, type_, expected, program, csv):
    out = program(f"train points.csv m --target kind --scale standard --quiet {options}").out
    assert ("support vectors" in out) == (type_ in ("BSGDClassifier", "DCSVMClassifier"))
    assert ("inner products per sample" in out) == (type_ == "DCPredClassifier")
    assert ("30 samples, held out" in out) == ("--holdout" in options)
    assert re.search(r"converged +yes", out)
    machine = load("m")[-1]
    assert type(machine).__name__ == type_
    assert expected.items() <= machine.get_params().items()
    assert type_ in program("info m").out
    assert accuracy_in(program("predict points.csv m labels").err) > 0.85
    if type_ == "BSGDClassifier":
        assert machine.n_support_.max() <= 12


def test_the_test_split_of_an_archive_and_a_limit_of_time(program, digits):
    X, y = digits
    np.savez("a.npz", X=X[:400], y=y[:400], X_test=X[400:], y_test=y[400:])
    assert "200 samples, test split of the file" in program("train a.npz a --gamma 0.05").out
    printed = program("train a.npz b --gamma 0.05 --tol 1e-9 --max-time 0.001")  # Ctrl-C ends a fit in the same way
    assert re.search(r"^converged +no$", printed.out, re.MULTILINE)
    assert "widemargin: warning: " in printed.err
    assert load("b").n_features_in_ == 64


def test_tune(program, csv, digits):
    for scale in ("none", "standard"):
        options = f"--target kind --Cs 0.1,10 --gammas 2 --folds 3 --scale {scale} --holdout 0.25 --force"
        out = program(f"tune points.csv best {options}").out
        assert re.search(r"^score +0\.\d+ \(mean of held-out rows; \d+ cells\)", out, re.MULTILINE)
        machine = load("best") if scale == "none" else load("best")[-1]
        assert type(machine).__name__ == "DCSVMClassifier"
        assert float(re.search(r"^C +([0-9.]+)", out, re.MULTILINE)[1]) == machine.C
    program("predict points.csv best labels --target kind")
    options = "--estimator ocas --loss logistic --Cs 0.1,1 --scoring balanced_accuracy --target kind"
    program(f"tune points.csv linear {options}")
    assert (type(load("linear")).__name__, load("linear").loss) == ("OCASClassifier", "logistic")
    out = program("tune digits.npz regressor --task regression --Cs 1,10 --gammas 0.05 --folds 2").out
    assert re.search(r"^epsilon +0\.\d+$", out, re.MULTILINE)
    for options in ("", "--Cs 1,10 --gammas 2", "--estimator ocas"):
        stopped = "the search was stopped before it had scored anything"
        limit = "raise --max-time (now 1e-09 seconds)"
        program.fails(f"tune points.csv none --target kind --max-time 1e-9 {options}", stopped, limit)
    assert not Path("none").exists()


# compress


def test_compress_a_model_of_ours(program, digits):
    program("train digits.npz model --gamma 0.05 -C 10 --scale standard")
    cost = "--prediction-cost 30 --n-clusters 2 --seed 3 --quiet"
    out = program(f"compress model small --data digits.npz --onnx small.onnx {cost}").out
    for line in ("same label", "cost of a prediction", "size", "note: its decision values are one for each class"):
        assert re.search(f"^{line},? +\\S", out, re.MULTILINE), out
    assert "nan" not in out
    machine = load("small")[-1]
    assert machine.report_.cost_after <= 31
    assert machine.predictor_.trees[0].tree.n_leaves == 2
    assert accuracy_in(program("predict digits.npz small labels").err) > 0.9
    session = onnxruntime.InferenceSession("small.onnx", providers=["CPUExecutionProvider"])
    assert np.mean(session.run(["label"], {"X": digits[0]})[0] == np.loadtxt("labels")) > 0.99
    assert "CompressedClassifier" in program("info small").out


def test_compress_models_of_scikit_learn(program, digits):
    for machine in (SVC(gamma=0.05), KernelRidge(kernel="rbf", gamma=0.05)):
        skops.io.dump(machine.fit(*digits), "model")
        assert "cost of a prediction" in program("compress model small --n-landmarks 8 --force").out
        program("predict digits.npz small out --force")
        np.testing.assert_allclose(np.loadtxt("out"), load("small").predict(digits[0]), rtol=1e-12)


def test_a_model_of_another_program(model, program):
    head = "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 -1\nnr_sv 1 1\nSV\n"
    texts = {"other": head + "0.5 1:1\n-0.5 1:-1\n", "range": "x\n-1 1\n1 0 10\n", "rows.svm": "1 1:9 3:2\n-1 2:1\n"}
    for name, text in (texts | {"rows.csv": "a,b,c\n9,0,2\n0,1,0\n"}).items():
        program.write(name, text)
    options = "--scale range --classes low,high --n-features 3"
    for rows in ("rows.csv", "rows.svm"):
        assert program(f"predict {rows} other {options}").out == "high\nlow\n"
    ignored = "beyond the 1 that its file names (--n-features adds more) are ignored: 2"
    assert ignored in program("predict rows.svm other").err
    program.fails(f"predict rows.csv model {options}", "--scale is for a model file of another program, which this")
    program(f"compress other small --data rows.csv {options}")
    assert program("predict rows.svm small").out == "high\nlow\n"


def test_a_model_of_text_is_described_and_not_predicted_with(program, csv):
    texts = make_pipeline(HashingVectorizer(n_features=8), OCASClassifier())
    save(texts.fit(["good", "bad"] * 5, [1, 0] * 5), "m")
    assert re.search(r"features +text", program("info m").out)
    reason = "m: its model takes text, not a table: use it in Python, by widemargin.load"
    program.fails("predict points.csv m", reason)


def test_what_cannot_be_compressed(program, model, digits):
    skops.io.dump(LogisticRegression().fit(np.eye(2), [0, 1]), "bad")
    program.fails("compress bad out", "bad: model must be a fitted kernel machine", "got LogisticRegression")
    wide = "digits.npz: 64 features, but the model was trained with 2"
    program.fails("compress model out --data digits.npz", wide)
    program.fails("compress model out --prediction-cost 1", "prediction_cost must be at least 4, got 1.0")
    for outputs in ("no/out", "out --onnx no/x"):
        program.fails(f"compress model {outputs}", "cannot be written: its folder does not exist")
    assert not Path("out").exists()


# Faulty data


def test_faulty_training_data(program):
    program.write("bad.csv", "1,2,a\n1,2\n")
    program.write("bad.mat", "")
    np.savez("nan.npz", X=[[1.0, np.nan], [0, 1]], y=[0, 1])
    np.savez("bare.npz", X=np.eye(2))
    for name, reason in (
        ("bad.csv", ":2: 2 fields"),
        ("bad.mat", ": this format is not read: save it as .csv or .parquet"),
        ("nan.npz", "NaN"),
        ("bare.npz", ": it has no labels, which training needs"),
    ):
        program.fails(f"train {name} m", name, reason)
    assert not Path("m").exists()


def test_a_feature_index_that_needs_too_much_memory_is_named(program):
    program.write("wide.svm", "1 1:1\n-1 2:1\n1 1:1 2147483647:1\n-1 2:2\n")
    for command in ("train wide.svm m", "tune wide.svm m"):
        program.fails(f"{command} --memory-budget 1GB", "wide.svm:3: the feature index 2147483647 gives X")
    program.write("less.svm", "1 1:1\n-1 2:1\n1 1:1 9999999:1\n-1 2:2\n")
    program("train less.svm m --memory-budget 1GB")
    program("predict less.svm m")
    program.write("zero.svm", "1 0:1\n-1 0:2\n")
    program("train zero.svm n --zero-based")


# Faulty models


def test_truncated_missing_and_foreign_models(program, csv, model):
    content = model.read_bytes()
    for broken in (content[: len(content) // 2], b"", b"PK\x05\x06" + bytes(18), b"nothing of the kind"):
        program.write("bad", broken)
        for command in ("info bad", "predict points.csv bad"):
            program.fails(command, "bad: not a model file, or a damaged one")
    program.fails("info none", "none: No such file")
    skops.io.dump({"a": 1}, "other")
    program.fails("info other", "other: holds a dict, not a fitted model")
    older = "bad: saved by another version of widemargin, .* fit or compress the model again"
    for module, reason in (("os", "bad: refused: .* types that are not trusted: os.DC"), ("widemargin.old", older)):
        with zipfile.ZipFile(model) as old, zipfile.ZipFile("bad", "w") as new:
            for part in old.namelist():
                new.writestr(part, old.read(part).replace(b'"widemargin.estimators.dc_svm"', f'"{module}"'.encode()))
        assert re.search(reason, program.fails("info bad"))


# Outputs


def test_unwritable_output_is_found_before_the_computation(program, model, monkeypatch):
    def refuse(*_, **__):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        error = program("predict points.csv model out", 1).err
    kept = re.search(r"error: out: cannot be replaced \(.*\); the new file was kept as (.*)", error)
    assert len(Path(kept[1]).read_text().split()) == 120
    Path(kept[1]).unlink()
    monkeypatch.setattr(widemargin.DCSVMClassifier, "fit", None)
    monkeypatch.setattr(widemargin.DCSVMClassifier, "predict", None)
    for command in ("train points.csv", "predict points.csv model"):
        for place in ("no/such/out", "."):
            program.fails(f"{command} {place}", "cannot be written: ")


# Interrupts


def test_interrupt_without_a_model_is_code_130(program, csv, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(widemargin.DCSVMClassifier, "fit", interrupt)
    program.fails("train points.csv m", "interrupted; nothing was written", code=130)
    assert not any(name == "m" or name.endswith(".part") for name in os.listdir())
    monkeypatch.setattr(program_module, "main", interrupt)  # as while its modules are loaded
    assert program("--version", 130).err == ""


# demo


@pytest.mark.slow
def test_demo(program):
    from PIL import Image

    out = program("demo --n-samples 400 --out demo.png").out
    for word in ("widemargin", "SVC", "accuracy", "support vectors", str(program.folder.resolve() / "demo.png")):
        assert word in out
    with Image.open("demo.png") as picture:
        assert (picture.format, picture.width) == ("PNG", 2 * 640)
        assert len(picture.getcolors(2**24)) > 1000
    program.fails("demo --out no/demo.png", "cannot be written")


# Regression and novelty detection


def _numbers(program, n, *, target):
    X = np.random.default_rng(0).normal(size=(n, 2))
    columns = np.column_stack([X, np.sin(X[:, 0]) + 3.0]) if target else X
    np.savetxt("a.csv", columns, "%.6f", delimiter=",")


def test_regression(program, csv):
    _numbers(program, 300, target=True)
    options = "-C 10 --epsilon 0.01 --loss squared_epsilon_insensitive --holdout 0.3 --scale standard"
    report = program(f"train a.csv m --task regression {options}").out
    assert load("m")[-1].loss == "squared_epsilon_insensitive"
    assert float(report.split("R2")[1].split()[0]) > 0.95
    assert "classes" not in report
    assert "R2 0.99" in program("predict a.csv m out").err
    assert len(Path("out").read_text().splitlines()) == 300
    assert "epsilon" in program("info m").out
    program("compress m small --data a.csv")
    program("predict a.csv small out --force")
    program("tune a.csv q --task regression --loss absolute --Cs 1,10 --gammas 0.5")
    assert load("q").loss == "absolute"
    program.fails("predict a.csv m --decision", "m: a DCSVMRegressor has no decision values")
    program.fails("train points.csv n --task regression", "points.csv: its labels must be numbers", "got 'ant'")
    program.fails("train a.csv n --task regression --epsilon -1", "epsilon must be at least 0")
    program.fails("train a.csv n --task one-class --nu 2", "nu must be at most 1")
    assert not Path("n").exists()


def test_one_class(program):
    _numbers(program, 300, target=False)
    report = program("train a.csv m --task one-class --nu 0.1").out
    assert 0.0 < float(report.split("outside")[1].split()[0]) <= 0.1  # nu bounds the share of outliers
    assert "2 features" in report
    program("predict a.csv m out")
    assert set(Path("out").read_text().split()) == {"1", "-1"}
    info = program("info m").out
    assert "duality gap" in info
    assert not re.search(r"classes |by class|\(-", info)  # nor a negative gap, where the objective is negative
