"""The only room that imports numba: compiled kernels, arrays in and arrays out."""

from ._warmup import warmup

__all__ = ["warmup"]
