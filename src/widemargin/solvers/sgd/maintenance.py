"""Budget maintenance: its kinds and rules by name.

The maintenance itself is part of the compiled steps (`_native/cpp`) and, for Algorithm 1 as published, of
`budgeted_machine.PaperMachine`. Its kinds, of Wang, Crammer and Vucetic (JMLR 13, 2012):

    merge        replace two support vectors of one sign by one between them (Gaussian kernel): the one of smallest
                 |coefficient| and the partner for which the weight degradation is least
    removal      drop the support vector of least |coefficient|^2 k(x, x); of equals the oldest
    projection   drop a support vector after its projection onto the span of the others is added to them: the one for
                 which the weight degradation is least

Four compiled rules of Glasmachers and Qaadan (2018) give h and the weight degradation for every partner:

    lookup-wd    the degradation from a look-up table; h, from another table, for the chosen partner alone
    lookup-h     h from a look-up table, the degradation computed from it
    gss          h by golden section search over [1/2, 1] to 0.01, and one step of Newton's method
    gss-precise  the same to 1e-10

`PAPER_RULE`, "gss-paper", is their Algorithm 1 as published, in NumPy: the search over [0, 1] to 0.01, without
Newton's step.
"""

from __future__ import annotations

RULES = ("lookup-wd", "lookup-h", "gss", "gss-precise")
PAPER_RULE = "gss-paper"
MAINTENANCE = ("merge", "removal", "projection")
