"""Regression models, compared on the same items as systems of any other task are."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, BadValues, shorten, word_advice
from ordinate.inference.distributions import FEW_CLUSTERS
from ordinate.inference.estimates import Estimate
from ordinate.inference.regression import (
    count_items,
    estimate_from_items,
    estimate_regression_metrics,
    is_resampled,
)
from ordinate.inference.regression_differences import (
    compute_influence,
    compute_law,
    explain_untested,
    simulate_values,
    sum_influence,
)
from ordinate.inference.resampling import ProgressCallback
from ordinate.inference.system_differences import DifferenceLaw
from ordinate.metrics import Metric
from ordinate.readers.column_names import check_column
from ordinate.readers.columns import Files
from ordinate.readers.databases import Query
from ordinate.readers.duckdb_connection import quote_identifier
from ordinate.readers.item_columns import read_columns
from ordinate.readers.tables import LazyTable, refuse_unnamed_columns
from ordinate.render import Document
from ordinate.render.estimates import describe_clusters, format_count
from ordinate.render.tables import Column, Table, to_plain
from ordinate.results.arguments import (
    SYSTEM,
    MetricSelection,
    check_system_count,
    find_files,
    name_columns,
    name_file_columns,
)
from ordinate.results.base import Origin, Record
from ordinate.results.comparison_report import ComparisonReport
from ordinate.results.comparison_settings import ComparisonSettings, resolve_settings
from ordinate.results.given_columns import GivenColumns, refuse_strange_table, take_columns
from ordinate.results.joint_comparison import FEW_INFLUENCES, INFLUENCES, JointComparison
from ordinate.results.leaderboard import (
    Leaderboard,
    LeaderboardBuilder,
    select_compared_metrics,
)
from ordinate.results.regression import METHOD_NAMES, get_metric_unit
from ordinate.results.regression_sources import RegressionItems, require_groups
from ordinate.results.regression_tails import (
    ErrorTails,
    compute_tails,
    describe_assumptions,
    describe_undefined_tails,
    make_model_tails_grid,
)
from ordinate.results.report_parts import describe_interval_methods
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries.prediction_intervals import require_valid
from ordinate.summaries.regression import Moments
from ordinate.summaries.tabulation import (
    MissingPolicy,
    check_same_length,
    convert_to_numbers,
    convert_weights,
)

Array = NDArray[Any]
Floats = NDArray[np.float64]
DEFAULT_METRICS = ("rmse", "mae", "r2")


@dataclass(frozen=True, repr=False, eq=False)
class RegressionComparison(ComparisonReport):
    """Regression models on the same items: a leaderboard for each metric, and their large errors.

    Where 0 is best, systems differ by their distances from 0.
    """

    task: ClassVar[str] = "compare_regression"
    leaderboards: dict[str, Leaderboard]
    settings: ComparisonSettings
    tails: dict[str, ErrorTails]  # by system
    items: int
    weight: float
    unit: str | None = None
    groups: int | None = None
    dropped: int = 0
    origin: Origin = field(default_factory=Origin)

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems in the order in which they were given."""
        return tuple(self.tails)

    @property
    def n(self) -> float:
        """The number of items."""
        return self.items

    @property
    def _swapped_unit(self) -> str:
        """What stands for itself."""
        return "item" if self.groups is None else "cluster"

    def _describe_items(self) -> Record:
        """Return what JSON says of the items."""
        return {
            "n": self.items,
            "weight": self.weight,
            "unit": self.unit,
            "systems": list(self.systems),
            "groups": self.groups,
            "dropped": self.dropped,
        }

    def _describe_further(self) -> Record:
        """Return the large errors."""
        assumption = " ".join(self.describe_tail_assumptions()) or None
        return {"tails": to_plain(self.tails), "tails_assumption": assumption}

    def _list_further_tables(self) -> Iterable[Table]:
        """Yield the figures of large errors."""
        records = [
            {"system": system} | row
            for system, found in self.tails.items()
            for row in found.list_figures(self.unit)
        ]
        columns = [Column(key) for key in ("system", "metric", "value", "unit", "note")]
        yield Table("tails", "Large errors", columns, records)

    def describe_tail_assumptions(self) -> list[str]:
        """Say what the intervals of squared errors assume."""
        metrics = [board.metric for board in self.leaderboards.values()]
        first = {
            name: board.get_standing(self.systems[0]).estimate
            for name, board in self.leaderboards.items()
        }
        return describe_assumptions(metrics, first, self.tails, clusters=self.groups is not None)

    def document(self) -> Document:
        """Return the report for people."""
        unit = f", target in {self.unit}" if self.unit else ""
        few = f"Fewer than {FEW_CLUSTERS} items leave the intervals unsure."
        left_out = f" Dropped for a missing value in any column: {self.dropped:,} items."
        return self._make_document(
            f"{len(self.systems)} systems, {format_count(self.items)}{unit}",
            further=(make_model_tails_grid(self.tails),),
            notes=(
                *describe_undefined_tails(self.tails),
                *describe_interval_methods(self._collect_estimates(), METHOD_NAMES),
                *self.describe_tail_assumptions(),
                *self._list_board_notes(),
                *([few] if self.groups is None and self.items < FEW_CLUSTERS else []),
                *([] if self.groups is None else [describe_clusters(self.groups)]),
                f"{self.origin.name_files()}Target: {self.origin.gold}."
                + (left_out if self.dropped else ""),
                *self.origin.notes,
            ),
        )


def compare_models(
    models: "ModelItems",
    metrics: MetricSelection = None,
    settings: ComparisonSettings | None = None,
    unit: str | None = None,
    origin: Origin | None = None,
) -> RegressionComparison:
    """Compare regression models whose predictions are at hand."""
    settings = resolve_settings(list(models.predictions), settings or ComparisonSettings())
    selected = select_compared_metrics(
        DEFAULT_METRICS if metrics is None else metrics, settings, Moments
    )
    return RegressionComparison(
        leaderboards=RegressionLeaderboardBuilder(models, selected, settings, unit).all(),
        settings=settings,
        tails={name: compute_tails(table) for name, table in models.tables.items()},
        items=int(models.present.sum()),
        weight=models.total,
        unit=unit,
        groups=None if models.groups is None else models.units,
        dropped=models.dropped,
        origin=origin or Origin("target"),
    )


# --- the items -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelItems:
    """Targets, and what each model predicts for them."""

    y: Floats
    predictions: dict[str, Floats]
    weights: Floats | None = None
    groups: Groups | None = None
    dropped: int = 0

    @classmethod
    def collect(
        cls, given: GivenColumns, names: Sequence[str], missing: MissingPolicy
    ) -> "ModelItems":
        """Return the items of columns at hand, without those that lack a value."""
        if given.table is not None:
            refuse_unnamed_columns(given.names, "target")
        if missing == "worst":
            advice = word_advice("use {missing}", missing="drop")
            raise BadOption(f"A regression has no worst prediction: {advice}.")
        titles = {name: f"predictions of {shorten(name)}" for name in names}
        columns = {titles[name]: given[f"{SYSTEM} {name}"] for name in names}
        y = convert_to_numbers(given["target"], "targets")
        numbers = {title: convert_to_numbers(x, title) for title, x in columns.items()}
        for title, p in numbers.items():
            check_same_length(len(y), len(p), "targets", title)
        weights = convert_weights(given["weights"], len(y))
        groups = None if given["groups"] is None else factorize_column(given["groups"])
        if groups is not None:
            check_same_length(len(y), len(groups.codes), "targets", "groups")
        items = RegressionItems(y, y, None, weights, groups)
        items = items.leave_out_missing({"targets": given["target"], **columns}, missing)
        predictions = {name: numbers[titles[name]] for name in names}
        if items.absent is None:
            return cls(y, predictions, weights, groups)
        kept, places = items.rows, np.arange(len(y))
        for name, p in predictions.items():
            fine = np.isfinite(p) | ~np.isin(places, kept)
            of_row = "The prediction of row {row} is {value}, not a finite number."
            require_valid(fine, places, p, f"Model {shorten(name)}: {of_row}")
        complete = items.select_complete()
        return cls(
            complete.y,
            {name: p[kept] for name, p in predictions.items()},
            complete.weights,
            complete.groups,
            complete.dropped,
        )

    @cached_property
    def present(self) -> Array:
        """Which rows are items: one of weight 0 is none."""
        return np.ones(len(self.y), bool) if self.weights is None else self.weights > 0

    @cached_property
    def tables(self) -> dict[str, Moments]:
        """The summary of each model."""
        return {name: self.summarise(name) for name in self.predictions}

    def summarise(self, name: str, groups: Groups | None = None) -> Moments:
        """Return the summary of a model, of each group if there are some."""
        # Groups need no histogram of their own, nor moments for the errors of items.
        options: dict[str, Any] = {"histogram": True} if groups is None else {"order": 2}
        try:
            return Moments.of(
                self.y, self.predictions[name], self.weights, groups=groups, **options
            )
        except BadValues as reason:
            raise BadValues(f"Model {shorten(name)}: {reason}") from None

    @property
    def total(self) -> float:
        """The weight of all items."""
        return float(next(iter(self.tables.values())).total)

    @property
    def is_counted(self) -> bool:
        """Whether weights are counts of items."""
        return bool(next(iter(self.tables.values())).has_integer_weights)

    @cached_property
    def units(self) -> int:
        """The number of items, or of clusters: of what stands for itself."""
        if self.groups is not None:
            return len(np.unique(self.groups.codes[self.present]))
        return int(count_items(next(iter(self.tables.values()))))

    def sum_influence(self, metric: Metric, name: str) -> Floats:
        """Return what each unit adds to a metric: squares add up to that of its standard error."""
        rows = self.present
        influence = compute_influence(
            metric, self.tables[name], self.y[rows], self.predictions[name][rows]
        )
        weights = None if self.weights is None else self.weights[rows]
        codes = None if self.groups is None else self.groups.codes[rows]
        sums = sum_influence(influence, weights, codes, counted=self.is_counted)
        return math.sqrt(self.units / (self.units - 1)) / self.total * sums


def collect_models(
    data: Any, systems: Any, columns: Mapping[str, Any], missing: MissingPolicy
) -> tuple[ModelItems, Origin]:
    """Return targets and predictions, wherever they are, and where they came from."""
    files = find_files(data, systems, *columns.values())
    if files is None:
        refuse_strange_table(data, columns["target"])
        names = name_columns(systems, data=data)
    else:
        named = name_file_columns(systems or ())
        names = dict(zip(named, named, strict=True))
    check_system_count(len(names))
    origin = Origin("target")
    if files is not None:
        data, read = _read_files(files, names, columns)
        origin = Origin(files=read)
    elif isinstance(data, Query) and all(isinstance(x, str) for x in names.values()):
        data = _read_query(data, [*columns.values(), *names.values()])
    predictions = {f"{SYSTEM} {name}": column for name, column in names.items()}
    given = take_columns(data, "target", **columns, **predictions)
    if isinstance(given.table, LazyTable):
        raise BadOption(
            f"Models are compared item by item, and {given.table.name} is not in memory: collect "
            "its rows into a frame first."
        )
    models = ModelItems.collect(given, list(names), missing)
    return models, replace(origin, gold=given.names.get("target", "target"))


def _read_files(
    files: Files, systems: Iterable[str], columns: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the columns of files, and the names of these."""
    if files.id is not None or files.gold_file is not None or files.row_order:
        raise BadOption("Regression models are columns of one file: their rows are not joined.")
    options = files.name_columns(columns)
    groups = options.groups
    values = [name for name in (options.target, *systems) if name is not None]
    found = read_columns(
        files.names,
        [*values, *([options.weights] if options.weights else [])],
        options,
        labels=[groups] if groups else [],
        values=values,
        watch=files.watch,
    )
    cells = {
        name: column if isinstance(column, list) else np.ma.masked_where(np.isnan(column), column)
        for name, column in found.columns.items()
    }
    return cells | found.labels, found.files


def _read_query(query: Query, names: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the columns of a query."""
    known = dict.fromkeys(query.columns)
    wanted = [name for name in dict.fromkeys(names) if isinstance(name, str)]
    for name in wanted:
        check_column(query.name, name, known)
    selected = ", ".join(map(quote_identifier, wanted))
    rows = query.read(f"SELECT {selected} FROM {query.source}").rows  # noqa: S608 - names are quoted
    return {name: [row[k] for row in rows] for k, name in enumerate(wanted)}


# --- leaderboards --------------------------------------------------------------------------------


class RegressionLeaderboardBuilder(LeaderboardBuilder):
    """Leaderboards of regression models: differences by influences, hung together by resamples."""

    def __init__(
        self,
        models: ModelItems,
        metrics: Sequence[Metric],
        settings: ComparisonSettings,
        unit: str | None,
    ) -> None:
        self.models, self.target_unit = models, unit
        if models.groups is not None:
            require_groups(models.groups, np.flatnonzero(models.present))
            self.unit = "clusters"
        super().__init__(list(models.predictions), metrics, settings)

    def _measure_systems(self, progress: ProgressCallback | None) -> None:
        del progress
        self.estimates = [self._estimate_all(name) for name in self.systems]

    def _estimate_all(self, name: str) -> dict[str, Estimate]:
        """Return the values of a model, as in an evaluation of it alone."""
        models, intervals, count = self.models, self.settings.intervals, len(self.systems)
        whole = models.tables[name]
        if models.groups is None and is_resampled(intervals, count * models.units, count):
            columns = models.y, models.predictions[name], intervals, models.weights
            return estimate_from_items(self.metrics, whole, *columns)
        source = whole if models.groups is None else models.summarise(name, models.groups)
        return estimate_regression_metrics(self.metrics, source, intervals, whole)

    def _find_ranked(self, metric: Metric) -> Array:
        return np.flatnonzero(~np.isnan(self._list_values(metric)))

    def _compare_jointly(self, metric: Metric) -> JointComparison | None:
        ranked = self._find_ranked(metric)
        if not len(ranked):
            return None
        names = [self.systems[k] for k in ranked]
        values = np.asarray(metric.size(self._list_values(metric)[ranked]))
        # of the size of the least value, so that what is lost in rounding depends on no unit
        scale = 2.0 ** np.floor(np.log2(np.min(np.abs(values), where=values != 0, initial=np.inf)))
        scale = float(scale) if math.isfinite(scale) else 1.0
        reason = explain_untested(metric, [self.models.tables[name] for name in names])
        if reason is None and self.models.units < 2:
            reason = f"there is one {self.unit[:-1]} only"
        values, resampled = values / scale, values[None] / scale
        law = DifferenceLaw(np.full((len(names),) * 2, np.nan), math.inf)
        if reason is None:
            parts = np.stack([self.models.sum_influence(metric, name) for name in names]) / scale
            law = compute_law(values, parts, self._freedom)
            resampled = simulate_values(values, parts, self._freedom, self.resamples)
        return JointComparison(
            metric,
            names,
            ranked,
            values,
            resampled,
            self.settings,
            unit=self.unit,
            resampling=self._choose_resampling(metric),
            law=law,
            scale=scale,
            reason=reason,
        )

    @property
    def _freedom(self) -> float:
        return math.inf if self._is_normal else self.models.units - 1.0

    @property
    def _is_normal(self) -> bool:
        return self.models.groups is None and self.models.units >= FEW_CLUSTERS

    def _choose_resampling(self, metric: Metric) -> str:
        del metric
        return INFLUENCES if self._is_normal else FEW_INFLUENCES

    def _decide(self, compared: Sequence[JointComparison]) -> None:
        for joint in compared:
            joint.decide({})

    def _describe_values(self, metric: Metric) -> dict[str, Any]:
        return {"unit": get_metric_unit(metric, self.target_unit), "is_quantity": True}
