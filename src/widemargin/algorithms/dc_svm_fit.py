"""DC-SVM wherever the rows are: the entry of the estimators.

Of rows in this process one machine is trained by `dc_svm`, several by `pairs_and_targets`; of `RemoteRows`, which are
on the workers of a dask cluster, all machines by `dc_svm_on_dask`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._progress import Progress
from .._types import RowIndices, Vector
from ..data.remote.remote_rows import RemoteRows
from ..data.samples import Samples, SampleSubset, make_samples
from ..kernels.functions import Kernel
from ..kernels.precision import ensure_precision
from . import dc_svm, pairs_and_targets
from .dc_svm import DCSVMSettings, KernelProblem, LazyProblem, Problems
from .dc_svm_on_dask import train_on_workers
from .trained_machines import TrainedMachine, TrainedMachines


def train(
    data: KernelProblem,
    settings: DCSVMSettings,
    progress: Progress,
    rng: np.random.Generator,
    *,
    start: Vector | None = None,
) -> TrainedMachine:
    """`dc_svm.train`, also of `RemoteRows` as samples: an early machine with a `stop_level`, else the exact one."""
    rows = data.samples
    if not isinstance(rows, RemoteRows):
        return dc_svm.train(data, settings, progress, rng, start=start)
    whole = np.arange(len(rows))
    problems: list[LazyProblem] = [lambda: (whole, data.problem)]
    (machine,) = train_on_workers(data.kernel, rows, problems, settings, progress, rng, start=start)
    return replace(machine, rows=None)


def train_several(
    kernel: Kernel,
    samples: Samples | RemoteRows,
    problems: Problems,
    settings: DCSVMSettings,
    progress: Progress,
    rng: np.random.Generator,
) -> TrainedMachines:
    """`pairs_and_targets.train_several`, also of `RemoteRows`: one after the other, on one division of the rows."""
    if not isinstance(samples, RemoteRows):
        return pairs_and_targets.train_several(kernel, samples, problems, settings, progress, rng)
    progress.stage(f"{len(problems)} machines", len(problems))
    each = [problems[p] for p in range(len(problems))]
    return TrainedMachines.join(train_on_workers(kernel, samples, each, settings, progress, rng))


def take_samples(kernel: Kernel, samples: Samples | RemoteRows, rows: RowIndices) -> Samples:
    """Some of the samples; those of `RemoteRows` are brought here."""
    if not isinstance(samples, RemoteRows):
        return SampleSubset(samples, rows)
    return ensure_precision(kernel, make_samples(samples[rows], kernel.sample_form))
