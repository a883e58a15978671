"""Make a fitted kernel machine predict at the cost of a few inner products."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from math import inf
from time import perf_counter

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from .._memory import memory_plan
from .._threads import blas_limit
from .._types import Given, Model, RandomState
from ..data import compute_rows
from ..estimators._wrapped import unwrap
from ..interchange.fitted import adopt
from .search import Compression, CompressionParameters


def compress(
    model: Model,
    X: ArrayLike | None = None,
    *,
    prediction_cost: float | str = "auto",
    max_time: float | None = None,
    memory_budget: int | str | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    n_clusters: int | str = "auto",
    n_landmarks: int | str = "auto",
    n_pseudo_landmarks: int | str = "auto",
    pseudo: str | None = "polynomial",
    linear_term: bool = True,
    n_trees: int = 1,
    verbose: int = 0,
) -> Model:
    r"""Make a fitted kernel machine predict at the cost of a few inner products.

    When to use: a kernel machine is accurate enough, and too slow or too large where it has to predict.

    Parameters
    ----------
    model : estimator
        Fitted: `DCSVMClassifier`, `DCSVMRegressor` or `DCOneClassSVM` (exact or early), `BSGDClassifier`, or of
        scikit-learn `SVC`, `NuSVC`, `SVR`, `NuSVR`, `OneClassSVM` or `KernelRidge`; a pipeline that ends in one; a
        `CalibratedClassifierCV` around one, whose machines are compressed and share `prediction_cost` and `max_time`;
        of a fitted search, such as `GridSearchCV`, its ``best_estimator_``. Kernels rbf, laplacian, poly, sigmoid,
        linear.
    X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features), default=None
        Rows like those to be predicted, such as the training rows, without labels; at most 60,000 of them are used, and
        as many of the model's support vectors that are not among these.
        Without X the result is learnt from the support vectors, which lie near the border alone: give X if you can.
        For a pipeline: rows as its first step takes them. A dask collection is computed into memory, if
        `memory_budget` has room for it.
    prediction_cost : float or "auto", default="auto"
        What a prediction may cost, in inner products of a row, the cost of a linear machine; at least 4. "auto" is a
        twenty-fifth of the model's own cost, at least 40 and at most 600, and less where the result would take more
        than a twentieth of the model's bytes. Where fewer than 99 % of the labels of a classifier or an outlier
        detector agree, "auto" is then doubled, and these bytes with it, as long as that helps and stays below the
        model's own cost. The time of so many linear predictions is an upper bound: checking and reading the rows takes
        most of theirs.
    max_time : float or None, default=None
        Seconds after which the best candidate so far is returned. At most half of them go into the model's own
        predictions: rows for which there is no time are left out.
    memory_budget : int, str or None, default=None
        Bytes, or such as "200MB", beside the model and X; None is `widemargin.get_config`'s. With little memory fewer
        rows are learnt from.
    n_jobs : int or None, default=None
        Threads, here and in the predictions of what is returned. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        None is a fixed seed. The same seed gives the same model, to the last bit, whatever BLAS's number of threads.

    Other Parameters
    ----------------
    n_clusters, n_landmarks, n_pseudo_landmarks : int or "auto", default="auto"
        Leaves of a tree; landmarks in each, and pseudo-landmarks. "auto" is what `prediction_cost` buys.
    pseudo, linear_term, n_trees
        As in `DCPredClassifier`.
    verbose : int, default=0
        1 draws a progress bar.

    Returns
    -------
    estimator
        With the interface of `model`: `predict`, `decision_function`, `classes_`, `score`. Of a pipeline, or a search
        that scaled the columns, a pipeline that ends in the compressed machine; of a `CalibratedClassifierCV` one with
        compressed machines, for `predict_proba`.
        Its ``report_`` prints what was gained and lost; ``as_function()`` is a function of one row without
        scikit-learn's checks. It holds arrays alone, for pickle, skops and `widemargin.to_onnx`.

    Raises
    ------
    ValueError
        Naming the estimator, where it is no kernel machine; its kernel, where that is callable or precomputed or does
        not go with `pseudo`; or a parameter and its value; with the least `memory_budget` where it cannot be kept.
    NotFittedError

    Warns
    -----
    ConvergenceWarning
        When it was stopped, by `max_time` or Ctrl-C, with the share of equal labels of what is returned.
    UserWarning
        When fewer than 97 % of the labels agree with the model's. Of an outlier detector, outliers and inliers count
        alike; also where these cannot be compared, as without X. Of a regressor when less than 97 % of the variance of
        its predictions is kept: their coefficient of determination, given the model's own.

    Notes
    -----
    Candidates are trained on 8,000 rows, and compared by the share of right labels on rows held back: right is the
    model's label, or, for its support vectors, the class that they had in training. Candidates are squares along the
    principal curvatures of an RBF kernel with one decision function; one leaf of rows projected to the principal axes
    that keep 92 % of the variance; trees of 1 to 48 leaves, with landmark kernels of gamma, four times and a quarter of
    it; and the best of these, trained on the model's labels instead of its decision values (then a multiclass result
    has one decision function for each class). An automatic cost is then doubled, as long as that makes labels right
    more often by over a standard error. The two best are trained again on all rows that are not held back, and the
    better one is returned. Nothing more is tried once 99.5 % of the labels agree.

    It takes seconds to a minute or two, for n predictions of the model and :math:`O(n m^2)` operations of n rows. The
    result holds float32 numbers, unless the spread of a feature would be lost in rounding.

    A prediction of an early machine costs its routing and the support vectors of one cluster, and "auto" is a part of
    that. So early machines of millions of rows take about as long as exact ones with as many support vectors as one of
    their clusters has, and the time for one reading of all their support vectors.

    Differences from the paper: (1) the model may be anyone's, and its decision values are fitted in place of labels;
    (2) the linear term, the choice of gamma, the projection and the squares are ours: with few landmarks they matter
    most.

    References
    ----------
    C.-J. Hsieh, S. Si, I. S. Dhillon, "Fast Prediction for Large-Scale Kernel Machines", NIPS 2014.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from widemargin import compress
    >>> from widemargin.datasets import load_patches
    >>> X, y = load_patches(6_000)
    >>> slow = SVC(C=8, gamma=1.0).fit(X[:4_000], y[:4_000])
    >>> fast = compress(slow, X[:4_000], random_state=0)
    >>> fast.report_.agreement > 0.97, fast.report_.cost_before / fast.report_.cost_after > 10
    (True, True)
    >>> abs(fast.score(X[4_000:], y[4_000:]) - slow.score(X[4_000:], y[4_000:])) < 0.02
    True
    """
    parameters = CompressionParameters(
        prediction_cost,
        n_clusters,
        n_landmarks,
        n_pseudo_landmarks,
        pseudo,
        linear_term,
        n_trees,
        max_time,
        memory_budget,
        n_jobs,
        verbose,
        random_state,
    )
    parameters.check()
    X = compute_rows(X, memory_plan(parameters))
    return _compress(model, X, parameters)


def _compress(model: Model, X: Given, parameters: CompressionParameters, *, keeps_values: bool = False) -> Model:
    """`compress`; with `keeps_values` the result must have the model's decision functions, not only its labels."""
    model = adopt(unwrap(model))
    if hasattr(model, "steps"):
        rows = X if X is None or len(model.steps) < 2 else model[:-1].transform(X)
        name, last = model.steps[-1]
        fast = _compress(last, rows, parameters, keeps_values=keeps_values)
        own = [(f"{name}-{step}", part) for step, part in fast.steps] if hasattr(fast, "steps") else [(name, fast)]
        return Pipeline([*model.steps[:-1], *own])  # one pipeline, also around a search that scales the columns
    if hasattr(model, "calibrated_classifiers_"):
        return _compress_calibrated(model, X, parameters)
    with blas_limit(1):  # the result must not depend on BLAS's number of threads
        return Compression(model, X, parameters, keeps_values).run()


def _compress_calibrated(model: Model, X: Given, parameters: CompressionParameters) -> Model:
    """The calibrated classifier with each member's machine compressed; calibration curves stay as they are."""
    members = [copy(member) for member in model.calibrated_classifiers_]
    cost, limit = parameters.prediction_cost, parameters.max_time
    share = replace(parameters, prediction_cost=cost if isinstance(cost, str) else cost / len(members))
    share.check()
    end = perf_counter() + (inf if limit is None else limit)
    for n_before, member in enumerate(members):
        if limit is not None:  # with what the members before have left over
            share = replace(share, max_time=max(0.0, end - perf_counter()) / (len(members) - n_before))
        member.estimator = _compress(member.estimator, X, share, keeps_values=True)
    compressed = copy(model)
    compressed.calibrated_classifiers_ = members
    return compressed
