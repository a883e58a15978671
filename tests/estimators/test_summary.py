"""What notebooks show of a fitted estimator."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.datasets import load_iris

from widemargin import (
    BSGDClassifier,
    DCPredClassifier,
    DCSVMClassifier,
    DCSVMClassifierCV,
    LandmarkNystroem,
    OCASClassifier,
    compress,
)
from widemargin.estimators import _estimator

X, Y = load_iris(return_X_y=True)
X, Y = X[:100], Y[:100]


def test_a_fitted_estimator_shows_its_certificate() -> None:
    model = DCSVMClassifier(gamma=0.5).fit(X, Y)
    html = model._repr_html_()
    assert "DCSVMClassifier" in html
    assert f"converged; objective at most {model.relative_gap_:.2g} of itself above the optimum" in html
    assert f"{model.history_['time'][-1]:.3g} s" in html
    assert model._repr_mimebundle_()["text/html"].count("<small>converged") == 1


def test_bytes_are_those_of_the_arrays() -> None:
    dense, sparse = (DCSVMClassifier(gamma=0.5).fit(rows, Y) for rows in (X, sp.csr_array(X)))
    shown = [int(model._repr_html_().rpartition("; ")[2].split()[0].replace(",", "")) for model in (dense, sparse)]
    assert shown[0] > dense.support_vectors_.nbytes + dense.dual_coef_.nbytes
    assert shown[1] > sparse.support_vectors_.data.nbytes


def test_a_method_without_a_bound_says_so() -> None:
    assert "no lower bound" in BSGDClassifier(n_epochs=1).fit(X, Y)._repr_html_()


def test_a_search_shows_its_best_machine() -> None:
    search = DCSVMClassifierCV(Cs=2, gammas=2).fit(X, Y)
    best = search.best_estimator_._repr_html_()
    assert search._repr_html_().endswith(best[best.index("<p><small>") :])


def test_machines_of_cheap_predictions_show_their_cost() -> None:
    machine = DCPredClassifier(random_state=0).fit(X, Y)
    assert f"a prediction costs {machine.prediction_cost_:.3g} inner products" in machine._repr_html_()
    compressed = compress(DCSVMClassifier(gamma=0.5).fit(X, Y), X)
    line = compressed._repr_html_().rpartition("<small>")[2]
    assert line.startswith(f"a prediction costs {compressed.report_.cost_after:.3g} inner products; ")


def test_a_transformer_shows_its_bytes() -> None:
    assert LandmarkNystroem(random_state=0).fit(X)._repr_html_().rpartition("<small>")[2].endswith(" bytes</small></p>")


def test_nothing_is_added_before_a_fit_or_without_diagrams() -> None:
    assert "<small>" not in OCASClassifier()._repr_html_()
    fitted = OCASClassifier().fit(X, Y)
    with config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert list(fitted._repr_mimebundle_()) == ["text/plain"]
    assert np.isfinite(fitted.relative_gap_)


class Metadata:
    """Of an archive that a workflow with this address has made."""

    def get_all(self, name: str, default: object) -> list[str]:
        assert name == "Project-URL"
        forge = "https://forge.example/o/widemargin"
        return [f"Homepage, {forge}", f"Documentation, {forge}/blob/v1.2.3/docs/index.md"]


def test_the_diagram_links_to_the_documentation_of_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "https://forge.example/o/widemargin/blob/v1.2.3/src/widemargin/"
    _estimator._source_address.cache_clear()
    monkeypatch.setattr(_estimator, "metadata", lambda name: Metadata())
    small = compress(DCSVMClassifier(gamma=0.5).fit(X, Y), random_state=0)
    places = {
        DCSVMClassifier(): "estimators/dc_svm.py",
        DCSVMClassifierCV(): "model_selection/dc_svm_cv.py",
        LandmarkNystroem(): "estimators/landmark_nystroem.py",
        small: "compression/compressed.py",
    }
    for model, path in places.items():
        assert model._get_doc_link() == source + path
        assert f'href="{source}{path}"' in model._repr_html_()
        assert Path(_estimator.__file__).parents[2].joinpath("widemargin", path).is_file()
    _estimator._source_address.cache_clear()


def test_without_an_address_there_is_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    _estimator._source_address.cache_clear()

    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_estimator, "metadata", missing)
    assert DCSVMClassifier()._get_doc_link() == ""
    assert "href" not in DCSVMClassifier()._repr_html_().rpartition("</style>")[2]
    _estimator._source_address.cache_clear()
