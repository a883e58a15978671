"""What the columns of a table are, decided on its first rows: the label, numbers, categories, dates, those left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from widemargin.datasets.files import LEADING_ZERO, file_error, is_exact, is_number, plain_numbers, quoted, shorten

Names: TypeAlias = "Sequence[int | str]"
Cell: TypeAlias = "str | None"  # None: a missing value of a format that has them
Row: TypeAlias = "tuple[int, list[Cell]]"  # with the number of its line

BEYOND = "beyond 2**53, of which numbers of 64 bits keep 16 digits"
_LEAST_NUMBERS = 0.1  # numbers / cells that are not missing, of a column that may be meant as numbers
_HEADER_ROWS = 1_000  # that the first one is compared with
_YEARS = range(1800, 2201)  # that a header may have
_INDEX_NAMES = ("", "Unnamed: 0")  # of the index that pandas and R write as the first column
# As pandas has them, the question mark of the UCI repository, and MySQL's; those of numbers alone: also SAS, Stata
MISSING = frozenset(("", "NA", "N/A", "n/a", "#N/A", "<NA>", "nan", "NaN", "NAN", "-nan", "-NaN", "null", "NULL"))
MISSING |= {"Null", "?", "\\N"}
MISSING_NUMBERS = MISSING | {"-", "."}
BOOLEANS = {"TRUE": 1.0, "True": 1.0, "true": 1.0, "FALSE": 0.0, "False": 0.0, "false": 0.0}
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII)
# Also 12,34,567
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}([.,' \u00a0\u202f])(?:[0-9]{2,3}\1)*[0-9]{3}(?:[.,][0-9]+)?")
_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
_MARKED = re.compile(  # $5, 5 %, 1D+03, and a minus sign that is no hyphen
    r"[$€£¥\u2212]\s?[+-]?[0-9][0-9.,]*|[+-]?[0-9][0-9.,]*\s?[%$€£¥]|[+-]?[0-9.]+[dD][+-]?[0-9]+"
)
_TIME = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?")
_INFINITE = re.compile(r"[+-]?(?:inf(?:inity)?|[0-9.]+e\+?[0-9]+)", re.IGNORECASE)
_ZEROS = re.compile(rf"^\s*{LEADING_ZERO.pattern}\s*$", re.MULTILINE)
_SLASHED = re.compile(  # also 27-Nov-2026 and 11/27/26
    r"[0-9]{1,4}[/.][0-9]{1,2}[/.][0-9]{4}|[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}"
    r"|[0-9]{1,2}-(?:[0-9]{1,2}|[A-Za-z]{3})-[0-9]{4}|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2}"
)


@dataclass(frozen=True)
class TableOptions:
    """How a table is read: the arguments of `load_table`, and what is known of it."""

    target: int | str | None = -1
    drop: Names = ()
    text: Names = ()
    missing: Sequence[str] = ()
    delimiter: str | None = None
    header: bool | Literal["auto"] = "auto"
    decimal: str = "."
    thousands: str | None = None
    unlabelled: Literal["raise", "drop", "keep"] = "raise"
    kinds: Mapping[Any, str] | None = None  # by name or position, of a model or of the first file: none is decided
    keep: Names | None = None  # the features in their order, where they are known
    declared: bool = False  # the format has missing values of its own: words stand for one only if they are given

    def __post_init__(self) -> None:
        marks = (self.delimiter, self.thousands)
        if any(mark is not None and len(mark) != 1 for mark in marks) or self.thousands == self.decimal:
            raise ValueError(f"delimiter and thousands must be one character each, none the decimal mark, got {marks}")
        choices = {"header": (True, False, "auto"), "decimal": (".", ","), "unlabelled": ("raise", "drop", "keep")}
        if wrong := next((name for name, known in choices.items() if getattr(self, name) not in known), None):
            raise ValueError(f"{wrong} must be one of {choices[wrong]}, got {getattr(self, wrong)!r}")
        if wrong := next((name for name in ("drop", "text", "missing") if isinstance(getattr(self, name), str)), None):
            raise ValueError(f"{wrong} must be a sequence, such as [{getattr(self, wrong)!r}], not a str")

    def is_missing(self, cell: Cell, *, number: bool = False) -> bool:
        """Whether a cell says that there is no value."""
        if cell is None or cell in self.missing:
            return True
        return not self.declared and cell in (MISSING_NUMBERS if number else MISSING)

    def plain(self, cell: str) -> str:
        """A number as Python writes it; what is none stays none."""
        if self.thousands and (found := _THOUSANDS.fullmatch(cell)) and found[1] == self.thousands:
            cell = cell.replace(self.thousands, "")
        if self.decimal == ",":
            cell = "no number" if "." in cell else cell.replace(",", ".")
        return cell


@dataclass(frozen=True)
class Layout:
    """The columns of a table, by their positions."""

    path: str
    line: int  # number of the first line that is not blank
    width: int  # number of fields of a row
    options: TableOptions
    names: list[str] | None = None  # of all columns, where the file names them
    target: int | None = None  # the label
    weight: int | None = None
    features: tuple[int, ...] = ()
    kinds: dict[int, str] = field(default_factory=dict)  # of the features and the label
    levels: dict[int, list[str]] = field(default_factory=dict)  # declared values of categories
    has_header: bool = False  # the first row are the names
    notes: tuple[str, ...] = ()  # what was decided, and is not obvious

    @property
    def used(self) -> tuple[int, ...]:
        """Positions of all columns that are read."""
        return self.features + tuple(k for k in (self.target, self.weight) if k is not None)

    def name(self, position: int) -> str:
        """A column as options name it."""
        return quoted(self.names[position]) if self.names else str(position)

    def describe(self, position: int) -> str:
        """A column, for a message: its number, from 1, and its name."""
        return f"column {position + 1}" + (f" ({quoted(self.names[position])})" if self.names else "")

    def error(self, reason: str, line: int | None = None) -> ValueError:
        """An error that names the file."""
        return file_error(self.path, reason, line)


def positions_of(layout: Layout, wanted: Iterable[int | str]) -> list[int]:
    """The positions of columns given by name or by position; a ValueError names one that the table does not have."""
    names, width, found = layout.names, layout.width, []
    for one in wanted:
        if isinstance(one, str) and (names is None or one not in names):
            known = suggestion(one, names) if names else ": the file has no header, give its position, from 0"
            raise layout.error(f"no column is named {quoted(one)}{known}", layout.line or None)
        if not isinstance(one, str) and not -width <= one < width:
            raise layout.error(f"there is no column {one}: a row has {width}", layout.line or None)
        found += [k for k, name in enumerate(names or ()) if name == one] if isinstance(one, str) else [one % width]
    return found


def suggestion(name: str, names: list[str]) -> str:
    """The end of a message: the column with the most similar name, if there is one, and the names of the columns."""
    meant = "".join(f": did you mean {quoted(near)}?" for near in get_close_matches(name, names, 1))
    return f"{meant or ';'} the columns are {shorten(map(quoted, names), 20)}"


def decide(path: str, head: list[Row], options: TableOptions, names: list[str] | None = None) -> Layout:
    """The layout of a table from its first rows; `names` come from elsewhere than a row, such as a comment."""
    if not head:
        raise file_error(path, "the file is empty")
    (line, first), below = head[0], [row for _, row in head[1:]]
    width, cells = len(first), [cell.strip() if cell else "" for cell in first]
    has_row_names = all(len(row) == width + 1 for row in below) and len({row[0] for row in below}) == len(below) > 0
    layout = Layout(path, line, width + has_row_names, options)
    if options.target is not None and width < 2:
        second = len(below[0]) if below else 1
        if second > 1:
            raise layout.error(f"1 field where the next row has {second}: a title? Remove the line", line)
        reason = "one column only: is the delimiter none of comma, semicolon, tab, | and blanks?"
        raise layout.error(f"{reason} --delimiter, or delimiter=, names it", line)
    if has_row_names:
        note = "the header is one field shorter than the rows: the first column, row names, was dropped"
        layout = replace(layout, names=["", *cells], has_header=True, notes=(note,))
        return place(layout, head[1:], dropped=(0,))
    if names is not None:
        return place(replace(layout, names=names), head)
    known = [name for name in options.kinds or () if isinstance(name, str)]
    wanted = [options.target, *options.drop, *options.text]
    has_header, note = options.header is True or any(isinstance(one, str) for one in wanted), ""
    if options.header == "auto" and not has_header:
        is_known = bool(known) and set(known) <= set(cells)
        has_header, note = (True, "") if is_known else _has_header(head, layout)
    layout = replace(layout, names=cells if has_header else None, has_header=has_header, notes=(note,) if note else ())
    return place(layout, head[int(has_header) :])


def place(layout: Layout, head: list[Row], dropped: Sequence[int] = ()) -> Layout:
    """The layout with its label and features, and the kinds of those that have none yet."""
    options = layout.options
    target, *more = [None] if options.target is None else positions_of(layout, [options.target])
    if more:
        raise layout.error(f"several columns are named {quoted(str(options.target))}: give a position", layout.line)
    left_out, notes = {*dropped, *positions_of(layout, options.drop)}, layout.notes
    below = [(row[0] or "").strip() for _, row in head if row]
    may_be_index = below and layout.names and layout.names[0] in _INDEX_NAMES and not {0} & {*left_out, target}
    are_names = len(set(below)) == len(below) and not any(map(is_number, below))
    if may_be_index and (below[0].isdecimal() or are_names):
        what = "names" if are_names else "counts"
        notes += (f"{layout.describe(0)} {what} the rows and was dropped; give it a name to keep it",)
        left_out.add(0)
    features = tuple(k for k in range(layout.width) if k != target and k not in left_out and k != layout.weight)
    if options.keep is not None:
        features = tuple(positions_of(layout, options.keep))
    if not features:
        raise layout.error("no column is left as a feature", layout.line or None)
    layout = replace(layout, target=target, features=features, notes=notes)
    kinds = dict.fromkeys(positions_of(layout, options.text), "category")
    for key, kind in (options.kinds or {}).items():
        if not isinstance(key, str) or (layout.names and key in layout.names):
            kinds.update(dict.fromkeys(positions_of(layout, [key]), kind))
    whole = [(line, row) for line, row in head if len(row) == layout.width]
    lines = [line for line, _ in whole]
    columns: list[Any] = list(zip(*(row for _, row in whole), strict=True)) or [()] * layout.width
    for k in layout.used:
        if k == target and kinds.get(k) != "number":
            kinds[k] = layout.kinds.get(k) or _label_kind(_present(columns[k], options), options)
        elif k not in kinds:
            is_open = options.kinds is None
            kinds[k] = layout.kinds.get(k) or (_kind(layout, k, lines, columns[k]) if is_open else "category")
    numbers = [k for k in features if kinds[k] == "number"]
    if zeros := [k for k in numbers if _ZEROS.search("\n".join(cell or "" for cell in columns[k]))]:
        names = shorten(map(layout.name, zeros))
        notes += (f"numbers with leading zeros lose them: {names}; --one-hot, or text=, keeps such codes",)
    return replace(layout, kinds={k: kinds[k] for k in layout.used}, notes=notes)


def _present(cells: Iterable[Cell], options: TableOptions) -> list[str]:
    """The cells that are not missing."""
    missing = {*options.missing} if options.declared else MISSING_NUMBERS.union(options.missing)
    return [cell for cell in (cell.strip() for cell in cells if cell is not None) if cell not in missing]


def _form(cells: list[str], options: TableOptions) -> str:
    """What all of these cells are: a number, boolean or date; empty for others, and for none."""
    if not cells:
        return ""
    are_plain = options.decimal == "." and plain_numbers(cells) is not None
    if are_plain or all(is_number(options.plain(cell)) for cell in cells):
        return "number"
    if all(cell in BOOLEANS for cell in cells):
        return "boolean"
    return "date" if all(map(ISO_DATE.fullmatch, cells)) else ""


def _label_kind(present: list[str], options: TableOptions) -> str:
    """Numbers with decimals are read as such; all others as text, which `labels_of` makes numbers if they are."""
    are_many = len(present) > 20 and len(set(present)) > len(present) / 2
    has_decimals = are_many and any(options.decimal in cell for cell in present)
    return "number" if has_decimals and _form(present, options) == "number" else "label"


def _kind(layout: Layout, position: int, lines: list[int], cells: Sequence[Cell]) -> str:
    """What a column of a table is, by its first cells; a ValueError if that would be a guess."""
    options, present = layout.options, _present(cells, layout.options)
    if form := _form(present, options):
        return form
    if not present:
        are_missing = all(cell is None or cell.strip() in MISSING | {*options.missing} for cell in cells)
        return "number" if are_missing else "category"
    counts = Counter(present)
    others = [word for word in counts if not is_number(options.plain(word))]
    worst = next((word for word in others if remedy(word, options)), others[0])
    n_words = sum(counts[word] for word in others if not _INFINITE.fullmatch(word))
    if remedy(worst, options) or len(present) - n_words >= _LEAST_NUMBERS * len(present):
        line = next(line for line, cell in zip(lines, cells, strict=True) if cell and cell.strip() == worst)
        raise refusal(layout, position, line, worst)
    return "category"


def refusal(layout: Layout, position: int, line: int | None, cell: str) -> ValueError:
    """The error of a cell that is no number, or one that loses digits, with the option that reads it."""
    name = layout.names[position] if layout.names else position
    if is_number(plain := layout.options.plain(cell)) and not is_exact(plain):
        return too_long(layout, position, line, plain)
    if _INFINITE.fullmatch(cell):
        return layout.error(f"{layout.describe(position)} is {quoted(cell)}, which is not finite", line)
    reads = f"--one-hot {name}, or text=[{name!r}], takes the column as categories"
    means = f"--missing {quoted(cell)}, or missing=[{quoted(cell)}], takes the cell for a missing value"
    what = remedy(cell, layout.options) or f"; {reads}; {means}; --drop, or drop=, leaves the column out"
    return layout.error(f"{layout.describe(position)} is {quoted(cell)}, which is not a number{what}", line)


def remedy(cell: str, options: TableOptions) -> str:
    """The end of a message: what reads a cell that a person takes for a number or a date; empty for other text."""
    if found := _THOUSANDS.fullmatch(cell):
        mark = "space" if found[1].isspace() else found[1]
        comma = "; --decimal , or decimal=',' reads decimal commas" if mark == "," and options.decimal == "." else ""
        return f"; if {found[1]!r} divides thousands: --thousands {mark}, or thousands={found[1]!r}{comma}"
    if _COMMA.fullmatch(cell) and options.decimal == ".":
        return "; --decimal , or decimal=',' reads decimal commas"
    if options.decimal == "," and is_number(cell):
        return ": its decimal mark is a point; remove --decimal ,"
    if _MARKED.fullmatch(cell):
        return ": remove the mark beside the digits; --one-hot, or text=, takes the column as categories"
    form = "dates as 2026-11-27" if _SLASHED.fullmatch(cell) else "times as numbers" if _TIME.fullmatch(cell) else ""
    return f": write {form}; --drop, or drop=, leaves the column out, text= takes it as categories" if form else ""


def _has_header(head: list[Row], layout: Layout) -> tuple[bool, str]:
    """Whether the first row names the columns, and what is to be said about this decision."""
    options, first = layout.options, head[0][1]
    below = [row for _, row in head[1:_HEADER_ROWS] if len(row) == layout.width]
    target = None if options.target is None else positions_of(layout, [options.target])[0]
    is_name: list[int] = []  # no numbers above numbers
    is_sample: list[int] = []  # numbers above numbers
    is_repeated: list[int] = []  # words that stand below, too
    for k, cell in enumerate(first):
        text, present = (cell or "").strip(), _present((row[k] for row in below), options)
        own, form = _form([text], options), _form(present, options)
        if options.is_missing(text):
            continue
        if own == "number":
            is_sample += [k] if form == "number" or not present else []
        elif form:
            (is_sample if own else is_name).append(k)
        elif text in present:
            is_repeated.append(k)
    features = [k for k in range(layout.width) if k != target]
    counted = [k for k in is_sample if k != target]
    if (steps := _steps(first, counted)) and not any(_steps(row, counted) for row in below[:5]):
        label = (first[target] or "").strip() if target is not None else ""
        seen = is_repeated or (target is not None and any((row[target] or "").strip() == label for row in below))
        last = [int(first[k] or 0) for k in counted[-2:]]
        is_next = not is_number(label) or float(label) == 2 * last[-1] - last[0] or {last[0], float(label)} <= {*_YEARS}
        are_all = len(steps) == 1 and all(k in counted or first[k] in _INDEX_NAMES for k in features)
        if not seen and is_next and are_all and (len(features) > 2 or target in is_name):
            note = "the first row counts the columns, 0, 1, 2, ..., or years, and was taken for a header"
            return True, f"{note}; --header no, or header=False, takes it as a sample"
        if not seen and is_next and (last[0] in _YEARS or len(features) > len(counted)):  # too few to tell
            is_name += counted
    if is_name and is_sample and below:
        cells = ", ".join(quoted(first[k] or "") for k in (is_name[0], is_sample[-1]))
        reason = f"is the first row a header ({cells})? --header yes or no, or header=True or False"
        raise layout.error(reason, layout.line)
    are_numbers = _form([(first[k] or "").strip() for k in features], options) == "number"
    if is_name or is_sample or is_repeated or not below or are_numbers:
        return bool(is_name) or not (is_sample or is_repeated or are_numbers), ""
    note = "no column is one of numbers: the first row was taken for the header; --header no, or header=False"
    has_word = any(cell and re.fullmatch(r"[^\W\d]\w{2,}", cell.strip()) for cell in first)
    return True, "" if has_word else note


def _steps(row: list[Cell], columns: list[int]) -> set[int]:
    """The steps between cells that count 0, 1, 2, ..., or are years in their order; none between others."""
    cells = [(row[k] or "").strip() for k in columns]
    if len(cells) < 2 or not all(re.fullmatch("[0-9]+", cell) for cell in cells):
        return set()
    numbers = [int(cell) for cell in cells]
    steps = {b - a for a, b in pairwise(numbers)}
    are_years = all(number in _YEARS for number in numbers) and (min(steps) > 0 or max(steps) < 0)
    return steps if are_years or (numbers[0] == 0 and steps == {1}) else set()


def too_long(layout: Layout, position: int, line: int | None = None, cell: str | None = None) -> ValueError:
    """The error of a whole number that has more digits than float64 keeps."""
    what = "has whole numbers" if cell is None else f"is {quoted(cell)}, a whole number"
    remedy = "an id? --drop, or drop=, leaves it out; --one-hot, or text=, keeps it"
    return layout.error(f"{layout.describe(position)} {what} {BEYOND}: {remedy}", line)
