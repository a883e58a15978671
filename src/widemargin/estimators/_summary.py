"""What a fitted estimator shows of itself in a notebook, below scikit-learn's diagram."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import scipy.sparse as sp


def summary_html(estimator: Any) -> str:
    """Certificate, seconds and bytes of a fitted estimator, as a line of HTML; empty if it is not fitted."""
    if not hasattr(estimator, "history_"):
        return ""
    facts = [*_certificate(estimator), *_seconds(estimator), f"{_bytes(vars(estimator)):,} bytes"]
    return f"<p><small>{escape('; '.join(facts))}</small></p>"


def _certificate(estimator: Any) -> list[str]:
    gap = getattr(estimator, "relative_gap_", np.nan)
    state = ["converged" if estimator.converged_ else "not converged"] if hasattr(estimator, "converged_") else []
    return [
        *state,
        f"objective at most {gap:.2g} of itself above the optimum" if np.isfinite(gap) else "no lower bound",
    ]


def _seconds(estimator: Any) -> list[str]:
    time = estimator.history_.get("time", ())
    return [f"{time[-1]:.3g} s"] if len(time) else []


def _bytes(value: Any) -> int:
    """Of all arrays in a value: dense, sparse, or in dicts and lists of them."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if sp.issparse(value):
        return sum(_bytes(part) for part in vars(value).values())
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    return sum(map(_bytes, value)) if isinstance(value, list | tuple) else 0
