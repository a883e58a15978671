"""Plots of fitted estimators: only this package imports matplotlib, and only when something is drawn."""

from .c_path import CPathDisplay
from .grid_scores import GridScoresDisplay
from .histories import ConvergenceDisplay, SupportVectorDisplay
from .relevance import RelevanceDisplay

__all__ = [
    "CPathDisplay",
    "ConvergenceDisplay",
    "GridScoresDisplay",
    "RelevanceDisplay",
    "SupportVectorDisplay",
]
