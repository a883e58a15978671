"""The types of arrays, by dtype and by what they hold; their shapes stand in docstrings."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]  # (n,): what is summed: coefficients, decision values, weights of rows
Matrix: TypeAlias = NDArray[np.float64]  # (q, n): the same of several machines; other matrices in float64
Gradients: TypeAlias = NDArray[np.float64]  # (n, q, d): of the values of q machines, by each row
Array: TypeAlias = NDArray[np.floating]  # data and kernel entries, in the dtype of the data
RowIndices: TypeAlias = NDArray[np.signedinteger]  # (m,): numbers of rows, or of coordinates of a dual; np.intp
Labels: TypeAlias = NDArray[np.signedinteger]  # (n,): the class or the cluster of each row, as a number
Mask: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = Any  # (n, d): samples after their checks, an array or a CSR one, whose class SciPy gives no types
AnyArray: TypeAlias = NDArray[Any]  # of any dtype: labels as the user has them
Bytes: TypeAlias = NDArray[np.uint8]  # memory for compiled code
DType: TypeAlias = np.dtype[Any]
Given: TypeAlias = Any  # an argument before its checks: a list, a frame, a collection, whatever a user passes
Model: TypeAlias = Any  # an estimator, of this package or another, as scikit-learn gives no types

# parameters of estimators
KernelParameter: TypeAlias = str | Callable[[Array, Array], Array]
ClassWeight: TypeAlias = Mapping[Any, float] | str | None
RandomState: TypeAlias = int | np.random.RandomState | None

ROUNDING = 1e-12  # of itself: smaller differences of sums in float64 are none
LEAST_NORMAL = float(np.finfo(np.float64).tiny)  # compiled loops take smaller numbers for zero
