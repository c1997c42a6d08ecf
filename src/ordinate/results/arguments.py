"""What the arguments of results may be: a scale, metrics, confidence intervals."""

from collections.abc import Hashable, Iterable

from ordinate.errors import BadOption
from ordinate.inference import ConfidenceIntervals
from ordinate.metrics import Metric, find_metric, list_metrics, split_expressions
from ordinate.metrics.catalogue import is_known_metric
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

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
FINE_LEVELS = 10  # levels from which on a scale may be too fine for its items
ScaleDeclaration = Scale | str | Iterable[Hashable] | None
MetricSelection = str | Metric | Iterable[str | Metric] | None
IntervalOption = ConfidenceIntervals | float | None


def select_metrics(metrics: MetricSelection, summary: type = ConfusionMatrix) -> list[Metric]:
    """Return the metrics that are named, the default ones, or all."""
    if metrics is None:
        return [find_metric(name) for name in DEFAULT_METRICS]
    if isinstance(metrics, str) and metrics == "all":
        return [metric for metric in list_metrics(summary) if not metric.required]
    selected = [find_metric(metric, summary) for metric in _list_named(metrics)]
    if not selected:
        raise BadOption("No metric was named. Leave the argument out for the default set.")
    return selected


def split_metrics_by_summary(metrics: MetricSelection) -> tuple[MetricSelection, MetricSelection]:
    """Return the selected metrics of labels, and those of probabilities.

    >>> split_metrics_by_summary("cem_ord,brier")
    (['cem_ord'], ['brier'])
    """
    if metrics is None or (isinstance(metrics, str) and metrics == "all"):
        return metrics, metrics
    named = _list_named(metrics)
    if not named:
        return named, []
    of_labels = [metric for metric in named if not _is_probability_metric(metric)]
    return of_labels or None, [metric for metric in named if _is_probability_metric(metric)]


def needs_probabilities(metrics: MetricSelection) -> bool:
    """Tell whether a metric of probabilities was asked for by name."""
    return metrics is not None and not isinstance(metrics, str) and bool(metrics)


def resolve_intervals(interval: IntervalOption) -> ConfidenceIntervals | None:
    """Return the intervals: a level stands for the usual ones, None for none."""
    if interval is None or isinstance(interval, ConfidenceIntervals):
        return interval
    return ConfidenceIntervals(interval)


def describe_preset(scale: Scale) -> tuple[str, ...]:
    """Say which preset was taken, where one was."""
    if scale.preset is None:
        return ("The scale is the order that the column declares.",)
    return (f"No scale was declared: every label seen is on the preset {scale.preset!r}.",)


def describe_fine_scale(matrix: ConfusionMatrix) -> tuple[str, ...]:
    """Say so where a scale has many more levels than labels that occur.

    >>> matrix = ConfusionMatrix.of([1, 2, 3], [1, 3, 3], Scale.of("1..100"))
    >>> describe_fine_scale(matrix)[0][:63]
    'The scale has 100 levels, and 3 of them occur in these 3 items.'
    """
    used, levels = int(((matrix.gold > 0) | (matrix.predicted > 0)).sum()), len(matrix.scale)
    if levels < FINE_LEVELS or levels <= 2 * used:
        return ()
    note = f"The scale has {levels} levels, and {used} of them occur in these {matrix.n:,} items."
    return (
        f"{note} It may be too fine: metrics of single levels say little, most cells are empty.",
    )


def _list_named(metrics: str | Metric | Iterable[str | Metric]) -> list[str | Metric]:
    if isinstance(metrics, Metric):
        return [metrics]
    return list(split_expressions(metrics) if isinstance(metrics, str) else metrics)


def _is_probability_metric(metric: str | Metric) -> bool:
    if isinstance(metric, Metric):
        return metric.summary is not ConfusionMatrix
    return not is_known_metric(metric, "labels") and is_known_metric(metric, "probabilities")
