"""Optimisation of given problems: arrays in, a point and its certificate out.

::

    dual             kernel machines: the dual in beta on a box, by working sets of coordinates
    cutting_plane    linear machines: the primal, its risk replaced by cutting planes; and the accelerations of OCAS
    sgd              kernel machines with at most B support vectors: one stochastic gradient step a row
    quantile         weighted quantiles, which are optimal intercepts
    results          what the solvers return
"""
