"""Stochastic gradient descent on a budget of support vectors.

::

    budgeted_machine   the state of one machine between steps; the compiled steps with their budget maintenance
    maintenance        kinds and rules of budget maintenance
    lookup_table       the merging problem of two support vectors; its table, by golden section search
"""
