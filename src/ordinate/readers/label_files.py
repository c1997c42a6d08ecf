"""Files of gold and predicted levels, counted inside DuckDB."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from ordinate.readers.columns import LabelColumns
from ordinate.readers.confusion import ConfusionData, ConfusionReader
from ordinate.readers.duckdb_connection import Watch
from ordinate.readers.file_formats import open_sources
from ordinate.readers.item_query import QueryPlanner, write_disagreements
from ordinate.readers.label_cells import LabelSpelling
from ordinate.scale import Scale
from ordinate.summaries.tabulation import MissingPolicy


def count_files(
    paths: list[str],
    columns: LabelColumns,
    scale: Scale | None = None,
    missing: MissingPolicy = "error",
    *,
    items: Path | None = None,
    check_groups: Callable[[list[Any]], None] = lambda _: None,
    watch: Watch = lambda _: nullcontext(),
) -> ConfusionData:
    """Count files into confusion matrices; `items` is where the items that disagree are written.

    `check_groups` may refuse the groups that there are, before any label is looked at.
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
        if items is not None:
            wrong, unanswered = reading.list_disagreements(data.matrix.scale)
            write_disagreements(reader.connection, found.parts, wrong, unanswered, items)
    names = tuple(source.name for source in (*gold_files, *files))
    return replace(
        data, files=names, notes=(*planner.notes, *data.notes, *reader.describe_left_out())
    )
