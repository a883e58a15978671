"""to_c: what a compiler makes of a header, against our own predictions."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import exported_machines
from compiled_header import COMPILER, FLAGS, run
from exported_machines import MACHINES, fitted
from widemargin import (
    DCSVMClassifier,
    DCSVMRegressor,
    LandmarkNystroem,
    OCASClassifier,
    OCASRegressor,
    RelevanceScaler,
    compress,
    to_c,
)
from widemargin.datasets import load_benchmark

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
UNIT = 2.0**-24  # rounding of float, relative
RNG = np.random.default_rng(0)
NAMES = np.array(["null", 'e"ins\\', "zwei?", "drei µ"])


@pytest.fixture
def digits():
    return exported_machines.digits()


def assert_same(model, X, folder: Path, *, tol: float = 1e-4, **how):
    """Scores agree to `tol` of their spread, and labels but for rows that are nearer than that to a border."""
    scores, numbers = run(to_c(model, **how), X, folder)
    has_labels = is_classifier(model) or is_outlier_detector(model)
    expected = model.decision_function(X) if has_labels else model.predict(X)
    scores, error = scores.reshape(expected.shape), tol * expected.std()
    np.testing.assert_allclose(scores, expected, rtol=tol, atol=error)
    if has_labels:
        classes = model.classes_ if is_classifier(model) else np.array([-1, 1])
        differ = classes[numbers] != model.predict(X)
        largest = np.sort(expected, axis=1) if expected.ndim == 2 else np.column_stack([0 * expected, np.abs(expected)])
        assert (largest[differ, -1] - largest[differ, -2] <= 2 * error).all()
    return scores


@pytest.mark.parametrize("name", MACHINES)
def test_machines(name, digits, tmp_path) -> None:
    assert_same(fitted(name), digits[0], tmp_path)


@pytest.mark.parametrize("break_ties", [False, True])
def test_votes(break_ties, digits, tmp_path) -> None:
    """The scores are votes, of which many rows have equal ones: labels agree on all rows."""
    X, y = digits
    model = DCSVMClassifier(gamma=0.1, break_ties=break_ties).fit(X, y)
    model._model.intercept[:] = [0.2, 0.0, -0.2, 0.2, 0.0, 0.2]  # so that votes of far rows are equal
    X = np.vstack([X, 100.0 * X])
    scores, numbers = run(to_c(model), X, tmp_path)
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(model.classes_[numbers], model.predict(X))


@pytest.mark.parametrize("name", ["linear", "rbf", "early", "tree", "compressed"])
def test_labels_of_many_rows(name, digits, tmp_path) -> None:
    """100,000 rows between those of training: labels differ only where two scores do not."""
    X, _ = digits
    (first, second), share = RNG.integers(len(X), size=(2, 100_000)), RNG.random((100_000, 1), np.float32)
    rows = share * X[first] + (1 - share) * X[second]
    model = fitted(name)
    scores, numbers = run(to_c(model), rows, tmp_path)
    expected = model.decision_function(rows)
    differ = model.classes_[numbers] != model.predict(rows)
    assert differ.mean() < 2e-4
    gaps = np.abs(expected) if expected.ndim == 1 else np.diff(np.sort(expected, axis=1)[:, -2:]).ravel()
    off = np.abs(scores.reshape(expected.shape) - expected).reshape(len(rows), -1).max(axis=1)
    is_elsewhere = off > 1e-3 * expected.std()  # routed to another cluster, or another vote
    assert is_elsewhere.mean() < 2e-4
    assert (gaps[differ & ~is_elsewhere] <= 2e-3 * expected.std()).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "rbf"])
def test_differences_are_within_the_bound_that_is_stated(kind, tmp_path) -> None:
    X = RNG.normal(size=(500, 200)).astype(np.float32)
    y = X[:, 0] > 0
    model = OCASClassifier(C=0.1).fit(X, y) if kind == "linear" else DCSVMClassifier(gamma=0.005, C=100).fit(X, y)
    scores = run(to_c(model), X, tmp_path)[0][:, 0]
    Z, n = X.astype(np.float64), X.shape[1]
    if kind == "linear":
        terms = Z * model.coef_.ravel()
        allowed = UNIT * (n + 2) * (np.abs(terms).sum(axis=1) + abs(model.intercept_[0]))
    else:
        V = model.support_vectors_.astype(np.float64)
        K = np.exp(-0.005 * np.square(Z[:, None] - V).sum(axis=2))
        terms = K * model.dual_coef_.ravel()
        absolute = np.abs(model.dual_coef_).sum() * UNIT * (n + 8)
        allowed = UNIT * (len(V) + 2) * (np.abs(terms).sum(axis=1) + abs(model.intercept_[0])) + absolute
    off = np.abs(scores - (terms.sum(axis=1) + model.intercept_[0]))
    assert (off <= allowed).all()
    assert off.max() > 0


def test_pipelines(digits, tmp_path) -> None:
    X, y = 3 * digits[0] - 1, digits[1].astype(float)
    X[::7, 20:30] = np.nan
    steps = SimpleImputer(keep_empty_features=True), MinMaxScaler((-1, 1), clip=True), RelevanceScaler(n_iter=1)
    filled = steps[0].fit_transform(X)
    model = make_pipeline(*steps[1:], DCSVMRegressor(gamma=0.02)).fit(filled, y)
    model = make_pipeline(steps[0], *(step for _, step in model.steps))
    expected = model.predict(X)
    np.testing.assert_allclose(run(to_c(model), X, tmp_path)[0][:, 0], expected, atol=1e-4 * expected.std())
    X = np.nan_to_num(X)
    assert_same(TransformedTargetRegressor(model, transformer=StandardScaler()).fit(X, y), X, tmp_path)
    logarithms = TransformedTargetRegressor(OCASRegressor(), func=np.log1p, inverse_func=np.expm1)
    assert_same(logarithms.fit(X, y), X, tmp_path)


@pytest.mark.parametrize("classes", [NAMES, np.array([-3, 7, 9, 2**40]), np.array([0.0, 1.0, 2.0, 1e9]), [False, True]])
def test_labels_of_any_kind(classes, digits, tmp_path) -> None:
    X, y = digits
    classes = np.asarray(classes)
    model = OCASClassifier().fit(X, classes[y % len(classes)])
    printed = {"U": "%s", "i": "%lld", "f": "%.17g", "b": "%d"}[classes.dtype.kind]
    (tmp_path / "own.h").write_text(to_c(model, name="own"))
    loop = f'for (int i = 0; i < {len(classes)}; ++i) printf("{printed}\\n", own_labels[i]);'
    (tmp_path / "labels.c").write_text(f'#include <stdio.h>\n#include "own.h"\nint main(void) {{ {loop} return 0; }}\n')
    subprocess.run([COMPILER, *FLAGS, "-o", tmp_path / "labels", tmp_path / "labels.c", "-lm"], check=True)
    found = subprocess.run([tmp_path / "labels"], check=True, capture_output=True).stdout.decode().splitlines()
    assert found == [printed.replace("ll", "") % label for label in model.classes_.tolist()]


def test_numbers_of_16_bits_take_half_of_the_bytes(digits, tmp_path) -> None:
    model = fitted("compressed")
    assert_same(model, digits[0], tmp_path, tol=5e-3, bits=16)

    def n_bytes(header: str) -> int:
        return int(header.partition("C99, ")[2].split()[0].replace(",", ""))

    assert n_bytes(to_c(model, bits=16)) < 0.6 * n_bytes(to_c(model))


@pytest.mark.slow
def test_a_compressed_machine_of_mnist_fits_into_64_kilobytes(tmp_path) -> None:
    try:
        X, y = load_benchmark("mnist")[:2]
    except FileNotFoundError as error:
        pytest.skip(str(error))
    X = X / np.float32(255)
    model = compress(SVC(C=10, gamma=0.02).fit(X[:3000], y[:3000]), X[:8000], prediction_cost=40, random_state=0)
    header = to_c(model, bits=16)
    _, numbers = run(header, X[-10_000:], tmp_path)
    assert np.mean(model.classes_[numbers] == model.predict(X[-10_000:])) > 0.998
    (tmp_path / "flash.c").write_text(
        '#include "model.h"\nint digit(const float *row, float *scores)\n{ return model_predict(row, scores); }\n'
    )
    subprocess.run([COMPILER, "-std=c99", "-Os", "-c", "-o", tmp_path / "flash.o", tmp_path / "flash.c"], check=True)
    sizes = subprocess.run(["size", tmp_path / "flash.o"], check=True, capture_output=True, text=True).stdout
    text, data, bss = map(int, sizes.splitlines()[1].split()[:3])
    assert (data, bss) == (0, 0)
    assert text <= 64 * 1024
    assert model.score(X[-10_000:], y[-10_000:]) > 0.92


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: SVC().fit(X, y), "got SVC: see skl2onnx, or compress it first"),
        (lambda X, y: CalibratedClassifierCV(OCASClassifier(), cv=2).fit(X, y), "got CalibratedClassifierCV"),
        (lambda X, y: make_pipeline(LandmarkNystroem(9), OCASClassifier()).fit(X, y), "the step LandmarkNystroem"),
        (
            lambda X, y: DCSVMClassifier(kernel="precomputed").fit(X @ X.T, y),
            "Precomputed kernel; to_onnx and to_c write rbf",
        ),
        (lambda X, y: OCASRegressor().fit(X, 1e39 * y), r"has the number .*e\+3., which to_c cannot write"),
        (lambda X, y: OCASClassifier(), "not fitted"),
    ],
)
def test_models_that_c_does_not_express_are_refused(make, message, digits) -> None:
    X, y = digits
    with pytest.raises(ValueError, match=message):
        to_c(make(X[:100], y[:100]))


def test_parameters(digits) -> None:
    model = OCASClassifier().fit(*digits)
    with pytest.raises(ValueError, match="name must be an identifier of C, got '1st'"):
        to_c(model, name="1st")
    with pytest.raises(ValueError, match=r"bits must be one of \[16, 32\], got 8"):
        to_c(model, bits=8)
