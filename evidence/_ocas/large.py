"""The paper's largest problems: 15 million dense rows in a mapped file, and as many sparse ones as memory holds.

Its human splice set, "15 million examples (about 32 GB in size)" at 16 bytes an entry, has some 140 entries a row. That
is what letters of a sequence give, each as one of four columns: here 141 random letters, 564 columns, and the sign of
a noisy linear function of them, positive in one row of ten. In CSR, 8 bytes an entry, 8 million rows take 9 GB.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib.format import open_memmap

from evidence._ocas import ours
from measuring import process
from measuring.experiment import Experiment, Row, Run
from measuring.linear_problems import Linear, gaussian_blocks, make_linear

_ROWS = {"gaussians": 15_000_000, "letters": 8_000_000}
_COSTS = {"gaussians": (0.01,), "letters": (0.0001,)}  # the latter is the paper's
_LETTERS, _BLOCK = 141, 100_000
_BUDGET = 2**31  # less than the file's 3 GB


def _large(name: str, options: Run) -> Iterator[Row]:
    n = options.rows or _ROWS[name]
    for C in options.C or _COSTS[name]:
        if options.wants(set=name, n=n, C=C):
            yield {"set": name, "n": n, "C": C, **process.run_apart(measure, name, n, C)}


def measure(name: str, n: int, C: float) -> Row:
    """In a process of its own: make the rows, fit on two threads, and watch what is allocated."""
    with tempfile.TemporaryDirectory() as folder:
        problem = _MAKERS[name](n, Path(folder))
        X, held = problem.X, anonymous_bytes()
        n_bytes = X.indices.nbytes + X.data.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
        budget = min(_BUDGET, n_bytes // 2) if name == "gaussians" else _BUDGET
        ours.warm_up(problem._replace(X=X[:1000], labels=problem.labels[:1000]))
        with Watch(anonymous_bytes) as watch:
            model, seconds = ours.fit(problem, C, n_jobs=2, memory_budget=budget)
    measured = {"columns": X.shape[1], "gigabytes": n_bytes / 1e9, "seconds": seconds, "rounds": model.n_iter_}
    measured |= {"extra_mb": (watch.peak - held) / 1e6, "budget_mb": budget / 1e6}
    return measured | {"objective": model.objective_, "gap": model.relative_gap_, "converged": bool(model.converged_)}


def _map_gaussians(n: int, folder: Path) -> Linear:
    """Two Gaussians, written block by block to a file, which is mapped."""
    path, labels = folder / "rows.npy", np.empty(n, np.int64)
    X = open_memmap(path, "w+", np.float32, (n, 50))
    for rows, block, own in gaussian_blocks(n):
        X[rows], labels[rows] = block, own
    X.flush()
    del X
    return make_linear("gaussians", np.load(path, mmap_mode="r"), labels)


def _make_letters(n: int, folder: Path) -> Linear:
    """Random letters, one column of four for each place: CSR with 32-bit indices."""
    values = np.random.default_rng(0).standard_normal(4 * _LETTERS)
    columns, labels = np.empty((n, _LETTERS), np.int32), np.empty(n, np.int64)
    for start in range(0, n, _BLOCK):
        rng, rows = np.random.default_rng([0, start]), slice(start, min(start + _BLOCK, n))
        drawn = rng.integers(4, size=(rows.stop - start, _LETTERS), dtype=np.int32)
        columns[rows] = drawn + 4 * np.arange(_LETTERS, dtype=np.int32)
        f = values[columns[rows]].sum(axis=1) - values.sum() / 4 + 6.0 * rng.standard_normal(rows.stop - start)
        labels[rows] = np.where(f > 15.5, 1, -1)
    indptr = np.arange(0, columns.size + 1, _LETTERS, dtype=np.int32)
    X = sp.csr_array((np.ones(columns.size, np.float32), columns.reshape(-1), indptr), shape=(n, 4 * _LETTERS))
    return make_linear("letters", X, labels)


_MAKERS: dict[str, Callable[[int, Path], Linear]] = {"gaussians": _map_gaussians, "letters": _make_letters}


_STATUS = Path("/proc/self/status")


def anonymous_bytes() -> int:
    """Resident bytes without those of mapped files, whose pages the system can drop."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError("no RssAnon in /proc/self/status: this experiment needs Linux")


class Watch:
    """The largest value of a function, which a thread calls every two milliseconds."""

    def __init__(self, look: Callable[[], int]) -> None:
        self.peak = look()
        self._look = look
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(0.002):
            self.peak = max(self.peak, self._look())


LARGE = Experiment(  # the paper's size: 15 million rows in a mapped file, and sparse rows of 141 letters
    "ocas/large",
    tuple(_ROWS),
    ("set", "n", "C"),
    _large,
    settings=ours.SETTINGS,
    parts=True,
    seconds=35.0,
)
