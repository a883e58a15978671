"""scikit-learn classes: validate, encode labels, call the algorithm, set attributes."""

from ._warmup import warmup
from .bsgd import BSGDClassifier
from .c_path import C_path
from .compress import compress
from .dc_pred import DCPredClassifier, DCPredRegressor
from .dc_svm import DCSVMClassifier
from .kernel_kmeans import TwoStepKernelKMeans
from .landmark_nystroem import LandmarkNystroem
from .ocas import OCASClassifier

__all__ = [
    "BSGDClassifier",
    "C_path",
    "DCPredClassifier",
    "DCPredRegressor",
    "DCSVMClassifier",
    "LandmarkNystroem",
    "OCASClassifier",
    "TwoStepKernelKMeans",
    "compress",
    "warmup",
]
