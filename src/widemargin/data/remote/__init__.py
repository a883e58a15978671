"""Dask collections: all that knows dask. Nothing here imports it before a collection comes.

::

    partitions          is_dask_collection; the partitions of a collection, and their checks
    client              the client of a cluster, and waiting for tasks
    partitioned_matrix  for linear machines: products where the partitions are
    remote_rows         for kernel machines: rows to be clustered, shuffled to the workers and looked up
    lazy_rows           for predictions: a lazy task for each block; blocks in turn, or in memory
"""
