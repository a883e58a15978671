"""Random models of other programs, read here, and ours, read there: `nox -s neighbours`."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from benchmarks.peers import other_programs
from widemargin import compress, read_machine

pytestmark = pytest.mark.neighbours

N_MODELS = int(os.environ.get("WIDEMARGIN_RANDOM_MODELS", "100"))


@pytest.mark.parametrize("case", other_programs.CASES)
def test_labels_and_values_are_those_of_the_program(case: str) -> None:
    try:
        row = other_programs.measure(case, N_MODELS)
    except (ImportError, FileNotFoundError) as error:
        pytest.skip(str(error))
    assert row["models"] > 0.7 * N_MODELS  # others cannot be trained
    assert row["differ"] == 0
    assert row["border"] < 0.01 * row["labels"]
    assert row["difference"] < row["digits"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", ["sklearnex.svm", "thundersvm"])
def test_fitted_objects_are_compressed(module: str) -> None:
    svm, X = pytest.importorskip(module), np.random.default_rng(0).normal(size=(600, 4))
    theirs = svm.SVC(kernel="rbf", gamma=0.5, C=10).fit(X, np.where(X[:, 0] * X[:, 1] > 0, 3, -2))
    labels = theirs.predict(X)
    assert read_machine(theirs).as_function()(X[0]) == labels[0]
    assert np.mean(compress(theirs, X, random_state=0).predict(X) == labels) > 0.97


def test_kernels_of_kernlab() -> None:
    """`laplacedot` has Euclidean distances; `polydot` degree 1 and offset 1."""
    if shutil.which("Rscript") is None:
        pytest.skip("R is not there")
    script = """suppressMessages(library(kernlab)); x <- matrix(1:6 / 4, 2); x[2, ] <- x[2, ]^2
    write(t(x), ""); write(kernelMatrix(laplacedot(0.3), x), ""); write(kernelMatrix(polydot(), x), "")"""
    found = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=True).stdout.split()
    x, laplacian, poly = np.split(np.array(found, float), [6, 10])
    x = x.reshape(2, 3)
    np.testing.assert_allclose(laplacian.reshape(2, 2), np.exp(-0.3 * cdist(x, x)), rtol=1e-5)
    np.testing.assert_allclose(poly.reshape(2, 2), x @ x.T + 1, rtol=1e-5)
