"""Plots of fitted estimators: the one room that knows matplotlib, and loads it only when something is drawn."""

from .convergence import ConvergenceDisplay

__all__ = ["ConvergenceDisplay"]
