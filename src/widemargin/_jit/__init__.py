"""The only room that imports numba: compiled kernels, arrays in and arrays out."""

from ._compile import compile_kernels
from ._policy import IS_COMPILED

__all__ = ["IS_COMPILED", "compile_kernels"]
