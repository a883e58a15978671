"""ConvergenceDisplay: curves of the history's columns, shared axes, error messages."""

import sys
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import (
    BSGDClassifier,
    ConvergenceDisplay,
    DCPredRegressor,
    DCSVMClassifier,
    DCSVMClassifierCV,
    OCASClassifier,
    OCASClassifierCV,
)

HISTORY = {"time": [0.1, 0.2, 0.4], "objective": [9.0, 5.0, 4.0], "lower_bound": [0.0, 3.0, 3.9]}


def points(line: Any) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in line.get_xydata()]


def legend(display: ConvergenceDisplay) -> list[str]:
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.slow
def test_curves_are_the_columns(plt: Any) -> None:
    display = ConvergenceDisplay.from_history(HISTORY, name="ours", kind="objective")
    assert [points(line) for line in display.lines_] == [[(0.1, 9.0), (0.2, 5.0), (0.4, 4.0)]]
    assert [points(line) for line in display.bound_lines_] == [[(0.1, 0.0), (0.2, 3.0), (0.4, 3.9)]]
    assert display.lines_[0].get_color() == display.bound_lines_[0].get_color()
    assert legend(display) == ["ours: objective", "ours: lower bound"]
    assert display.figure_ is display.ax_.figure


def test_the_gap_is_drawn_on_a_logarithmic_axis_where_there_is_a_bound(plt: Any) -> None:
    history = {**HISTORY, "lower_bound": [0.0, 4.5, 4.0]}  # none at the end: it is not positive
    display = ConvergenceDisplay.from_history(history, name="ours")
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [9.0, 0.5, np.nan])
    assert (display.bound_lines_, display.ax_.get_yscale(), legend(display)) == ([], "log", ["ours: gap"])
    with pytest.raises(ValueError, match="kind must be 'objective', 'gap' or None, got 'bound'"):
        display.plot(kind="bound")
    with pytest.raises(ValueError, match="no lower bound, got 'gap'"):
        ConvergenceDisplay([1.0], [2.0]).plot(kind="gap")


def test_without_a_bound_there_is_one_curve(plt: Any) -> None:
    display = ConvergenceDisplay.from_history({"time": [1, 2], "objective": [3, 2]})
    assert display.bound_lines_ == []
    assert legend(display) == ["objective"]


def test_axes_are_shared_and_line_options_passed_on(plt: Any) -> None:
    _, ax = plt.subplots()
    first = ConvergenceDisplay.from_history(HISTORY, ax=ax, name="a", kind="objective", color="red", linestyle=":")
    second = first.plot(ax=ax, name="b", kind="objective")
    assert first.ax_ is ax
    assert len(ax.lines) == 4
    assert ax.lines[0].get_color() == ax.lines[1].get_color() == "red"
    assert [line.get_linestyle() for line in ax.lines[:2]] == [":", "--"]
    assert second is first
    assert legend(second)[2:] == ["b: objective", "b: lower bound"]


@pytest.mark.parametrize("model", [DCSVMClassifier(gamma=0.5), DCPredRegressor(random_state=0), OCASClassifier()])
def test_fitted_estimator(plt: Any, model: Any) -> None:
    X, y = load_iris(return_X_y=True)
    display = ConvergenceDisplay.from_estimator(model.fit(X[:100], y[:100]), kind="objective")
    assert np.array_equal(display.lines_[0].get_ydata(), model.history_["objective"])
    assert np.array_equal(display.bound_lines_[0].get_ydata(), model.history_["lower_bound"])
    assert display.lines_[0].get_ydata()[-1] == pytest.approx(model.objective_)
    assert legend(display)[0] == f"{type(model).__name__}: objective"


def test_of_bsgd_the_hinge_loss_of_its_passes_is_drawn(plt: Any) -> None:
    X, y = load_iris(return_X_y=True)
    model = BSGDClassifier(n_epochs=3, random_state=0).fit(X[:100], y[:100])
    display = ConvergenceDisplay.from_estimator(model)
    assert np.array_equal(display.lines_[0].get_ydata(), model.history_["hinge"])
    assert legend(display) == ["BSGDClassifier: mean hinge loss"]
    assert display.ax_.get_ylabel() == "Mean hinge loss"


@pytest.mark.parametrize("search", [DCSVMClassifierCV(Cs=2, gammas=2), OCASClassifierCV(Cs=2)])
def test_of_a_search_the_best_machine_is_drawn(plt: Any, search: Any) -> None:
    X, y = load_iris(return_X_y=True)
    search.fit(X[:100], y[:100])
    display = ConvergenceDisplay.from_estimator(search, kind="objective")
    assert np.array_equal(display.lines_[0].get_ydata(), search.best_estimator_.history_["objective"])


def test_each_pair_of_classes_has_a_curve(plt: Any) -> None:
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), DCSVMClassifier(gamma=0.5)).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model, name="iris", kind="objective")
    assert len(display.lines_) == len(display.bound_lines_) == 3
    assert sum(len(line.get_xdata()) for line in display.lines_) == len(model[-1].history_["time"])
    ends = sum(line.get_ydata()[-1] for line in display.lines_)
    assert ends == pytest.approx(model[-1].objective_)
    assert legend(display) == ["iris: objective", "iris: lower bound"]


def test_an_estimator_without_history_is_refused() -> None:
    with pytest.raises(ValueError, match="estimator must be a fitted widemargin estimator.*DCSVMClassifier"):
        ConvergenceDisplay.from_estimator(DCSVMClassifier())


def test_a_history_without_its_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="missing: objective"):
        ConvergenceDisplay.from_history({"time": [1.0]})
    with pytest.raises(ValueError, match=r"one length.*time \(2,\), objective \(1,\)"):
        ConvergenceDisplay([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="not empty"):
        ConvergenceDisplay([], [])


def test_without_matplotlib_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="ConvergenceDisplay needs matplotlib: pip install matplotlib"):
        ConvergenceDisplay([1.0], [2.0]).plot()
