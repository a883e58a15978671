"""Keeping the number of support vectors: the table of the merging problem, and the rules that make room."""

from .merge import MAINTENANCE, RULES, Merger, find_partner, find_partners, merge_points
from .table import MergeTable, merge_table, tabulate

__all__ = [
    "MAINTENANCE",
    "RULES",
    "MergeTable",
    "Merger",
    "find_partner",
    "find_partners",
    "merge_points",
    "merge_table",
    "tabulate",
]
