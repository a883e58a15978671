"""What a model does before its machine, by scikit-learn's transformers: missing values, scaling, categories."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from widemargin.cli.data import Features
from widemargin.datasets.layouts import CATEGORY


def make_preparation(args: Namespace, features: Features, X: Any) -> list[Any]:
    """The steps of a pipeline before its machine: numbers are imputed and scaled, categories become indicators.

    Categories that training did not see become zeros; missing ones are a category of their own.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler

    steps, is_matrix = [], features.kinds is None
    if (args.impute in ("median", "most_frequent") and is_matrix) or features.lacks_values:
        strategy = "median" if args.impute == "auto" else args.impute
        steps.append(SimpleImputer(strategy=strategy, keep_empty_features=True))
    if args.scale != "none":
        is_sparse = hasattr(X, "indptr")  # whose scalers map 0 to 0
        min_max = MaxAbsScaler() if is_sparse else MinMaxScaler()
        steps.append(StandardScaler(with_mean=not is_sparse) if args.scale == "standard" else min_max)
    categories = [k for k, kind in enumerate(features.kinds or ()) if kind == CATEGORY]
    if not categories:
        return steps
    branches = [("categories", OneHotEncoder(handle_unknown="ignore", dtype=np.dtype(features.dtype)), categories)]
    numbers = [k for k in range(features.n_features) if k not in categories]
    if numbers:
        branches.insert(0, ("numbers", make_pipeline(*steps) if steps else "passthrough", numbers))
    return [ColumnTransformer(branches)]


def make_relevance(args: Namespace) -> Any:
    """The scaling of the columns by their relevance that `--relevance` asks for."""
    from widemargin import RelevanceScaler

    kernel = args.kernel if args.kernel in ("rbf", "laplacian") else "rbf"
    target = "values" if args.task == "regression" else "classes"
    return RelevanceScaler(kernel=kernel, target=target, n_jobs=args.n_jobs)


def names_of(steps: Any) -> list[str]:
    """The names of the transformers among steps, and in their branches."""
    found: list[str] = []
    for step in steps:
        if hasattr(step, "transformers"):
            found += names_of([branch for _, branch, _ in step.transformers])
        elif hasattr(step, "steps"):
            found += names_of(inner for _, inner in step.steps)
        elif not isinstance(step, str):
            found.append(type(step).__name__)
    return found
