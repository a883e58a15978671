"""Gaussian classes, or word counts of Zipf's law."""

from __future__ import annotations

from typing import Any

from benchopt import BaseDataset


class Dataset(BaseDataset):  # type: ignore[misc]
    """Dense or sparse rows."""

    name = "Simulated"
    parameters = {"kind": ["dense", "sparse"], "n": [10_000, 100_000]}
    requirements = ["numpy", "scipy"]

    def get_data(self) -> dict[str, Any]:
        """Rows and labels."""
        import numpy as np
        import scipy.sparse as sp

        rng = np.random.default_rng(0)
        if self.kind == "dense":
            y = rng.choice([-1.0, 1.0], self.n)
            return {"X": rng.normal(size=(self.n, 50)) * rng.uniform(0.1, 3, 50) + 0.3 * y[:, None], "y": y}
        d, n_words = 20_000, 60
        words = np.minimum(rng.zipf(1.3, (self.n, n_words)) - 1, d - 1)
        X = sp.csr_matrix((np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, n_words)), (self.n, d))
        X.sum_duplicates()
        X.data = np.log1p(X.data) / n_words**0.5
        f = X @ rng.normal(size=d) + rng.normal(size=self.n) * 0.3
        return {"X": X, "y": np.where(f > np.median(f), 1.0, -1.0)}
