"""Stochastic gradient descent on a budget of support vectors.

::

    budgeted_machine   the state of one machine between steps; the compiled steps with their budget maintenance
    lookup_table       the merging problem of two support vectors; its table

Kinds of budget maintenance (Wang, Crammer and Vucetic, JMLR 13, 2012):

    merge        replace two support vectors of one sign by one between them (Gaussian kernel): the one of smallest
                 |coefficient| and the partner for which the weight degradation is least; without another of its sign
                 the first one is removed
    removal      drop the support vector of least |coefficient|^2 k(x, x); of equals the oldest
    projection   drop a support vector after its projection onto the span of the others is added to them: the one for
                 which the weight degradation is least

The rules of Glasmachers and Qaadan (2018) that give h and the weight degradation for every partner:

    lookup-wd    the degradation from a look-up table; h, from another table, for the chosen partner alone
    lookup-h     h from a look-up table, the degradation computed from it
    gss          h by golden section search over [1/2, 1] to 0.01, and one step of Newton's method
    gss-precise  the same to 1e-10
    gss-paper    their Algorithm 1 as published: over [0, 1] to 0.01, without Newton's step
"""
