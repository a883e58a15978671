"""Compiled multiclass hinge of Crammer and Singer: sum_i s_i max_c (1[c != y_i] + f_ci - f_(y_i)i)."""

from ._policy import kernel


@kernel
def _worst(f, target, y, i, k):
    """The class that costs row i most at f + k (target - f), and what it costs; of equal ones the steepest."""
    own = y[i]
    base = f[own, i] + k * (target[own, i] - f[own, i])
    worst, cost, rate = own, 0.0, target[own, i] - f[own, i]
    for c in range(f.shape[0]):
        if c != own:
            c_rate = target[c, i] - f[c, i]
            margin = 1.0 + f[c, i] + k * c_rate - base
            if margin > cost or (margin == cost and c_rate > rate):
                worst, cost, rate = c, margin, c_rate
    return worst, cost


@kernel
def advance_margins(f, target, y, s, step, mu, coef):
    """Move to the best point of the line, and read off the plane near it.

    Given   f (K, n) outputs of the old best point, replaced by those of the new one, f + step (target - f); target;
            y (n,) int64, s (n,) float64; coef (K, n), overwritten: the plane's weights of each row
    Returns the risk at the new best point; the plane's offset
    Cost    O(n K)
    Source  Crammer and Singer 2001, JMLR 2; the subgradient as in Franc and Sonnenburg 2008
    Twin    tests/naive/cutting_plane.py::margin_risk
    """
    risk, offset = 0.0, 0.0
    for i in range(y.shape[0]):
        for c in range(f.shape[0]):
            f[c, i] += step * (target[c, i] - f[c, i])
            coef[c, i] = 0.0
        _, cost = _worst(f, target, y, i, 0.0)
        worst, _ = _worst(f, target, y, i, mu)
        risk += s[i] * cost
        if worst != y[i]:
            offset += s[i]
            coef[worst, i] = s[i]
            coef[y[i], i] = -s[i]
    return risk, offset


@kernel
def margin_slope(f, target, y, s, rows, k):
    """Derivative just after k of the risk of some rows along the line from f to target. O(len(rows) K)."""
    slope = 0.0
    for t in range(rows.shape[0]):
        i = rows[t]
        own = y[i]
        worst, _ = _worst(f, target, y, i, k)
        slope += s[i] * (target[worst, i] - f[worst, i] - target[own, i] + f[own, i])
    return slope


@kernel
def settle_margins(f, target, y, s, rows, lo, hi):
    """Keep at the front the rows whose worst class may change for lo <= k <= hi.

    A maximum of lines that the same line attains at both ends is that line in between.

    Returns how many are kept; what the others add to the derivative
    """
    kept, slope = 0, 0.0
    for t in range(rows.shape[0]):
        i = rows[t]
        own = y[i]
        worst, _ = _worst(f, target, y, i, lo)
        at_hi, _ = _worst(f, target, y, i, hi)
        if worst == at_hi:
            slope += s[i] * (target[worst, i] - f[worst, i] - target[own, i] + f[own, i])
        else:
            rows[kept] = i
            kept += 1
    return kept, slope
