"""Calibration of the machines of k clusters for a Bayesian committee, `combine="bcm"`: a sigmoid each.

Given the decision value f of cluster c's machine, the probability of the positive class is 1 / (1 + exp(a_c f + b_c)).
Far from a cluster's rows, the decision value of its RBF machine is its intercept. There it has no information:
f = intercept gets the prior probability, which leaves the committee's odds unchanged, and only a slope is fitted.
`models/clustered.py` multiplies the probabilities.

Sources: Tresp, A Bayesian Committee Machine, Neural Computation 12, 2000; Platt, Probabilistic Outputs for Support
Vector Machines, 1999.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from .._types import Labels, Mask, Matrix, Vector

_FLOAT64 = np.finfo(np.float64)


def fit_sigmoids(decision: Vector, intercepts: Vector, labels: Labels, is_positive: Mask, weights: Vector) -> Matrix:
    """a and b (k, 2) of each cluster, fitted to its training rows; of a cluster without weight those of the prior.

    Parameters
    ----------
    decision : ndarray of shape (n,)
        K beta of each row's cluster, without the intercept.
    intercepts : ndarray of shape (k,)
        Of the clusters' machines.
    labels : ndarray of shape (n,), int
        The rows' clusters.
    is_positive : ndarray of shape (n,), bool
    weights : ndarray of shape (n,)
        Class weights included; a weight of 2 is the same as a repeated row.
    """
    log_prior = log_odds(is_positive, weights)
    sigmoids = np.tile([0.0, -log_prior], (len(intercepts), 1))
    for c, intercept in enumerate(intercepts):
        rows = labels == c
        if weights[rows].any():
            slope = fit_slope(decision[rows], is_positive[rows], weights[rows], log_prior)
            sigmoids[c] = -slope, slope * intercept - log_prior
    return sigmoids


def fit_slope(f: Vector, is_positive: Mask, weights: Vector, log_prior: float) -> float:
    """The slope s in [0, 100] of maximum likelihood of 1 / (1 + exp(-s f - log_prior)), for f (n,).

    With Platt's targets instead of 0 and 1, since decision values of training rows are biased.
    """
    n = np.bincount(is_positive, weights, minlength=2)  # weight of the negative and the positive rows
    targets = np.where(is_positive, 1 - 1 / (n[1] + 2), 1 / (n[0] + 2))
    relative = weights / weights.max()

    def loss(slope: float) -> float:
        odds = slope * f + log_prior
        return float(relative @ (np.logaddexp(0.0, odds) - targets * odds))

    return float(minimize_scalar(loss, bounds=(0.0, 100.0), method="bounded").x)


def log_odds(is_positive: Mask, weights: Vector) -> float:
    """Log odds of the positive class among rows (n,) of these weights; finite also for a class without weight."""
    totals = np.bincount(is_positive, weights, minlength=2)
    negative, positive = np.log(np.clip(totals, _FLOAT64.tiny, _FLOAT64.max))
    return float(positive - negative)
