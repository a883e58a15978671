"""Machines that were read, in everything that takes a model: exports, files, functions, compress."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier

import widemargin
from compiled_header import COMPILER, run
from onnx_outputs import run_onnx
from widemargin import compress, read_machine, to_c, to_onnx, write_libsvm
from widemargin.cli.reports import describe

RNG = np.random.default_rng(0)
POINTS = np.round(RNG.normal(size=(9, 4)) * (RNG.random((9, 4)) < 0.6), 2)
ROWS = np.vstack([np.zeros((2, 4)), np.round(RNG.normal(size=(40, 4)), 2)]).astype(np.float32)
KERNEL = {"linear": "", "polynomial": "degree 2\ngamma 0.5\ncoef0 1\n", "rbf": "gamma 0.5\n"}
KERNEL["sigmoid"] = "gamma 0.3\ncoef0 0.1\n"


def libsvm(kind, kernel, labels=(), d=4):
    """A text of LIBSVM with random coefficients, and without intercepts: a row of zeros has ties."""
    k = max(len(labels), 2)
    head = f"svm_type {kind}\nkernel_type {kernel}\n{KERNEL[kernel]}nr_class {k}\ntotal_sv 9\n"
    head += f"rho {' '.join(['0'] * (k * (k - 1) // 2))}\n"
    if labels:
        counts = [9 // k] * (k - 1) + [9 - (k - 1) * (9 // k)]
        head += f"label {' '.join(map(str, labels))}\nnr_sv {' '.join(map(str, counts))}\n"
    coef = RNG.normal(size=(9, k - 1))
    rows = [" ".join(f"{j + 1}:{v}" for j, v in enumerate(row[:d]) if v or j == d - 1) for row in POINTS]
    return head + "SV\n" + "".join(f"{' '.join(map(str, c))} {row}\n" for c, row in zip(coef, rows, strict=True))


def liblinear(labels):
    """A text of LIBLINEAR without a bias: of a row of zeros all values are 0."""
    k = len(labels)
    w = RNG.normal(size=(4, 1 if k == 2 else k))
    head = f"solver_type L2R_LR\nnr_class {k}\nlabel {' '.join(map(str, labels))}\nnr_feature 4\nbias -1\nw\n"
    return head + "".join(f"{' '.join(map(str, row))} \n" for row in w)


KINDS = [("c_svc", (1, -1)), ("nu_svc", (-1, 1)), ("c_svc", (5, 2, 9)), ("epsilon_svr", ()), ("one_class", ())]
TEXTS = {
    f"{kind}-{kernel}-{len(labels)}{'-turned' if labels == (-1, 1) else ''}": libsvm(kind, kernel, labels)
    for kernel, kinds in [("rbf", KINDS), ("linear", KINDS[:3]), ("polynomial", KINDS[2:]), ("sigmoid", KINDS[1:4])]
    for kind, labels in kinds
}
TEXTS |= {f"liblinear-{labels}": liblinear(labels) for labels in [(1, -1), (-1, 1), (7, 3, 5)]}
EMPTY = "kernel_type rbf\ngamma 1\nnr_class 2\ntotal_sv 0\nrho -3\nSV\n"  # of y within epsilon
TEXTS |= {"constant": f"svm_type epsilon_svr\n{EMPTY}"}


@pytest.mark.filterwarnings("ignore:only .* of the (labels|variance)", "ignore:.*agree", "ignore:.*C=")
@pytest.mark.parametrize(
    ("name", "is_sparse"),
    [(name, is_sparse) for name in TEXTS for is_sparse in (False, True) if not is_sparse or "rbf" in name],
)
def test_every_kind(name, is_sparse, tmp_path):
    """Ties are those of the file's order in all of them."""
    (tmp_path / "model").write_text(TEXTS[name])
    model = read_machine(tmp_path / "model", n_features=4)
    if is_sparse:
        model.take(sp.csr_array(model.support_vectors_), model.dual_coef_, model.intercept_)
    expected = model.predict(ROWS)
    values = model.decision_function(ROWS) if hasattr(model, "decision_function") else expected

    label, *_ = run_onnx(to_onnx(model, dtype="float64"), np.float64(ROWS)).values()
    np.testing.assert_allclose(label, expected, rtol=1e-9)
    if COMPILER is not None:
        scores, numbers = run(to_c(model), ROWS, tmp_path)
        np.testing.assert_allclose(scores.reshape(values.shape), values, rtol=1e-4, atol=1e-4)
        if is_classifier(model):
            assert np.array_equal(model.classes_[numbers], expected)
        elif hasattr(model, "density_marks_"):
            assert np.array_equal(2 * numbers - 1, expected)

    widemargin.save(model, tmp_path / "model.skops")
    np.testing.assert_allclose(widemargin.load(tmp_path / "model.skops").predict(ROWS), expected, rtol=1e-9)
    assert dict(describe(model))["type"] == type(model).__name__
    function = model.as_function()
    np.testing.assert_allclose([function(row) for row in ROWS], expected, rtol=1e-6)

    write_libsvm(model, tmp_path / "written")
    again = read_machine(tmp_path / "written", n_features=4)
    np.testing.assert_allclose(again.predict(ROWS), expected, rtol=1e-9)
    np.testing.assert_equal(getattr(again, "label_order_", None), getattr(model, "label_order_", None))
    if "rbf" in name and not is_sparse:
        assert compress(model, ROWS, random_state=0).predict(ROWS).shape == expected.shape


def test_a_large_degree_makes_no_large_header(tmp_path):
    (tmp_path / "model").write_text(TEXTS["one_class-polynomial-0"].replace("degree 2", "degree 100000"))
    assert len(to_c(read_machine(tmp_path / "model"))) < 5_000
