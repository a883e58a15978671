"""What the parameters that estimators share must be."""

from __future__ import annotations

from typing import Any

from .._config import resolve_memory_budget
from ._validation import check_choice, check_integer, check_n_jobs, check_number

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
    """Raise a ValueError that names the first of `max_time`, `n_jobs` and `memory_budget` that cannot be."""
    if model.max_time is not None:
        check_number("max_time", model.max_time, least=0)
    check_n_jobs(model.n_jobs)
    resolve_memory_budget(model.memory_budget)


def check_pseudo(model: Any) -> None:
    """Raise a ValueError that names the kernel or the rule for pseudo-landmarks, where one does not fit the other."""
    check_choice("kernel", model.kernel, KERNELS)
    check_choice("pseudo", model.pseudo or "none", ("triangle", "polynomial", "none"))
    if model.pseudo == "triangle" and model.kernel not in ("rbf", "laplacian"):
        raise ValueError(
            f"pseudo='triangle' needs a kernel of distances, rbf or laplacian, got kernel={model.kernel!r}; "
            "use pseudo='polynomial' or None"
        )
