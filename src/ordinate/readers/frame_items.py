"""Items of a data frame of any library that narwhals knows, summed up by its own engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ordinate.errors import BadInput, shorten
from ordinate.readers.expressions import Aggregate, Expression, column
from ordinate.readers.items import Table

PLACE = "place"  # where a cell is, as an error names it


@dataclass(frozen=True)
class FrameItems:
    """Items of a lazy frame, whose columns have been named by their roles.

    Its rows have no numbers; items are known by the `id`, if a column of ids was named.
    """

    frame: Any  # narwhals.LazyFrame
    name: str
    identified: bool = False
    keyed: bool = False
    ordered: bool = False

    def add_columns(self, columns: Mapping[str, Expression]) -> "FrameItems":
        """Return the items with more columns."""
        more = {name: each.to_narwhals() for name, each in columns.items()}
        return replace(self, frame=self.frame.with_columns(**more))

    def sum_by(
        self,
        keys: Sequence[str],
        sums: Mapping[str, Aggregate],
        where: Expression | None = None,
    ) -> Table:
        """Return the sums over the items that share all keys, as the engine finds them."""
        rows = self.frame if where is None else self.frame.filter(where.to_narwhals())
        # What is summed up is a column first: some engines take no more than that.
        rows = rows.select(*keys, **{name: each.of.to_narwhals() for name, each in sums.items()})
        found = rows.group_by(*keys, drop_null_keys=False).agg(
            *(_take(name, each.kind) for name, each in sums.items())
        )
        table = self._collect(found)
        return {key: _make_cells(table[key]) for key in keys} | {
            name: np.array(table[name].to_list(), float) for name in sums
        }

    def find_cells(self, where: Expression, shown: Expression, limit: int) -> list[tuple[str, Any]]:
        """Return some places where a condition holds, and what stands there."""
        place = [column("id").to_narwhals().alias(PLACE)] if self.identified else []
        rows = self.frame.filter(where.to_narwhals()).select(
            shown.to_narwhals().alias("shown"), *place
        )
        table = self._collect(rows.head(limit))
        cells = table["shown"].to_list()
        places = [f"id {x}" for x in table[PLACE].to_list()] if place else ["a row"] * len(cells)
        return list(zip(places, cells, strict=True))

    def _collect(self, frame: Any) -> Any:
        try:
            return frame.collect()
        except Exception as problem:
            reason = shorten(" ".join(str(problem).split())[:300])
            raise BadInput(
                f"{self.name} cannot be read: {type(problem).__name__}: {reason}."
            ) from problem


def _take(name: str, kind: str) -> Any:
    from narwhals.stable import v2 as narwhals

    values = narwhals.col(name)
    return {"min": values.min, "max": values.max}.get(kind, values.sum)()


def _make_cells(series: Any) -> Any:
    return np.array([*series.to_list(), None], object)[:-1]  # None: an array of objects, always
