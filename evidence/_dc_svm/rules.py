"""Other rules of early prediction than the library's, for comparison: Table 1 of the paper.

early    the model of the row's own cluster alone: the paper's early prediction
naive    the sum over all clusters
bcm      a Bayesian committee: the product of the clusters' probabilities
platt    the paper's: with Platt's sigmoid of each cluster's decision values

Given the decision value f of cluster c's model, intercept included, the committee's probability of the positive class
is 1 / (1 + exp(a_c f + b_c)). Platt's sigmoid says much where a model knows nothing: far from a cluster's rows, where
the decision value of its RBF model is its intercept. In "bcm" this value gets the prior probability, which leaves the
committee's odds unchanged, and only a slope is fitted.

Sources: Hsieh, Si, Dhillon, ICML 2014, section 4; Tresp, A Bayesian Committee Machine, Neural Computation 12, 2000;
Platt, Probabilistic Outputs for Support Vector Machines, 1999.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.calibration import _sigmoid_calibration

from evidence import _published as as_published
from widemargin import DCSVMClassifier
from widemargin._threads import ONE_THREAD
from widemargin.models.clustered import ClusteredExpansion
from widemargin.models.expansion import KernelExpansion

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


def with_rule(rule: str, *, published: bool = False) -> type[DCSVMClassifier]:
    """The early model by a rule of `RULES`; with levels as published."""

    class Ruled(DCSVMClassifier):
        def fit(self, X: Any, y: Any, sample_weight: None = None) -> Ruled:
            with as_published.dc_svm() if published else nullcontext():
                super().fit(X, y)
            self._model = combined(self, rule, X, y)
            return self

    return Ruled


def combined(early: DCSVMClassifier, rule: str, X: Any, y: Any) -> Any:
    """What decides in the place of an early model's clusters, given its training rows."""
    model = early._model
    return RULES[rule](model, X, np.searchsorted(early.classes_, y)) if hasattr(model, "router") else model


def _own_cluster(model: ClusteredExpansion, X: Any, y: NDArray[np.intp]) -> ClusteredExpansion:
    return replace(model, averages=False)


def _naive(model: ClusteredExpansion, X: Any, y: NDArray[np.intp]) -> KernelExpansion:
    return KernelExpansion(model.kernel, model.points, model.coef, model.intercept.mean(axis=1))


@dataclass
class CommitteeExpansion(ClusteredExpansion):
    """p(y|x) ~ prod_c p_c(y|x) / p(y)^(k-1), as log odds (Tresp 2000).

    Attributes
    ----------
    sigmoids : ndarray of shape (n_functions, k, 2)
        a and b of each cluster.
    log_prior : ndarray of shape (n_functions,)
        Log odds of the positive class.
    """

    sigmoids: Any
    log_prior: Any

    def decision_values(self, X: Any, **how: Any) -> Any:
        """The committee's log odds (n, n_functions) of each row of X (n, d)."""
        odds = np.zeros((X.shape[0], len(self.log_prior)))
        for c, model in enumerate(self.machines):
            odds -= self.sigmoids[:, c, 0] * model.decision_values(X, **how) + self.sigmoids[:, c, 1]
        return odds - (self.intercept.shape[1] - 1) * self.log_prior


def make_committee(
    model: ClusteredExpansion, X: Any, y: NDArray[np.intp], *, by_platt: bool = False
) -> CommitteeExpansion:
    """The committee of an early model's clusters, given its training rows X (n, d) and class numbers y (n,)."""
    n_classes = int(y.max()) + 1
    labels, k = model.router.route(X, ONE_THREAD), model.intercept.shape[1]
    pairs = [(1, 0)] if n_classes == 2 else list(combinations(range(n_classes), 2))
    sigmoids, log_prior = np.zeros((len(pairs), k, 2)), np.zeros(len(pairs))
    for p, (positive, negative) in enumerate(pairs):
        of_pair = (y == positive) | (y == negative)
        log_prior[p] = log_odds(y[of_pair] == positive)
        for c, machine in enumerate(model.machines):
            rows = np.flatnonzero(of_pair & (labels == c))
            intercept, slope = model.intercept[p, c], 0.0
            if by_platt and len(rows):
                decision = machine.decision_values(X[rows])[:, p]
                sigmoids[p, c] = _sigmoid_calibration(decision, y[rows] == positive)
                continue
            if len(rows):
                decision = machine.decision_values(X[rows])[:, p] - intercept
                slope = fit_slope(decision, y[rows] == positive, log_prior[p])
            sigmoids[p, c] = -slope, slope * intercept - log_prior[p]
    arrays = {field.name: getattr(model, field.name) for field in fields(model)}
    return CommitteeExpansion(**arrays, sigmoids=sigmoids, log_prior=log_prior)


def fit_slope(decision: Vector, is_positive: Mask, log_prior: float) -> float:
    """The slope s in [0, 100] of maximum likelihood of 1 / (1 + exp(-s d - log_prior)).

    The decision values d (n,) are without the intercept: d = 0 gets the prior probability. Platt's targets replace 0
    and 1, since decision values of training rows are biased.
    """
    negative, positive = np.bincount(is_positive, minlength=2)
    targets = np.where(is_positive, 1 - 1 / (positive + 2), 1 / (negative + 2))

    def loss(slope: float) -> float:
        odds = slope * decision + log_prior
        return float((np.logaddexp(0.0, odds) - targets * odds).sum())

    return float(minimize_scalar(loss, bounds=(0.0, 100.0), method="bounded").x)


def log_odds(is_positive: Mask) -> float:
    """Log odds of the positive class among rows (n,)."""
    negative, positive = np.bincount(is_positive, minlength=2)
    return float(np.log(positive) - np.log(negative))


RULES: dict[str, Callable[..., Any]] = {
    "early": _own_cluster,
    "soft": lambda model, X, y: model,
    "naive": _naive,
    "bcm": make_committee,
    "platt": partial(make_committee, by_platt=True),
}
