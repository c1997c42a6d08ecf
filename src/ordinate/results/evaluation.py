"""An evaluation: a confusion matrix with its metrics, its levels and its subgroups."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.resampling import ProgressCallback, Resampling
from ordinate.inference.small_samples import compute_effective_sizes
from ordinate.metrics import Metric
from ordinate.render import Block, Document, Grid
from ordinate.render.document import Cell, format_cell, format_interval
from ordinate.render.estimates import (
    describe_clusters,
    format_count,
    format_headline,
    format_with_interval,
    join_names,
)
from ordinate.render.tables import JOINED, NAME, TEXT, Column, Estimates, Kind, Table, to_plain
from ordinate.results.arguments import (
    IntervalOption,
    MetricSelection,
    resolve_intervals,
    select_metrics,
)
from ordinate.results.base import (
    BETTER_VALUES,
    SCHEMA,
    Origin,
    Record,
    Result,
    align_columns,
    name_subgroups,
    record_call,
    to_json_label,
)
from ordinate.results.metric_scores import (
    LEVEL_METRICS,
    Baselines,
    Score,
    compare_with_baseline,
    compare_with_baselines,
    compute_level_records,
    estimate_each,
    estimate_each_without_baselines,
    format_score,
    score_each,
    to_integer_if_whole,
)
from ordinate.results.report_parts import (
    describe_interval_methods,
    lay_out_subgroups,
    list_subgroup_blocks,
)
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.confusion import ConfusionData

if TYPE_CHECKING:
    from ordinate.inference.subgroup_differences import SubgroupDifference, SubgroupTest
    from ordinate.render.charts import Chart
    from ordinate.results.calibration import Calibration
    from ordinate.results.case_averages import CaseAverages, Cases
    from ordinate.results.error_attribution import ErrorCost

MOST_NAMED = 5  # subgroups that differ from the rest
MOST_ERROR_CELLS = 15  # cells in one grid; JSON has all
ROUNDING = 1e-12  # of a p-value
MOST_LEVELS = 20  # of a scale whose levels are shown one by one
FEWEST_PER_LEVEL = 5  # items that a scale of more levels needs
DETAILS_NOTE = (
    "The confusion matrix and the levels, which are many, are in a file (-o) and in JSON."
)


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation(Result):
    """A confusion matrix with its metrics, its levels and its subgroups.

    >>> matrix = ConfusionMatrix.of(["A1", "B1", "B2", "B1"], ["A1", "B2", "B2", "B1"], "cefr")
    >>> result = Evaluation.from_summary(matrix)
    >>> round(result.metrics["accuracy"].value, 2)
    0.75
    """

    confusion_matrix: ConfusionMatrix
    metrics: dict[str, Score]
    per_level: tuple[dict[str, Any], ...]
    by: dict[Hashable, "Evaluation"] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)
    interval: ConfidenceIntervals | None = None
    groups: int | None = None  # how many clusters of items were resampled
    second_rater: dict[str, Estimate] | None = None  # what one reaches on the same items
    error_attribution: "dict[str, tuple[ErrorCost, ...]]" = field(default_factory=dict)
    difference_from_rest: "dict[str, SubgroupDifference]" = field(default_factory=dict)
    probabilities: "Calibration | None" = None  # what predicted probabilities are worth
    case_averages: "CaseAverages | None" = None  # means over cases, which are the clusters then

    @classmethod
    @record_call
    def from_summary(
        cls,
        matrix: ConfusionMatrix,
        metrics: MetricSelection = None,
        *,
        by: Iterable[tuple[Any, ConfusionMatrix]] = (),
        groups: ConfusionMatrix | None = None,
        cases: "Cases | None" = None,
        second_rater: ConfusionMatrix | None = None,
        second_rater_by: Iterable[tuple[Any, ConfusionMatrix]] = (),
        attribution_metrics: MetricSelection = (),
        interval: IntervalOption = 0.95,
        origin: Origin | None = None,
        progress: ProgressCallback | None = None,
    ) -> "Evaluation":
        """Evaluate a confusion matrix that is already counted, and those of its subgroups.

        `groups` is a batch of matrices of items that belong together; subgroups are batches then,
        and so are the matrices of a second rater. `cases` says that the groups are cases, over
        which metrics are averaged as well.
        """
        if matrix.shape:
            raise BadOption(
                "Evaluate one confusion matrix; a batch is evaluated one by one, or pooled."
            )
        selected, intervals = select_metrics(metrics), resolve_intervals(interval)
        parts = {name: part for name, part in by if np.any(part.total > 0)}
        raters = dict(second_rater_by)
        own, of_parts = (None, progress) if parts else (progress, None)
        source = matrix if groups is None else groups
        evaluation = cls._evaluate_batch(
            source.broadcast((1,)),
            selected,
            intervals,
            None if second_rater is None else second_rater.broadcast((1,)),
            cases,
            own,
        )[0]
        scores = evaluation.metrics
        if intervals is not None:
            scores = {
                name: score.decide_against_constant(source, intervals)
                for name, score in scores.items()
            }
        return replace(
            evaluation,
            confusion_matrix=matrix,
            metrics=scores,
            by=cls._evaluate_subgroups(parts, selected, intervals, raters, cases, of_parts),
            origin=origin or Origin(),
            error_attribution=_attribute_errors(attribution_metrics, matrix),
        )

    @classmethod
    def from_data(
        cls, data: ConfusionData, metrics: MetricSelection, **options: Any
    ) -> "Evaluation":
        """Evaluate what was counted, wherever it came from, as `from_summary` does."""
        return cls.from_summary(
            data.matrix,
            metrics,
            by=data.by,
            groups=data.groups,
            second_rater=data.second_rater,
            second_rater_by=data.second_rater_by,
            origin=Origin.of(data),
            **options,
        )

    @classmethod
    def _evaluate_subgroups(
        cls,
        parts: dict[Hashable, ConfusionMatrix],
        metrics: list[Metric],
        intervals: ConfidenceIntervals | None,
        raters: dict[Hashable, ConfusionMatrix],
        cases: "Cases | None",
        progress: ProgressCallback | None,
    ) -> "dict[Hashable, Evaluation]":
        """Evaluate subgroups as one batch, and say how each differs from the others."""
        if not parts:
            return {}
        from ordinate.inference.subgroup_differences import choose_deal_count, randomize_subgroups  # noqa: PLC0415 - start-up

        batch = ConfusionMatrix.stack(list(parts.values()))
        rated = ConfusionMatrix.stack([raters[name] for name in parts]) if raters else None
        half = None if progress is None else lambda share: progress(share / 2.0)
        found = cls._evaluate_batch(batch, metrics, intervals, rated, cases, half)
        if intervals is not None and len(parts) > 1:
            others = estimate_each(metrics, _pool_rests(batch), intervals, None)
            matrices = ConfusionMatrix.stack([part.confusion_matrix for part in found])
            sizes = (compute_effective_sizes(x) for x in (matrices, _pool_rests(matrices)))
            fewest = np.minimum(*sizes).round(6).tolist()  # 20 items of weight 0.1 are 20
            deals = Resampling(choose_deal_count(len(parts)), intervals.seed)
            tests = randomize_subgroups(metrics, batch, deals)
            found = [
                part.subtract(rest, items, {name: each[place] for name, each in tests.items()})
                for place, (part, rest, items) in enumerate(zip(found, others, fewest, strict=True))
            ]
        if progress is not None:
            progress(1.0)
        return dict(zip(parts, found, strict=True))

    @classmethod
    def _evaluate_batch(
        cls,
        sources: ConfusionMatrix,
        metrics: list[Metric],
        intervals: ConfidenceIntervals | None,
        raters: ConfusionMatrix | None,
        cases: "Cases | None",
        progress: ProgressCallback | None,
    ) -> "list[Evaluation]":
        """Evaluate each matrix [T], or the matrix of each batch of clusters [T, G]."""
        clustered = len(sources.shape) > 1
        matrices = sources.map(lambda x: x.sum(axis=1)) if clustered else sources
        estimates = None
        if intervals is not None:
            estimates = estimate_each(metrics, sources, intervals, progress)
        scores = score_each(metrics, matrices, estimates)
        level = None if intervals is None or clustered else intervals.level
        levels = compute_level_records(matrices, level)
        rated = (
            None if raters is None else estimate_each_without_baselines(raters, metrics, intervals)
        )
        clusters = (sources.total > 0).sum(axis=1) if clustered else None
        return [
            cls(
                confusion_matrix=matrices[place],
                metrics=scores[place],
                per_level=levels[place],
                interval=intervals,
                groups=None if clusters is None else int(clusters[place]),
                second_rater=None if rated is None else rated[place],
                case_averages=None
                if cases is None or not clustered
                else _average_over_groups(sources[place], metrics, cases, intervals),
            )
            for place in range(len(scores))
        ]

    def subtract(
        self, rest: dict[str, Estimate], items: float, tests: "dict[str, SubgroupTest]"
    ) -> "Evaluation":
        """Return the same, which knows how it differs from the rest; the smaller has `items`."""
        from ordinate.inference.subgroup_differences import estimate_difference_from_rest  # noqa: PLC0415 - start-up

        apart = {
            name: estimate_difference_from_rest(
                score.metric, score.estimate, rest[name], items, tests[name]
            )
            for name, score in self.metrics.items()
            if score.estimate
        }
        return replace(self, difference_from_rest=apart)

    @record_call
    def add_calibration(
        self, found: "Calibration | None", by: "Mapping[Hashable, Calibration]"
    ) -> "Evaluation":
        """Return the same with what predicted probabilities are worth, of all and by subgroup."""
        parts = {name: replace(part, probabilities=by.get(name)) for name, part in self.by.items()}
        return replace(self, probabilities=found, by=parts)

    def to_dict(self) -> Record:
        """Return plain values, nan as None with its reason: what `--format json` writes."""
        matrix = self.confusion_matrix
        return {
            "schema": SCHEMA,
            "task": "labels",
            "n": matrix.n,
            "weight": to_integer_if_whole(float(matrix.total)),
            "scale": [to_json_label(label) for label in matrix.scale.labels],
            "positions": [to_integer_if_whole(position) for position in matrix.scale.at],
            "confusion_matrix": [
                [to_integer_if_whole(cell) for cell in row] for row in matrix.counts.tolist()
            ],
            "unanswered": [to_integer_if_whole(cell) for cell in matrix.unanswered.tolist()],
            "dropped": int(matrix.dropped),
            "metrics": to_plain(self.metrics),
            "per_level": self.get_table("per_level").to_list(),
            "interval": None if self.interval is None else self.interval.level,
            "groups": self.groups,
            "average_over": None if self.case_averages is None else self.case_averages.describe(),
            "second_rater": to_plain(self.second_rater),
            "error_attribution": to_plain(self.error_attribution),
            "difference_from_rest": to_plain(self.difference_from_rest),
            "by": to_plain(dict(self.list_subgroups())),
            "probabilities": to_plain(self.probabilities),
            "source": self.origin.to_dict(),
        }

    def list_subgroups(self) -> "list[tuple[str, Evaluation]]":
        """Return the subgroups by their names as strings, made distinct where they look alike."""
        return name_subgroups(self.by)

    def _list_parts(self) -> "list[tuple[str, Evaluation]]":
        """Return the whole, which has no name, and the subgroups."""
        return [("", self), *self.list_subgroups()]

    @property
    def _level(self) -> float | None:
        """The level of the confidence intervals, None without any."""
        return None if self.interval is None else self.interval.level

    # --- tables ------------------------------------------------------------------------------

    def tables(self) -> Iterator[Table]:
        """Return metrics, levels, cells of the confusion matrix, costs of errors, differences."""
        parts = self._list_parts()
        yield self._tabulate_metrics(parts)
        yield Table("per_level", "Levels", LEVEL_COLUMNS, self.per_level, self._level)
        yield self._tabulate_cells()
        if self.case_averages is not None:
            yield replace(self.case_averages.get_table("metrics"), name="case_averages")
            yield self.case_averages.get_table("cases")
        yield self._tabulate_errors()
        yield self._tabulate_second_rater(parts)
        yield self._tabulate_differences(parts)

    def _tabulate_metrics(self, parts: "Parts") -> Table:
        """Return each metric of some parts beside what it must beat."""
        scale = self.confusion_matrix.scale
        majority = scale.names[int(self.confusion_matrix.gold.argmax())]
        columns = (
            Column("group", get=lambda x: x.group, shown=False),
            METRIC,
            Column(
                *("better", None, NAME, lambda x: BETTER_VALUES[x.score.metric.direction]),
                stored=False,
            ),
            Column("value", kind=SCORE, get=lambda x: x.score.found),
            Column("undefined", get=lambda x: x.score.undefined, shown=False),
            Column("levels_used", get=lambda x: x.score.levels_used, shown=False),
            Column("best_constant", get=lambda x: x.baselines.best_constant.value, shown=False),
            Column(
                "best_constant_level", get=lambda x: x.baselines.best_constant.level, shown=False
            ),
            Column(
                "best_constant_text",
                "best constant",
                get=lambda x: x.baselines.describe_constant(scale),
                stored=False,
            ),
            Column(
                *("majority", f"majority {majority}", TEXT, lambda x: x.baselines.majority.value),
                optional=True,
            ),
            Column("chance", get=lambda x: x.baselines.chance.value),
            Column("attainable_low", get=lambda x: x.attainable[0], shown=False),
            Column("attainable_high", get=lambda x: x.attainable[1], shown=False),
            Column(
                *("attainable", None, TEXT, lambda x: x.baselines.describe_attainable()),
                stored=False,
                optional=True,
            ),
            Column("n", get=lambda x: x.part.confusion_matrix.n, shown=False),
        )
        records = [
            PartScore(group, part, score)
            for group, part in parts
            for score in part.metrics.values()
        ]
        return Table("metrics", "Metrics", columns, records, self._level)

    def _tabulate_cells(self) -> Table:
        """Return each cell of the confusion matrix; a prediction that is missing has no level."""
        matrix = self.confusion_matrix
        labels = [to_json_label(label) for label in matrix.scale.labels]
        answers = [*labels, None] if matrix.has_unanswered else labels
        records = [
            {"gold": gold, "predicted": predicted, "weight": to_integer_if_whole(float(weight))}
            for gold, weights in zip(labels, matrix.weights, strict=True)
            for predicted, weight in zip(answers, weights, strict=False)
        ]
        columns = [Column(key) for key in ("gold", "predicted", "weight")]
        return Table("confusion_matrix", "Confusion matrix", columns, records)

    def _tabulate_errors(self) -> Table:
        """Return the cells of wrong predictions, for each metric whose cost was asked for."""
        records = [
            {"metric": name} | cost.to_dict() | {"gain": cost.gain, "per_item": cost.per_item}
            for name, costs in self.error_attribution.items()
            for cost in costs
        ]
        return Table(
            "error_attribution",
            lambda metric: f"Error attribution of {metric}",
            ERROR_COLUMNS,
            records,
            by="metric",
            most=MOST_ERROR_CELLS,
        )

    def _tabulate_second_rater(self, parts: "Parts") -> Table:
        """Return each metric of some parts beside that of the second rater."""
        columns = (
            Column("group", get=lambda x: x.group, shown=False),
            METRIC,
            Column("system", kind=SCORE, get=lambda x: x.score.found, stored=False),
            Column("value", "second rater", SCORE, lambda x: x.rater),
        )
        records = [
            PartScore(group, part, part.metrics[name], rater)
            for group, part in parts
            for name, rater in (part.second_rater or {}).items()
        ]
        title = "System and second rater, both against gold"
        return Table("second_rater", title, columns, records, self._level)

    def _tabulate_differences(self, parts: "Parts") -> Table:
        """Return how each metric of some parts differs from the rest."""
        records = [
            {"group": group, "metric": name, "value": gap}
            | {key: getattr(gap, key) for key in ("p", "p_adjusted", "p_note")}
            for group, part in parts
            for name, gap in part.difference_from_rest.items()
        ]
        title = "Subgroups: difference from the rest"
        return Table("difference_from_rest", title, DIFFERENCE_COLUMNS, records, self._level)

    def list_tables(self) -> dict[str, list[Record]]:
        """Return flat records by the name of their table, those of probabilities among them."""
        tables = super().list_tables() | {"metrics": self.rows()}
        if self.probabilities is None:
            return tables
        of_probabilities = self.probabilities.list_tables()
        return tables | {x: of_probabilities[x] for x in ("bins", "calibration_curves")}

    def rows(self) -> list[Record]:
        """Return one flat record for each metric, of all items and then of each subgroup."""
        parts = self._list_parts()
        rows = self._tabulate_metrics(parts).rows()
        for group, part in parts:
            if part.probabilities is not None:
                rows += [{"group": group} | row for row in part.probabilities.rows()]
        for group, part in parts:
            if part.case_averages is not None:
                more = part.case_averages.rows()
                rows += [{"group": group, "mean_over_cases": True} | row for row in more]
        return align_columns(rows)

    # --- for people --------------------------------------------------------------------------

    def make_charts(self) -> "Iterator[Chart]":
        """Yield metrics beside baselines, the confusion matrix, distances, levels, subgroups."""
        from ordinate.results import evaluation_charts as charts  # noqa: PLC0415 - start-up: a pipe shows none

        matrix, level = self.confusion_matrix, self._level
        few = len(matrix.scale) <= charts.MOST_LEVELS
        yield from charts.chart_metrics(self.metrics, self.second_rater, level)
        if few:
            yield charts.chart_confusion(matrix)
            yield charts.chart_row_shares(matrix)
            yield from charts.chart_cell_costs(matrix, self.metrics)
        yield charts.chart_distances(matrix)
        if few:
            yield charts.chart_levels(self.per_level, level)
        for name in self.metrics if self.by else ():
            yield from self._chart_subgroups(name)
        for part in (self.case_averages, self.probabilities):
            if part is not None:
                yield from part.make_charts()

    def _chart_subgroups(self, name: str) -> "Iterator[Chart]":
        """Yield how every subgroup differs from the rest by a metric, or its values."""
        from ordinate.results.evaluation_charts import chart_subgroups  # noqa: PLC0415 - start-up: a pipe shows none

        parts = self.list_subgroups()
        apart = all(name in part.difference_from_rest for _, part in parts)
        rows = [
            (
                group,
                part.difference_from_rest[name] if apart else part.metrics[name].found,
                part.confusion_matrix.n,
            )
            for group, part in parts
        ]
        yield from chart_subgroups(name, rows, self._level, apart=apart)

    def document(self) -> Document:
        """Return the report: metrics beside baselines, the confusion matrix, levels, subgroups."""
        whole: Parts = [("", self)]
        levels: tuple[Block, ...] = (
            _make_confusion_grid(self),
            _describe_over_and_under(self),
            *_make_grids(self.get_table("per_level")),
        )
        many = len(self.confusion_matrix.scale) > MOST_LEVELS
        subgroups = (*_make_subgroup_grids(self), *self._make_difference_grids())
        pooled = {name: score.value for name, score in self.metrics.items()}
        averages = self.case_averages
        cases = [] if averages is None else [averages.document(pooled)]
        blocks: list[Block] = [
            _describe_left_out(self),
            *_make_grids(self._tabulate_metrics(whole)),
            *_describe_gaps(self),
            *(replace(section, verdict="") for section in cases),
            *self._tabulate_second_rater(whole).grids(),
            *([Document("", details=levels, details_note=DETAILS_NOTE)] if many else levels),
            *_list_proximities(self),
            *self.get_table("error_attribution").grids(),
            *list_subgroup_blocks(subgroups, len(self.by)),
        ]
        others = [*(section.verdict for section in cases), *_compare_with_constants(self)]
        if self.probabilities is not None:
            if (n := self.probabilities.summary.n) != self.confusion_matrix.n:
                blocks.append(f"Probabilities are those of {format_count(n)}.")
            section = self.probabilities.document()
            blocks.append(replace(section, verdict=""))
            others.append(section.verdict)
        verdicts = {
            name: " ".join(
                [_state_metric(self, name, score), *_name_different_subgroups(self, name), *others]
            )
            for name, score in self.metrics.items()
        }
        return Document(
            _write_title(self),
            tuple(blocks),
            verdict=next(iter(verdicts.values())),
            verdicts=verdicts,
            notes=(
                *_describe_uncertainty(self),
                *_describe_subgroup_tests(self),
                *_describe_source(self),
            ),
            source=self.origin.name_tab(self.origin.predicted),
            metric_titles={name: score.metric.title for name, score in self.metrics.items()},
        )

    def _make_difference_grids(self) -> list[Grid]:
        """Return how each subgroup differs from all other items; of two, the first is enough."""
        parts = [(name, part) for name, part in self.list_subgroups() if part.difference_from_rest]
        if not parts:
            return []
        table = self._tabulate_differences(parts[:1] if len(parts) == 2 else parts)
        grids = table.cross("metric", "group", "value")
        return [lay_out_subgroups(grid, intervals=True) for grid in grids]


Parts = list[tuple[str, Evaluation]]


class PartScore(NamedTuple):
    """A score of all items, or of a subgroup; and what a second rater reaches."""

    group: str
    part: Evaluation
    score: Score
    rater: Estimate | None = None

    @property
    def baselines(self) -> Baselines:
        """What the system must beat."""
        return self.score.baselines

    @property
    def attainable(self) -> tuple[float | None, float | None]:
        """The range that gold leaves, where it is known."""
        return self.baselines.attainable or (None, None)


def _get_level_estimate(row: Record, name: str) -> Estimate:
    return Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], None)


def _format_level_value(found: Estimate) -> Cell:
    """Return a value with its confidence interval, in two digits to save space."""
    return "n/a" if math.isnan(found.value) else format_with_interval(found, digits=2)


def _make_level_column(name: str) -> Column:
    kind = Estimates(
        *(TEXT.show, _format_level_value),
        joined=_format_level_value,
        keys=("low", "high"),
        prefix=f"{name}_",
    )
    get = partial(_get_level_estimate, name=name)
    return Column(name, None, kind, get, optional=name == "f1")


def _show_bounds(found: Estimate) -> Cell:
    return "none" if found.method is None else format_interval(found.low, found.high)


def format_weight_cell(value: float) -> Cell:
    """Return a weight as an integer where it is one."""
    return int(value) if value == int(value) else value


def _format_gain(value: float) -> Cell:
    return format_cell(value) if math.isnan(value) else f"{value:.2g}"


class _Answers(Kind):
    """Predicted levels, which may be missing."""

    def list_cells(self, value: Any, level: float | None) -> list[Cell]:
        """Return the level, or that there is none."""
        del level
        return ["no answer" if value is None else str(value)]


SCORE = Estimates(TEXT.show, _show_bounds)
METRIC = Column("metric", kind=NAME, get=lambda x: x.score.metric.expression)
LEVEL_COLUMNS = (
    Column("level", shown=False),
    Column("name", "level", NAME),
    Column("predicted", shown=False),
    *map(_make_level_column, LEVEL_METRICS),
    Column("support", optional=True),
)
ERROR_COLUMNS = (
    Column("metric"),
    Column("gold", kind=Kind(str, words=True)),
    Column("predicted", kind=_Answers(words=True)),
    Column("weight", "items", Kind(format_weight_cell)),
    Column("gain", "gain if right"),
    Column("per_item", "per item", Kind(_format_gain)),
)
DIFFERENCE_COLUMNS = (
    Column("group", kind=NAME),
    Column("metric", kind=NAME),
    Column("value", kind=JOINED),
    *(Column(key, shown=False) for key in ("p", "p_adjusted", "p_note")),
)


# --- words and grids ------------------------------------------------------------------------------


def _make_grids(table: Table) -> list[Grid]:
    """Return the grids of a table, of whose columns the last is needed least."""
    return [replace(grid, optional=grid.optional[::-1]) for grid in table.grids()]


def _write_title(result: Evaluation) -> str:
    matrix = result.confusion_matrix
    weight = "" if matrix.total == matrix.n else f" of weight {format_cell(float(matrix.total))}"
    return f"{format_count(matrix.n)}{weight} on {matrix.scale}"


# --- the verdict ---------------------------------------------------------------------------------


def _state_metric(result: Evaluation, name: str, score: Score) -> str:
    """Say what a metric is, beside the best constant, chance and a second rater."""
    if score.undefined:
        return f"{name} has no value: {score.undefined}."
    found = _state_value(result, name, score.found)
    if score.metric.direction == "zero":
        return f"{found}; nearest to 0 is best."
    no_level = score.baselines.best_constant.level is None
    level = "" if no_level else _get_level_name(result, score)
    said = ", ".join(compare_with_baselines(score, level).values())
    rater = ""
    if result.second_rater is not None:
        rater = (
            f" The second rater reaches {_state_value(result, name, result.second_rater[name])}."
        )
    return f"{found}{': ' if said else ''}{said}.{rater}"


def _state_value(result: Evaluation, name: str, found: Estimate) -> str:
    interval = format_interval(found.low, found.high)
    level = None if result.interval is None else result.interval.level
    return f"{name} {format_headline(format_cell(found.value), interval, level)}"


def _compare_with_constants(result: Evaluation) -> list[str]:
    """Say which metrics do not beat a constant, in the sense of the sentence on each of them."""
    known = {
        name: compare_with_baseline(
            score, score.baselines.best_constant.value, score.against_constant
        )
        for name, score in result.metrics.items()
        if score.metric.direction != "zero" and score.beats_constant is not None
    }
    beaten = {name: result.metrics[name] for name, how in known.items() if how != "better than"}
    if beaten:
        each = [
            f"{name} (always {_get_level_name(result, score)}: "
            f"{format_cell(score.baselines.best_constant.value)})"
            for name, score in beaten.items()
        ]
        surely = "" if result.interval is None else "significantly "
        return [f"Does not {surely}beat a constant on {', '.join(each)}."]
    if known:
        return ["Better than every constant prediction on each metric that allows one."]
    return []


# --- what was counted, and how -------------------------------------------------------------------


def _describe_left_out(result: Evaluation) -> str:
    """Say which items are missing or unanswered, and whether the scale is too fine for the rest."""
    matrix, parts = result.confusion_matrix, result.origin.describe_join("gold levels")
    if matrix.dropped:
        parts.append(f"Dropped for a missing label: {matrix.dropped:,} items.")
    if matrix.has_unanswered:
        unanswered = format_cell(format_weight_cell(float(matrix.unanswered.sum())))
        parts.append(f"Without a prediction: {unanswered} items, counted as the worst answer.")
    if len(matrix.scale) > MOST_LEVELS and matrix.n < FEWEST_PER_LEVEL * len(matrix.scale):
        parts.append(
            f"The scale is too fine for its items: {len(matrix.scale):,} levels for {matrix.n:,} "
            "items. Declare a coarser one, or evaluate as regression."
        )
    return " ".join(parts)


def _describe_source(result: Evaluation) -> list[str]:
    origin = result.origin
    return [
        f"{origin.name_files()}Gold: {origin.gold}. Predicted: {origin.predicted}.",
        *origin.notes,
    ]


# --- grids ---------------------------------------------------------------------------------------


def _get_level_name(result: Evaluation, score: Score) -> str:
    """Return the display name of the level that is the best constant."""
    scale = result.confusion_matrix.scale
    return scale.names[scale.lookup[score.baselines.best_constant.level]]


def _describe_gaps(result: Evaluation) -> list[str]:
    """Say why values are undefined, and which levels gold does not have."""
    lines = [
        f"{name} is undefined: {s.undefined}." for name, s in result.metrics.items() if s.undefined
    ]
    used, size = int((result.confusion_matrix.gold > 0).sum()), len(result.confusion_matrix.scale)
    if used < size:
        lines.append(f"Gold has {used} of the {size} levels; macro averages leave the others out.")
    return [" ".join(lines)]


def _describe_uncertainty(result: Evaluation) -> list[str]:
    """Say how the intervals were found, and what is unsure about them."""
    if result.interval is None:
        return []
    found = {name: score.estimate for name, score in result.metrics.items() if score.estimate}
    parts = describe_interval_methods(found)
    if result.groups is not None:
        parts.append(f"{describe_clusters(result.groups)} With clusters, levels have no intervals.")
    return parts


def _make_confusion_grid(result: Evaluation) -> Grid:
    matrix = result.confusion_matrix
    names = matrix.scale.names
    header = ["gold \\ predicted", *names]
    if matrix.has_unanswered:
        header.append("no answer")
    cells = matrix.weights if matrix.has_unanswered else matrix.counts
    rows = [
        (name, *map(format_weight_cell, row.tolist()), format_weight_cell(float(total)))
        for name, row, total in zip(names, cells, matrix.gold, strict=True)
    ]
    totals = cells.sum(axis=0)
    rows.append(
        (
            "total",
            *map(format_weight_cell, totals.tolist()),
            format_weight_cell(float(matrix.total)),
        )
    )
    return Grid("Confusion matrix", (*header, "total"), tuple(rows), totals=1)


def _list_proximities(result: Evaluation) -> list[Block]:
    """Return the proximities behind CEM where it is reported, for files and on demand."""
    matrix = result.confusion_matrix
    if "cem_ord" not in result.metrics or len(matrix.scale) > MOST_LEVELS:
        return []
    return [Document("", details=(make_proximity_grid(matrix),))]


def make_proximity_grid(matrix: ConfusionMatrix) -> Grid:
    """Return what CEM counts an answer for each gold level, in bits."""
    names = matrix.scale.names
    rows = zip(names, matrix.proximities().tolist(), strict=True)
    title = "Proximities of cem_ord, in bits: the fewer gold items lie between, the more"
    return Grid(title, ("gold \\ predicted", *names), tuple((name, *row) for name, row in rows))


def _describe_over_and_under(result: Evaluation) -> str:
    matrix = result.confusion_matrix
    above = matrix.scale.positions > matrix.scale.positions[:, None]
    over, under = ((matrix.share * side).sum() for side in (above, above.T))
    return f"Predicted too high: {100 * over:.1f} %. Predicted too low: {100 * under:.1f} %."


def _name_different_subgroups(result: Evaluation, name: str) -> list[str]:
    """Say which subgroups differ from the rest by a metric, those that differ most first."""
    gaps = _list_differences(result).get(name, {})
    if not gaps or result.interval is None:
        return []
    tested = {group: gap for group, gap in gaps.items() if gap.p_note is None}
    reasons = "; ".join(dict.fromkeys(gap.p_note for gap in gaps.values() if gap.p_note))
    if not tested:
        return [f"No subgroup has a verdict by {name}: {reasons}."]
    alpha = 1.0 - result.interval.level + ROUNDING
    clear = {group: gap.value for group, gap in tested.items() if gap.p_adjusted <= alpha}
    family = f" (max-T over {len(tested):,} subgroups)" if len(tested) > 2 else ""
    left = len(gaps) - len(tested)
    untold = f" Without a verdict: {format_count(left, 'subgroup')} ({reasons})." if left else ""
    if not clear:
        return [f"No subgroup is significantly different from the rest by {name}{family}.{untold}"]
    named = [
        f"{group} ({format_cell(clear[group])})"
        for group in sorted(clear, key=lambda group: -abs(clear[group]))
    ]
    some = join_names(named, most=MOST_NAMED)
    return [f"Significantly different from the rest by {name}{family}: {some}.{untold}"]


def _list_differences(result: Evaluation) -> "dict[str, dict[str, SubgroupDifference]]":
    """Return by metric how each subgroup differs from the rest."""
    parts = result.list_subgroups()
    return {
        name: {
            group: part.difference_from_rest[name]
            for group, part in parts
            if name in part.difference_from_rest
        }
        for name in result.metrics
    }


def _describe_subgroup_tests(result: Evaluation) -> list[str]:
    """Say how verdicts on subgroups were found, and what they and the intervals stand for."""
    gaps = [gap for each in _list_differences(result).values() for gap in each.values()]
    if not gaps:
        return []
    intervals = "Intervals of differences from the rest are each of one subgroup alone."
    if all(gap.p_note for gap in gaps):
        return [intervals]
    from ordinate.inference.subgroup_differences import choose_deal_count  # noqa: PLC0415 - start-up

    units = "items" if result.groups is None else "clusters, or items within clusters,"
    how = (
        f"Verdicts on subgroups: randomisation max-T, {choose_deal_count(len(result.by)):,} times "
        f"with the {units} dealt anew to subgroups of the same sizes. A subgroup with another mix "
        "of levels may be found by that alone. "
    )
    return [how + intervals]


def _make_subgroup_grids(result: Evaluation) -> list[Grid]:
    """Return the values of every subgroup."""
    subgroups = result.list_subgroups()
    if not subgroups:
        return []
    parts = [part for _, part in subgroups]
    rows: list[tuple[Cell, ...]] = [("items", *(part.confusion_matrix.n for part in parts))]
    for name in result.metrics:
        rows.append((name, *(format_score(part.metrics[name]) for part in parts)))
        if result.second_rater is not None:
            raters = (_format_second_rater(part, name) for part in parts)
            rows.append((f"{name} of the second rater", *raters))
    rows += [
        (name, *(_format_probability_score(part, name) for part in parts))
        for name in (result.probabilities.metrics if result.probabilities else ())
    ]
    grid = Grid("Subgroups", ("metric", *(group for group, _ in subgroups)), tuple(rows))
    return [lay_out_subgroups(grid, intervals=result.interval is not None)]


def _format_second_rater(part: Evaluation, name: str) -> Cell:
    return None if part.second_rater is None else format_with_interval(part.second_rater[name])


def _format_probability_score(part: Evaluation, name: str) -> Cell:
    if part.probabilities is None:
        return None
    return format_with_interval(part.probabilities.metrics[name].estimate)


# --- what few ask for ----------------------------------------------------------------------------


def _attribute_errors(
    metrics: MetricSelection, matrix: ConfusionMatrix
) -> "dict[str, tuple[ErrorCost, ...]]":
    if not metrics:
        return {}
    from ordinate.results.error_attribution import attribute_errors  # noqa: PLC0415 - start-up

    return {
        metric.expression: attribute_errors(metric, matrix) for metric in select_metrics(metrics)
    }


def _average_over_groups(*arguments: Any) -> "CaseAverages":
    from ordinate.results.case_averages import average_over_groups  # noqa: PLC0415 - start-up

    return average_over_groups(*arguments)


def _pool_rests(parts: ConfusionMatrix) -> ConfusionMatrix:
    """Return for each matrix of a batch all others: what comes before it, and what comes after."""

    def add_others(array: NDArray[Any]) -> NDArray[Any]:
        before, after = np.zeros_like(array), np.zeros_like(array)
        before[1:] = np.cumsum(array[:-1], axis=0)
        after[:-1] = np.cumsum(array[:0:-1], axis=0)[::-1]
        return before + after

    return parts.map(add_others)
