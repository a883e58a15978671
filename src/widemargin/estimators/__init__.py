"""scikit-learn classes: validate, encode labels, call the algorithm, set attributes.

What the modules of the classes share:

::

    _estimator          the base of all: fit, files, warnings of stopped fits
    _callbacks          scikit-learn's callbacks in the rounds of a fit
    _kernel_machine     the base of estimators with a kernel
    _dual_machine       the base of DCSVMClassifier, DCSVMRegressor, DCOneClassSVM
    _dual_attributes    their fitted attributes: made of trained machines, made into models
    _dc_pred_machine    the base of DCPredClassifier, DCPredRegressor
    _linear_machine     the base of OCASClassifier, OCASRegressor, OCASRanker
    _cost               numbers of leaves and landmarks for a prediction cost
    _predictor          mixins: decision_function and predict from decision values
    _validation         checks of parameters and data
    _scale              default gamma; checks of the range and the scale of X
    _fitted_state       checks of attributes from a file
    _wrapped            machines in searches, pipelines and calibrated classifiers
"""

from .bsgd import BSGDClassifier
from .dc_one_class_svm import DCOneClassSVM
from .dc_pred import DCPredClassifier, DCPredRegressor
from .dc_svm import DCSVMClassifier
from .dc_svm_regressor import DCSVMRegressor
from .given_risk import cutting_plane
from .kernel_kmeans import TwoStepKernelKMeans
from .landmark_nystroem import LandmarkNystroem
from .ocas import OCASClassifier
from .ocas_ranker import OCASRanker
from .ocas_regressor import OCASRegressor
from .relevance_scaler import RelevanceScaler

__all__ = [
    "BSGDClassifier",
    "DCOneClassSVM",
    "DCPredClassifier",
    "DCPredRegressor",
    "DCSVMClassifier",
    "DCSVMRegressor",
    "LandmarkNystroem",
    "OCASClassifier",
    "OCASRanker",
    "OCASRegressor",
    "RelevanceScaler",
    "TwoStepKernelKMeans",
    "cutting_plane",
]
