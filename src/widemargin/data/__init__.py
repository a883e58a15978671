"""The two passes of a linear machine over its data, wherever the rows lie: in memory, in a file, on other machines."""

from .constant import RowsWithConstant
from .dask import LostPartitionError, is_partitioned
from .dense import has_finite_values
from .design_matrix import RowArrays, Rows, make_rows
from .door import open_rows
from .mapped import has_finite_rows, mapped_pages

__all__ = [
    "LostPartitionError",
    "RowArrays",
    "Rows",
    "RowsWithConstant",
    "has_finite_rows",
    "has_finite_values",
    "is_partitioned",
    "make_rows",
    "mapped_pages",
    "open_rows",
]
