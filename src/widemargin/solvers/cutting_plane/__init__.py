"""Linear machines: minimise 1/2 ||w||^2 + C R(w), with the risk R replaced by the maximum of its cutting planes.

::

    machine              the state of one machine and the steps of Algorithm 1 on it; their loop is `algorithms.ocas`
    master_problem       the planes, and the quadratic program on them
    losses               the interface of a loss, and the hinge without intercept
    optimal_intercept    the hinge at its optimal intercept
    two_hinges           epsilon-insensitive, absolute and quantile losses as hinges
    smooth_losses        squared and logistic ones, with and without intercept
    pair_hinge           the pairwise hinge of rankings
    line_search          steps, intercepts, and both at once
    given_risk           a function of w, of which value and subgradient are known
    crammer_singer       the multiclass hinge

    accelerations        which of the following a fit uses, with the thresholds
    gram_dual            few samples: the dual on their inner products, without rounds
    interior_point       few samples or features: one late round ends the fit, whatever the scales
    ridge_system         the linear systems of its steps, and of Newton's
    sample_start         first planes at the machines of a sixteenth of the samples
    active_rows          rounds on the samples near the margin
    smoothed_newton      Newton's method on smoothed hinges
    newton_steps         search points of smooth losses, by the Hessian or conjugate gradients
    dual_epochs          epochs of dual coordinate ascent at the beginning of a round
    alternation          which rounds begin with them
    dual_alone           wide samples: epochs and conjugate gradients on the dual, without planes
    multiclass_dual      the same for the multiclass hinge: epochs
"""
