"""Weights of some rows that stand together, and which of them count."""

from ._policy import kernel

TOGETHER = 1024  # rows whose weights fit a first-level cache


@kernel
def load_weights(coef, since, c, first, end, weights):
    """The weights of row c of coef, less those of since, if it has any; return a view of the head of `weights`."""
    for i in range(first, end):
        weights[i - first] = coef[c, i]
    if since.shape[1] > 0:
        for i in range(first, end):
            weights[i - first] -= since[c, i]
    return weights[: end - first]


@kernel
def pick(weights, rows):
    """List the rows whose weight is not zero; return how many. No branch to mispredict."""
    count = 0
    for i in range(weights.shape[0]):
        rows[count] = i
        count += weights[i] != 0.0
    return count
