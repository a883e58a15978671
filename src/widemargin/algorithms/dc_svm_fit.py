"""DC-SVM wherever the rows are: the entry of the estimators.

Of rows in this process one machine is trained by `dc_svm`, several by `pairs_and_targets`; of `RemoteRows`, which are
on the workers of a dask cluster, early machines by `dc_svm_on_workers`.
"""

from __future__ import annotations

import numpy as np

from .._progress import Progress
from .._types import RowIndices
from ..data.remote.remote_rows import RemoteRows
from ..data.samples import Samples, SampleSubset, make_samples
from ..kernels.functions import Kernel
from ..kernels.precision import ensure_precision
from .dc_svm import DCSVMSettings, KernelProblem, Problems, train_machine
from .dc_svm_on_workers import train_on_workers
from .pairs_and_targets import SeveralMachines
from .trained_machines import TrainedMachines


def train_machines(
    kernel: Kernel,
    samples: Samples | RemoteRows,
    problems: Problems,
    settings: DCSVMSettings,
    progress: Progress,
    rng: np.random.Generator,
    *,
    before: TrainedMachines | None = None,
) -> TrainedMachines:
    """The machine of each problem, in this order: early ones with a `stop_level`, else the exact ones.

    The training goes on from the machines `before`, where these are given. Several machines of `RemoteRows` are
    trained one after the other, on one division of the rows.
    """
    if not isinstance(samples, RemoteRows):
        if len(problems) > 1:
            return SeveralMachines(kernel, samples, problems, settings, progress, rng).run(before)
        data, given = KernelProblem(kernel, samples, problems[0]()[1]), None if before is None else before[0]
        return TrainedMachines.join([train_machine(data, settings, progress, rng, before=given)])
    if len(problems) > 1:
        progress.stage(f"{len(problems)} machines", len(problems))
    each = [problems[p] for p in range(len(problems))]
    return TrainedMachines.join(train_on_workers(kernel, samples, each, settings, progress, rng, before=before))


def take_samples(kernel: Kernel, samples: Samples | RemoteRows, rows: RowIndices) -> Samples:
    """Some of the samples; those of `RemoteRows` are brought here."""
    if not isinstance(samples, RemoteRows):
        return SampleSubset(samples, rows)
    return ensure_precision(kernel, make_samples(samples[rows], kernel.sample_form))
