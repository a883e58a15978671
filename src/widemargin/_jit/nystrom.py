"""Compiled loops of local Nystroem machines: route a row, measure its few landmarks, answer.

A row comes from a `workspace.Rows`, dense or sparse. Points are few and dense: they stay in the cache, and rows pass.
"""

import numpy as np

from ._policy import kernel
from .workspace import PRODUCTS, SQUARES

LOWER, UPPER = range(2)  # which bound stands for the distance to a pseudo-landmark


@kernel
def _term(measure, v, u):
    if measure == PRODUCTS:
        return v * u
    t = v - u
    return t * t if measure == SQUARES else abs(t)


@kernel
def _measure_dense(measure, x, points, out):
    """Sums over all features of a row, two points at a time; a last odd one comes by itself."""
    zero = x.dtype.type(0)
    for j in range(0, out.size, 2):
        other = min(j + 1, out.size - 1)
        u, w = points[j], points[other]
        s = t = zero
        for k in range(x.size):
            s += _term(measure, x[k], u[k])
            t += _term(measure, x[k], w[k])
        out[j], out[other] = s, t


@kernel
def _measure_sparse(measure, values, columns, points, at_zero, out):
    """Sums over the non-zeros of a row, which change what the zero row has."""
    zero = values.dtype.type(0)
    for j in range(out.size):
        u, s = points[j], at_zero[j]
        for k in range(values.size):
            s += _term(measure, values[k], u[columns[k]]) - _term(measure, zero, u[columns[k]])
        out[j] = s if measure == PRODUCTS or s > zero else zero  # rounding must not make a distance negative


@kernel
def _measure_row(measure, rows, i, points, at_zero, out):
    d = points.shape[1]
    if rows.starts.size == 0:
        _measure_dense(measure, rows.data[i * d : (i + 1) * d], points, out)
        return
    a, b = rows.starts[i], rows.starts[i + 1]
    _measure_sparse(measure, rows.data[a:b], rows.columns[a:b], points, at_zero, out)


# np.int64(SQUARES), not SQUARES: numba would compile one more copy for every literal
@kernel
def _find_leaf(rows, i, tree, distances):
    node = 0
    while node >= 0:
        size = tree.sizes[node]
        _measure_row(np.int64(SQUARES), rows, i, tree.centres[node], tree.at_zero[node], distances[:size])
        best = 0
        for j in range(1, size):
            best = j if distances[j] < distances[best] else best
        node = tree.children[node, best]
    return -1 - node


@kernel
def meet(rows, order, tree, leaf, landmarks, kind, F, slopes, linear):
    """Walk rows down a tree, to the child of the nearest centre, and compare them with the points of their leaves.

    Any of the three parts may be empty; all are one kernel, as every other would take a second to compile.

    Given   rows a workspace.Rows; order (b,) int64, which of them; tree a workspace.Tree; leaf (b,) int32, written, or
            read where the tree is empty; landmarks a workspace.Points of k leaves, m each; kind PRODUCTS, SQUARES or
            DIFFERENCES; F (b, >= m), its first m columns written; slopes a workspace.Points, q for each leaf; linear
            (b, q), products with these: written
    Cost    b (depth times branching + m + q) d multiply-adds, or twice as many for distances; of a sparse row its
            non-zeros
    Twin    tests/naive/nystrom.py::route, measure
    """
    m, q = landmarks.values.shape[1], linear.shape[1]
    distances = np.empty(tree.centres.shape[1], tree.centres.dtype)
    for r in range(order.size):
        i = order[r]
        if tree.sizes.size:
            leaf[r] = _find_leaf(rows, i, tree, distances)
        c = leaf[r]
        if m:
            _measure_row(kind, rows, i, landmarks.values[c], landmarks.at_zero[c], F[r, :m])
        if q:
            _measure_row(np.int64(PRODUCTS), rows, i, slopes.values[c], slopes.at_zero[c], linear[r])


@kernel
def bound(F, leaf, anchors, rules, power):
    """Estimate distances to pseudo-landmarks from those to the m landmarks: the columns of F after the first m.

    For a landmark u and a pseudo-landmark v, | |x - u| - |v - u| | <= |x - v| <= |x - u| + |v - u|; of all u, the
    closest bound is taken.

    Given   F (b, m + p): in the first m columns |x - u|^power; leaf (b,) int32; anchors (k, m, p): |v - u|; rules (k,)
            int64, LOWER or UPPER; power 1 or 2
    Cost    b m p times two or three operations
    Source  Hsieh, Si, Dhillon 2014 (DC-Pred++), equation 6
    Twin    tests/naive/nystrom.py::bound
    """
    m = anchors.shape[1]
    for r in range(leaf.size):
        c = leaf[r]
        near, far = F[r, :m], F[r, m:]
        is_lower = rules[c] == LOWER
        far[:] = 0 if is_lower else np.inf
        for j in range(m):
            square = max(near[j], near.dtype.type(0))  # of a sparse row, rounding errors may leave less
            distance = np.sqrt(square) if power == 2 else square
            row = anchors[c, j]
            if is_lower:
                for t in range(far.size):
                    gap = abs(distance - row[t])
                    far[t] = gap if gap > far[t] else far[t]
            else:
                for t in range(far.size):
                    way = distance + row[t]
                    far[t] = way if way < far[t] else far[t]
        if power == 2:
            for t in range(far.size):
                far[t] *= far[t]


@kernel
def answer(F, linear, order, leaf, coef, products, intercept, out):
    """Each row's decision values: <coef, f> + <f, P f> + a linear part + intercept.

    Given   F (b, r): in its first m columns the values of the landmarks; linear (b, q), or (b, 0) for none; order (b,)
            int64, rows of `out`; leaf (b,) int32; coef (k, q, r) float64; products (k, q, m, m), their lower triangles,
            or (k, q, 0, 0); intercept (k, q) float64; out (n, q) float64
    Cost    b q (r + m^2 / 2) multiply-adds
    Twin    tests/naive/nystrom.py::answer
    """
    m = products.shape[2]
    for r in range(order.size):
        c, row, into = leaf[r], F[r], out[order[r]]
        for q in range(into.size):
            weights = coef[c, q]
            total = intercept[c, q]
            if linear.shape[1]:
                total += linear[r, q]
            for j in range(row.size):
                total += weights[j] * row[j]
            for a in range(m):
                partners = products[c, q, a]
                part = row.dtype.type(0)
                for b in range(a + 1):
                    part += partners[b] * row[b]
                total += part * row[a]
            into[q] = total
