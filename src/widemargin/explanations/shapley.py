"""`shapley_values`: exact Shapley values of the columns, of kernels that are products over the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import roots_legendre

from .._memory import MemoryPlan, memory_plan
from .._native import Stopped
from .._native import shapley as native
from .._progress import Progress
from .._threads import BLOCK_ROWS, ThreadTeam, blas_limit, count_blocks, row_blocks
from .._types import AnyArray, Gradients, Matrix, Model, Rows, Vector
from ..data import compute_rows
from ..data.labels import class_pairs
from ..estimators._validation import check_resources, shown
from ..models.linear import LinearModel
from ..nystroem.landmarks import dense_rows
from .machines import Explained, LocalFunctions, Sum, read_explained

PRODUCT_KERNELS = ("rbf", "laplacian", "chi2")  # exp(-gamma g), whose g is a sum over the columns
_PAIRS = 2**21  # pairs of a row and a point in a compiled call: about a second
_LEAST_ROWS, _MOST_ROWS = 16, 65_536  # of a block of X
_BACKGROUND_ROWS = 256  # of a compiled call
_TASKS, _LEAST_POINTS = 64, 64  # of a compiled call, for the threads to share; points of one of these
_LOG_ERROR = -39.0  # of a quadrature, for products of at most 1: below the rounding of their sums


class ShapleyValues(NamedTuple):
    """Shapley values of n rows, p players and q functions; ``shap.Explanation(**values._asdict())`` is shap's object.

    Attributes
    ----------
    values : ndarray of shape (n, p), or (n, p, q) for several functions, float64
    base_values : ndarray of shape (n,), or (n, q), float64
        The value without any column. With the values of the columns it sums to the decision value of the row.
    data : ndarray of shape (n, p)
        The rows; NaN for a group of columns.
    feature_names : list of str or None
    output_names : list of str or None
        The classes, or the pairs of classes, of several functions.
    """

    values: NDArray[np.float64]
    base_values: NDArray[np.float64]
    data: AnyArray
    feature_names: list[str] | None
    output_names: list[str] | None


def shapley_values(
    model: Model,
    X: ArrayLike,
    background: ArrayLike | None = None,
    *,
    groups: Mapping[str, Sequence[int | str]] | None = None,
    n_jobs: int | None = None,
    memory_budget: int | str | None = None,
    verbose: int = 0,
) -> ShapleyValues:
    r"""Exact Shapley values of the columns: a share of each row's decision value for each column.

    When to use: a prediction must be explained column by column, with shares that sum to it.

    Parameters
    ----------
    model : estimator
        Fitted: `DCSVMClassifier`, `DCSVMRegressor` or `DCOneClassSVM` (exact or early), `BSGDClassifier`, linear
        machines, what `read_machine` returns, `DCPredClassifier`, `DCPredRegressor` and compressed models whose rows
        are not projected; of scikit-learn `SVC`, `NuSVC`, `SVR`, `NuSVR`, `OneClassSVM`. Also such a model behind
        scalers in a pipeline, and a fitted search. Kernels rbf, laplacian, chi2 and linear.
    X : {array-like, sparse matrix, sparse array} of shape (n_samples, n_features)
    background : {array-like, sparse matrix, sparse array} of shape (n_background, n_features), default=None
        Rows that stand in for absent columns: the *interventional* game, whose value of some columns is the mean
        decision value of the background's rows with these columns replaced by those of the row. Some 50 rows do. None
        is the *product* game: an absent column is left out of the kernel's product, as if it were equal in all points;
        of a linear machine its term is 0.
    groups : dict of str to list, default=None
        Columns, by number or name, that count as one: the one-hot columns of a category, say. Other columns count
        alone.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.
    memory_budget : int, str or None, default=None
        Bytes, or such as "200MB", beside X and the result; None is `widemargin.get_config`'s.
    verbose : int, default=0
        1 draws a progress bar.

    Returns
    -------
    ShapleyValues
        ``values`` of shape (n_samples, n_features), float64, and more. Of several functions (n_samples, n_features,
        n_functions): for each class the sum of its pairs' decision values for it, which orders classes of equal votes,
        or for each pair with ``decision_function_shape="ovo"``; for each class against the rest, or target.

    Raises
    ------
    ValueError
        Naming the model, its step or its kernel, where these have no closed form, or a parameter and its value.
    NotFittedError

    Notes
    -----
    With a kernel :math:`k(x, s) = \prod_j \kappa_j` the value of a player is

    .. math:: \sum_s a_s \, (\kappa_j(x) - \kappa_j(z)) \int_0^1 \prod_{i \ne j} \bigl(\kappa_i(z) + t\,(\kappa_i(x) -
        \kappa_i(z))\bigr) \, dt,

    the mean over the background's rows z, or with :math:`\kappa(z) = 1` without these. The integrand is a polynomial
    between 0 and 1, which Gauss's quadrature integrates to rounding, without the differences of large numbers of
    elementary symmetric polynomials. A row costs :math:`O(d \sqrt d)` operations for each point and row of the
    background, fewer where columns of both are equal. Sums are in float64: values and base sum to the decision value
    that float64 gives, where `decision_function` has the rounding of the data's dtype.

    Of an early machine the machine of the row's cluster is explained, or the mean of two where these are averaged; its
    base value is another one in each cluster. The choice of the cluster counts as constant.

    References
    ----------
    M. Mohammadi, S. Chau, K. Muandet, "Computing Exact Shapley Values in Polynomial Time for Product-Kernel Methods",
    arXiv 2505.16516, 2025.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from widemargin import DCSVMClassifier, shapley_values
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> X = (X - X.mean()) / X.std()
    >>> model = DCSVMClassifier().fit(X, y == 0)
    >>> found = shapley_values(model, X[:1], background=X)
    >>> found.values.shape, found.feature_names[found.values[0].argmax()]
    ((1, 13), 'proline')
    >>> bool(abs(found.base_values + found.values.sum() - model.decision_function(X[:1]))[0] < 1e-5)
    True
    """
    given = SimpleNamespace(max_time=None, n_jobs=n_jobs, memory_budget=memory_budget, verbose=verbose)
    check_resources(given)
    explained, memory = read_explained(model), memory_plan(given)
    kernel, X = _product_kernel(explained), compute_rows(X, memory)
    rows, signs = explained.rows_of(X), explained.signs
    outputs: Any = getattr(explained.machine, "classes_", None)
    try:
        others = rows[:0] if background is None else explained.rows_of(compute_rows(background, memory))
    except ValueError as error:
        raise ValueError(f"background: {error}") from error
    if signs is not None and explained.machine.decision_function_shape == "ovo":
        outputs = [f"{outputs[i]} against {outputs[j]}" for i, j in zip(*class_pairs(len(signs)), strict=True)]
        signs = None
    q, columns = explained.n_functions if signs is None else len(signs), getattr(model, "feature_names_in_", None)
    players, names = _find_players(groups, rows.shape[1], columns)
    game = _Game(kernel, players, len(names), others, memory)
    totals = np.zeros((rows.shape[0], q, len(names) + 1))  # the last column: the value without any
    with Progress(verbose=verbose, title="shapley_values") as progress, blas_limit(1), ThreadTeam(n_jobs) as team:
        progress.stage("shapley_values", total=len(totals))
        try:
            with progress.interrupting(team.native):
                for block in row_blocks(len(totals), game.block_rows(q)):
                    some = rows[block]
                    for local in explained.local_functions(some, team):
                        game.add_values(some, local.combined(signs), totals[block], team, progress)
        except Stopped:
            raise KeyboardInterrupt("shapley_values was stopped") from None
    values, firsts = totals[:, 0] if q == 1 else totals.transpose(0, 2, 1), np.unique(players, return_index=True)[1]
    table: Any = sp.csc_array(X) if sp.issparse(X) else np.asarray(X)
    data = np.where(np.bincount(players) > 1, np.nan, dense_rows(table[:, firsts]))
    named = names if groups or columns is not None else None
    return ShapleyValues(
        values[:, :-1],
        values[:, -1],
        data,
        named,
        None if q == 1 or outputs is None else [str(name) for name in outputs],
    )


class _Game(NamedTuple):
    """What is the same for all rows: the kernel, the players (d,) of the columns, and the background (b, d), b >= 0."""

    kernel: tuple[str, float]
    players: NDArray[np.int64]
    n_players: int
    background: Rows
    memory: MemoryPlan

    def block_rows(self, q: int) -> int:
        """Rows of a block whose copies and values take their share of the memory budget."""
        row_bytes = 8 * (4 * len(self.players) + 2 * q * (self.n_players + 1))
        return int(np.clip(self.memory["copied rows"] // row_bytes, _LEAST_ROWS, _MOST_ROWS))

    def add_values(self, X: Rows, local: LocalFunctions, out: Gradients, team: ThreadTeam, progress: Progress) -> None:
        """Add the values (n, q, p + 1) of one machine's share in some of the rows X."""
        n_pairs = self.n_backgrounds * sum(part.points.shape[0] for part in local.sums)
        for some in row_blocks(len(local.rows), int(np.clip(_PAIRS // max(1, n_pairs), _LEAST_ROWS, BLOCK_ROWS))):
            rows = local.rows[some]
            x, values = dense_rows(X[rows]).astype(np.float64), np.zeros((len(rows), *out.shape[1:]))
            values[..., -1] = local.intercept
            if local.slopes is not None:
                self._add_linear(x, local.slopes, values)
            for part in local.sums:
                self._add_products(x, part, values, team)
            out[rows] += local.share * values
            progress.advance(local.share * len(rows))
            progress.go_on()

    @property
    def n_backgrounds(self) -> int:
        """Rows that absent columns are taken from; without a background one, of factors 1."""
        return max(1, int(self.background.shape[0]))

    def _add_linear(self, x: Matrix, slopes: Matrix, values: Gradients) -> None:
        """Values of slopes x, in closed form."""
        means = np.asarray(self.background.sum(0, np.float64)).ravel() / self.n_backgrounds
        terms = slopes * (x - means)[:, None]
        np.add.at(values.transpose(2, 0, 1), self.players, terms.transpose(2, 0, 1))
        values[..., -1] += (slopes * means).sum(axis=1)

    def _add_products(self, x: Matrix, part: Sum, values: Gradients, team: ThreadTeam) -> None:
        """Values of a sum of kernel values, or of products of two: then with the columns of both points."""
        n, copies = len(values), part.points.shape[1] // x.shape[1]
        x, players = np.tile(x, copies), np.tile(self.players, copies)
        used = np.flatnonzero(part.coef.any(axis=0))
        coef = part.coef[:, used].T.astype(np.float64, order="C") / self.n_backgrounds
        size = max(1, self.memory["gradients"] // (32 * (x.shape[1] + self.n_players)))  # float64: a quarter
        n_others = int(np.clip(size // _TASKS, 1, _BACKGROUND_ROWS))  # whose factors each thread holds
        most = self.memory["copied rows"] // values.nbytes
        n_parts = max(1, min(_TASKS // count_blocks(n, _LEAST_ROWS), len(used) // _LEAST_POINTS, most))
        sums, rules = np.zeros((n_parts, n, values[0].size)), _quadratures(self.n_players)
        for chosen in row_blocks(len(used), size):
            points = dense_rows(part.points[used[chosen]]).astype(np.float64)
            for others in row_blocks(self.n_backgrounds, n_others):
                rows = np.tile(dense_rows(self.background[others]).astype(np.float64), copies)
                native.add_shapley_values(
                    team.native, *self.kernel, x, points, coef[chosen], players, self.n_players, rows, *rules, sums
                )
        values += sums.sum(axis=0).reshape(values.shape)


def _product_kernel(explained: Explained) -> tuple[str, float]:
    """The name and gamma of the machine's kernel; ValueError if its values are no sums of products over columns."""
    functions = explained.functions
    if isinstance(functions, LinearModel):
        return "linear", 1.0
    kernel, trees = explained.machine._own_kernel["kernel"], getattr(functions, "trees", [])
    if kernel not in PRODUCT_KERNELS and (kernel != "linear" or any(tree.products.size for tree in trees)):
        raise ValueError(
            f"model has kernel={kernel!r}: shapley_values takes {', '.join(PRODUCT_KERNELS)}, products over columns, "
            "and machines with a linear kernel. model.decision_gradient(X) takes poly and sigmoid too"
        )
    if trees and (functions.projection is not None or trees[0].features.pseudo_distances.shape[2]):
        raise ValueError(
            "model mixes the columns, by a projection of rows or by distances of the triangle rule. Explain a model "
            "without these, such as the one that was compressed"
        )
    return str(kernel), float(explained.machine._gamma)


def _find_players(groups: Any, d: int, names: Any) -> tuple[NDArray[np.int64], list[str]]:
    """The player (d,) of each column, in the order of their first columns, and the players' names."""
    if groups is not None and not isinstance(groups, Mapping):
        raise ValueError(f"groups must be a dict of names and lists of columns, got {shown(groups)}")
    own = [f"Feature {k}" for k in range(d)] if names is None else [str(name) for name in names]
    keys: list[Any] = list(range(d))  # of a column alone its number, of a group its number and name
    for number, (name, columns) in enumerate((groups or {}).items()):
        for column in [columns] if isinstance(columns, str) else columns:
            k: Any = own.index(column) if column in own else column
            is_number = isinstance(k, int | np.integer) and not isinstance(k, bool)
            if not is_number or not 0 <= k < d or isinstance(keys[k], tuple):
                raise ValueError(
                    f"groups must have each column once at most, by its name or a number below {d}, got "
                    f"{shown(column)} in {shown(name)}"
                )
            keys[k] = number, str(name)
    numbers = {key: g for g, key in enumerate(dict.fromkeys(keys))}
    names = [key[1] if isinstance(key, tuple) else own[key] for key in numbers]
    return np.array([numbers[key] for key in keys], np.int64), names


@cache
def _quadratures(n_factors: int) -> tuple[Vector, Vector, Vector]:
    """Nodes, weights and limits of the rules of `Quadratures` in compiled code, for products of so many factors.

    Differences of factors in [0, 1] with absolute values of the sum S keep a product below exp(S sinh(u / 2)^2) on the
    ellipse of radius exp(u) around [0, 1], so that n nodes are off by about exp(S sinh(u / 2)^2 - 2 n u). The best u
    has S sinh(u) = 4 n, and then this is exp(2 n (tanh(u / 2) - u)).
    """
    rules, limits = list[Any](), list[float]()
    while not limits or (2 * native.NODES * len(limits) < n_factors and limits[-1] < n_factors):
        n, u = native.NODES * (len(limits) + 1), 1.0
        nodes, weights = roots_legendre(n)
        rules.append([(nodes + 1.0) / 2.0, weights / 2.0])
        for _ in range(60):  # halves the error at least
            u = np.tanh(u / 2.0) - _LOG_ERROR / (2.0 * n)
        limits.append(4.0 * n / np.sinh(u))
    nodes, weights = (np.concatenate(part) for part in zip(*rules, strict=True))
    return nodes, weights, np.array(limits)
