"""Samples X (n, d): a storage class for each kind of data, for linear machines and for kernel machines.

::

    abstract_matrix  DesignMatrix: products with weight vectors, of linear machines; what every storage provides
    design_matrix    make_design_matrix: the storage for X; [X, 1] for a regularised intercept
    dense            arrays in C or Fortran order
    repeated         samples that occur several times, with a constant each
    csr              CSR arrays: storage for both kinds of machines, and the check of their indices
    memory_map       memory maps larger than the memory budget

    samples          Samples: tiles of inner products, of kernel machines; dense, CSR or Gram
    remote           dask collections: all that knows dask
    rows             row indices: spread over all rows, inverted, of each label; columns that hold values
    labels           classes as binary problems: one against the rest, groups of pairs
"""

from .abstract_matrix import DesignMatrix, LocalMatrix, RowAccess, RowArrays
from .dense import has_finite_values
from .design_matrix import IdentityMatrix, make_design_matrix, split_constant, with_constant
from .memory_map import has_finite_rows, mapped_pages, take_rows
from .remote.client import LostPartitionError
from .remote.lazy_rows import compute_rows, compute_values, iterate_blocks, map_rows
from .remote.partitioned_matrix import open_design_matrix
from .remote.partitions import is_dask_collection
from .repeated import RepeatedMatrix, repeat_rows

__all__ = [
    "DesignMatrix",
    "IdentityMatrix",
    "LocalMatrix",
    "LostPartitionError",
    "RepeatedMatrix",
    "RowAccess",
    "RowArrays",
    "compute_rows",
    "compute_values",
    "has_finite_rows",
    "has_finite_values",
    "is_dask_collection",
    "iterate_blocks",
    "make_design_matrix",
    "map_rows",
    "mapped_pages",
    "open_design_matrix",
    "repeat_rows",
    "split_constant",
    "take_rows",
    "with_constant",
]
