"""Stochastic gradient descent on a budget of support vectors.

::

    budgeted_machine   the state of one machine between steps; the compiled steps with their budget maintenance
    maintenance        kinds and rules of budget maintenance; a single search for a merge partner
    lookup_table       the merging problem of two support vectors; its table, by golden section search
"""

from .lookup_table import MergeTable, merge_table, tabulate
from .maintenance import MAINTENANCE, RULES, Merger, find_partner

__all__ = [
    "MAINTENANCE",
    "RULES",
    "MergeTable",
    "Merger",
    "find_partner",
    "merge_table",
    "tabulate",
]
