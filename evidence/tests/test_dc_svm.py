"""What the DC-SVM experiments compute themselves is right. The figures are theirs to measure."""

import itertools
from importlib import import_module

from widemargin.datasets import load_patches


def test_cascade_keeps_support_vectors_alone():
    X, y = load_patches(600)
    cascade = import_module("evidence._dc_svm.cascade").CascadeSVC(C=4.0, gamma=1.0, n_parts=8).fit(X, y)
    assert [parts for parts, _ in cascade.layers_] == [8, 4, 2, 1]
    found = [set(rows) for _, rows in cascade.layers_]
    assert all(later <= earlier for earlier, later in itertools.pairwise(found))
    assert cascade.score(X, y) > 0.9
