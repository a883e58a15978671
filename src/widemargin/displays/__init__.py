"""Plots of fitted estimators: only this package imports matplotlib, and only when something is drawn."""

from .c_path import CPathDisplay
from .convergence import ConvergenceDisplay
from .grid_scores import GridScoresDisplay
from .relevance import RelevanceDisplay

__all__ = [
    "CPathDisplay",
    "ConvergenceDisplay",
    "GridScoresDisplay",
    "RelevanceDisplay",
]
