"""
Smooth losses sum s phi(f + intercept, y). Vectors are (n,) float64; y: targets, or labels 1 and -1.
"""
import numpy as np
from numpy.typing import NDArray
from . import Team

class SquaredHinge:
    """max(0, 1 - y z)^2"""

    def __init__(self) -> None:
        ...

    def line_derivatives(self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], intercept: float, intercept_end: float, y: NDArray[np.float64], s: NDArray[np.float64], k: float) -> tuple[float, float]:
        """
        First and second derivative at k of the risk on the segment from f + intercept to f_end + intercept_end.
        """

    def slope_sums(self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], k: float, intercept: float, y: NDArray[np.float64], s: NDArray[np.float64]) -> tuple[float, float, float]:
        """
        Weighted sums of the positive slopes at f + k (f_end - f) + intercept, of the negative ones, and of the
        second derivatives.
        """

    def advance(self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], step: float, intercept: float, y: NDArray[np.float64], s: NDArray[np.float64], positive_factor: float, negative_factor: float, coef: NDArray[np.float64], curvatures: NDArray[np.float64]) -> tuple[float, float]:
        """
        Replace f by f + step (f_end - f); write the row weights coef of the cutting plane at f + intercept, positive
        and negative ones multiplied by factors in [0, 1], and the weighted second derivatives there. Returns the risk
        and the plane's offset. f may be f_end where step is 0.
        """

    def model_slopes(self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], shift: float, coef: NDArray[np.float64], curvatures: NDArray[np.float64], y: NDArray[np.float64], s: NDArray[np.float64], out: NDArray[np.float64]) -> tuple[float, float]:
        """
        Write the weighted slopes coef + curvatures (f_end - f + shift), clipped to those of the loss. Returns the sums
        of the positive and of the negative ones.
        """

    def plane_offset(self, team: Team, y: NDArray[np.float64], s: NDArray[np.float64], positive_factor: float, negative_factor: float, coef: NDArray[np.float64]) -> float:
        """
        Multiply the weighted slopes coef by a factor in [0, 1] of the positive and of the negative ones; the offset of
        their plane, -sum s phi*(coef / s).
        """

class Logistic:
    """log(1 + exp(-y z))"""

    def __init__(self) -> None:
        ...

    def line_derivatives(self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], intercept: float, intercept_end: float, y: NDArray[np.float64], s: NDArray[np.float64], k: float) -> tuple[float, float]:
        """
        First and second derivative at k of the risk on the segment from f + intercept to f_end + intercept_end.
        """

    def slope_sums(self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], k: float, intercept: float, y: NDArray[np.float64], s: NDArray[np.float64]) -> tuple[float, float, float]:
        """
        Weighted sums of the positive slopes at f + k (f_end - f) + intercept, of the negative ones, and of the
        second derivatives.
        """

    def advance(self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], step: float, intercept: float, y: NDArray[np.float64], s: NDArray[np.float64], positive_factor: float, negative_factor: float, coef: NDArray[np.float64], curvatures: NDArray[np.float64]) -> tuple[float, float]:
        """
        Replace f by f + step (f_end - f); write the row weights coef of the cutting plane at f + intercept, positive
        and negative ones multiplied by factors in [0, 1], and the weighted second derivatives there. Returns the risk
        and the plane's offset. f may be f_end where step is 0.
        """

    def model_slopes(self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], shift: float, coef: NDArray[np.float64], curvatures: NDArray[np.float64], y: NDArray[np.float64], s: NDArray[np.float64], out: NDArray[np.float64]) -> tuple[float, float]:
        """
        Write the weighted slopes coef + curvatures (f_end - f + shift), clipped to those of the loss. Returns the sums
        of the positive and of the negative ones.
        """

    def plane_offset(self, team: Team, y: NDArray[np.float64], s: NDArray[np.float64], positive_factor: float, negative_factor: float, coef: NDArray[np.float64]) -> float:
        """
        Multiply the weighted slopes coef by a factor in [0, 1] of the positive and of the negative ones; the offset of
        their plane, -sum s phi*(coef / s).
        """

class SquaredEpsilonInsensitive:
    """max(0, |z - y| - epsilon)^2"""

    def __init__(self, epsilon: float) -> None:
        ...

    def line_derivatives(self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], intercept: float, intercept_end: float, y: NDArray[np.float64], s: NDArray[np.float64], k: float) -> tuple[float, float]:
        """
        First and second derivative at k of the risk on the segment from f + intercept to f_end + intercept_end.
        """

    def slope_sums(self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], k: float, intercept: float, y: NDArray[np.float64], s: NDArray[np.float64]) -> tuple[float, float, float]:
        """
        Weighted sums of the positive slopes at f + k (f_end - f) + intercept, of the negative ones, and of the
        second derivatives.
        """

    def advance(self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], step: float, intercept: float, y: NDArray[np.float64], s: NDArray[np.float64], positive_factor: float, negative_factor: float, coef: NDArray[np.float64], curvatures: NDArray[np.float64]) -> tuple[float, float]:
        """
        Replace f by f + step (f_end - f); write the row weights coef of the cutting plane at f + intercept, positive
        and negative ones multiplied by factors in [0, 1], and the weighted second derivatives there. Returns the risk
        and the plane's offset. f may be f_end where step is 0.
        """

    def model_slopes(self, team: Team, f: NDArray[np.float64], f_end: NDArray[np.float64], shift: float, coef: NDArray[np.float64], curvatures: NDArray[np.float64], y: NDArray[np.float64], s: NDArray[np.float64], out: NDArray[np.float64]) -> tuple[float, float]:
        """
        Write the weighted slopes coef + curvatures (f_end - f + shift), clipped to those of the loss. Returns the sums
        of the positive and of the negative ones.
        """

    def plane_offset(self, team: Team, y: NDArray[np.float64], s: NDArray[np.float64], positive_factor: float, negative_factor: float, coef: NDArray[np.float64]) -> float:
        """
        Multiply the weighted slopes coef by a factor in [0, 1] of the positive and of the negative ones; the offset of
        their plane, -sum s phi*(coef / s).
        """
