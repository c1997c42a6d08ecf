"""What the arguments of results may be: a scale, metrics, confidence intervals."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ordinate.errors import BadOption, name_options
from ordinate.inference import ConfidenceIntervals
from ordinate.metrics import Metric, find_metric, list_metrics, split_expressions
from ordinate.metrics.catalogue import is_known_metric
from ordinate.readers.columns import Files
from ordinate.readers.tables import CARRIED_SCALE, LazyTable, is_table
from ordinate.results.base import Origin
from ordinate.results.given_columns import (
    refuse_idle_options,
    refuse_strange_table,
    take_columns,
)
from ordinate.scale import Scale
from ordinate.scale.encoding import factorize_column
from ordinate.scale.label_maps import LabelMap, explain_unknown_labels
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.tabulation import MissingPolicy

if TYPE_CHECKING:
    from ordinate.summaries import Panel

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
MOST_SYSTEMS = 500
SYSTEM = "the system"  # before its name, as an argument
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
        return named, None
    of_labels = [metric for metric in named if not _is_probability_metric(metric)]
    of_probabilities = [metric for metric in named if _is_probability_metric(metric)]
    return of_labels or None, of_probabilities or None


def needs_probabilities(metrics: MetricSelection) -> bool:
    """Tell whether a metric of probabilities was asked for by name."""
    return metrics is not None and not isinstance(metrics, str) and bool(metrics)


def resolve_intervals(
    interval: IntervalOption, *, seed: int | None = None, resamples: int | None = None
) -> ConfidenceIntervals | None:
    """Return the intervals: a level stands for the usual ones, None for none.

    What `ConfidenceIntervals` say already cannot be said otherwise beside them.

    >>> resolve_intervals(0.9, seed=5)
    ConfidenceIntervals(level=0.9, method=None, resamples=2000, seed=5, stratified=False)
    """
    said: dict[str, Any] = {"seed": seed, "resamples": resamples}
    said = {name: value for name, value in said.items() if value is not None}
    if not isinstance(interval, ConfidenceIntervals):
        return None if interval is None else ConfidenceIntervals(interval, **said)
    for name, value in said.items():
        if value != getattr(interval, name):
            raise BadOption(
                f"{name}={value} contradicts the {name}={getattr(interval, name)} of interval="
                f"ConfidenceIntervals(…). Give it there: ConfidenceIntervals(…, {name}={value})."
            )
    return interval


def name_columns(columns: Any, noun: str = "systems", *, data: Any = None) -> dict[str, Any]:
    """Return columns of predictions by their names, which are strings and distinct.

    Those of a table may be given by their names alone.
    """
    if is_table(data) and not isinstance(columns, Mapping):
        columns = {x: x for x in ([columns] if isinstance(columns, str) else columns or ())}
    if not isinstance(columns, Mapping):
        raise BadOption(f'Pass the {noun} by name: {{"name": predictions, …}}.')
    named = {str(name): column for name, column in columns.items()}
    if len(named) < len(columns):
        raise BadOption(f"Two {noun} have the same name.")
    return named


def find_files(data: Any, systems: Any, *columns: Any) -> Files | None:
    """Return the files that data name, None where they are something else."""
    named = [] if isinstance(systems, Mapping) or is_table(systems) else systems or []
    return Files.find(data, [*columns, *([named] if isinstance(named, str) else named)])


def name_file_columns(systems: Any) -> tuple[str, ...]:
    """Return the names of columns of files."""
    named = (systems,) if isinstance(systems, str) else tuple(systems)
    if isinstance(systems, Mapping) or not all(isinstance(name, str) for name in named):
        raise BadOption("With files, systems=… are the names of their columns.")
    return named


def find_column_name(column: Any) -> str | None:
    """Return the name that a column of a data frame has, None of a plain one."""
    name = column if isinstance(column, str) else getattr(column, "name", None)
    return name if isinstance(name, str) and name else None


def check_system_count(count: int, noun: str = "systems") -> None:
    """Refuse too few systems, and more than whose differences can be compared."""
    if not 2 <= count <= MOST_SYSTEMS:
        way = "Name two or more" if count < 2 else "Name fewer"
        raise BadOption(f"Comparing takes 2 to {MOST_SYSTEMS} {noun}, not {count}. {way}.")


def count_panel(
    data: Any,
    systems: Any,
    *,
    gold: Any = None,
    predicted: Any = None,
    scale: ScaleDeclaration,
    weights: Any,
    groups: Any,
    missing: MissingPolicy,
    label_map: LabelMap | None = None,
    check_count: Callable[[int], None],
) -> "tuple[Panel, Origin]":
    """Count what systems predict for the same items, and say which scale was taken.

    They are columns, or each is a file, whose predictions are in the column `predicted`.
    """
    from ordinate.readers.panels import count_table_systems  # noqa: PLC0415 - start-up: one system has none
    from ordinate.readers.systems import count_systems  # noqa: PLC0415 - start-up: one system has none
    from ordinate.summaries import Panel  # noqa: PLC0415 - start-up: one system has none

    files = find_files(data, systems, gold, predicted)
    spelling = LabelMap() if label_map is None else label_map
    if files is not None:
        names = () if systems is None else name_file_columns(systems)
        roles = {"gold": gold, "predicted": predicted, "weights": weights, "groups": groups}
        asked = files.name_columns(roles, systems=names, renamed=spelling)
        order = None if scale is None else Scale.of(scale)
        watch, admit = files.watch, check_count
        counted = count_systems(files.names, asked, order, missing, watch=watch, admit=admit)
        return counted.panel, Origin(
            counted.gold,
            files=counted.files,
            match_counts=counted.match_counts,
            notes=counted.notes,
        )
    refuse_idle_options("it is of files, one for each system", predicted=predicted)
    refuse_strange_table(data, gold)
    named = name_columns(systems, data=data)
    check_count(len(named))
    predictions = {f"{SYSTEM} {name}": column for name, column in named.items()}
    given = take_columns(data, "gold", gold=gold, weights=weights, groups=groups, **predictions)
    if isinstance(given.table, LazyTable):
        found = count_table_systems(given.table, given.names, named, scale, missing, label_map)
        return found.panel, Origin(found.gold, notes=found.notes)
    given, declared = given.read_labels(scale, spelling, predictions)
    clusters = None if groups is None else factorize_column(given["groups"], "groups")
    columns = {name: given[f"{SYSTEM} {name}"] for name in named}
    with nullcontext() if label_map is None else explain_unknown_labels():
        panel = Panel.of(given["gold"], columns, declared, given["weights"], clusters, missing)
    notes = describe_preset(declared) if scale is None else ()
    notes = (*notes, *spelling.describe(declared))
    return panel, Origin(given.names.get("gold", "gold"), notes=notes)


def describe_preset(scale: Scale) -> tuple[str, ...]:
    """Say which preset was taken, where one was."""
    if scale.preset is None:
        return (CARRIED_SCALE,)
    return (f"No scale was declared: every label seen is on the preset {scale.preset!r}.",)


def _name_argument_of_sklearn(option: str, value: Any) -> str | None:
    return f"labels={value!r}" if option == "scale" else None


# Decorates functions with scikit-learn's arguments, whose errors advise those that there are.
advise_arguments_of_sklearn = name_options(_name_argument_of_sklearn)


def _list_named(metrics: str | Metric | Iterable[str | Metric]) -> list[str | Metric]:
    if isinstance(metrics, Metric):
        return [metrics]
    return list(split_expressions(metrics) if isinstance(metrics, str) else metrics)


def _is_probability_metric(metric: str | Metric) -> bool:
    if isinstance(metric, Metric):
        return metric.summary.__name__ == "Reliability"
    return not is_known_metric(metric, "labels") and is_known_metric(metric, "probabilities")
