"""Support vector machines at scale, behind one scikit-learn API.

The rooms, and who may import whom (down only; import-linter checks it)::

    cli                       the command line
     |
    export                    trained machines as ONNX graphs
     |
    estimators   datasets     scikit-learn classes         readers and bundled data
     |
    algorithms                how a machine is trained: one file per paper
     |
    models                    what a trained machine is: arrays and a decision function
     |
    landmarks                 a few points that stand for many
     |
    solvers                   optimisation only: no labels, no estimators, no files
     |
    partition    budget       clusters of rows             support vectors kept to a number
     |
    kernels      rows         kernel functions, blocks by GEMM     a linear machine's passes over the data
     |
    _threads                 threads, and the threads of BLAS
     |
    _native  _array  _progress    compiled loops and their threads, array namespaces, the clock
     |
    _config                   memory budget and tile size

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
    from .compression import compress
    from .displays import ConvergenceDisplay
    from .estimators import (
        BSGDClassifier,
        DCOneClassSVM,
        DCPredClassifier,
        DCPredRegressor,
        DCSVMClassifier,
        DCSVMRegressor,
        LandmarkNystroem,
        OCASClassifier,
        TwoStepKernelKMeans,
    )
    from .export import to_onnx
    from .model_selection import C_path

__version__ = "0.1.0"

__all__ = [
    "BSGDClassifier",
    "C_path",
    "ConvergenceDisplay",
    "DCOneClassSVM",
    "DCPredClassifier",
    "DCPredRegressor",
    "DCSVMClassifier",
    "DCSVMRegressor",
    "LandmarkNystroem",
    "OCASClassifier",
    "TwoStepKernelKMeans",
    "__version__",
    "compress",
    "config_context",
    "datasets",
    "get_config",
    "set_config",
    "to_onnx",
]

_ROOM_OF = {
    "BSGDClassifier": "estimators",
    "C_path": "model_selection",
    "ConvergenceDisplay": "displays",
    "DCPredClassifier": "estimators",
    "DCPredRegressor": "estimators",
    "DCOneClassSVM": "estimators",
    "DCSVMClassifier": "estimators",
    "DCSVMRegressor": "estimators",
    "LandmarkNystroem": "estimators",
    "OCASClassifier": "estimators",
    "TwoStepKernelKMeans": "estimators",
    "compress": "compression",
    "config_context": "_config",
    "get_config": "_config",
    "set_config": "_config",
    "to_onnx": "export",
}


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module(f"{__name__}.datasets")
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
    globals()[name] = value  # the next look-up finds it without coming here
    return value


def __dir__() -> list[str]:
    return __all__
