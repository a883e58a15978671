"""The estimators that commands make, what comes before them, and the options that are parameters of each."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from widemargin.cli.data import Features

# Options that are no parameters of an estimator, and the machines that do not take them
_NOT_TAKEN = {"estimator": {"regression", "one-class"}, "test": {"one-class"}, "holdout": {"one-class"}}


def check_applicable(args: Namespace) -> None:
    """End with a usage error that names the first option which was given and which the machine does not take.

    An option that some machines have as a parameter is for these alone; one given with its default value passes.
    """
    import widemargin

    machine = _machine(args)
    having = {name: signature(getattr(widemargin, kind)).parameters for name, kind in args.machines.items()}
    for action in args.command._actions:
        if not action.option_strings or getattr(args, action.dest, None) in (None, action.default):
            continue
        takers = {name for name in having if action.dest in having[name]} or set(having)
        takers -= _NOT_TAKEN.get(action.dest, set())
        if machine not in takers:
            which = f"--{'estimator' if args.task == 'classification' else 'task'} {machine}"
            names = ", ".join(sorted(takers))
            args.command.error(f"{action.option_strings[0]} does not apply to {which}; it is for {names}")


def make_estimator(args: Namespace, **others: Any) -> Any:
    """The estimator of the command, with the options and `others` as its parameters."""
    import widemargin

    estimator = getattr(widemargin, args.machines[_machine(args)])
    return estimator(**parameters(estimator, args, **others))


def parameters(function: Callable[..., Any], args: Namespace, **others: Any) -> dict[str, Any]:
    """Keyword arguments of the function: the options that are not None and `others` that it has as parameters."""
    given = {name: value for name, value in vars(args).items() if value is not None}
    given |= {"verbose": int(sys.stderr.isatty() and not args.quiet), **others}
    return {name: given[name] for name in signature(function).parameters if name in given}


def _machine(args: Namespace) -> str:
    """The key in `args.machines` of what is to be trained: that of --estimator, or of --task."""
    return str(args.estimator if args.task == "classification" else args.task)


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
    categories = [k for k, kind in enumerate(features.kinds or ()) if kind == "category"]
    if not categories:
        return steps
    branches = [("categories", OneHotEncoder(handle_unknown="ignore", dtype=features.dtype), categories)]
    numbers = [k for k in range(features.n_features) if k not in categories]
    if numbers:
        branches.insert(0, ("numbers", make_pipeline(*steps) if steps else "passthrough", numbers))
    return [ColumnTransformer(branches)]
