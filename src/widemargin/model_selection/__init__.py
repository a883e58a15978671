"""The choice of C by cross-validation: estimators fitted along a path of values that share what they compute."""

from .c_path import C_path, CPath

__all__ = ["CPath", "C_path"]
