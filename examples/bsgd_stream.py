"""Learn from a file that is larger than memory, chunk by chunk.

    python examples/bsgd_stream.py [rows]

Writes a file of `rows` rows of 20 numbers and a label (2,000,000 take 170 MB) into a temporary folder, reads it back
through a memory map in chunks of 50,000, and prints steps a second, accuracy on the last chunk before it is learnt, and
the peak memory beside the file, which does not depend on its size.
"""

import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np

from widemargin import BSGDClassifier

CHUNK, FEATURES = 50_000, 20


def write(path: Path, n_rows: int) -> None:
    """Write normal rows; the label, the last column, is the nearer of two centres."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(2, FEATURES))
    with path.open("wb") as file:
        for start in range(0, n_rows, CHUNK):
            X = rng.normal(size=(min(CHUNK, n_rows - start), FEATURES)).astype(np.float32)
            near, far = (((X - centre) ** 2).sum(axis=1) for centre in centres)
            np.column_stack([X, near < far]).astype(np.float32).tofile(file)


def learn(path: Path) -> None:
    """One pass: `lam` is 1 / (C n) where n is known, and a guess of it where it is not."""
    rows = np.memmap(path, np.float32, "r").reshape(-1, FEATURES + 1)
    model = BSGDClassifier(gamma=0.02, lam=1 / (10 * len(rows)), budget=200)
    tracemalloc.start()
    seconds, accuracy = 0.0, 0.0
    for start in range(0, len(rows), CHUNK):
        chunk = np.array(rows[start : start + CHUNK])  # the only copy
        X, y = np.ascontiguousarray(chunk[:, :-1]), chunk[:, -1] > 0
        if start:
            accuracy = float(model.score(X, y))
        begin = time.perf_counter()
        model.partial_fit(X, y, classes=[False, True])
        seconds += time.perf_counter() - begin
    peak = tracemalloc.get_traced_memory()[1]
    print(f"{len(rows):,} rows, {len(rows) / seconds:,.0f} steps a second, accuracy {accuracy:.3f} before learning the")
    print(f"last chunk, {len(model.support_vectors_)} support vectors, {peak / 2**20:.0f} MiB at the most")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.f32"
        write(file, int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)
        learn(file)
