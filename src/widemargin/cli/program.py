"""The program: parsed arguments, checked files, exit codes, one-line errors."""

from __future__ import annotations

import argparse
import errno
import glob
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from difflib import get_close_matches
from itertools import product
from typing import Any

from widemargin.cli.arguments import make_parser
from widemargin.cli.streams import ended_by_signals, inputs_as_files, make_streams_usable, shown


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these arguments, or with the command line's, and return its exit code.

    0, or 1 for an error (one line on stderr), or 130 when interrupted before there was a result. SystemExit is raised
    with 2 for wrong usage, 0 after ``--help``, 143 when terminated.
    """
    make_streams_usable()
    with ended_by_signals():
        return _run(_parse(argv))


def _run(args: argparse.Namespace) -> int:
    try:
        with _one_line_warnings(), _checked_files(args):
            code: int = args.run(args)
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written", 130)
    except BrokenPipeError:
        _discard_output()  # the reader, "head" say, has closed the pipe
        return 1
    except MemoryError as error:
        return _fail(f"out of memory {error}".strip(), 1)
    except OSError as error:
        return _fail(_reason(error), 1)
    except (ImportError, ValueError) as error:  # a package that is not installed
        return _fail(str(error), 1)


def _reason(error: OSError) -> str:
    """An error of the system with the name of its file. A full one without a name is standard output."""
    name = error.filename
    if name is None and error.errno in (errno.ENOSPC, errno.EDQUOT):
        _discard_output()
        name = "standard output"
    return f"{name}: {error.strerror}" if name and error.strerror else str(error)


def _discard_output() -> None:
    """Python's flush of standard output at exit must not fail, too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The parsed arguments. It is a usage error if two of them are standard input, or two standard output."""
    args, unknown = make_parser().parse_known_args(argv)
    if unknown:
        options = [name for action in args.command._actions for name in action.option_strings]
        near = get_close_matches(unknown[0].partition("=")[0], options, 1) if unknown[0].startswith("-") else []
        meant = "".join(f" (did you mean {name}?)" for name in near)
        args.command.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
    if vars(args).get("estimator") == "linear":
        args.estimator = "ocas"
    for name in args.outputs:
        if getattr(args, name) in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            setattr(args, name, "-")
    for names, what in ((args.inputs, "input"), (args.outputs, "output")):
        if sum(getattr(args, name) == "-" for name in names) > 1:
            args.command.error(f"only one of {', '.join(names)} can be standard {what}")
    return args


def _checked_files(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Check that input files exist, before anything heavy is imported, and that the machine takes the options.

    Return a context in which standard input, and what else can be read only once, is a file.
    """
    inputs = {name: path for name in args.inputs if (path := getattr(args, name))}
    for path in inputs.values():
        if path != "-" and not glob.glob(path):
            os.stat(path)  # raises the system's error
    outputs = {name: path for name in args.outputs if (path := getattr(args, name))}
    for (name, path), (other, used) in product(outputs.items(), [*inputs.items(), *outputs.items()]):
        if name != other and "-" not in (path, used) and _is_same_file(path, used):
            args.command.error(f"{name} and {other} are the same file, {path}")
    if "machines" in args:
        from widemargin.cli.commands import check_applicable

        check_applicable(args)
    return inputs_as_files(args)


def _is_same_file(path: str, other: str) -> bool:
    if os.path.isfile(path) and os.path.isfile(other):
        return os.path.samefile(path, other)
    return not os.path.exists(path) and os.path.realpath(path) == os.path.realpath(other)


def _fail(message: str, code: int) -> int:
    from widemargin.datasets.files import escaped

    line = " ".join(map(str.strip, message.strip().split("\n")))
    print(f"widemargin: error: {escaped(line)}", file=sys.stderr)
    return code


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"widemargin: warning: {shown(str(message).strip())}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
