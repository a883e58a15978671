"""Which options of `train` and `tune` a machine takes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

_ESTIMATORS = frozenset({"dcsvm", "ocas", "bsgd", "dcpred"})
_TASKS = frozenset({"regression", "one-class"})
_COST = ("prediction_cost", "n_clusters", "n_landmarks", "n_pseudo_landmarks", "pseudo", "n_trees")

# Of each option the machines that take it: estimators, or tasks other than classification.
_TAKEN_BY: dict[str, frozenset[str]] = {
    **dict.fromkeys(("kernel", "gamma", "degree", "coef0"), _ESTIMATORS - {"ocas"} | _TASKS),
    **dict.fromkeys(_COST, frozenset({"dcpred"})),
    "C": _ESTIMATORS | {"regression"},
    "gammas": frozenset({"dcsvm", "regression"}),
    "exhaustive": frozenset({"dcsvm", "regression"}),
    "epsilon": frozenset({"regression"}),
    "epsilons": frozenset({"regression"}),
    "nu": frozenset({"one-class"}),
    "intercept": _ESTIMATORS - {"dcpred"},
    "budget": frozenset({"bsgd"}),
    "epochs": frozenset({"bsgd"}),
    "tol": _ESTIMATORS - {"bsgd"} | _TASKS,
    "balanced": _ESTIMATORS,
    "test": _ESTIMATORS | {"regression"},
    "holdout": _ESTIMATORS | {"regression"},
    "estimator": _ESTIMATORS,
}


def check_applicable(parser: ArgumentParser, args: Namespace) -> None:
    """End with a usage error that names the first option which was given and which the machine does not take.

    An option that was given with its default value changes nothing, and passes.
    """
    machine = args.estimator if args.task == "classification" else args.task
    which = f"--estimator {machine}" if args.task == "classification" else f"--task {machine}"
    for action in parser._actions:
        is_given = getattr(args, action.dest, action.default) != action.default
        if is_given and machine not in _TAKEN_BY.get(action.dest, {machine}):
            names = ", ".join(sorted(_TAKEN_BY[action.dest]))
            parser.error(f"{action.option_strings[0]} does not apply to {which}; it is for {names}")
