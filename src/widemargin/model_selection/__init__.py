"""The choice of C, gamma and epsilon by cross-validation: fits that share what they compute."""

from .calibrate import calibrate
from .dc_svm_cv import DCSVMClassifierCV, DCSVMRegressorCV
from .ocas_cv import OCASClassifierCV, OCASRegressorCV
from .suggest import suggest

__all__ = [
    "DCSVMClassifierCV",
    "DCSVMRegressorCV",
    "OCASClassifierCV",
    "OCASRegressorCV",
    "calibrate",
    "suggest",
]
