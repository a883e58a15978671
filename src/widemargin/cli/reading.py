"""Data files as the commands read them: training data with those of --test, samples for a model."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from widemargin._config import config_context, resolve_memory_budget
from widemargin._model_files import read_table_facts
from widemargin.cli.labels import as_numbers, check_classes, check_test_labels, note_rare_classes, shorten
from widemargin.cli.messages import note
from widemargin.datasets import Dataset, load_arff, load_csv, load_npz, load_svmlight, reader_for
from widemargin.datasets.files import file_error, quoted
from widemargin.datasets.layouts import Columns, TableOptions, line_of, read_columns, suggestion
from widemargin.datasets.tables import read_table

_FORMATS: dict[str, Callable[..., Dataset]] = {
    "csv": load_csv,
    "arff": load_arff,
    "npz": load_npz,
    "svmlight": load_svmlight,
}
_HEADERS: dict[str, Any] = {"auto": "auto", "yes": True, "no": False}


@dataclass(frozen=True)
class Features:
    """The features of a model, as its training data had them; saved in its file.

    Attributes
    ----------
    n_features : int
    names : list of str, or None
    text : list of int
        Positions of those that are text.
    dropped : list of str or int
        Columns that were left out: names, or without a header positions, the label not counted.
    may_lack_values : bool
    dtype : str or None
    """

    n_features: int
    names: list[str] | None = None
    text: tuple[int, ...] = ()
    dropped: tuple[int | str, ...] = ()
    may_lack_values: bool = False
    dtype: str | None = None

    def facts(self) -> dict[str, Any]:
        """As a mapping that can be saved."""
        return asdict(self)


class Training(NamedTuple):
    """Training data, and test data if there are any; their features."""

    data: Dataset
    features: Features


def _reader_of(path: str, args: Namespace) -> Callable[..., Dataset]:
    """The reader of `--format`, or that of the file's suffix."""
    return _FORMATS[args.format] if args.format else reader_for(path)


def _is_table(path: str, args: Namespace) -> bool:
    return _reader_of(path, args) in (load_csv, load_arff)


def _dtype_of(args: Namespace, default: str | None = None) -> Any:
    name = default if args.dtype == "auto" else args.dtype
    return None if name is None else {"float32": np.float32, "float64": np.float64}[name]


def _table_options(path: str, args: Namespace, **more: Any) -> TableOptions:
    options = TableOptions(
        target=-1 if args.target is None else args.target,
        delimiter=args.delimiter,
        header=_HEADERS[args.header],
        decimal=args.decimal,
        dtype=_dtype_of(args),
        arff=_reader_of(path, args) is load_arff,
    )
    return replace(options, **more)


# Training ---------------------------------------------------------------------------------------------------------


def _within_budget(args: Namespace) -> AbstractContextManager[None]:
    """Readers refuse what exceeds `--memory-budget`."""
    budget = getattr(args, "memory_budget", None)
    return config_context(**({} if budget is None else {"memory_budget": budget}))


def read_training(args: Namespace) -> Training:
    """The training data with those of `--test`, and what a table for the model must have."""
    with _within_budget(args):
        return _read_training(args)


def _read_training(args: Namespace) -> Training:
    table = _is_table(args.data, args)
    data, features, line_of_row = _training_table(args) if table else _training_arrays(args)
    if args.task == "one-class":
        return Training(data, features)
    if data.y is None:
        raise file_error(args.data, "it has no labels, which training needs")
    if args.task == "regression":
        data = data._replace(y=as_numbers(args.data, data.y))
    else:
        check_classes(args.data, data.y)
        note_rare_classes(data.y, line_of_row)
    if args.test is None:
        return Training(data, features)
    test = _read_test(args, features)
    y_test = as_numbers(args.test, test.y) if args.task == "regression" else test.y
    if args.task == "classification":
        check_test_labels(args.test, y_test, data.y)
    return Training(data._replace(X_test=test.X, y_test=y_test), features)


def _training_table(args: Namespace) -> tuple[Dataset, Features, Callable[[int], int] | None]:
    """The samples of a table, its features, and a function that finds the line of a row."""
    options = _table_options(
        args.data,
        args,
        drop=args.drop,
        text=args.text,
        may_lack_values=args.impute != "none",
        unlabelled="drop" if args.unlabelled == "drop" else "raise",
    )
    if args.task == "one-class" and args.target is None:
        options = replace(options, target=None)
    data, columns = read_table(args.data, options)
    if args.text == "auto":
        _note_categories(args.data, data.X, columns)
    if args.task == "one-class":
        data = data._replace(y=None)
    features = Features(
        len(columns.features),
        columns.feature_names,
        tuple(place for place, position in enumerate(columns.features) if position in columns.text),
        _dropped(columns),
        options.may_lack_values,
        None if data.X.dtype == object else data.X.dtype.name,
    )
    left_out = options.unlabelled == "drop"  # then rows don't have the numbers of their lines
    return data, features, None if left_out else lambda row: line_of(args.data, row, options)


def _note_categories(path: str, X: Any, columns: Columns) -> None:
    """Say on stderr which columns are taken as categories, and which of them differ from row to row."""
    names = {k: quoted(columns.names[k]) if columns.names else str(k) for k in sorted(columns.text)}
    note(f"{path}: columns taken as categories: {shorten(names.values()) or 'none'}")
    for place, k in enumerate(columns.features):
        if k in columns.text and (n_found := len(set(X[:, place]))) > len(X) / 2:
            note(f"{names[k]} has {n_found} categories in {len(X)} rows: --drop it, if it is a date or an id")


def _dropped(columns: Columns) -> tuple[int | str, ...]:
    """The columns that are neither the label nor features: by name, or by position, the label not counted."""
    unlabelled = [k for k in range(columns.width) if k != columns.target]
    places = [place for place, k in enumerate(unlabelled) if k not in columns.features]
    return tuple(places) if columns.names is None else tuple(columns.names[unlabelled[place]] for place in places)


def _training_arrays(args: Namespace) -> tuple[Dataset, Features, None]:
    if args.drop or args.text:
        raise file_error(args.data, "--drop and --one-hot are for tables: .csv, .tsv, .arff")
    data = _read_arrays(args.data, args)
    if args.task == "one-class":
        data = Dataset(data.X, None)
    return data, Features(data.X.shape[1], dtype=data.X.dtype.name), None


def _read_arrays(path: str, args: Namespace, dtype: str | None = None) -> Dataset:
    """The samples of an svmlight file or an archive."""
    if _reader_of(path, args) is load_svmlight:
        return load_svmlight(path, zero_based=args.zero_based, dtype=_dtype_of(args, dtype))
    return load_npz(path, target="y" if args.target is None else str(args.target))


def _read_test(args: Namespace, features: Features) -> Dataset:
    """The data of `--test`, with the features of the training data in their order, and labels."""
    if _is_table(args.test, args):
        options = _table_options(args.test, args, unlabelled="drop" if args.unlabelled == "drop" else "raise")
        test = _read_matching(args.test, options, features, f"{args.data} has")
    else:
        test = _with_columns(args.test, args, features, f"{args.data} has")
    if test.y is None:
        raise file_error(args.test, "it has no labels, which the accuracy needs")
    return test


# Samples for known features -------------------------------------------------------------------------------------------


def read_to_predict(model: Any, args: Namespace) -> Dataset:
    """The samples to predict, with the model's features in its order, and their labels if there are any."""
    features, owner = features_of(model, args.model), "the model was trained with"
    if not _is_table(args.data, args):
        return _with_columns(args.data, args, features, owner)
    options = _table_options(args.data, args, unlabelled="keep")
    if args.target is None:
        options = replace(options, target=_label_column(args.data, options, features))
    return _read_matching(args.data, options, features, owner)


def features_of(model: Any, path: str) -> Features:
    """The features that a model file describes, or those that its model knows of."""
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"{path}: its model takes text, not a table: use it in Python, by widemargin.load")
    n_features, facts = int(model.n_features_in_), read_table_facts(path)
    try:
        if _are_valid(facts, n_features):
            return Features(**{**facts, "text": tuple(facts["text"]), "dropped": tuple(facts["dropped"])})
    except (KeyError, TypeError):  # no facts, or other ones
        pass
    names = getattr(model, "feature_names_in_", None)
    return Features(n_features, None if names is None else [str(name) for name in names])


def _are_valid(facts: dict[str, Any], n_features: int) -> bool:
    """Whether what a file holds can be the facts of a model with so many features."""
    names = facts["names"]
    return (
        facts["n_features"] == n_features
        and (names is None or (len(names) == n_features and all(isinstance(name, str) for name in names)))
        and all(isinstance(place, int) and 0 <= place < n_features for place in facts["text"])
        and all(isinstance(column, int | str) for column in facts["dropped"])
        and facts["dtype"] in (None, "float32", "float64")
    )


def _with_columns(path: str, args: Namespace, features: Features, owner: str) -> Dataset:
    """Samples of an svmlight file with as many columns as there are features; of an archive, which must have them."""
    wanted = features.n_features
    with config_context(memory_budget=max(resolve_memory_budget(), 8 * wanted)):  # as wide as these is no typo
        data = _read_arrays(path, args, features.dtype)
    n_found = data.X.shape[1]
    if n_found != wanted and _reader_of(path, args) is not load_svmlight:
        raise file_error(path, _mismatch(n_found, features, owner))
    if n_found > wanted:
        note(f"{path}: features beyond the {wanted} that {owner} are ignored: {n_found - wanted}")
        return data._replace(X=data.X[:, :wanted])
    if n_found < wanted:
        data.X.resize((data.X.shape[0], wanted))  # in place; the further ones are zero
    return data


def _mismatch(n_found: int, features: Features, owner: str) -> str:
    has = owner if owner.endswith("with") else f"but {owner}"
    return f"{n_found} features, {'but ' if has == owner else ''}{has} {features.n_features}"


def _label_column(path: str, options: TableOptions, features: Features) -> int | None:
    """The column of the label in a table to predict: the one whose name is no feature of the model, or the last.

    None where the table has as many columns as the model has features.
    """
    columns = read_columns(path, replace(options, target=None))
    names = columns.names
    if names is None:
        n_all = features.n_features + len(features.dropped)
        return None if columns.width in (features.n_features, n_all) else -1
    known = set(features.names or ())
    others = [k for k in columns.features if names[k] not in known and names[k] not in features.dropped]
    n_dropped = sum(names[k] in features.dropped for k in columns.features)
    if len(columns.features) - n_dropped == features.n_features:
        return None
    return others[0] if features.names and len(others) == 1 else -1


def _read_matching(path: str, options: TableOptions, features: Features, owner: str) -> Dataset:
    """Samples of a table, whose columns are found by name, or by position where a file or the model has no names."""
    header = True if isinstance(options.target, str) else options.header
    whole = read_columns(path, replace(options, target=None, header=header))
    _check_has_columns(path, whole, features, owner)
    options = replace(
        options, may_lack_values=features.may_lack_values, dtype=options.dtype or _dtype_of_features(features)
    )
    options = replace(options, drop=_positions_to_drop(read_columns(path, options), features))
    columns = read_columns(path, options)
    if len(columns.features) != features.n_features:
        raise file_error(path, _mismatch(len(columns.features), features, owner))
    order = _order(path, columns, features, owner)
    text = [columns.features[order[k]] for k in features.text]
    data = read_table(path, replace(options, text=text)).data
    return data if order == sorted(order) else data._replace(X=np.take(data.X, order, axis=1))


def _dtype_of_features(features: Features) -> Any:
    return {"float32": np.float32, "float64": np.float64}.get(features.dtype or "")


def _check_has_columns(path: str, columns: Columns, features: Features, owner: str) -> None:
    """Raise a ValueError that names the first feature that is no column of a table with a header."""
    found, names = columns.names, features.names
    if found is None or names is None or set(names) <= set(found):
        return
    name = next(name for name in names if name not in found)
    raise file_error(path, f"no column is named {quoted(name)}, which {owner}{suggestion(name, found)}", columns.line)


def _positions_to_drop(columns: Columns, features: Features) -> list[int]:
    """Positions of the columns that training left out, in a table that has them."""
    unlabelled = [k for k in range(columns.width) if k != columns.target]
    if columns.names is not None and features.names is not None:
        return [k for k in columns.features if columns.names[k] in features.dropped]
    if len(unlabelled) != features.n_features + len(features.dropped):
        return []
    return [unlabelled[place] for place in features.dropped if isinstance(place, int)]


def _order(path: str, columns: Columns, features: Features, owner: str) -> list[int]:
    """For each feature its place among those of the table.

    Raises
    ------
    ValueError
        If the names differ by more than their order: naming the first column that has another name than expected.
    """
    found, names = columns.feature_names, features.names
    if found is None or names is None:
        return list(range(features.n_features))
    warnings.filterwarnings("ignore", "X does not have valid feature names")  # until the command ends
    if len(set(found)) == len(found) and set(found) == set(names):
        return [found.index(name) for name in names]
    if found == names:
        return list(range(len(names)))
    k = next(k for k, name in enumerate(found) if name != names[k])
    number = columns.features[k] + 1
    message = f"column {number} is {quoted(found[k])}, {owner} {quoted(names[k])} there"
    raise file_error(path, message, columns.line)
