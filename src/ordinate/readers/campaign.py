"""Runs of an evaluation campaign: gold and runs, in lines of test case, id and value."""

import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, MissingLabels, NoItems, shorten
from ordinate.readers.campaign_layout import (
    CampaignColumns,
    ColumnLayout,
    detect_header,
    find_layout_by_header,
    find_layout_by_position,
    make_unknown_column_error,
)
from ordinate.readers.clusters import build_cluster_number_sql, read_clusters
from ordinate.readers.confusion import Watch
from ordinate.readers.duckdb_connection import Connection, connect, read_arrays, read_rows
from ordinate.readers.irregular_lines import (
    Irregularity,
    IrregularityKind,
    refuse_irregularities,
    sort_irregularities,
)
from ordinate.readers.label_spelling import LabelSpelling
from ordinate.readers.line_faults import build_line_check_sql, build_predictions_sql
from ordinate.readers.panel_runs import name_runs
from ordinate.readers.text_lines import LineReader, NamedFile, build_split_sql, format_excerpt
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries import Panel
from ordinate.summaries.panel import sum_single_items
from ordinate.summaries.tabulation import ROWS_SHOWN, WORST_HINT, MissingPolicy

__all__ = ["Campaign", "CampaignColumns", "Irregularity", "read_campaign"]

Array = NDArray[Any]
MOST_FILES_NAMED = 3  # files that a note names


@dataclass(frozen=True)
class Campaign:
    """The panel of a campaign, whose groups are the test cases, and what its files are like.

    `read` says of each run how many items of gold it has (matched), for how many of them there is
    an answer on the scale (answered), how many it lacks (missing), and how many lines have an id
    that gold lacks (unknown).
    """

    panel: Panel
    irregular: tuple[Irregularity, ...]
    files: tuple[str, ...]
    notes: tuple[str, ...]
    read: dict[str, dict[str, int]]


def read_campaign(
    gold: str,
    runs: list[str],
    columns: CampaignColumns | None = None,
    scale: Scale | None = None,
    missing: MissingPolicy | None = None,
    *,
    lenient: bool = False,
    watch: Watch = lambda _: nullcontext(),
) -> Campaign:
    """Read gold and the runs: files, patterns, or folders of files.

    Whatever is irregular is an error; with `lenient`, bad lines are left out, and an item that a
    run lacks or answered badly is treated as `missing` says: left out for all systems, or "worst".
    """
    columns = columns or CampaignColumns()
    with (
        connect() as connection,
        tempfile.TemporaryDirectory(prefix="ordinate-") as folder,
        watch(connection),
    ):
        lines = LineReader(connection, Path(folder), columns.delimiter, columns.encoding)
        file = lines.gold(gold)
        campaign = _CampaignReader(connection, lines, columns, lenient=lenient)
        found, same = lines.find_runs(runs, file[1])
        campaign.notes += [f"{name} is the gold file, and no run." for name in same]
        return campaign.run(file, found, scale, missing)


class _CampaignReader:
    """One reading of all files; the engine has the lines of one of them at a time."""

    scale: Scale
    places: int  # of gold: distinct ids, whether they have a label or not
    by_test_case: bool

    def __init__(
        self, connection: Connection, lines: LineReader, columns: CampaignColumns, *, lenient: bool
    ) -> None:
        self.connection, self.lines, self.columns = connection, lines, columns
        self.lenient = lenient
        self.spelling = LabelSpelling(columns.renamed)
        self.file = ""
        self.irregular: list[Irregularity] = []
        self.how: dict[str, list[str]] = {}  # files, by how they were read
        self.files_without_test_case: list[str] = []  # runs without test cases
        self.notes: list[str] = []
        self.counts: dict[str, dict[str, int]] = {}

    def run(
        self,
        gold: NamedFile,
        runs: list[NamedFile],
        scale: Scale | None,
        missing: MissingPolicy | None,
    ) -> Campaign:
        """Read gold, then each run."""
        names = name_runs([name for name, _ in runs])
        answers = [self._gold(gold, scale)]
        labelled = answers[0] < len(self.scale)
        answers += [self._run(names[k], run, labelled) for k, run in enumerate(runs)]
        if not self.lenient:
            refuse_irregularities(self.irregular)
        rows = np.stack(answers, axis=1)[labelled]
        panel = self._build_panel(names, rows, np.flatnonzero(labelled), missing or self._usual)
        files = tuple(name for name, _ in (gold, *runs))
        return Campaign(
            panel,
            tuple(self.irregular),
            files,
            (*self._describe_layouts(), *self.notes),
            self.counts,
        )

    @property
    def _usual(self) -> MissingPolicy:
        return "drop" if self.lenient else "error"

    # --- files -------------------------------------------------------------------------------

    def _gold(self, file: NamedFile, scale: Scale | None) -> Array:
        """Keep the ids of gold in the engine, as `known`, and return the level of each."""
        layout = self._answers(file, "gold")
        self.by_test_case = layout.test_case is not None
        self._run_query(
            "CREATE TEMP TABLE known AS SELECT row_number() OVER (ORDER BY min(line)) - 1 AS "
            "place, test_case, id FROM answers WHERE kind IS NULL GROUP BY test_case, id"
        )
        self.places = self._run_query("SELECT count(*) FROM known")[0][0]
        labels = self._labels()
        self.scale = self.spelling.scale(scale, labels, [])
        if scale is None:
            preset = self.scale.preset
            self.notes.append(
                f"No scale was declared: the gold labels are of the preset {preset!r}."
            )
        levels, _ = self._check_lines(labels, by_test_case=self.by_test_case)
        if not (levels < len(self.scale)).any():
            refuse_irregularities([] if self.lenient else self.irregular)
            raise NoItems(f"{self.file} has no item with a label on the scale.")
        return levels

    def _run(self, name: str, file: NamedFile, labelled: Array) -> Array:
        """Return the level that a run gives to each id of gold."""
        layout = self._answers(file, "predicted")
        by_test_case = self.by_test_case and layout.test_case is not None
        if self.by_test_case and not by_test_case:
            self._check_ids_unique()
        levels, there = self._check_lines(self._labels(), by_test_case=by_test_case)
        lacking = labelled & ~there
        if lacking.any():
            first = self._read_ids(np.flatnonzero(lacking)[:1])[0]
            count = int(lacking.sum())
            self.irregular.append(
                Irregularity(
                    self.file, IrregularityKind.MISSING, count, None, format_excerpt(first)
                )
            )
        unknown = (
            x.count
            for x in self.irregular
            if (x.file, x.kind) == (self.file, IrregularityKind.UNKNOWN)
        )
        self.counts[name] = {
            "matched": int((labelled & there).sum()),
            "answered": int((labelled & (levels < len(self.scale))).sum()),
            "missing": int(lacking.sum()),
            "unknown": sum(unknown),
        }
        return levels

    def _answers(self, file: NamedFile, role: str) -> ColumnLayout:
        """Keep the lines of a file in the engine as `answers`, and return where things stand."""
        self.file, path = file
        first = self.lines.keep(self.file, path)
        delimiter = self.lines.detect_delimiter(path, first)
        named = self.columns.named(role)
        names = detect_header(first[0], delimiter, named)
        if names is not None:
            self._run_query(
                "DELETE FROM lines WHERE line <= (SELECT min(line) FROM lines WHERE text <> '')"
            )
            self.lines.join_quoted_lines(delimiter, len(names))
        self._run_query(
            f"CREATE OR REPLACE TEMP TABLE cut AS SELECT line, text, {build_split_sql(delimiter)} "
            "AS parts FROM lines WHERE text <> ''"
        )
        layout = (
            find_layout_by_header(self.file, names, named)
            if names is not None
            else find_layout_by_position(self.file, *self._count_line_widths(), first[0])
        )
        self._check_test_case(layout, role, names or [])
        self._run_query(f"CREATE OR REPLACE TEMP TABLE answers AS {build_predictions_sql(layout)}")
        self.how.setdefault(layout.how, []).append(self.file)
        return layout

    def _count_line_widths(self) -> tuple[int, int]:
        """Return how many lines have three columns, and how many two."""
        counts = "count(*) FILTER (len(parts) = 3), count(*) FILTER (len(parts) = 2)"
        return self._run_query(f"SELECT {counts} FROM cut")[0]

    def _check_test_case(self, layout: ColumnLayout, role: str, names: list[str]) -> None:
        asked = self.columns.test_case
        if asked is None or layout.test_case is not None or role != "gold":
            return
        if names:
            raise make_unknown_column_error(self.file, asked, names)
        raise BadInput(
            f"{self.file} has no test case, and {shorten(asked)} was named: its lines have two "
            "columns, id and value."
        )

    # --- checking lines ----------------------------------------------------------------------

    def _labels(self) -> list[str]:
        labels = "SELECT DISTINCT value FROM answers WHERE kind IS NULL AND value <> ''"
        return [row[0] for row in self._run_query(f"{labels} ORDER BY 1")]

    def _check_lines(self, labels: list[str], *, by_test_case: bool) -> tuple[Array, Array]:
        """Find the kind of every line; return the level of each id of gold, and which are there."""
        levels = self.spelling.levels(self.scale, labels)[: len(labels)]
        self.connection.execute(
            "CREATE OR REPLACE TEMP TABLE levels AS SELECT unnest($1::VARCHAR[]) AS value, "
            "unnest($2::INTEGER[]) AS level",
            [labels, levels.tolist()],
        )
        checked = build_line_check_sql(len(self.scale), by_test_case=by_test_case)
        self._run_query(f"CREATE OR REPLACE TEMP TABLE checked AS {checked}")
        self._count_irregular_lines()
        none = len(self.scale)
        found = read_arrays(
            self.connection,
            f"SELECT place, coalesce(max(level) FILTER (kind IS NULL), {none}) AS level "
            "FROM checked WHERE place IS NOT NULL GROUP BY place",
            self.file,
        )
        answers, there = np.full(self.places, none, np.int16), np.zeros(self.places, bool)
        answers[found["place"]], there[found["place"]] = found["level"], True
        return answers, there

    def _count_irregular_lines(self) -> None:
        """Count the irregular lines by their kinds."""
        found = self._run_query(
            "SELECT kind, count(*), min(line), arg_min(left(text, 200), line) FROM checked "
            "WHERE kind IS NOT NULL GROUP BY kind"
        )
        self.irregular += sort_irregularities(
            Irregularity(self.file, IrregularityKind(kind), count, line, format_excerpt(text))
            for kind, count, line, text in found
        )

    def _check_ids_unique(self) -> None:
        """Refuse a run without test cases if its ids do not tell the items apart."""
        query = (
            "SELECT id, count(*) FROM known GROUP BY id HAVING count(*) > 1 "
            "ORDER BY min(place) LIMIT 1"
        )
        for found, times in self._run_query(query):
            raise BadInput(
                f"{self.file} has no test case, so its items are found by their ids alone; but the "
                f"id {shorten(found)} is in {times:,} test cases of gold."
            )
        self.files_without_test_case.append(self.file)

    # --- the panel ---------------------------------------------------------------------------

    def _build_panel(
        self, systems: tuple[str, ...], rows: Array, places: Array, missing: MissingPolicy
    ) -> Panel:
        lacking = rows == len(self.scale)
        for k, name in enumerate(systems, start=1):
            if missing != "worst" and bool(lacking[:, k].all()):
                raise self._make_silent_run_error(name, len(rows))
        return Panel.from_rows(
            self.scale,
            systems,
            rows,
            sum_single_items(len(rows), None),
            self._groups(places),
            missing,
            lambda column: self._read_ids(places[lacking[:, column]][:ROWS_SHOWN]),
        )

    def _make_silent_run_error(self, name: str, n: int) -> MissingLabels:
        """Return the error for a run that answers nothing."""
        why = "" if self.counts[name]["matched"] else ": none of its ids is in gold"
        return MissingLabels(
            f"{name} answers none of the {n:,} items{why}. Leave this run out, or count its items "
            f"as wrong with {WORST_HINT}."
        )

    def _groups(self, places: Array) -> Groups | None:
        if not self.by_test_case:
            return None
        items = "SELECT test_case AS cluster, place AS nth FROM known"
        query = f"SELECT number FROM ({build_cluster_number_sql(items)}) ORDER BY nth"
        found = read_arrays(self.connection, query, self.file)["number"]
        return Groups(read_clusters(self.connection, items, self.file), found[places])

    def _read_ids(self, places: Array) -> list[str]:
        """Return ids, after their test cases where there are any."""
        wanted = ", ".join(map(str, places.tolist()))
        query = (
            f"SELECT concat_ws(' ', test_case, id) FROM known WHERE place IN ({wanted}) "
            "ORDER BY place"
        )
        return [row[0] for row in self._run_query(query)]

    def _describe_layouts(self) -> list[str]:
        """Return notes on how each kind of file was read."""
        notes = [
            f"{_format_subject(files, 'was', 'were')} read {how}."
            for how, files in self.how.items()
        ]
        if self.files_without_test_case:
            files = _format_subject(self.files_without_test_case, "has", "have")
            notes.append(f"{files} no test cases: items are found by their ids alone.")
        return notes

    def _run_query(self, query: str) -> list[Any]:
        return read_rows(self.connection, query, self.file)


def _format_subject(files: list[str], one: str, many: str) -> str:
    """Return the subject of a sentence on files, and its verb."""
    more = f" and {len(files) - MOST_FILES_NAMED} more" if len(files) > MOST_FILES_NAMED else ""
    return f"{', '.join(files[:MOST_FILES_NAMED])}{more} {one if len(files) == 1 else many}"
