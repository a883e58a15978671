"""Support vector machines at scale, behind one scikit-learn API.

docs/architecture.md draws the packages, and the data flow of each estimator.

Public names are loaded when they are first used, so that ``import widemargin`` stays cheap.

Examples
--------
>>> import widemargin
>>> with widemargin.config_context(memory_budget="200MB"):
...     widemargin.get_config()["memory_budget"]
'200MB'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import datasets
    from ._config import config_context, get_config, set_config
    from ._memory import memory_plan
    from ._model_files import load, save
    from .compression import compress
    from .datasets import load_table
    from .displays import (
        ConvergenceDisplay,
        CPathDisplay,
        GridScoresDisplay,
        RelevanceDisplay,
    )
    from .estimators import (
        BSGDClassifier,
        DCOneClassSVM,
        DCPredClassifier,
        DCPredRegressor,
        DCSVMClassifier,
        DCSVMRegressor,
        LandmarkNystroem,
        OCASClassifier,
        OCASRanker,
        OCASRegressor,
        RelevanceScaler,
        TwoStepKernelKMeans,
        cutting_plane,
    )
    from .explanations import nearest_support, shapley_values
    from .export import register_converters, to_c, to_onnx
    from .interchange import read_machine, write_libsvm
    from .model_selection import (
        DCSVMClassifierCV,
        DCSVMRegressorCV,
        OCASClassifierCV,
        OCASRegressorCV,
        calibrate,
        suggest,
    )

__version__ = "0.1.0"

__all__ = [
    "BSGDClassifier",
    "CPathDisplay",
    "ConvergenceDisplay",
    "DCOneClassSVM",
    "DCPredClassifier",
    "DCPredRegressor",
    "DCSVMClassifier",
    "DCSVMClassifierCV",
    "DCSVMRegressor",
    "DCSVMRegressorCV",
    "GridScoresDisplay",
    "LandmarkNystroem",
    "OCASClassifier",
    "OCASClassifierCV",
    "OCASRanker",
    "OCASRegressor",
    "OCASRegressorCV",
    "RelevanceDisplay",
    "RelevanceScaler",
    "TwoStepKernelKMeans",
    "__version__",
    "calibrate",
    "compress",
    "config_context",
    "cutting_plane",
    "datasets",
    "get_config",
    "load",
    "load_table",
    "memory_plan",
    "nearest_support",
    "read_machine",
    "register_converters",
    "save",
    "set_config",
    "shapley_values",
    "suggest",
    "to_c",
    "to_onnx",
    "write_libsvm",
]

_NAMES = {  # the public names of each package
    "_config": "config_context get_config set_config",
    "_memory": "memory_plan",
    "_model_files": "load save",
    "compression": "compress",
    "datasets": "load_table",
    "displays": "CPathDisplay ConvergenceDisplay GridScoresDisplay RelevanceDisplay",
    "estimators": (
        "BSGDClassifier DCOneClassSVM DCPredClassifier DCPredRegressor DCSVMClassifier DCSVMRegressor "
        "LandmarkNystroem OCASClassifier OCASRanker OCASRegressor RelevanceScaler TwoStepKernelKMeans "
        "cutting_plane"
    ),
    "explanations": "nearest_support shapley_values",
    "export": "register_converters to_c to_onnx",
    "interchange": "read_machine write_libsvm",
    "model_selection": "DCSVMClassifierCV DCSVMRegressorCV OCASClassifierCV OCASRegressorCV calibrate suggest",
}
_PACKAGE_OF = {name: package for package, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module(f"{__name__}.datasets")
    if name not in _PACKAGE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_PACKAGE_OF[name]}"), name)
    globals()[name] = value  # the next look-up does not call this function
    return value


def __dir__() -> list[str]:
    return __all__
