"""Class 2 of covtype against the rest, columns on [0, 1]; scikit-learn downloads it."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):  # type: ignore[misc]
    """Random rows."""

    name = "covtype"
    parameters = {"n": [20_000, 464_809]}
    requirements = ["scikit-learn"]

    def get_data(self) -> dict[str, Any]:
        """Rows, labels and gamma."""
        from sklearn.datasets import fetch_covtype

        X, y = fetch_covtype(return_X_y=True, shuffle=True, random_state=0)
        X = X[: self.n] / X.max(axis=0)
        return {"X": X.astype(np.float32), "y": np.where(y[: self.n] == 2, 1, -1).astype(np.int8), "gamma": 32.0}
