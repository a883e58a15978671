"""Array namespaces: the array decides where a tile is computed. NumPy today; the only file that may know another.

Tiles are made of matrix products and of elementwise functions. Products dispatch on the array by themselves; the
functions that work in place go through here, since the array API standard has no ``out=``.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def namespace(x: Any) -> Any:
    """The module of array functions that x belongs to.

    Examples
    --------
    >>> namespace(np.ones(2)).__name__
    'numpy'
    """
    return x.__array_namespace__() if hasattr(x, "__array_namespace__") else np


def apply(name: str, x: Any) -> None:
    """Replace x by an elementwise function of it, without a second array where the namespace can do without.

    Examples
    --------
    >>> x = np.zeros(2)
    >>> apply("exp", x)
    >>> x
    array([1., 1.])
    """
    function = getattr(namespace(x), name)
    if isinstance(x, np.ndarray):
        function(x, out=x)
    else:
        x[...] = function(x)
