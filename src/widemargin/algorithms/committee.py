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


def fit_sigmoids(decision: Vector, intercepts: Vector, labels: Labels, is_positive: Mask) -> Matrix:
    """a and b (k, 2) of each cluster, fitted to its training rows; of a cluster without rows those of the prior.

    Parameters
    ----------
    decision : ndarray of shape (n,)
        K beta of each row's cluster, without the intercept.
    intercepts : ndarray of shape (k,)
        Of the clusters' machines.
    labels : ndarray of shape (n,), int
        The rows' clusters.
    is_positive : ndarray of shape (n,), bool
    """
    log_prior = log_odds(is_positive)
    sigmoids = np.tile([0.0, -log_prior], (len(intercepts), 1))
    for c, intercept in enumerate(intercepts):
        in_cluster = labels == c
        if in_cluster.any():
            slope = fit_slope(decision[in_cluster], is_positive[in_cluster], log_prior)
            sigmoids[c] = -slope, slope * intercept - log_prior
    return sigmoids


def fit_slope(f: Vector, is_positive: Mask, log_prior: float) -> float:
    """The slope s in [0, 100] of maximum likelihood of 1 / (1 + exp(-s f - log_prior)), for f (n,).

    With Platt's targets instead of 0 and 1, since decision values of training rows are biased.
    """
    n = np.array([np.count_nonzero(~is_positive), np.count_nonzero(is_positive)])
    targets = np.where(is_positive, (n[1] + 1) / (n[1] + 2), 1 / (n[0] + 2))

    def loss(slope: float) -> float:
        odds = slope * f + log_prior
        return float(np.sum(np.logaddexp(0.0, odds) - targets * odds))

    return float(minimize_scalar(loss, bounds=(0.0, 100.0), method="bounded").x)


def log_odds(is_positive: Mask) -> float:
    """Log odds of the positive class among the rows (n,)."""
    positive = np.mean(is_positive)
    return float(np.log(positive / (1 - positive)))
