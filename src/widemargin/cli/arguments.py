"""The program's arguments: what each command takes, and how an option's text becomes a value.

An option that has no default here is left to the estimator, whose parameter it is: `commands.check_applicable`.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from widemargin import __version__
from widemargin._config import resolve_memory_budget

DEMO_PICTURE = "widemargin-demo.png"
LOSSES = ("hinge", "squared_hinge", "logistic", "epsilon_insensitive", "squared_epsilon_insensitive", "absolute")

# Groups of arguments, each with its title. A line is "name>dest TYPE=default  help", which the next may continue after
# blanks: a name without dashes is a file; without a type an option is a switch, and {a|b} are its choices.
_GROUPS = f"""
files to train
data  training data; - is standard input
model  output file for the model, such as model.skops; - is standard output

files to predict
data  samples; labels are optional in .csv and .npz files; - is standard input
model  model saved by train or compress, or of another program
out ?  output file (standard output); written after a complete prediction
--decision  write decision values instead of labels: one for two classes (positive for the second), otherwise one per
    class, separated by tabs

files to compress
model  model saved by train, or by skops: SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge of scikit-learn; or a model
    file of LIBSVM, OpenCV or another program that widemargin.read_machine reads
out  output file for the compressed model; - is standard output
--data FILE  samples like those to predict, best the training data (default: the support vectors)
--onnx FILE  also write the compressed model as ONNX

files to describe
model  model saved by train or compress

demo
--n-samples N=20000  training patches
--out FILE={DEMO_PICTURE}  output image, PNG, which is replaced if it has this name

data
--format {{csv|arff|json|parquet|arrow|xlsx|npz|svmlight}}  whatever the suffix; needed for standard input
--target COLUMN  label column: its name or its position, from 0 or, if negative, from the end (-1); of .npz the key (y)
--header {{auto|yes|no}}=auto  whether the first line of a text names its columns; auto: where it is unlike those below
--delimiter MARK  of a text: one character, tab or space (, ; | tab or blanks)
--decimal {{.|,}}=.  mark before the decimals in a text
--thousands MARK  mark between thousands in a text: one character, or space
--missing WORD,...  further words for missing values; empty, NA, NaN, null, ? and \\N are some, of numbers - and . too
--zero-based  svmlight feature indices start at 0 instead of 1
--dtype {{auto|float32|float64}}=auto  of samples and kernel values; auto: float64 where seven digits are too few

model files of other programs
--n-features N  columns, where the last ones are 0 in all support vectors
--scale FILE,...  range file of svm-scale, or scale file of e1071, or this and its y-scale file: of rows not yet scaled
--classes WORD,...  names for the labels of the file, in their ascending order

columns
--drop COL,...  columns to leave out, by name, or by position from 0 on
--one-hot>text COL,...  columns taken as categories, each a feature 0 or 1, beside those that are text
--impute {{auto|none|median|most_frequent}}=auto  fill in missing numbers by the median or the most frequent value of
    their column; none: an error; auto: median of tables. Missing categories are one of their own
--unlabelled {{error|drop}}=error  what becomes of rows whose label is missing
--scale {{none|standard|minmax}}=none  scale features to zero mean and unit variance, or to [0, 1], and save the scaling
    with the model; sparse data are not centred, and categories not scaled

model
--task {{classification|regression|one-class}}=classification  regression: labels are numbers; one-class: find samples
    unlike most others, without labels (a .csv file has none unless --target names them); both with --estimator dcsvm
--estimator {{dcsvm|ocas|linear|bsgd|dcpred}}=dcsvm  dcsvm: exact kernel SVM; ocas or linear: linear SVM, also of more
    rows than memory holds; bsgd: kernel SVM with at most --budget support vectors, by stochastic gradient descent;
    dcpred: approximate kernel SVM, for the fastest predictions, always with intercepts
-C X  weight of the losses, > 0 (1)
--epsilon R  regression: errors up to this cost nothing (0.1)
--nu X  one-class: fraction outside (0.5)
--gamma X|scale|near|auto  kernel coefficient: a number > 0, scale = 1/(n_features * variance), auto = 1/n_features, or,
    of one-class, near = 1/distance of near rows (scale; one-class: near)
--budget N  bsgd: most support vectors (100)
--epochs>n_epochs N  bsgd: passes over the samples (20)
--stop-level LEVEL|auto  stop at this level of clusters, which predicts early: a fraction of the time; 0 is exact (0)
--kernel {{rbf|laplacian|poly|sigmoid|linear}}  kernel function (rbf)

search
--task {{classification|regression}}=classification  what the labels are
--estimator {{dcsvm|ocas|linear}}=dcsvm  dcsvm: exact kernel SVM; ocas or linear: linear SVM, of which C alone is chosen
--Cs VALUES|auto  values of C, as 0.1,1,10, or how many (auto; ocas: 10)
--gammas VALUES|auto  values of gamma, or how many (auto)
--[no-]relevance  scale the columns by their relevance, where held-out scores rise (auto)
--folds N=5  folds of the cross-validation
--scoring NAME  a scorer of scikit-learn, such as roc_auc (accuracy; regression: r2)
--kernel>kernels {{auto|rbf|laplacian|poly|sigmoid|linear}}  kernel function: auto chooses rbf or laplacian (auto)

details
--loss {{{"|".join(LOSSES)}}}  of a sample: of ocas one of the first three (hinge), of regression one of the others
    (epsilon_insensitive)
--degree N  degree of the poly kernel (3)
--coef0 R  constant term of poly and sigmoid (0)
--[no-]intercept>fit_intercept  whether the model has an intercept (dcsvm and ocas have one, bsgd has none)
--balanced>class_weight=balanced  weigh classes inversely to their frequency
--tol X  stopping tolerance: of the KKT violation; of ocas the relative duality gap (0.001)

prediction cost, of compress and of dcpred
--prediction-cost X|auto  largest cost of a prediction, in inner products of all features, at least 4 (auto)
--n-clusters N|auto  leaves of a tree (auto)
--n-landmarks N|auto  landmarks of a leaf (auto)

limits
--max-time X  stop after so many seconds with the best model so far (no limit)
--memory-budget BYTES  memory beside the data, such as 500MB or 2GiB
--n-jobs INT  number of threads (one per core)

evaluation
--test FILE  report the accuracy on these data
--holdout P  report the accuracy on this share of the data, held out; 0 < P < 1

outputs
--force  replace output files that exist

progress
--seed>random_state INT=0  random seed
--quiet  show no progress bar
"""
_ARGUMENTS = dict(group.split("\n", 1) for group in _GROUPS.strip().split("\n\n"))  # by their titles

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
    version = f"widemargin {__version__}"
    parser.add_argument("--version", action="version", version=version, help="show the version and exit")
    add = partial(_add_command, parser.add_subparsers(title="commands", required=True, metavar="COMMAND"))
    summary = "Train on patches of two photographs, compare with scikit-learn's SVC, and paint the predictions"
    add("demo", summary, ["demo", "outputs", "progress"], outputs=("out",))
    summary = "Train an SVM and save it; Ctrl-C stops the training and saves the best model so far"
    files, common = {"inputs": ("data", "test"), "outputs": ("model",)}, ["limits", "evaluation", "outputs", "progress"]
    cost = "prediction cost, of compress and of dcpred"
    train = add("train", summary, ["files to train", "data", "columns", "model", "details", cost, *common], **files)
    machines = {"dcsvm": "DCSVMClassifier", "ocas": "OCASClassifier", "bsgd": "BSGDClassifier"}
    machines |= {"dcpred": "DCPredClassifier", "regression": "DCSVMRegressor", "one-class": "DCOneClassSVM"}
    train.set_defaults(machines=machines)
    summary = "Choose C and gamma by cross-validation, train with the best, and save the model"
    tune = add("tune", summary, ["files to train", "data", "columns", "search", "details", *common], **files)
    machines = {"dcsvm": "DCSVMClassifierCV", "ocas": "OCASClassifierCV", "regression": "DCSVMRegressorCV"}
    tune.set_defaults(machines=machines)
    foreign, summary = "model files of other programs", "Predict the label of every sample, one per line"
    predict = ["files to predict", "data", foreign, "outputs"]
    add("predict", summary, predict, inputs=("data", "model"), outputs=("out",))
    summary = "Approximate a kernel model by one that predicts in a few inner products, and report what is lost"
    compress = ["files to compress", "data", foreign, cost, "limits", "outputs", "progress"]
    add("compress", summary, compress, inputs=("model", "data"), outputs=("out", "onnx"))
    add("info", "Describe a saved model", ["files to describe"], inputs=("model",))
    return parser


class _Parser(argparse.ArgumentParser):
    """Errors of usage in two lines: what is wrong, and where to read on."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\nsee {self.prog} --help\n")


def _add_command(
    commands: Any, name: str, summary: str, titles: list[str], inputs: Any = (), outputs: Any = ()
) -> argparse.ArgumentParser:
    """Add a command; `inputs` and `outputs` are its arguments that name files, or are ``-``, a standard stream."""

    def run(args: argparse.Namespace) -> int:  # its module is imported when it is called
        module = import_module("widemargin.cli.demo" if name == "demo" else "widemargin.cli.commands")
        code: int = getattr(module, name)(args)
        return code

    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary[0].lower() + summary[1:],
        description=summary + ".",
        epilog=(_DATA_FILES if len(inputs) > 1 else "") + _EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # --gamma is not --gammas
    )
    command.set_defaults(run=run, command=command, inputs=inputs, outputs=outputs)
    for title in titles:
        group: Any = command.add_argument_group(title)
        group = group.add_mutually_exclusive_group() if title == "evaluation" else group
        for argument in re.split(r"\n(?=\S)", _ARGUMENTS[title]):
            _add_argument(group, argument)
    return command


def _add_argument(group: Any, argument: str) -> None:
    """Add an argument, as one of `_GROUPS` declares it."""
    declared = re.fullmatch(r"([^\s=>]+)(?:>(\w+))?(?: ([^\s=]+))?(?:=(\S+))?  (.*)", argument, re.DOTALL)
    assert declared is not None, argument
    name, dest, form, default, text = declared.groups()
    help_ = " ".join(text.split()) + (f" ({default})" if form and default else "")
    more: dict[str, Any] = {"help": help_, **({"dest": dest} if dest else {})}
    if not name.startswith("-"):
        more |= {"metavar": name.upper(), "nargs": form}
    elif name.startswith("--[no-]"):
        more |= {"action": argparse.BooleanOptionalAction}
    elif form is None:
        more |= {"action": "store_const", "const": default or True, "default": None if default else False}
    elif form.startswith("{"):
        more |= {"choices": form[1:-1].split("|"), "default": default}
    else:
        read = partial(_value, form)
        more |= {"type": read, "metavar": form, "default": None if default is None else read(default)}
    group.add_argument(name.replace("[no-]", ""), **more)


# Types of options -----------------------------------------------------------------------------------------------------


def _value(form: str, text: str) -> Any:
    """The value of an option, whose form is a type or words: ``X|auto``."""
    kind, *words = form.split("|")
    convert, what = _TYPES[kind]
    try:
        return text if text in words else convert(text)
    except ValueError:
        others = f", nor {', '.join(words)}" if words else ""
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}{others}") from None


def _between(low: float, high: float, text: str) -> float:
    number = float(text)
    if not low < number < high:
        raise ValueError
    return number


def _whole(least: int, text: str) -> int:
    if not re.fullmatch(r"\+?[0-9]+", text) or int(text) < least:
        raise ValueError
    return int(text)


def _values(text: str) -> int | list[float]:
    return _whole(1, text) if text.isdecimal() else [float(part) for part in text.split(",")]


def _column(text: str) -> int | str:
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else text


def _words(text: str) -> list[str]:
    """An option WORD,WORD,...; a word with a comma stands in quotes."""
    return next(csv.reader([text], skipinitialspace=True))


def _mark(text: str) -> str:
    mark = {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)
    if len(mark) != 1 or mark in '"\r\n':
        raise ValueError
    return mark


_TYPES: dict[str, tuple[Callable[[str], Any], str]] = {
    "N": (partial(_whole, 1), "a whole number of at least 1"),
    "LEVEL": (partial(_whole, 0), "a whole number of at least 0"),
    "INT": (int, "a whole number"),
    "R": (float, "a number"),
    "X": (partial(_between, 0, math.inf), "a finite number above 0"),
    "P": (partial(_between, 0, 1), "between 0 and 1"),
    "VALUES": (_values, "how many values, or values with commas between them"),
    "BYTES": (resolve_memory_budget, "a number of bytes, such as 500MB or 2GiB"),
    "MARK": (_mark, "one character, nor tab, space"),
    "COLUMN": (_column, "a column"),
    "COL,...": (lambda text: list(map(_column, _words(text))), "columns"),
    "WORD,...": (_words, "words"),
    "FILE,...": (_words, "files"),
    "FILE": (str, "a file"),
    "NAME": (str, "a name"),
}
