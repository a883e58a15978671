"""scikit-learn classes: validate, encode labels, call the algorithm, set attributes."""

from .dc_svm import DCSVMClassifier

__all__ = ["DCSVMClassifier"]
