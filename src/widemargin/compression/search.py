"""The search of `compress`: candidates are trained on pilot rows, the best two again on all, and one is chosen.

Three disjoint sets of rows: to train (the pilot rows are some of them), to choose by (validation), to report on (test).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._memory import SHARES, MemoryPlan, memory_plan
from .._native import Stopped
from .._progress import AnyProgress, Progress, SilentProgress
from .._threads import BLOCK_ROWS, WORK_PER_CHECK, cached_property, row_blocks, run_interruptibly
from .._types import Array, Labels, Matrix, Model, RandomState, RowIndices, Rows, Vector
from ..algorithms.dc_pred_leaves import ForestSettings, train_forest
from ..algorithms.ocas import train_hinges
from ..data.labels import one_vs_rest_signs
from ..estimators._cost import (
    DEFAULT_COST,
    allocate_cost,
    allocate_without_tree,
    check_cost,
    forest_bytes,
    least_training_rows,
    max_training_rows,
    routing_cost,
    training_bytes,
)
from ..estimators._dc_pred_machine import tree_arrays
from ..estimators._estimator import warn_user
from ..estimators._predictor import argmax_classes, vote_winners
from ..estimators._validation import check_resources, check_seed, validate_rows
from ..kernels.functions import RBF, Linear, make_kernel
from ..kernels.tiles import entry_work
from ..models.nystroem_tree import NystroemForest
from ..nystroem.features import LandmarkFeatures
from ..nystroem.leaf_problems import DistillationProblem, HingeProblem, LeafProblem, least_squares_work
from ..nystroem.pseudo_landmarks import landmark_features
from ..partition.kmeans import max_sample_values, sample_rows
from .compressed import (
    Compressed,
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    CompressedVotes,
    CompressionReport,
)
from .rows import as_float32, find_rows, sample_of, stored_bytes
from .sources import Source, read_model

_GAMMA_FACTORS = (1.0, 4.0, 0.25)  # gamma of the landmarks' kernel / the model's, to choose from
_LEAVES = 12, 4, 1, 48  # leaves of a tree, to choose from
_MAX_ROWS = 60_000  # learn from so many rows of X, at most, and as many of the model's other points
_HELD_OUT_SHARE, _MAX_HELD_OUT = 0.2, 10_000  # hold out this part of the rows, so many at most: see `_split_rows`
_PILOT_ROWS = 8000  # train candidates on so many rows at first, at most
_WANTED_AGREEMENT = 0.99  # double an automatic cost while the share of equal labels is below
_LEAST_AGREEMENT = 0.97  # warn where the share of equal labels, or of the variance, is below
_ENOUGH_AGREEMENT = 0.995  # try nothing else once the share of equal labels, or of the variance, is this or more
_MIN_ROWS = 50  # hold out none of fewer rows
_MIN_FEATURES = 50  # project no fewer features: they are cheap as they are
_LABELS_C = 10.0  # C of machines that learn labels, which are the model's own and free of noise
_COST_SHARE, _MAX_COST = 0.04, 600.0  # automatic cost / the model's; largest automatic cost
_TRAINING_SHARES = {"decision values": "least squares", "labels": "hinges"}  # of memory, for `training_bytes`
_BYTES_SHARE = 0.047  # `forest_bytes`, which is approximate, / the model's bytes, at most: the whole is below 1 / 20
_KEPT_VARIANCE = 0.92  # share of the variance that a projection keeps, at least
_MAX_RANK_SHARE, _MAX_RANK = 0.4, 256  # features of a projection / all, and features, at most: more need much memory


@dataclass
class CompressionParameters:
    """The parameters of `compress`."""

    prediction_cost: float | str
    n_clusters: int | str
    n_landmarks: int | str
    n_pseudo_landmarks: int | str
    pseudo: str | None
    linear_term: bool
    n_trees: int
    max_time: float | None
    memory_budget: int | str | None
    n_jobs: int | None
    verbose: int
    random_state: RandomState

    def check(self) -> None:
        """Raise a ValueError that names the first invalid one and its value."""
        check_cost(self)
        check_resources(self)
        check_seed(self.random_state)


class _Plan(NamedTuple):
    gamma: float  # of the landmarks' kernel
    n_clusters: int
    learnt: str = "decision values"  # its targets: these, or "labels"
    is_projected: bool = False  # one leaf, of rows projected to their principal axes
    is_quadratic: bool = False  # one leaf, with squares along the principal curvatures as features
    growth: float = 1.0  # factor of the automatic cost and bytes


class _Candidate(NamedTuple):
    """A trained plan, and its quality on the validation rows."""

    model: Compressed | None  # None once a better one is known
    agreement: float  # see `_agreement`
    merit: float  # see `_merit`: the candidate of largest merit is chosen
    plan: _Plan
    n_rows: int = 0  # that it was trained on


class _Split(NamedTuple):
    """Row numbers; the pilot rows are training rows, for the first comparison of plans."""

    train: RowIndices
    pilot: RowIndices
    validation: RowIndices
    test: RowIndices


@dataclass
class Compression:
    """One call of `compress`. `run` sets the attributes from `source` on, step by step."""

    model: Model
    X: Rows
    parameters: CompressionParameters
    keeps_values: bool = False  # whether the result must have decision values like the model's
    notes: list[str] = field(default_factory=list)  # of the report
    n_given: int = 0  # of `rows`, the first ones: those of X, if it is given
    known_classes: Labels = field(default_factory=lambda: np.empty(0, np.intp))  # (n,), in training; -1: unknown
    source: Source = field(init=False)
    seed: int = field(init=False)
    rng: np.random.Generator = field(init=False)
    memory: MemoryPlan = field(init=False)
    may_go_on: Callable[[], bool] = field(init=False)
    rows: Rows = field(init=False)  # (n, d): X and the model's points
    landmark_weights: Vector = field(init=False)  # (n,): squared coefficients of the model's points, 0 of other rows
    values: Matrix = field(init=False)  # (n, q): the model's decision values
    split: _Split = field(init=False)

    def run(self) -> Compressed:
        """Train candidates, choose by the validation rows, and report on the test rows."""
        self.source = read_model(self.model)
        self._check_pseudo()
        seed = 0 if self.parameters.random_state is None else self.parameters.random_state
        self.seed = int(check_random_state(seed).randint(2**31))
        self.rng = np.random.default_rng(self.seed)
        self.memory = memory_plan(self.parameters)
        with Progress(max_time=self.parameters.max_time, verbose=self.parameters.verbose, title="compress") as progress:
            self.may_go_on = SilentProgress(progress).go_on
            self.rows, self.landmark_weights = self._training_rows()
            self._check_memory()
            self._evaluate_model(progress)
            self.split = self._split_rows()
            self.rows = as_float32(self.rows)
            best = self._best(progress)
            report = self._report(best)
        if progress.stopped_by:
            share = f"{report.agreement:.2%} of the labels agree" if report.agreement is not None else "see its report_"
            warn_user(f"compress was stopped by {progress.stopped_by}: the best so far, {share}", ConvergenceWarning)
        elif lost := self._describe_loss(report):
            limit = self.parameters.prediction_cost
            limit = limit if isinstance(limit, str) else f"{limit:,.0f}"
            advice = (
                f"raise prediction_cost (now {limit}; this machine costs {report.cost_after:,.0f}) or give more rows"
            )
            warn_user(f"only {lost}: {advice}", UserWarning)
        elif report.agreement is None and is_outlier_detector(self.model):
            message = "labels were not compared with the model's: give X, with more rows like those to be predicted"
            warn_user(message, UserWarning)
        assert best.model is not None
        best.model.report_ = report
        return best.model

    def _evaluate_model(self, progress: Progress) -> None:
        """Set the model's decision values (n, q); rows that are not evaluated in half of `max_time` are left out."""
        (n, d), source = self.rows.shape, self.source
        size = max(_MIN_ROWS * source.n_clusters, int(WORK_PER_CHECK / entry_work(int(source.n_used), d)))
        order = self.rng.permutation(n)
        progress.stage("the model's own predictions", n)
        resources = {"n_jobs": self.parameters.n_jobs, "memory": self.memory.among(1, "evaluation")}
        share, blocks = progress.part(0.5), list[Matrix]()
        for block in row_blocks(n, size):
            if blocks and not share.go_on():
                break
            blocks.append(source.decision_values(self.rows[order[block]], **resources))
            progress.advance(len(blocks[-1]))
        known = order[: sum(map(len, blocks))]
        kept = np.sort(known)
        self.values = np.concatenate(blocks)[np.argsort(known)]
        if len(kept) < n:
            self.notes.append(f"there was time for the model's own predictions of {len(kept):,} of {n:,} rows")
            self.n_given = int(np.searchsorted(kept, self.n_given))
            self.rows, self.landmark_weights, self.known_classes = (
                self.rows[kept],
                self.landmark_weights[kept],
                self.known_classes[kept],
            )

    def _check_memory(self) -> None:
        n, d = self.rows.shape
        rows = (stored_bytes(self.rows) + 8 * n * self.source.n_outputs) / SHARES["training rows"].part
        n_given = 0 if self.X is None else np.shape(self.X)[0]
        n_most = sum(min(_MAX_ROWS, n_rows) for n_rows in (self.source.points.shape[0], n_given))
        settings = self._settings(_Plan(1.0, self._leaves[0]), n_most, self.source.n_outputs, 0.0)
        training = training_bytes(settings, least_training_rows(settings), d, self.source.n_outputs)
        m, n_landmarks = self.source.points.shape[0], settings.n_landmarks
        what = f"the model's {m} support vectors and {n_landmarks} landmarks in a leaf"
        self.memory.require(max(rows, training / SHARES["least squares"].part), what, allowed=0)

    def _check_pseudo(self) -> None:
        if self.parameters.pseudo == "triangle" and self.source.kernel.argument == "inner_product":
            raise ValueError(
                f"pseudo='triangle' needs a kernel of distances, rbf or laplacian, but the model has "
                f"kernel={self.source.parameters['kernel']!r}; use pseudo='polynomial' or None"
            )

    def _training_rows(self) -> tuple[Rows, Vector]:
        """The rows of X and the model's points that are not among them (n, d), and their landmark weights (n,).

        Of too many points a random sample. Also sets `n_given` and `known_classes`.
        """
        points, landmark_weights = self.source.points, self.source.landmark_weights
        classes = np.full(len(landmark_weights), -1) if self.source.classes is None else self.source.classes
        if self.X is None:
            some = sample_of(np.arange(points.shape[0]), _MAX_ROWS, self.rng)
            self.known_classes = classes[some]
            self.notes.append("no X was given: learnt from the support vectors alone, which lie close to the border")
            self.n_given = len(some)
            return points[some], landmark_weights[some]
        X = self._draw_rows(points)
        if sp.issparse(X) or sp.issparse(points):
            X, points = sp.csr_array(X), sp.csr_array(points)
        place, self.n_given = find_rows(points, X), X.shape[0]
        weights, is_new = np.zeros(X.shape[0]), place < 0
        np.add.at(weights, place[~is_new], landmark_weights[~is_new])
        new = sample_of(np.flatnonzero(is_new), _MAX_ROWS, self.rng)
        self.known_classes = np.concatenate([np.full(X.shape[0], -1), classes[new]])
        self.known_classes[place[~is_new]] = classes[~is_new]
        rows = sp.vstack([X, points[new]], format="csr") if sp.issparse(X) else np.concatenate([X, points[new]])
        return rows, np.concatenate([weights, landmark_weights[new]])

    def _draw_rows(self, points: Rows) -> Rows:
        """The rows of X, validated; of too many a random sample, which fits in memory beside the points."""
        how = {"accept_sparse": "csr", "dtype": points.dtype, "order": "C", "accept_large_sparse": True}
        X = validate_rows(self.model, self.X, reset=False, sums_repeated=True, **how)
        rows_bytes, points_bytes = (stored_bytes(A) + 8 * A.shape[0] * self.source.n_outputs for A in (X, points))
        points_bytes *= min(1.0, _MAX_ROWS / points.shape[0])
        free_bytes = self.memory["training rows"] - points_bytes
        most = max(_MIN_ROWS, min(_MAX_ROWS, int(free_bytes * X.shape[0] / rows_bytes)))
        if X.shape[0] <= most:
            return X
        self.notes.append(f"learnt from {most:,} of {X.shape[0]:,} rows")
        return X[sample_of(np.arange(X.shape[0]), most, self.rng)]

    def _split_rows(self) -> _Split:
        """Hold out a fifth of the given rows for validation and test, half each; of few rows, all are in every set."""
        n = self.n_given
        order = self.rng.permutation(n)
        if n < _MIN_ROWS:
            everything = np.arange(self.rows.shape[0])
            return _Split(everything, everything, everything, everything)
        held_out = order[: min(_MAX_HELD_OUT, int(_HELD_OUT_SHARE * n))]
        train_rows = np.setdiff1d(np.arange(self.rows.shape[0]), held_out)
        pilot = np.sort(self.rng.choice(train_rows, min(_PILOT_ROWS, len(train_rows)), replace=False))
        return _Split(train_rows, pilot, np.sort(held_out[::2]), np.sort(held_out[1::2]))

    def _best(self, progress: Progress) -> _Candidate:
        """The best candidate: the two best plans on the pilot rows, unlike in more than gamma, trained on all rows."""
        pilots = sorted(self._pilots(progress), key=attrgetter("merit"), reverse=True)
        if len(self.split.pilot) == len(self.split.train):
            return pilots[0]
        finalists: dict[_Plan, _Plan] = {}  # by merit; of plans that differ in gamma alone the best one
        for pilot in pilots:
            finalists.setdefault(pilot.plan._replace(gamma=0.0), pilot.plan)
        best = [*finalists.values()][:2]
        progress.stage(f"the best, {len(self.split.train):,} rows", len(best))
        trained = self._train_all(best, self.split.train, progress)
        candidates = [*trained, *pilots] if progress.stopped_by else trained
        return max(candidates, key=attrgetter("merit"))

    def _pilots(self, progress: Progress) -> list[_Candidate]:
        """Candidates trained on the pilot rows: the best one with its model, the others without.

        In this order: squares along curvatures, a projection, trees of several sizes and gammas, the best of these
        with labels as targets, larger machines.
        """
        gamma = float(self.source.parameters["gamma"])
        is_stationary = self.source.kernel.argument != "inner_product"
        factors, given = _GAMMA_FACTORS if is_stationary else (1.0,), self.parameters.n_clusters
        first, *others = self._leaves
        tried: list[_Candidate] = []
        n_most = 2 * len(factors) + len(others) + 2  # labels, and without a tree; a larger cost is not counted
        progress.stage(f"candidates, {len(self.split.pilot):,} rows", n_most)

        def attempt(plans: list[_Plan]) -> _Plan:
            """Train those not tried before; return the best plan tried so far, of those that are not quadratic."""
            new = [plan for plan in plans if plan not in [one.plan for one in tried]]
            tried.extend(self._train_all(new, self.split.pilot, progress, tried))
            if not tried:  # stopped before the first
                return plans[0]
            best = max(tried, key=attrgetter("merit"))
            # of the others only the merit is needed
            tried[:] = [one if one is best else one._replace(model=None) for one in tried]
            return max(tried, key=lambda one: (not one.plan.is_quadratic, one.merit)).plan

        is_expansion = self.parameters.pseudo is None and not self.parameters.linear_term  # landmarks and nothing else
        may_be_flat = given in ("auto", 1) and not is_expansion
        if may_be_flat and not self.keeps_values and self._suits_squares():
            attempt([_Plan(gamma, 1, is_quadratic=True)])
        if may_be_flat:
            attempt([_Plan(gamma * factor, 1, is_projected=True) for factor in factors[:2]])
        best = attempt([_Plan(gamma * factor, first) for factor in factors])
        best = attempt([_Plan(best.gamma, k) for k in others])
        best = attempt([best._replace(gamma=gamma * factor) for factor in factors])  # of other leaves, other gammas
        has_labels = is_classifier(self.model) and getattr(self.model, "decision_function_shape", "ovr") == "ovr"
        if has_labels and not self.keeps_values:
            attempt([best._replace(learnt="labels")])
        if self._is_automatic:
            flat = [_Plan(gamma * factor, 1, is_projected=True) for factor in factors[::2]] if may_be_flat else []
            self._grow(tried, attempt, flat)
        return tried

    def _grow(self, tried: list[_Candidate], attempt: Callable[[list[_Plan]], _Plan], flat: list[_Plan]) -> None:
        """Double an automatic cost, up to the model's, while too few labels agree and a candidate gains by it.

        The plans that grow are the best one so far and `flat`, those of one leaf, which gain most. To gain is to have a
        merit that is larger by more than its standard error.
        """
        growth, n = 2.0, len(self.split.validation)
        while tried and growth * self._automatic_cost < self.cost_before:
            best = max(tried, key=attrgetter("merit"))
            if best.agreement >= _WANTED_AGREEMENT:
                return
            plans = list(flat)
            if best.plan.growth == growth / 2.0:  # else it was grown before, and is no better for it
                plans.insert(0, best.plan)
            attempt(list({plan._replace(growth=growth): None for plan in plans}))
            merits = {one.plan: one.merit for one in tried}
            before = [merits.get(plan._replace(growth=growth / 2), math.nan) for plan in plans]  # NaN: not tried
            after = [merits.get(plan._replace(growth=growth), math.nan) for plan in plans]
            if not any(
                new - old > math.sqrt(abs(new * (1.0 - new)) / n) for old, new in zip(before, after, strict=True)
            ):
                return
            growth *= 2.0

    def _train_all(
        self, plans: list[_Plan], train_rows: RowIndices, progress: Progress, before: Sequence[_Candidate] = ()
    ) -> list[_Candidate]:
        """Train the plans in order, until a candidate, also of those `before`, agrees enough or the time is over.

        The list is empty if the fit is stopped before the first one's projection or curvatures are known.
        """
        trained: list[_Candidate] = []
        for plan in plans:
            known = [*before, *trained]
            if not known or (max(candidate.agreement for candidate in known) < _ENOUGH_AGREEMENT and progress.go_on()):
                with suppress(Stopped):
                    trained.append(self._train(plan, train_rows, progress.part(1.0)))  # its stages are not shown
                progress.advance()
        return trained

    def _train(self, plan: _Plan, train_rows: RowIndices, progress: AnyProgress) -> _Candidate:
        """Train a plan on these rows, or on as many of them as fit in memory."""
        problem = self._problem(plan.learnt, train_rows)
        parameters = {**self.source.parameters, "gamma": plan.gamma}
        if plan.is_quadratic:
            parameters["kernel"] = "linear"
        projection = self._projection if plan.is_projected else None
        settings_budget, budget = (self.memory[_TRAINING_SHARES[what]] for what in ("decision values", plan.learnt))
        settings = self._settings(plan, len(train_rows), problem.n_outputs, settings_budget)
        d = self.rows.shape[1] if projection is None else projection.shape[1]
        most = max_training_rows(settings, d, problem.n_outputs, budget, is_hinge=plan.learnt == "labels")
        if most < len(train_rows):
            train_rows = np.sort(np.random.default_rng(self.seed).choice(train_rows, most, replace=False))
            problem = self._problem(plan.learnt, train_rows)
        kernel: Any = make_kernel(**parameters)
        rows = self.rows[train_rows]
        rows = rows if projection is None else np.ascontiguousarray(rows @ projection)
        features = squares_along(self._directions(settings.n_landmarks)) if plan.is_quadratic else None
        rng = np.random.default_rng(self.seed)
        forest = train_forest(kernel, rows, problem, settings, progress, rng, features).model
        forest.projection = projection
        compressed = self._make_estimator(forest, parameters, plan.learnt, train_rows)
        values = self._decision_values(compressed, self.split.validation)
        agreement = self._agreement(compressed, values, self.split.validation)
        return _Candidate(compressed, agreement, self._merit(compressed, values, agreement), plan, len(train_rows))

    def _settings(self, plan: _Plan, n: int, n_outputs: int, budget: float) -> ForestSettings:
        """Sizes that the prediction cost allows.

        An automatic cost is reduced until the result is a small share of the model's bytes and training on n rows takes
        at most `budget` bytes.
        """
        d, projection = self.rows.shape[1], self._projection if plan.is_projected else None
        rank = None if projection is None else projection.shape[1]
        cost = self._automatic_cost * plan.growth
        most_bytes = min(_BYTES_SHARE * plan.growth, 1.0) * self.source.nbytes
        while True:
            if plan.is_projected or plan.is_quadratic:
                settings = allocate_without_tree(self.parameters, n, d, n_outputs, default=cost, rank=rank)
                if plan.is_quadratic:
                    m = min(settings.n_landmarks, d)
                    settings = settings._replace(n_landmarks=m, n_pseudo_landmarks=m)
            else:
                settings = allocate_cost(
                    replace(self.parameters, n_clusters=plan.n_clusters), n, d, n_outputs, default=cost
                )
            is_small = forest_bytes(settings, d, n_outputs) <= most_bytes
            is_small = is_small and training_bytes(settings, n, d, n_outputs) <= budget
            if is_small or cost <= DEFAULT_COST:
                return settings._replace(memory=self.memory.among(1, "solver"))
            cost *= 0.8

    def _suits_squares(self) -> bool:
        """Whether the model has principal directions, which take less time than its predictions of the pilot rows."""
        n, d = self.source.points.shape
        is_cheap = d * (n + d) <= _PILOT_ROWS * n and 32 * d * (d + BLOCK_ROWS) <= self.memory["curvatures"]
        is_sum = isinstance(self.source.kernel, RBF) and self.source.n_clusters == 1
        return is_sum and self.source.n_outputs == 1 and is_cheap

    def _directions(self, m: int) -> Array:
        """The principal directions (m, d) of curvature of the model's decision function at the mean of the rows."""
        centre, source = np.asarray(self.rows.mean(axis=0), np.float64).ravel(), self.source
        gamma = float(source.parameters["gamma"])
        find = partial(principal_directions, source.points, source.coef[0], gamma, centre, m)
        n, d = source.points.shape
        return run_interruptibly(find, self.may_go_on, least_squares_work(n + d, d)).astype(self.rows.dtype)

    @cached_property
    def _projection(self) -> Any:
        """Principal axes (d, rank) that keep nearly all of the rows' variance; None where they are too many."""
        d = self.rows.shape[1]
        argument = self.source.kernel.argument
        if argument == "l1_distance" or d < _MIN_FEATURES or self.rows.shape[0] < 2:
            return None  # L1 distances change with the axes; a single row has none
        max_values = max_sample_values(self.memory["axes"], self.rows.dtype.itemsize)
        probe = self.rows[sample_rows(self.rows, np.arange(self.rows.shape[0]), 1, self.rng, max_values)]
        most = min(int(_MAX_RANK_SHARE * d), _MAX_RANK, probe.shape[0] - 1)
        if sp.issparse(probe) or argument == "inner_product":
            from sklearn.decomposition import TruncatedSVD

            model: Model = TruncatedSVD(most, random_state=self.seed)
        else:
            from sklearn.decomposition import PCA

            model = PCA(most, svd_solver="randomized", random_state=self.seed)
        fit = np.errstate(divide="ignore", invalid="ignore")(model.fit)  # equal rows have no variance to share
        n_values = probe.nnz if sp.issparse(probe) else probe.size
        run_interruptibly(partial(fit, probe), self.may_go_on, 20 * n_values * most)  # about 20 passes
        kept = np.cumsum(model.explained_variance_ratio_) < _KEPT_VARIANCE
        if kept.all():
            return None
        return np.ascontiguousarray(model.components_[: int(kept.sum()) + 1].T, self.rows.dtype)

    @property
    def cost_before(self) -> float:
        """Prediction cost of the model, in inner products."""
        return float(self.source.n_used * (1 + self.source.n_outputs / self.source.points.shape[1]))

    @property
    def _leaves(self) -> tuple[int, ...]:
        """Leaves of a tree to choose from: the number given, or those whose cost has room for a landmark."""
        given, cost = self.parameters.n_clusters, self.parameters.prediction_cost
        if given != "auto":
            return (int(given),)
        return tuple(k for k in _LEAVES if cost == "auto" or routing_cost(k) + 1 <= float(cost))

    @property
    def _is_automatic(self) -> bool:
        """Whether the prediction cost of a model with labels is automatic, and with it the number of landmarks."""
        has_auto_cost = self.parameters.prediction_cost == "auto" and self.parameters.n_landmarks == "auto"
        return has_auto_cost and (is_classifier(self.model) or is_outlier_detector(self.model))

    @property
    def _automatic_cost(self) -> float:
        return float(np.clip(_COST_SHARE * self.cost_before, DEFAULT_COST, _MAX_COST))

    def _problem(self, learnt: str, train_rows: RowIndices) -> LeafProblem:
        if learnt == "decision values":
            return DistillationProblem(self.values[train_rows].T, self.landmark_weights[train_rows])
        signs = one_vs_rest_signs(self._labels[train_rows], len(self.model.classes_))
        return HingeProblem(signs, np.full(len(train_rows), _LABELS_C), 1e-2, train_hinges)

    @cached_property
    def _labels(self) -> Labels:
        return self._class_numbers(self.values, self.source.is_one_vs_one)

    def _class_numbers(self, values: Matrix, is_one_vs_one: bool) -> Labels:
        if not is_one_vs_one:
            return argmax_classes(values)
        return vote_winners(values, len(self.model.classes_), break_ties=self.model.break_ties)

    def _decision_values(self, compressed: Compressed, rows: RowIndices) -> Matrix:
        return np.asarray(compressed.predictor_.decision_values(self.rows[rows], n_jobs=self.parameters.n_jobs))

    def _make_estimator(
        self, forest: NystroemForest, parameters: dict[str, Any], learnt: str, train_rows: RowIndices
    ) -> Compressed:
        if is_outlier_detector(self.model):
            estimator: Compressed = CompressedOutlierDetector(**parameters, n_jobs=self.parameters.n_jobs)
        elif not is_classifier(self.model):
            estimator = CompressedRegressor(**parameters, n_jobs=self.parameters.n_jobs)
            estimator._keeps_column = self.source.keeps_column
        elif self.source.is_one_vs_one and learnt == "decision values":
            estimator = CompressedVotes(**parameters, n_jobs=self.parameters.n_jobs)
            estimator.decision_function_shape = self.model.decision_function_shape
            estimator.break_ties = self.model.break_ties
        else:
            estimator = CompressedClassifier(**parameters, n_jobs=self.parameters.n_jobs)
        if is_classifier(self.model):
            estimator.classes_ = self.model.classes_
        if hasattr(self.model, "feature_names_in_"):
            estimator.feature_names_in_ = self.model.feature_names_in_
        trees = tree_arrays(forest)
        if learnt == "labels" and self.values.shape[1] == 1:
            trees = self._rescaled(forest, trees, train_rows)
        estimator.load(trees, forest.projection)
        return estimator

    def _rescaled(self, forest: NystroemForest, trees: list[Any], train_rows: RowIndices) -> list[Any]:
        """The trees of a machine that learnt labels, times the positive factor that best fits the decision values."""
        f = self.values[train_rows, 0]
        g = forest.decision_values(self.rows[train_rows], n_jobs=self.parameters.n_jobs)[:, 0]
        scale = max(float(f @ g), 0.0) / max(float(g @ g), 1e-300) or 1.0
        parts = ("coef", "products", "slopes", "intercept")
        return [{**tree, **{name: (tree[name] * scale).astype(tree[name].dtype) for name in parts}} for tree in trees]

    def _agreement(self, compressed: Compressed, values: Matrix, rows: RowIndices) -> float:
        """How near a candidate's decision values (len(rows), q) on these rows are to the model's.

        The share of equal labels; of a regressor, the coefficient of determination; of an outlier detector the lesser
        of this and of `side_agreement`: rows held back may have few outliers.
        """
        if is_classifier(self.model):
            numbers = self._class_numbers(values, isinstance(compressed, CompressedVotes))
            return float(np.mean(numbers == self._labels[rows]))
        shares = determination(values, self.values[rows]), self._side_agreement(values, rows)
        return min(share for share in shares if share is not None)

    def _side_agreement(self, values: Matrix, rows: RowIndices) -> float | None:
        """`side_agreement` of an outlier detector; None of its support vectors alone, on the boundary or outside."""
        is_known = is_outlier_detector(self.model) and self.X is not None
        return side_agreement(values[:, 0], self.values[rows, 0]) if is_known else None

    def _merit(self, compressed: Compressed, values: Matrix, agreement: float) -> float:
        """Share of right labels: right is the class in training, where it is known, else the model's label.

        Of other models than classifiers the coefficient of determination.
        """
        rows = self.split.validation
        if not is_classifier(self.model):
            return determination(values, self.values[rows])
        known = self.known_classes[rows]
        if not np.any(known >= 0):
            return agreement
        right = np.where(known < 0, self._labels[rows], known)
        return float(np.mean(self._class_numbers(values, isinstance(compressed, CompressedVotes)) == right))

    def _describe_loss(self, report: CompressionReport) -> str:
        if report.agreement is not None and report.agreement < _LEAST_AGREEMENT:
            return f"{report.agreement:.1%} of the labels agree with the model's"
        if is_regressor(self.model) and report.determination < _LEAST_AGREEMENT:
            off = f"they are off by {report.error:.3g}, and spread by {report.spread:.3g}"
            return f"{max(0.0, report.determination):.1%} of the variance of the model's predictions is kept ({off})"
        return ""

    def _report(self, best: _Candidate) -> CompressionReport:
        rows = self.split.test
        assert best.model is not None
        values = self._decision_values(best.model, rows)
        given = self.values[rows]
        is_own = best.plan.learnt == "decision values" or not self.source.is_one_vs_one
        if not is_own:
            self.notes.append("its decision values are one for each class, learnt from labels: not the model's own")
        if best.plan.is_quadratic:
            self.notes.append("its kernel is linear: its features are squares along the model's principal curvatures")
        trees = best.model.predictor_.trees
        has_classes = is_classifier(self.model)
        return CompressionReport(
            agreement=self._agreement(best.model, values, rows) if has_classes else self._side_agreement(values, rows),
            error=float(np.sqrt(np.mean(np.square(values - given)))) if is_own else np.nan,
            spread=float(given.std()),
            determination=determination(values, given) if is_own else np.nan,
            cost_before=self.cost_before,
            cost_after=best.model.predictor_.n_operations,
            bytes_before=self.source.nbytes,
            bytes_after=best.model.nbytes,
            n_rows=best.n_rows,
            n_held=0 if len(rows) == self.rows.shape[0] else len(rows),
            n_leaves=sum(tree.tree.n_leaves for tree in trees),
            n_landmarks=max(tree.features.landmarks.shape[1] for tree in trees),
            gamma=best.plan.gamma,
            learnt=best.plan.learnt,
            notes=tuple(self.notes),
        )


def determination(values: Matrix, given: Matrix) -> float:
    """The coefficient of determination of values (n, q), given the model's (n, q)."""
    error, variation = np.square(values - given).sum(), np.square(given - given.mean(axis=0)).sum()
    return 1.0 - float(error / max(variation, 1e-300))


def side_agreement(values: Vector, given: Vector) -> float | None:
    """The mean of the shares of outliers and of inliers whose values (n,) have the sign of the model's (n,).

    None if the rows are outliers or inliers alone.
    """
    is_kept, is_inlier = (values >= 0) == (given >= 0), given >= 0
    if is_inlier.all() or not is_inlier.any():
        return None
    return float((is_kept[is_inlier].mean() + is_kept[~is_inlier].mean()) / 2)


def principal_directions(points: Rows, coef: Vector, gamma: float, centre: Vector, m: int) -> Matrix:
    """The m eigenvectors (m, d) of largest absolute eigenvalue of the Hessian of f at the centre c (d,).

    f(x) = sum_i coef_i exp(-gamma |x_i - x|^2) has there the Hessian

        sum_i h_i (4 gamma^2 (x_i - c)(x_i - c)' - 2 gamma I),    h_i = coef_i exp(-gamma |x_i - c|^2).

    Parameters
    ----------
    points : ndarray or CSR array of shape (n, d)
    coef : ndarray of shape (n,)
    gamma : float
    centre : ndarray of shape (d,)
    m : int
        At most d.

    Notes
    -----
    O(n d^2 + d^3) and 8 (2 d^2 + 1024 d) bytes.
    """
    d = len(centre)
    total, outer = 0.0, np.zeros((d, d))
    for block in row_blocks(points.shape[0]):
        Z = (points[block].toarray() if sp.issparse(points) else points[block]) - centre
        h = coef[block] * np.exp(-gamma * np.einsum("ij,ij->i", Z, Z))
        total += float(h.sum())
        outer += (h[:, None] * Z).T @ Z
    values, vectors = np.linalg.eigh(2.0 * gamma * outer - total * np.eye(d))
    return np.asarray(vectors[:, np.argsort(-np.abs(values), kind="stable")[:m]].T)


def squares_along(directions: Array) -> LandmarkFeatures:
    """Features <u_j, x> and <u_j, x>^2 of one leaf for m directions u_j (m, d), by a linear kernel."""
    features, numbers = landmark_features(Linear(), directions), np.arange(len(directions), dtype=np.int32)
    features.pairs = np.stack([numbers, numbers])[None]
    return features
