"""Where the test case, the id and the value stand in a file of a campaign."""

import csv
from dataclasses import dataclass, field

from ordinate.errors import BadInput, shorten, suggest_names
from ordinate.readers.query import MOST_COLUMNS_LISTED, USUAL_COLUMN_NAMES
from ordinate.readers.text_lines import format_excerpt

VALUE_COLUMN_NAMES = ("value", "label", "level", "class", "category")
RECOGNISED_COLUMN_NAMES = {
    "test_case": ("test_case", "test case", "testcase", "topic", "topic_id", "query", "query_id"),
    "id": ("id", "item", "item_id", "doc_id", "document_id", "tweet_id", "essay_id"),
    "gold": (*USUAL_COLUMN_NAMES["gold"], *VALUE_COLUMN_NAMES),
    "predicted": (*USUAL_COLUMN_NAMES["predicted"], *VALUE_COLUMN_NAMES),
}
ROLE_TITLES = {
    "test_case": "test case",
    "id": "id",
    "gold": "gold label",
    "predicted": "prediction",
}
ROLE_OPTIONS = {"test_case": "--test-case", "id": "--id", "gold": "--value", "predicted": "--value"}


@dataclass(frozen=True)
class CampaignColumns:
    """Which columns to read, and how; files without a header are read by position.

    `gold` and `predicted` are for files that call the value differently.
    """

    test_case: str | None = None
    id: str | None = None
    value: str | None = None
    gold: str | None = None
    predicted: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    renamed: dict[str, str | None] = field(default_factory=dict)

    def named(self, role: str) -> dict[str, str | None]:
        """Return the columns that were named for gold, or for what is predicted."""
        value = self.gold if role == "gold" else self.predicted
        return {"test_case": self.test_case, "id": self.id, role: value or self.value}


@dataclass(frozen=True)
class ColumnLayout:
    """How many columns there are, and the places of three of them, counted from 1."""

    width: int
    test_case: int | None
    id: int
    value: int
    how: str  # as a note says it


LAYOUTS_BY_WIDTH = {
    3: ColumnLayout(3, 1, 2, 3, "without a header: test case, id, value"),
    2: ColumnLayout(2, None, 1, 2, "without a header: id, value"),
}


def detect_header(line: str, delimiter: str, named: dict[str, str | None]) -> list[str] | None:
    """Return the names in a line, if it is a header.

    It is one if it has a name that was asked for, or usual names of an id and of a value.
    """
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return None
    asked = any(name in names for name in named.values() if name is not None)
    roles = [role for role in named if role != "test_case"]
    return names if asked or all(_find_usual_column(role, names) for role in roles) else None


def find_layout_by_header(
    name: str, names: list[str], named: dict[str, str | None]
) -> ColumnLayout:
    """Return the places of the columns that were named, or have usual names."""
    found = {role: _find_column(name, names, role, asked) for role, asked in named.items()}
    for role, columns in found.items():
        if len(columns) > 1 or (not columns and role != "test_case"):
            raise BadInput(
                f"Which column of {name} has the {ROLE_TITLES[role]}? Name it with "
                f"{ROLE_OPTIONS[role]}. " + _format_names(names)
            )
    case, key, value = ([names.index(x) + 1 for x in columns] for columns in found.values())
    how = f"by the columns {', '.join(x for columns in found.values() for x in columns)}"
    return ColumnLayout(
        len(names), case[0] if case else None, key[0], value[0], how + " of the header"
    )


def find_layout_by_position(name: str, threes: int, twos: int, first: str) -> ColumnLayout:
    """Return the layout that most lines have."""
    if not threes and not twos:
        raise BadInput(
            f"{name} has no header that is known, and no line of two columns (id, value) or three "
            f"(test case, id, value): it begins with '{format_excerpt(first)}'. Name its columns "
            "with --test-case, --id and --value, or what separates them with --delimiter."
        )
    return LAYOUTS_BY_WIDTH[3 if threes >= twos else 2]


def _find_usual_column(role: str, names: list[str]) -> list[str]:
    return [name for name in names if name.strip().lower() in RECOGNISED_COLUMN_NAMES[role]]


def _find_column(file: str, names: list[str], role: str, asked: str | None) -> list[str]:
    if asked is None:
        return _find_usual_column(role, names)
    if asked not in names and role != "test_case":
        raise make_unknown_column_error(file, asked, names)
    if names.count(asked) > 1:
        raise BadInput(f"{file} has two columns named {shorten(asked)}. Rename one.")
    return [asked] if asked in names else []


def make_unknown_column_error(file: str, asked: str, names: list[str]) -> BadInput:
    """Return the error for a column that is not there."""
    hint = suggest_names(asked, names) or " " + _format_names(names)
    return BadInput(f"{file} has no column {shorten(asked)}.{hint}")


def _format_names(names: list[str]) -> str:
    shown_names = ", ".join(map(shorten, names[:MOST_COLUMNS_LISTED]))
    return f"Its columns are: {shown_names}{', …' if len(names) > MOST_COLUMNS_LISTED else ''}."
