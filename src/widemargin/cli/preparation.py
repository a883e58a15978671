"""What a model does before its machine: missing values, scaling, categories."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from widemargin.cli.reading import Features


def make_preparation(args: Namespace, features: Features, *, sparse: bool) -> list[Any]:
    """The steps of a pipeline before its machine, as `--impute`, `--scale` and `--one-hot` ask for them.

    Parameters
    ----------
    args : Namespace
    features : Features
        Those that are text become categories; the others are imputed and scaled.
    sparse : bool
        Whether the samples are: they are not centred.

    Returns
    -------
    list of transformer
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline

    steps = [] if args.impute == "none" else [_make_imputer(args.impute)]
    steps += [] if args.scale == "none" else [_make_scaler(args.scale, sparse)]
    if not features.text:
        return steps
    numbers = [k for k in range(features.n_features) if k not in features.text]
    branches = [("categories", _make_encoder(args.impute), list(features.text))]
    if numbers:
        branches.insert(0, ("numbers", make_pipeline(*steps) if steps else "passthrough", numbers))
    return [ColumnTransformer(branches)]


def make_relevance(args: Namespace) -> Any:
    """The scaling of the columns by their relevance that `--relevance` asks for."""
    from widemargin import RelevanceScaler

    kernel = args.kernel if args.kernel in ("rbf", "laplacian") else "rbf"
    target = "values" if args.task == "regression" else "classes"
    return RelevanceScaler(kernel=kernel, target=target, n_jobs=args.n_jobs)


def _make_imputer(strategy: str) -> Any:
    from sklearn.impute import SimpleImputer

    return SimpleImputer(strategy=strategy, keep_empty_features=True)


def _make_encoder(impute: str) -> Any:
    """Categories as indicators, all zero for one that training did not see; the empty text is a missing one."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(handle_unknown="ignore")
    if impute != "most_frequent":
        return encoder
    return make_pipeline(SimpleImputer(missing_values="", strategy=impute, keep_empty_features=True), encoder)


def _make_scaler(name: str, sparse: bool) -> Any:
    """A scikit-learn scaler; for sparse data one that maps 0 to 0."""
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if name == "standard":
        return StandardScaler(with_mean=not sparse)
    return MaxAbsScaler() if sparse else MinMaxScaler()


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
