"""Linear machines: minimise 1/2 ||w||^2 + C R(w), with the risk R replaced by the maximum of its cutting planes.

::

    solver               the steps of Algorithm 1 for one machine; the loop over them is `algorithms.ocas`
    master_problem       the planes, and the quadratic program on them
    losses               the interface of a loss, and the hinge without intercept
    optimal_intercept    the hinge at its optimal intercept
    crammer_singer       the multiclass hinge

    accelerations        which of the following a fit uses, with the thresholds
    gram_dual  sample_start  active_rows  smoothed_newton  dual_coordinate_ascent
"""
