"""Tables of a result, declared once: JSON, CSV, frames, the grids of every renderer.

A `Table` is records under `Column`s: data classes, or dictionaries. A column says its key, which
programs read, its head, which people read, and its kind, which knows how either gets what stands
there. One more column is one more line where the table is declared, and nothing elsewhere.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from ordinate.inference.estimates import Estimate, to_json_number
from ordinate.render.document import Cell, Grid, format_interval
from ordinate.render.estimates import (
    format_estimate,
    format_estimate_interval,
    format_interval_head,
    format_number,
    format_p_value,
    format_percent,
    format_with_interval,
)

Record = dict[str, Any]


class Kind:
    """What stands in a column: values, which programs get as they are."""

    words = False  # whether people read it from the left

    def __init__(self, show: Callable[[Any], Cell] = lambda x: x, *, words: bool = False) -> None:
        self.show, self.words = show, words

    def list_heads(self, head: str, level: float | None) -> list[str]:
        """Return the heads of its columns; `level` is that of intervals, None without any."""
        del level
        return [head]

    def list_cells(self, value: Any, level: float | None) -> list[Cell]:
        """Return its cells for people."""
        del level
        return [None if value is None else self.show(value)]

    def make_record(self, key: str, value: Any) -> Record:
        """Return its cells for programs."""
        return {key: value}


def leave_undefined_empty(kind: Kind) -> Kind:
    """Return a kind of numbers of which people see nothing where one is undefined."""
    return Kind(lambda x: None if math.isnan(x) else kind.show(x))


class Estimates(Kind):
    """Estimates: a value, and its interval in a column of its own, or `joined` with it in one cell.

    Programs get the bounds as `low` and `high`, with the prefix where a record has more estimates.
    """

    def __init__(
        self,
        show: Callable[[float], Cell],
        show_bounds: Callable[[Estimate], Cell],
        *,
        joined: Callable[[Estimate], Cell] | None = None,
        keys: Sequence[str] = ("low", "high", "method", "note"),
        prefix: str = "",
        missing: Cell = None,
    ) -> None:
        super().__init__(show)
        self.missing = missing  # what people see where there is none
        self.show_bounds, self.joined, self.keys, self.prefix = show_bounds, joined, keys, prefix

    def list_heads(self, head: str, level: float | None) -> list[str]:
        """Return the heads of the value and of its interval."""
        return [head, *([] if level is None or self.joined else [format_interval_head(level)])]

    def list_cells(self, value: Estimate | None, level: float | None) -> list[Cell]:
        """Return the value and its interval."""
        if value is None:
            return [self.missing, *(None for _ in self.list_heads("", level)[1:])]
        if self.joined:
            return [self.joined(value)]
        return [self.show(value.value), *([] if level is None else [self.show_bounds(value)])]

    def make_record(self, key: str, value: Estimate | None) -> Record:
        """Return the value, its bounds, and what else is kept of it."""
        further = {f"{self.prefix}{name}": getattr(value, name, None) for name in self.keys}
        return {key: None if value is None else value.value, **further}


NAME = Kind(words=True)
TEXT = Kind()  # to the right of names; numbers have three digits
NUMBER = Kind(format_number)  # digits that say something, of values that have a unit
COUNT = Kind(lambda n: f"{n:,}")
SHARE = Kind(format_percent)
P_VALUE = Kind(format_p_value)
ESTIMATE = Estimates(lambda x: x, lambda found: format_interval(found.low, found.high))
JOINED = Estimates(lambda x: x, format_with_interval, joined=format_with_interval)
BOUNDED = Estimates(ESTIMATE.show, ESTIMATE.show_bounds, keys=("low", "high"))  # by one method
UNIT_ESTIMATE = Estimates(format_number, format_estimate_interval)
UNIT_JOINED = Estimates(format_number, format_estimate, joined=format_estimate)


@dataclass(frozen=True)
class Column:
    """A column; `get` says what stands there, where it is not what records have by its key."""

    key: str
    head: str | None = None  # None: the key
    kind: Kind = TEXT
    get: Callable[[Any], Any] | None = None
    shown: bool = True  # to people
    stored: bool = True  # for programs
    optional: int = False  # a narrow terminal may do without it, the least number first

    def take(self, record: Any) -> Any:
        """Return what stands there in a record."""
        if self.get is not None:
            return self.get(record)
        return record.get(self.key) if isinstance(record, dict) else getattr(record, self.key)

    def list_heads(self, level: float | None) -> list[str]:
        """Return its heads for people."""
        return self.kind.list_heads(self.key if self.head is None else self.head, level)


@dataclass(frozen=True)
class Table:
    """Records under columns; with `by` people see a grid for each value of that column.

    `level` is that of confidence intervals, None without any. Of `most` rows people see the first;
    the last `totals` stay last. With `by` the title is made of its value.
    """

    name: str
    title: str | Callable[[Any], str]
    columns: Sequence[Column]
    records: Sequence[Any]
    level: float | None = None
    by: str | None = None
    most: int | None = None
    totals: int = 0
    common: Mapping[str, Any] = field(default_factory=dict)  # to all flat records

    # --- for programs --------------------------------------------------------------------------

    def rows(self) -> list[Record]:
        """Return flat records for CSV and frames."""
        return [{**self._make_record(record), **self.common} for record in self.records]

    def to_list(self) -> list[Record]:
        """Return plain values for JSON, nan as None."""
        return [to_plain(self._make_record(record)) for record in self.records]

    def nest(self, *keys: str) -> Record:
        """Return plain values for JSON under the values of these columns."""
        tree: Record = {}
        for row in self.to_list():
            *path, last = (str(row.pop(key)) for key in keys)
            branch = tree
            for name in path:
                branch = branch.setdefault(name, {})
            branch[last] = row
        return tree

    def _make_record(self, record: Any) -> Record:
        cells: Record = {}
        for column in self.columns:
            if column.stored:
                cells |= column.kind.make_record(column.key, column.take(record))
        return cells

    # --- for people ----------------------------------------------------------------------------

    def grids(self) -> list[Grid]:
        """Return its grids: one, or one for each value of `by`; none without records."""
        return [self._make_grid(value, part) for value, part in self.split()]

    def select(self, title: str, *keys: str, records: Sequence[Any] | None = None) -> "Table":
        """Return some columns under another title, of other records if there are some."""
        chosen = [replace(self._get_column(key), shown=True) for key in keys]
        own = self.records if records is None else records
        return replace(self, title=title, columns=chosen, records=own)

    def cross(self, row: str, column: str, cell: str, *, most: int | None = None) -> list[Grid]:
        """Return one column over two others, at most so many columns beside each other."""
        across, down = (self._list_values(key) for key in (column, row))
        found = {(self._take(row, x), self._take(column, x)): x for x in self.records}
        shown, first = self._get_column(cell), self._get_column(row)
        step = most or max(1, len(across))
        grids = []
        for start in range(0, len(across), step):
            heads = across[start : start + step]
            rows = tuple(
                (name, *(self._list_cells(shown, found.get((name, head)))[0] for head in heads))
                for name in down
            )
            grids.append(Grid(self.get_title(), (*first.list_heads(None), *map(str, heads)), rows))
        return grids

    def split(self) -> Iterator[tuple[Any, list[Any]]]:
        """Yield records by the value of `by`, all at once without it."""
        if self.by is None:
            if self.records:
                yield None, list(self.records)
            return
        for value in self._list_values(self.by):
            yield value, [x for x in self.records if self._take(self.by, x) == value]

    def get_title(self, value: Any = None) -> str:
        """Return the title, which may be made of the value of `by`."""
        return self.title if isinstance(self.title, str) else self.title(value)

    def _make_grid(self, value: Any, part: list[Any]) -> Grid:
        columns = [x for x in self.columns if x.shown and x.key != self.by]
        header = [head for column in columns for head in column.list_heads(self.level)]
        spare = sorted(filter(lambda x: x.optional, columns), key=lambda x: x.optional)
        rows = tuple(
            tuple(cell for column in columns for cell in self._list_cells(column, record))
            for record in part[: self.most]
        )
        return Grid(
            self.get_title(value),
            tuple(header),
            rows,
            left=sum(column.kind.words for column in columns),
            optional=tuple(x.list_heads(None)[0] for x in spare),
            totals=self.totals,
        )

    def _list_cells(self, column: Column, record: Any) -> list[Cell]:
        value = None if record is None else column.take(record)
        return column.kind.list_cells(value, self.level)

    def _get_column(self, key: str) -> Column:
        return next(column for column in self.columns if column.key == key)

    def _take(self, key: str, record: Any) -> Any:
        return self._get_column(key).take(record)

    def _list_values(self, key: str) -> list[Any]:
        return list(dict.fromkeys(self._take(key, record) for record in self.records))


def to_plain(value: Any) -> Any:
    """Return a value as JSON knows it, however deep it is; nan and the infinities are None.

    >>> to_plain({"low": float("nan"), "at": (1, 2.5)})
    {'low': None, 'at': [1, 2.5]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return to_json_number(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return {x.name: to_plain(getattr(value, x.name)) for x in fields(value)}
    if isinstance(value, Mapping):
        return {name: to_plain(x) for name, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(x) for x in value]
    return value
