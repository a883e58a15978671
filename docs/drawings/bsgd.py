"""Two support vectors, their sum, and the one point that replaces them: near each other, and far apart."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize_scalar

x = np.linspace(-3, 5, 400)
weights = np.array([0.6, 1.0])


def bump(centre):
    """A kernel function of width 1."""
    return np.exp(-((x - centre) ** 2))


figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.0), sharey=True)
for ax, centres, title in zip(
    axes, ([0.4, 1.2], [-0.4, 2.2]), ("near: little is lost", "far apart: much is lost"), strict=True
):
    terms = [a * bump(c) for a, c in zip(weights, centres, strict=True)]
    kappa, share = np.exp(-((centres[1] - centres[0]) ** 2)), weights[1] / weights.sum()
    best = minimize_scalar(
        lambda h, m=share, k=kappa: -(m * k ** ((1 - h) ** 2) + (1 - m) * k ** (h**2)),
        bounds=(0.5, 1),
        method="bounded",
    )
    merged = centres[0] + best.x * (centres[1] - centres[0])
    ax.plot(x, np.transpose(terms), color="0.7")
    ax.plot(x, sum(terms), color="black", label="both support vectors")
    ax.plot(x, -best.fun * weights.sum() * bump(merged), color="C3", ls="--", label="the merged one")
    ax.set(title=title, xticks=[], yticks=[])
axes[0].legend()
figure.tight_layout()
