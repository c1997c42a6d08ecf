"""Files of many systems on the same items: columns of one file, or one file for each run."""

from collections.abc import Callable
from contextlib import nullcontext

from ordinate.errors import BadInput, shorten, word_advice
from ordinate.readers.column_names import find_column, format_columns
from ordinate.readers.columns import ItemColumns
from ordinate.readers.duckdb_connection import quote_literal, read_rows
from ordinate.readers.file_formats import FileReader, FileSource, Watch, name_runs, open_sources
from ordinate.readers.item_query import (
    ROW_NUMBER_SQL,
    WEIGHT_SQL,
    FileItems,
    ItemQuery,
    build_key_sql,
    require_ids,
    select_columns,
)
from ordinate.readers.items import CLUSTER, GOLD, MATCH_COUNTS, WEIGHT
from ordinate.readers.label_cells import LabelSpelling
from ordinate.readers.panels import PanelData, PanelReader, name_sides
from ordinate.scale import Scale
from ordinate.summaries.tabulation import MissingPolicy


def count_systems(
    paths: list[str],
    columns: ItemColumns,
    scale: Scale | None = None,
    missing: MissingPolicy = "error",
    *,
    watch: Watch = lambda _: nullcontext(),
    admit: Callable[[int], None] = lambda _: None,
) -> PanelData:
    """Count what systems predict for the same items.

    The systems are columns of one file (or of several files with the same columns); or the first
    file has the gold levels, and each further one is the run of a system, joined by an id. `admit`
    may refuse a number of systems before anything is read.
    """
    notes: list[str] = []
    with open_sources(columns, watch) as reader:
        files = reader.find_distinct_files(paths)
        runs = len(files) - 1
        if columns.systems or runs:
            admit(len(columns.systems) or runs)
        sources = [reader.describe_file(name, path) for name, path in files]
        notes += reader.notes
        systems: tuple[str, ...] = ()
        counts: dict[str, dict[str, int]] = {}
        if columns.systems:
            items, sides = _select_systems(sources, columns, notes)
        else:
            join = _RunJoin(reader, sources, columns, notes)
            items, sides, systems, counts = join.join(), join.sides, join.systems, join.match_counts
        spelling = LabelSpelling(columns.renamed)
        reading = PanelReader(items, sides, find_others(columns), spelling, systems)
        panel = reading.read(scale, missing)
    return PanelData(
        panel,
        sides[GOLD],
        files=tuple(source.name for source in sources),
        match_counts=counts or None,
        notes=(*notes, *reading.cells.notes),
    )


def find_others(columns: ItemColumns) -> dict[str, str]:
    """Return the columns beside those of labels, by role."""
    return {role: name for role, name in columns.roles.items() if role in {WEIGHT, CLUSTER}}


# --- columns of one file --------------------------------------------------------------------------


def _select_systems(
    sources: list[FileSource], columns: ItemColumns, notes: list[str]
) -> tuple[FileItems, dict[str, str]]:
    """Return systems side by side, in one file or in several with the same columns."""
    if columns.id is not None or columns.predicted is not None:
        raise BadInput(
            word_advice(
                "{id} and {predicted} are for runs in files of their own, and {systems} names "
                "columns of one file. Pass one or the other.",
                id=...,
                predicted=...,
                systems=...,
            )
        )
    sides = name_sides(find_column("gold", columns.gold, sources[0], notes), columns.systems)
    numbered = [] if columns.groups is None else [ROW_NUMBER_SQL]
    labels, others = {*sides, CLUSTER}, find_others(columns)
    queries = [
        select_columns(source, sides | others, *numbered, labels=labels) for source in sources
    ]
    parts = [ItemQuery(sql, source.name) for sql, source in zip(queries, sources, strict=True)]
    return FileItems(sources[0].connection, parts, ordered=bool(numbered)), sides


# --- one file for each run ------------------------------------------------------------------------


class _RunJoin:
    """Gold in the first file, and a run in each further one, joined by an id.

    The engine keeps the items of gold, and the labels of each run in their order: a query of
    hundreds of joins would take it longer than all the rest.
    """

    def __init__(
        self, reader: FileReader, sources: list[FileSource], columns: ItemColumns, notes: list[str]
    ) -> None:
        self.gold, *self.runs = sources
        if not self.runs:
            raise _make_unnamed_systems_error(self.gold, columns)
        if columns.id is None:
            raise BadInput(
                word_advice(
                    "Gold levels and runs in several files are joined by an id, whatever the order "
                    "of their rows. Name its column with {id}; or name columns of one file with "
                    "{systems}.",
                    id=...,
                    systems=...,
                )
            )
        self.reader, self.columns, self.id, self.notes = reader, columns, columns.id, notes
        self.sides = {GOLD: find_column("gold", columns.gold, self.gold, notes)}
        self.others = find_others(columns)

    def join(self) -> FileItems:
        """Return the items of gold, with the labels of all runs."""
        self.notes.append(f"The gold levels are those of {self.gold.name}, the first file.")
        further = [ROW_NUMBER_SQL, "true AS in_gold", "true AS in_predicted"]
        self._store_rows(self.gold, self.sides | self.others, GOLD, *further)
        self._store("gold_items", "SELECT * FROM given_rows ORDER BY nth", self.gold)
        self.systems = name_runs([run.name for run in self.runs])
        self.match_counts = {
            name: self._add_run(f"s{k}", name, run)
            for k, (name, run) in enumerate(zip(self.systems, self.runs, strict=True), start=1)
        }
        files = zip(self.sides, (self.gold, *self.runs), strict=True)
        named = ", ".join(f"{quote_literal(file.name)} AS {role}_file" for role, file in files)
        tables = " POSITIONAL JOIN ".join(["gold_items", *list(self.sides)[1:]])
        items = ItemQuery(f"SELECT *, {named} FROM {tables}", self.gold.name, keyed=True)
        return FileItems(self.reader.connection, [items], ordered=True)

    def _add_run(self, role: str, name: str, run: FileSource) -> dict[str, int]:
        """Keep the labels of a run in the order of gold, and count the items that it has."""
        self.sides[role] = find_column("predicted", self.columns.predicted, run, self.notes)
        self._store_rows(run, {role: self.sides[role]}, role)
        labels = f"SELECT {role} FROM gold_items LEFT JOIN given_rows USING (id) ORDER BY nth"
        self._store(role, labels, run)
        counts = self._count_matches(run)
        n = counts["matched"] + counts["missing"]
        if counts["missing"]:
            self.notes.append(f"{name} has no row for {counts['missing']:,} of {n:,} items.")
        return counts

    def _store_rows(
        self, source: FileSource, columns: dict[str, str], label: str, *further: str
    ) -> None:
        """Keep the rows of a file in the engine, each of which has an id of its own."""
        key = f"{build_key_sql(source, self.id)} AS id"
        rows = select_columns(source, columns, key, *further, labels={label, CLUSTER})
        self._store("given_rows", rows, source)
        require_ids(self.reader.connection, "FROM given_rows", source.name, self.id)

    def _count_matches(self, run: FileSource) -> dict[str, int]:
        """Return how many items of gold a run has and lacks; others are refused."""
        given = "true" if self.columns.weights is None else f"{WEIGHT_SQL} > 0"
        query = (
            f"SELECT count(*) FILTER (given AND b.id IS NOT NULL), "
            "count(*) FILTER (given AND b.id IS NULL), count(*) FILTER (a.id IS NULL), "
            f"min(b.id) FILTER (a.id IS NULL) FROM (SELECT id, {given} AS given FROM gold_items) a "
            "FULL JOIN given_rows b USING (id)"
        )
        ((*counts, unknown),) = read_rows(self.reader.connection, query, run.name)
        if unknown is not None and sum(counts[:2]):  # no items at all are another error
            raise BadInput(
                f"{run.name}: the ids of {counts[-1]:,} of its rows are not in {self.gold.name}, "
                f"such as {shorten(unknown)}. Remove these rows, or add their gold levels."
            )
        return dict(zip(MATCH_COUNTS, counts, strict=True))

    def _store(self, table: str, rows: str, source: FileSource) -> None:
        query = f"CREATE OR REPLACE TEMP TABLE {table} AS {rows}"
        read_rows(self.reader.connection, query, source.name)


def _make_unnamed_systems_error(source: FileSource, columns: ItemColumns) -> BadInput:
    taken = {columns.gold, columns.weights, columns.groups, columns.id}
    others = [name for name in source.columns if name not in taken]
    shown = others[-2:] if len(others) > 1 else ["a", "b"]
    return BadInput(
        f"Which columns of {source.name} are systems? "
        + word_advice("Name them, such as {systems}", systems=shown)
        + f"; or name the files of runs after the one of gold. {format_columns(source.columns)}"
    )
