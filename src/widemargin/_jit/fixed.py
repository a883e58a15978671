"""Compiled steps of stochastic gradient descent on a machine whose points are rows of the data and never move.

The kernel's values come as a block: its rows are r new samples; points and new samples have columns of their own, in
the order of their coming, and columns of neither are zero. What is kept is ``lam t w``, as in `budget`.
"""

import numpy as np

from ._policy import kernel

STEPS, COUNT, _, VIOLATIONS, MERGERS, REMOVALS = range(6)
BIAS, BIAS_LAG, CLOCK, WEIGHT, WEIGHTS, HINGE, DEGRADATION = range(7)
REMOVAL, PROJECTION = range(2)
_DEPENDENT = 1e-4  # a point this near to the span of the others (squared, relative) is projected at once


@kernel
def _drop_lightest(coef, diagonal):
    """Remove the point of least |coefficient|^2 k(x, x), the oldest of equals; returns that weight."""
    best, least = -1, np.inf
    for j in range(coef.shape[1]):
        weight = coef[0, j] * coef[0, j] * diagonal[j]
        if coef[0, j] != 0.0 and weight < least:
            best, least = j, weight
    coef[:, best] = 0.0
    return least


@kernel
def _project_out(coef, inverse):
    """Remove the point whose best approximation by the others is the least change; returns its squared norm."""
    best, least = -1, np.inf
    for j in range(coef.shape[1]):
        if inverse[j, j] > 0.0 and coef[0, j] * coef[0, j] < least * inverse[j, j]:
            best, least = j, coef[0, j] * coef[0, j] / inverse[j, j]
    column = inverse[best] / inverse[best, best]
    pivot = inverse[best, best]
    for row in range(2):
        share = coef[row, best]
        for j in range(coef.shape[1]):
            coef[row, j] -= share * column[j]
        coef[row, best] = 0.0
    for j in range(inverse.shape[0]):
        for k in range(inverse.shape[0]):
            inverse[j, k] -= pivot * column[j] * column[k]
    inverse[best, :] = 0.0
    inverse[:, best] = 0.0
    return least


@kernel
def _project_in(new, row, norm, inverse, v):
    """v = the best approximation of a new point by the others; enter it into the inverse if that is too far off.

    Returns the squared distance from their span, and whether the point was entered.
    """
    distance = norm
    for j in range(v.size):
        total = 0.0
        for k in range(v.size):
            total += inverse[j, k] * row[k]
        v[j] = total
        distance -= total * row[j]
    if distance <= _DEPENDENT * norm:
        return max(distance, 0.0), False
    for j in range(v.size):
        for k in range(v.size):
            inverse[j, k] += v[j] * v[k] / distance
    for j in range(v.size):
        inverse[new, j] = inverse[j, new] = -v[j] / distance
    inverse[new, new] = 1.0 / distance
    return distance, True


@kernel
def _tick(t, pace, sums, lag):
    """As in `budget`: weights grow like t^3, and by a factor of 1 + pace where points change."""
    sums[WEIGHT] *= 1.0 + 3.0 / t + pace
    sums[CLOCK] += sums[WEIGHT] / t
    sums[WEIGHTS] += sums[WEIGHT]
    if sums[WEIGHT] > 1e100:
        unit = 1.0 / sums[WEIGHT]
        for at in (BIAS_LAG, CLOCK, WEIGHT, WEIGHTS):
            sums[at] *= unit
        for j in range(lag.size):
            lag[j] *= unit


@kernel
def fixed_steps(K, first, diagonal, push, coef, inverse, counts, sums, step):
    """One step on each row of a block; over budget, a point is removed or projected onto the others.

    Solve   as budget.merge_steps, for any kernel
    Given   K (r, c) float32; first: the column of the first new row; diagonal (c,) float64: k(x, x); push (r,):
            s_i y_i; coef (2, c) float64, zero for what is no point; inverse (c, c) float64, of the points' kernel
            matrix and zero elsewhere (projection), or (0, 0)
    Returns nothing; coef, inverse, counts and sums updated
    Cost    c operations a step; projection: 3 c^2 for a violation
    Source  Wang, Crammer, Vucetic 2012, sections 4.1 and 4.2. A^-1 k_i of a matrix less its row i is read off the whole
            inverse, -P[:, i] / P[i, i]: projecting point i out costs its coefficient^2 / P[i, i]
    Twin    tests/naive/budget.py::Machine.step with remove or project
    """
    v = np.zeros(inverse.shape[0])
    for t in range(K.shape[0]):
        row, weight, new, pace = K[t], push[t], first + t, 0.0
        f = sums[BIAS]
        for j in range(row.size):
            f += coef[0, j] * row[j]
        counts[STEPS] += 1
        margin = (f if weight > 0.0 else -f) * step.inverse_lam / max(counts[STEPS] - 1, 1)
        if margin < 1.0 and weight != 0.0:
            counts[VIOLATIONS] += 1
            sums[HINGE] += abs(weight) * (1.0 - margin)
            sums[BIAS] += step.intercept * weight
            sums[BIAS_LAG] += step.intercept * weight * sums[CLOCK]
            change, is_new = 0.0, True
            if step.rule == PROJECTION:
                distance, is_new = _project_in(new, row, diagonal[new], inverse, v)
                if not is_new:
                    change = weight * weight * distance
                    for j in range(v.size):
                        coef[0, j] += weight * v[j]
                        coef[1, j] += weight * sums[CLOCK] * v[j]
            if is_new:
                coef[0, new], coef[1, new] = weight, weight * sums[CLOCK]
                counts[COUNT] += 1
                if counts[COUNT] > step.budget:
                    change = _project_out(coef, inverse) if step.rule == PROJECTION else _drop_lightest(coef, diagonal)
                    counts[COUNT] -= 1
                    counts[REMOVALS] += 1
                    pace = 1.0 / step.budget
            sums[DEGRADATION] += change * (step.inverse_lam / counts[STEPS]) ** 2
        _tick(counts[STEPS], pace, sums, coef[1])
