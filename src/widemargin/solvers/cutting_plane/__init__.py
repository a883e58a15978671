"""Linear machines: minimise 1/2 ||w||^2 + C R(w), with the risk R replaced by the maximum of its cutting planes.

::

    machine              the state of one machine and the steps of Algorithm 1 on it; their loop is `algorithms.ocas`
    master_problem       the planes, and the quadratic program on them
    losses               the interface of a loss, and the hinge without intercept
    optimal_intercept    the hinge at its optimal intercept; epsilon-insensitive, absolute, quantile losses as hinges
    smooth_losses        squared and logistic ones, with and without intercept
    pair_hinge           the pairwise hinge of rankings
    derivative_zeros     steps, intercepts, and both at once, of losses without a closed form
    given_risk           a function of w, of which value and subgradient are known
    crammer_singer       the multiclass hinge, and epochs on its dual

    accelerations        the table of all others, what they do and where, with the thresholds
"""
