"""The two passes of a linear machine over its data, wherever the rows lie: in memory, in a file, on other machines."""

from .blocks import Rows, make_rows
from .constant import RowsWithConstant
from .mapped import has_finite_rows, mapped_pages

__all__ = ["Rows", "RowsWithConstant", "has_finite_rows", "make_rows", "mapped_pages"]
