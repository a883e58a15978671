"""
Text
====

Words of its documentation tell which package a function is from.

Sparse TF-IDF features, a linear model, and the words of the largest weight for each package.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.special
import scipy.stats
import sklearn.metrics
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from widemargin import OCASClassifier

packages = {"numpy": np, "scipy.stats": scipy.stats, "scipy.special": scipy.special, "sklearn.metrics": sklearn.metrics}
found = [
    (function.__doc__, package)
    for package, module in packages.items()
    for name in module.__all__
    if (function := getattr(module, name)).__doc__
]
texts, y = map(np.array, zip(*found, strict=True))

vectorizer = TfidfVectorizer(token_pattern=r"[a-z]{3,}", sublinear_tf=True)
model = make_pipeline(vectorizer, OCASClassifier(C=1.0))
print(f"{len(texts)} texts, {cross_val_score(model, texts, y, cv=3).mean():.0%} are right in cross-validation")

model.fit(texts, y)
words = vectorizer.get_feature_names_out()
figure, axes = plt.subplots(1, 4, figsize=(9, 3))
for ax, package, weights in zip(axes, model[-1].classes_, model[-1].coef_, strict=True):
    top = np.argsort(weights)[-8:]
    ax.barh(words[top], weights[top])
    ax.set_title(package)
figure.tight_layout()
