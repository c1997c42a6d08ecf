"""Files of many systems on the same items: columns of one file, or one file for each run."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, shorten
from ordinate.readers.cells import number_clusters
from ordinate.readers.column_names import find_column, format_columns
from ordinate.readers.columns import SystemColumns
from ordinate.readers.duckdb_connection import (
    Connection,
    Watch,
    connect,
    read_arrays,
    read_rows,
    read_table,
)
from ordinate.readers.file_formats import FileSource, name_runs, open_sources
from ordinate.readers.item_query import (
    ROW_NUMBER_SQL,
    WEIGHT_SQL,
    FileItems,
    ItemQuery,
    build_key_sql,
    build_label_sql,
    check_ids,
    resolve_column,
)
from ordinate.readers.items import CLUSTER, GOLD, WEIGHT
from ordinate.readers.label_cells import LabelSpelling, RowLocator
from ordinate.readers.panels import PanelData, PanelReader, name_sides, refuse_silent_systems
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups, make_off_scale_error
from ordinate.summaries import Panel
from ordinate.summaries.counting import CellSums
from ordinate.summaries.panel import sum_single_items
from ordinate.summaries.tabulation import ROWS_SHOWN, MissingPolicy, make_missing_groups_error

if TYPE_CHECKING:
    from ordinate.readers.irregular_lines import Irregularity

Array = NDArray[Any]


def count_systems(
    paths: list[str],
    columns: SystemColumns,
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
    with (
        connect() as connection,
        open_sources(connection, columns) as reader,
        watch(connection),
    ):
        files = reader.find_distinct_files(paths)
        runs = len(files) - 1
        if columns.systems or runs:
            admit(len(columns.systems) or runs)
        sources = [reader.describe_file(name, path) for name, path in files]
        read = _read_columns if columns.systems else _read_runs
        data = read(connection, sources, columns, scale, missing, reader.left_out)
    names = tuple(source.name for source in sources)
    return replace(data, files=names, notes=(*data.notes, *reader.describe_left_out()))


# --- columns of one file --------------------------------------------------------------------------


def _read_columns(
    connection: Connection,
    sources: list[FileSource],
    columns: SystemColumns,
    scale: Scale | None,
    missing: MissingPolicy,
    left_out: "list[Irregularity] | None",
) -> PanelData:
    """Read systems side by side, in one file or in several with the same columns."""
    if columns.id is not None or columns.predicted is not None:
        raise BadInput(
            "--id and --predicted are for runs in files of their own, and --systems names "
            "columns of one file. Pass one or the other."
        )
    notes: list[str] = []
    gold = find_column("gold", columns.gold, sources[0], notes)
    sides = name_sides(gold, columns.systems)
    numbered = (ROW_NUMBER_SQL,) if columns.groups is not None else ()
    queries = [
        ItemQuery(_select_columns(source, columns, sides, *numbered), source.name, ())
        for source in sources
    ]
    items = FileItems(connection, queries, ordered=columns.groups is not None)
    spelling = LabelSpelling(columns.renamed, left_out)
    reading = PanelReader(items, sides, columns.others, spelling)
    panel = reading.read(scale, missing)
    return PanelData(panel, gold, notes=(*notes, *reading.cells.notes))


def _select_columns(
    source: FileSource, columns: SystemColumns, sides: Mapping[str, str], *further: str
) -> str:
    """Return SQL for the items of a file, with columns by their roles, and further ones."""
    selected = [f"{build_label_sql(source, name)} AS {role}" for role, name in sides.items()]
    if columns.weights is not None:
        selected.append(f"{resolve_column(source, columns.weights)} AS {WEIGHT}")
    if columns.groups is not None:
        selected.append(f"{build_label_sql(source, columns.groups)} AS {CLUSTER}")
    return f"SELECT {', '.join([*selected, *further])} FROM {source.sql}"


# --- one file for each run ------------------------------------------------------------------------


def _read_runs(
    connection: Connection,
    sources: list[FileSource],
    columns: SystemColumns,
    scale: Scale | None,
    missing: MissingPolicy,
    left_out: "list[Irregularity] | None",
) -> PanelData:
    """Read gold from the first file, and a run from each further one."""
    runs = _RunReader(connection, sources, columns, left_out)
    panel = runs.read(scale, missing)
    return PanelData(panel, runs.gold, match_counts=runs.match_counts, notes=tuple(runs.notes))


class _RunReader:
    """Gold in the first file, and a run in each further one, joined by an id."""

    def __init__(
        self,
        connection: Connection,
        sources: list[FileSource],
        columns: SystemColumns,
        left_out: "list[Irregularity] | None",
    ) -> None:
        gold, *runs = sources
        if not runs:
            raise _make_unnamed_systems_error(gold, columns)
        if columns.id is None:
            raise BadInput(
                "Gold levels and runs in several files are joined by an id, whatever the order of "
                "their rows. Name its column with --id; or name columns of one file with --systems."
            )
        self.connection, self.columns = connection, columns
        self.notes: list[str] = []
        self.spelling = LabelSpelling(columns.renamed, left_out)
        self.gold = find_column("gold", columns.gold, gold, self.notes)
        self.id, self.file = columns.id, gold.name
        self.match_counts: dict[str, dict[str, int]] = {}
        self.notes.append(f"The gold levels are those of {gold.name}, the first file.")
        self._store_gold(gold)
        self.systems = name_runs([run.name for run in runs])
        self.titles, self.files = [self.gold], [gold.name]
        self.labels: list[list[str]] = []  # as the files spell them: of gold, and of each system
        self.codes: list[Array] = []
        self._store_codes("SELECT nth, gold AS label FROM known_items")
        for name, run in zip(self.systems, runs, strict=True):
            self._read_run(name, run)

    def _store_gold(self, gold: FileSource) -> None:
        """Keep the items in the engine: all of them, and those that have a weight."""
        further = [f"{build_key_sql(gold, self.id)} AS id", ROW_NUMBER_SQL, "true AS in_gold"]
        selected = _select_columns(gold, self.columns, {GOLD: self.gold}, *further)
        self._store_rows("given_items", selected, GOLD)
        items = ItemQuery("SELECT * FROM given_items", gold.name, (), keyed=True)
        known = FileItems(self.connection, [items])
        self.places = RowLocator(known, self.spelling, self.columns.weights)
        if self.columns.weights is not None:
            self.places.check_weights()
        weighted = "true" if self.columns.weights is None else f"{WEIGHT_SQL} > 0"
        self._query(
            "CREATE TEMP TABLE known_items AS SELECT * REPLACE (row_number() OVER (ORDER BY nth) "
            f"- 1 AS nth) FROM given_items WHERE {weighted}"
        )
        self.n = self._read_number("SELECT count(*) FROM known_items")
        if not self.n:
            self.places.refuse_no_items("compare")

    def _read_run(self, name: str, run: FileSource) -> None:
        """Read one run: its predictions for the items of gold."""
        self.file = run.name
        title = find_column("predicted", self.columns.predicted, run, self.notes)
        selected = f"{build_key_sql(run, self.id)} AS id, {build_label_sql(run, title)} AS label"
        self._store_rows("run_items", f"SELECT {selected} FROM {run.sql}", "label")
        matched = self._store_codes("SELECT nth, label FROM run_items JOIN known_items USING (id)")
        unknown = self._read_number(
            "SELECT count(*) FROM run_items ANTI JOIN given_items USING (id)"
        )
        self.titles.append(title)
        self.files.append(run.name)
        self._add_notes(name, matched, unknown)

    def _store_rows(self, table: str, rows: str, label: str) -> None:
        """Keep the rows of a query in the engine, each of which has an id of its own."""
        left_out = self.spelling.left_out
        if left_out is not None:
            from ordinate.readers.lenient_files import keep_first_ids  # noqa: PLC0415 - it is rare

            rows = keep_first_ids(self.connection, rows, label, self.file, left_out)
        self._query(f"CREATE OR REPLACE TEMP TABLE {table} AS {rows}")
        check_ids(self.connection, f"FROM {table}", self.file, self.id)

    def _store_codes(self, predictions: str) -> int:
        """Keep the predictions as codes into their labels, and return how many items have one."""
        self._query(f"CREATE OR REPLACE TEMP TABLE predictions AS {predictions}")
        labels = "SELECT DISTINCT label FROM predictions WHERE label IS NOT NULL"
        self.labels.append([row[0] for row in self._query(f"{labels} ORDER BY 1")])
        codes = f"SELECT label, row_number() OVER (ORDER BY label) - 1 AS code FROM ({labels})"
        none = len(self.labels[-1])
        found = read_arrays(
            self.connection,
            f"SELECT nth, coalesce(code, {none}) AS code FROM predictions "
            f"LEFT JOIN ({codes}) USING (label)",
            self.file,
        )
        self.codes.append(np.full(self.n, none, np.min_scalar_type(none)))
        self.codes[-1][found["nth"]] = found["code"]
        return len(found["nth"])

    def _add_notes(self, name: str, matched: int, unknown: int) -> None:
        missing = self.n - matched
        self.match_counts[name] = {"matched": matched, "missing": missing, "unknown": unknown}
        if missing:
            self.notes.append(f"{name} has no row for {missing:,} of {self.n:,} items.")
        if unknown:
            self.notes.append(f"{name} has {unknown:,} rows of unknown items, which are left out.")

    def read(self, scale: Scale | None, missing: MissingPolicy) -> Panel:
        """Find the scale, and apply the policy for missing labels."""
        seen = {label for labels in self.labels for label in labels}
        scale = self.spelling.find_scale(scale, seen, self.notes)
        self._refuse_off_scale_labels(scale)
        levels = (self.spelling.encode_labels(scale, labels) for labels in self.labels)
        parts = (of[codes] for of, codes in zip(levels, self.codes, strict=True))
        rows = np.stack(list(parts), axis=1, dtype=np.int16)
        lacking = rows == len(scale)
        sums, groups = self._read_items(missing)
        unknown = (name for name, counts in self.match_counts.items() if not counts["matched"])
        why = dict.fromkeys(unknown, f": none of its ids is in {self.files[0]}")
        refuse_silent_systems(self.systems, lacking, sums.items, missing, why)
        if groups is not None:
            rows[groups.codes == len(groups.values), 0] = len(scale)  # which leaves the item out
            groups = Groups(groups.values, np.minimum(groups.codes, len(groups.values) - 1))
        return Panel.from_rows(
            scale,
            self.systems,
            rows,
            sums,
            groups,
            missing,
            lambda k: self._name_ids(lacking[:, k]),
        )

    def _refuse_off_scale_labels(self, scale: Scale) -> None:
        """Say which id of which file has a label that is not on the scale."""
        for k, labels in enumerate(self.labels):
            strange = self.spelling.find_off_scale_labels(scale, labels)
            if strange:
                off = np.isin(self.codes[k], [labels.index(label) for label in strange])
                place = int(np.argmax(off))
                label = self.spelling.rename_label(labels[self.codes[k][place]])
                where = (
                    f"{self._read_ids([place])[0]} of {self.files[k]} of column {self.titles[k]!r}"
                )
                if not self.spelling.leave_out(strange, where, label, int(off.sum())):
                    raise make_off_scale_error(scale, label, where)

    def _read_items(self, missing: MissingPolicy) -> tuple[CellSums, Groups | None]:
        """Return the items one by one, and their clusters; equal ones are gathered by the panel."""
        weight = WEIGHT_SQL if self.columns.weights else "CAST(1 AS DOUBLE)"
        cluster = CLUSTER if self.columns.groups else "NULL"
        query = (
            f"SELECT {weight} AS weight, CAST({cluster} AS VARCHAR) AS {CLUSTER}, "
            "1 AS items, nth FROM known_items ORDER BY nth"
        )
        table = read_table(self.connection, query, self.file)
        sums = sum_single_items(self.n, table["weight"])
        if self.columns.groups is None:
            return sums, None
        groups = number_clusters(table)
        alone = groups.codes == len(groups.values)
        if alone.any() and missing != "drop":
            column = f"column {self.columns.groups!r}"
            raise make_missing_groups_error(int(alone.sum()), self.n, column, self._name_ids(alone))
        return sums, groups

    def _name_ids(self, where: Array) -> list[str]:
        """Return the first ids of some items."""
        return self._read_ids(np.flatnonzero(where)[:ROWS_SHOWN].tolist())

    def _read_ids(self, places: list[int]) -> list[str]:
        listed = ", ".join(map(str, places))
        found = self._query(f"SELECT id FROM known_items WHERE nth IN ({listed}) ORDER BY nth")
        return [f"id {row[0]}" for row in found]

    def _query(self, query: str) -> list[Any]:
        return read_rows(self.connection, query, self.file)

    def _read_number(self, query: str) -> int:
        return int(self._query(query)[0][0])


def _make_unnamed_systems_error(source: FileSource, columns: SystemColumns) -> BadInput:
    taken = {columns.gold, columns.weights, columns.groups, columns.id}
    others = [name for name in source.columns if name not in taken]
    shown = ",".join(others[-2:]) if len(others) > 1 else "a,b"
    return BadInput(
        f"Which columns of {source.name} are systems? Name them, such as --systems "
        f"{shorten(shown)}; or name the files of runs after the one of gold. "
        f"{format_columns(source.columns)}"
    )
