"""`ordinate evaluate`: files of gold levels and predictions or probabilities in, a report out."""

import argparse
import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordinate.cli.file_options import LABEL_COLUMNS, add_column_options, open_rows
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
    find_clusters,
    is_read_once,
    list_inputs,
    parse_intervals,
    parse_metric_value,
    parse_scale,
    read_renamed_labels,
    write_report,
)
from ordinate.errors import BadOption, shorten
from ordinate.settings import format_flag

if TYPE_CHECKING:
    from ordinate.inference import ConfidenceIntervals
    from ordinate.metrics import Metric
    from ordinate.readers.columns import ItemColumns
    from ordinate.results import Evaluation, Origin
    from ordinate.results.calibration import Calibration
    from ordinate.results.case_averages import CaseAverages, Cases
    from ordinate.scale import Scale

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
DEFAULT_BINS = 10

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
    from ordinate.cli.output import check_output_paths, replace_atomically

    thresholds = [_parse_threshold(text) for text in options.fail_under]
    _split_scale_by(options)
    check_output_paths(list_inputs(options), (options.output, options.items))
    required = [metric for metric, _ in thresholds]
    if any(map(_is_of_probabilities, required)) and not hasattr(options, "probabilities"):
        raise BadOption("--fail-under of probabilities needs the columns of --probabilities.")
    results: list[Evaluation | CaseAverages] = []

    def evaluate() -> "Evaluation | CaseAverages":
        results.append(_evaluate_files(options, required, items))
        return results[0]

    with replace_atomically(options.items, force=options.force) as items:
        write_report(options, evaluate)
    return check_thresholds(options, results[0], thresholds)


def _evaluate_files(
    options: argparse.Namespace, required: "list[Metric]", items: Path | None
) -> "Evaluation | CaseAverages":
    from ordinate.results import needs_probabilities, select_metrics, split_metrics_by_summary

    of_labels, of_probabilities = split_metrics_by_summary(options.metrics)
    metrics = _add_missing(
        select_metrics(of_labels), [one for one in required if not _is_of_probabilities(one)]
    )
    intervals = _parse_intervals(options)
    if hasattr(options, "scale_by"):
        return _evaluate_scaled_cases(options, metrics, intervals)
    columns = _parse_columns(options)
    if not columns.probabilities:
        if needs_probabilities(of_probabilities):
            raise BadOption("Metrics of probabilities need the columns of --probabilities.")
        if getattr(options, "renormalize", False):
            raise BadOption("--renormalize is for probabilities: name them (--probabilities).")
        return _evaluate_labels(options, columns, metrics, intervals, parse_scale(options), items)
    if options.missing == "worst":
        raise BadOption("An item without probabilities cannot be counted: use --missing drop.")
    scores = [one for one in required if _is_of_probabilities(one)]
    if not options.files:
        names = [*metrics, *_select_scores(of_probabilities, scores)]
        return _evaluate_database_rows(options, columns, names)
    if columns.predicted is None:
        return _evaluate_most_probable(options, columns, metrics, of_probabilities, scores)
    with _keep_standard_input(options.files) as rewind:
        found, by, _ = _evaluate_calibration(options, columns, of_probabilities, scores)
        rewind()
        scale = found.summary.scale
        result = _evaluate_labels(options, columns, metrics, intervals, scale, items)
    return result.add_calibration(found, by)


def _evaluate_labels(
    options: argparse.Namespace,
    columns: "ItemColumns",
    metrics: "list[Metric]",
    intervals: "ConfidenceIntervals | None",
    scale: "Scale | None",
    items: Path | None,
) -> "Evaluation":

    from ordinate.cli.progress import show_share, watch_files
    from ordinate.readers.confusion import count_files, count_table
    from ordinate.results.evaluation import evaluate_data

    with open_rows(options, ("scale_by",)) as table:
        if table is None:
            found = count_files(
                options.files,
                columns,
                scale,
                options.missing,
                look_at_items=_find_item_writer(items),
                watch=watch_files,
            )
        else:
            found = count_table(table, columns.arguments, scale, options.missing, columns.renamed)
    with show_share("evaluating") as progress:
        return evaluate_data(
            found,
            metrics,
            cases=_name_cases(options, found.group_values),
            attribution_metrics=options.error_attribution or (),
            interval=intervals,
            progress=progress,
        )


def _find_item_writer(path: Path | None) -> Callable[..., None]:
    """Return what writes the items that disagree, if anything is to."""
    from functools import partial

    if path is None:
        return lambda *_: None
    from ordinate.results.disagreements import check_suffix, write_disagreements

    check_suffix(path)
    return partial(write_disagreements, path)


# --- cases with their own scales -----------------------------------------------------------------


def _evaluate_scaled_cases(
    options: argparse.Namespace,
    metrics: "list[Metric]",
    intervals: "ConfidenceIntervals | None",
) -> "CaseAverages":
    """Evaluate each case on its own scale; they are counted on the labels of all scales."""
    from ordinate.cli.progress import watch_files
    from ordinate.readers.columns import ItemColumns
    from ordinate.readers.confusion import count_files
    from ordinate.results import Origin
    from ordinate.results.case_averages import Cases
    from ordinate.results.case_scales import (
        average_scaled_cases,
        check_case_scales,
        explain_joined_scales,
        join_scales,
    )
    from ordinate.scale.declaration_files import read_case_scales

    scales = read_case_scales(options.scale_file)
    given = collect_given(options, ItemColumns) | {"groups": options.scale_by}
    with explain_joined_scales():
        found = count_files(
            options.files,
            ItemColumns(**given, renamed=read_renamed_labels(options)),
            join_scales(scales.values()),
            options.missing,
            check_groups=lambda names: check_case_scales(names, scales),
            watch=watch_files,
        )
    assert found.groups is not None  # noqa: S101 - cases are the groups
    origin = Origin(found.gold, found.predicted, found.files, found.match_counts, found.notes)
    cases = Cases(found.group_values, options.scale_by, getattr(options, "fixed_cases", True))
    return average_scaled_cases(found.groups, cases, scales, metrics, intervals, origin)


def _split_scale_by(options: argparse.Namespace) -> None:
    """Take COL=FILE apart, and refuse what makes no sense for cases of several scales."""
    if not hasattr(options, "scale_by"):
        return
    column, _, path = options.scale_by.partition("=")
    if not (column and path):
        raise BadOption(f"--scale-by takes COL=FILE, such as prompt=scales.csv, not {column!r}.")
    options.scale_by, options.scale_file = column, InputPath(path)
    for name in ("average_over", "groups"):
        if getattr(options, name, column) != column:
            raise BadOption(
                f"--scale-by averages over the cases of {column}, which are the clusters: leave "
                f"out {format_flag(name)}."
            )
    for name in NOT_WITH_SCALES:
        if getattr(options, name, None) is not None:
            raise BadOption(
                f"{format_flag(name)} has no meaning for cases that have their own scales "
                "(--scale-by)."
            )


# --- probabilities -------------------------------------------------------------------------------


def _evaluate_calibration(
    options: argparse.Namespace, columns: "ItemColumns", metrics: Any, required: "list[Metric]"
) -> "tuple[Calibration, dict[Hashable, Calibration], Origin]":
    from functools import partial

    from ordinate.cli.progress import watch_files
    from ordinate.inference.probability_scores import JACKKNIFE_BLOCKS
    from ordinate.readers.reliability import count_probabilities
    from ordinate.results import Origin
    from ordinate.results.calibration import Calibration, collect_required_parts

    selected = _select_scores(metrics, required)
    bins = _find_bins(selected)
    evaluate = partial(
        Calibration.from_blocks,
        metrics=selected,
        bins=bins,
        interval=_parse_intervals(options),
        clustered=columns.groups is not None,
    )
    found = count_probabilities(
        options.files,
        columns,
        collect_required_parts(selected, bins),
        parse_scale(options),
        options.missing,
        blocks=JACKKNIFE_BLOCKS,
        finish_subgroup=evaluate,
        watch=watch_files,
    )
    result = evaluate(found.blocks).replace_fields(agreement=found.agreement)
    predicted = f"the most probable of {', '.join(found.columns)}"
    origin = Origin(found.gold, predicted, found.files, found.match_counts, found.notes)
    return result, found.by, origin


def _evaluate_most_probable(
    options: argparse.Namespace,
    columns: "ItemColumns",
    metrics: "list[Metric]",
    of_probabilities: Any,
    required: "list[Metric]",
) -> "Evaluation":
    """Evaluate the most probable levels; subgroups and clusters take the rows one by one."""
    from ordinate.results import Evaluation

    for name in ("items", "edges"):
        if getattr(options, name, None) is not None:
            flag = format_flag(name)
            raise BadOption(f"{flag} needs a column of predicted levels: name it (--predicted).")
    if any((columns.by, columns.groups, columns.second_rater)):
        names = [*metrics, *_select_scores(of_probabilities, required)]
        return _evaluate_probability_rows(options, columns, names)
    found, _, origin = _evaluate_calibration(options, columns, of_probabilities, required)
    result = Evaluation.from_summary(
        found.summary.argmax,
        metrics,
        attribution_metrics=options.error_attribution or (),
        interval=_parse_intervals(options),
        origin=origin,
    )
    return result.add_calibration(found, {})


def _evaluate_probability_rows(
    options: argparse.Namespace, columns: "ItemColumns", metrics: "list[Metric]"
) -> "Evaluation":
    """Evaluate probabilities of rows that are held in memory, by subgroup or in clusters."""
    from ordinate.cli.progress import watch_files
    from ordinate.results import Origin
    from ordinate.results.probability_rows import read_probability_items
    from ordinate.summaries.probabilities import NO_COLUMN, match_columns_to_levels

    if columns.gold_file is not None:
        raise BadOption(
            "--by, --groups and --second-rater with probabilities alone need the gold levels in "
            "the same file. Join the files, or name a column of predictions (--predicted)."
        )
    found = read_probability_items(options.files, columns, parse_scale(options), watch=watch_files)
    result = _evaluate_items(options, metrics, found.arguments)
    named = found.arguments["columns"]
    order = match_columns_to_levels(result.confusion_matrix.scale, named)
    predicted = f"the most probable of {', '.join(named[k] for k in order if k != NO_COLUMN)}"
    origin = Origin(found.gold, predicted, found.files, notes=(*found.notes, *result.origin.notes))
    return result.replace_fields(origin=origin)


def _evaluate_database_rows(
    options: argparse.Namespace, columns: "ItemColumns", metrics: "list[Metric]"
) -> "Evaluation":
    """Evaluate probabilities inside their database."""
    with open_rows(options) as table:
        assert table is not None  # noqa: S101 - there are no files
        named = {"probabilities": columns.probabilities, "label_map": columns.renamed}
        return _evaluate_items(options, metrics, {"data": table.rows, **columns.arguments, **named})


def _evaluate_items(
    options: argparse.Namespace, metrics: "list[Metric]", arguments: dict[str, Any]
) -> "Evaluation":
    """Evaluate columns with probabilities, or those of a table."""
    from ordinate.results import evaluate

    if _name_cases(options, ()) is not None:
        arguments["average_over"] = arguments.pop("groups")
        arguments["fixed_cases"] = getattr(options, "fixed_cases", False)
    return evaluate(
        scale=parse_scale(options),
        metrics=metrics,
        missing=options.missing,
        error_attribution=options.error_attribution or (),
        renormalize=getattr(options, "renormalize", False),
        bins=_find_bins(metrics),
        interval=_parse_intervals(options),
        **arguments,
    )


def _select_scores(metrics: Any, required: "list[Metric]") -> "list[Metric]":
    """Return the metrics of probabilities, and those that are required."""
    from ordinate.results.calibration import select_probability_metrics

    return _add_missing(select_probability_metrics(metrics, DEFAULT_BINS), required)


def _find_bins(metrics: "list[Metric]") -> int:
    """Return the bins of the report: those that a metric asks for, or the usual ones."""
    return next((one.options["bins"] for one in metrics if "bins" in one.options), DEFAULT_BINS)


@contextmanager
def _keep_standard_input(files: list[str]) -> Iterator[Callable[[], Any]]:
    """Give a function that rewinds standard input, so that it can be read twice."""
    for path in files:
        if path != "-" and is_read_once(path):
            raise BadOption(
                "--predicted with --probabilities reads the items twice: name a file in place of "
                f"{shorten(path)}."
            )
    if "-" not in files:
        yield lambda: None
        return
    given = sys.stdin
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(given.buffer, copy)
        copy.seek(0)
        sys.stdin = io.TextIOWrapper(copy)
        try:
            yield lambda: copy.seek(0)
        finally:
            sys.stdin.detach()
            sys.stdin = given


# --- options -------------------------------------------------------------------------------------


def _parse_columns(options: argparse.Namespace) -> "ItemColumns":
    from ordinate.readers.columns import ItemColumns

    given = collect_given(options, ItemColumns)
    given["probabilities"] = tuple(given.get("probabilities", ()))
    given["groups"] = find_clusters(options)
    return ItemColumns(**given, renamed=read_renamed_labels(options))


def _name_cases(options: argparse.Namespace, names: Sequence[str]) -> "Cases | None":
    """Return the cases that metrics are averaged over, if there are any."""
    from ordinate.results.case_averages import Cases

    if not hasattr(options, "average_over"):
        return None
    return Cases(names, options.average_over, getattr(options, "fixed_cases", False))


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


def _add_missing(metrics: "list[Metric]", required: "list[Metric]") -> "list[Metric]":
    """Return the metrics, and those that are required and not among them."""
    known = {metric.expression for metric in metrics}
    return [*metrics, *(one for one in required if one.expression not in known)]
