"""Items of a data frame of any library that narwhals knows, summed up by its own engine."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ordinate.errors import BadInput, shorten
from ordinate.readers.expressions import ALWAYS, Expression
from ordinate.readers.items import Row, Sums, Table, name_places


@dataclass(frozen=True)
class FrameItems:
    """Items of a lazy frame, whose columns have been named by their roles; rows have no numbers."""

    frame: Any  # narwhals.LazyFrame
    name: str
    keyed: bool = False
    ordered: bool = False

    def add_columns(self, columns: Mapping[str, Expression]) -> "FrameItems":
        """Return the items with more columns."""
        more = {name: each.to_narwhals() for name, each in columns.items()}
        with explain_failure(self.name):
            return replace(self, frame=self.frame.with_columns(**more))

    def sum_by(self, keys: Sequence[str], sums: Sums, where: Expression | None = None) -> Table:
        """Return the sums over the items that share all keys, as the engine finds them."""
        with explain_failure(self.name):
            rows = self._filter(where)
            # What is summed up is a column first: some engines take no more than that.
            rows = rows.select(*keys, **{x: each.of.to_narwhals() for x, each in sums.items()})
            taken = (_take(name, each.kind) for name, each in sums.items())
            table = rows.group_by(*keys, drop_null_keys=False).agg(*taken).collect()
            return {key: _make_cells(table[key]) for key in keys} | {
                name: np.array(table[name].to_list(), float) for name in sums
            }

    def find_cells(self, where: Expression, limit: int, *shown: Expression) -> list[Row]:
        """Return some places where a condition holds, and what stands there."""
        cells = {f"shown{k}": x.to_narwhals() for k, x in enumerate(shown)}
        with explain_failure(self.name):
            table = self._filter(where).select(**cells).head(limit).collect()
            rows = zip(*(table[name].to_list() for name in cells), strict=True)
        return name_places(rows)

    def _filter(self, where: Expression | None) -> Any:
        # A filter that asks no column is none that engines take.
        if where is None or where is ALWAYS:
            return self.frame
        return self.frame.filter(where.to_narwhals())


@contextmanager
def explain_failure(name: str) -> Iterator[None]:
    """Say whose data cannot be read, whatever their engine raises."""
    try:
        yield
    except Exception as problem:
        reason = shorten(" ".join(str(problem).split())[:300])
        raise BadInput(f"{name} cannot be read: {type(problem).__name__}: {reason}.") from problem


def _take(name: str, kind: str) -> Any:
    from narwhals.stable import v2 as narwhals

    values = narwhals.col(name)
    return {"min": values.min, "max": values.max}.get(kind, values.sum)()


def _make_cells(series: Any) -> Any:
    return np.array([*series.to_list(), None], object)[:-1]  # None: an array of objects, always
