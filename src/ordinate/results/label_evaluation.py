"""Evaluate levels: columns, tables, databases and files in, an Evaluation out."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordinate.errors import BadOption, BadScale, NotApplicable, word_advice
from ordinate.inference.resampling import ProgressCallback
from ordinate.metrics import Metric, find_metric
from ordinate.metrics.catalogue import is_known_metric
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
from ordinate.results.evaluation import Evaluation
from ordinate.results.given_columns import refuse_idle_options
from ordinate.results.label_sources import LabelSource, ProbabilityOptions
from ordinate.scale import resolve_scale
from ordinate.scale.label_maps import LabelMap
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.tabulation import MissingPolicy

if TYPE_CHECKING:
    from ordinate.summaries.probabilities import ColumnLabels


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
    columns: "ColumnLabels" = None,
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
        from ordinate.results.case_averages import Cases  # noqa: PLC0415 - start-up: few average

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
    from ordinate.readers.databases import Query  # noqa: PLC0415 - start-up: files need none

    return evaluate(Query(connection, query), **options)


def _check_cases(groups: Any, average_over: Any, *, fixed: bool) -> None:
    if average_over is None and not fixed:
        return
    from ordinate.results.case_averages import CASES_ARE_CLUSTERS, UNNAMED_CASES  # noqa: PLC0415 - start-up: few average

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
