"""Matplotlib for the tests of displays."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def plt() -> Iterator[Any]:
    """Matplotlib without a screen; every figure is closed afterwards."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    yield pyplot
    pyplot.close("all")
