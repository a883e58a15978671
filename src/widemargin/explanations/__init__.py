"""Why a machine predicts what it does: Shapley values of the columns, and the support vectors that contribute most."""

from .nearest import NearestSupport, nearest_support
from .shapley import ShapleyValues, shapley_values

__all__ = ["NearestSupport", "ShapleyValues", "nearest_support", "shapley_values"]
