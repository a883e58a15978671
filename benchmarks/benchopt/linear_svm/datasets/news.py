"""The 20 newsgroups; scikit-learn downloads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from benchopt import BaseDataset


class Dataset(BaseDataset):  # type: ignore[misc]
    """Half of the groups against the other half: tf-idf rows."""

    name = "20 newsgroups"
    requirements = ["scikit-learn"]

    def get_data(self) -> dict[str, Any]:
        """Rows and labels."""
        from sklearn.datasets import fetch_20newsgroups_vectorized

        X, y = fetch_20newsgroups_vectorized(return_X_y=True)
        return {"X": sp.csr_matrix(X, dtype=np.float64), "y": np.where(y < 10, -1.0, 1.0)}
