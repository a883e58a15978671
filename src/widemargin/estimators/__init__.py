"""scikit-learn classes: validate, encode labels, call the algorithm, set attributes."""

from .bsgd import BSGDClassifier
from .dc_pred import DCPredClassifier, DCPredRegressor
from .dc_svm import DCSVMClassifier
from .kernel_kmeans import TwoStepKernelKMeans
from .landmark_nystroem import LandmarkNystroem
from .ocas import OCASClassifier

__all__ = [
    "BSGDClassifier",
    "DCPredClassifier",
    "DCPredRegressor",
    "DCSVMClassifier",
    "LandmarkNystroem",
    "OCASClassifier",
    "TwoStepKernelKMeans",
]
