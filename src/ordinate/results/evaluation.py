"""Evaluate: gold and predicted levels in, an Evaluation out."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, BadScale, NotApplicable, word_advice
from ordinate.inference import ConfidenceIntervals, Estimate
from ordinate.inference.resampling import ProgressCallback, Resampling
from ordinate.inference.small_samples import compute_effective_sizes
from ordinate.inference.subgroup_differences import (
    SubgroupDifference,
    SubgroupTest,
    choose_deal_count,
    estimate_difference_from_rest,
    randomize_subgroups,
)
from ordinate.metrics import Metric, find_metric
from ordinate.metrics.catalogue import is_known_metric
from ordinate.readers.databases import Query
from ordinate.render import Document
from ordinate.render.tables import to_plain
from ordinate.results.arguments import (
    IntervalOption,
    MetricSelection,
    ScaleDeclaration,
    find_column_name,
    needs_probabilities,
    resolve_intervals,
    select_metrics,
    split_metrics_by_summary,
)
from ordinate.results.base import (
    SCHEMA,
    Origin,
    Record,
    Result,
    align_columns,
    name_subgroups,
    record_call,
    to_flat_record,
    to_json_label,
)
from ordinate.results.case_averages import (
    CASES_ARE_CLUSTERS,
    UNNAMED_CASES,
    CaseAverages,
    Cases,
    average_over_groups,
)
from ordinate.results.error_attribution import ErrorCost, attribute_errors
from ordinate.results.evaluation_text import describe_evaluation
from ordinate.results.given_columns import refuse_idle_options
from ordinate.results.label_sources import LabelSource, ProbabilityOptions
from ordinate.results.metric_scores import (
    Score,
    estimate_each,
    estimate_each_without_baselines,
    score_each,
)
from ordinate.results.per_level import compute_level_records, to_integer_if_whole
from ordinate.scale import resolve_scale
from ordinate.scale.label_maps import LabelMap
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.confusion import ConfusionData
from ordinate.summaries.probabilities import ColumnLabels
from ordinate.summaries.tabulation import MissingPolicy

if TYPE_CHECKING:
    from ordinate.render.charts import Chart
    from ordinate.results.calibration import Calibration


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation(Result):
    """A confusion matrix with its metrics, its levels and its subgroups.

    >>> result = evaluate(["A1", "B1", "B2", "B1"], ["A1", "B2", "B2", "B1"], scale="cefr")
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
    error_attribution: dict[str, tuple[ErrorCost, ...]] = field(default_factory=dict)
    difference_from_rest: dict[str, SubgroupDifference] = field(default_factory=dict)
    probabilities: "Calibration | None" = None  # what predicted probabilities are worth
    case_averages: CaseAverages | None = None  # means over cases, which are the clusters then

    @classmethod
    @record_call
    def from_summary(
        cls,
        matrix: ConfusionMatrix,
        metrics: MetricSelection = None,
        *,
        by: Iterable[tuple[Any, ConfusionMatrix]] = (),
        groups: ConfusionMatrix | None = None,
        cases: Cases | None = None,
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
            error_attribution={
                metric.expression: attribute_errors(metric, matrix)
                for metric in (select_metrics(attribution_metrics) if attribution_metrics else ())
            },
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
        cases: Cases | None,
        progress: ProgressCallback | None,
    ) -> "dict[Hashable, Evaluation]":
        """Evaluate subgroups as one batch, and say how each differs from the others."""
        if not parts:
            return {}
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
        cases: Cases | None,
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
                case_averages=average_over_groups(sources[place], metrics, cases, intervals)
                if clustered and cases is not None
                else None,
            )
            for place in range(len(scores))
        ]

    def subtract(
        self, rest: dict[str, Estimate], items: float, tests: dict[str, SubgroupTest]
    ) -> "Evaluation":
        """Return the same, which knows how it differs from the rest; the smaller has `items`."""
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
            "per_level": to_plain(self.per_level),
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

    def make_charts(self) -> "Iterable[Chart]":
        """Return metrics beside baselines, the confusion matrix, distances, levels, subgroups."""
        from ordinate.results.evaluation_charts import chart_evaluation  # noqa: PLC0415 - start-up: a pipe shows none

        return chart_evaluation(self)

    def list_subgroups(self) -> "list[tuple[str, Evaluation]]":
        """Return the subgroups by their names as strings, made distinct where they look alike."""
        return name_subgroups(self.by)

    def list_tables(self) -> dict[str, list[Record]]:
        """Return metrics, levels, cells of the confusion matrix, costs of errors, differences."""
        costs = {name: to_plain(cells) for name, cells in self.error_attribution.items()}
        tables = {
            "metrics": self.rows(),
            "per_level": list(self.per_level),
            "confusion_matrix": self._list_cells(),
            **self._list_case_tables(),
            "error_attribution": [
                {"metric": name} | cell for name, cells in costs.items() for cell in cells
            ],
            "second_rater": [
                {"group": group} | row
                for group, part in [("", self), *self.list_subgroups()]
                for row in _list_estimates(part.second_rater or {})
            ],
            "difference_from_rest": [
                {"group": group} | row
                for group, part in self.list_subgroups()
                for row in _list_differences(part.difference_from_rest)
            ],
        }
        if self.probabilities is None:
            return tables
        curves = self.probabilities.curves.list_points()
        return tables | {"bins": self.probabilities.list_bins(), "calibration_curves": curves}

    def _list_case_tables(self) -> dict[str, list[Record]]:
        if self.case_averages is None:
            return {}
        return {
            "case_averages": self.case_averages.rows(),
            "cases": self.case_averages.list_cases(),
        }

    def _list_cells(self) -> list[Record]:
        """Return one record for each cell; a prediction that is missing has no level."""
        labels = [to_json_label(label) for label in self.confusion_matrix.scale.labels]
        return [
            {"gold": gold, "predicted": predicted, "weight": to_integer_if_whole(float(weight))}
            for gold, weights in zip(labels, self.confusion_matrix.weights, strict=True)
            for predicted, weight in zip((*labels, None), weights, strict=True)
            if predicted is not None or self.confusion_matrix.has_unanswered
        ]

    def rows(self) -> list[Record]:
        """Return one flat record for each metric, of all items and then of each subgroup."""
        parts = [("", self), *self.list_subgroups()]
        rows: list[Record] = [
            {
                "group": group,
                "metric": name,
                "value": score.value,
                "undefined": score.undefined,
                "low": score.estimate and score.estimate.low,
                "high": score.estimate and score.estimate.high,
                "method": score.estimate and score.estimate.method,
                "levels_used": score.levels_used,
                "best_constant": score.baselines.best_constant.value,
                "best_constant_level": score.baselines.best_constant.level,
                "majority": score.baselines.majority.value,
                "chance": score.baselines.chance.value,
                "attainable_low": score.baselines.attainable and score.baselines.attainable[0],
                "attainable_high": score.baselines.attainable and score.baselines.attainable[1],
                "n": part.confusion_matrix.n,
            }
            for group, part in parts
            for name, score in part.metrics.items()
        ]
        rows += [
            {"group": group} | row
            for group, part in parts
            if part.probabilities is not None
            for row in part.probabilities.rows()
        ]
        rows += [
            {"group": group, "mean_over_cases": True} | row
            for group, part in parts
            if part.case_averages is not None
            for row in part.case_averages.rows()
        ]
        return align_columns(rows)

    def document(self) -> Document:
        """Return the report for people."""
        return describe_evaluation(self)


def evaluate(
    data: Any = None,
    predicted: Any = None,
    scale: ScaleDeclaration = None,
    metrics: MetricSelection = None,
    *,
    gold: Any = None,
    weights: Any = None,
    by: Any = None,
    groups: Any = None,
    average_over: Any = None,
    fixed_cases: bool = False,
    missing: MissingPolicy = "error",
    second_rater: Any = None,
    label_map: Mapping[str, str | None] | None = None,
    tidy_labels: bool = False,
    edges: Iterable[float] = (),
    error_attribution: MetricSelection = (),
    probabilities: Any = None,
    columns: ColumnLabels = None,
    renormalize: bool = False,
    bins: int | None = None,
    interval: IntervalOption = 0.95,
    seed: int | None = None,
    items: str | Path | None = None,
    force: bool = False,
    progress: ProgressCallback | None = None,
) -> Evaluation:
    """Evaluate predicted levels against gold levels, beside constants and chance.

    `data` is a column of gold levels, beside one of predicted levels; or what has columns that the
    other arguments name: `evaluate("run.csv", gold="level", predicted="guess")`. These are files
    (a path, or `Files` for several, for how they are read, and for gold levels of another file),
    frames of pandas, Polars, PyArrow, DuckDB, Ibis, Dask and PySpark, columns by name, and `Query`
    of a database; files and lazy frames are counted by their own engine. A `ConfusionMatrix` is
    evaluated as it is. `label_map` renames labels first, `tidy_labels` takes them with blanks
    around them, in any case and Unicode form, and predicted numbers are cut into levels at `edges`,
    of which there is one less than there are levels; a score that equals an edge is of the level
    above it.

    `metrics` are names, expressions such as 'weighted_kappa(power=1)', or 'all'; `by` is a column
    of subgroups; `missing` says what becomes of missing labels: 'error', 'drop' or 'worst'.

    `interval` is the confidence level, None for none, or `ConfidenceIntervals` with all choices,
    the seed of resamples among them, which `seed` gives otherwise (0 without one).
    `groups` is a column that says which items belong together (writers, topics, documents).
    `average_over` is such a column, too: of cases, over which each metric is averaged, beside its
    value for all items. Cases are the sample then, unless they are `fixed_cases`. `second_rater`
    are the levels that a second rater gave; `error_attribution` are metrics whose cost is
    attributed to the cells of the confusion matrix. `probabilities` are those of the levels, a row
    for each item, or names the columns of a table, or their prefix; without `predicted`, the most
    probable level is taken. `columns` are the labels of the columns of an array, such as
    `model.classes_`, or "scale": without it, an array is taken where sorting the labels gives the
    order of the scale. A level that no column is for has the probability 0. `renormalize` accepts
    rows that were rounded to two decimals, `bins` is how many the calibration report has: those
    that a metric asks for, or ten. `items` is a file (.csv, .jsonl, .parquet) to which the items of
    files that disagree are written, and `force` overwrites it. `progress` is told the share of the
    work that is done.

    >>> result = evaluate(["A1", "B1", "B2"], ["A1", "B1", "C1"], "cefr")
    >>> round(result.metrics["accuracy"].value, 3), round(result.metrics["mae"].value, 3)
    (0.667, 0.333)
    >>> table = {"level": ["low", "mid", "high"], "guess": ["low", "mid", "mid"]}
    >>> found = evaluate(table, gold="level", predicted="guess", scale="low,mid,high")
    >>> found.confusion_matrix.counts.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    """
    intervals = resolve_intervals(interval, seed=seed)
    _check_cases(groups, average_over, fixed=fixed_cases)
    if isinstance(scale, Mapping):
        raise BadOption("Cases that have their own scales: ordinate.evaluate_cases(…, scale_by=…).")
    roles = {"gold": gold, "predicted": predicted, "weights": weights, "by": by}
    roles |= {"groups": groups, "second_rater": second_rater}
    of_rows = {"columns": columns, "renormalize": renormalize, "bins": bins}
    settings: Any = {"attribution_metrics": error_attribution, "interval": intervals}
    settings["progress"] = progress
    if isinstance(data, ConfusionMatrix):
        of_items = {"scale": scale, "average_over": average_over, "probabilities": probabilities}
        of_items |= {"label_map": label_map, "tidy_labels": tidy_labels, "items": items}
        of_items |= {
            "edges": tuple(edges) or None,
            "missing": None if missing == "error" else missing,
        }
        refuse_idle_options("a confusion matrix is counted already", **roles, **of_items, **of_rows)
        return Evaluation.from_summary(data, metrics, **settings)
    if average_over is not None:
        roles["groups"] = average_over
    of_labels, of_probabilities = split_metrics_by_summary(metrics)
    selected, asked = select_metrics(of_labels), None  # before anything is read
    if probabilities is not None:
        options = {"columns": columns, "renormalize": renormalize, "interval": intervals}
        options["clustered"] = roles["groups"] is not None
        asked = ProbabilityOptions.of(probabilities, of_probabilities, bins, **options)
    elif needs_probabilities(of_probabilities):
        advice = word_advice("pass {probabilities}", probabilities=...)
        raise BadOption(f"There are no probabilities, which metrics need: {advice}.")
    else:
        refuse_idle_options("it is for probabilities, and there are none", **of_rows)
    spelling = LabelMap(label_map, tidy=tidy_labels, edges=edges)
    source = LabelSource(data, roles, scale, spelling, missing, asked, items, force)
    counted, calibrations = source.count()
    cases = None
    if average_over is not None:
        cases = Cases(counted.group_values, find_column_name(average_over), fixed_cases)
    result = Evaluation.from_data(counted, selected, cases=cases, **settings)
    return result.add_calibration(*calibrations)


def evaluate_sql(connection: Any, query: str, **options: Any) -> Evaluation:
    """Evaluate the rows of a query inside its database; the options are those of `evaluate`.

    >>> import sqlite3
    >>> connection = sqlite3.connect(":memory:")
    >>> rows = "select 'B1' as level, 'B2' as guess union all select 'A2', 'A2'"
    >>> found = evaluate_sql(connection, rows, gold="level", predicted="guess", interval=None)
    >>> found.metrics["accuracy"].value
    0.5
    """
    return evaluate(Query(connection, query), **options)


def _check_cases(groups: Any, average_over: Any, *, fixed: bool) -> None:
    same = isinstance(groups, str) and isinstance(average_over, str) and groups == average_over
    if average_over is not None and groups is not None and not same:
        raise BadOption(CASES_ARE_CLUSTERS)
    if fixed and average_over is None:
        raise BadOption(UNNAMED_CASES)


def score(
    metric: str | Metric,
    gold: Any,
    predicted: Any = None,
    *,
    scale: ScaleDeclaration = None,
    weights: Any = None,
    missing: MissingPolicy = "error",
) -> Any:
    """Return one metric of gold and predicted labels, or of a summary in their place.

    >>> score("accuracy_within", ["A1", "B1"], ["A2", "C1"], scale="cefr")
    np.float64(0.5)
    """
    if predicted is not None:
        find_metric(metric)
        try:
            found = resolve_scale(scale, gold, predicted)
        except BadScale as reason:
            if not is_known_metric(str(metric), "regression"):
                raise
            raise BadScale(
                f"{metric} is a metric of regression and of labels. Of a regression: "
                f"evaluate_regression(target, predicted, {str(metric)!r}). Of labels: {reason}"
            ) from None
        summary = ConfusionMatrix.of(gold, predicted, found, weights, missing)
    elif not isinstance(gold, ConfusionMatrix):
        raise BadOption("score takes a summary, or gold and predicted labels with a scale.")
    elif scale is not None or weights is not None or missing != "error":
        raise BadOption("A summary is counted already: scale, weights and missing come too late.")
    else:
        summary = gold
    named = find_metric(metric, type(summary))
    try:
        return named(summary)
    except NotApplicable as reason:
        raise NotApplicable(f"{named.name} is not defined here: {reason}.") from None


def _list_estimates(estimates: Mapping[str, Estimate]) -> list[Record]:
    return [{"metric": name} | to_flat_record(x) for name, x in estimates.items()]


def _list_differences(differences: dict[str, SubgroupDifference]) -> list[Record]:
    keys = ("p", "p_adjusted", "p_note")
    rows = zip(_list_estimates(differences), differences.values(), strict=True)
    return [row | {key: getattr(found, key) for key in keys} for row, found in rows]


def _pool_rests(parts: ConfusionMatrix) -> ConfusionMatrix:
    """Return for each matrix of a batch all others: what comes before it, and what comes after."""

    def add_others(array: NDArray[Any]) -> NDArray[Any]:
        before, after = np.zeros_like(array), np.zeros_like(array)
        before[1:] = np.cumsum(array[:-1], axis=0)
        after[:-1] = np.cumsum(array[:0:-1], axis=0)[::-1]
        return before + after

    return parts.map(add_others)
