"""Plots of fitted estimators: only this package imports matplotlib, and only when something is drawn."""

from .convergence import ConvergenceDisplay

__all__ = ["ConvergenceDisplay"]
