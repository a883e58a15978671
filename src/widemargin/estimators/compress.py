"""Make a fitted kernel machine predict at the cost of a few inner products."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.svm import OneClassSVM
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from .._config import resolve_memory_budget
from .._progress import Progress
from ..algorithms.dc_pred import train
from ..kernels.functions import make_kernel
from ..models.nystrom import NystromForest
from ..solvers.local import HingeTask, ImitationTask, Task
from ._compressed import (
    Compressed,
    CompressedClassifier,
    CompressedOutlierDetector,
    CompressedRegressor,
    CompressedVotes,
    CompressionReport,
)
from ._cost import check_cost, spend
from ._nystrom_files import describe_trees
from ._pairs import votes
from ._parameters import check_limits
from ._predictor import largest
from ._sources import source_of
from ._validation import check_seed

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]

_WIDTHS = (1.0, 4.0, 0.25)  # gammas of the landmarks' kernel to choose from, in multiples of the model's
_MOST_ROWS = 60_000  # are learnt from
_HELD_SHARE, _MOST_HELD = 0.2, 10_000  # rows that are held back: half of them to choose by, half for the report
_FEW = 50  # rows, of which none are held back
_HARD_C = 10.0  # of machines that learn labels: these are the model's own, and free of noise
_COST_SHARE, _LEAST_COST, _LARGEST_COST = 0.01, 40.0, 200.0  # of the model's cost, and bounds


def compress(
    model: Any,
    X: ArrayLike | None = None,
    *,
    prediction_cost: float | str = "auto",
    n_clusters: int | str = "auto",
    n_landmarks: int | str = "auto",
    n_pseudo_landmarks: int | str = "auto",
    pseudo: str | None = "polynomial",
    linear_term: bool = True,
    n_trees: int = 1,
    max_time: float | None = None,
    memory_budget: int | str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    random_state: Any = None,
) -> Any:
    """To be described."""
    if isinstance(model, Pipeline):
        return _compress_pipeline(**locals())
    budget = _Budget(
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
    budget.check()
    return _Compression(model, X, budget).run()


def _compress_pipeline(model: Pipeline, X: Any, **parameters: Any) -> Pipeline:
    """The pipeline with its last step compressed; the steps before are shared."""
    rows = X if X is None or len(model.steps) < 2 else model[:-1].transform(X)
    name, last = model.steps[-1]
    return Pipeline([*model.steps[:-1], (name, compress(last, rows, **parameters))])


@dataclass
class _Budget:
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
        check_cost(self)
        check_limits(self)
        check_seed(self.random_state)


class _Candidate(NamedTuple):
    model: Compressed
    agreement: float
    gamma: float
    learnt: str


class _Split(NamedTuple):
    learn: Rows
    choose: Rows
    report: Rows


@dataclass
class _Compression:
    """One call of `compress`."""

    model: Any
    X: Any
    budget: _Budget
    notes: list[str] = field(default_factory=list)

    def run(self) -> Compressed:
        """Train candidates, keep the one that agrees best on rows held back, and report on others."""
        self.source = source_of(self.model)
        self._check_pseudo()
        self.seed = int(check_random_state(self.budget.random_state).randint(2**31))
        self.rng = np.random.default_rng(self.seed)
        self.rows, self.alpha = self._pool()
        self.split = self._split_rows()
        limits = resolve_memory_budget(self.budget.memory_budget)
        self.values = self.source.decide(self.rows, n_jobs=self.budget.n_jobs, memory_budget=limits)
        title, seconds = "compress", self.budget.max_time
        with Progress(max_time=seconds, verbose=self.budget.verbose, title=title) as progress:
            best = self._best(progress)
        best.model.report_ = self._report(best)
        return best.model

    def _check_pseudo(self) -> None:
        measure = getattr(self.source.kernel, "measure", None)
        if self.budget.pseudo == "triangle" and measure == "products":
            raise ValueError(
                f"pseudo='triangle' needs a kernel of distances, rbf or laplacian, but the model has "
                f"kernel={self.source.parameters['kernel']!r}; use pseudo='polynomial' or None"
            )

    def _pool(self) -> tuple[Any, Vector]:
        """Rows to learn from: X, and the model's own points, which alone have weight as landmarks."""
        points, alpha = self.source.points, self.source.alpha
        if self.X is None:
            self.notes.append("no X was given: learnt from the support vectors alone, which lie close to the border")
            return points, alpha
        how = {"accept_sparse": "csr", "dtype": points.dtype, "order": "C", "accept_large_sparse": True}
        X = validate_data(self.model, self.X, reset=False, **how)
        if X.shape[0] > _MOST_ROWS:
            self.notes.append(f"learnt from {_MOST_ROWS:,} of {X.shape[0]:,} rows")
            X = X[np.sort(self.rng.choice(X.shape[0], _MOST_ROWS, replace=False))]
        if sp.issparse(X) or sp.issparse(points):
            rows = sp.csr_array(sp.vstack([sp.csr_array(X), sp.csr_array(points)]))
        else:
            rows = np.concatenate([X, points])
        return rows, np.concatenate([np.zeros(X.shape[0]), alpha])

    def _split_rows(self) -> _Split:
        """Rows to learn from, to choose by and to report on; X is held back from, where there is one."""
        n = self.rows.shape[0] if self.X is None else self.rows.shape[0] - self.source.points.shape[0]
        order = self.rng.permutation(n)
        if n < _FEW:
            everything = np.arange(self.rows.shape[0])
            return _Split(everything, everything, everything)
        held = order[: min(_MOST_HELD, int(_HELD_SHARE * n))]
        learn = np.setdiff1d(np.arange(self.rows.shape[0]), held)
        return _Split(learn, np.sort(held[::2]), np.sort(held[1::2]))

    def _best(self, progress: Progress) -> _Candidate:
        """Decision values with landmark kernels of several widths; then labels with the best of them."""
        gamma = float(self.source.parameters["gamma"])
        is_stationary = getattr(self.source.kernel, "measure", "products") != "products"
        best: _Candidate | None = None
        for width in _WIDTHS if is_stationary else (1.0,):
            best = self._better(best, gamma * width, "decision values", progress)
        assert best is not None
        if is_classifier(self.model) and getattr(self.model, "decision_function_shape", "ovr") == "ovr":
            best = self._better(best, best.gamma, "labels", progress)
        return best

    def _better(self, best: _Candidate | None, gamma: float, learnt: str, progress: Progress) -> _Candidate:
        if best is not None and (best.agreement == 1.0 or not progress.go_on()):
            return best
        task = self._task(learnt)
        parameters = {**self.source.parameters, "gamma": gamma}
        cost = float(np.clip(_COST_SHARE * self.cost_before, _LEAST_COST, _LARGEST_COST))
        settings = spend(self.budget, len(self.split.learn), self.rows.shape[1], task.n_outputs, default=cost)
        settings = settings._replace(memory_budget=resolve_memory_budget(self.budget.memory_budget))
        kernel: Any = make_kernel(parameters["kernel"], **{k: v for k, v in parameters.items() if k != "kernel"})
        machine = train(kernel, self.rows[self.split.learn], task, settings, progress, np.random.default_rng(self.seed))
        compressed = self._wrap(machine.model, parameters, learnt)
        agreement = self._agreement(compressed, self.split.choose)
        if best is not None and best.agreement >= agreement:
            return best
        return _Candidate(compressed, agreement, gamma, learnt)

    @property
    def cost_before(self) -> float:
        """Inner products of the model's own prediction."""
        n, d = self.source.points.shape
        return float(n * (1 + self.values.shape[1] / d))

    def _task(self, learnt: str) -> Task:
        learn = self.split.learn
        if learnt == "decision values":
            return ImitationTask(self.values[learn].T, self.alpha[learn])
        numbers = self._labels(self.values[learn])
        classes = [1] if len(self.model.classes_) == 2 else range(len(self.model.classes_))
        signs = np.array([np.where(numbers == number, 1.0, -1.0) for number in classes])
        return HingeTask(signs, np.full(len(learn), _HARD_C), 1e-2)

    def _labels(self, values: Vector) -> Rows:
        return votes(values, len(self.model.classes_)).argmax(axis=1) if self.source.pairs else largest(values)

    def _wrap(self, forest: NystromForest, parameters: dict[str, Any], learnt: str) -> Compressed:
        if isinstance(self.model, OneClassSVM):
            made: Compressed = CompressedOutlierDetector(**parameters, n_jobs=self.budget.n_jobs)
        elif not is_classifier(self.model):
            made = CompressedRegressor(**parameters, n_jobs=self.budget.n_jobs)
        elif self.source.pairs and learnt == "decision values":
            made = CompressedVotes(**parameters, n_jobs=self.budget.n_jobs)
            made.decision_function_shape = self.model.decision_function_shape
            made.break_ties = self.model.break_ties
        else:
            made = CompressedClassifier(**parameters, n_jobs=self.budget.n_jobs)
        if is_classifier(self.model):
            made.classes_ = self.model.classes_
        if hasattr(self.model, "feature_names_in_"):
            made.feature_names_in_ = self.model.feature_names_in_
        trees = describe_trees(forest)
        if learnt == "labels" and self.values.shape[1] == 1:
            trees = self._in_units(forest, trees)
        made.load(trees)
        return made

    def _in_units(self, forest: NystromForest, trees: list[Any]) -> list[Any]:
        """The trees of a machine that learnt labels, scaled to the model's decision values; no label changes."""
        learn = self.split.learn
        f, g = self.values[learn, 0], forest.decide(self.rows[learn], n_jobs=self.budget.n_jobs)[:, 0]
        scale = max(float(f @ g), 0.0) / max(float(g @ g), 1e-300) or 1.0
        parts = ("coef", "products", "slopes", "intercept")
        return [{**tree, **{name: (tree[name] * scale).astype(tree[name].dtype) for name in parts}} for tree in trees]

    def _agreement(self, compressed: Compressed, rows: Rows) -> float:
        """Share of equal labels; of a regressor, how much of the variance is met."""
        values = compressed.predictor_.decide(self.rows[rows], n_jobs=self.budget.n_jobs)
        if is_classifier(self.model):
            votes_now = isinstance(compressed, CompressedVotes)
            numbers = votes(values, len(self.model.classes_)).argmax(axis=1) if votes_now else largest(values)
            return float(np.mean(numbers == self._labels(self.values[rows])))
        error = np.square(values - self.values[rows]).sum()
        return 1.0 - float(error / max(np.square(self.values[rows] - self.values[rows].mean(axis=0)).sum(), 1e-300))

    def _report(self, best: _Candidate) -> CompressionReport:
        rows = self.split.report
        values = best.model.predictor_.decide(self.rows[rows], n_jobs=self.budget.n_jobs)
        own = self.values[rows]
        if values.shape != own.shape:
            self.notes.append("its decision values are one for each class, learnt from labels: not the model's own")
        same = values if values.shape == own.shape else own
        trees = best.model.predictor_.trees
        return CompressionReport(
            agreement=self._agreement(best.model, rows) if is_classifier(self.model) else None,
            error=float(np.sqrt(np.mean(np.square(same - own)))) if values.shape == own.shape else np.nan,
            spread=float(own.std()),
            cost_before=self.cost_before,
            cost_after=best.model.predictor_.n_operations,
            bytes_before=self.source.nbytes,
            bytes_after=best.model.nbytes,
            n_rows=len(self.split.learn),
            n_held=0 if len(rows) == self.rows.shape[0] else len(rows),
            n_leaves=sum(tree.tree.n_leaves for tree in trees),
            n_landmarks=max(tree.features.landmarks.shape[1] for tree in trees),
            gamma=best.gamma,
            learnt=best.learnt,
            notes=tuple(self.notes),
        )
