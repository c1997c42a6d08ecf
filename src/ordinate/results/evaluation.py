"""Evaluate: gold and predicted levels in, an Evaluation out."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ordinate.errors import BadOption, NotApplicable
from ordinate.inference import ConfidenceIntervals, Estimate, estimate_metrics
from ordinate.inference.estimates import make_point_estimate
from ordinate.inference.resampling import ProgressCallback
from ordinate.metrics import Metric, find_metric, list_metrics, split_expressions
from ordinate.metrics.catalogue import is_known_metric
from ordinate.render import Document, html, render
from ordinate.results.baselines import BaselinePredictors, Baselines, to_json_label
from ordinate.results.error_attribution import ErrorCost, attribute_errors
from ordinate.results.evaluation_tables import count_tables
from ordinate.results.per_level import compute_level_records, to_integer_if_whole
from ordinate.results.subgroups import estimate_difference, pool_rests
from ordinate.scale import Scale, resolve_scale
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.probabilities import find_most_probable_labels
from ordinate.summaries.tabulation import MissingPolicy

if TYPE_CHECKING:
    from ordinate.results.calibration import Calibration

SCHEMA = 1
NO_GROUP = "(none)"  # how items without a group are shown
DEFAULT_METRICS = (
    "cem_ord",
    "quadratic_kappa",
    "linear_kappa",
    "kendall_tau_b",
    "accuracy",
    "accuracy_within",
    "macro_accuracy",
    "min_sensitivity",
    "f1_macro",
    "mae",
    "macro_mae",
    "bias",
)
BETTER_VALUES = {"maximize": "higher", "minimize": "lower", "zero": "near 0"}
ScaleDeclaration = Scale | str | Iterable[Hashable] | None
MetricSelection = str | Metric | Iterable[str | Metric] | None
IntervalOption = ConfidenceIntervals | float | None
ProgressStep = Callable[[Any], Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Score:
    """One metric of one system: its value with limits, or why there is none, and baselines."""

    metric: Metric
    value: float
    undefined: str | None
    levels_used: int
    baselines: Baselines
    estimate: Estimate | None = None  # None where no interval was asked for

    def __float__(self) -> float:
        return self.value

    @property
    def beats_constant(self) -> bool | None:
        """Whether the value is better than every constant prediction; None if that is undefined."""
        best = self.baselines.best_constant.value
        if math.isnan(self.value) or math.isnan(best):
            return None
        return bool(self.metric.is_better(self.value, best)) and not math.isclose(
            self.value, best, rel_tol=1e-12, abs_tol=1e-12
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        attainable = self.baselines.attainable
        return {
            "value": _to_plain_value(self.value),
            "undefined": self.undefined,
            **_to_interval_record(self.estimate),
            "levels_used": self.levels_used,
            "direction": self.metric.direction,
            "baselines": self.baselines.to_dict(),
            "attainable": None if attainable is None else list(attainable),
            "beats_constant": self.beats_constant,
        }


@dataclass(frozen=True)
class Origin:
    """Where the labels came from, for the head of a report."""

    gold: str = "gold"
    predicted: str = "predicted"
    files: tuple[str, ...] = ()
    joined: dict[str, Any] | None = None  # counts of ids; of many runs, by name
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "gold": self.gold,
            "predicted": self.predicted,
            "files": list(self.files),
            "joined": self.joined,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Evaluation:
    """A confusion matrix with its metrics, its levels and its subgroups.

    >>> result = evaluate(["A1", "B1", "B2", "B1"], ["A1", "B2", "B2", "B1"], scale="cefr")
    >>> round(result.metrics["accuracy"].value, 2)
    0.75
    """

    table: ConfusionMatrix
    metrics: dict[str, Score]
    per_level: tuple[dict[str, Any], ...]
    by: dict[Hashable, "Evaluation"] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)
    interval: ConfidenceIntervals | None = None
    groups: int | None = None  # how many groups of items were drawn whole
    human: dict[str, Estimate] | None = None  # what a second rater reaches on the same items
    error_attribution: dict[str, tuple[ErrorCost, ...]] = field(default_factory=dict)
    difference_from_rest: dict[str, Estimate] = field(
        default_factory=dict
    )  # of a subgroup: its difference
    probabilities: "Calibration | None" = None  # what predicted probabilities are worth

    @classmethod
    def from_summary(
        cls,
        table: ConfusionMatrix,
        metrics: MetricSelection = None,
        *,
        by: Iterable[tuple[Any, ConfusionMatrix]] = (),
        groups: ConfusionMatrix | None = None,
        human: ConfusionMatrix | None = None,
        attribution_metrics: MetricSelection = (),
        interval: IntervalOption = 0.95,
        origin: Origin | None = None,
        tick: ProgressCallback | None = None,
    ) -> "Evaluation":
        """Evaluate a table that is already counted, and the tables of its subgroups.

        `groups` is a batch of tables whose items belong together; subgroups are batches then, too.
        """
        if table.shape:
            raise BadOption("Evaluate one table; a batch is evaluated table by table, or pooled.")
        wanted, how = select_metrics(metrics), resolve_intervals(interval)
        source = table if groups is None else groups
        parts = _drop_empty_groups(by)
        step = _make_step_counter(tick, len(parts) * (1 if how is None else 2))
        whole_one = cls(
            table,
            _score_metrics(table, wanted, source, how, None if parts else tick),
            compute_level_records(table, None if how is None or groups is not None else how.level),
            {
                group: step(cls._evaluate_subgroup(part, wanted, how))
                for group, part in parts.items()
            },
            origin or Origin(),
            how,
            None if groups is None else int((groups.total > 0).sum()),
            None if human is None else _estimate_ceiling(human, wanted, how),
            {
                m.expression: attribute_errors(m, table)
                for m in (select_metrics(attribution_metrics) if attribution_metrics else ())
            },
        )
        return whole_one._add_differences(parts, wanted, how, step)

    @classmethod
    def _evaluate_subgroup(
        cls, part: ConfusionMatrix, metrics: list[Metric], how: ConfidenceIntervals | None
    ) -> "Evaluation":
        groups = part if part.shape else None
        table = part.pooled if part.shape else part
        return cls.from_summary(table, metrics, groups=groups, interval=how)

    def _add_differences(
        self,
        parts: dict[Hashable, ConfusionMatrix],
        metrics: list[Metric],
        how: ConfidenceIntervals | None,
        step: ProgressStep,
    ) -> "Evaluation":
        """Return the same, in which each subgroup knows how it differs from the others."""
        if how is None or len(parts) < 2:
            return self
        by = {}
        for name, rest in pool_rests(parts).items():
            others = step(estimate_metrics(metrics, rest, how))
            scores = self.by[name].metrics.items()
            apart = {n: estimate_difference(s.estimate, others[n]) for n, s in scores if s.estimate}
            by[name] = replace(self.by[name], difference_from_rest=apart)
        return replace(self, by=by)

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        return html.render(self.document())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None with its reason: what `--format json` writes."""
        table = self.table
        return {
            "schema": SCHEMA,
            "task": "labels",
            "n": table.n,
            "weight": to_integer_if_whole(float(table.total)),
            "scale": [to_json_label(label) for label in table.scale.labels],
            "positions": [to_integer_if_whole(position) for position in table.scale.at],
            "table": [[to_integer_if_whole(cell) for cell in row] for row in table.counts.tolist()],
            "unanswered": [to_integer_if_whole(cell) for cell in table.unanswered.tolist()],
            "dropped": int(table.dropped),
            "metrics": {name: score.to_dict() for name, score in self.metrics.items()},
            "per_level": [
                {key: _to_plain_value(x) for key, x in row.items()} for row in self.per_level
            ],
            "interval": None if self.interval is None else self.interval.level,
            "groups": self.groups,
            "human": _to_estimate_records(self.human),
            "error_attribution": {
                name: [x.to_dict() for x in found] for name, found in self.error_attribution.items()
            },
            "difference_from_rest": _to_estimate_records(self.difference_from_rest),
            "by": {name: part.to_dict() for name, part in self.list_subgroups()},
            "probabilities": self.probabilities and self.probabilities.to_dict(),
            "source": self.origin.to_dict(),
        }

    def list_subgroups(self) -> "list[tuple[str, Evaluation]]":
        """Return the subgroups by their names as texts, made distinct where they look alike."""
        return name_subgroups(self.by)

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each metric, of the whole and then of each subgroup."""
        parts = [("", self), *self.list_subgroups()]
        rows: list[dict[str, Any]] = [
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
                "n": part.table.n,
            }
            for group, part in parts
            for name, score in part.metrics.items()
        ]
        return align_columns(rows + (self.probabilities.rows() if self.probabilities else []))

    def document(self) -> Document:
        """Return the report for people."""
        from ordinate.results.evaluation_text import describe_evaluation  # noqa: PLC0415 - describe shows results

        return describe_evaluation(self)


def align_columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records of several kinds with the same columns.

    >>> align_columns([{"metric": "mae", "chance": 1.5}, {"metric": "brier", "p": 0.1}])[1]
    {'metric': 'brier', 'chance': None, 'p': 0.1}
    """
    columns = dict.fromkeys(key for row in rows for key in row)
    return [columns | row for row in rows]


def name_subgroups(parts: Mapping[Hashable, T]) -> list[tuple[str, T]]:
    """Return subgroups by their names as texts, made distinct where they look alike."""
    found: dict[str, T] = {}
    for group, part in parts.items():
        name = NO_GROUP if group is None else str(group)
        while name in found:
            name += f" ({type(group).__name__})"
        found[name] = part
    return list(found.items())


def evaluate(
    gold: Any,
    predicted: Any = None,
    scale: ScaleDeclaration = None,
    metrics: MetricSelection = None,
    weights: Any = None,
    by: Any = None,
    *,
    missing: MissingPolicy = "error",
    groups: Any = None,
    second_rater: Any = None,
    error_attribution: MetricSelection = (),
    probabilities: Any = None,
    columns: Any = None,
    renormalize: bool = False,
    bins: int = 10,
    interval: IntervalOption = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Evaluate predicted levels against gold levels, beside constants and chance.

    `metrics` are names, expressions such as 'weighted_kappa(power=1)', or 'all'; `by` is a column
    of subgroups; `missing` says what becomes of missing labels: 'error', 'drop' or 'worst'.

    `interval` is the confidence level, None for none, or `ConfidenceIntervals` with all choices;
    `groups` is a column that says which items belong together (writers, topics, documents);
    `second_rater` are the levels that a second rater gave; `error_attribution` are metrics whose
    cost is attributed to the cells of the confusion matrix. `probabilities` are those of the
    levels, a row for each item; without `predicted`, the most probable level is taken. `columns`
    names the columns of an array that is in another order than the scale, `renormalize` accepts
    rows that sum to 0.99 to 1.01, `bins` is how many the calibration report has.
    """
    how = resolve_intervals(interval)
    how = (
        how if how is None or isinstance(interval, ConfidenceIntervals) else replace(how, seed=seed)
    )
    declared = resolve_scale(scale, gold, gold if predicted is None else predicted)
    of_labels, of_probabilities = split_metrics_by_kind(metrics)
    calibration = None
    if probabilities is not None:
        columns = None if columns is None else list(columns)
        calibration = _evaluate_probabilities(
            gold,
            probabilities,
            grouped=groups is not None,
            scale=declared,
            metrics=of_probabilities,
            columns=columns,
            weights=weights,
            missing="drop" if missing == "drop" else "error",
            renormalize=renormalize,
            bins=bins,
            interval=how,
        )
        if predicted is None:
            predicted = find_most_probable_labels(declared, probabilities, columns)
    elif predicted is None or needs_probabilities(of_probabilities):
        what = "predicted levels" if predicted is None else "probabilities, which metrics need"
        raise BadOption(f"There are no {what}: pass probabilities=….")
    tables = count_tables(declared, gold, predicted, weights, by, groups, second_rater, missing)
    origin = Origin(notes=describe_preset(declared) if scale is None else ())
    result = Evaluation.from_summary(
        tables.table,
        of_labels,
        by=tables.by,
        groups=tables.groups,
        human=tables.human,
        attribution_metrics=error_attribution,
        interval=how,
        origin=origin,
    )
    return replace(result, probabilities=calibration)


def _evaluate_probabilities(
    gold: Any, probabilities: Any, *, grouped: bool, **options: Any
) -> "Calibration":
    from ordinate.results.calibration import NOT_CLUSTERED_NOTE, Calibration  # noqa: PLC0415 - not everybody has them

    found = Calibration.of(gold, probabilities, **options)
    return replace(found, notes=(NOT_CLUSTERED_NOTE,)) if grouped and found.interval else found


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
        summary = ConfusionMatrix.of(
            resolve_scale(scale, gold, predicted), gold, predicted, weights, missing
        )
    elif not isinstance(gold, ConfusionMatrix):
        raise BadOption("score takes a summary, or gold and predicted labels with a scale.")
    elif scale is not None or weights is not None or missing != "error":
        raise BadOption("A summary is counted already: scale, weights and missing come too late.")
    else:
        summary = gold
    wanted = find_metric(metric, type(summary))
    try:
        return wanted(summary)
    except NotApplicable as reason:
        raise NotApplicable(f"{wanted.name} is not defined here: {reason}.") from None


def select_metrics(metrics: MetricSelection, summary: type = ConfusionMatrix) -> list[Metric]:
    """Return the metrics that were asked for, the default ones, or all."""
    if metrics is None:
        return [find_metric(name) for name in DEFAULT_METRICS]
    if isinstance(metrics, str) and metrics == "all":
        return [metric for metric in list_metrics(summary) if not metric.required]
    if isinstance(metrics, str):
        metrics = split_expressions(metrics)
    named = [metrics] if isinstance(metrics, Metric) else metrics
    found = [find_metric(metric, summary) for metric in named]
    if not found:
        raise BadOption("No metric was named. Leave the argument out for the default set.")
    return found


def split_metrics_by_kind(metrics: MetricSelection) -> tuple[MetricSelection, MetricSelection]:
    """Return the metrics of labels that were asked for, and those of probabilities.

    >>> split_metrics_by_kind("cem_ord,brier")
    (['cem_ord'], ['brier'])
    """
    if metrics is None or (isinstance(metrics, str) and metrics == "all"):
        return metrics, metrics
    if isinstance(metrics, str):
        metrics = split_expressions(metrics)
    named = [metrics] if isinstance(metrics, Metric) else list(metrics)
    if not named:
        return named, []
    there = [_is_probability_metric(metric) for metric in named]
    of_labels = [metric for metric, other in zip(named, there, strict=True) if not other]
    return of_labels or None, [metric for metric, other in zip(named, there, strict=True) if other]


def needs_probabilities(metrics: MetricSelection) -> bool:
    """Tell whether a metric of probabilities was asked for by name."""
    return metrics is not None and not isinstance(metrics, str) and bool(metrics)


def _is_probability_metric(metric: str | Metric) -> bool:
    if isinstance(metric, Metric):
        return metric.summary is not ConfusionMatrix
    return not is_known_metric(metric, "labels") and is_known_metric(metric, "probabilities")


def describe_preset(scale: Scale) -> tuple[str, ...]:
    """Say which preset was taken, where one was."""
    if scale.preset is None:
        return ("The scale is the order that the column declares.",)
    return (f"No scale was declared: every label seen is on the preset {scale.preset!r}.",)


def _drop_empty_groups(
    groups: Iterable[tuple[Any, ConfusionMatrix]],
) -> dict[Hashable, ConfusionMatrix]:
    """Return the tables of groups by value, without groups that have no items left."""
    return {value: part for value, part in groups if np.any(part.total > 0)}


def resolve_intervals(wanted: IntervalOption) -> ConfidenceIntervals | None:
    """Return what was asked for: a level stands for the usual intervals, None for none."""
    return (
        wanted
        if wanted is None or isinstance(wanted, ConfidenceIntervals)
        else ConfidenceIntervals(wanted)
    )


def _score_metrics(
    table: ConfusionMatrix,
    metrics: list[Metric],
    source: ConfusionMatrix,
    how: ConfidenceIntervals | None,
    tick: ProgressCallback | None,
) -> dict[str, Score]:
    yardstick = BaselinePredictors(table)
    gold = table.gold > 0
    used = {"gold": int(gold.sum()), "either": int((gold | (table.predicted > 0)).sum())}
    limits = {} if how is None else estimate_metrics(metrics, source, how, tick)
    scores = {}
    for metric in metrics:
        value, reason = _compute_value(metric, table)
        baselines = yardstick.measure(metric)
        found = limits.get(metric.expression)
        scores[metric.expression] = Score(
            metric, value, reason, used[metric.levels], baselines, found
        )
    return scores


def _make_step_counter(tick: ProgressCallback | None, count: int) -> ProgressStep:
    """Return a function that passes a result on, and says how many of the steps are done."""
    done = 0

    def step(result: Any) -> Any:
        nonlocal done
        done += 1
        if tick is not None:
            tick(done / count)
        return result

    return step


def _estimate_ceiling(
    human: ConfusionMatrix, metrics: list[Metric], how: ConfidenceIntervals | None
) -> dict[str, Estimate]:
    if how is not None:
        return estimate_metrics(metrics, human, how)
    table = human.pooled if human.shape else human
    found = {metric.expression: _compute_value(metric, table) for metric in metrics}
    return {
        name: make_point_estimate(value, reason or "") for name, (value, reason) in found.items()
    }


def _compute_value(metric: Metric, table: ConfusionMatrix) -> tuple[float, str | None]:
    try:
        value = float(metric(table))
    except NotApplicable as reason:
        return math.nan, str(reason)
    return value, metric.undefined_when if math.isnan(value) else None


def _to_interval_record(found: Estimate | None) -> dict[str, Any]:
    keys = ("low", "high", "method", "undefined_share", "note")
    plain = {} if found is None else found.to_dict()
    return {key: plain.get(key) for key in keys}


def _to_estimate_records(found: dict[str, Estimate] | None) -> dict[str, Any] | None:
    return None if found is None else {name: one.to_dict() for name, one in found.items()}


def _to_plain_value(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
