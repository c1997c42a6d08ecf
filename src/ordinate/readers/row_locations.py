"""Where something stands in the files, as errors name it."""

from typing import Any

from ordinate.errors import BadWeights, NoItems
from ordinate.readers.duckdb_connection import Connection, quote_literal, read_rows
from ordinate.readers.label_spelling import LabelSpelling
from ordinate.readers.query import WEIGHT_SQL, ItemQuery
from ordinate.scale import Scale
from ordinate.scale.encoding import make_off_scale_error
from ordinate.summaries.counting import HEAVIEST_WEIGHT
from ordinate.summaries.tabulation import ROWS_SHOWN

MOST_LABELS = 500  # looked for in one query


class RowLocator:
    """Finds rows or ids in items; an item of weight 0 does not exist."""

    def __init__(
        self,
        connection: Connection,
        items: list[ItemQuery],
        spelling: LabelSpelling,
        weights: str | None,
    ) -> None:
        self.connection, self.items, self.spelling = connection, items, spelling
        self.weights = weights

    def missing(self, column: str) -> list[str]:
        """Return the first places without a label."""
        unnamed = ", ".join(map(quote_literal, self.spelling.missing_labels))
        return self.empty(column, f" OR {column} IN ({unnamed})" if unnamed else "")

    def empty(self, column: str, also: str = "") -> list[str]:
        """Return the first places where nothing stands."""
        found = self._find_cells(f"({column} IS NULL{also}) AND in_gold", column, ROWS_SHOWN)
        return [place for place, _ in found]

    def refuse_off_scale_labels(
        self, scale: Scale, column: str, labels: list[str], title: str
    ) -> None:
        """Say where the first of the labels stands, if there are any, none of them on the scale."""
        if labels:
            wanted = ", ".join(map(quote_literal, labels[:MOST_LABELS]))
            place, found = self._find_cells(f"{column} IN ({wanted}) AND in_gold", column, 1)[0]
            raise make_off_scale_error(
                scale, self.spelling.level(found), f"{place} of column {title!r}"
            )

    def refuse_no_items(self, verb: str) -> None:
        """Say why there is nothing to work on."""
        rows = any(self._find_cells_in_file(part, "in_gold", "gold", 1) for part in self.items)
        if self.weights is not None and rows:
            raise NoItems(f"There are no items to {verb}: all weights are 0.")
        raise NoItems(f"{self.items[0].name} has a header and no rows.")

    def check_weights(self, part: ItemQuery) -> None:
        """Refuse weights that are no finite numbers of at least 0."""
        # Asked by name, because comparisons with NaN may be answered from a file's statistics.
        finite = (
            f"isfinite({WEIGHT_SQL}) AND {WEIGHT_SQL} >= 0 AND {WEIGHT_SQL} < {HEAVIEST_WEIGHT}"
        )
        wrong = f"{WEIGHT_SQL} IS NULL OR NOT ({finite})"
        for place, found in self._find_cells_in_file(part, f"in_gold AND ({wrong})", "weight", 1):
            what = "is missing" if found is None else f"is {found}"
            raise BadWeights(
                f"The weight ({place} of column {self.weights!r}) {what}. Weights are "
                "finite numbers of at least 0."
            )

    def _find_cells(self, condition: str, column: str, limit: int) -> list[tuple[str, Any]]:
        if self.weights is not None:
            condition += f" AND {WEIGHT_SQL} > 0"
        found: list[tuple[str, Any]] = []
        for part in self.items:
            found += self._find_cells_in_file(part, condition, column, limit - len(found))
        return found

    def _find_cells_in_file(
        self, part: ItemQuery, condition: str, column: str, limit: int
    ) -> list[tuple[str, Any]]:
        """Return the first places that fit a condition, and what stands there."""
        place = "id" if part.keyed else "row_number() OVER ()"
        query = (
            f"SELECT place, {column} FROM (SELECT *, {place} AS place FROM ({part.sql})) "
            f"WHERE {condition} ORDER BY place LIMIT {limit}"
        )
        of_file = f" of {part.name}" if len(self.items) > 1 else ""
        what = "id" if part.keyed else "row"
        return [
            (f"{what} {place}{of_file}", found)
            for place, found in read_rows(self.connection, query, part.name)
        ]
