"""`ordinate evaluate`: files of gold levels and predictions or probabilities in, a report out."""

import argparse
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from ordinate.cli.file_options import (
    LABEL_COLUMNS,
    add_column_options,
    keep_standard_input,
    open_source,
)
from ordinate.cli.flags import InputPath, add_flags, collect_given
from ordinate.cli.options import (
    CaseColumns,
    IntervalOptions,
    add_command,
    add_file_option,
    add_label_options,
    add_metric_file_option,
    add_metrics_option,
    add_output_options,
    add_threshold_option,
    check_thresholds,
    collect_columns,
    list_inputs,
    parse_intervals,
    parse_metric_value,
    write_report,
)
from ordinate.errors import BadOption
from ordinate.settings import format_flag

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ordinate.inference import ConfidenceIntervals
    from ordinate.metrics import Metric
    from ordinate.results import Evaluation
    from ordinate.results.case_averages import CaseAverages

METHODS = (
    *("delta", "percentile", "bca", "wilson", "mover", "simultaneous", "dirichlet", "jeffreys"),
    *("jackknife", "t"),
)
STRATIFIED = "stratified"
# Options of one scale, or of a confusion matrix of all items.
NOT_WITH_SCALES = (
    *("scale", "by", "second_rater", "probabilities", "error_attribution", "items"),
    *("interval_method", "edges"),
)
EXAMPLES = """examples:
  ordinate evaluate results.csv --gold level --predicted model_a
  ordinate evaluate results.parquet --gold stars --predicted guess --scale 1..5 --by language
  ordinate evaluate run.jsonl --gold-file gold.csv --id essay --gold cefr --predicted answer
  ordinate evaluate *.csv --metrics 'cem_ord,weighted_kappa(power=1)' --format json -o report.json
  ordinate evaluate results.csv --fail-under cem_ord=0.7 --fail-under mae=0.5
  ordinate evaluate essays.csv --groups writer --second-rater level_2 --error-attribution cem_ord
  ordinate evaluate results.csv --average-over topic
  ordinate evaluate essays.csv --gold score --scale-by prompt=ranges.csv
  ordinate evaluate results.csv --gold level --probabilities p_
  zcat results.csv.gz | ordinate evaluate - --scale low,mid,high --items wrong.csv

exit codes: 0 done, 1 internal error, 2 bad input, 3 below --fail-under, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "evaluate",
        "Evaluate predicted against gold levels: metrics beside what constants and chance reach, "
        "the confusion matrix, and each level. Probabilities add a calibration report; without a "
        "column of predictions, the most probable level is taken.",
        EXAMPLES,
        exit_codes="",  # its own stand below the examples
    )
    _add_input_options(parser)
    metrics = parser.add_argument_group("metrics")
    add_metrics_option(metrics)
    metrics.add_argument(
        "--error-attribution",
        metavar="METRICS",
        help="metrics whose cost is attributed to the cells of the confusion matrix",
    )
    add_metric_file_option(metrics)
    _add_interval_options(parser)
    output = parser.add_argument_group("output")
    add_output_options(output)
    output.add_argument(
        "--items",
        metavar="FILE",
        help="write the items that disagree (.csv, .jsonl, .parquet)",
    )
    add_threshold_option(output)
    parser.set_defaults(run=run)


def _add_input_options(parser: argparse.ArgumentParser) -> None:
    from ordinate.readers.columns import ItemColumns

    group = parser.add_argument_group("input")
    add_file_option(group, "; several files, patterns, or - for standard input", nargs="*")
    apart = add_column_options(parser, group, ItemColumns, LABEL_COLUMNS, databases=True)
    add_flags(apart, ItemColumns, ("renormalize",))
    add_flags(group, CaseColumns)
    add_label_options(group, apart)


def _add_interval_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("confidence intervals (--interval none for none)")
    add_flags(group, IntervalOptions)
    group.add_argument(
        "--interval-method",
        metavar="METHOD",
        choices=(*METHODS, STRATIFIED, *(f"{STRATIFIED}-{method}" for method in METHODS)),
        help=f"{', '.join(METHODS)} (default: the best for each metric); {STRATIFIED} or "
        f"{STRATIFIED}-METHOD takes the number of items of each level as fixed",
    )


def run(options: argparse.Namespace) -> int:
    """Evaluate, write the report, and compare it with --fail-under."""
    thresholds = [_parse_threshold(text) for text in options.fail_under]
    _split_scale_by(options)
    metrics = _select_metrics(options, [metric for metric, _ in thresholds])
    with _open_items(options) as items:
        result = write_report(options, lambda: _evaluate(options, metrics, items))
    return check_thresholds(options, result, thresholds)


@contextmanager
def _open_items(options: argparse.Namespace) -> "Iterator[Path | None]":
    """Give a file for the items that disagree, if they are asked for."""
    if options.items is None:
        yield None
        return
    from ordinate.cli.output import check_output_paths, replace_atomically

    check_output_paths(list_inputs(options), (options.output, options.items))
    with replace_atomically(options.items, force=options.force) as items:
        yield items


def _evaluate(
    options: argparse.Namespace, metrics: Any, items: "Path | None"
) -> "Evaluation | CaseAverages":
    """Call the function of the command, or the one for cases that have scales of their own."""
    from ordinate.cli.progress import show_share
    from ordinate.results import evaluate

    settings = {"metrics": metrics, "missing": options.missing}
    settings |= collect_columns(options) | {"interval": _parse_intervals(options)}
    if hasattr(options, "scale_by"):
        from ordinate.results.case_scales import evaluate_cases
        from ordinate.scale.declaration_files import read_case_scales

        settings |= {"cases": options.scale_by, "scale_by": read_case_scales(options.scale_file)}
        with open_source(options) as source:
            return evaluate_cases(source, **settings)
    settings |= collect_given(options, CaseColumns) | {"scale": options.scale}
    twice = "-" in options.files and {"predicted", "probabilities"} <= settings.keys()
    with (
        keep_standard_input() if twice else nullcontext(),
        open_source(options) as source,
        show_share("evaluating") as progress,
    ):
        return evaluate(
            source,
            error_attribution=options.error_attribution or (),
            items=items,
            force=True,  # it is a file of our own, which takes the other's place
            progress=progress,
            **settings,
        )


def _split_scale_by(options: argparse.Namespace) -> None:
    """Take COL=FILE apart, and refuse what makes no sense for cases of several scales."""
    if not hasattr(options, "scale_by"):
        return
    column, _, path = options.scale_by.partition("=")
    if not (column and path):
        raise BadOption(f"--scale-by takes COL=FILE, such as prompt=scales.csv, not {column!r}.")
    options.scale_by, options.scale_file = column, InputPath(path)
    refused = [name for name in NOT_WITH_SCALES if getattr(options, name, None) is not None]
    refused += [x for x in ("groups", "average_over") if getattr(options, x, column) != column]
    for name in refused:
        raise BadOption(
            f"{format_flag(name)} has no meaning for cases that have their own scales, which are "
            f"the clusters (--scale-by {column})."
        )


def _select_metrics(options: argparse.Namespace, required: "list[Metric]") -> Any:
    """Return the metrics, and those that are required and not among them."""
    if not required:
        return options.metrics
    from ordinate.results import select_metrics, split_metrics_by_summary

    of_labels, of_probabilities = split_metrics_by_summary(options.metrics)
    selected = select_metrics(of_labels)
    if any(map(_is_of_probabilities, required)) and not hasattr(options, "probabilities"):
        raise BadOption("--fail-under of probabilities needs the columns of --probabilities.")
    if hasattr(options, "probabilities"):
        from ordinate.results.calibration import select_probability_metrics
        from ordinate.results.label_sources import DEFAULT_BINS

        selected += select_probability_metrics(of_probabilities, DEFAULT_BINS)
    known = {metric.expression for metric in selected}
    return [*selected, *(one for one in required if one.expression not in known)]


def _parse_intervals(options: argparse.Namespace) -> "ConfidenceIntervals | None":
    method = options.interval_method
    stratified = method is not None and method.startswith(STRATIFIED)
    if stratified:
        method = method.removeprefix(STRATIFIED).removeprefix("-") or None
    return parse_intervals(options, method=method, stratified=stratified)


def _parse_threshold(text: str) -> "tuple[Metric, float]":
    """Return a metric, of labels or of probabilities, and what it has to reach."""
    from ordinate.metrics import get_summary_type
    from ordinate.results import needs_probabilities, split_metrics_by_summary

    _, of_probabilities = split_metrics_by_summary([text.partition("=")[0]])
    task = "probabilities" if needs_probabilities(of_probabilities) else "labels"
    return parse_metric_value("--fail-under", text, get_summary_type(task))


def _is_of_probabilities(metric: "Metric") -> bool:
    return metric.summary.__name__ == "Reliability"
