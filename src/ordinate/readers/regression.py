"""Regression targets and predictions, summed up where they are: in files, frames and databases."""

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ordinate.errors import BadOption, NoItems
from ordinate.readers.batches import SELECTED, Batches, Summarizer, store_batches
from ordinate.readers.cells import number_groups
from ordinate.readers.column_names import USUAL_NUMBER_NAMES
from ordinate.readers.columns import ROLES, ItemColumns
from ordinate.readers.duckdb_connection import read_rows
from ordinate.readers.expressions import COUNT, Aggregate, column
from ordinate.readers.file_formats import FileReader, FileSource, Watch, open_sources
from ordinate.readers.item_query import QueryPlanner
from ordinate.readers.items import (
    CLUSTER,
    GOLD,
    MATCH_COUNTS,
    NTH,
    PREDICTED,
    SUBGROUP,
    WEIGHT,
    ItemSource,
    has_weight,
)
from ordinate.readers.numeric_cells import (
    GUESS,
    HIGH,
    LOW,
    MOMENT,
    TARGET,
    TIME_TEXT_SQL,
    TIMES,
    USABLE,
    MissingPolicy,
    NumericCells,
)
from ordinate.readers.tables import LazyTable, refuse_unnamed_columns
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import TARGET_MEAN, TRAIN_MEAN, Moments
from ordinate.summaries.regression_sums import ONE_KEY, RegressionKeys, RegressionSums

MEDIAN = "median"  # a constant prediction
SIDES = {TARGET: GOLD, GUESS: PREDICTED}
SIDE_TITLES = {"target": "targets", "predicted": "predictions"}
BOUNDS = {LOW: "lower", HIGH: "upper"}
MEDIAN_NOTE = (
    "The median of the targets is approximate: half a per cent of its distance from their mean at "
    "most."
)
FILE_SIDES = {TARGET: "target", GUESS: "guess"}  # numbers as a file has them, not as strings


@dataclass(frozen=True)
class RegressionData:
    """The summaries of items, and what a report says of where they came from.

    With groups, `groups` is a batch with a summary for each, and so are `bounds`. `by` has the
    summary of each subgroup, beside such a batch, and `bounds_by` its bounds. `previous` has the
    targets against the previous one in the declared order, so that the first item is not in it.
    """

    moments: Moments
    by: list[tuple[Any, tuple[Moments, Moments | None]]]
    target: str = "target"
    predicted: str = "predicted"
    files: tuple[str, ...] = ()
    match_counts: dict[str, int] | None = None
    notes: tuple[str, ...] = ()
    groups: Moments | None = None
    previous: Moments | None = None
    bounds: PredictionIntervals | None = None
    bounds_by: list[tuple[Any, Any]] = field(default_factory=list)


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
        reading = _RegressionReader(items, titles, sides | BOUNDS)
        data = reading.read(checked, missing, histogram=histogram)
        previous = None
        if columns.order is not None:
            previous = _summarize_persistence(reading, histogram=histogram)
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
    return reading.read(_check_constants(constants), missing, histogram=True)


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
                columns={
                    **x.columns,
                    **{y: x.number_columns[y] for y in sides & {*x.number_columns}},
                },
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
    """One run over items: their engine counts them, then batches of them are summed up."""

    def __init__(
        self, items: ItemSource, titles: Mapping[str, str], numbers: Mapping[str, str]
    ) -> None:
        self.cells = NumericCells(items, titles, numbers)
        self.items = self.cells.add_numbers()
        self.weighted = WEIGHT in titles
        roles = [role for role in (SUBGROUP, CLUSTER) if role in titles]
        sums = {"items": COUNT, **self.cells.list_counts()}
        if CLUSTER in roles and items.ordered:
            sums[NTH] = Aggregate("min", column(NTH))
        there = has_weight(keyed=items.keyed) if self.weighted else None
        self.where = column(USABLE) if there is None else column(USABLE) & there
        table = self.items.sum_by([*roles, USABLE], sums, there)
        self.counts = {name: int(table[name].sum()) for name in self.cells.list_counts()}
        known = {name: cells[table["given"] > 0] for name, cells in table.items()}
        usable = known[USABLE].astype(bool)
        self.n = int(known["items"][usable].sum())
        subgroups = number_groups(known, SUBGROUP)
        clusters = number_groups({name: cells[usable] for name, cells in known.items()}, CLUSTER)
        self.keys = {SUBGROUP: subgroups, CLUSTER: clusters}
        self.roles = roles
        lacking = np.where(usable, 0, known["given"])
        self.dropped = np.bincount(subgroups.codes, lacking, len(subgroups.values)).astype(int)
        present = subgroups._replace(codes=subgroups.codes[usable])
        self.pairs = RegressionKeys.of(present, clusters, grouped=CLUSTER in roles)

    def read(
        self, constants: Mapping[str, float | None], missing: MissingPolicy, *, histogram: bool
    ) -> RegressionData:
        """Sum up, and refuse what is no number."""
        counts, roles = self.counts, self.roles
        self.cells.check_counts(counts, self.n, missing)
        numbers = [*self.cells.columns, *[TIMES] * self.weighted]
        keys = {role: self.keys[role] for role in roles}
        batches = self.items.open_batches(numbers, keys, self.where)
        how = {"weighted": self.weighted, "histogram": histogram, "by": SUBGROUP in roles}
        found = sum_batches(batches, self.pairs, self.dropped, constants, **how)
        return replace(
            found,
            target=self.cells.titles[GOLD],
            predicted=self.cells.titles[PREDICTED],
            match_counts={x: counts[x] for x in MATCH_COUNTS} if self.items.keyed else None,
        )


def sum_batches(
    batches: Batches,
    keys: RegressionKeys,
    dropped: Any,
    constants: Mapping[str, float | None],
    *,
    weighted: bool,
    histogram: bool = True,
    by: bool = False,
) -> RegressionData:
    """Sum up batches of numbers and codes; items were `dropped` of each subgroup.

    A pass finds the mean, which says how far from each constant the targets are; and one the
    median, if it is asked for.
    """

    def sum_up(make: Callable[[Any], RegressionSums], *names: str) -> RegressionSums:
        found = batches.sum_up(Summarizer(RegressionSums, make, names))
        if found is None:
            raise NoItems("There are no items to evaluate: the source gave none the second time.")
        return found

    known, notes = {}, []
    if None in constants.values():
        of_targets = (TARGET, TIMES) if weighted else (TARGET,)
        mean = sum_up(RegressionSums.of_targets, *of_targets).mean
        known[TARGET_MEAN] = mean
        if MEDIAN in constants and constants[MEDIAN] is None:
            gaps = sum_up(partial(RegressionSums.of_gaps, mean=mean), *of_targets)
            known[MEDIAN] = gaps.compute_median(mean)
            notes.append(MEDIAN_NOTE)
    values = {name: known[name] if x is None else float(x) for name, x in constants.items()}
    sums = sum_up(partial(RegressionSums.of, keys=keys, constants=values, sizes=histogram))
    sums.check_range()
    whole = sums.summarize(keys, dropped)
    parts = {x: sums.summarize(keys, dropped, k) for k, x in enumerate(keys.subgroups) if by}
    return RegressionData(
        whole.moments,
        [(name, (part.moments, part.groups)) for name, part in parts.items()],
        groups=whole.groups,
        bounds=whole.bounds,
        bounds_by=[(name, part.bounds) for name, part in parts.items() if whole.bounds is not None],
        notes=tuple(notes),
    )


# --- the previous target, as a model that knows nothing else would predict it ---------------------


def _summarize_persistence(reading: _RegressionReader, *, histogram: bool) -> Moments | None:
    """Return targets against the previous one, None where there is one item only."""
    items: Any = reading.items
    cells, connection, name = reading.cells, items.connection, items.name
    times = cells.build_time_sql(reading.counts)
    weight, alive = (f", {TIMES}", f" AND {TIMES} <> 0") if reading.weighted else ("", "")
    keys = [f"t{k}" for k in range(len(times))]
    text = f"nullif({TIME_TEXT_SQL}, '')"
    read_as = ", ".join(f"{sql.format(text)} AS {x}" for sql, x in zip(times, keys, strict=True))
    tied = " AND ".join(f"{key} IS NOT DISTINCT FROM lag({key}) OVER inorder" for key in keys)
    everything = " UNION ALL ".join(
        f"SELECT y, {text} AS t, {read_as}{weight} FROM ({part.sql}) WHERE {USABLE}{alive}"
        for part in items.parts
    )
    inorder = f"(ORDER BY {', '.join(keys)})"
    read_rows(
        connection,
        f"CREATE TEMP TABLE previous AS SELECT y, lag(y) OVER inorder AS p{weight}, "
        f"CASE WHEN {tied} THEN t END AS tie FROM ({everything}) WINDOW inorder AS {inorder} "
        f"ORDER BY {', '.join(keys)}",
        name,
    )
    ((tie,),) = read_rows(connection, "SELECT min(tie) FROM previous", name)
    if tie is not None:
        cells.refuse_tied_times(times, tie)
    numbers = ["y", "p", *[TIMES] * reading.weighted]
    query = f"SELECT {SELECTED} FROM previous WHERE p IS NOT NULL"
    batches = store_batches(connection, name, [query], numbers, {})
    if not any(batches.tables.values()):
        return None
    how = {"weighted": reading.weighted, "histogram": histogram}
    return sum_batches(batches, ONE_KEY, np.zeros(1, int), {}, **how).moments
