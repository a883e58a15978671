"""Plots of fitted estimators: only this package imports matplotlib, and only when something is drawn."""

from .c_path import CPathDisplay
from .clusters import ClusterDisplay
from .grid_scores import GridScoresDisplay
from .histories import ConvergenceDisplay, SupportVectorDisplay
from .prediction_cost import PredictionCostDisplay
from .relevance import RelevanceDisplay

__all__ = [
    "CPathDisplay",
    "ClusterDisplay",
    "ConvergenceDisplay",
    "GridScoresDisplay",
    "PredictionCostDisplay",
    "RelevanceDisplay",
    "SupportVectorDisplay",
]
