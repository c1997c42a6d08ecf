"""Confusion matrices of items, counted where they are: in files, frames and databases."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordinate.readers.cells import CountedCells, number_groups
from ordinate.readers.columns import ROLES, ItemColumns
from ordinate.readers.file_formats import Watch, open_sources
from ordinate.readers.item_query import FileItems, QueryPlanner
from ordinate.readers.items import CLUSTER, GOLD, PREDICTED, SECOND, SUBGROUP, ItemSource
from ordinate.readers.label_cells import LabelSpelling
from ordinate.scale import Scale
from ordinate.summaries.confusion import ConfusionData, EncodedCells
from ordinate.summaries.tabulation import MissingPolicy, MissingRows, make_missing_labels_error

if TYPE_CHECKING:
    from ordinate.readers.tables import LazyTable

SIDES = (GOLD, PREDICTED, SECOND)  # columns of labels


def count_files(
    paths: list[str],
    columns: ItemColumns,
    scale: Scale | None = None,
    missing: MissingPolicy = "error",
    *,
    look_at_items: "Callable[[FileItems, ConfusionReader, Scale], None]" = lambda *_: None,
    written: Path | None = None,
    check_groups: Callable[[list[Any]], None] | None = None,
    watch: Watch = lambda _: nullcontext(),
) -> ConfusionData:
    """Count files into confusion matrices.

    `check_groups` may refuse the groups that there are, before any label is looked at, and
    `look_at_items` may ask more of the items once they are counted; the file that is `written` of
    them is none of those that are read.
    """
    with open_sources(columns, watch) as reader:
        planner = QueryPlanner(reader, *reader.describe_sides(columns.gold_file, paths), columns)
        if written is not None:
            reader.refuse_to_replace(written)
        found = planner.build_items()
        spelling = LabelSpelling(columns.renamed)
        reading = ConfusionReader(found, planner.list_titles(), spelling)
        if check_groups is not None:
            check_groups(reading.cells.clusters.values)
        data = reading.read(scale, missing)
        look_at_items(found, reading, data.matrix.scale)
    notes = (*planner.notes, *data.notes)
    return replace(data, files=tuple(x.name for x in reader.sources), notes=notes)


def count_table(
    table: "LazyTable",
    names: Mapping[str, str],
    scale: Any = None,
    missing: MissingPolicy = "error",
    renamed: Mapping[str, str | None] | None = None,
    *,
    check_groups: Callable[[list[Any]], None] | None = None,
) -> ConfusionData:
    """Count a table where it is; `names` are those of its columns, by argument."""
    from ordinate.readers.tables import refuse_unnamed_columns  # noqa: PLC0415 - start-up: files need none

    refuse_unnamed_columns(names, GOLD, PREDICTED)
    titles = {ROLES[argument]: name for argument, name in names.items()}
    sides = [titles[side] for side in SIDES if side in titles]
    scale, notes = table.find_scale(scale, sides)
    reading = ConfusionReader(table.open_items(titles), titles, LabelSpelling(renamed))
    if check_groups is not None:
        check_groups(reading.cells.clusters.values)
    data = reading.read(scale, missing)
    return replace(data, files=(), notes=(*notes, *data.notes))


# --- one run -------------------------------------------------------------------------------------


class ConfusionReader:
    """One run over items."""

    def __init__(
        self, items: ItemSource, titles: Mapping[str, str], spelling: LabelSpelling
    ) -> None:
        sides = [GOLD, PREDICTED, *([SECOND] if SECOND in titles else [])]
        self.cells = CountedCells(items, titles, sides, spelling, "evaluate")
        self.titles = titles

    def read(self, scale: Scale | None, missing: MissingPolicy) -> ConfusionData:
        """Find the scale, and apply the policy for missing labels."""
        cells, titles = self.cells, self.titles
        scale, levels = cells.encode(scale)
        encoded = EncodedCells(
            scale,
            number_groups(cells.table, SUBGROUP) if SUBGROUP in titles else None,
            cells.clusters if CLUSTER in titles else None,
            levels[GOLD],
            levels[PREDICTED],
            levels.get(SECOND),
            cells.sums,
        )
        cells.refuse_missing_clusters(missing)
        left_out = cells.alone
        if SECOND in titles:
            self._refuse_missing_ratings(encoded, missing)
            left_out = left_out | encoded.lacks_second_rating
        rows = MissingRows(
            lambda: cells.find_missing_labels(GOLD), lambda: cells.find_missing_labels(PREDICTED)
        )
        return replace(
            encoded.exclude(left_out).build_data(rows, missing),
            gold=titles[GOLD],
            predicted=titles.get(PREDICTED, PREDICTED),
            files=(cells.items.name,),
            match_counts=cells.match_counts,
            notes=tuple(cells.notes),
        )

    def _refuse_missing_ratings(self, encoded: EncodedCells, missing: MissingPolicy) -> None:
        lacking = encoded.lacks_second_rating
        if lacking.any() and missing != "drop":
            count, n = (int(x.sum()) for x in (encoded.sums.items[lacking], encoded.sums.items))
            places = self.cells.find_missing_labels(SECOND)
            raise make_missing_labels_error(count, n, "labels of the second rater", places)
