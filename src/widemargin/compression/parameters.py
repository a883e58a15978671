"""The parameters of `compress`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..estimators._cost import check_cost
from ..estimators._validation import check_resources, check_seed


@dataclass
class CompressionParameters:
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
        """Raise a ValueError that names the first invalid one and its value."""
        check_cost(self)
        check_resources(self)
        check_seed(self.random_state)
