"""Files of many systems on the same items: columns of one file, or one file for each run."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from ordinate.readers.confusion import Watch
from ordinate.readers.duckdb_connection import connect
from ordinate.readers.file_formats import open_sources
from ordinate.readers.panel_columns import WidePanelSource
from ordinate.readers.panel_runs import RunPanelSource
from ordinate.readers.panel_source import PanelSource, SystemColumns
from ordinate.scale import Scale
from ordinate.summaries import Panel
from ordinate.summaries.tabulation import MissingPolicy

__all__ = ["PanelData", "SystemColumns", "count_systems"]


@dataclass(frozen=True)
class PanelData:
    """The panel of files, and what a report says of where it came from.

    `joined` says of each run how many items matched, were missing, or are unknown to gold.
    """

    panel: Panel
    gold: str
    files: tuple[str, ...]
    joined: dict[str, dict[str, int]] | None
    notes: tuple[str, ...]


def count_systems(
    paths: list[str],
    columns: SystemColumns,
    scale: Scale | None = None,
    missing: MissingPolicy = "error",
    *,
    watch: Watch = lambda _: nullcontext(),
    admit: Callable[[int], None] = lambda _: None,
) -> PanelData:
    """Count what systems answered to the same items.

    The systems are columns of one file (or of several files with the same columns); or the first
    file has the gold levels, and each further one is the run of a system, joined by an id. `admit`
    may refuse a number of systems before anything is read.
    """
    with (
        connect() as connection,
        open_sources(connection, columns.delimiter, columns.encoding) as reader,
        watch(connection),
    ):
        files = reader.files(paths)
        runs = len(files) - 1
        if columns.systems or runs:
            admit(len(columns.systems) or runs)
        sources = [reader.source(name, path) for name, path in files]
        way: PanelSource = (WidePanelSource if columns.systems else RunPanelSource)(
            connection, sources, columns
        )
        panel = way.panel(scale, missing)
    names = tuple(source.name for source in sources)
    return PanelData(panel, way.gold, names, way.joined, tuple(way.notes))
