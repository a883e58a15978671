"""Compiled loops of local Nystroem machines over panels of narrow rows.

A panel holds 64 rows that meet the same points, feature by feature: every inner loop runs over 64 rows side by side,
where a sum over a row's own few features would be shorter than a vector. A panel that is not full repeats its last row.
"""

import numpy as np

from ._policy import kernel
from .workspace import PRODUCTS, SQUARES

LANES = 64


@kernel
def gather(label, n_groups, rows, group):
    """Put rows of one label together, in their order; those of negative labels nowhere. Returns the panels used.

    Given   label (b,) int32, below n_groups; rows (p, LANES) int32 and group (p,) int32, of at least b / LANES +
            n_groups panels: written
    Cost    three passes over the labels
    Twin    tests/naive/nystrom.py::gather
    """
    place = np.zeros(n_groups, np.int64)
    for i in range(label.size):
        if label[i] >= 0:
            place[label[i]] += 1
    n_panels = 0
    for c in range(n_groups):
        n_rows, place[c] = place[c], n_panels * LANES
        for _ in range(0, n_rows, LANES):
            group[n_panels] = c
            n_panels += 1
    for i in range(label.size):
        if label[i] >= 0:
            at = place[label[i]]
            rows[at // LANES, at % LANES] = i
            place[label[i]] = at + 1
    for c in range(n_groups):
        last = place[c] - 1
        for at in range(last + 1, last + 1 + -(last + 1) % LANES):
            rows[at // LANES, at % LANES] = rows[last // LANES, last % LANES]
    return n_panels


@kernel
def _fill(panel, X, rows, p):
    for lane in range(LANES):
        i = rows[p, lane]
        for k in range(X.shape[1]):
            panel[k, lane] = X[i, k]


@kernel
def _term(kind, v, u):
    if kind == PRODUCTS:
        return v * u
    t = v - u
    return t * t if kind == SQUARES else abs(t)


@kernel
def _measure_all(kind, panel, points, m, out):
    """Sums over the features for the first m points, four features at a time."""
    d = len(panel)
    for j in range(m):
        u, sums = points[j], out[j]
        sums[:] = 0
        for k in range(0, d - 3, 4):
            a, b, c, e = panel[k], panel[k + 1], panel[k + 2], panel[k + 3]
            u0, u1, u2, u3 = u[k], u[k + 1], u[k + 2], u[k + 3]
            for lane in range(LANES):
                near = _term(kind, a[lane], u0) + _term(kind, b[lane], u1)
                far = _term(kind, c[lane], u2) + _term(kind, e[lane], u3)
                sums[lane] += near + far
        for k in range(d - d % 4, d):
            for lane in range(LANES):
                sums[lane] += _term(kind, panel[k, lane], u[k])


@kernel
def descend(X, rows, node, tree, label):
    """Move the rows of every panel one level down the tree, to the nearest child.

    Given   X (b, d); rows, node of `gather`; tree a workspace.Tree; label (b,) int32, written: a node, or -1 - leaf
    Cost    branching distances a row, and the copy of its features
    Twin    tests/naive/nystrom.py::route
    """
    panel = np.empty((X.shape[1], LANES), X.dtype)
    distances = np.empty((tree.centres.shape[1], LANES), X.dtype)
    nearest, best = np.empty(LANES, X.dtype), np.empty(LANES, np.int32)
    for p in range(len(rows)):
        _fill(panel, X, rows, p)
        size = tree.sizes[node[p]]
        _measure_all(np.int64(SQUARES), panel, tree.centres[node[p]], size, distances)  # of a literal, a copy compiles
        nearest[:], best[:] = np.inf, 0
        for j in range(size):
            for lane in range(LANES):
                best[lane] = j if distances[j, lane] < nearest[lane] else best[lane]
                nearest[lane] = min(distances[j, lane], nearest[lane])
        for lane in range(LANES):
            label[rows[p, lane]] = tree.children[node[p], best[lane]]


@kernel
def measure(X, rows, leaf, landmarks, kind, slopes, F):
    """Products or distances of rows and the m landmarks of their leaves, and products with q slopes.

    Given   X (b, d); rows, leaf of `gather`, p panels; landmarks (k, m, d); kind PRODUCTS, SQUARES or DIFFERENCES;
            slopes (k, q, d); F (p (m + q), LANES): written, the landmarks of all panels first
    Cost    (m + q) d multiply-adds a row, or twice as many for distances, and the copy of its features
    Twin    tests/naive/nystrom.py::measure
    """
    panel = np.empty((X.shape[1], LANES), X.dtype)
    n_panels, m, q = len(rows), landmarks.shape[1], slopes.shape[1]
    for p in range(n_panels):
        _fill(panel, X, rows, p)
        _measure_all(kind, panel, landmarks[leaf[p]], m, F[p * m :])
        _measure_all(np.int64(PRODUCTS), panel, slopes[leaf[p]], q, F[n_panels * m + p * q :])


@kernel
def answer(F, rows, leaf, coef, products, n_slopes, intercept, out):
    """Each row's decision values: <coef, f> + <f, P f> + a linear part + intercept.

    Given   F of `measure`, kernel values in place of the landmarks' measures; rows, leaf of `gather`; coef (k, q, m)
            float64; products (k, q, m, m), their lower triangles, or (k, q, 0, 0); n_slopes q, or 0 without a linear
            part; intercept (k, q) float64; out (b, q) float64: written
    Cost    q (m + m^2 / 2) multiply-adds a row
    Twin    tests/naive/nystrom.py::answer
    """
    n_panels, m = len(rows), coef.shape[2]
    part, total = np.empty(LANES, F.dtype), np.empty(LANES)
    for p in range(n_panels):
        c, f = leaf[p], F[p * m : (p + 1) * m]
        for q in range(out.shape[1]):
            total[:] = intercept[c, q]
            if n_slopes:
                line = F[n_panels * m + p * n_slopes + q]
                for lane in range(LANES):
                    total[lane] += line[lane]
            for a in range(m):
                part[:] = coef[c, q, a]
                if products.shape[2]:
                    _add_products(part, f, products[c, q, a], a + 1)
                for lane in range(LANES):
                    total[lane] += part[lane] * f[a, lane]
            for lane in range(LANES):
                out[rows[p, lane], q] = total[lane]


@kernel
def _add_products(part, f, weights, n):
    """Add the sum of the first n values times their weights, four at a time."""
    for b in range(0, n - 3, 4):
        w0, w1, w2, w3 = weights[b], weights[b + 1], weights[b + 2], weights[b + 3]
        for lane in range(LANES):
            part[lane] += w0 * f[b, lane] + w1 * f[b + 1, lane] + w2 * f[b + 2, lane] + w3 * f[b + 3, lane]
    for b in range(n - n % 4, n):
        for lane in range(LANES):
            part[lane] += weights[b] * f[b, lane]
