"""The linear ranking machine by optimised cutting planes: pairwise hinges within groups."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length

from .._threads import ThreadTeam
from .._types import ROUNDING, Given, Labels
from ..data import DesignMatrix, compute_values
from ..solvers.cutting_plane.pair_hinge import PairHingeLoss, RankedPairs
from ._linear_machine import LinearProblem, SingleFunction, ValidatedRows, check_objective_at_zero
from ._predictor import ValuePredictor
from ._validation import check_weights


class OCASRanker(ValuePredictor, SingleFunction):
    r"""Linear ranking by pairwise hinges within groups (a ranking SVM), with a certificate.

    It minimises, by optimised cutting planes,

    .. math:: \tfrac12 \|w\|^2 + C \sum_{i, j} s_i s_j \max(0, 1 - \langle w, x_i - x_j \rangle)

    over the pairs of samples of the same group with :math:`y_i > y_j`. A plane costs :math:`O(n \log n)`, however many
    pairs there are.

    Parameters
    ----------
    C : float, default=1.0
        Weight of each pair, > 0. There may be :math:`n^2 / 2` of them: start with a small one.
    tol, max_time, n_jobs
        As in `OCASClassifier`.

    Other Parameters
    ----------------
    mu, max_iter, memory_budget, warm_start, verbose
        As in `OCASClassifier`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,), float64
    intercept_ : ndarray of shape (1,), float64
        Zero: it would cancel in every pair.
    objective_, dual_gap_, relative_gap_, converged_, n_iter_, history_
        As in `OCASClassifier`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Warns
    -----
    ConvergenceWarning
        When `max_time`, `max_iter`, Ctrl-C or a callback ended the fit: with the gap. The machine is the best so far.

    Notes
    -----
    None of the accelerations of `OCASClassifier` apply. Line searches are by bracketing, and leave at most 1e-4 of what
    they gain. An integer weight counts a sample so many times.

    References
    ----------
    T. Joachims, "Training Linear SVMs in Linear Time", KDD 2006, https://doi.org/10.1145/1150402.1150429.
    V. Franc, S. Sonnenburg, "Optimized Cutting Plane Algorithm for Support Vector Machines", ICML 2008,
    https://doi.org/10.1145/1390156.1390197.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import OCASRanker
    >>> rng = np.random.default_rng(0)
    >>> X, queries = rng.normal(size=(600, 3)), np.repeat(np.arange(30), 20)
    >>> levels = rng.normal(size=30)  # of the queries
    >>> y = np.digitize(X @ [1.0, -1.0, 0.0] + levels[queries] + 0.5 * rng.normal(size=600), [-1, 0, 1])
    >>> model = OCASRanker(C=0.01).fit(X, y, groups=queries)
    >>> print(f"{model.score(X, y, groups=queries):.2f}")  # share of pairs in the right order
    0.95
    """

    acceleration = "auto"
    fit_intercept = False

    def __init__(
        self,
        C: float = 1.0,
        *,
        tol: float = 1e-3,
        max_time: float | None = None,
        n_jobs: int | None = None,
        mu: float = 0.1,
        max_iter: int = 1000,
        memory_budget: int | str | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.mu = mu
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        """y is needed."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(  # type: ignore[override]  # the groups come third
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix, sparse array, dask array, dask data frame} of shape (n_samples, n_features)
        y : array-like or dask collection of shape (n_samples,)
            Relevance: numbers, of which larger ones rank first. Only their order within a group counts.
        groups : array-like of shape (n_samples,), default=None
            Labels of any kind, the queries: in any order. None is a single group.
        sample_weight : array-like of shape (n_samples,), default=None
            A pair has the product of its samples' weights.
        """
        with self._fitting(X, y, sample_weight) as (data, progress):
            self._train([self], _with_groups(data, groups), progress)
        return self

    def fit_path(
        self,
        X: ArrayLike,
        y: ArrayLike,
        Cs: Sequence[float],
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> list[Self]:
        """As `OCASClassifier.fit_path`: a fitted copy for each C; the groups are as of `fit`."""
        models = self._models_of(Cs)
        with models[0]._fitting(X, y, sample_weight) as (data, progress):
            models[0]._train(models, _with_groups(data, groups), progress)
        return models

    def score(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """The share of pairs within groups that are in the right order; equal values count half.

        Parameters
        ----------
        X, y, groups, sample_weight : as `fit`

        Returns
        -------
        float
            NaN where there is no pair.
        """
        f, targets = (np.asarray(compute_values(values), np.float64) for values in (self.predict(X), y))
        check_consistent_length(f, targets)
        s = check_weights(compute_values(sample_weight), targets)
        pairs = RankedPairs(targets, _number_groups(groups, len(targets)), s)
        if not (total := pairs.total):
            return float("nan")
        least = ROUNDING * (float(np.ptp(f)) or 1.0)
        wrong, with_equal = (float(s @ pairs.violations(f, margin)[0]) for margin in (0.0, least))
        return 1.0 - 0.5 * (wrong + with_equal) / total

    def _make_problem(self, X: DesignMatrix, data: ValidatedRows, C: float, team: ThreadTeam) -> LinearProblem:
        y, s = data.labels, np.ones(len(data.labels)) if data.weights is None else data.weights
        assert data.groups is not None
        pairs = RankedPairs(y, data.groups, s)
        total = pairs.total
        if not total > 0.0:
            n_samples = f"{len(y)} samples" if len(y) > 1 else "1 sample"
            raise ValueError(f"y must differ within a group of samples of positive weight: {n_samples} have no pair")
        check_objective_at_zero(C, total, f"{total:g} pairs")
        return LinearProblem(X, [partial(PairHingeLoss, pairs)], 1)


def _with_groups(data: ValidatedRows, groups: Given) -> ValidatedRows:
    return data._replace(groups=_number_groups(groups, len(data.labels)))


def _number_groups(groups: Given, n: int) -> Labels:
    if groups is None:
        return np.zeros(n, np.intp)
    labels = np.asarray(compute_values(groups))
    if labels.ndim != 1:
        raise ValueError(f"groups must be of shape ({n},), got {labels.shape}")
    if len(labels) != n:
        raise ValueError(f"groups must have a label for each of the {n} samples, got {len(labels)}")
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("groups must not have NaN")
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError as error:  # labels that cannot be compared
        raise ValueError(f"groups must be labels of one kind, numbers or strings: {error}") from error
