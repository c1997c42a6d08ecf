"""Regression targets and predictions, summed up where they are: in files, frames and databases."""

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ordinate.errors import BadOption
from ordinate.readers.column_names import USUAL_NUMBER_NAMES
from ordinate.readers.columns import ROLES, ItemColumns
from ordinate.readers.duckdb_connection import quote_literal, read_rows
from ordinate.readers.file_formats import FileReader, FileSource, Watch, open_sources
from ordinate.readers.item_query import FileItems, ItemQuery, QueryPlanner
from ordinate.readers.items import (
    CLUSTER,
    GOLD,
    MATCH_COUNTS,
    PREDICTED,
    SUBGROUP,
    WEIGHT,
    ItemSource,
)
from ordinate.readers.numeric_cells import (
    GUESS,
    HIGH,
    LOW,
    MOMENT,
    TARGET,
    TIME_TEXT_SQL,
    USABLE,
    MissingPolicy,
    NumericCells,
)
from ordinate.readers.regression_sums import RegressionSums
from ordinate.readers.tables import LazyTable, refuse_unnamed_columns
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import TARGET_MEAN, TRAIN_MEAN, Moments

MEDIAN = "median"  # a constant prediction
SIDES = {TARGET: GOLD, GUESS: PREDICTED}
SIDE_TITLES = {"target": "targets", "predicted": "predictions"}
BOUNDS = {LOW: "lower", HIGH: "upper"}
FILE_SIDES = {TARGET: "target", GUESS: "guess"}  # numbers as a file has them, not as strings


@dataclass(frozen=True)
class RegressionData:
    """The summaries of items, and what a report says of where they came from.

    With groups, `groups` has a summary for each that has items, and `by` for each subgroup a batch
    of what those groups have in it. `bounds` are likewise. `previous` has the targets against the
    previous one in the declared order, so that the first item is not in it.
    """

    moments: Moments
    by: list[tuple[Any, Moments]]
    target: str
    predicted: str
    files: tuple[str, ...]
    match_counts: dict[str, int] | None
    notes: tuple[str, ...]
    groups: Moments | None = None
    previous: Moments | None = None
    bounds: PredictionIntervals | None = None
    intervals_by_subgroup: list[tuple[Any, Any]] = field(default_factory=list)
    intervals_by_group: PredictionIntervals | None = None


def sum_files(
    paths: list[str],
    columns: ItemColumns,
    *,
    constants: Mapping[str, float | None] | None = None,
    missing: MissingPolicy = "error",
    histogram: bool = True,
    watch: Watch = lambda _: nullcontext(),
) -> RegressionData:
    """Sum up files of numbers.

    `constants` are constant predictions of interest by name; those of "mean" and "median" are those
    of the targets where they are None. The mean is one of them if no "train_mean" is given.
    """
    checked = _check_constants(constants or {})
    require_both_bounds(columns.lower, columns.upper)
    with open_sources(columns, watch) as reader:
        gold_files, files = reader.describe_sides(columns.gold_file, paths)
        planner = _plan_queries(reader, gold_files, files, columns)
        # Times without a zone are all of the same one.
        reader.connection.execute("SET TimeZone='UTC'")
        sides = SIDES if gold_files else FILE_SIDES
        items, titles = planner.build_items(), planner.list_titles()
        reading = _RegressionReader(items, titles, sides | BOUNDS, histogram=histogram)
        data = reading.read(checked, missing)
        previous = None
        if columns.order is not None:
            disk = reader.folder / "rows.db"
            previous = _summarize_persistence(reading, disk, histogram=histogram)
    names = tuple(source.name for source in reader.sources)
    return replace(data, files=names, notes=(*planner.notes, *data.notes), previous=previous)


def sum_table(
    table: LazyTable,
    names: Mapping[str, str],
    *,
    constants: Mapping[str, float | None],
    missing: MissingPolicy,
) -> RegressionData:
    """Sum up a table where it is; `names` are those of its columns, by argument."""
    refuse_unnamed_columns(names, "target", "predicted")
    require_both_bounds(names.get("lower"), names.get("upper"))
    titles = {ROLES[argument]: name for argument, name in names.items()}
    numbers = SIDES | BOUNDS
    table.require_numbers(titles[name] for name in numbers.values() if name in titles)
    reading = _RegressionReader(table.open_items(titles), titles, numbers)
    return reading.read(_check_constants(constants), missing)


def require_both_bounds(lower: Any, upper: Any) -> None:
    """Refuse prediction intervals with one bound."""
    if (lower is None) != (upper is None):
        raise BadOption("Prediction intervals have a lower and an upper bound: name both columns.")


def _check_constants(given: Mapping[str, float | None]) -> dict[str, float | None]:
    for name, value in given.items():
        if value is None and name not in {TARGET_MEAN, MEDIAN}:
            raise BadOption(f"The constant prediction {name!r} needs a value.")
        if value is not None and not math.isfinite(value):
            raise BadOption(f"The constant prediction {name!r} is {value}, not a finite number.")
    return dict(given) if TRAIN_MEAN in given else {TARGET_MEAN: None, **given}


# --- columns of files ----------------------------------------------------------------------------


def _plan_queries(
    reader: FileReader, gold_files: list[FileSource], files: list[FileSource], columns: ItemColumns
) -> QueryPlanner:
    """Return the plan of what to read: targets take the place of gold labels."""
    further = {} if columns.order is None else {MOMENT: columns.order}
    names: dict[str, Any] = {"usual_names": USUAL_NUMBER_NAMES, "contents": SIDE_TITLES}
    planner = QueryPlanner(reader, gold_files, files, columns, further, **names)
    # NaN is no missing number here, and where files are joined, numbers are what labels are.
    sides = {planner.gold, planner.predicted}
    planner.gold_files, planner.files = (
        [
            replace(
                x,
                numbers=x.numbers - sides,
                columns=x.columns | {y: x.number_columns[y] for y in sides & {*x.number_columns}},
            )
            for x in sources
        ]
        for sources in (gold_files, files)
    )
    if not gold_files:
        planner.roles |= {FILE_SIDES[TARGET]: planner.gold, FILE_SIDES[GUESS]: planner.predicted}
    return planner


# --- one run -------------------------------------------------------------------------------------


class _RegressionReader:
    """One run over items."""

    def __init__(
        self,
        items: ItemSource,
        titles: Mapping[str, str],
        numbers: Mapping[str, str],
        *,
        histogram: bool = True,
    ) -> None:
        self.cells = NumericCells(items, titles, numbers)
        self.items = self.cells.add_numbers()
        self.notes: list[str] = []
        self.sums = RegressionSums(
            self.items,
            [role for role in (SUBGROUP, CLUSTER) if role in titles],
            self.cells.list_counts(),
            weighted=WEIGHT in titles,
            bounded=LOW in self.cells.columns,
            histogram=histogram,
        )

    def read(self, constants: Mapping[str, float | None], missing: MissingPolicy) -> RegressionData:
        """Sum up, and refuse what is no number."""
        counts = self.sums.counts
        self.cells.check_counts(counts, self.sums.n, missing)
        pool = self.sums.compute_sums(self._fill_in_constants(constants))
        roles, everything = self.sums.keys.roles, pool.summarize()
        grouped, bounded = CLUSTER in roles, everything.bounds is not None
        names = list(enumerate(pool.names)) if SUBGROUP in roles else []
        if grouped and pool.histogram is not None and not pool.has_histograms(max(1, len(names))):
            self.notes.append("There are too many groups for a histogram of errors of each.")
        groups = pool.summarize(grouped=True) if grouped else None
        by = {name: pool.summarize(k, grouped=grouped) for k, name in names}
        return RegressionData(
            everything.moments,
            [(name, part.moments) for name, part in by.items()],
            self.cells.titles[GOLD],
            self.cells.titles[PREDICTED],
            (),
            {x: counts[x] for x in MATCH_COUNTS} if self.items.keyed else None,
            tuple(self.notes),
            None if groups is None else groups.moments,
            bounds=everything.bounds,
            intervals_by_subgroup=[(name, part.bounds) for name, part in by.items() if bounded],
            intervals_by_group=None if groups is None else groups.bounds,
        )

    def _fill_in_constants(self, constants: Mapping[str, float | None]) -> dict[str, float]:
        """Return constant predictions with those that come from the targets."""
        mean = self.sums.find_means()
        found = {TARGET_MEAN: mean}
        if MEDIAN in constants and constants[MEDIAN] is None:
            found[MEDIAN] = self.sums.find_median(mean)
            self.notes.append(
                "The median of the targets is approximate: half a per cent of its distance from "
                "their mean at most."
            )
        return {name: found[name] if x is None else float(x) for name, x in constants.items()}


# --- the previous target, as a model that knows nothing else would predict it ---------------------


def _summarize_persistence(
    reading: _RegressionReader, disk: Path, *, histogram: bool
) -> Moments | None:
    """Return targets against the previous one, None where there is one item only.

    `disk` is a file to keep the items of files in their order.
    """
    items: Any = reading.items
    cells, connection, name = reading.cells, items.connection, items.name
    times, weighted = cells.build_time_sql(reading.sums.counts), cells.weights is not None
    read_rows(connection, f"ATTACH {quote_literal(str(disk))} AS disk", name)
    weight = ", w AS weight" if weighted else ""
    keys = [f"t{k}" for k in range(len(times))]
    text = f"nullif({TIME_TEXT_SQL}, '')"
    read_as = ", ".join(f"{sql.format(text)} AS {x}" for sql, x in zip(times, keys, strict=True))
    tied = " AND ".join(f"{key} IS NOT DISTINCT FROM lag({key}) OVER inorder" for key in keys)
    alive = " AND w <> 0" if weighted else ""
    everything = " UNION ALL ".join(
        f"SELECT y, {text} AS t, {read_as}{weight} FROM ({part.sql}) WHERE {USABLE}{alive}"
        for part in items.parts
    )
    read_rows(
        connection,
        f"CREATE TABLE disk.previous AS SELECT y AS gold, lag(y) OVER inorder AS predicted"
        f"{', weight' if weighted else ''}, CASE WHEN {tied} THEN t END AS tie FROM ({everything}) "
        f"WINDOW inorder AS (ORDER BY {', '.join(keys)})",
        name,
    )
    ((tie,),) = read_rows(connection, "SELECT min(tie) FROM disk.previous", name)
    if tie is not None:
        cells.refuse_tied_times(times, tie)
    query = "SELECT * FROM disk.previous WHERE predicted IS NOT NULL"
    rows = FileItems(connection, [ItemQuery(query, name, ())])
    titles = {x: x for x in (GOLD, PREDICTED, *[WEIGHT] * weighted)}
    reading = _RegressionReader(rows, titles, SIDES, histogram=histogram)
    if not reading.sums.n:
        return None
    reading.sums.find_means()
    return reading.sums.compute_sums({}).summarize().moments
