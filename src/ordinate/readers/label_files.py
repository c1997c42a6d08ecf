"""Files of gold and predicted levels, counted inside DuckDB."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from ordinate.readers.columns import ItemColumns
from ordinate.readers.confusion import ConfusionReader
from ordinate.readers.file_formats import Watch, open_sources
from ordinate.readers.item_query import FileItems, QueryPlanner
from ordinate.readers.label_cells import LabelSpelling
from ordinate.scale import Scale
from ordinate.summaries.confusion import ConfusionData
from ordinate.summaries.tabulation import MissingPolicy


def count_files(
    paths: list[str],
    columns: ItemColumns,
    scale: Scale | None = None,
    missing: MissingPolicy = "error",
    *,
    look_at_items: Callable[[FileItems, ConfusionReader, Scale], None] = lambda *_: None,
    check_groups: Callable[[list[Any]], None] = lambda _: None,
    watch: Watch = lambda _: nullcontext(),
) -> ConfusionData:
    """Count files into confusion matrices.

    `check_groups` may refuse the groups that there are, before any label is looked at, and
    `look_at_items` may ask more of the items once they are counted.
    """
    with open_sources(columns, watch) as reader:
        gold_files = reader.describe_files([columns.gold_file]) if columns.gold_file else []
        files = reader.describe_files(paths)
        planner = QueryPlanner(reader, gold_files, files, columns)
        found = planner.build_items()
        spelling = LabelSpelling(columns.renamed, reader.left_out)
        reading = ConfusionReader(found, planner.list_titles(), spelling)
        check_groups(reading.cells.clusters.values)
        data = reading.read(scale, missing)
        look_at_items(found, reading, data.matrix.scale)
    names = tuple(source.name for source in (*gold_files, *files))
    return replace(
        data, files=names, notes=(*planner.notes, *data.notes, *reader.describe_left_out())
    )
