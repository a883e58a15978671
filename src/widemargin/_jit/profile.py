"""Compiled hinge risk with the best intercept: r(f) = min_b sum_i s_i max(0, 1 - y_i (f_i + b)).

With v_i = y_i - f_i the hinges are max(0, y_i (v_i - b)), and the best b is the smallest value up to which the weights
s sum to those of the positive rows.
"""

from ._policy import kernel


@kernel
def _select(values, weights, level):
    """The smallest of the values up to which the weights sum to `level`. Both arrays are permuted. O(n) expected."""
    first, end = 0, values.shape[0]
    while end - first > 1:
        a, b, c = values[first], values[(first + end) // 2], values[end - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        below, here = 0.0, 0.0
        left, i, right = first, first, end
        while i < right:  # three ways: < pivot, = pivot, > pivot
            value = values[i]
            if value < pivot:
                below += weights[i]
                values[i], values[left] = values[left], value
                weights[i], weights[left] = weights[left], weights[i]
                left += 1
                i += 1
            elif value > pivot:
                right -= 1
                values[i], values[right] = values[right], value
                weights[i], weights[right] = weights[right], weights[i]
            else:
                here += weights[i]
                i += 1
        if level <= below and left > first:
            end = left
        elif level <= below + here or right == end:
            return pivot
        else:
            level -= below + here
            first = right
    return values[first]


@kernel
def find_quantile(values, weights, level):
    """The smallest of the values up to which the weights sum to `level`: the best intercept, of values y - f.

    Given   values, weights (n,) float64, permuted
    Cost    O(n) expected
    Twin    tests/naive/cutting_plane.py::profile_risk
    """
    return _select(values, weights, level)


@kernel
def values_between(f, target, k, signed, lo, hi, values, kept, weights):
    """The values y - f at f + k (target - f), and those of them that a quantile is known to be among.

    Given   f, target, signed (n,) = s y; values (n,), overwritten; kept, weights (n,), their heads overwritten with
            the values in [lo, hi] and their s
    Returns how many are kept; the weight of values below lo; of those up to hi
    Cost    O(n), one pass; no branch to mispredict
    Source  Floyd and Rivest, Expected Time Bounds for Selection, CACM 18, 1975, with weights
    """
    count, below, upto = 0, 0.0, 0.0
    for i in range(f.shape[0]):
        s = abs(signed[i])
        value = (1.0 if signed[i] > 0.0 else -1.0) - (f[i] + k * (target[i] - f[i]))
        values[i] = value
        below += s if value < lo else 0.0
        upto += s if value <= hi else 0.0
        kept[count], weights[count] = value, s
        count += (lo <= value) & (value <= hi)
    return count, below, upto


@kernel
def advance_profile(f, target, signed, step, best, values, near, coef):
    """Move to the best point of the line, and read off the plane near it, but for the rows on the border.

    Given   f (n,) outputs of the old best point, replaced by those of the new one, f + step (target - f); target,
            signed (n,); best, the new point's best intercept; values (n,), y - f near it, and near, their best
            intercept; coef (n,), overwritten: the plane's weight of each row
    Returns the risk at the new best point; the plane's offset; the excess of s y over violating rows; the weight of
            positive and of negative rows on the border
    Cost    O(n), one pass or two
    """
    if step != 0.0:  # else f may be the target itself, and the loop would not be vectorised
        for i in range(f.shape[0]):
            f[i] += step * (target[i] - f[i])
    risk, offset, excess, plus, minus = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(f.shape[0]):
        s = abs(signed[i])
        is_positive = signed[i] > 0.0
        y = 1.0 if is_positive else -1.0
        risk += s * max(0.0, 1.0 - y * (f[i] + best))
        is_violated = ((values[i] > near) & is_positive) | ((values[i] < near) & (not is_positive))
        offset += s if is_violated else 0.0
        excess += signed[i] if is_violated else 0.0
        coef[i] = -signed[i] if is_violated else 0.0
        plus += s if (values[i] == near) & is_positive else 0.0
        minus += s if (values[i] == near) & (not is_positive) else 0.0
    return risk, offset, excess, plus, minus


@kernel
def share_border(values, signed, near, on_plus, on_minus, coef):
    """Let rows on the border count in part: which part of the positive and of the negative ones. coef is updated."""
    for i in range(values.shape[0]):
        if values[i] == near:
            coef[i] = -(on_plus if signed[i] > 0.0 else on_minus) * signed[i]
