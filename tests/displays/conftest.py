"""Matplotlib for the tests of displays."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def plt() -> Iterator[Any]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    yield pyplot
    pyplot.close("all")
