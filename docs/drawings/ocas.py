"""Cutting planes of a convex function of one variable: at the minimiser of the model, and after a line search."""

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(3)
slopes, C = rng.normal(1.0, 1.2, 40), 2.0
w = np.linspace(-1, 4, 2001)


def risk(w):
    """Mean hinge of 40 rows, and its slope."""
    hinges = np.maximum(0, 1 - np.multiply.outer(w, slopes))
    return hinges.mean(-1), -(slopes * (hinges > 0)).mean(-1)


def rounds(n_rounds, line_search):
    """Targets, best points and the model after some rounds."""
    objective = w**2 / 2 + C * risk(w)[0]
    best, points, model = 0.0, [0.0], np.zeros_like(w)
    for _ in range(n_rounds):
        value, slope = risk(points[-1])
        model = np.maximum(model, value + slope * (w - points[-1]))
        target = w[np.argmin(w**2 / 2 + C * model)]
        between = (w >= min(best, target)) & (w <= max(best, target))
        best = w[between][np.argmin(objective[between])] if line_search else target
        points.append(0.9 * best + 0.1 * target if line_search else target)
    return objective, w**2 / 2 + C * model, points


figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), sharey=True)
for ax, line_search, title in zip(
    axes, (False, True), ("plain cutting planes", "with OCAS's line search"), strict=True
):
    objective, model, points = rounds(2, line_search)
    ax.plot(w, objective, color="black", label="objective F(w)")
    ax.plot(w, model, color="C0", label="its model: the lower bound")
    ax.plot(points, np.interp(points, w, objective), "o:", color="C3", label="points of the planes")
    ax.set(title=title, xticks=[], yticks=[], ylim=(0.3, 4))
axes[0].legend()
figure.tight_layout()
