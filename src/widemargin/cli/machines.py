"""The estimators that commands make, and the options that are parameters of each."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Set
from inspect import signature
from typing import Any

_EXACT = frozenset({"dcsvm", "regression", "one-class"})
_CLASSIFIERS = frozenset({"dcsvm", "ocas", "bsgd", "dcpred"})
_KERNEL = _EXACT | {"bsgd", "dcpred"}
_BSGD, _DCPRED, _EXACT_CV = frozenset({"bsgd"}), frozenset({"dcpred"}), frozenset({"dcsvm", "regression"})
LOSSES: dict[str, tuple[str, ...]] = {
    "ocas": ("hinge", "squared_hinge", "logistic"),
    "regression": ("epsilon_insensitive", "squared_epsilon_insensitive", "absolute", "quantile"),
}
# Options that some machines do not take, and the machines that do; written out, so that an error imports no estimator
TAKEN_BY: dict[str, Set[str]] = {
    "estimator": _CLASSIFIERS,
    "C": _CLASSIFIERS | {"regression"},
    **dict.fromkeys(("epsilon", "quantile"), frozenset({"regression"})),
    "nu": {"one-class"},
    "loss": LOSSES.keys(),
    **dict.fromkeys(("kernel", "gamma", "degree", "coef0", "random_state"), _KERNEL),
    **dict.fromkeys(("budget", "n_epochs"), _BSGD),
    "fit_intercept": {"dcsvm", "ocas", "bsgd", "regression"},
    "class_weight": _CLASSIFIERS,
    "tol": _EXACT | {"ocas", "dcpred"},
    **dict.fromkeys(("prediction_cost", "n_clusters", "n_landmarks", "n_pseudo_landmarks"), _DCPRED),
    **dict.fromkeys(("pseudo", "n_trees"), _DCPRED),
    **dict.fromkeys(("gammas", "exhaustive", "search"), _EXACT_CV),
    "relevance": _EXACT_CV | _BSGD | _DCPRED,
    "epsilons": {"regression"},
    "stop_level": _EXACT,
    **dict.fromkeys(("test", "holdout"), _CLASSIFIERS | {"regression"}),
}


def check_applicable(parser: ArgumentParser, args: Namespace) -> None:
    """End with a usage error that names the first option which was given and which the machine does not take.

    An option that was given with its default value changes nothing, and passes.
    """
    machine = _machine(args)
    given = (a for a in parser._actions if a.option_strings and getattr(args, a.dest, a.default) != a.default)
    for action in given:
        takers = TAKEN_BY.get(action.dest, {machine})
        if action.dest == "loss":
            takers = {taker for taker, losses in LOSSES.items() if args.loss in losses}
        if machine not in takers:
            which = f"--{'estimator' if args.task == 'classification' else 'task'} {machine}"
            names = ", ".join(sorted(takers & args.machines.keys()))
            parser.error(f"{action.option_strings[0]} does not apply to {which}; it is for {names}")


def make_estimator(args: Namespace, **others: Any) -> Any:
    """The estimator of the command, with the options and `others` as its parameters."""
    import widemargin

    estimator = getattr(widemargin, args.machines[_machine(args)])
    return estimator(**parameters(estimator, args, **others))


def parameters(function: Callable[..., Any], args: Namespace, **others: Any) -> dict[str, Any]:
    """Keyword arguments of the function: the options and `others` that it has as parameters; "none" becomes None.

    What an option leaves open (None) is left to the function.
    """
    given_options = {name: value for name, value in vars(args).items() if value is not None}
    options = {name: None if value == "none" else value for name, value in given_options.items()}
    given = {**options, "verbose": int(sys.stderr.isatty() and not args.quiet), **others}
    return {name: given[name] for name in signature(function).parameters if name in given}


def _machine(args: Namespace) -> str:
    """The key in `args.machines` of what is to be trained: that of --estimator, or of --task."""
    return str(args.estimator if args.task == "classification" else args.task)
