"""What the parameters of a kernel machine must be."""

from __future__ import annotations

from typing import Any

from .._config import resolve_memory_budget
from ..budget.merge import MAINTENANCE, RULES
from ._validation import check_choice, check_flag, check_integer, check_n_jobs, check_number, check_seed

KERNELS = ("rbf", "poly", "linear", "sigmoid", "laplacian", "precomputed")


def check_parameters(model: Any) -> None:
    """Raise a ValueError that names the first parameter of a `DCSVMClassifier` that cannot be, and its value."""
    check_number("C", model.C, above=0)
    check_number("tol", model.tol, above=0)
    check_kernel(model, KERNELS)
    check_integer("max_iter", model.max_iter, -1)
    _check_levels(model)
    check_choice("decision_function_shape", model.decision_function_shape, ("ovr", "ovo"))
    check_flag(fit_intercept=model.fit_intercept, break_ties=model.break_ties, warm_start=model.warm_start)
    _check_limits(model)


def _check_limits(model: Any) -> None:
    if model.max_time is not None:
        check_number("max_time", model.max_time, above=0)
    check_n_jobs(model.n_jobs)
    check_seed(model.random_state)
    resolve_memory_budget(model.memory_budget)


def check_budgeted(model: Any, *, streams: bool = False) -> None:
    """Raise a ValueError that names the first parameter of a `BSGDClassifier` that cannot be, and its value."""
    check_number("C", model.C, above=0)
    check_kernel(model, KERNELS[:-1])
    for name, least in (("budget", 2), ("table_size", 2), ("n_epochs", 1)):
        check_integer(name, getattr(model, name), least)
    check_choice("maintenance", model.maintenance, MAINTENANCE)
    check_choice("merge", model.merge, tuple(RULES))
    if model.maintenance == "merge" and model.kernel != "rbf":
        raise ValueError(f"maintenance='merge' is for kernel='rbf' alone, got kernel={model.kernel!r}")
    check_number("validation_fraction", model.validation_fraction, above=0)
    if model.validation_fraction >= 1:
        raise ValueError(f"validation_fraction must be below 1, got {model.validation_fraction!r}")
    if model.lam is not None:
        check_number("lam", model.lam, above=0)
    if streams:
        _check_stream(model)
    _check_limits(model)
    flags = ("fit_intercept", "average", "early_stopping", "shuffle")
    check_flag(**{name: getattr(model, name) for name in flags})


def _check_stream(model: Any) -> None:
    if model.lam is None:
        raise ValueError("lam must be given for partial_fit, which cannot know how many rows will come; got None")
    if isinstance(model.class_weight, str):
        raise ValueError(f"class_weight must be None or a dict for partial_fit, got {model.class_weight!r}")


def check_kernel(model: Any, kernels: tuple[str, ...]) -> None:
    """Raise a ValueError that names the first of the kernel's parameters that cannot be, and its value."""
    if not callable(model.kernel):
        check_choice("kernel", model.kernel, kernels)
    if isinstance(model.gamma, str):
        check_choice("gamma", model.gamma, ("scale", "auto"))
    else:
        check_number("gamma", model.gamma, above=0)
    check_integer("degree", model.degree, 0)
    check_number("coef0", model.coef0)


def _check_levels(model: Any) -> None:
    check_integer("branching", model.branching, 2)
    check_integer("n_sample", model.n_sample, 1)
    check_integer("stop_level", model.stop_level, 0)
    check_choice("partition", model.partition, ("auto", "kernel", "input", "random"))
    check_choice("combine", model.combine, ("early", "naive", "bcm"))
    if model.n_levels != "auto":
        check_integer("n_levels", model.n_levels, 0)
        if model.stop_level > int(model.n_levels):
            raise ValueError(f"stop_level must be at most n_levels={model.n_levels}, got {model.stop_level}")
    if model.kernel == "precomputed" and model.partition == "input":
        raise ValueError("partition must not be 'input' with kernel='precomputed': it has no features to cluster")
