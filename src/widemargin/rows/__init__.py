"""The two passes of a linear machine over its data, wherever the rows lie: in memory, in a file, on other machines."""

from .blocks import Rows, make_rows
from .constant import RowsWithConstant

__all__ = ["Rows", "RowsWithConstant", "make_rows"]
