"""Columns as arguments of results: at hand, or named of a table."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ordinate.errors import BadOption
from ordinate.readers.column_names import check_column, expand_columns
from ordinate.readers.tables import ColumnTable, LazyTable, is_table, open_table
from ordinate.scale import Scale, resolve_scale
from ordinate.scale.encoding import rename_labels
from ordinate.scale.label_maps import LabelMap
from ordinate.summaries.probabilities import find_most_probable_labels


@dataclass(frozen=True)
class GivenColumns:
    """Columns by argument, as they were given: at hand, or those of a table.

    `names` is what the `table` calls them. Of a lazy one none is at hand: its engine is asked.
    """

    columns: Mapping[str, Any]
    names: Mapping[str, str]
    table: "ColumnTable | LazyTable | None" = None

    def __getitem__(self, argument: str) -> Any:
        """Return a column, None where there is none."""
        return self.columns.get(argument)

    def read_labels(
        self, declared: Any, label_map: LabelMap, predicted: Iterable[str]
    ) -> tuple["GivenColumns", Scale]:
        """Return the columns with labels renamed and predicted scores cut, and the scale.

        It is the declared one, the one that columns carry, or the one preset that fits.
        """
        predicted = [x for x in predicted if self[x] is not None]
        given = self
        if len(label_map):
            given = self.rename_labels(("gold", "second_rater", *predicted), label_map.rename)
        sides = ["gold"] if label_map.edges else ["gold", *predicted]
        scale = resolve_scale(declared, *(given[x] for x in sides), tidy=label_map.tidy)
        if label_map.edges:
            given = given.rename_labels(predicted, lambda label: label_map.cut(label, scale))
        return given, label_map.adjust(scale)

    def rename_labels(
        self, arguments: Iterable[str], rename: Callable[[Any], Any]
    ) -> "GivenColumns":
        """Return the columns with other labels in those of some arguments."""
        there = [x for x in arguments if self[x] is not None]
        renamed = {x: rename_labels(self[x], rename) for x in there}
        return replace(self, columns={**self.columns, **renamed})

    def add_probabilities(self, probabilities: Any, columns: Any, scale: Scale) -> "GivenColumns":
        """Return the columns with a table of probabilities, or those that were named.

        Without predictions, the most probable levels are taken.
        """
        columns = None if columns is None else list(columns)
        if isinstance(self.table, ColumnTable):
            named = (probabilities,) if isinstance(probabilities, str) else tuple(probabilities)
            columns = list(expand_columns(named, self.table, scale))
            probabilities = self.table.take_matrix(columns)
        more = {"probabilities": probabilities, "columns": columns}
        if self["predicted"] is None:
            more["predicted"] = find_most_probable_labels(scale, probabilities, columns)
        return replace(self, columns={**self.columns, **more})


def take_columns(data: Any, first: str, **given: Any) -> GivenColumns:
    """Return the columns of a table that were named, or columns as they were given.

    Without a table, `data` itself may be the `first` column.

    >>> take_columns([1, 2], "gold", gold=None, predicted=[2, 2])["gold"]
    [1, 2]
    >>> take_columns({"level": [1, 2]}, "gold", gold="level")["gold"]
    [1, 2]
    """
    named = {argument: column for argument, column in given.items() if column is not None}
    refuse_strange_table(data, named.get(first))
    if not is_table(data):
        if data is not None and first in named:
            raise BadOption(f"Pass {first} once: first, or as {first}=…, or name it of a table.")
        return GivenColumns(named if data is None else {first: data, **named}, {})
    names = {argument: _check_name(argument, column) for argument, column in named.items()}
    table = open_table(data)
    for name in names.values():
        check_column(table.name, name, table.columns)
    if isinstance(table, LazyTable):
        return GivenColumns({}, names, table)
    return GivenColumns({x: table.take_column(name) for x, name in names.items()}, names, table)


def refuse_strange_table(data: Any, column: Any) -> None:
    """Refuse data of which a column is named, and that are no table."""
    if data is not None and isinstance(column, str) and not is_table(data):
        open_table(data)  # says what is one


def _check_name(argument: str, column: Any) -> str:
    if isinstance(column, str):
        return column
    kind = "a column" if isinstance(column, Iterable) else type(column).__name__
    raise BadOption(
        f"With a table, {argument}=… is the name of one of its columns, not {kind}. Put the "
        "column into the table, or pass columns alone."
    )
