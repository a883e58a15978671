"""Models of other programs: `files/` holds what these wrote, and their answers for six rows."""

import json
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.linear_model import Ridge
from sklearn.svm import SVC, SVR, OneClassSVM

import widemargin
from onnx_outputs import run_onnx
from peak_memory import peak_of
from widemargin import compress, read_machine, to_onnx

FILES = Path(__file__).parent / "files"
ANSWERS = json.loads((FILES / "answers.json").read_text())
ROWS = np.array(ANSWERS["rows"])
MODELS = sorted(path for path in FILES.iterdir() if path.suffix in (".model", ".xml", ".yml"))
LEVELS = ["b", "a", "c"]  # of the factor that e1071 was given
LIBSVM = FILES / "libsvm_three_classes.model"

# by hand: f(x) = 2 exp(-.5 |x - (1, 0)|^2) - exp(-.5 |x - (0, 2)|^2) - .25
SVMLIGHT = """SVM-light Version V6.02
2 # kernel type
3 # kernel parameter -d
0.5 # kernel parameter -g
1 # kernel parameter -s
1 # kernel parameter -r
empty# kernel parameter -u
3 # highest feature index
7 # number of training documents
3 # number of support vectors plus 1
0.25 # threshold b, each following line is a SV (starting with alpha*y)
2 1:1 #
-1 2:2 # a comment
"""


def read(path):
    """The model in a file of `files/`, with its scales and names."""
    scale = tuple(found for suffix in (".scale", ".yscale") if (found := path.with_suffix(suffix)).exists())
    classes = LEVELS if path.stem == "e1071" else None
    return read_machine(path, scale=(scale if len(scale) == 2 else scale[0]) if scale else None, classes=classes)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_answers_are_those_of_the_program(path):
    model, answer = read(path), ANSWERS[path.stem]
    labels = np.array(answer["labels"])
    if path.stem == "opencv_one_class":
        labels = np.where(labels > 0, 1, -1)  # OpenCV says 0 of an outlier
    if is_regressor(model):
        np.testing.assert_allclose(model.predict(ROWS), labels, rtol=2e-6)
    else:
        assert model.predict(ROWS).tolist() == labels.tolist()
    if "values" in answer and path.stem.partition("_")[0] != "opencv":
        theirs, ours = np.array(answer["values"]), model._decision_values(ROWS)
        np.testing.assert_allclose(np.sort(np.abs(ours)), np.sort(np.abs(theirs)), rtol=1e-8)
    if "probabilities" in answer:
        np.testing.assert_allclose(model.predict_proba(ROWS), answer["probabilities"], rtol=1e-8)


def test_signs_and_order_of_classes_are_ours():
    model = read(LIBSVM)
    assert model.classes_.tolist() == [2, 5, 9]
    assert model.n_support_.sum() == len(model.support_vectors_)
    assert (
        model.decision_function(ROWS).argmax(axis=1).tolist()
        == np.searchsorted([2, 5, 9], model.predict(ROWS)).tolist()
    )
    signs = read(FILES / "libsvm_signs.model")
    assert np.array_equal(np.where(signs.decision_function(ROWS) > 0, 1, -1), signs.predict(ROWS))
    with pytest.raises(ValueError, match="a model of another program, which widemargin.read_machine reads"):
        widemargin.load(LIBSVM)


def test_equal_votes_go_to_the_first_label_of_the_file(tmp_path):
    """Each of three classes wins one pair, in which it is 1 from the others."""
    text = "svm_type c_svc\nkernel_type linear\nnr_class 3\ntotal_sv 3\nrho -1 1 -1\nlabel 7 3 5\nnr_sv 1 1 1\nSV\n"
    (tmp_path / "model").write_text(text + "0 0 1:1\n0 0 1:1\n0 0 1:1\n")
    model = read_machine(tmp_path / "model")
    assert model.predict([[0.0]]).tolist() == [7]
    label, *_ = run_onnx(to_onnx(model), np.zeros((1, 1))).values()
    assert label.tolist() == [7]
    model.break_ties = True
    assert model.predict([[0.0]]).tolist() == [3]


def test_svmlight(tmp_path):
    (tmp_path / "model").write_text(SVMLIGHT)
    model = read_machine(tmp_path / "model")
    X = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, 1.0]])
    squares = np.square(X[:, None] - np.array([[1.0, 0, 0], [0, 2, 0]])).sum(axis=2)
    np.testing.assert_allclose(model.decision_function(X), np.exp(-0.5 * squares) @ [2, -1] - 0.25)
    assert model.predict(X).tolist() == [1, -1]


def test_columns_beyond_the_last_one_of_the_file(tmp_path):
    path = FILES / "libsvm_regression.model"
    wide = read_machine(path, n_features=5)
    assert np.array_equal(wide.predict(np.pad(ROWS, ((0, 0), (0, 2)))), read_machine(path).predict(ROWS))
    with pytest.raises(ValueError, match="n_features must be at least 3"):
        read_machine(path, n_features=2)
    zero_based = (FILES / "libsvm_regression.model").read_text()
    zero_based = re.sub(r"(\d):", lambda match: f"{int(match[1]) - 1}:", zero_based)
    (tmp_path / "model").write_text(zero_based)
    assert np.array_equal(read_machine(tmp_path / "model").predict(ROWS), read_machine(path).predict(ROWS))


def test_names_and_scales_are_checked(tmp_path):
    by_label = read_machine(LIBSVM, classes={2: "x", 5: "y", 9: "z", 11: "unused"})
    assert by_label.classes_.tolist() == ["x", "y", "z"]
    with pytest.raises(ValueError, match="a name for each of the 3 labels"):
        read_machine(LIBSVM, classes=["x", "y"])
    (tmp_path / "scale").write_text("0 1\n0 1\n")
    with pytest.raises(ValueError, match="2 lines for 3 columns: e1071 lists the scaled ones alone"):
        read_machine(LIBSVM, scale=tmp_path / "scale")
    (tmp_path / "scale").write_text("0 1\n0 -1\n0 1")
    with pytest.raises(ValueError, match="scale:2: the spread must be above 0"):
        read_machine(LIBSVM, scale=tmp_path / "scale")
    scaled = read_machine(LIBSVM, scale=[[1, 2], [0, 1], [0, 1]])
    assert np.array_equal(scaled.predict(ROWS * [2, 1, 1] + [1, 0, 0]), read_machine(LIBSVM).predict(ROWS))


def test_range_files_of_svm_scale(tmp_path):
    """The first is that of svm-scale 3.24, ``-l -1 -u 2``, for rows (2, 5, -1) and (10, 5, 0)."""
    path, model = tmp_path / "range", read_machine(LIBSVM)
    path.write_text("x\n-1 2\n1 2 10\n3 -1 0\n")
    scaled = np.stack([-1 + 3 * (ROWS[:, 0] - 2) / 8, 0 * ROWS[:, 1], -1 + 3 * (ROWS[:, 2] + 1)], axis=1)
    np.testing.assert_allclose(
        read_machine(LIBSVM, scale=path).decision_function(ROWS), model.decision_function(scaled), rtol=1e-6, atol=1e-9
    )
    fast = compress(read_machine(LIBSVM, scale=path), ROWS, random_state=0)
    assert np.array_equal(run_onnx(to_onnx(fast), ROWS.astype(np.float32))["label"], fast.predict(ROWS))
    regression = next(path for path in MODELS if is_regressor(read(path)) and not path.with_suffix(".scale").exists())
    model = read_machine(regression)
    rows = "".join(f"{j} -1 1\n" for j in range(1, model.n_features_in_ + 1))
    path.write_text("y\n0 1\n1 3\nx\n-1 1\n" + rows)
    np.testing.assert_allclose(read_machine(regression, scale=path).predict(ROWS), 1 + 2 * model.predict(ROWS))
    with pytest.raises(ValueError, match="scale has a line for y, but the model is no regressor"):
        read_machine(LIBSVM, scale=path)
    for text, reason in (("x\n-1 1\n0.5 0 1\n", "range:3: the index"), ("x\n1 1\n", "range:2: the first of two")):
        path.write_text(text)
        with pytest.raises(ValueError, match=reason):
            read_machine(LIBSVM, scale=path)


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        (
            LIBSVM.name,
            ("kernel_type rbf", "kernel_type precomputed"),
            "2: kernel_type is precomputed: the file has row numbers",
        ),
        (LIBSVM.name, ("kernel_type rbf", "kernel_type laplace"), "2: kernel_type must be one of linear, polynomial"),
        (LIBSVM.name, ("gamma 0.", "gamma -0."), "3: gamma must be above 0"),
        (LIBSVM.name, ("gamma", "gama"), "3: 'gama' is no key of this format"),
        (LIBSVM.name, ("nr_class 3", "nr_class 1"), "4: nr_class is 1: the model was trained on one class"),
        (LIBSVM.name, ("nr_class 3", "nr_class 1000000000"), "7: label must have 1000000000 numbers, got 3"),
        (LIBSVM.name, ("total_sv ", "total_sv 9"), "10: nr_sv must have the sum"),
        (LIBSVM.name, ("label 5 2 9", "label 5 2 5"), "7: label must have different labels"),
        (LIBSVM.name, ("label 5 2 9\n", ""), "the line label is missing"),
        (LIBSVM.name, (" 1:", " 1;"), "is no number, or no index:value after 2 numbers"),
        (LIBSVM.name, (" 2:", " 1:"), "indices must ascend"),
        (LIBSVM.name, (" 1:", " 1:1e999 2:1 3:"), "a number is too large for float64"),
        (LIBSVM.name, (" 3:", " 9999999999:"), "indices must ascend, and be at most"),
        (LIBSVM.name, ("SV\n", "SV\n1 "), "12: a support vector must begin with 2 numbers, got 3"),
        (LIBSVM.name, ("rho ", "rho nan "), "6: rho: 'nan' is not a finite number"),
        (LIBSVM.name, ("svm_type", "svn_type"), "1: begins with 'svn_type c_svc"),
        ("opencv_regression.yml", ("POLY", "INTER"), "7: type must be one of LINEAR, POLY, RBF, SIGMOID, got 'INTER'"),
        ("opencv_regression.yml", ("var_count: 3", "var_count: 1000000000"), "a support vector must have 1000000000"),
        ("opencv_regression.yml", (" ]\n   decision", "\n   decision"), "is not"),
        ("opencv_linear.xml", ("<opencv_storage>", "<!DOCTYPE a [<!ENTITY b 'c'>]><opencv_storage>"), "is refused"),
        (
            "opencv_regression.yml",
            (", 1., 1. ]", ", 1., 1. ]\n             -1., 1. ]"),
            "30: neither 'name: value' nor",
        ),
        ("opencv_linear.xml", ("<_>", "7 <_>"), "'7' stands beside named values or a list"),
        ("opencv_linear.xml", ("</kernel>", ""), "no XML: mismatched tag"),
        ("liblinear_regression.model", ("nr_class 2", "nr_class nan"), "2: nr_class: 'nan' is not a finite number"),
        ("e1071_regression.model", ("nr_sv 0 0", "nr_sv 0 0 7"), "nr_sv must have 2 numbers, got 3"),
        ("opencv_linear.xml", ("<rho>", "<rho>1e"), "rho: "),
        ("liblinear_logistic.model", ("L2R_LR", "L3R"), "1: solver_type must be one of L2R_L2LOSS_SVC_DUAL"),
        ("liblinear_logistic.model", ("nr_feature 3", "nr_feature 30"), "the file ends where row 5 of w should be"),
        ("liblinear_logistic.model", ("nr_feature 3", "nr_feature 2"), "the model has ended, but a line follows"),
    ],
)
def test_damage_is_named_with_its_line(name, change, reason, tmp_path):
    path = tmp_path / name
    path.write_text((FILES / name).read_text().replace(*change, 1))
    refusal = refusal_of(path)
    assert refusal is not None
    assert refusal.startswith(f"{path}:")
    assert reason in refusal


def changed(text, rng):
    """A text with one change of its structure: lines or numbers too few or too many, words for numbers, other order."""
    lines = text.rstrip("\n").split("\n")
    i, kind = rng.integers(len(lines)), rng.integers(5)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(i, lines[i])
    elif kind == 2:
        del lines[i:]
    elif kind == 3:
        number = rng.choice(re.findall(r"[-+.e\d]*\d", lines[i]) or [lines[i]])
        lines[i] = lines[i].replace(
            number, rng.choice(["x", "nan", "1e999", "-", "", "[", "<a>", "é", "9" * 12 + ":1"]), 1
        )
    else:
        turned = re.sub(r"(\d+:\S+) (\d+:\S+)", r"\2 \1", lines[i], count=1)
        lines[i] = f"{lines[i]} 7" if turned == lines[i] else turned
    return "\n".join(lines)


def refusal_of(path):
    try:
        read_machine(path)
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize("n_models", [60, pytest.param(1_000, marks=pytest.mark.slow)])
def test_changes_of_structure_are_refused(n_models, tmp_path):
    """With a line and a reason, and in memory that the file's size bounds; or what was changed is not read."""
    (tmp_path / "svmlight.model").write_text(SVMLIGHT)
    rng, paths, path = np.random.default_rng(0), [*MODELS, tmp_path / "svmlight.model"], tmp_path / "changed"
    answers, n_read = {path: read_machine(path)._decision_values(ROWS) for path in paths}, 0
    tracemalloc.start()
    try:
        for number in range(n_models):
            original = paths[number % len(paths)]
            path.write_text(changed(original.read_text(), rng))
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            refusal = refusal_of(path)
            assert tracemalloc.get_traced_memory()[1] - before < 2 * path.stat().st_size + 400_000
            if refusal is None:
                n_read += 1
                values = read_machine(path)._decision_values(ROWS)
                np.testing.assert_array_equal(values, answers[original], path.read_text())
            else:
                assert re.match(r".*changed:\d+: .", refusal)
    finally:
        tracemalloc.stop()
    assert n_read < 0.05 * n_models


@pytest.mark.parametrize("last", ["0.5 1:x", "0.5 1:1 2147483646:1"])
def test_memory_of_a_large_model_is_within_twice_its_file(last, tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "model"
    rows = [" ".join(f"{j + 1}:{value:.8g}" for j, value in enumerate(row)) for row in rng.normal(size=(500, 12))]
    header = "svm_type epsilon_svr\nkernel_type rbf\ngamma 1\nnr_class 2\ntotal_sv 501\nrho 0\nSV\n"
    path.write_text(header + "\n".join(f"1 {row}" for row in rows) + f"\n{last}\n")
    refusal, peak = peak_of(refusal_of, path)
    assert refusal is None or "2147483646" not in last
    assert peak < 2 * path.stat().st_size + 200_000


def test_estimators_of_scikit_learn_are_read():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.array(["u", "v", "w"])[rng.integers(0, 3, 80)]
    for theirs in (
        SVC(gamma=0.5).fit(X, y),
        SVC(decision_function_shape="ovo").fit(X, y),
        SVC(kernel="poly").fit(X, y == "u"),
        OneClassSVM().fit(X),
    ):
        model = read_machine(theirs)
        assert np.array_equal(model.predict(X), theirs.predict(X))
        ours = model.decision_function(X)
        np.testing.assert_allclose(ours, theirs.decision_function(X), rtol=1e-9, atol=1e-9)
    theirs = SVR().fit(X, X[:, 0])
    np.testing.assert_allclose(read_machine(theirs).predict(X), theirs.predict(X))
    with pytest.raises(ValueError, match="SVC instance is not fitted yet"):
        read_machine(SVC())
    constant = SVR(epsilon=9).fit(X, X[:, 0])  # has no support vectors
    np.testing.assert_allclose(read_machine(constant).predict(X), constant.predict(X))
    other = Ridge().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="model must be a file, or a fitted SVM of another package, got Ridge"):
        read_machine(other)


@pytest.mark.filterwarnings("ignore:only .* of the labels agree")
def test_compress_takes_what_was_read():
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = read(LIBSVM)
    fast = compress(model, X, random_state=0)
    assert np.array_equal(fast.classes_, model.classes_)
    assert np.mean(fast.predict(X) == model.predict(X)) > 0.9
    assert is_classifier(fast)


def test_spaces_and_line_ends_of_any_kind(tmp_path):
    """As LIBSVM reads them: tabs, several spaces, blank lines, the line ends of Windows, exponents."""
    text = LIBSVM.read_text()
    odd = text.replace(" ", "\t ").replace("\n", " \t\r\n\r\n").replace("rho\t -0.", "rho\t -.")
    (tmp_path / "model").write_bytes(odd.encode())
    np.testing.assert_array_equal(read_machine(tmp_path / "model").predict(ROWS), read(LIBSVM).predict(ROWS))


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"classes": ["a", "b", 3]}, "classes must be different names, all of them strings or all numbers"),
        ({"classes": ["a", "b", None]}, "classes must be different names, all of them strings or all numbers"),
        ({"n_features": 3.0}, "n_features must be an integer, at least 1, got 3.0"),
    ],
)
def test_arguments_that_do_not_fit(how, reason):
    with pytest.raises(ValueError, match=reason):
        read_machine(LIBSVM, **how)


def test_a_line_of_megabytes_is_refused_in_little_memory(tmp_path):
    path = tmp_path / "model"
    path.write_text("svm_type c_svc\n" + "x" * 3_000_000)
    refusal, peak = peak_of(refusal_of, path)
    assert re.search("model:2: 'x{40}...' is no key of this format", refusal)
    assert peak < 5 * path.stat().st_size


def test_labels_of_many_classes_in_any_order(tmp_path):
    """Each class against each other one, by hand: f of the pair a < b of the file is the sum of its coefficients."""
    k, rng = 40, np.random.default_rng(0)
    labels, coef, rho = rng.permutation(k), rng.normal(size=(k - 1, k)), rng.normal(size=k * (k - 1) // 2)
    head = f"svm_type c_svc\nkernel_type linear\nnr_class {k}\ntotal_sv {k}\nrho {' '.join(map(str, rho))}\n"
    head += f"label {' '.join(map(str, labels))}\nnr_sv {'1 ' * k}\nSV\n"
    (tmp_path / "model").write_text(head + "".join(f"{' '.join(map(str, column))} 1:1\n" for column in coef.T))
    model = read_machine(tmp_path / "model")
    expected = np.empty((k, k))
    for pair, (a, b) in enumerate(zip(*np.triu_indices(k, 1), strict=True)):
        expected[labels[a], labels[b]] = coef[b - 1, a] + coef[a, b] - rho[pair]
        expected[labels[b], labels[a]] = -expected[labels[a], labels[b]]
    np.testing.assert_allclose(model._decision_values(np.ones((1, 1)))[0], expected[np.triu_indices(k, 1)], rtol=1e-9)
