"""scikit-learn classes: validate, encode labels, call the algorithm, set attributes.

`compress` has its own door, `estimators.compress`: it knows scikit-learn's machines, whose import no fit is to wait
for.
"""

from .bsgd import BSGDClassifier
from .c_path import C_path
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
]
