"""The data of the commands: to train on, also streamed; samples for a model, and what it knows of them."""

from __future__ import annotations

import shutil
import warnings
from argparse import Namespace
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from widemargin._config import config_context, resolve_memory_budget
from widemargin._model_files import read_table_facts
from widemargin._types import Given, Model
from widemargin.cli.reports import as_numbers, check_classes, check_test_labels, note_rare_classes, steps_of
from widemargin.cli.streams import note
from widemargin.datasets import Dataset, load_npz, load_svmlight
from widemargin.datasets.arrays import is_rounded
from widemargin.datasets.columns import Column, first_gaps, frame_of
from widemargin.datasets.files import file_error, quoted, shorten
from widemargin.datasets.layouts import Layout, TableOptions, positions_of, suggestion
from widemargin.datasets.tables import ARRAYS, TableSource, format_of

LINEAR_SHARE = 3  # memory budget / bytes of a table that a linear machine takes whole: copies and indicators need room
_DRAWN_SHARE = 24  # a third of the memory budget / numbers drawn of a table larger than that, to fit a preparation on
_BLOCK_ROWS = 2**14


@dataclass(frozen=True)
class Features:
    """The features of a model, as its training data had them; saved in its file."""

    n_features: int
    names: list[str] | None = None
    kinds: list[str] | None = None  # of the features; None where the data were a matrix
    columns: list[str] | None = None  # all names of the training table
    places: list[int] | None = None  # positions of the features in the training table
    width: int = 0  # number of columns of the training table
    target: int | str | None = None  # name of the label, or its position where there are no names
    levels: dict[str, list[str]] | None = None  # the words of each category, by the number of the feature
    lacks_values: bool = False  # whether numbers were missing
    dtype: str | None = None


class Training(NamedTuple):
    """Training data, and test data if there are any; their features, and weights of samples."""

    data: Dataset  # of a table larger than memory: rows drawn of it
    features: Features
    weights: Any = None
    whole: Any = None  # of such a table: its layout, the columns of all rows, their labels, the folder of their maps


def table_options(args: Namespace, **more: Any) -> TableOptions:
    """How `args` have a table read; `more` goes before."""
    options = TableOptions(
        target=-1 if args.target is None else args.target,
        missing=args.missing or (),
        delimiter=args.delimiter,
        header={"yes": True, "no": False}.get(args.header, "auto"),
        decimal=args.decimal,
        thousands=args.thousands,
        unlabelled="drop" if getattr(args, "unlabelled", "") == "drop" else "raise",
    )
    return replace(options, **more)


def within_budget(args: Namespace, share: int = 1) -> AbstractContextManager[None]:
    """Readers refuse what exceeds a share of `--memory-budget`."""
    return config_context(memory_budget=max(1, resolve_memory_budget(getattr(args, "memory_budget", None)) // share))


# Training -------------------------------------------------------------------------------------------------------------


def training_source(args: Namespace) -> TableSource:
    """The table to train on."""
    options = table_options(args, drop=args.drop or (), text=args.text or ())
    if args.task == "one-class" and args.target is None:
        options = replace(options, target=None)  # all columns are features
    source = TableSource(args.data, options, args.format or format_of(args.data))
    layout = source.layout
    if dates := [layout.name(k) for k in layout.features if layout.kinds[k] == "date"]:
        drop = f"--drop {','.join(dates)} leaves them out"
        raise layout.error(f"columns of dates: {shorten(dates)}; {drop}".replace("'", ""))
    return source


def read_training(args: Namespace, folder: str | None = None) -> Training:
    """The training data with those of `--test`, and what the model knows of tables.

    Rows of a table that exceed a share of the budget stay in the folder, if there is one.
    """
    weights, source, whole = None, None, None
    with within_budget(args, 1 if folder is None else LINEAR_SHARE):
        if (args.format or format_of(args.data)) in ARRAYS:
            if args.drop or args.text:
                raise file_error(args.data, "--drop and --one-hot are for tables")
            data = _read_arrays(args.data, args)
            features, y = Features(data.X.shape[1], dtype=data.X.dtype.name), data.y
        else:
            source = training_source(args)
            columns, y, weights = source.read(folder)
            features, y_own = features_of_table(args, source, columns), y
            if any(isinstance(column, np.memmap) for column in columns.values()):
                whole = source.layout, columns, y, folder
                most = resolve_memory_budget() // _DRAWN_SHARE // len(columns)
                drawn = np.random.default_rng(0).choice(len(y), min(len(y), most), replace=False)
                firsts = [_first_rows(columns[k]) for k in source.layout.levels if k in columns]
                drawn = np.unique(np.concatenate([drawn, *firsts]))
                columns, y_own = {k: column[drawn] for k, column in columns.items()}, y[drawn]
            data = Dataset(frame_of(source.layout, columns, features.dtype), y_own)
    if args.task == "one-class":
        return Training(Dataset(data.X, None), features, weights)
    if y is None:
        raise file_error(args.data, "it has no labels, which training needs")
    if args.task == "regression":
        data = data._replace(y=as_numbers(args.data, y))
    else:
        check_classes(args.data, y)
        note_rare_classes(y, source)
    if args.test is not None:
        test = read_known(args.test, args, features, f"{args.data} has")
        if test.y is None:
            raise file_error(args.test, "it has no labels, which the accuracy needs")
        y_test = as_numbers(args.test, test.y) if args.task == "regression" else test.y
        if args.task == "classification":
            check_test_labels(args.test, y_test, y)
        data = data._replace(X_test=test.X, y_test=y_test)
    return Training(data, features, weights, whole)


def _first_rows(codes: Column) -> Any:
    """The first row of each number in a column of words, so that each has its indicator."""
    firsts = np.full(int(codes.max()) + 2, len(codes))  # -1, of missing words, is the last
    firsts[codes[::-1]] = np.arange(len(codes))[::-1]  # the last assignment counts
    return firsts[firsts < len(codes)]


def features_of_table(args: Namespace, source: TableSource, columns: dict[int, Column]) -> Features:
    """What a model knows of a table; notes say what is taken as categories, and what is filled in."""
    layout, dtype, gaps = source.layout, args.dtype, first_gaps(columns)
    words = {k: layout.levels[k] for k in layout.features if k in layout.levels}
    if words:
        note(f"{layout.path}: columns taken as categories: {shorten(map(layout.name, words))}")
    for k, known in words.items():
        if len(known) > len(columns[k]) / 2:
            found = f"{layout.name(k)} has {len(known)} categories in {len(columns[k])} rows"
            note(f"{found}: --drop it, if it is a date or an id")
    if gaps and args.impute == "none":
        raise _gap_error(source, gaps, "--impute median fills it in")
    if gaps:
        how = "most frequent value" if args.impute == "most_frequent" else "median"
        filled = f"missing values are filled in by the {how} of their column: {shorten(map(layout.name, sorted(gaps)))}"
        note(f"{layout.path}: {filled}")
    if dtype == "auto":
        wide = [layout.describe(k) for k, column in columns.items() if k not in words and is_rounded(column)]
        dtype = "float64" if wide else "float32"
        if wide:
            warnings.warn(f"{layout.path}: float32 would round {shorten(wide, 3)}: read as float64", stacklevel=2)
    return Features(
        n_features=len(layout.features),
        names=[layout.names[k] for k in layout.features] if layout.names else None,
        kinds=[layout.kinds[k] for k in layout.features],
        columns=layout.names,
        places=list(layout.features),
        width=layout.width,
        target=layout.names[layout.target] if layout.names and layout.target is not None else layout.target,
        levels={str(place): words[k] for place, k in enumerate(layout.features) if k in words},
        lacks_values=bool(gaps),
        dtype=dtype,
    )


def make_preparation(args: Namespace, features: Features, X: Given) -> list[Any]:
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


def _gap_error(source: TableSource, gaps: dict[int, int], remedy: str) -> ValueError:
    """The error of the first column that lacks values, in the first row that does."""
    position, row = min(gaps.items())
    return source.error_at(row, f"{source.layout.describe(position)} is missing; {remedy}")


def _read_arrays(path: str, args: Namespace, dtype: str | None = None) -> Dataset:
    """The samples of an svmlight file or an archive."""
    if (args.format or format_of(path)) == "npz":
        return load_npz(path, target="y" if args.target is None else str(args.target))
    name = dtype if args.dtype == "auto" else args.dtype
    return load_svmlight(path, zero_based=args.zero_based, dtype=None if name is None else getattr(np, name))


def map_of_rows(args: Namespace, training: Training, steps: list[Model]) -> Model:
    """A memory map of all rows of a table, prepared by steps that are fitted on the rows drawn of it."""
    from sklearn.pipeline import make_pipeline

    layout, columns, y, folder = training.whole
    features, preparation = training.features, make_pipeline(*steps, "passthrough").fit(training.data.X)
    shape = len(y), preparation.transform(training.data.X[:1]).shape[1]
    n_bytes = shape[0] * shape[1] * np.dtype(features.dtype).itemsize
    if n_bytes > shutil.disk_usage(folder).free:
        raise file_error(args.data, f"its prepared rows need {n_bytes:,} bytes in {folder}: TMPDIR names a folder")
    note(f"{args.data}: {len(y):,} rows are streamed through {n_bytes:,} bytes in {folder}")
    rows = np.memmap(f"{folder}/rows", np.dtype(features.dtype), "w+", shape=shape)
    for start in range(0, len(y), _BLOCK_ROWS):
        own = slice(start, start + _BLOCK_ROWS)
        block = frame_of(layout, {k: column[own] for k, column in columns.items()}, features.dtype)
        block = preparation.transform(block)
        rows[own] = block.toarray() if hasattr(block, "toarray") else block
    return rows


# Samples for known features -------------------------------------------------------------------------------------------


def read_to_predict(model: Model, args: Namespace) -> Dataset:
    """The samples to predict, with the model's features in its order, and their labels if there are any."""
    features = features_of(model, args.model)
    owner = "the model was trained with"
    steps = steps_of(model)
    if hasattr(steps[-1], "widen"):  # text models of other programs do not say how many columns there were
        owner = "its file names (--n-features adds more)"
    data = read_known(args.data, args, features, owner, unlabelled="keep")
    is_centred = getattr(steps[0], "with_mean", False) and hasattr(data.X, "indptr")
    return data._replace(X=data.X.toarray()) if is_centred else data


def features_of(model: Model, path: str) -> Features:
    """The features that a model file describes, or those that its model knows of."""
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"{path}: its model takes text, not a table: use it in Python, by widemargin.load")
    n_features = int(model.n_features_in_)
    with suppress(TypeError):  # no facts, or other ones
        features = Features(**read_table_facts(path))
        if features.n_features == n_features:
            return features
    names = getattr(model, "feature_names_in_", None)
    return Features(n_features, None if names is None else [str(name) for name in names])


def read_known(path: str, args: Namespace, features: Features, owner: str, **options: Any) -> Dataset:
    """Samples with known features: of a table by name, or by position where a file or the model has no names."""
    form, kinds = args.format or format_of(path), features.kinds or ["number"] * features.n_features
    if form in ARRAYS:
        return _with_columns(path, form, args, features, owner)
    by_name = dict(zip(features.names or (), kinds, strict=False))
    with within_budget(args):
        peek = TableSource(path, table_options(args, target=None, kinds=by_name), form).layout
        keep, target = _matched(peek, args, features, owner)
        if target is not None and target in keep:
            raise peek.error(f"{peek.describe(target)} is a feature of the model: it cannot be --target")
        options |= {"target": target, "keep": keep, "kinds": dict(zip(keep, kinds, strict=True))}
        source = TableSource(path, table_options(args, header=peek.has_header, **options), form)
        columns, y, _ = source.read()
    gaps, layout = first_gaps(columns), source.layout
    if gaps and features.kinds and not features.lacks_values:
        raise _gap_error(source, gaps, "no number was missing in training: fill it in, or leave the row out")
    for place, k in enumerate(keep):
        if words := layout.levels.get(k):
            known = set((features.levels or {}).get(str(place), words))
            unknown = [code for code, word in enumerate(words) if word not in known]
            if n_rows := int(np.isin(columns[k], unknown).sum()):
                rows = "1 row has a category" if n_rows == 1 else f"{n_rows} rows have categories"
                names = shorten(repr(words[code]) for code in unknown)
                found = f"{rows} that the training data do not have: {names}"
                note(f"{layout.path}: {layout.describe(k)}: {found}")
    if peek.names is None or features.names is None:
        warnings.filterwarnings("ignore", "X (does not have valid feature names|has feature names)")
    named = replace(layout, names=None) if features.names is None else layout
    return Dataset(frame_of(named, columns, features.dtype or "float64"), y)


def _matched(layout: Layout, args: Namespace, features: Features, owner: str) -> tuple[list[int], int | None]:
    """Positions of the features in a table, and that of its label if it has one."""
    names, n = layout.names, features.n_features
    label = None if args.target is None else positions_of(layout, [args.target])[0]
    if names is not None and features.names is not None:
        if absent := [name for name in features.names if name not in names]:
            reason = f"no column is named {quoted(absent[0])}, which {owner}{suggestion(absent[0], names)}"
            raise layout.error(reason, layout.line or None)
        place_of = {name: place for place, name in enumerate(features.names)}
        keep = [k for k, name in enumerate(names) if name in place_of]
        if len(place_of) == len(keep) == n:  # no name stands for two columns
            keep.sort(key=lambda k: place_of[names[k]])
        elif [names[k] for k in keep] != features.names:
            raise layout.error(_mismatch(len(keep), features, owner))
        if label is None and features.target in names:
            label = names.index(str(features.target))
        others = [k for k, name in enumerate(names) if name not in place_of and name not in (features.columns or ())]
        return keep, others[0] if label is None and len(others) == 1 else label
    position = features.target
    if isinstance(position, str):
        position = features.columns.index(position) if features.columns else None
    places, free = features.places or list(range(n)), [k for k in range(layout.width) if k != label]
    if layout.width == features.width:
        return places, position if label is None else label
    if position is not None and layout.width == features.width - 1:
        return [k - (k > position) for k in places], None
    if len(free) == n:
        return free, label
    if features.kinds is None and label is None and layout.width == n + 1:  # a model of a matrix, or of Python
        return free[:-1], n
    raise layout.error(_mismatch(len(free) - (label is None and features.target is not None), features, owner))


def _with_columns(path: str, form: str, args: Namespace, features: Features, owner: str) -> Dataset:
    """Samples of an svmlight file with as many columns as there are features; of an archive, which must have them."""
    wanted = features.n_features
    with config_context(memory_budget=max(resolve_memory_budget(), 8 * wanted)):  # as wide as these is no typo
        data = _read_arrays(path, args, features.dtype)
    n_found = data.X.shape[1]
    if n_found != wanted and form != "svmlight":
        raise file_error(path, _mismatch(n_found, features, owner))
    if n_found > wanted:
        note(f"{path}: features beyond the {wanted} that {owner} are ignored: {n_found - wanted}")
        return data._replace(X=data.X[:, :wanted])
    if n_found < wanted:
        data.X.resize((data.X.shape[0], wanted))  # in place; the further ones are zero
    return data


def _mismatch(n_found: int, features: Features, owner: str) -> str:
    return f"{n_found} features, but {owner} {features.n_features}"
