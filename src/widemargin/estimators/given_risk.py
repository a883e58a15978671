"""`cutting_plane`: the minimum of a regularised risk that is given as a function, with a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._config import resolve_memory_budget
from .._memory import MemoryPlan
from .._progress import Progress
from .._types import Matrix, Vector
from ..algorithms.ocas import OCASSettings, train_risk
from ._estimator import describe_gap, relative_gap, warn_unconverged
from ._validation import check_integer, check_number, check_verbose


@dataclass(frozen=True)
class RegularisedMinimum:
    r"""What `cutting_plane` found.

    Attributes
    ----------
    w : ndarray of shape (n_features,), float64
    objective_ : float
        :math:`\tfrac12 \|w\|^2 + C R(w)`, R the risk.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the minimum.
    relative_gap_ : float
        ``dual_gap_ / |objective_|``.
    converged_ : bool
        Whether it is at most `tol`.
    n_iter_ : int
        Rounds.
    history_ : dict of ndarrays
        As in `OCASClassifier`.
    """

    w: Vector
    objective_: float
    dual_gap_: float
    relative_gap_: float
    converged_: bool
    n_iter_: int
    history_: dict[str, Vector]


def cutting_plane(
    risk: Any,
    n_features: int,
    *,
    C: float = 1.0,
    tol: float = 1e-3,
    max_iter: int = 1000,
    max_time: float | None = None,
    memory_budget: int | str | None = None,
    start: ArrayLike | None = None,
    callback: Callable[[dict[str, float]], bool] | None = None,
    verbose: int = 0,
) -> RegularisedMinimum:
    r"""Minimise :math:`\tfrac12 \|w\|^2 + C R(w)` for any convex risk R, as of structured outputs, with a certificate.

    Parameters
    ----------
    risk : object
        Its ``value_and_subgradient(w)`` takes an ndarray (n_features,) and returns the risk, a float, and a subgradient
        (n_features,): a vector a with ``risk(v) >= risk(w) + <a, v - w>`` for every v.
    n_features : int
        Length of w.
    C : float, default=1.0
        Weight of the risk, > 0.
    tol : float, default=1e-3
        Largest gap at the end, relative to the objective.
    max_iter : int, default=1000
        Most rounds, of one to four evaluations of the risk each.
    max_time : float or None, default=None
        Seconds after which the best point so far is returned.
    memory_budget : int, str or None, default=None
        Bytes for the planes, of 16 x n_features bytes each.
    start : array-like of shape (n_features,), default=None
        A point to begin with, beside zero.
    callback : callable, default=None
        Called after each round with a dict of ``round``, ``objective``, ``violation`` (the relative gap) and
        ``elapsed``; True ends the rounds.
    verbose : int, default=0
        1 draws a progress bar when it takes longer than a second.

    Returns
    -------
    RegularisedMinimum
        With the attributes ``w``, ``objective_``, ``dual_gap_``, ``relative_gap_``, ``converged_``, ``n_iter_`` and
        ``history_``.

    Raises
    ------
    ValueError
        If a plane lies above the risk at a point where it is known: ``value_and_subgradient`` returns no subgradients,
        or the risk is not convex. Also where it returns what is not finite, or of another shape.

    Warns
    -----
    ConvergenceWarning
        When `max_time`, `max_iter`, Ctrl-C, the callback or the precision of float64 ended it: with the gap.

    Notes
    -----
    The rounds are Algorithm 1 of `OCASClassifier`, without accelerations. The line search from the best point to the
    master solution evaluates that one and at most three before it, and every evaluation is a plane. The risk may be
    negative. Let risks be sums, as C multiplies: with means, C is larger by the number of samples.

    References
    ----------
    C. H. Teo, S. V. N. Vishwanathan, A. Smola, Q. V. Le, "Bundle Methods for Regularized Risk Minimization", JMLR 11,
    2010.
    V. Franc, S. Sonnenburg, "Optimized Cutting Plane Algorithm for Support Vector Machines", ICML 2008,
    https://doi.org/10.1145/1390156.1390197.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import cutting_plane
    >>> class LargestResidual:
    ...     def __init__(self, X, y):
    ...         self.X, self.y = X, y
    ...
    ...     def value_and_subgradient(self, w):
    ...         residuals = self.X @ w - self.y
    ...         worst = np.abs(residuals).argmax()
    ...         return abs(residuals[worst]), np.sign(residuals[worst]) * self.X[worst]
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> minimum = cutting_plane(LargestResidual(X, X @ [1.0, -1.0]), 2, C=1e4)
    >>> minimum.converged_, minimum.w.round(2)
    (True, array([ 1., -1.]))
    """
    _check_parameters(risk, n_features, C, tol, max_iter, max_time, verbose)
    memory = MemoryPlan(resolve_memory_budget(memory_budget))
    settings = OCASSettings(C=float(C), tol=tol, max_iter=max_iter, memory=memory, keep_points=False)
    points = None if start is None else _start_point(start, n_features)
    with Progress(max_time=max_time, verbose=verbose, title="cutting_plane", callback=callback) as progress:
        (result,), history = train_risk(risk, n_features, settings, progress, points)
    certificate = result.objective, result.gap, relative_gap(result.objective, result.gap), result.converged
    minimum = RegularisedMinimum(result.w[0], *certificate, max(1, len(history)), history.as_arrays())
    warn_unconverged(minimum, result.stopped_by, f"{describe_gap(minimum)} where tol={tol:g}", name="cutting_plane")
    return minimum


def _check_parameters(
    risk: Any, n_features: int, C: float, tol: float, max_iter: int, max_time: float | None, verbose: int
) -> None:
    if not callable(getattr(risk, "value_and_subgradient", None)):
        raise ValueError(f"risk must have a method value_and_subgradient(w), got {type(risk).__name__}")
    check_integer("n_features", n_features, 1)
    check_number("C", C, above=0)
    check_number("tol", tol, above=0)
    check_integer("max_iter", max_iter, 1)
    if max_time is not None:
        check_number("max_time", max_time, least=0)
    check_verbose(verbose)


def _start_point(start: ArrayLike, n_features: int) -> Matrix:
    point: Vector = np.asarray(start, np.float64)
    if point.shape != (n_features,) or not np.isfinite(point).all():
        raise ValueError(f"start must be finite, of shape ({n_features},), got shape {point.shape}")
    return point[None]
