"""The search of `compress`: candidates are trained on some rows, the best one or two on all, and one is chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .._config import resolve_memory_budget
from .._native import Stopped
from .._progress import Progress, SilentProgress
from .._threads import BLOCK_ROWS, row_blocks, run_interruptibly
from .._types import Array, Labels, Matrix, RowIndices, Vector
from ..algorithms.dc_pred import ForestSettings, train
from ..algorithms.ocas import train_hinges
from ..data.labels import one_vs_rest_signs
from ..estimators._cost import (
    allocate_cost,
    allocate_without_tree,
    check_cost,
    forest_bytes,
    least_training_rows,
    max_training_rows,
    training_bytes,
)
from ..estimators._dc_pred_machine import tree_arrays
from ..estimators._estimator import warn_user
from ..estimators._predictor import argmax_classes, votes
from ..estimators._validation import check_limits, check_seed, shown, validate_rows
from ..kernels.functions import RBF, make_kernel
from ..kernels.tiles import entry_work
from ..models.nystroem_tree import NystroemForest
from ..nystroem.leaf_problems import DistillationProblem, HingeProblem, LeafProblem, least_squares_work
from ..partition.kmeans import sample_rows
from .compressed import (
    Compressed,
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    CompressedVotes,
    CompressionReport,
)
from .curvature import principal_directions, squares_along
from .sources import Source, read_model

_GAMMA_FACTORS = (1.0, 4.0, 0.25)  # gammas of the landmarks' kernel to choose from, in multiples of the model's
_LEAVES = 12, 4, 1, 48  # of a tree, to choose from
_MAX_FINALISTS = 2  # candidates that are trained again, on all rows
_MAX_ROWS = 60_000  # to learn from
_HELD_OUT_SHARE, _MAX_HELD_OUT = 0.2, 10_000  # rows: half of them to choose by, half for the report
_PILOT_ROWS = 8000  # that candidates are trained on at first
_WANTED_AGREEMENT = 0.99  # share of equal labels below which an automatic cost is doubled
_LEAST_AGREEMENT = 0.97  # share of equal labels below which there is a warning
_ENOUGH_AGREEMENT = 0.995  # share of equal labels, or of the variance, from which on nothing else is tried
_MIN_ROWS = 50  # with fewer, none are held out
_MIN_FEATURES = 50  # with fewer, no projection: they are cheap as they are
_LABELS_C = 10.0  # C of machines that learn labels, which are the model's own and free of noise
_COST_SHARE, _MIN_COST, _MAX_COST = 0.04, 40.0, 600.0  # "auto": part of the model's cost, and bounds
_TRAINING_SHARE = {"decision values": 0.4, "labels": 0.2}  # of the memory, for `training_bytes` of a candidate
_SOLVER_SHARE = 0.5  # of the memory, for the kernel matrices and the solver of a leaf that learns labels
_ROWS_SHARE = 0.4  # of the memory, for samples and decision values, of which there are two copies before training
_BYTES_SHARE = 0.047  # of the model's bytes: `forest_bytes` is approximate, and the whole is to be below a twentieth
_MAX_ROUNDING, _MAX_VALUE = 1e-4, 1e18  # rounding error / spread of a feature, and its values, for float32
_KEPT_VARIANCE = 0.92  # share of the variance that a projection keeps
_MAX_RANK_SHARE, _MAX_RANK = 0.4, 256  # features of a projection / all features; above, it is not worth its memory
_PASSES_OF_AXES = 20  # over the rows, for their principal axes
_WORK_PER_CHECK = 2e9  # multiply-adds between two checks of the clock


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
    random_state: Any

    def check(self) -> None:
        """Raise a ValueError that names the first invalid one and its value."""
        check_cost(self)
        check_limits(self)
        check_seed(self.random_state)


class _Plan(NamedTuple):
    """A candidate's parameters: gamma of its kernel, leaves, what it learns, and what it is instead of a tree."""

    gamma: float
    n_clusters: int
    learnt: str = "decision values"
    is_projected: bool = False  # one leaf behind a projection
    is_quadratic: bool = False  # one leaf of squares along the principal curvatures
    growth: float = 1.0  # factor of the automatic cost and bytes


class _Candidate(NamedTuple):
    model: Compressed | None
    agreement: float
    merit: float  # what it is chosen by
    plan: _Plan
    n_rows: int = 0  # that it was trained on


class _Split(NamedTuple):
    train: RowIndices
    pilot: RowIndices  # of those to learn from: enough to choose by
    validation: RowIndices
    test: RowIndices


@dataclass
class Compression:
    """One call of `compress`. What has no default here, `run` sets step by step."""

    model: Any
    X: Any
    parameters: CompressionParameters
    keeps_values: bool = False  # whether the result must have decision values like the model's
    notes: list[str] = field(default_factory=list)
    n_given: int = 0
    known_classes: Labels = field(default_factory=lambda: np.empty(0, np.intp))  # in training, of each row; -1: unknown
    source: Source = field(init=False)
    seed: int = field(init=False)
    rng: np.random.Generator = field(init=False)
    memory_budget: int = field(init=False)
    may_go_on: Callable[[], bool] = field(init=False)
    rows: Any = field(init=False)  # (n, d), to learn from, to choose by and to report on
    landmark_weights: Vector = field(init=False)  # (n,)
    values: Matrix = field(init=False)  # (n, q): the model's decision values
    split: _Split = field(init=False)

    def run(self) -> Compressed:
        """Train candidates, keep the one that agrees best on rows held back, and report on others."""
        self.source = read_model(self.model)
        self._check_pseudo()
        self.seed = int(check_random_state(self.parameters.random_state).randint(2**31))
        self.rng = np.random.default_rng(self.seed)
        self.memory_budget = resolve_memory_budget(self.parameters.memory_budget)
        with Progress(max_time=self.parameters.max_time, verbose=self.parameters.verbose, title="compress") as progress:
            self.may_go_on = SilentProgress(progress).go_on
            self.rows, self.landmark_weights = self._training_rows()
            self._check_memory()
            progress.stage("the model's own predictions", 2)
            self._evaluate_model(progress)
            self.split = self._split_rows()
            self.rows = _as_float32(self.rows)
            best = self._best(progress)
            report = self._report(best)
        if progress.stopped_by:
            share = f"{report.agreement:.2%} of the labels agree" if report.agreement is not None else "see its report_"
            warn_user(f"compress was stopped by {progress.stopped_by}: the best so far, {share}", ConvergenceWarning)
        elif report.agreement is not None and report.agreement < _LEAST_AGREEMENT:
            cost = f"raise prediction_cost (now {report.cost_after:,.0f})"
            warn_user(f"only {report.agreement:.1%} of the labels agree with the model's: {cost}", UserWarning)
        assert best.model is not None
        best.model.report_ = report
        return best.model

    def _evaluate_model(self, progress: Progress) -> None:
        """The model's decision values; rows for which there is no time, half of all there is, are left out."""
        n, (n_points, d) = self.rows.shape[0], self.source.points.shape
        order, size = self.rng.permutation(n), max(_MIN_ROWS, int(_WORK_PER_CHECK / entry_work(n_points, d)))
        limits = {"n_jobs": self.parameters.n_jobs, "memory_budget": self.memory_budget // 4}
        share, blocks = progress.part(1), list[Matrix]()
        for block in row_blocks(n, size):
            if blocks and not share.go_on():
                break
            blocks.append(self.source.decision_values(self.rows[order[block]], **limits))
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
        """Raise a ValueError with the least `memory_budget` that can be kept, if this one cannot."""
        n, d = self.rows.shape
        rows = (_array_bytes(self.rows) + 8 * n * self.source.n_outputs) / _ROWS_SHARE
        k = _LEAVES[0] if self.parameters.n_clusters == "auto" else int(self.parameters.n_clusters)
        n_most = self.source.points.shape[0] + (0 if self.X is None else min(_MAX_ROWS, np.shape(self.X)[0]))
        settings = self._settings(_Plan(1.0, k), n_most, self.source.n_outputs, 0.0)
        training = training_bytes(settings, least_training_rows(settings), d, self.source.n_outputs)
        least = math.ceil(max(rows, training / _TRAINING_SHARE["decision values"]))
        if least > self.memory_budget:
            raise ValueError(
                f"memory_budget must be at least {least} bytes for the model's {self.source.points.shape[0]} support "
                f"vectors and {settings.n_landmarks} landmarks in a leaf, got {shown(self.parameters.memory_budget)}"
            )

    def _check_pseudo(self) -> None:
        if self.parameters.pseudo == "triangle" and self.source.kernel.argument == "inner_product":
            raise ValueError(
                f"pseudo='triangle' needs a kernel of distances, rbf or laplacian, but the model has "
                f"kernel={self.source.parameters['kernel']!r}; use pseudo='polynomial' or None"
            )

    def _training_rows(self) -> tuple[Any, Vector]:
        """Rows to learn from: X, and the model's own points, which alone have weight as landmarks."""
        points, landmark_weights = self.source.points, self.source.landmark_weights
        classes = np.full(len(landmark_weights), -1) if self.source.classes is None else self.source.classes
        if self.X is None:
            self.known_classes = classes
            self.notes.append("no X was given: learnt from the support vectors alone, which lie close to the border")
            self.n_given = points.shape[0]
            return points, landmark_weights
        X = self._draw_rows(points)
        if sp.issparse(X) or sp.issparse(points):
            X, points = sp.csr_array(X), sp.csr_array(points)
        place, self.n_given = _find_rows(points, X), X.shape[0]
        own, others = np.zeros(X.shape[0]), place < 0
        np.add.at(own, place[~others], landmark_weights[~others])
        self.known_classes = np.concatenate([np.full(X.shape[0], -1), classes[others]])
        self.known_classes[place[~others]] = classes[~others]
        rows = sp.vstack([X, points[others]], format="csr") if sp.issparse(X) else np.concatenate([X, points[others]])
        return rows, np.concatenate([own, landmark_weights[others]])

    def _draw_rows(self, points: Any) -> Any:
        """X validated, or at random as many of its rows as fit in memory beside the points, 60,000 at most."""
        how = {"accept_sparse": "csr", "dtype": points.dtype, "order": "C", "accept_large_sparse": True}
        X = validate_rows(self.model, self.X, reset=False, **how)
        rows_bytes, points_bytes = (_array_bytes(A) + 8 * A.shape[0] * self.source.n_outputs for A in (X, points))
        room = _ROWS_SHARE * self.memory_budget - points_bytes
        most = max(_MIN_ROWS, min(_MAX_ROWS, int(room * X.shape[0] / rows_bytes)))
        if X.shape[0] <= most:
            return X
        self.notes.append(f"learnt from {most:,} of {X.shape[0]:,} rows")
        return X[np.sort(self.rng.choice(X.shape[0], most, replace=False))]

    def _split_rows(self) -> _Split:
        """Rows to learn from, to choose by and to report on."""
        n = self.n_given
        order = self.rng.permutation(n)
        if n < _MIN_ROWS:
            everything = np.arange(self.rows.shape[0])
            return _Split(everything, everything, everything, everything)
        held = order[: min(_MAX_HELD_OUT, int(_HELD_OUT_SHARE * n))]
        learn = np.setdiff1d(np.arange(self.rows.shape[0]), held)
        pilot = np.sort(self.rng.choice(learn, min(_PILOT_ROWS, len(learn)), replace=False))
        return _Split(learn, pilot, np.sort(held[::2]), np.sort(held[1::2]))

    def _best(self, progress: Progress) -> _Candidate:
        """The best candidates on the pilot rows, each of another number of leaves, trained on all rows: their best."""
        pilots = sorted(self._pilots(progress), key=attrgetter("merit"), reverse=True)
        if len(self.split.pilot) == len(self.split.train):
            return pilots[0]
        # in the order of merit, and of plans that differ in gamma alone the best one
        finals: dict[_Plan, _Plan] = {}
        for pilot in pilots:
            finals.setdefault(pilot.plan._replace(gamma=0.0), pilot.plan)
        trained = self._train_all([*finals.values()][:_MAX_FINALISTS], self.split.train, progress)
        candidates = [*trained, *pilots] if progress.stopped_by else trained
        return max(candidates, key=attrgetter("merit"))

    def _pilots(self, progress: Progress) -> list[_Candidate]:
        """Trees and one flat machine, with landmark kernels of several gammas; then labels with the best of them."""
        gamma = float(self.source.parameters["gamma"])
        is_stationary = self.source.kernel.argument != "inner_product"
        factors, given = _GAMMA_FACTORS if is_stationary else (1.0,), self.parameters.n_clusters
        first, others = (_LEAVES[0], _LEAVES[1:]) if given == "auto" else (int(given), ())
        tried: list[_Candidate] = []

        def attempt(plans: list[_Plan]) -> _Plan:
            new = [plan for plan in plans if plan not in [one.plan for one in tried]]
            tried.extend(self._train_all(new, self.split.pilot, progress, tried))
            if not tried:  # stopped before the first
                return plans[0]
            best = max(tried, key=attrgetter("merit"))
            # the others are only compared
            tried[:] = [one if one is best else one._replace(model=None) for one in tried]
            return max(tried, key=lambda one: (not one.plan.is_quadratic, one.merit)).plan

        if given in ("auto", 1) and not self.keeps_values and self._suits_squares():
            attempt([_Plan(gamma, 1, is_quadratic=True)])
        if given in ("auto", 1):
            attempt([_Plan(gamma * factor, 1, is_projected=True) for factor in factors[:2]])
        best = attempt([_Plan(gamma * factor, first) for factor in factors])
        best = attempt([_Plan(best.gamma, k) for k in others])
        best = attempt([best._replace(gamma=gamma * factor) for factor in factors])  # of other leaves, other gammas
        has_labels = is_classifier(self.model) and getattr(self.model, "decision_function_shape", "ovr") == "ovr"
        if has_labels and not self.keeps_values:
            attempt([best._replace(learnt="labels")])
        if self._is_automatic:
            self._grow(tried, attempt, [_Plan(gamma * factor, 1, is_projected=True) for factor in factors[::2]])
        return tried

    def _grow(self, tried: list[_Candidate], attempt: Callable[[list[_Plan]], _Plan], flat: list[_Plan]) -> None:
        """Double an automatic cost, up to the model's, while too few labels agree and one candidate gains by it.

        The best candidate so far grows, and flat machines, which gain most: by more than the merit's standard error.
        """
        growth, n = 2.0, len(self.split.validation)
        while tried and growth * self._automatic_cost < self.cost_before:
            best = max(tried, key=attrgetter("merit"))
            if best.agreement >= _WANTED_AGREEMENT:
                return
            plans = list(flat) if self.parameters.n_clusters in ("auto", 1) else []
            if best.plan.growth == growth / 2.0:  # else it was grown before, and is no better for it
                plans.insert(0, best.plan)
            attempt(list({plan._replace(growth=growth): None for plan in plans}))
            merits = {one.plan: one.merit for one in tried}
            pairs = [
                [merits.get(plan._replace(growth=factor), math.nan) for factor in (growth / 2, growth)]
                for plan in plans
            ]
            if not any(large - small > math.sqrt(large * (1.0 - large) / n) for small, large in pairs):
                return
            growth *= 2.0

    def _train_all(
        self, plans: list[_Plan], learn: RowIndices, progress: Progress, before: Sequence[_Candidate] = ()
    ) -> list[_Candidate]:
        """Candidates of the plans in order, until one of them, or of those `before`, agrees enough or time is over.

        None at all, if the fit is stopped before the first one's projection or curvatures are known.
        """
        made: list[_Candidate] = []
        for plan in plans:
            known = [*before, *made]
            if not known or (max(candidate.agreement for candidate in known) < _ENOUGH_AGREEMENT and progress.go_on()):
                with suppress(Stopped):
                    made.append(self._train(plan, learn, progress))
        return made

    def _train(self, plan: _Plan, learn: RowIndices, progress: Progress) -> _Candidate:
        problem = self._problem(plan.learnt, learn)
        parameters = {**self.source.parameters, "gamma": plan.gamma}
        if plan.is_quadratic:
            parameters["kernel"] = "linear"
        projection = self._projection if plan.is_projected else None
        room_of_values, room = (_TRAINING_SHARE[what] * self.memory_budget for what in ("decision values", plan.learnt))
        settings = self._settings(plan, len(learn), problem.n_outputs, room_of_values)
        d = self.rows.shape[1] if projection is None else projection.shape[1]
        most = max_training_rows(settings, d, problem.n_outputs, room, is_hinge=plan.learnt == "labels")
        if most < len(learn):
            learn = np.sort(np.random.default_rng(self.seed).choice(learn, most, replace=False))
            problem = self._problem(plan.learnt, learn)
        kernel: Any = make_kernel(**parameters)
        rows = self.rows[learn]
        rows = rows if projection is None else np.ascontiguousarray(rows @ projection)
        features = squares_along(self._directions(settings.n_landmarks)) if plan.is_quadratic else None
        forest = train(kernel, rows, problem, settings, progress, np.random.default_rng(self.seed), features).model
        forest.projection = projection
        compressed = self._wrap(forest, parameters, plan.learnt, learn)
        values = self._values(compressed, self.split.validation)
        agreement = self._agreement(compressed, values, self.split.validation)
        return _Candidate(compressed, agreement, self._merit(compressed, values, agreement), plan, len(learn))

    def _settings(self, plan: _Plan, n: int, n_outputs: int, room: float) -> ForestSettings:
        """Sizes for a share of the model's own cost, reduced until model and training (in `room` bytes) are small."""
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
            is_small = is_small and training_bytes(settings, n, d, n_outputs) <= room
            if is_small or cost <= _MIN_COST:
                return settings._replace(memory_budget=int(_SOLVER_SHARE * self.memory_budget))
            cost *= 0.8

    def _suits_squares(self) -> bool:
        """Whether principal directions are known, and take less time than the model's predictions of the pilot rows."""
        n, d = self.source.points.shape
        is_cheap = d * (n + d) <= _PILOT_ROWS * n and 32 * d * (d + BLOCK_ROWS) <= _ROWS_SHARE * self.memory_budget
        return isinstance(self.source.kernel, RBF) and self.source.n_outputs == 1 and is_cheap

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
        measure = self.source.kernel.argument
        if measure == "l1_distance" or d < _MIN_FEATURES:
            return None  # L1 distances change with the axes
        probe = self.rows[sample_rows(self.rows, np.arange(self.rows.shape[0]), 1, self.rng)]
        most = min(int(_MAX_RANK_SHARE * d), _MAX_RANK, probe.shape[0] - 1)
        if sp.issparse(probe) or measure == "inner_product":
            from sklearn.decomposition import TruncatedSVD

            model: Any = TruncatedSVD(most, random_state=self.seed)
        else:
            from sklearn.decomposition import PCA

            model = PCA(most, svd_solver="randomized", random_state=self.seed)
        fit = np.errstate(divide="ignore", invalid="ignore")(model.fit)  # equal rows have no variance to share
        n_values = probe.nnz if sp.issparse(probe) else probe.size
        run_interruptibly(partial(fit, probe), self.may_go_on, _PASSES_OF_AXES * n_values * most)
        kept = np.cumsum(model.explained_variance_ratio_) < _KEPT_VARIANCE
        if kept.all():
            return None
        return np.ascontiguousarray(model.components_[: int(kept.sum()) + 1].T, self.rows.dtype)

    @property
    def cost_before(self) -> float:
        """Inner products of the model's own prediction."""
        n, d = self.source.points.shape
        return float(n * (1 + self.source.n_outputs / d))

    @property
    def _is_automatic(self) -> bool:
        """Whether the cost, and with it the landmarks, are to be chosen for a classifier."""
        is_free = self.parameters.prediction_cost == "auto" and self.parameters.n_landmarks == "auto"
        return is_free and is_classifier(self.model)

    @property
    def _automatic_cost(self) -> float:
        return float(np.clip(_COST_SHARE * self.cost_before, _MIN_COST, _MAX_COST))

    def _problem(self, learnt: str, learn: RowIndices) -> LeafProblem:
        if learnt == "decision values":
            return DistillationProblem(self.values[learn].T, self.landmark_weights[learn])
        signs = one_vs_rest_signs(self._labels[learn], len(self.model.classes_))
        return HingeProblem(signs, np.full(len(learn), _LABELS_C), 1e-2, train_hinges)

    @cached_property
    def _labels(self) -> Labels:
        """Class numbers (n,) that the model predicts."""
        return self._numbers(self.values, self.source.pairs)

    def _numbers(self, values: Matrix, has_votes: bool) -> Labels:
        return votes(values, len(self.model.classes_)).argmax(axis=1) if has_votes else argmax_classes(values)

    def _values(self, compressed: Compressed, rows: RowIndices) -> Matrix:
        return np.asarray(compressed.predictor_.decision_values(self.rows[rows], n_jobs=self.parameters.n_jobs))

    def _wrap(self, forest: NystroemForest, parameters: dict[str, Any], learnt: str, learn: RowIndices) -> Compressed:
        if is_outlier_detector(self.model):
            made: Compressed = CompressedOutlierDetector(**parameters, n_jobs=self.parameters.n_jobs)
        elif not is_classifier(self.model):
            made = CompressedRegressor(**parameters, n_jobs=self.parameters.n_jobs)
        elif self.source.pairs and learnt == "decision values":
            made = CompressedVotes(**parameters, n_jobs=self.parameters.n_jobs)
            made.decision_function_shape = self.model.decision_function_shape
            made.break_ties = self.model.break_ties
        else:
            made = CompressedClassifier(**parameters, n_jobs=self.parameters.n_jobs)
        if is_classifier(self.model):
            made.classes_ = self.model.classes_
        if hasattr(self.model, "feature_names_in_"):
            made.feature_names_in_ = self.model.feature_names_in_
        trees = tree_arrays(forest)
        if learnt == "labels" and self.values.shape[1] == 1:
            trees = self._rescaled(forest, trees, learn)
        made.load(trees, forest.projection)
        return made

    def _rescaled(self, forest: NystroemForest, trees: list[Any], learn: RowIndices) -> list[Any]:
        """The trees of a machine that learnt labels, scaled to the model's decision values; no label changes."""
        f, g = self.values[learn, 0], forest.decision_values(self.rows[learn], n_jobs=self.parameters.n_jobs)[:, 0]
        scale = max(float(f @ g), 0.0) / max(float(g @ g), 1e-300) or 1.0
        parts = ("coef", "products", "slopes", "intercept")
        return [{**tree, **{name: (tree[name] * scale).astype(tree[name].dtype) for name in parts}} for tree in trees]

    def _agreement(self, compressed: Compressed, values: Matrix, rows: RowIndices) -> float:
        """Share of equal labels; of a regressor, the coefficient of determination."""
        if is_classifier(self.model):
            return float(np.mean(self._numbers(values, isinstance(compressed, CompressedVotes)) == self._labels[rows]))
        error = np.square(values - self.values[rows]).sum()
        return 1.0 - float(error / max(np.square(self.values[rows] - self.values[rows].mean(axis=0)).sum(), 1e-300))

    def _merit(self, compressed: Compressed, values: Matrix, agreement: float) -> float:
        """Share of right labels: the class in training, where it is known (support vectors); else the model's label."""
        known = self.known_classes[self.split.validation]
        if not is_classifier(self.model) or not np.any(known >= 0):
            return agreement
        right = np.where(known < 0, self._labels[self.split.validation], known)
        return float(np.mean(self._numbers(values, isinstance(compressed, CompressedVotes)) == right))

    def _report(self, best: _Candidate) -> CompressionReport:
        rows = self.split.test
        assert best.model is not None
        values = self._values(best.model, rows)
        own = self.values[rows]
        if values.shape != own.shape:
            self.notes.append("its decision values are one for each class, learnt from labels: not the model's own")
        if best.plan.is_quadratic:
            self.notes.append("its kernel is linear: its features are squares along the model's principal curvatures")
        trees = best.model.predictor_.trees
        return CompressionReport(
            agreement=self._agreement(best.model, values, rows) if is_classifier(self.model) else None,
            error=float(np.sqrt(np.mean(np.square(values - own)))) if values.shape == own.shape else np.nan,
            spread=float(own.std()),
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


def _as_float32(X: Any) -> Any:
    """Rows as float32, half as large and as slow, unless a feature's spread would be lost in rounding."""
    if sp.issparse(X):
        is_safe = np.abs(X.data).max(initial=0.0) < _MAX_VALUE
    else:
        largest, spread = np.abs(X).max(axis=0), X.std(axis=0)
        is_safe = np.all(
            (largest < _MAX_VALUE) & ((largest * np.finfo(np.float32).eps < _MAX_ROUNDING * spread) | (spread == 0))
        )
    return X.astype(np.float32) if is_safe else X


def _array_bytes(X: Any) -> int:
    """Bytes of the rows of a dense or a CSR array."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes)


def _find_rows(points: Any, X: Any) -> RowIndices:
    """For each of the points the last row of X that equals it; -1 where none does."""
    keys = list(_keys(points))
    known = set(keys)
    where = {key: i for i, key in enumerate(_keys(X)) if key in known}
    return np.array([where.get(key, -1) for key in keys], np.intp)


def _keys(X: Any) -> Iterator[bytes]:
    """The bytes of each row's entries, and of a CSR row's indices."""
    if not sp.issparse(X):
        yield from ((row + 0.0).tobytes() for row in np.ascontiguousarray(X))  # -0.0 and 0.0 are equal
        return
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield X.indices[a:b].astype(np.int64).tobytes() + (X.data[a:b] + 0.0).tobytes()
