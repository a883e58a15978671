"""The types of arrays, by dtype and by what they hold; their shapes stand in docstrings."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]  # what is summed: coefficients, decision values, weights of rows
Matrix: TypeAlias = NDArray[np.float64]
Array: TypeAlias = NDArray[np.floating]  # data and kernel entries, in the dtype of the data
Rows: TypeAlias = NDArray[np.intp]  # numbers of rows
Indices: TypeAlias = NDArray[np.int64]  # the same, as compiled loops of linear machines take them
Mask: TypeAlias = NDArray[np.bool_]
