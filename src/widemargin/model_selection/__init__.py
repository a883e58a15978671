"""The choice of C, gamma and epsilon by cross-validation: fits that share what they compute."""

from .c_path import C_path, CPath
from .calibrate import calibrate
from .dc_svm_cv import DCSVMClassifierCV, DCSVMRegressorCV
from .ocas_cv import OCASClassifierCV, OCASRegressorCV
from .suggest import suggest

__all__ = [
    "CPath",
    "C_path",
    "DCSVMClassifierCV",
    "DCSVMRegressorCV",
    "OCASClassifierCV",
    "OCASRegressorCV",
    "calibrate",
    "suggest",
]
