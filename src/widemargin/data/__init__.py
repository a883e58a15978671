"""Samples X (n, d): a storage class for each kind of data, for linear machines and for kernel machines.

::

    abstract_matrix  DesignMatrix: products with weight vectors, of linear machines; what every storage provides
    design_matrix    make_design_matrix: the storage for X; [X, 1] for a regularised intercept
    dense            arrays in C or Fortran order
    repeated         samples that occur several times, with a constant each
    csr              CSR arrays: storage for both kinds of machines, and the check of their indices
    memory_map       memory maps larger than the memory budget
    dask             dask collections for linear machines: products where the partitions are; waiting for tasks

    samples          Samples: tiles of inner products, of kernel machines; dense, CSR or Gram
    remote_rows      dask collections for kernel machines: rows to be clustered, shuffled into blocks and looked up
    worker_blocks    one block of rows on each worker: tasks on it, made again when the worker is lost (this process)
    block_store      the same blocks in the workers' memory (the workers' side)

    lazy_rows        dask collections for predictions: a lazy task for each block; blocks in turn, or in memory
    rows             row indices: spread over all rows, inverted, of each label
    labels           classes as binary problems: one against the rest, groups of pairs
"""

from .abstract_matrix import DesignMatrix, LocalMatrix, LostBlockError, RowAccess, RowArrays
from .dask import LostPartitionError, open_design_matrix
from .dense import has_finite_values
from .design_matrix import IdentityMatrix, is_dask_collection, make_design_matrix, split_constant, with_constant
from .lazy_rows import compute_rows, iterate_blocks, map_rows
from .memory_map import has_finite_rows, mapped_pages, take_rows
from .repeated import RepeatedMatrix, repeat_rows

__all__ = [
    "DesignMatrix",
    "IdentityMatrix",
    "LocalMatrix",
    "LostBlockError",
    "LostPartitionError",
    "RepeatedMatrix",
    "RowAccess",
    "RowArrays",
    "compute_rows",
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
