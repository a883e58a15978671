"""The only room that imports numba: compiled kernels, arrays in and arrays out."""

from ._compile import compile_kernels

__all__ = ["compile_kernels"]
