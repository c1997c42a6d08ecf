"""Runs of an evaluation campaign: gold and runs, in lines of test case, id and value."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadInput, MissingLabels, NoItems, shorten, word_advice
from ordinate.meta.campaign_lines import (
    CampaignColumns,
    ColumnLayout,
    RunReader,
    make_unknown_column_error,
)
from ordinate.readers.cells import number_groups
from ordinate.readers.duckdb_connection import read_table
from ordinate.readers.file_formats import NamedFile, Watch, name_runs, open_reader
from ordinate.readers.irregular_lines import (
    Irregularity,
    IrregularityKind,
    list_irregularities,
)
from ordinate.readers.items import CLUSTER
from ordinate.readers.label_cells import LabelSpelling
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups
from ordinate.summaries import Panel
from ordinate.summaries.panel import sum_single_items
from ordinate.summaries.tabulation import ROWS_SHOWN, MissingPolicy

Array = NDArray[Any]
MOST_FILES_NAMED = 3  # files that a note names
MOST_KINDS_LISTED = 8  # kinds of irregularity that an error lists


@dataclass(frozen=True)
class Campaign:
    """The panel of a campaign, whose groups are the test cases, and what its files are like.

    `match_counts` says of each run how many items of gold it has (matched), for how many there is
    a prediction on the scale (predicted), how many it lacks (missing), and how many lines have an
    id that gold lacks (unknown).
    """

    panel: Panel
    irregular: tuple[Irregularity, ...]
    files: tuple[str, ...]
    notes: tuple[str, ...]
    match_counts: dict[str, dict[str, int]]


def read_campaign(
    gold: str,
    runs: list[str],
    columns: CampaignColumns | None = None,
    scale: Scale | None = None,
    missing: MissingPolicy | None = None,
    *,
    watch: Watch = lambda _: nullcontext(),
) -> Campaign:
    """Read gold and the runs: files, patterns, or folders of files.

    Whatever is irregular is an error; with `lenient`, bad lines are left out, and an item that a
    run lacks or predicts badly is treated as `missing` says: left out for all systems, or "worst".
    """
    columns = columns or CampaignColumns()
    with open_reader(RunReader, columns, watch) as lines:
        gold_file = lines.find_gold(gold)
        campaign = _CampaignReader(lines, columns)
        run_files, same = lines.find_runs(runs, gold_file[1])
        campaign.notes += [f"{name} is the gold file, and no run." for name in same]
        return campaign.read(gold_file, run_files, scale, missing)


class _CampaignReader:
    """One reading of all files."""

    scale: Scale
    by_test_case: bool

    def __init__(self, lines: RunReader, columns: CampaignColumns) -> None:
        self.lines, self.columns, self.lenient = lines, columns, columns.lenient
        self.spelling = LabelSpelling(columns.renamed)
        self.files_by_layout: dict[str, list[str]] = {}
        self.files_without_test_case: list[str] = []  # runs only
        self.notes: list[str] = []
        self.match_counts: dict[str, dict[str, int]] = {}

    def read(
        self,
        gold: NamedFile,
        runs: list[NamedFile],
        scale: Scale | None,
        missing: MissingPolicy | None,
    ) -> Campaign:
        """Read gold, then each run."""
        names = name_runs([name for name, _ in runs])
        columns = [self._read_gold(gold, scale)]
        labelled = columns[0] < len(self.scale)
        columns += [self._read_run(names[k], run, labelled) for k, run in enumerate(runs)]
        if not self.lenient:
            _refuse_irregularities(self.lines.left_out)
        rows = np.stack(columns, axis=1)[labelled]
        usual: MissingPolicy = "drop" if self.lenient else "error"
        panel = self._build_panel(names, rows, np.flatnonzero(labelled), missing or usual)
        return Campaign(
            panel,
            tuple(self.lines.left_out),
            files=tuple(name for name, _ in (gold, *runs)),
            notes=(*self._describe_layouts(), *self.notes),
            match_counts=self.match_counts,
        )

    def _read_gold(self, file: NamedFile, scale: Scale | None) -> Array:
        """Return the level of each id of gold, which are the known ones."""
        layout = self._read_file(file, "gold")
        self._check_test_case(layout)
        self.by_test_case = layout.test_case is not None
        self.lines.store_known_items()
        labels = self.lines.list_values()
        self.scale = self.spelling.find_scale(scale, labels, [])
        if scale is None:
            preset = self.scale.preset
            self.notes.append(
                f"No scale was declared: the gold labels are of the preset {preset!r}."
            )
        levels, _ = self._check_labels(labels, by_test_case=self.by_test_case)
        if not (levels < len(self.scale)).any():
            _refuse_irregularities([] if self.lenient else self.lines.left_out)
            raise NoItems(f"{self.lines.file} has no item with a label on the scale.")
        return levels

    def _read_run(self, name: str, file: NamedFile, labelled: Array) -> Array:
        """Return the level that a run gives to each id of gold."""
        layout = self._read_file(file, "predicted")
        by_test_case = self.by_test_case and layout.test_case is not None
        if self.by_test_case and not by_test_case:
            self._check_ids_unique()
        levels, has_line = self._check_labels(self.lines.list_values(), by_test_case=by_test_case)
        lacking = labelled & ~has_line
        self.lines.count_missing_items(lacking)
        self.match_counts[name] = {
            "matched": int((labelled & has_line).sum()),
            "predicted": int((labelled & (levels < len(self.scale))).sum()),
            "missing": int(lacking.sum()),
            "unknown": self.lines.count_lines(IrregularityKind.UNKNOWN),
        }
        return levels

    def _read_file(self, file: NamedFile, role: str) -> ColumnLayout:
        layout = self.lines.read_lines(file, self.columns.list_named(role))
        self.files_by_layout.setdefault(layout.description, []).append(self.lines.file)
        return layout

    def _check_test_case(self, layout: ColumnLayout) -> None:
        """Refuse gold without the column of test cases that was named."""
        named, file = self.columns.test_case, self.lines.file
        if named is None or layout.test_case is not None:
            return
        if layout.names:
            raise make_unknown_column_error(file, named, layout.names)
        raise BadInput(
            f"{file} has no test case, and {shorten(named)} was named: its lines have two "
            "columns, id and value."
        )

    def _check_labels(self, labels: list[str], *, by_test_case: bool) -> tuple[Array, Array]:
        """Return the level of each id of gold, and which have a line."""
        levels = self.spelling.encode_labels(self.scale, labels)[: len(labels)].tolist()
        codes = dict(zip(labels, levels, strict=True))
        return self.lines.check_lines(codes, len(self.scale), by_test_case=by_test_case)

    def _check_ids_unique(self) -> None:
        """Refuse a run without test cases if its ids do not tell the items apart."""
        query = (
            "SELECT id, count(*) FROM known_items GROUP BY id HAVING count(*) > 1 "
            "ORDER BY min(place) LIMIT 1"
        )
        file = self.lines.file
        for repeated, times in self.lines.query(query):
            raise BadInput(
                f"{file} has no test case, so its items are found by their ids alone; but the "
                f"id {shorten(repeated)} is in {times:,} test cases of gold."
            )
        self.files_without_test_case.append(file)

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
            self._read_groups(places),
            missing,
            lambda column: self.lines.read_ids(places[lacking[:, column]][:ROWS_SHOWN]),
        )

    def _make_silent_run_error(self, name: str, n: int) -> MissingLabels:
        """Return the error for a run that predicts nothing."""
        why = "" if self.match_counts[name]["matched"] else ": none of its ids is in gold"
        return MissingLabels(
            f"{name} predicts none of the {n:,} items{why}. "
            + word_advice(
                "Leave this run out, or count its items as wrong with {missing}.", missing="worst"
            )
        )

    def _read_groups(self, places: Array) -> Groups | None:
        """Return the test cases of items."""
        if not self.by_test_case:
            return None
        connection, file = self.lines.connection, self.lines.file
        items = "SELECT test_case AS cluster, place AS nth, 1 AS items FROM known_items ORDER BY 2"
        values, numbers = number_groups(read_table(connection, items, file), CLUSTER)
        return Groups(values, numbers[places])

    def _describe_layouts(self) -> list[str]:
        """Return notes on how the files of each layout were read."""
        notes = [
            f"{_format_subject(files, 'was', 'were')} read {layout}."
            for layout, files in self.files_by_layout.items()
        ]
        if self.files_without_test_case:
            files = _format_subject(self.files_without_test_case, "has", "have")
            notes.append(f"{files} no test cases: items are found by their ids alone.")
        return notes


def _format_subject(files: list[str], singular: str, plural: str) -> str:
    """Return the subject of a sentence on files, and its verb."""
    more = f" and {len(files) - MOST_FILES_NAMED} more" if len(files) > MOST_FILES_NAMED else ""
    verb = singular if len(files) == 1 else plural
    return f"{', '.join(files[:MOST_FILES_NAMED])}{more} {verb}"


def _refuse_irregularities(irregular: Sequence[Irregularity]) -> None:
    """Say what is irregular, in all files together, if anything is."""
    if not irregular:
        return
    listed = list_irregularities(irregular)
    further = len(listed) - MOST_KINDS_LISTED
    more = f"; and {further} more kinds" if further > 0 else ""
    total = sum(entry.count for entry in irregular)
    is_encoded = any(entry.kind == IrregularityKind.ENCODING for entry in irregular)
    hint = " Pass --encoding if a file is not UTF-8." if is_encoded else ""
    raise BadInput(
        f"The files have {total:,} irregular {'line or id' if total == 1 else 'lines or ids'}: "
        f"{'; '.join(listed[:MOST_KINDS_LISTED])}{more}. Correct the files, or pass lenient=True "
        f"(--lenient) to leave these lines out and evaluate the rest.{hint}"
    )
