"""Samples: a storage class for each kind of data, the products of linear machines and the tiles of kernel machines.

`design_matrix` has the products with weight vectors of dense, CSR and memory-mapped data (`dask`: of data on other
machines), `samples` the tiles of inner products; `csr` is the sparse storage and its checks.
"""

from .abstract_matrix import DesignMatrix, LocalMatrix, LostBlockError, RowAccess, RowArrays
from .dask import LostPartitionError, open_design_matrix
from .dense import has_finite_values
from .design_matrix import is_partitioned, make_design_matrix, with_constant
from .lazy_rows import iterate_blocks, map_rows
from .memory_map import has_finite_rows, mapped_pages

__all__ = [
    "DesignMatrix",
    "LocalMatrix",
    "LostBlockError",
    "LostPartitionError",
    "RowAccess",
    "RowArrays",
    "has_finite_rows",
    "has_finite_values",
    "is_partitioned",
    "iterate_blocks",
    "make_design_matrix",
    "map_rows",
    "mapped_pages",
    "open_design_matrix",
    "with_constant",
]
