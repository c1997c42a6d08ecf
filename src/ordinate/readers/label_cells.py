"""Labels in the cells of files: renamed, put on the scale, and where unusable ones stand."""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, BadWeights, NoItems, shorten
from ordinate.readers.duckdb_connection import Connection, quote_literal, read_rows
from ordinate.readers.item_query import WEIGHT_SQL, ItemQuery
from ordinate.scale import Scale
from ordinate.scale.columns import encode_categories, encode_label
from ordinate.scale.detection import find_preset
from ordinate.scale.encoding import make_off_scale_error
from ordinate.scale.labels import is_missing
from ordinate.summaries.counting import HEAVIEST_WEIGHT
from ordinate.summaries.tabulation import ROWS_SHOWN

MOST_LABELS = 500  # looked for in one query


class LabelSpelling:
    """From labels to levels, by the names that labels get first."""

    def __init__(self, renamed: dict[str, str | None]) -> None:
        self.renamed = renamed
        self.missing_labels = [label for label, level in renamed.items() if is_missing(level)]

    def rename_label(self, label: str | None) -> str | None:
        """Return the label under its new name, where it has one."""
        return self.renamed.get(label, label) if label is not None else None

    def find_scale(
        self, declared: Scale | None, labels: Iterable[str | None], notes: list[str]
    ) -> Scale:
        """Return the declared scale, or the one preset that fits, with a note."""
        if declared is not None:
            return declared
        seen: set[Any] = {self.rename_label(label) for label in labels}
        scale = find_preset(lambda: {level for level in seen if not is_missing(level)})
        notes.append(f"No scale was declared: every label seen is on the preset {scale.preset!r}.")
        return scale

    def find_off_scale_labels(self, scale: Scale, labels: Iterable[str | None]) -> list[str]:
        """Return the labels that are not on the scale."""
        known = {label for label in labels if label is not None}
        return sorted(x for x in known if encode_label(scale, self.rename_label(x)) > len(scale))

    def encode_labels(self, scale: Scale, labels: Sequence[str]) -> NDArray[np.int64]:
        """Return the positions of labels, and that of a missing one last."""
        return encode_categories(scale, [self.rename_label(label) for label in labels])


def build_label_code_sql(column: str, labels: Sequence[str]) -> str:
    """Return SQL for the place of a string among labels; after the last comes a missing one."""
    place = (
        f"list_position([{', '.join(map(quote_literal, labels))}], {column}) - 1"
        if labels
        else "NULL"
    )
    return f"CAST(coalesce({place}, {len(labels)}) AS INTEGER)"


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

    def find_missing_labels(self, column: str) -> list[str]:
        """Return the first places without a label."""
        unnamed = ", ".join(map(quote_literal, self.spelling.missing_labels))
        return self.find_empty_cells(column, f" OR {column} IN ({unnamed})" if unnamed else "")

    def find_empty_cells(self, column: str, also: str = "") -> list[str]:
        """Return the first places where nothing stands."""
        found = self._find_cells(f"({column} IS NULL{also}) AND in_gold", column, ROWS_SHOWN)
        return [place for place, _ in found]

    def refuse_off_scale_labels(
        self, scale: Scale, column: str, labels: list[str], title: str
    ) -> None:
        """Say where the first of the labels stands, if there are any, none of them on the scale."""
        if labels:
            listed = ", ".join(map(quote_literal, labels[:MOST_LABELS]))
            place, found = self._find_cells(f"{column} IN ({listed}) AND in_gold", column, 1)[0]
            raise make_off_scale_error(
                scale, self.spelling.rename_label(found), f"{place} of column {title!r}"
            )

    def refuse_no_items(self, verb: str) -> None:
        """Say why there is nothing to work on."""
        rows = any(self._find_cells_in_file(part, "in_gold", "gold", 1) for part in self.items)
        if self.weights is not None and rows:
            raise NoItems(f"There are no items to {verb}: all weights are 0.")
        raise NoItems(f"{self.items[0].name} has a header and no rows.")

    def check_weights(self, part: ItemQuery) -> None:
        """Refuse weights that are no finite numbers of at least 0."""
        # `isfinite` by name: a comparison with NaN may take its answer from a file's statistics.
        finite = (
            f"isfinite({WEIGHT_SQL}) AND {WEIGHT_SQL} >= 0 AND {WEIGHT_SQL} < {HEAVIEST_WEIGHT}"
        )
        wrong = f"{WEIGHT_SQL} IS NULL OR NOT ({finite})"
        for place, found in self._find_cells_in_file(part, f"in_gold AND ({wrong})", "weight", 1):
            state = "is missing" if found is None else f"is {found}"
            raise BadWeights(
                f"The weight ({place} of column {self.weights!r}) {state}. Weights are "
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
        unit = "id" if part.keyed else "row"
        return [
            (f"{unit} {place}{of_file}", found)
            for place, found in read_rows(self.connection, query, part.name)
        ]


def read_label_map(path: str) -> dict[str, str | None]:
    """Return the labels to rename: a JSON object, or CSV with the header from,to."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        # The top object is the last that is parsed; a dictionary would keep one of two equal keys.
        is_json = text.lstrip().startswith("{")
        rows = json.loads(text, object_pairs_hook=list) if is_json else _parse_label_map(path, text)
    except BadInput:
        raise
    except (OSError, ValueError, csv.Error) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise BadInput(f"The map {path} cannot be read: {reason}.") from None
    if not rows:
        raise BadInput(
            f"The map {path} renames no label. Write labels and their levels, such as "
            '{"b1": "B1"}, or leave --map out.'
        )
    for label, level in rows:
        if not (level is None or isinstance(level, (str, int, float))):
            raise BadInput(f"The map {path} renames {label!r} to something that is no label.")
    renamed = {str(label): _name_level(level) for label, level in rows}
    if len(renamed) < len(set(rows)):
        twice = next(label for label, level in rows if renamed[str(label)] != _name_level(level))
        raise BadInput(f"The map {path} renames one label in two ways: {shorten(twice)}.")
    return renamed


def _name_level(level: Any) -> str | None:
    return None if is_missing(level) else str(level)


def _parse_label_map(path: str, text: str) -> list[tuple[str, str]]:
    rows = [row for row in csv.reader(text.splitlines()) if row]
    if not rows or rows[0] != ["from", "to"] or any(len(row) != 2 for row in rows):
        raise BadInput(
            f'The map {path} must be a JSON object such as {{"b1": "B1"}}, or CSV with two columns '
            "and the header line from,to."
        )
    return [(old, new) for old, new in rows[1:]]
