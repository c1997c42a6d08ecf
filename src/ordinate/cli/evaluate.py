"""`ordinate evaluate`: files of gold and predicted levels in, a report out."""

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordinate.cli.evaluate_models import (
    add_model_options,
    refuse_model_options,
    run_evaluate_models,
)
from ordinate.cli.evaluate_regression import (
    POISSON,
    add_regression_options,
    evaluate_regression_files,
    parse_alpha,
    refuse_regression_options,
)
from ordinate.cli.flags import InputPath, parse_names
from ordinate.cli.options import (
    HelpFormatter,
    add_label_options,
    add_metric_file_option,
    add_output_options,
    add_resampling_options,
    list_inputs,
    parse_delimiter,
    parse_metric_value,
    write_report,
)
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.inference import ConfidenceIntervals
    from ordinate.metrics import Metric
    from ordinate.readers import LabelColumns
    from ordinate.results import Evaluation, Origin
    from ordinate.results.calibration import Calibration
    from ordinate.scale import Scale

INTERVAL_METHODS = (
    "delta",
    "percentile",
    "bca",
    "wilson",
    "mover",
    "simultaneous",
    "dirichlet",
    "jeffreys",
    "t",
)
BELOW_THRESHOLD_CODE = 3  # the exit code of --fail-under

EXAMPLES = """examples:
  ordinate evaluate results.csv --gold level --predicted model_a
  ordinate evaluate results.parquet --gold stars --predicted guess --scale 1..5 --by language
  ordinate evaluate run.jsonl --gold-file gold.csv --id essay --gold cefr --predicted answer
  ordinate evaluate *.csv --metrics 'cem_ord,weighted_kappa(power=1)' --format json -o report.json
  ordinate evaluate results.csv --fail-under cem_ord=0.7 --fail-under mae=0.5
  ordinate evaluate essays.csv --groups writer --second-rater level_2 --error-attribution cem_ord
  ordinate evaluate results.csv --gold level --probabilities p_
  ordinate evaluate densities.csv --task regression --target density --unit kg/m³ --by family
  zcat results.csv.gz | ordinate evaluate - --scale low,mid,high --items wrong.csv
  ordinate evaluate -e study

exit codes: 0 done, 1 internal error, 2 bad input, 3 below --fail-under, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "evaluate",
        help="evaluate predicted against gold levels, or a regression",
        description="Evaluate predicted against gold levels: metrics beside what constants and "
        "chance reach, the confusion matrix, and each level. With -e, all saved models of an "
        "experiment on all its test sets.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    _add_column_options(parser)
    _add_metric_options(parser)
    add_label_options(parser)
    _add_interval_options(parser)
    _add_output_options(parser)
    add_metric_file_option(parser)
    parser.add_argument(
        "--task",
        choices=("labels", "regression"),
        default="labels",
        help="evaluate levels, or a regression with units (default: labels)",
    )
    add_regression_options(parser)
    add_model_options(parser)
    parser.set_defaults(run=run)


def _add_column_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name files and their columns."""
    add = parser.add_argument
    add(
        "files",
        nargs="*",
        metavar="FILE",
        type=InputPath,
        help="CSV, TSV, JSONL or Parquet, also gzipped; "
        "several files, patterns, or - for standard input",
    )
    add("--gold", metavar="COL", help="column of the gold levels")
    add("--predicted", metavar="COL", help="column of the predicted levels")
    add(
        "--gold-file",
        metavar="FILE",
        type=InputPath,
        help="file of the gold levels, if it is another one",
    )
    add("--id", metavar="COL", help="column by which gold and predictions are joined")
    add("--row-order", action="store_true", help="match gold and predictions by their row order")
    add("--by", metavar="COL", help="column of subgroups, each evaluated on its own")
    add(
        "--second-rater",
        metavar="COL",
        help="column of a second rater's levels: what a human reaches on the same items",
    )


def _add_metric_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of metrics, of labels and of probabilities."""
    add = parser.add_argument
    add(
        "--error-attribution",
        metavar="METRICS",
        help="metrics whose cost is attributed to the cells of the confusion matrix",
    )
    add("--metrics", metavar="LIST", help="names or expressions separated by commas, or all")
    add(
        "--probabilities",
        metavar="A,B,…",
        help="columns of the levels' probabilities, or a prefix that they share (p_): adds a "
        "calibration report; without --predicted, the most probable level is taken",
    )
    add(
        "--renormalize",
        action="store_true",
        help="accept probabilities that sum to 0.99 to 1.01 instead of 1",
    )
    add(
        "--bins",
        metavar="N",
        help="of the calibration report (default: 10); with --task regression, rising edges such "
        "as 500,600: targets and predictions are evaluated as levels, too",
    )


def _add_interval_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of confidence intervals."""
    add_resampling_options(parser)
    add = parser.add_argument
    add(
        "--no-interval",
        dest="interval",
        action="store_const",
        const=None,
        help="compute no confidence intervals",
    )
    add(
        "--interval-method",
        metavar="METHOD",
        choices=(*INTERVAL_METHODS, POISSON),
        help=f"of confidence intervals: {', '.join(INTERVAL_METHODS)} (default: the best for each "
        f"metric); with --task regression, {POISSON} resamples the items",
    )
    add("--stratified", action="store_true", help="take the number of items of each level as fixed")


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the report, of items that disagree, and of the exit code."""
    add_output_options(parser)
    add = parser.add_argument
    add("--items", metavar="OUT", help="write the items that disagree (.csv, .jsonl, .parquet)")
    add(
        "--fail-under",
        metavar="METRIC=VALUE",
        action="append",
        default=[],
        help="exit with 3 if a metric is worse than a value; may be repeated",
    )


def run(options: argparse.Namespace) -> int:
    """Evaluate, write the report, and compare it with --fail-under."""
    from ordinate.cli.output import check_output_paths, replace_atomically

    if options.experiment is not None:
        return run_evaluate_models(options, _parse_intervals(options))
    refuse_model_options(options)
    if options.task == "labels":
        refuse_regression_options(options)
    thresholds = [_parse_threshold(options, text) for text in options.fail_under]
    check_output_paths(list_inputs(options), (options.output, options.items))
    required = [metric for metric, _ in thresholds]
    if any(_is_of_probabilities(metric) for metric in required) and options.probabilities is None:
        raise BadOption("--fail-under of probabilities needs the columns of --probabilities.")
    results: list[Any] = []

    def evaluate() -> Any:
        if options.task == "regression":
            results.append(evaluate_regression_files(options, required, _parse_intervals(options)))
        else:
            results.append(_evaluate_labels(options, required, items))
        return results[0]

    with replace_atomically(options.items, force=options.force) as items:
        write_report(options, evaluate)
    return _check_thresholds(results[0], thresholds)


def _evaluate_labels(
    options: argparse.Namespace, required: "list[Metric]", items: Path | None
) -> "Evaluation":
    from dataclasses import replace

    from ordinate.cli.progress import show_share, watch_queries
    from ordinate.readers import count_files
    from ordinate.results import (
        Evaluation,
        Origin,
        needs_probabilities,
        select_metrics,
        split_metrics_by_summary,
    )
    from ordinate.scale import Scale

    of_labels, of_probabilities = split_metrics_by_summary(options.metrics)
    metrics = select_metrics(of_labels)
    known = {metric.expression for metric in metrics}
    metrics += [
        metric
        for metric in required
        if metric.expression not in known and not _is_of_probabilities(metric)
    ]
    columns, intervals = _parse_columns(options), _parse_intervals(options)
    scale = Scale.of(options.scale) if options.scale is not None else None
    calibration = None
    if options.probabilities is not None:
        calibration, origin = _evaluate_calibration(options, of_probabilities, required, scale)
        if options.predicted is None:
            return _evaluate_most_probable(options, calibration, metrics, origin)
        scale = calibration.summary.scale
    elif needs_probabilities(of_probabilities):
        raise BadOption("Metrics of probabilities need the columns of --probabilities.")
    found = count_files(
        options.files, columns, scale, options.missing, items=items, watch=watch_queries
    )
    origin = Origin(found.gold, found.predicted, found.files, found.match_counts, found.notes)
    with show_share("evaluating") as progress:
        result = Evaluation.from_summary(
            found.matrix,
            metrics,
            by=found.by,
            groups=found.groups,
            second_rater=found.second_rater,
            second_rater_by=found.second_rater_by,
            attribution_metrics=options.error_attribution or (),
            interval=intervals,
            origin=origin,
            progress=progress,
        )
    return replace(result, probabilities=calibration)


def _parse_columns(options: argparse.Namespace) -> "LabelColumns":
    from ordinate.readers import LabelColumns, read_label_map

    return LabelColumns(
        gold=options.gold,
        predicted=options.predicted,
        weights=options.weights,
        by=options.by,
        groups=options.groups,
        second_rater=options.second_rater,
        gold_file=options.gold_file,
        id=options.id,
        row_order=options.row_order,
        delimiter=parse_delimiter(options.delimiter),
        encoding=options.encoding,
        renamed=read_label_map(options.map) if options.map else {},
    )


def _evaluate_calibration(
    options: argparse.Namespace, metrics: Any, required: "list[Metric]", scale: "Scale | None"
) -> "tuple[Calibration, Origin]":
    from dataclasses import replace

    from ordinate.cli.progress import watch_queries
    from ordinate.inference.probability_scores import JACKKNIFE_BLOCKS
    from ordinate.readers.reliability import count_probabilities
    from ordinate.results import Origin
    from ordinate.results.calibration import (
        NOT_CLUSTERED_NOTE,
        Calibration,
        collect_required_parts,
        select_probability_metrics,
    )

    if options.missing == "worst":
        raise BadOption("An item without probabilities cannot be counted: use --missing drop.")
    bins = _parse_bins(options.bins)
    selected = select_probability_metrics(metrics, bins)
    known = {metric.expression for metric in selected}
    selected += [
        metric
        for metric in required
        if _is_of_probabilities(metric) and metric.expression not in known
    ]
    found = count_probabilities(
        options.files,
        replace(_parse_columns(options), by=None, groups=None, second_rater=None),
        parse_names("--probabilities", options.probabilities),
        collect_required_parts(selected, bins),
        scale,
        options.missing,
        renormalize=options.renormalize,
        blocks=JACKKNIFE_BLOCKS,
        watch=watch_queries,
    )
    intervals = _parse_intervals(options)
    clustered = options.groups is not None and intervals is not None
    result = Calibration.from_blocks(
        found.blocks,
        selected,
        bins=bins,
        interval=intervals,
        notes=(NOT_CLUSTERED_NOTE,) if clustered else (),
    )
    predicted = f"the most probable of {', '.join(found.columns)}"
    return result, Origin(found.gold, predicted, found.files, found.match_counts, found.notes)


def _evaluate_most_probable(
    options: argparse.Namespace, found: "Calibration", metrics: "list[Metric]", origin: "Origin"
) -> "Evaluation":
    """Evaluate the most probable levels, of which there is a confusion matrix and no more."""
    from dataclasses import replace

    from ordinate.results import Evaluation

    for option in ("by", "groups", "second_rater", "items"):
        if getattr(options, option) is not None:
            name = option.replace("_", "-")
            raise BadOption(f"--{name} needs a column of predicted levels: name it (--predicted).")
    result = Evaluation.from_summary(
        found.summary.argmax,
        metrics,
        attribution_metrics=options.error_attribution or (),
        interval=_parse_intervals(options),
        origin=origin,
    )
    return replace(result, probabilities=found)


def _parse_threshold(options: argparse.Namespace, text: str) -> "tuple[Metric, float]":
    """Return a metric and what it has to reach; intervals leave out what --alpha says."""
    metric, value = parse_metric_value("--fail-under", text, _find_summary(options.task, text))
    if _is_of_intervals(metric):
        if options.lower is None or options.upper is None:
            raise BadOption(f"--fail-under {metric.name} needs the columns of --lower and --upper.")
        if "alpha" in metric.settings and not metric.options:
            metric = metric.with_options(alpha=parse_alpha(options))
    return metric, value


def _find_summary(task: str, metric: str) -> type:
    """Return the summary of which a metric is a function."""
    from ordinate.metrics import get_summary_type
    from ordinate.metrics.catalogue import is_known_metric
    from ordinate.results import needs_probabilities, split_metrics_by_summary

    if task == "regression":
        of_intervals = is_known_metric(metric.rpartition("=")[0], "intervals")
        return get_summary_type("intervals" if of_intervals else "regression")
    _, of_probabilities = split_metrics_by_summary([metric.partition("=")[0]])
    return get_summary_type("probabilities" if needs_probabilities(of_probabilities) else "labels")


def _parse_bins(text: str | None) -> int:
    if text is not None and not (text.isdecimal() and int(text)):
        raise BadOption(f"--bins takes an integer of at least 1, not {text!r}.")
    return 10 if text is None else int(text)


def _parse_intervals(options: argparse.Namespace) -> "ConfidenceIntervals | None":
    from ordinate.inference import ConfidenceIntervals

    if options.interval is None:
        return None
    method = None if options.interval_method == POISSON else options.interval_method
    return ConfidenceIntervals(
        options.interval, method, options.resamples, options.seed, options.stratified
    )


def _is_of_probabilities(metric: "Metric") -> bool:
    return metric.summary.__name__ == "Reliability"


def _is_of_intervals(metric: "Metric") -> bool:
    return metric.summary.__name__ == "PredictionIntervals"


def _find_scores(result: Any, metric: "Metric") -> Any:
    """Return the scores, by metric, among which this metric is."""
    if _is_of_intervals(metric):
        return result.prediction_intervals
    return (result.probabilities if _is_of_probabilities(metric) else result).metrics


def _check_thresholds(result: Any, thresholds: "list[tuple[Metric, float]]") -> int:
    failed = 0
    for metric, threshold in thresholds:
        value = _find_scores(result, metric)[metric.expression].value
        equal = math.isclose(value, threshold, rel_tol=1e-12, abs_tol=1e-12)
        if not (equal or metric.is_better(value, threshold)):
            shown = "undefined" if math.isnan(value) else f"{value:.6g}"
            sys.stderr.write(
                f"ordinate: {metric.expression} is {shown}, worse than {threshold:g}.\n"
            )
            failed = BELOW_THRESHOLD_CODE
    return failed
