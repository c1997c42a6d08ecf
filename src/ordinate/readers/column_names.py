"""The columns of a table: found by their names, and suggested where a name is not there."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from ordinate.errors import BadFile, BadInput, shorten, suggest_names, word_advice
from ordinate.scale import Scale
from ordinate.scale.labels import normalize_label

USUAL_COLUMN_NAMES = {
    "gold": ("gold", "gold_label", "gold_level", "y_true", "true_label", "true", "truth"),
    "predicted": ("predicted", "predicted_label", "predicted_level", "prediction", "y_pred"),
}
USUAL_NUMBER_NAMES = {
    "target": ("target", "targets", "y", "y_true", "true", "truth", "actual", "observed", "gold"),
    "predicted": ("predicted", "prediction", "predictions", "y_pred", "pred", "y_hat", "yhat"),
}
MOST_COLUMNS_LISTED = 12  # columns named in an error


class NamedColumns(Protocol):
    """A file, a frame or a query, by its name and those of its columns."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def columns(self) -> Collection[str]:
        """The names of its columns."""


def find_column(
    role: str,
    named: str | None,
    source: NamedColumns,
    notes: list[str],
    *,
    usual_names: Mapping[str, tuple[str, ...]] = USUAL_COLUMN_NAMES,
    content: str = "",
) -> str:
    """Return the column of a role: the one named, or the only one with a usual name."""
    if named is not None:
        return named
    found = [column for column in source.columns if column.lower() in usual_names[role]]
    if len(found) != 1:
        option: dict[str, Any] = {role: ...}
        way = word_advice(f"Name it with {{{role}}}.", **option)
        raise BadFile(
            f"Which column of {source.name} holds the {content or f'{role} levels'}? {way} "
            + format_columns(source.columns),
            source.name,
            role,
        )
    note = f"The {role} column was not named; {found[0]!r} was taken."
    if note not in notes:
        notes.append(note)
    return found[0]


def check_column(
    source: str, column: str, columns: Collection[str], others: Collection[str] = ()
) -> None:
    """Refuse a column that is not there, and say what is.

    The `others` that were named with it are no other spelling of it.
    """
    if column in columns:
        return
    known = list(map(str, columns))
    hint = suggest_names(column, [name for name in known if name not in others])
    hint = hint or " " + format_columns(known)
    if column.lower() in map(str.lower, known):
        hint += " Upper and lower case count."
    raise BadFile(f"{source} has no column {shorten(column)}.{hint}", source, column)


def refuse_duplicate_columns(source: str, columns: Iterable[str]) -> None:
    """Refuse columns of one name."""
    for column in (name for name, count in Counter(columns).items() if count > 1):
        twice = f"{source} has two columns named {shorten(column)}. Rename one."
        raise BadFile(twice, source, column)


def expand_columns(
    named: tuple[str, ...], source: NamedColumns, scale: Scale | None = None
) -> tuple[str, ...]:
    """Return the columns of probabilities: those named, or those that start with a prefix.

    Where the scale is known, columns that have no level after the prefix are others.
    """
    if len(named) > 1:
        return named
    (prefix,) = named
    found = tuple(column for column in source.columns if column.startswith(prefix))
    if scale is not None:
        levels = {normalize_label(label) for label in scale.labels}
        found = tuple(name for name in found if name[len(prefix) :] in levels) or found
    if len(found) < 2:
        raise BadInput(
            f"{source.name} has no columns of probabilities that start with {shorten(prefix)}: "
            "name one for each level, or what they all start with. "
            + format_columns(source.columns)
        )
    return found


def format_columns(columns: Iterable[str]) -> str:
    """Return a sentence with the columns of a file."""
    names = [shorten(column) for column in columns]
    more = ", …" if len(names) > MOST_COLUMNS_LISTED else ""
    return f"Its columns are: {', '.join(names[:MOST_COLUMNS_LISTED])}{more}."
