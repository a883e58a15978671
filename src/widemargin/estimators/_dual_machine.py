"""`DualMachine`, the base of `DCSVMClassifier`, `DCSVMRegressor` and `DCOneClassSVM`: parameters, training, files."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from .._memory import memory_plan
from .._native import Stopped
from .._progress import Progress, SilentProgress
from .._threads import ThreadTeam, blas_limit, effective_n_jobs, raise_if_stopped
from .._types import AnyArray, Array, Given, Labels, Matrix, RandomState, RowIndices
from ..algorithms.dc_svm_levels import DCSVMSettings, Problems
from ..algorithms.pairs_and_targets import train_machines
from ..algorithms.trained_machines import TrainedMachine, TrainedMachines
from ..data import compute_rows, compute_values, is_dask_collection
from ..data.remote.remote_rows import RemoteRows, open_remote_rows
from ..data.rows import find_equal_rows
from ..data.samples import GramSamples, Samples, make_samples, view_samples
from ..kernels.entry_precision import ensure_precision, float64_error
from ..kernels.functions import FUNCTION_KERNELS, KERNELS, CallableKernel, Kernel, Linear, Precomputed, is_indefinite
from ..models.clustered import ClusteredExpansion
from ..models.expansion import KernelExpansion
from ..partition.divide import Division, clustering_level
from ..solvers.dual.certificate import MAX_RELATIVE_GAP, Limits, have_negative_square
from ..solvers.dual.memory import needed_bytes
from ..solvers.dual.stopping import with_rounding
from ..solvers.results import DualResult, History
from ._dual_attributes import check_clusters, cluster_attributes, clustered_model, history_and_levels, support_rows
from ._estimator import describe_gap, relative_gap, warn_unconverged, warn_user
from ._fitted_state import FittedState
from ._kernel_machine import ExpansionMachine, TrainingRows
from ._predictor import lazy_on_dask
from ._resuming import check_state, find_rows, fingerprint, machines_of_coefficients, machines_of_state, state_of
from ._scale import make_checked_samples, sample_form
from ._validation import (
    check_choice,
    check_collection,
    check_flag,
    check_has_rows,
    check_integer,
    check_kernel,
    check_labels,
    check_number,
    check_resources,
    check_seed,
    check_targets,
    check_weights,
    column_of,
    is_auto,
    make_rng,
    shown,
)


class DualMachine(ExpansionMachine):
    """A kernel machine whose dual problem is solved exactly, or cluster by cluster (an early machine).

    A subclass has `_problems`. The other methods assume one machine for each target; `DCSVMClassifier`, which has a
    machine for each pair of classes, overrides some.
    """

    _memory_kinds = "kernel machine", "prediction of a kernel machine"
    fit_intercept: bool
    n_levels: int | str
    branching: int
    n_sample: int
    partition: str
    stop_level: int | str
    warm_start: bool
    tol: float
    max_iter: int
    max_time: float | None
    random_state: RandomState
    dual_coef_: Matrix
    classes_: AnyArray  # of a classifier
    _clusters: dict[str, Any] | None
    _resumed: dict[str, Any] | None = None  # what another fit goes on from: see `_resuming`

    def _train(self, rows: TrainingRows, progress: Progress) -> None:
        work = float(len(rows.weights)) ** 2 * rows.X.shape[1]
        with (
            blas_limit(1, work),  # a second thread, once woken by a probe of some rows, spins on through an early fit
            self._open_rows(rows, progress) as rows,
        ):
            kernel, samples, rows = self._make_samples(rows, progress)
            problems, settings = self._problems(rows), self._settings(kernel, len(samples))
            limits = settings.limits
            before = self._machines_before(kernel, rows, problems, limits, progress) if self.warm_start else None
            rng = make_rng(self.random_state, seed_of_none=0)
            machines = train_machines(kernel, samples, problems, settings, progress, rng, before=before)
            machines = self._finish_machines(kernel, samples, rows, machines)
            self._set_attributes(kernel, samples, rows, machines)
            is_needed = self.warm_start or not self.converged_
            self._resumed = state_of(machines, fingerprint(kernel, rows.X, problems)) if is_needed else None
            if not progress.stopped_by:
                self._warn_of_machines(rows, machines)
            if not self.converged_:
                self._warn_unconverged(float(machines.results.violation.max()), progress)

    @lazy_on_dask
    def assign_clusters(self, X: ArrayLike) -> Labels:
        """The cluster of each row, of an early machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples. For a precomputed kernel, their kernel values with all training samples.

        Returns
        -------
        ndarray of shape (n_samples,), int
            Numbers from 0 to n_clusters - 1.

        Raises
        ------
        ValueError
            If the machine is exact: it has no clusters.

        Notes
        -----
        Costs a distance per cluster and row with ``partition="input"``, `n_sample` kernel values with "kernel".
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False, dtype=self._dtype)
        if not isinstance(self._model, ClusteredExpansion):
            raise ValueError("assign_clusters needs early prediction, got an exact model: fit with stop_level above 0")
        with blas_limit(1), ThreadTeam(self.n_jobs) as team:
            return self._model.router.route(X, team).astype(np.intp)

    def _check_parameters(self) -> None:
        check_number("tol", self.tol, above=0)
        check_kernel(self, *FUNCTION_KERNELS, "precomputed")
        check_integer("max_iter", self.max_iter, -1)
        self._check_levels()
        check_flag(fit_intercept=self.fit_intercept, warm_start=self.warm_start)
        check_seed(self.random_state)
        check_resources(self)

    def _check_levels(self) -> None:
        check_integer("branching", self.branching, 2)
        check_integer("n_sample", self.n_sample, 1)
        if not is_auto(self.stop_level):
            check_integer("stop_level", self.stop_level, 0)
            if int(self.stop_level) > 62:  # 2 ** 62 clusters
                raise ValueError(f"stop_level must be at most 62, got {shown(self.stop_level)}")
        check_choice("partition", self.partition, ("auto", "kernel", "input"))
        if not is_auto(self.n_levels):
            check_integer("n_levels", self.n_levels, 0)
            if not is_auto(self.stop_level) and int(self.stop_level) > int(self.n_levels):
                raise ValueError(f"stop_level must be at most n_levels={self.n_levels}, got {self.stop_level}")
        if self._is_gram and self.partition == "input":
            raise ValueError(
                "partition must not be 'input' with kernel='precomputed': new rows have no features by which to find "
                "their clusters"
            )

    def _problems(self, rows: TrainingRows) -> Problems:
        """For each machine a function that returns the numbers of its rows, and its dual problem on these rows."""
        raise NotImplementedError

    def _warn_of_machines(self, rows: TrainingRows, machines: TrainedMachines) -> None:
        """Warn of machines, trained to the end, that have learned nothing."""

    def _machine_sizes(self, rows: TrainingRows) -> list[int]:
        return [len(rows.y)] * (1 if rows.y.ndim == 1 else rows.y.shape[1])

    def _set_machines(self, rows: TrainingRows, machines: TrainedMachines) -> None:
        """Set the fitted attributes that predictions need."""
        support = self._set_support(rows, machines, np.zeros(len(rows.kept), np.intp))
        self.n_support_ = np.array([len(support)])
        self.dual_coef_ = machines.results.beta.reshape(len(machines), -1)[:, support]

    def _set_support(self, rows: TrainingRows, machines: TrainedMachines, group: Labels) -> RowIndices:
        """Set all of these but coefficients; return the support vectors (n_SV,) among the rows, sorted by `group`."""
        support, intercepts = support_rows(machines, group), machines.intercepts
        X = None if self._is_gram else rows.X
        self.support_ = rows.kept[support]
        self.support_vectors_ = np.empty((0, 0)) if X is None else X[support]
        self.intercept_ = intercepts.mean(axis=1) if intercepts.shape[1] > 1 else intercepts[:, 0].copy()
        self.early_level_ = machines.level
        self._clusters = cluster_attributes(machines, X, rows.kept, support)
        return support

    def _coefficients(self) -> Any:
        return self.dual_coef_

    def _check_coefficients(self, fitted: FittedState, n: int) -> int:
        """Check `dual_coef_` and `n_support_` of n support vectors; return the number of machines."""
        fitted.array("n_support_", np.integer, 1, least=n, below=n + 1)
        return len(fitted.array("dual_coef_", np.float64, ... if isinstance(self, RegressorMixin) else 1, n))

    def _check_data(self, X: Given, y: Given, sample_weight: Given) -> TrainingRows:
        if not is_dask_collection(X):
            return super()._check_data(X, y, sample_weight)
        if self._is_gram:
            raise ValueError("kernel must not be 'precomputed' for a dask collection")
        if not self.stop_level:  # an exact model: its rows are computed into this process (docs/decisions/0020)
            X = compute_rows(X, memory_plan(self))
            check_has_rows(X.shape[0], X)
            return super()._check_data(X, compute_values(y), compute_values(sample_weight))
        check_collection(self, X)
        targets = self._collection_targets(X, y)
        check_has_rows(len(targets), X)
        self.shape_fit_ = len(targets), self.n_features_in_
        weights = check_weights(compute_values(sample_weight), targets)
        kept = np.flatnonzero(weights)
        classes, y = self._number_targets(targets[kept], weights[kept])
        return TrainingRows(X, y, weights[kept], kept, classes)

    def _collection_targets(self, X: Given, y: Given) -> AnyArray:
        """Labels or target values (n,) or (n, k) of the rows of a dask collection."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if isinstance(self, ClassifierMixin):
            labels = column_of(y)
            check_labels(labels)
            return labels
        return check_targets(
            X,
            check_array(compute_values(y), dtype=None, ensure_2d=False, ensure_all_finite=False, ensure_min_samples=0),
        )

    def _open_rows(self, rows: TrainingRows, progress: Progress) -> AbstractContextManager[TrainingRows]:
        """The rows themselves, or `RemoteRows` of a dask collection, whose rows stay on the workers."""
        return self._open_remote_rows(rows, progress) if is_dask_collection(rows.X) else nullcontext(rows)

    @contextmanager
    def _open_remote_rows(self, rows: TrainingRows, progress: Progress) -> Iterator[TrainingRows]:
        check = partial(raise_if_stopped, SilentProgress(progress).go_on)
        with open_remote_rows(rows.X, rows.kept, self.shape_fit_[0], check) as X:
            self._dtype = X.dtype.name
            yield rows._replace(X=X)

    def _make_samples(
        self, rows: TrainingRows, progress: Progress
    ) -> tuple[Kernel, Samples | RemoteRows, TrainingRows]:
        """The kernel, checked rows in the form that it takes, and what else the training takes of these rows.

        Of rows on a cluster a sample is checked, and they stay there.
        """
        kernel, go_on = self._resolve_kernel(rows.X, rows.weights), SilentProgress(progress).go_on
        if isinstance(rows.X, RemoteRows):
            chosen, values = rows.X.sample
            targets = self._targets_for_checks(rows)
            make_checked_samples(kernel, values, None if targets is None else targets[chosen], go_on)
            return kernel, rows.X, rows
        if isinstance(self, ClassifierMixin) and isinstance(rows.X, np.ndarray) and not self._is_gram:
            rows = rows if progress.is_observed else _merge_equal_rows(rows)
        targets = self._targets_for_checks(rows)
        samples = make_checked_samples(kernel, rows.X, targets, go_on, may_centre=self._may_centre)
        self._check_memory(samples, rows)
        if isinstance(samples, GramSamples) and is_indefinite(samples, fixes_sum=self.fit_intercept):
            kernel = Precomputed(is_semidefinite=False)
        return kernel, samples, rows

    def _finish_machines(
        self, kernel: Kernel, samples: Samples | RemoteRows, rows: TrainingRows, machines: TrainedMachines
    ) -> TrainedMachines:
        """The machines with the rounding errors of their decision values in their gaps."""
        if isinstance(samples, RemoteRows):
            return machines
        machines.results = with_rounding(machines.results, float64_error(kernel, samples), self.tol)
        return machines

    def _set_attributes(
        self, kernel: Kernel, samples: Samples | RemoteRows, rows: TrainingRows, machines: TrainedMachines
    ) -> None:
        """Set the fitted attributes, and the model of these; `dual_gap_` is NaN where the dual is no bound."""
        results, has_bound = machines.results, self._has_bound(kernel, machines)
        self._set_machines(rows, machines)
        self.objective_ = machines.objective
        self.dual_gap_ = float(sum(results.gap.tolist())) if has_bound else np.nan
        self.relative_gap_ = relative_gap(self.objective_, self.dual_gap_)
        self.converged_ = bool(results.converged.all())
        self.n_iter_ = max(1, int(results.n_iter.sum()))
        self.history_, self.levels_ = history_and_levels(machines, has_bound=has_bound)
        if isinstance(kernel, Linear) and not isinstance(samples, RemoteRows):
            self._move_intercepts(samples.shift)
        self._model = self._make_model()

    def train_model(self, rows: TrainingRows, progress: Progress) -> KernelExpansion | ClusteredExpansion:
        """The model of these rows in memory, without their checks, the certificate, and warnings: for another fit."""
        kernel = self._resolve_kernel(rows.X, rows.weights)
        samples = ensure_precision(kernel, make_samples(rows.X, kernel.sample_form))
        self._check_memory(samples, rows)
        settings, rng = self._settings(kernel, len(samples)), make_rng(self.random_state, seed_of_none=0)
        machines = train_machines(kernel, samples, self._problems(rows), settings, progress, rng)
        self._set_machines(rows, machines)
        return self._make_model()

    def _has_bound(self, kernel: Kernel, machines: TrainedMachines) -> bool:
        """Whether the dual bounds the optimum. Warn of a user's kernel for which x'K x < 0 at a feasible x."""
        if not isinstance(kernel, Precomputed | CallableKernel) or self.kernel in FUNCTION_KERNELS:
            return kernel.is_semidefinite
        is_direction = self._may_centre or not self.fit_intercept  # not coefficients of a one-class machine
        refuted = is_direction and bool(have_negative_square(machines.results).any())
        if kernel.is_semidefinite and not refuted:
            return True
        warn_user(
            f"kernel={self.kernel!r} is not positive semidefinite: no bound on the optimum is known (dual_gap_ is "
            "NaN), and the model may be far from it. Use similarities, such as exp(-distance), or set negative "
            "eigenvalues of the kernel matrix to 0",
            UserWarning,
        )
        return False

    def _move_intercepts(self, shift: Array | None) -> None:
        """Turn intercepts b for rows less `shift` (d,), on which a linear machine was trained, into b - <w, shift>."""
        if shift is None:
            return
        model, shift = self._make_model(), shift.astype(np.float64)
        if isinstance(model, ClusteredExpansion):
            model.intercept -= np.column_stack([machine.weights @ shift for machine in model.machines])
            self.intercept_ = model.intercept.mean(axis=1)
        else:
            self.intercept_ -= model.weights @ shift

    def _targets_for_checks(self, rows: TrainingRows) -> AnyArray | None:
        return rows.first_target

    @property
    def _may_centre(self) -> bool:
        """Whether a linear machine's problem is the same for rows less any vector."""
        return bool(self.fit_intercept)

    def _check_memory(self, samples: Samples, rows: TrainingRows) -> None:
        sizes = self._machine_sizes(rows)
        needed = needed_bytes(samples, sizes, effective_n_jobs(self.n_jobs))
        memory_plan(self).require(needed, f"problems of up to {max(sizes)} rows, {len(sizes)} in all")

    def _settings(self, kernel: Kernel, n: int) -> DCSVMSettings:
        has_rule = is_auto(self.stop_level)
        return DCSVMSettings(
            tol=float(self.tol),
            max_relative_gap=MAX_RELATIVE_GAP if kernel.is_semidefinite else np.inf,
            max_iter=int(self.max_iter),
            memory=memory_plan(self),
            n_jobs=self.n_jobs,
            n_levels=self.n_levels if isinstance(self.n_levels, str) else int(self.n_levels),
            stop_level=clustering_level(n, int(self.branching)) if has_rule else int(self.stop_level),
            branching=int(self.branching),
            n_sample=int(self.n_sample),
            partition=self._resolve_partition(),
        )

    def _resolve_partition(self) -> str:
        """k-means of the rows where the kernel is a function of products or distances, else in feature space."""
        if self.partition != "auto":
            return self.partition
        return "input" if self.kernel in KERNELS else "kernel"

    def _machines_before(
        self, kernel: Kernel, rows: TrainingRows, problems: Problems, limits: Limits, progress: Progress
    ) -> TrainedMachines | None:
        """The machines that this estimator was fitted to, for a fit to go on from; None if there are none.

        Of the same problem they have their certificates, of another one the nearest feasible points.
        """
        if not hasattr(self, "dual_coef_"):
            return None
        coef = self._coefficients()
        has_classes = isinstance(self, ClassifierMixin)
        if coef.shape[0] != len(problems) or (has_classes and not np.array_equal(self.classes_, rows.classes)):
            return None
        if np.isinf(self.dual_gap_) and np.isfinite(self.objective_):  # of a sample alone
            return None
        state = self._resumed
        if state is not None and state["fingerprint"] == fingerprint(kernel, rows.X, problems):
            division = None if state["labels"] is None else self._division(state["labels"])
            return machines_of_state(state, problems, limits, division, self.levels_)
        is_local = not isinstance(rows.X, RemoteRows)
        vectors = self.support_vectors_ if is_local and not self._is_gram else None
        places = find_rows(self.support_, vectors, rows.kept, rows.X)
        division, intercepts = None, self.intercept_[:, None]
        if is_local and self._clusters is not None:
            intercepts = self._clusters["intercepts"]
            division = self._division(self._route_rows(rows, places, progress))
        return machines_of_coefficients(coef, places, problems, division, intercepts, self.levels_)

    def _division(self, labels: Labels) -> Division:
        """The division of the fitted early machine, with the clusters (n,) of the rows of this fit."""
        assert self._clusters is not None
        return Division(self._model.router, labels, np.empty(0, np.intp), self._clusters["points"])

    def _route_rows(self, rows: TrainingRows, places: RowIndices, progress: Progress) -> Labels:
        """The clusters (n,) of the rows; of the support vectors alone, where there is no time for more."""
        assert self._clusters is not None
        if progress.go_on():
            with suppress(Stopped), ThreadTeam(self.n_jobs) as team, progress.interrupting(team.native):
                return np.asarray(self._model.router.route(rows.X, team), np.intp)
        labels = np.zeros(len(rows.kept), np.intp)
        labels[places[places >= 0]] = self._clusters["support_labels"][places >= 0]
        return labels

    def _snapshot(self, rows: TrainingRows, progress: Progress) -> dict[str, Any] | None:
        """The attributes of a single machine, in the rounds of the whole problem."""
        solution = progress.current_solution
        if (
            is_dask_collection(rows.X)
            or len(self._machine_sizes(rows)) > 1
            or solution is None
            or len(solution[0]) != len(rows.weights)
        ):
            return None
        beta, intercept = solution
        point = DualResult(beta, np.zeros_like(beta), intercept, 0.0, 0.0, 0.0, False, 0, History())
        stopped = copy.copy(self)
        machines = TrainedMachines.join([TrainedMachine.exact(point)])
        stopped._set_machines(rows, machines)
        kernel = self._make_kernel()
        if self._may_centre and sample_form(kernel, rows.X) != kernel.sample_form:
            stopped._move_intercepts(view_samples(rows.X, "distances").shift)
        return {**stopped.__dict__, "_model": stopped._make_model()}

    def _warn_unconverged(self, violation: float, progress: Progress) -> None:
        certificate = f"violation {violation:.3g} where tol={self.tol:g}, {describe_gap(self)}"
        if self.early_level_ and not self.stop_level:
            certificate += f", of the early prediction of level {self.early_level_}"
        limit = "max_iter" if 0 <= self.max_iter <= self.n_iter_ else "the precision of float64"
        warn_unconverged(self, progress.stopped_by or limit, certificate)

    def _make_model(self) -> KernelExpansion | ClusteredExpansion:
        kernel = self._make_kernel()
        points = self.support_ if self._is_gram else self.support_vectors_
        if self._clusters is not None:
            averages = isinstance(self, ClassifierMixin)  # an uncertain row is one near a margin between classes
            return clustered_model(kernel, points, self._coefficients(), self._clusters, averages=averages)
        return KernelExpansion(kernel, points, self._coefficients(), self.intercept_)

    def _check_state(self, fitted: FittedState) -> None:
        super()._check_state(fitted)
        self._check_dtype_and_weights(fitted)
        fitted.check_certificate()
        d = self.n_features_in_
        n = len(fitted.array("support_", np.integer, None, least=0, below=d if self._is_gram else None))
        if self._is_gram:
            fitted.array("support_vectors_", np.float64, 0, 0)
        else:
            fitted.rows("support_vectors_", self._dtype, n, d)
        n_machines = self._check_coefficients(fitted, n)
        fitted.array("intercept_", np.float64, n_machines)
        if fitted.integer("early_level_", 0):
            clusters = fitted.nested("_clusters")
            check_clusters(clusters, self._dtype, n_machines=n_machines, n_support=n, d=d, is_gram=self._is_gram)
        elif fitted.value("_clusters") is not None:
            raise ValueError(f"_clusters must be None where early_level_ is 0, got {self._clusters!r}")
        if self._resumed is not None:
            check_state(fitted.nested("_resumed"), n_machines)


def _merge_equal_rows(rows: TrainingRows) -> TrainingRows:
    """One row for equal rows of one class, with the sum of their weights, where many rows are equal.

    The primal objective is the same; the dual has one variable for these rows, whose bound is the sum of theirs.
    """
    numbers = find_equal_rows(rows.X, rows.y)
    if numbers is None:
        return rows
    _, first = np.unique(numbers, return_index=True)
    weights = np.bincount(numbers, rows.weights).astype(np.float64)
    if not np.isfinite(weights).all():
        return rows
    return rows._replace(X=rows.X[first], y=rows.y[first], weights=weights, kept=rows.kept[first])
