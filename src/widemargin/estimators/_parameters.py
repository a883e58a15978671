"""What the parameters that estimators share must be."""

from __future__ import annotations

from typing import Any

from .._config import resolve_memory_budget
from ._validation import check_choice, check_integer, check_n_jobs, check_number, check_verbose, plain

KERNELS = ("rbf", "poly", "linear", "sigmoid", "laplacian")


def check_kernel(model: Any, kernels: tuple[str, ...] = KERNELS) -> None:
    """Raise a ValueError that names the first of the kernel's parameters that cannot be, and its value."""
    if not callable(model.kernel):
        check_choice("kernel", model.kernel, kernels)
    if isinstance(model.gamma, str):
        check_choice("gamma", model.gamma, ("scale", "auto"))
    else:
        check_number("gamma", model.gamma, above=0)
    check_integer("degree", model.degree, 0)
    check_number("coef0", model.coef0)


def check_limits(model: Any) -> None:
    """Raise a ValueError that names the first of `max_time`, `n_jobs`, `verbose` and `memory_budget` that cannot be."""
    if model.max_time is not None:
        check_number("max_time", model.max_time, least=0)
    check_n_jobs(model.n_jobs)
    check_verbose(model.verbose)
    resolve_memory_budget(model.memory_budget)


def check_pseudo_rule(value: Any) -> None:
    """None, or the name of a rule for pseudo-landmarks."""
    if value is not None and (not isinstance(value, str) or value not in ("triangle", "polynomial")):
        raise ValueError(f"pseudo must be one of ['triangle', 'polynomial', None], got {plain(value)!r}")


def check_pseudo(model: Any) -> None:
    """Raise a ValueError that names the kernel or the rule for pseudo-landmarks, where one does not fit the other."""
    check_choice("kernel", model.kernel, KERNELS)
    check_pseudo_rule(model.pseudo)
    if model.pseudo == "triangle" and model.kernel not in ("rbf", "laplacian"):
        raise ValueError(
            f"pseudo='triangle' needs a kernel of distances, rbf or laplacian, got kernel={model.kernel!r}; "
            "use pseudo='polynomial' or None"
        )
