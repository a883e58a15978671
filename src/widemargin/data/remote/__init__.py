"""Dask collections: all that knows dask. Nothing here imports it before a collection comes.

::

    partitions          is_dask_collection; the partitions of a collection, and their checks
    client              the client of a cluster, and waiting for tasks
    partitioned_matrix  for linear machines: products where the partitions are
    remote_rows         for kernel machines: rows to be clustered, shuffled into blocks and looked up
    worker_blocks       one block of rows on each worker: tasks on it, made again when the worker is lost (this process)
    block_store         the same blocks in the workers' memory (the workers' side; imports distributed)
    lazy_rows           for predictions: a lazy task for each block; blocks in turn, or in memory
"""
