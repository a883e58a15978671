"""scikit-learn classes: validate, encode labels, call the algorithm, set attributes."""

from ._warmup import warmup
from .bsgd import BSGDClassifier
from .dc_svm import DCSVMClassifier
from .kernel_kmeans import TwoStepKernelKMeans

__all__ = ["BSGDClassifier", "DCSVMClassifier", "TwoStepKernelKMeans", "warmup"]
