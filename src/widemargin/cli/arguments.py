"""The program's arguments: what each command takes, and how an option's text becomes a value.

An option that has no default here is left to the estimator, whose parameter it is: `commands.check_applicable`.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

DEMO_PICTURE = "widemargin-demo.png"
LOSSES = ("hinge", "squared_hinge", "logistic", "epsilon_insensitive", "squared_epsilon_insensitive", "absolute")
_KERNELS = ("rbf", "laplacian", "poly", "sigmoid", "linear")

_DATA_FILES = """\
data files:
  .csv .tsv .dat             text: the last column, or --target, is the label
  .parquet .feather .arrow   a file; as of text, also a folder, or a pattern in quotes: 'flights/*.parquet'
  .jsonl .xlsx .ods .arff    JSON objects, one a line; a spreadsheet; Weka's
  .npz                       NumPy: X and y, or data, indices, indptr, shape and y; optionally X_test and y_test
  everything else            svmlight / LIBSVM: "label index:value index:value ..."
Text may be compressed: .gz, .bz2, .xz, .zst, or .zip with one file. - is standard input, with --format.

"""
_EXIT_CODES = "exit codes: 0 success, 1 any other error, 2 wrong usage, 130 interrupted,\n143 terminated\n"


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; a parsed command has `run`, its function, and `inputs` and `outputs`."""
    parser = _Parser(
        prog="widemargin",
        description="Support vector machines at scale: train, tune, predict, compress, inspect.",
        epilog=_DATA_FILES + _EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_demo(commands)
    summary = "Train an SVM and save it; Ctrl-C stops the training and saves the best model so far"
    _add_training(commands, "train", summary, _add_machine, _add_cost)
    summary = "Choose C and gamma by cross-validation, train with the best, and save the model"
    _add_training(commands, "tune", summary, _add_search)
    _add_predict(commands)
    _add_compress(commands)
    info = _add_command(commands, "info", "Describe a saved model", inputs=("model",))
    info.add_argument("model", metavar="MODEL", help="model saved by train or compress")
    return parser


class _Parser(argparse.ArgumentParser):
    """Errors of usage in two lines: what is wrong, and where to read on."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\nsee {self.prog} --help\n")


class _Version(argparse.Action):
    """`--version`, which imports the package's metadata only when it is given."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"widemargin {version('widemargin')}")
        parser.exit()


# Commands -------------------------------------------------------------------------------------------------------------


def _add_command(
    commands: Any, name: str, summary: str, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ()
) -> Any:
    """Add a command; `inputs` and `outputs` are its arguments that name files, or are ``-``, a standard stream."""

    def run(args: argparse.Namespace) -> int:  # its module is imported when it is called
        module = import_module("widemargin.cli.demo" if name == "demo" else "widemargin.cli.commands")
        code: int = getattr(module, name)(args)
        return code

    command = commands.add_parser(
        name,
        help=summary[0].lower() + summary[1:],
        description=summary + ".",
        epilog=(_DATA_FILES if len(inputs) > 1 else "") + _EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # --gamma is not --gammas
    )
    command.set_defaults(run=run, command=command, inputs=inputs, outputs=outputs)
    if outputs:
        command.add_argument("--force", action="store_true", help="replace output files that exist")
    if outputs and name != "predict":
        command.add_argument("--seed", dest="random_state", type=int, default=0, metavar="N", help="random seed (0)")
        command.add_argument("--quiet", action="store_true", help="show no progress bar")
    return command


def _add_demo(commands: Any) -> None:
    summary = "Train on patches of two photographs, compare with scikit-learn's SVC, and paint the predictions"
    add = _add_command(commands, "demo", summary, outputs=("out",)).add_argument
    add("--n-samples", type=_count, default=20_000, metavar="N", help="training patches (20000)")
    task = "what to predict: photograph and quadrant (8 classes), or photograph (2 classes) (quadrant)"
    add("--task", choices=("quadrant", "photo"), default="quadrant", help=task)
    add("--no-compare", action="store_true", help="skip scikit-learn's SVC")
    out = f"output image, PNG ({DEMO_PICTURE}, which is replaced)"
    add("--out", type=_output, default=DEMO_PICTURE, metavar="PATH", help=out)


def _add_training(commands: Any, name: str, summary: str, *groups: Callable[[Any], None]) -> None:
    """Add a command that reads data and saves a model, with these groups of options among the common ones."""
    command = _add_command(commands, name, summary, inputs=("data", "test"), outputs=("model",))
    command.add_argument("data", metavar="DATA", help="training data; - is standard input")
    model = "output file for the model, such as model.skops; - is standard output"
    command.add_argument("model", type=_output, metavar="MODEL", help=model)
    for add in (_add_reading, _add_preparation, *groups, _add_limits):
        add(command)
    test = command.add_argument_group("evaluation").add_mutually_exclusive_group().add_argument
    test("--test", metavar="FILE", help="report the accuracy on these data")
    holdout = "report the accuracy on this share of the data, held out; 0 < P < 1"
    test("--holdout", type=_fraction, metavar="P", help=holdout)


def _add_predict(commands: Any) -> None:
    summary = "Predict the label of every sample, one per line"
    command = _add_command(commands, "predict", summary, inputs=("data", "model"), outputs=("out",))
    add = command.add_argument
    add("data", metavar="DATA", help="samples; labels are optional in .csv and .npz files; - is standard input")
    add("model", metavar="MODEL", help="model saved by train or compress, or of another program")
    out = "output file (standard output); written after a complete prediction"
    add("out", type=_output, metavar="OUT", nargs="?", help=out)
    decision = "write decision values instead of labels: one for two classes (positive for the second), otherwise one"
    add("--decision", action="store_true", help=f"{decision} per class, separated by tabs")
    _add_reading(command)
    _add_foreign(command)


def _add_compress(commands: Any) -> None:
    summary = "Approximate a kernel model by one that predicts in a few inner products, and report what is lost"
    command = _add_command(commands, "compress", summary, inputs=("model", "data"), outputs=("out", "onnx"))
    add = command.add_argument
    ours = "model saved by train, or by skops: SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge of scikit-learn"
    others = "a model file of LIBSVM, OpenCV or another program that widemargin.read_machine reads"
    add("model", metavar="MODEL", help=f"{ours}; or {others}")
    add("out", type=_output, metavar="OUT", help="output file for the compressed model; - is standard output")
    data = "samples like those to predict, best the training data (default: the support vectors)"
    add("--data", metavar="FILE", help=data)
    add("--onnx", type=_output, metavar="FILE", help="also write the compressed model as ONNX")
    for group in (_add_reading, _add_foreign, _add_cost, _add_limits):
        group(command)


# Groups of options ----------------------------------------------------------------------------------------------------


def _add_reading(command: Any) -> None:
    add = command.add_argument_group("data").add_argument
    formats = ("csv", "arff", "json", "parquet", "arrow", "xlsx", "npz", "svmlight")
    add("--format", choices=formats, help="whatever the suffix; needed for standard input")
    target = "label column: its name or its position, from 0 or, if negative, from the end (-1); of .npz the key (y)"
    add("--target", type=_column, metavar="COLUMN", help=target)
    header = "whether the first line of a text names its columns; auto: where its cells are unlike those below (auto)"
    add("--header", choices=("auto", "yes", "no"), default="auto", help=header)
    add("--delimiter", type=_mark, metavar="MARK", help="of a text: one character, tab or space (, ; | tab or blanks)")
    add("--decimal", choices=(".", ","), default=".", help="mark before the decimals in a text (.)")
    add("--thousands", type=_mark, metavar="MARK", help="mark between thousands in a text: one character, or space")
    missing = "further words for missing values; empty, NA, NaN, null, ? and \\N are some, of numbers - and . too"
    add("--missing", type=_words, default=(), metavar="WORD,...", help=missing)
    add("--zero-based", action="store_true", help="svmlight feature indices start at 0 instead of 1")
    dtype = "of the samples and the kernel values; auto: float32, or float64 where seven digits are too few (auto)"
    add("--dtype", choices=("auto", "float32", "float64"), default="auto", help=dtype)


def _add_foreign(command: Any) -> None:
    add = command.add_argument_group("model files of other programs").add_argument
    add("--n-features", type=_count, metavar="N", help="columns, where the last ones are 0 in all support vectors")
    scale = "range file of svm-scale, or scale file of e1071, or this and its y-scale file: of rows not yet scaled"
    add("--scale", type=_words, metavar="FILE[,FILE]", help=scale)
    add("--classes", type=_words, metavar="NAME,...", help="names for the labels of the file, in their ascending order")


def _add_preparation(command: Any) -> None:
    add = command.add_argument_group("columns").add_argument
    drop = "columns to leave out, by name, or by position from 0 on"
    add("--drop", type=_columns, default=(), metavar="COL,...", help=drop)
    text = "columns taken as categories, each a feature 0 or 1, beside those that are text"
    add("--one-hot", dest="text", type=_columns, default=(), metavar="COL,...", help=text)
    impute = "fill in missing numbers by the median or the most frequent value of their column; none: an error"
    more = "Missing categories are one of their own (auto: median of tables)"
    add("--impute", choices=("auto", "none", "median", "most_frequent"), default="auto", help=f"{impute}. {more}")
    unlabelled = "what becomes of rows whose label is missing (error)"
    add("--unlabelled", choices=("error", "drop"), default="error", help=unlabelled)
    scale = "scale features to zero mean and unit variance, or to [0, 1], and save the scaling with the model; sparse"
    more = "data are not centred, and categories not scaled (none)"
    add("--scale", choices=("none", "standard", "minmax"), default="none", help=f"{scale} {more}")


def _add_machine(command: Any) -> None:
    machines = {"dcsvm": "DCSVMClassifier", "ocas": "OCASClassifier", "bsgd": "BSGDClassifier"}
    machines |= {"dcpred": "DCPredClassifier", "regression": "DCSVMRegressor", "one-class": "DCOneClassSVM"}
    command.set_defaults(machines=machines)
    add = command.add_argument_group("model").add_argument
    task = "regression: labels are numbers; one-class: find samples unlike most others, without labels (a .csv file"
    more = "has none unless --target names them); both with --estimator dcsvm (classification)"
    add(
        "--task", choices=("classification", "regression", "one-class"), default="classification", help=f"{task} {more}"
    )
    exact = "dcsvm: exact kernel SVM; ocas or linear: linear SVM, also of more rows than memory holds"
    others = (
        "bsgd: kernel SVM with at most --budget support vectors, by stochastic gradient descent; dcpred: approximate"
    )
    estimator = f"{exact}; {others} kernel SVM, for the fastest predictions, always with intercepts (dcsvm)"
    add("--estimator", type=_estimator, choices=("dcsvm", "ocas", "bsgd", "dcpred"), default="dcsvm", help=estimator)
    add("-C", type=_positive, metavar="C", help="weight of the losses, > 0 (1)")
    add("--epsilon", type=_number, metavar="E", help="regression: errors up to E cost nothing (0.1)")
    add("--nu", type=_positive, metavar="NU", help="one-class: fraction outside (0.5)")
    gamma = (
        "kernel coefficient: a number > 0, scale = 1/(n_features * variance), auto = 1/n_features, or, of one-class,"
    )
    near = "near = 1/distance of near rows (scale; one-class: near)"
    add("--gamma", type=_auto(_positive, "scale", "near"), metavar="G", help=f"{gamma} {near}")
    add("--budget", type=_count, metavar="B", help="bsgd: most support vectors (100)")
    add("--epochs", dest="n_epochs", type=_count, metavar="N", help="bsgd: passes over the samples (20)")
    level = "stop at this level of clusters, which predicts early: a fraction of the time; 0 is exact (0)"
    add("--stop-level", type=_auto(_level), metavar="N", help=level)
    add("--kernel", choices=_KERNELS, help="kernel function (rbf)")
    _add_kernel_and_loss(add)


def _add_search(command: Any) -> None:
    machines = {"dcsvm": "DCSVMClassifierCV", "ocas": "OCASClassifierCV", "regression": "DCSVMRegressorCV"}
    command.set_defaults(machines=machines)
    add = command.add_argument_group("search").add_argument
    add("--task", choices=("classification", "regression"), default="classification", help="(classification)")
    estimator = "dcsvm: exact kernel SVM; ocas: linear SVM, of which C alone is chosen (dcsvm)"
    add("--estimator", type=_estimator, choices=("dcsvm", "ocas"), default="dcsvm", help=estimator)
    add("--Cs", type=_auto(_values), metavar="N|C,C,...", help="values of C, or how many (auto; ocas: 10)")
    add("--gammas", type=_auto(_values), metavar="N|G,G,...", help="values of gamma, or how many (auto)")
    relevance = "scale the columns by their relevance, where held-out scores rise (auto)"
    add("--relevance", action=argparse.BooleanOptionalAction, help=relevance)
    add("--folds", type=_count, default=5, metavar="N", help="folds of the cross-validation (5)")
    add("--scoring", metavar="NAME", help="a scorer of scikit-learn, such as roc_auc (accuracy; regression: r2)")
    kernel = "kernel function: auto chooses rbf or laplacian (auto)"
    add("--kernel", dest="kernels", choices=("auto", *_KERNELS), help=kernel)
    _add_kernel_and_loss(add)


def _add_kernel_and_loss(add: Callable[..., Any]) -> None:
    loss = "of a sample: of ocas one of the first three (hinge), of regression one of the others (epsilon_insensitive)"
    add("--loss", choices=LOSSES, help=loss)
    add("--degree", type=_count, metavar="D", help="degree of the poly kernel (3)")
    add("--coef0", type=_number, metavar="R", help="constant term of poly and sigmoid (0)")
    intercept = "whether the model has an intercept (dcsvm and ocas have one, bsgd has none)"
    add("--intercept", dest="fit_intercept", action=argparse.BooleanOptionalAction, help=intercept)
    balanced = "weigh classes inversely to their frequency"
    add("--balanced", dest="class_weight", action="store_const", const="balanced", help=balanced)


def _add_cost(command: Any) -> None:
    add = command.add_argument_group("prediction cost", "for compress, and for train --estimator dcpred").add_argument
    cost = "largest cost of a prediction, in inner products of all features, at least 4 (auto)"
    add("--prediction-cost", type=_auto(_positive), metavar="COST", help=cost)
    for name, what in (("clusters", "leaves of a tree"), ("landmarks", "landmarks of a leaf")):
        add(f"--n-{name}", type=_auto(_count), metavar="N", help=f"{what} (auto)")


def _add_limits(command: Any) -> None:
    add = command.add_argument_group("limits").add_argument
    if command.get_default("machines"):
        text = "stopping tolerance: of the KKT violation; of ocas the relative duality gap (0.001)"
        add("--tol", type=_positive, metavar="T", help=text)
    add("--max-time", type=_positive, metavar="S", help="stop after S seconds with the best model so far (no limit)")
    add("--memory-budget", type=_bytes, metavar="BYTES", help="memory beside the data, such as 500MB or 2GiB")
    add("--n-jobs", type=int, metavar="N", help="number of threads (one per core)")


# Types of options -----------------------------------------------------------------------------------------------------


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _between(low: float, high: float, what: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        number = _number(text)
        if not low < number < high:
            raise argparse.ArgumentTypeError(f"{text} is not {what}")
        return number

    return read


_positive, _fraction = _between(0, math.inf, "a finite number above 0"), _between(0, 1, "between 0 and 1")


def _count(text: str) -> int:
    if not re.fullmatch(r"\+?[0-9]+", text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _level(text: str) -> int:
    return 0 if text == "0" else _count(text)


def _auto(number: Callable[[str], Any], *words: str) -> Callable[[str], Any]:
    """A parser of an option that is a number, say, or "auto" or another of these words."""

    def read(text: str) -> Any:
        if text in (*words, "auto"):
            return text
        try:
            return number(text)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{error}, nor {', '.join((*words, 'auto'))}") from None

    return read


def _values(text: str) -> int | list[float]:
    """An option N or V,V,...: how many values, or the values."""
    return _count(text) if text.isdecimal() else [_number(part) for part in text.split(",")]


def _estimator(text: str) -> str:
    return "ocas" if text == "linear" else text


def _column(text: str) -> int | str:
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else text


def _columns(text: str) -> list[int | str]:
    return list(map(_column, _words(text)))


def _words(text: str) -> list[str]:
    """An option WORD,WORD,...; a word with a comma stands in quotes."""
    return next(csv.reader([text], skipinitialspace=True))


def _mark(text: str) -> str:
    mark = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(mark) != 1 or mark in '"\r\n':
        raise argparse.ArgumentTypeError(f"{text!r} is not one character, nor tab, space")
    return mark


def _output(text: str) -> str:
    return "-" if text in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1") else text


def _bytes(text: str) -> int:
    from widemargin._config import resolve_memory_budget

    try:
        return resolve_memory_budget(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
