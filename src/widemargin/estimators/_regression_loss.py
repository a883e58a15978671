"""The loss of a regressor: `loss`, `epsilon` and `quantile` of `DCSVMRegressor` and `OCASRegressor`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np

from .._types import Given, Vector
from ..solvers.quantile import midpoint_quantile
from ._training_warnings import warn_of_target
from ._validation import check_choice, check_number

LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive", "absolute", "quantile")


def targets_and_slopes(y: Vector, slopes: Sequence[tuple[float, float]]) -> list[tuple[Vector, tuple[float, float]]]:
    """Of each machine the target (n,) of y (n,) or (n, n_targets), and the slopes of its loss."""
    targets = np.ascontiguousarray(y.reshape(len(y), -1).T)
    return list(zip(targets, cycle(slopes), strict=False))


class RegressionLoss:
    """A regressor whose losses rise on either side of a tube, or their squares."""

    C: float
    loss: str
    epsilon: float
    quantile: Given
    fit_intercept: bool
    objective_: float

    def _check_loss(self) -> None:
        check_choice("loss", self.loss, LOSSES)
        check_number("epsilon", self.epsilon, least=0)
        for name, value in self._named_quantiles():
            check_number(name, value, above=0, below=1)

    def _named_quantiles(self) -> list[tuple[str, Any]]:
        return [("quantile", self.quantile)]

    @property
    def _is_squared(self) -> bool:
        return self.loss == "squared_epsilon_insensitive"

    @property
    def _tube(self) -> float:
        """Half the width of the tube in which errors cost nothing."""
        return float(self.epsilon) if self.loss.endswith("epsilon_insensitive") else 0.0

    @property
    def _slopes(self) -> list[tuple[float, float]]:
        """The slopes of the loss where a target is above the prediction, and below it; of each quantile a pair."""
        if self.loss != "quantile":
            return [(1.0, 1.0)]
        return [(float(q), 1.0 - float(q)) for _, q in self._named_quantiles()]

    def _warn_of_target(
        self, y: Vector, s: Vector, slopes: tuple[float, float], decision: Vector, norm: float, objective: float
    ) -> bool:
        """Warn where C or epsilon leaves next to nothing to a machine; whether it did.

        `y` and `s` (n,) are targets and weights, `slopes` of `_slopes`, `decision` the decision values of all rows or
        of some; `norm` is |w|^2, `objective` the value of the primal problem.
        """
        C, above, below = float(self.C), *slopes

        def binding() -> float:
            """|w|^2 / (what C times the losses fall by, from those of a constant): 1 where w grows as C does."""
            if self._is_squared:
                return 0.0
            level = above / (above + below) * float(s.sum())
            residual = y - (midpoint_quantile(y, s, level) if self.fit_intercept else 0.0)
            losses = np.where(residual > 0, above, below) * np.maximum(np.abs(residual) - self._tube, 0.0)
            return norm / max(C * float(s @ losses) - (objective - 0.5 * norm), norm, np.finfo(np.float64).tiny)

        return warn_of_target(y, decision, C, self._tube, binding, f"{type(self).__name__}CV")
