"""Keeping the number of support vectors: the table of the merging problem, and the rules that make room."""

from .lookup_table import MergeTable, merge_table, tabulate
from .merging import MAINTENANCE, RULES, Merger, find_partner, find_partners, merge_points

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
