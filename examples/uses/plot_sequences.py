"""
Labels of sequences, by cutting planes
======================================

`cutting_plane` takes any convex risk that can say its value and a subgradient. Here that is the margin of a structured
support vector machine: the labels of a sequence are predicted together, by weights of a label given an observation and
weights of a label after another. The risk of a sequence is how much the worst labelling exceeds the true one, its
score plus the number of its wrong labels; the Viterbi algorithm finds it, and the difference of the two
labellings' features is the subgradient.

Left: objective and lower bound. Right: the learned weights of transitions; in the data a label is mostly followed by
the next.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import OCASClassifier, cutting_plane

n_labels, n_features, length = 4, 5, 15


def draw_sequences(n, rng):
    """Noisy observations (n, length, n_features) of labels (n, length) that follow one another."""
    follows = 0.85 * np.roll(np.eye(n_labels), 1, axis=1) + 0.15 / n_labels
    Y = np.empty((n, length), int)
    Y[:, 0] = rng.integers(n_labels, size=n)
    for t in range(1, length):
        Y[:, t] = (follows[Y[:, t - 1]].cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    means = np.random.default_rng(0).normal(size=(n_labels, n_features))
    return means[Y] + 1.5 * rng.normal(size=(n, length, n_features)), Y


def best_labels(scores, transitions):
    """The labelling (n, length) of the largest sum of scores (n, length, n_labels) and transitions, by Viterbi."""
    totals, back = scores[:, 0], []
    for t in range(1, length):
        ways = totals[:, :, None] + transitions
        back.append(ways.argmax(axis=1))
        totals = ways.max(axis=1) + scores[:, t]
    labels = [totals.argmax(axis=1)]
    for pointers in reversed(back):
        labels.append(pointers[np.arange(len(scores)), labels[-1]])
    return np.stack(labels[::-1], axis=1)


class SequenceRisk:
    """sum over sequences of max over labellings of (wrong labels + score - score of the true labelling)."""

    def __init__(self, X, Y):
        self.X, self.Y = X, Y
        self.true_features = self.features(Y)

    def features(self, Y):
        """Sums of observations by label, and counts of label pairs, of all sequences."""
        emissions, pairs = np.zeros((n_labels, n_features)), np.zeros((n_labels, n_labels))
        np.add.at(emissions, Y.ravel(), self.X.reshape(-1, n_features))
        np.add.at(pairs, (Y[:, :-1], Y[:, 1:]), 1.0)
        return np.concatenate([emissions.ravel(), pairs.ravel()])

    def value_and_subgradient(self, w):
        emissions, transitions = split(w)
        wrong = 1.0 - np.eye(n_labels)[self.Y]
        worst = best_labels(self.X @ emissions.T + wrong, transitions)
        subgradient = self.features(worst) - self.true_features
        return np.count_nonzero(worst != self.Y) + w @ subgradient, subgradient


def split(w):
    """Weights of observations (n_labels, n_features) and of transitions (n_labels, n_labels)."""
    n_emissions = n_labels * n_features
    return w[:n_emissions].reshape(n_labels, n_features), w[n_emissions:].reshape(n_labels, n_labels)


rng = np.random.default_rng(1)
X, Y = draw_sequences(300, rng)
X_test, Y_test = draw_sequences(300, rng)

found = cutting_plane(SequenceRisk(X, Y), n_labels * (n_features + n_labels), C=0.1, tol=0.01)
emissions, transitions = split(found.w)
together = np.mean(best_labels(X_test @ emissions.T, transitions) == Y_test)
alone = OCASClassifier().fit(X.reshape(-1, n_features), Y.ravel()).score(X_test.reshape(-1, n_features), Y_test.ravel())
print(f"labels right: {together:.0%} together, {alone:.0%} one by one; relative gap {found.relative_gap_:.1%}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.plot(found.history_["objective"], label="objective")
left.plot(found.history_["lower_bound"], label="lower bound")
left.set(xlabel="Round", ylim=(0, 1.5 * found.objective_))
left.legend()
image = right.imshow(transitions, cmap="RdBu_r", vmin=-abs(transitions).max(), vmax=abs(transitions).max())
right.set(xlabel="Next label", ylabel="Label", xticks=range(n_labels), yticks=range(n_labels))
figure.colorbar(image, ax=right)
figure.tight_layout()
