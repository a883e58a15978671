"""The other displays: what is drawn is what the estimators say; wrong arguments are named."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons

from widemargin import (
    BSGDClassifier,
    CPathDisplay,
    DCSVMClassifier,
    OCASClassifier,
    SupportVectorDisplay,
)
from widemargin.model_selection.c_path import CPath

X, Y = make_moons(600, noise=0.2, random_state=0)

pytestmark = pytest.mark.usefixtures("plt")


@pytest.mark.parametrize("model", [DCSVMClassifier(gamma=1.0), BSGDClassifier(n_epochs=3)], ids=["DCSVM", "BSGD"])
def test_support_vectors_are_those_of_the_history(model: Any) -> None:
    display = SupportVectorDisplay.from_estimator(model.fit(X, Y), name="ours")
    assert np.array_equal(display.lines_[0].get_ydata(), model.history_["n_support"])
    assert display.lines_[0].get_label() == "ours"


def test_a_linear_machine_has_no_support_vectors_to_draw() -> None:
    with pytest.raises(ValueError, match="missing: n_support"):
        SupportVectorDisplay.from_estimator(OCASClassifier().fit(X, Y))


def test_path_of_c() -> None:
    path = CPath(np.array([10.0, 1.0, 0.1]), [], np.array([[0.8, 0.9, 0.5], [0.8, 0.7, 0.7]]))
    display = CPathDisplay.from_path(path, color="red")
    assert np.allclose(display.line_.get_xydata(), [[0.1, 0.6], [1.0, 0.8], [10.0, 0.8]])
    assert display.line_.get_color() == "red"
    assert list(display.best_line_.get_xdata()) == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"scores \(0, 3\)"):
        CPathDisplay.from_path(CPath(path.Cs, [], np.empty((0, 3))))
