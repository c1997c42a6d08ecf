"""Files of regression targets and predictions, with units, summed up inside DuckDB."""

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ordinate.errors import BadOption
from ordinate.readers.column_names import find_column
from ordinate.readers.columns import LabelColumns, RegressionColumns
from ordinate.readers.duckdb_connection import Connection, Watch, connect, quote_literal, read_rows
from ordinate.readers.file_formats import FileSource, open_sources
from ordinate.readers.item_query import (
    FILE_ROW_OFFSET,
    WEIGHT_SQL,
    FileItems,
    ItemQuery,
    QueryPlanner,
)
from ordinate.readers.numeric_cells import MissingPolicy, NumericCells, NumericColumns
from ordinate.readers.regression_pooling import MomentsPool
from ordinate.readers.regression_sums import FirstPassTotals, RowQuery, TwoPassSums
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import TARGET_MEAN, TRAIN_MEAN, Moments

MEDIAN = "median"  # a constant prediction
USUAL_COLUMN_NAMES = {
    "target": ("target", "targets", "y", "y_true", "true", "truth", "actual", "observed", "gold"),
    "predicted": ("predicted", "prediction", "predictions", "y_pred", "pred", "y_hat", "yhat"),
}


@dataclass(frozen=True)
class RegressionData:
    """The summaries of files, and what a report says of where they came from.

    With groups, `groups` has a summary for each that has items, and `by` for each subgroup a batch
    of what those groups have in it. `bounds` are likewise. `previous` has the targets against the
    previous one in the declared order, so that the first item is not in it.
    """

    moments: Moments
    by: list[tuple[str | None, Moments]]
    target: str
    predicted: str
    files: tuple[str, ...]
    match_counts: dict[str, int] | None
    notes: tuple[str, ...]
    groups: Moments | None = None
    previous: Moments | None = None
    bounds: PredictionIntervals | None = None
    intervals_by_subgroup: list[tuple[str | None, PredictionIntervals]] = field(
        default_factory=list
    )
    intervals_by_group: PredictionIntervals | None = None


def sum_files(
    paths: list[str],
    columns: RegressionColumns,
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
    if (columns.lower is None) != (columns.upper is None):
        raise BadOption("Prediction intervals have a lower and an upper bound: name both columns.")
    with (
        connect() as connection,
        open_sources(connection, columns) as reader,
        watch(connection),
    ):
        gold_files = reader.describe_files([columns.gold_file]) if columns.gold_file else []
        planned = _plan_queries(connection, gold_files, reader.describe_files(paths), columns)
        connection.execute("SET TimeZone='UTC'")  # times without a zone are all of the same one
        reading = _RegressionReader(connection, planned, columns, reader.folder)
        return reading.compute_sums(checked, missing, histogram=histogram)


def _check_constants(given: Mapping[str, float | None]) -> dict[str, float | None]:
    for name, value in given.items():
        if value is None and name not in {TARGET_MEAN, MEDIAN}:
            raise BadOption(f"The constant prediction {name!r} needs a value.")
        if value is not None and not math.isfinite(value):
            raise BadOption(f"The constant prediction {name!r} is {value}, not a finite number.")
    return dict(given) if TRAIN_MEAN in given else {TARGET_MEAN: None, **given}


# --- columns -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _NumericLabelColumns(LabelColumns):
    """Columns of numbers besides those of labels."""

    numbers: dict[str, str] = field(default_factory=dict)  # by the names that they get

    @property
    def extras(self) -> dict[str, str]:
        """The further columns that are read, by the names that they get."""
        return super().extras | self.numbers


def _plan_queries(
    connection: Connection,
    gold_files: list[FileSource],
    files: list[FileSource],
    columns: RegressionColumns,
) -> QueryPlanner:
    """Return the plan of what to read: targets take the place of gold labels."""
    notes: list[str] = []
    find = partial(find_column, notes=notes, usual_names=USUAL_COLUMN_NAMES)
    target = find("target", columns.target, (gold_files or files)[0], content="targets")
    predicted = find("predicted", columns.predicted, files[0], content="predictions")
    numbers = {"low": columns.lower, "high": columns.upper, "moment": columns.order}
    if not gold_files:  # numbers as the file has them, not as strings
        numbers |= {"target": target, "guess": predicted}
    label_columns = _NumericLabelColumns(
        target,
        predicted,
        columns.weights,
        columns.by,
        columns.groups,
        gold_file=columns.gold_file,
        id=columns.id,
        row_order=columns.row_order,
        numbers={name: column for name, column in numbers.items() if column is not None},
    )
    # NaN is no missing number here.
    gold, guesses = (
        [_treat_nan_as_number(x, {target, predicted}) for x in y] for y in (gold_files, files)
    )
    planner = QueryPlanner(connection, gold, guesses, label_columns)
    planner.notes += notes
    return planner


def _treat_nan_as_number(source: FileSource, columns: set[str]) -> FileSource:
    return replace(source, numbers=source.numbers - columns)


# --- one run -------------------------------------------------------------------------------------


class _RegressionReader:
    """One run over the files."""

    def __init__(
        self,
        connection: Connection,
        planner: QueryPlanner,
        columns: RegressionColumns,
        folder: Path,
    ) -> None:
        self.connection, self.planner, self.columns = connection, planner, columns
        self.folder = folder  # for temporary copies
        self.items = planner.build_queries()
        separate = bool(planner.gold_files)
        called = {"y": "gold", "p": "predicted"} if separate else {"y": "target", "p": "guess"}
        titles = {"y": planner.gold, "p": planner.predicted}
        if columns.lower is not None and columns.upper is not None:
            called |= {"low": "low", "high": "high"}
            titles |= {"low": columns.lower, "high": columns.upper}
        self.numbers = NumericColumns(
            called,
            titles,
            columns.groups,
            weighted=columns.weights is not None,
            keyed=self.items[0].keyed,
            order=columns.order,
        )
        self.cells = NumericCells(FileItems(connection, self.items), columns.weights, self.numbers)
        self.rows = [self._build_row_query(part, index) for index, part in enumerate(self.items)]

    def _build_row_query(self, part: ItemQuery, index: int) -> RowQuery:
        """Return SQL for items as numbers."""
        columns, numbers = self.columns, self.numbers
        selected = [
            f"CAST({'subgroup' if columns.by else 'NULL'} AS VARCHAR) AS subgroup",
            f"CAST({'cluster' if columns.groups else 'NULL'} AS VARCHAR) AS cluster",
            f"{f'nth + {index * FILE_ROW_OFFSET}' if columns.groups else 0} AS nth",
            *(
                f"TRY_CAST({called} AS DOUBLE) AS {role}"
                for role, called in numbers.aliases.items()
            ),
            *([f"{WEIGHT_SQL} AS w"] if numbers.weighted else []),
            *(["nullif(CAST(moment AS VARCHAR), '') AS t"] if columns.order else []),
            "in_gold",
            "in_predicted",
        ]
        inner = f"SELECT {', '.join(selected)} FROM ({part.sql})"
        # Weights that are wrong stay, to be counted; weight 0 is no item.
        alive = " WHERE w IS NULL OR NOT isfinite(w) OR w <> 0 OR NOT in_gold" * numbers.weighted
        return RowQuery(f"SELECT *, {numbers.usable} AS ok FROM ({inner}){alive}", part.name)

    def compute_sums(
        self, constants: dict[str, float | None], missing: MissingPolicy, *, histogram: bool
    ) -> RegressionData:
        """Sum up, and refuse what is no number."""
        summing = TwoPassSums(
            self.connection,
            self.rows,
            weighted=self.numbers.weighted,
            has_intervals="low" in self.numbers.aliases,
            histogram=histogram,
            counting=self.numbers.counting,
        )
        total = summing.compute_totals()
        self.cells.check_counts(total.counts, total.items, total.given, missing)
        pool = summing.compute_sums(self._fill_in_constants(constants, summing, total))
        previous = None
        if self.columns.order is not None:
            times = self.cells.build_time_sql(total.counts)
            previous = summarize_persistence(
                self.connection,
                self.rows,
                self.cells,
                times,
                self.folder / "rows.db",
                histogram=histogram,
            )
        return self._build_data(pool, total, previous)

    def _fill_in_constants(
        self, constants: dict[str, float | None], summing: TwoPassSums, total: FirstPassTotals
    ) -> dict[str, float]:
        """Return constant predictions with those that come from the targets."""
        found = {TARGET_MEAN: total.mean}
        if MEDIAN in constants and constants[MEDIAN] is None:
            found[MEDIAN] = summing.compute_median(total.mean)
            self.planner.notes.append(
                "The median of the targets is approximate: half a per cent of its distance from "
                "their mean at most."
            )
        return {name: found[name] if x is None else float(x) for name, x in constants.items()}

    def _build_data(
        self, pool: MomentsPool, total: FirstPassTotals, previous: Moments | None
    ) -> RegressionData:
        columns, planner, grouped = self.columns, self.planner, self.columns.groups is not None
        names = list(enumerate(pool.names)) if columns.by else []
        if grouped and pool.histogram is not None and not pool.has_histograms(max(1, len(names))):
            planner.notes.append("There are too many groups for a histogram of errors of each.")
        bounded = pool.bounds is not None
        return RegressionData(
            pool.summarize_all(),
            [(name, pool.summarize_subgroup(k, grouped=grouped)) for k, name in names],
            planner.gold,
            planner.predicted,
            tuple(source.name for source in (*planner.gold_files, *planner.files)),
            {x: total.counts[x] for x in ("matched", "missing", "unknown")}
            if self.numbers.keyed
            else None,
            tuple(planner.notes),
            pool.summarize_groups() if grouped else None,
            previous,
            pool.summarize_intervals() if bounded else None,
            [(name, pool.summarize_intervals(k, grouped=grouped)) for k, name in names if bounded],
            pool.summarize_intervals(grouped=True) if bounded and grouped else None,
        )


# --- the previous target, as a model that knows nothing else would predict it ---------------------


def summarize_persistence(
    connection: Connection,
    rows: list[RowQuery],
    cells: NumericCells,
    times: tuple[str, ...],
    disk: Path,
    *,
    histogram: bool,
) -> Moments | None:
    """Return targets against the previous one, None where there is one item only.

    `times` is SQL for what sorts items, `disk` a file to keep them in that order.
    """
    weighted, name = cells.numbers.weighted, rows[0].name
    read_rows(connection, f"ATTACH {quote_literal(str(disk))} AS disk", name)
    weight = ", w" if weighted else ""
    keys = [f"t{k}" for k in range(len(times))]
    read_as = ", ".join(f"{sql.format('t')} AS {key}" for sql, key in zip(times, keys, strict=True))
    tied = " AND ".join(f"{key} IS NOT DISTINCT FROM lag({key}) OVER inorder" for key in keys)
    everything = " UNION ALL ".join(
        f"SELECT y, t, {read_as}{weight} FROM ({part.sql}) WHERE ok" for part in rows
    )
    read_rows(
        connection,
        f"CREATE TABLE disk.previous AS SELECT y, lag(y) OVER inorder AS p{weight}, "
        f"CASE WHEN {tied} THEN t END AS tie FROM ({everything}) "
        f"WINDOW inorder AS (ORDER BY {', '.join(keys)})",
        name,
    )
    ((tie,),) = read_rows(connection, "SELECT min(tie) FROM disk.previous", name)
    if tie is not None:
        cells.refuse_tied_times(times, tie)
    items = (
        "SELECT *, NULL AS subgroup, NULL AS cluster, 0 AS nth, true AS ok, true AS in_gold "
        "FROM disk.previous WHERE p IS NOT NULL"
    )
    summing = TwoPassSums(
        connection, [RowQuery(items, name)], weighted=weighted, histogram=histogram
    )
    return summing.compute_sums({}).summarize_all() if summing.compute_totals().items else None
