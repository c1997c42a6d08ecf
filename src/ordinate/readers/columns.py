"""Columns of files, declared once: what they hold, and the flag that names each."""

import csv
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from ordinate.errors import BadOption, shorten, word_advice
from ordinate.settings import Setting, list_settings

Gold = Annotated[str | None, Setting("column of the gold levels", metavar="COL")]
Predicted = Annotated[str | None, Setting("column of the predictions", metavar="COL")]
Id = Annotated[
    str | None,
    Setting("column of ids, by which files are joined; several (topic,id) are one key", "COL"),
]
Delimiter = Annotated[
    str | None, Setting("what separates columns", metavar="CHAR", default="by the first lines")
]
Encoding = Annotated[str | None, Setting("of text files", default="utf-8")]
Sheet = Annotated[
    str | None, Setting("of a spreadsheet (XLSX, XLS, ODS)", "NAME", default="the only one")
]
LabelMapFile = Annotated[
    str | None,
    Setting(
        "labels to rename before the scale sees them: a JSON object, or CSV with the header "
        "from,to",
        metavar="FILE",
        flag="--map",
        path="file",
    ),
]
TidyLabels = Annotated[
    bool | None,
    Setting(
        "take labels with blanks around them, in any case and Unicode form (NFKC)", default="no"
    ),
]
GoldFile = Annotated[
    str | None,
    Setting("file of gold levels or targets, if it is another one", metavar="FILE", path="file"),
]
RowOrder = Annotated[bool, Setting("match gold and predictions by their row order")]
ROLES = {  # what columns of items are called, by the arguments that name them
    "gold": "gold",
    "target": "gold",
    "predicted": "predicted",
    "weights": "weight",
    "by": "subgroup",
    "groups": "cluster",
    "second_rater": "second",
    "lower": "lower",
    "upper": "upper",
}
PathName = str | os.PathLike[str]
Paths = PathName | Sequence[PathName]
MEMORY = re.compile(r"(?=[\d.]*[1-9])\d+(\.\d+)? ?([KMGT]i?)?B", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How files are written, and how they are read.

    `columns` are the names of columns where text files have no header. With `hive`, folders called
    column=value are columns of the files in them. `memory` is what the engine may take; what does
    not fit goes to disk.
    """

    delimiter: Delimiter = None
    encoding: Encoding = None
    quote: Annotated[
        Literal["double", "none"] | None,
        Setting(
            "quotes of text files: double ones around a text, or none, where they are characters "
            "like others",
            default="double",
        ),
    ] = None
    header: Annotated[
        Literal["first", "none"] | None,
        Setting("line of text files with the names of columns", default="first"),
    ] = None
    columns: Annotated[
        tuple[str, ...], Setting("names of the columns, from left to right, for --header none")
    ] = ()
    decimal: Annotated[
        Literal[",", "."] | None,
        Setting(
            "decimal mark of numbers in text files: , as in 1.234,5, or . as in 1,234.5",
            metavar="MARK",
            default="a point, and no separators of thousands",
        ),
    ] = None
    sheet: Sheet = None
    hive: Annotated[
        bool, Setting("folders named column=value are columns of the files in them")
    ] = False
    bad_lines: Annotated[
        Literal["error", "skip"] | None,
        Setting(
            "lines of text files with more or fewer columns: refuse them, or leave them out and "
            "count them",
            default="error",
        ),
    ] = None
    memory: Annotated[
        str | None,
        Setting(
            "that reading may take; what does not fit goes to disk", metavar="SIZE", default="1GB"
        ),
    ] = None

    def __post_init__(self) -> None:
        """Refuse values that are none of an option, and options that make no sense together."""
        for one in list_settings(FileOptions):
            _check_option(one.name, getattr(self, one.name), one.value_type, one.choices)
        if (self.header == "none") != bool(self.columns):
            way = "{header} goes with {columns}, the names of all columns from left to right."
            raise BadOption(word_advice(way, header="none", columns=...))
        if self.memory is not None and MEMORY.fullmatch(self.memory) is None:
            way = word_advice("{memory} takes a size such as 500MB or 2GB", memory=...)
            raise BadOption(f"{way}, not {self.memory!r}.")

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that were named: those of ids, then the others."""
        owner: Any = type(self)
        of_columns = [x.name for x in list_settings(owner) if x.setting.metavar == "COL"]
        named = [getattr(self, x) for x in of_columns if x != "id"] + [
            *getattr(self, "systems", ())
        ]
        key = split_key(getattr(self, "id", None) or "")
        return tuple(dict.fromkeys(name for name in (*key, *named) if name))


@dataclass(frozen=True, kw_only=True)
class ItemColumns(FileOptions):
    """What is asked of items: which columns hold what, and how files of them are read and joined.

    Labels are in `gold`, `predicted`, the `systems` of one file and `second_rater`; numbers in
    `target`, `predicted`, the bounds `lower` and `upper` of prediction intervals, and one column
    for each level of `probabilities`. `groups` are writers, topics or documents: items that belong
    together. `order` has numbers, or dates and times, that no two items share. `renamed` has new
    names of labels.
    """

    gold: Gold = None
    target: Annotated[str | None, Setting("column of the targets", metavar="COL")] = None
    systems: Annotated[tuple[str, ...], Setting("columns of the systems")] = ()
    predicted: Predicted = None
    weights: Annotated[str | None, Setting("column of item weights", metavar="COL")] = None
    by: Annotated[
        str | None, Setting("column of subgroups, each evaluated on its own", metavar="COL")
    ] = None
    groups: Annotated[
        str | None,
        Setting(
            "column of clusters of items (writers, topics, documents): confidence intervals "
            "resample clusters",
            metavar="COL",
        ),
    ] = None
    second_rater: Annotated[
        str | None,
        Setting(
            "column of a second rater's levels: what a human reaches on the same items",
            metavar="COL",
        ),
    ] = None
    probabilities: Annotated[
        tuple[str, ...],
        Setting("columns of the levels' probabilities, or the prefix that they share (p_)"),
    ] = ()
    lower: Annotated[
        str | None, Setting("column of the lower bounds of prediction intervals", metavar="COL")
    ] = None
    upper: Annotated[str | None, Setting("column of their upper bounds", metavar="COL")] = None
    order: Annotated[
        str | None,
        Setting("column of times, for the baseline of the previous value", metavar="COL"),
    ] = None
    gold_file: GoldFile = None
    id: Id = None
    row_order: RowOrder = False
    renormalize: Annotated[
        bool, Setting("accept probabilities whose sum is 1 but for rounding to two decimals")
    ] = False
    renamed: dict[str, str | None] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, str]:
        """The columns of a table that were named, by argument of `evaluate`."""
        found = {argument: getattr(self, argument) for argument in ROLES}
        return {argument: column for argument, column in found.items() if column is not None}

    @property
    def roles(self) -> dict[str, str]:
        """The columns beside those of gold and predictions, by role."""
        sides = ("gold", "target", "predicted")
        return {ROLES[x]: name for x, name in self.arguments.items() if x not in sides}


@dataclass(frozen=True, kw_only=True)
class Files(FileOptions):
    """Files in place of a table, how they are read, and how gold levels of another file are joined.

    `paths` are names and patterns, or one of them; "-" is standard input. While they are read, the
    context that `watch` gives is open.

    >>> Files("run.csv", gold_file="gold.csv", id="essay").names
    ['run.csv']
    """

    paths: Paths = field(kw_only=False)
    gold_file: GoldFile = None
    id: Id = None
    row_order: RowOrder = False
    watch: Callable[[Any], AbstractContextManager[None]] = field(
        default=lambda _: nullcontext(), repr=False
    )

    def __post_init__(self) -> None:
        """Refuse no files at all, and options that make no sense together."""
        super().__post_init__()
        if not self.names:
            raise BadOption("There are no files: name one.")
        _check_option("id", self.id, str)

    @property
    def names(self) -> list[str]:
        """The names and patterns."""
        if isinstance(self.paths, (str, os.PathLike)):
            return [os.fspath(self.paths)]
        return [os.fspath(path) for path in self.paths]

    @classmethod
    def find(cls, data: Any, columns: Iterable[Any] = ()) -> Self | None:
        """Return the files that data name, None where they are something else.

        A list of strings is one of labels, unless `columns` are named beside it.
        """
        if isinstance(data, cls):
            return data
        if isinstance(data, (str, os.PathLike)):
            return cls(data)
        if not (isinstance(data, (list, tuple)) and data):
            return None
        named = any(isinstance(column, str) for column in columns)
        kinds = (str, os.PathLike) if named else os.PathLike
        return cls(data) if all(isinstance(path, kinds) for path in data) else None

    def refuse_read_once(self, what: str) -> None:
        """Refuse pipes, which can be read once only, where `what` reads the items twice."""
        for path in self.names:
            if path != "-" and is_read_once(path):
                raise BadOption(f"{what} read twice: name a file in place of {shorten(path)}.")

    def name_columns(self, roles: Mapping[str, Any], **more: Any) -> "ItemColumns":
        """Return what is asked of the files: columns by their roles, which are names."""
        named = {role: column for role, column in roles.items() if column is not None}
        for role, column in named.items():
            if not isinstance(column, str):
                raise BadOption(
                    f"With files, {role}=… is the name of one of their columns, not "
                    f"{type(column).__name__}."
                )
        of_files = {x.name for x in fields(self)} & {x.name for x in fields(ItemColumns)}
        return ItemColumns(**{x: getattr(self, x) for x in of_files}, **named, **more)


def _check_option(name: str, value: Any, value_type: type, choices: tuple[str, ...] = ()) -> None:
    """Refuse a value of Python that is no string, no list of them, or none of the choices."""
    right = value is None or (
        value in choices if choices else isinstance(value, str) == (value_type is str)
    )
    if not right:
        kind = "a list of strings" if value_type is list else "a string"
        wanted = " or ".join(map(repr, choices)) or kind
        option: dict[str, Any] = {name: ...}
        way = word_advice(f"{{{name}}} takes {wanted}", **option)
        raise BadOption(f"{way}, not {shorten(value)}.")


def is_read_once(path: str) -> bool:
    """Tell whether something can be read once only."""
    if path == "-":
        return True
    try:
        return Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir())
    except (OSError, ValueError):
        return False


def split_key(text: str) -> tuple[str, ...]:
    """Return the columns of a key, which commas separate.

    >>> split_key("topic,id")
    ('topic', 'id')
    """
    return tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))


def parse_delimiter(text: str | None) -> str | None:
    r"""Return the character that separates columns.

    >>> parse_delimiter("tab")
    '\t'
    """
    if text is None:
        return None
    character = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(character) != 1 or character in '\r\n"':
        way = word_advice("{delimiter} takes one character, such as ';' or '\\t'", delimiter=...)
        raise BadOption(f"{way}, not {text!r}.")
    return character
