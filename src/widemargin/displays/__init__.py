"""Plots of fitted estimators: only this package imports matplotlib, and only when something is drawn."""

from .c_path import CPathDisplay
from .clusters import ClusterDisplay
from .convergence import ConvergenceDisplay
from .grid_scores import GridScoresDisplay
from .prediction_cost import PredictionCostDisplay
from .relevance import RelevanceDisplay
from .support_vectors import SupportVectorDisplay

__all__ = [
    "CPathDisplay",
    "ClusterDisplay",
    "ConvergenceDisplay",
    "GridScoresDisplay",
    "PredictionCostDisplay",
    "RelevanceDisplay",
    "SupportVectorDisplay",
]
