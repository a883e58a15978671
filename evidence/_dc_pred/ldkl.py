"""Local deep kernel learning (Jose, Goyal, Aggrwal, Varma, ICML 2013): a tree with weights in every node.

f(x) = sum over the nodes k on the way of x of tanh(sigma v_k'x) w_k'x; a row goes left at node k where theta_k'x > 0.
Training makes the way smooth: a row goes left by (1 + tanh(s theta_k'x)) / 2, and s grows. Simplified here: Adam on
batches in place of the authors' subgradient steps, s grows in a fixed schedule.
"""

from __future__ import annotations

from typing import Any, Self

import numba
import numpy as np
from numpy.typing import NDArray

from evidence._dc_pred.rivals import Machine, Rows, Vector
from widemargin._threads import ThreadTeam, row_blocks

_SIGMA = 1.0
_SHARPNESS = 1.0, 30.0  # s at the start and the end
_BLOCK = 1024


class LDKL(Machine):
    """The tree.

    Parameters
    ----------
    depth : int
        Nodes on the way of a row, less one.
    penalty : float
        Of the squares of all weights, for the mean hinge loss.
    epochs, rate : int, float
        Of Adam, whose rate falls to 0.
    """

    def __init__(self, depth: int = 3, penalty: float = 1e-5, epochs: int = 60, rate: float = 0.02) -> None:
        self.depth = depth
        self.penalty = penalty
        self.epochs = epochs
        self.rate = rate

    def fit(self, X: Rows, y: Any) -> Self:
        """Train on labels +1 and -1."""
        rng, n = np.random.default_rng(0), len(X)
        self.centre_ = X.mean(axis=0)
        self.scale_ = np.float32(1 / max(float(np.sqrt(np.mean(np.square(X - self.centre_)))), 1e-12))
        rows = np.hstack([(X - self.centre_) * self.scale_, np.ones((n, 1), np.float32)])
        signs, d = np.asarray(y, np.float32), rows.shape[1]
        n_inner, n_nodes = 2**self.depth - 1, 2 ** (self.depth + 1) - 1
        theta = rng.normal(size=(n_inner, d)).astype(np.float32) / np.sqrt(d)
        V, W = (rng.normal(size=(n_nodes, d)).astype(np.float32) / np.sqrt(d) for _ in range(2))
        tree = _Tree(theta, V, W)
        size = max(64, min(512, n // 50))
        steps, t = self.epochs * (n // size), 0
        adam = _Adam(tree.parts, self.rate)
        for _ in range(self.epochs):
            for batch in np.array_split(rng.permutation(n), n // size):
                share = t / steps
                sharpness = _SHARPNESS[0] * (_SHARPNESS[1] / _SHARPNESS[0]) ** share
                slopes = tree.slopes(rows[batch], signs[batch], sharpness)
                adam.step([g + self.penalty * part for g, part in zip(slopes, tree.parts, strict=True)], 1 - share)
                t += 1
        self._keep(tree)
        self.n_operations = 3.0 * self.depth + 2
        return self

    def _keep(self, tree: _Tree) -> None:
        """Weights of unscaled rows: (nodes, 3, d) and constants (nodes, 3); leaves have no routing weights."""
        ask = np.vstack([tree.theta, np.zeros((len(tree.V) - len(tree.theta), tree.V.shape[1]), np.float32)])
        weights = np.stack([ask, tree.V, tree.W], axis=1)
        self.nodes_ = np.ascontiguousarray(weights[:, :, :-1] * self.scale_)
        self.constants_ = weights[:, :, -1] - self.nodes_ @ self.centre_

    def _decide(self, X: Rows) -> Vector:
        out, X = np.empty(len(X)), np.ascontiguousarray(X)
        with ThreadTeam(None) as team:
            team.map(
                lambda rows: walk(X[rows], self.nodes_, self.constants_, self.depth, _SIGMA, out[rows]),
                row_blocks(len(X), _BLOCK),
            )
        return out


class _Tree:
    """Smooth routing and its derivatives."""

    def __init__(self, theta: Rows, V: Rows, W: Rows) -> None:
        self.theta = theta
        self.V = V
        self.W = W

    @property
    def parts(self) -> list[Rows]:
        return [self.theta, self.V, self.W]

    def slopes(self, X: Rows, signs: Rows, sharpness: float) -> list[Rows]:
        """Gradient of the mean hinge loss."""
        turn = np.tanh(sharpness * (X @ self.theta.T))
        way = self._ways(turn)
        linear, gate = X @ self.W.T, np.tanh(_SIGMA * (X @ self.V.T))
        f = np.einsum("ik,ik,ik->i", way, linear, gate)
        outer = np.where(signs * f < 1, -signs / len(X), 0).astype(np.float32)[:, None]
        of_way = outer * linear * gate
        of_turn = np.empty_like(turn)
        for k in range(turn.shape[1] - 1, -1, -1):  # from the leaves up
            left, right = of_way[:, 2 * k + 1], of_way[:, 2 * k + 2]
            of_turn[:, k] = way[:, k] * (left - right) / 2
            of_way[:, k] += (left * (1 + turn[:, k]) + right * (1 - turn[:, k])) / 2
        of_theta = sharpness * of_turn * (1 - turn**2)
        of_gate = _SIGMA * outer * way * linear * (1 - gate**2)
        return [of_theta.T @ X, of_gate.T @ X, (outer * way * gate).T @ X]

    def _ways(self, turn: Rows) -> Rows:
        way = np.ones((len(turn), len(self.V)), np.float32)
        for k in range(turn.shape[1]):
            way[:, 2 * k + 1] = way[:, k] * (1 + turn[:, k]) / 2
            way[:, 2 * k + 2] = way[:, k] * (1 - turn[:, k]) / 2
        return way


class _Adam:
    """Kingma and Ba 2015, in place."""

    def __init__(self, parts: list[Rows], rate: float) -> None:
        self.parts = parts
        self.rate = rate
        self.first = [np.zeros_like(part) for part in parts]
        self.second = [np.zeros_like(part) for part in parts]
        self.t = 0

    def step(self, slopes: list[NDArray[Any]], share: float) -> None:
        """One step, at a part of the learning rate."""
        self.t += 1
        for part, m, v, g in zip(self.parts, self.first, self.second, slopes, strict=True):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            up, down = m / (1 - 0.9**self.t), np.sqrt(v / (1 - 0.999**self.t)) + 1e-8
            part -= np.float32(self.rate * share) * up / down


@numba.njit(nogil=True, cache=True, fastmath=True)
def walk(X: Any, nodes: Any, constants: Any, depth: int, sigma: float, out: Any) -> None:
    """Decision values: three inner products a node on the path of a row."""
    for i in range(X.shape[0]):
        x, node, total = X[i], 0, 0.0
        for _ in range(depth + 1):
            ask, gate, linear = constants[node, 0], constants[node, 1], constants[node, 2]
            weights = nodes[node]
            for k in range(x.size):
                ask += x[k] * weights[0, k]
                gate += x[k] * weights[1, k]
                linear += x[k] * weights[2, k]
            total += np.tanh(sigma * gate) * linear
            node = 2 * node + (1 if ask > 0 else 2)
        out[i] = total
