"""The two passes of a linear machine over its data, wherever the rows lie: in memory, in a file, on other machines."""

from .blocks import Rows, make_rows
from .constant import RowsWithConstant
from .dask import LostPartitionError, is_partitioned
from .door import open_rows

__all__ = ["LostPartitionError", "Rows", "RowsWithConstant", "is_partitioned", "make_rows", "open_rows"]
