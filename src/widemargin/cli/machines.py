"""The estimators that commands make: an option is taken by those that have a parameter of its name."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from inspect import signature
from typing import Any

# Options that are no parameters of an estimator, and the machines that do not take them
_NOT_TAKEN = {"estimator": {"regression", "one-class"}, "test": {"one-class"}, "holdout": {"one-class"}}


def check_applicable(parser: ArgumentParser, args: Namespace) -> None:
    """End with a usage error that names the first option which was given and which the machine does not take.

    An option that was given with its default value changes nothing, and passes.
    """
    machine = _machine(args)
    given = (a for a in parser._actions if a.option_strings and getattr(args, a.dest, a.default) != a.default)
    for action in given:
        if _takes(machine, action.dest, args):
            continue
        takers = sorted(name for name in args.machines if _takes(name, action.dest, args))
        if takers:  # else no estimator's parameter
            which = f"--{'estimator' if args.task == 'classification' else 'task'} {machine}"
            parser.error(f"{action.option_strings[0]} does not apply to {which}; it is for {', '.join(takers)}")


def make_estimator(args: Namespace, **others: Any) -> Any:
    """The estimator of the command, with the options and `others` as its parameters."""
    estimator = _class_of(args, _machine(args))
    return estimator(**parameters(estimator, args, **others))


def parameters(function: Callable[..., Any], args: Namespace, **others: Any) -> dict[str, Any]:
    """Keyword arguments of the function: the options and `others` that it has as parameters; "none" becomes None."""
    options = {name: None if value == "none" else value for name, value in vars(args).items()}
    given = {**options, "verbose": int(sys.stderr.isatty() and not args.quiet), **others}
    return {name: given[name] for name in signature(function).parameters if name in given}


def _machine(args: Namespace) -> str:
    """The key in `args.machines` of what is to be trained: that of --estimator, or of --task."""
    return str(args.estimator if args.task == "classification" else args.task)


def _class_of(args: Namespace, machine: str) -> Any:
    import widemargin

    return getattr(widemargin, args.machines[machine])


def _takes(machine: str, option: str, args: Namespace) -> bool:
    if option in _NOT_TAKEN:
        return machine not in _NOT_TAKEN[option]
    return option in signature(_class_of(args, machine)).parameters
