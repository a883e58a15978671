"""Nanoseconds of a kernel entry on one thread: in a kernel matrix, one with its transpose, and a weighted sum of rows.

`--label before`, with PYTHONPATH of an earlier version, measures that beside. `laplacian_entries` alternates between
the Laplacian kernel and RBF, on dense rows and on CSR rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from measuring.experiment import Experiment, Row, Run
from measuring.problems import load_problem
from widemargin._threads import ThreadTeam
from widemargin.data.samples import Samples, make_samples
from widemargin.kernels.functions import RBF, Kernel, Laplacian
from widemargin.kernels.tiles import add_kernel_product, fill_gram, fill_with_transpose

_OLD_ROWS, _NEW_ROWS, _MOST = 4000, 3000, 20_000
_REPEATS = 9

Case = tuple[dict[str, Any], Kernel, Samples]


def cases(name: str, *, has_laplacian: bool) -> list[Case]:
    """RBF on the rows as it holds them, or both kernels on dense rows and on CSR rows; with columns of the table."""
    base, _, n_rows = name.partition(":")
    problem = load_problem(base, n_rows=int(n_rows) if n_rows else None)
    X, known = problem.X[:_MOST], {"set": base, "n_features": problem.X.shape[1]}
    rbf = RBF(problem.gamma)
    if not has_laplacian:
        return [(known, rbf, make_samples(X, "distances"))]
    return [
        ({**known, "rows": form, "kernel": type(kernel).__name__.lower()}, kernel, make_samples(rows))
        for form, rows in (("dense", X), ("CSR", sp.csr_array(X)))
        for kernel in (rbf, Laplacian(problem.gamma))
    ]


def _entries(name: str, run: Run) -> list[Row]:
    return measure(cases(name, has_laplacian=False), run.label) if run.wants(set=name, label=run.label) else []


def _laplacian(name: str, run: Run) -> list[Row]:
    return measure(cases(name, has_laplacian=True), run.label) if run.wants(set=name, label=run.label) else []


def measure(compared: list[Case], label: str) -> list[Row]:
    """A row of the table for each case: the least of nine runs of each kind, in turns."""
    best: list[dict[str, float]] = [{} for _ in compared]
    K = np.empty((_OLD_ROWS + _NEW_ROWS, _OLD_ROWS + _NEW_ROWS + 500), np.float32)
    with threadpool_limits(1):
        for _ in range(_REPEATS):
            for (_, kernel, samples), least in zip(compared, best, strict=True):
                for kind, nanoseconds in _run(kernel, samples, K).items():
                    least[kind] = min(nanoseconds, least.get(kind, np.inf))
    return [{"label": label, **known, **least} for (known, _, _), least in zip(compared, best, strict=True)]


def _run(kernel: Kernel, samples: Samples, K: NDArray[np.float32]) -> dict[str, float]:
    """Nanoseconds of an entry, by kind; matrices are parts of K."""
    old, new = samples.take(slice(0, _OLD_ROWS)), samples.take(slice(_OLD_ROWS, _OLD_ROWS + _NEW_ROWS))
    left, below, above = K[:_OLD_ROWS, :_OLD_ROWS], K[_OLD_ROWS:, :_OLD_ROWS], K[:_OLD_ROWS, _OLD_ROWS:][:, : len(new)]
    below, coef, sums, team = below[: len(new)], np.ones((1, len(old))), np.zeros((1, len(samples))), ThreadTeam(1)
    return {
        "matrix": _nanoseconds(lambda: fill_gram(kernel, old, left, team), left.size),
        "with transpose": _nanoseconds(
            lambda: fill_with_transpose(kernel, new, old, below, above, team), below.size + above.size
        ),
        "sum": _nanoseconds(
            lambda: add_kernel_product(kernel, old, coef, samples, sums, team), len(old) * len(samples)
        ),
    }


def _nanoseconds(call: Callable[[], None], n_entries: int) -> float:
    begin = time.process_time()  # not that of other processes
    call()
    return 1e9 * (time.process_time() - begin) / n_entries


ENTRIES = Experiment(
    "kernel_entries",
    ("a9a", "codrna", "covtype_20k", "ijcnn1", "letter", "patches", "usps"),
    ("set", "label"),
    _entries,
    settings={"label": "now"},
    parts=True,
)
LAPLACIAN = ENTRIES._replace(
    results="laplacian_entries",
    cells=("codrna", "letter", "covtype_20k", "a9a"),
    keys=("set", "label", "rows", "kernel"),
    measure=_laplacian,
)
