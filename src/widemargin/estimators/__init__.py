"""scikit-learn classes: validate, encode labels, call the algorithm, set attributes."""

from .bsgd import BSGDClassifier
from .dc_one_class_svm import DCOneClassSVM
from .dc_pred import DCPredClassifier, DCPredRegressor
from .dc_svm import DCSVMClassifier
from .dc_svm_regressor import DCSVMRegressor
from .kernel_kmeans import TwoStepKernelKMeans
from .landmark_nystroem import LandmarkNystroem
from .ocas import OCASClassifier

__all__ = [
    "BSGDClassifier",
    "DCOneClassSVM",
    "DCPredClassifier",
    "DCPredRegressor",
    "DCSVMClassifier",
    "DCSVMRegressor",
    "LandmarkNystroem",
    "OCASClassifier",
    "TwoStepKernelKMeans",
]
