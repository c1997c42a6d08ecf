"""`ordinate evaluate-regression`: files of targets and predictions in, a report out."""

import argparse
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ordinate.cli.file_options import add_column_options, open_rows
from ordinate.cli.flags import InputPath, add_flags, collect_given, parse_names
from ordinate.cli.options import (
    IntervalOptions,
    LabelOptions,
    add_command,
    add_file_option,
    add_metric_file_option,
    add_metrics_option,
    add_missing_option,
    add_output_options,
    add_threshold_option,
    check_thresholds,
    parse_intervals,
    parse_metric_value,
    write_report,
)
from ordinate.errors import BadOption
from ordinate.readers.columns import is_read_once
from ordinate.settings import format_flag

if TYPE_CHECKING:
    from ordinate.inference import ConfidenceIntervals, Estimate
    from ordinate.metrics import Metric
    from ordinate.readers.columns import ItemColumns
    from ordinate.readers.regression import RegressionData
    from ordinate.readers.tables import LazyTable
    from ordinate.results import Evaluation
    from ordinate.results.regression import RegressionEvaluation
    from ordinate.results.regression_rows import RegressionRows
    from ordinate.results.report_parts import ReportPart
    from ordinate.summaries.normalization import Normalization

STUDENTIZED = "studentized"
METHODS = ("delta", "t", "jackknife", STUDENTIZED)
RESAMPLING = f"--interval-method {STUDENTIZED}"
ALPHA = 0.1
ITEM_OPTIONS = ("residuals", "edges")  # options that look at single items
NOT_GROUPED_NOTE = (
    "Confidence intervals of bins, features and the trend take items for units, not the clusters."
)
NEEDED = ("target", "predicted")
COLUMNS = (
    *("target", "predicted", "weights", "by", "groups", "lower", "upper", "order"),
    *("gold_file", "id", "row_order"),
)
EXAMPLES = """examples:
  ordinate evaluate-regression densities.csv --target density --predicted model --unit kg/m³
  ordinate evaluate-regression densities.csv --target density --lower low --upper high --by family
  ordinate evaluate-regression densities.csv --target density --residuals family --edges 600,700
  ordinate evaluate-regression densities.csv --target density --fail-under rmse=40

exit codes: 0 done, 1 internal error, 2 bad input, 3 below --fail-under, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.readers.columns import ItemColumns

    parser = add_command(
        commands,
        "evaluate-regression",
        "Evaluate predicted against target values, in their unit: errors beside what constants "
        "reach, prediction intervals, subgroups, and on request the residuals, a "
        "shifted test set, and targets cut into levels.",
        EXAMPLES,
        exit_codes="",  # its own stand below the examples
    )
    group = parser.add_argument_group("input")
    add_file_option(group, "; several files, patterns, or - for standard input", nargs="*")
    add_column_options(parser, group, ItemColumns, COLUMNS, databases=True)
    add_missing_option(group)
    _add_target_options(parser)
    metrics = parser.add_argument_group("metrics")
    add_metrics_option(metrics)
    add_metric_file_option(metrics)
    _add_part_options(parser)
    group = parser.add_argument_group("confidence intervals (--interval none for none)")
    add_flags(group, IntervalOptions)
    group.add_argument(
        "--interval-method",
        metavar="METHOD",
        choices=METHODS,
        help=f"{', '.join(METHODS)} (default: studentized, which resamples items, for up to "
        "100,000 of them and 20 subgroups in files without --groups; jackknife with --groups; t "
        "for others)",
    )
    group = parser.add_argument_group("output")
    add_output_options(group)
    add_threshold_option(group)
    parser.set_defaults(run=run)


def _add_target_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("targets and prediction intervals").add_argument
    add("--unit", metavar="UNIT", help="of the targets, such as kg/m³")
    add("--train-mean", metavar="X", type=float, help="mean of the training targets")
    add("--train-std", metavar="X", type=float, help="standard deviation of the training targets")
    add(
        "--normalized",
        action="store_true",
        help="the columns are on the normalised scale of --train-mean and --train-std",
    )
    add(
        "--alpha",
        metavar="X",
        type=float,
        help=f"share of targets outside their prediction intervals (default: {ALPHA})",
    )


def _add_part_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("further parts of the report")
    add = group.add_argument
    add(
        "--residuals",
        metavar="COLS",
        nargs="?",
        const="",
        help="look at the errors by prediction, by these columns, and at the largest",
    )
    add(
        "--shifted",
        metavar="FILE",
        type=InputPath,
        help="a shifted test set, to put beside this one",
    )
    add_flags(group, LabelOptions, ("edges",))


def run(options: argparse.Namespace) -> int:
    """Evaluate, write the report, and compare it with --fail-under."""
    thresholds = [_parse_threshold(options, text) for text in options.fail_under]
    results: list[RegressionEvaluation] = []

    def evaluate() -> "RegressionEvaluation":
        results.append(_evaluate_files(options, [metric for metric, _ in thresholds]))
        return results[0]

    write_report(options, evaluate)
    return check_thresholds(options, results[0], thresholds)


def _evaluate_files(
    options: argparse.Namespace, required: "list[Metric]"
) -> "RegressionEvaluation":
    """Read, evaluate, and add the requested parts; `required` metrics are among them."""
    from ordinate.results import select_metrics
    from ordinate.results.regression import DEFAULT_METRICS
    from ordinate.summaries.regression import Moments

    _refuse_conflicts(options)
    metrics = select_metrics(options.metrics or DEFAULT_METRICS, Moments)
    known = {metric.expression for metric in metrics}
    metrics += [m for m in required if m.summary is Moments and m.expression not in known]
    bounds = [m for m in required if m.summary is not Moments]
    how = parse_intervals(options, method=options.interval_method)
    training = _parse_normalization(options)
    run = _RegressionRun(options, training, how, metrics, bounds)
    with open_rows(options, ("order", "shifted")) as table:
        if table is not None:
            return run.evaluate_table(table, _parse_columns(options))
    result, items = run.evaluate_files(options.files, _parse_columns(options), run.further())
    parts = [] if items is None else run.build_item_parts(result, items)
    if options.shifted is not None:
        parts.append(run.shifted(result))
    return result.add_parts(parts) if parts else result


# --- options -------------------------------------------------------------------------------------


def _refuse_conflicts(options: argparse.Namespace) -> None:
    """Refuse, before anything is read, what does not go together."""
    if options.missing == "worst":
        raise BadOption("A regression has no worst prediction: use --missing drop, or error.")
    if options.alpha is not None and not 0.0 < options.alpha < 1.0:
        raise BadOption(f"--alpha takes a number between 0 and 1, not {options.alpha:g}.")
    if options.alpha is not None and not hasattr(options, "lower"):
        raise BadOption("--alpha says what the intervals of --lower and --upper leave out.")
    options.edges = _parse_edges(options)
    if options.residuals is not None and hasattr(options, "weights"):
        raise BadOption("--residuals takes items one by one. Leave out --residuals or --weights.")
    if _resamples_on_request(options) and hasattr(options, "groups"):
        raise BadOption(f"Leave out --groups, or {RESAMPLING}: it resamples items one by one.")
    if options.shifted == "-" and "-" in options.files:
        raise BadOption("Standard input is one file: name another one, or the shifted one.")
    _refuse_streams(options)


def _refuse_streams(options: argparse.Namespace) -> None:
    """Refuse parts that look at items one by one where these cannot be read again."""
    asked = [format_flag(name) for name in ITEM_OPTIONS if getattr(options, name) is not None]
    resampled = _resamples_on_request(options)
    asked += [RESAMPLING] * resampled
    if asked and hasattr(options, "gold_file"):
        raise BadOption(f"{asked[0]} needs the targets in the file of the predictions.")
    paths = [*options.files, *([options.shifted] * resampled)]
    once = hasattr(options, "sql") or any(is_read_once(path) for path in paths if path is not None)
    if asked and once:
        what = "database" if hasattr(options, "sql") else "stream"
        raise BadOption(f"{asked[0]} reads the items twice, so it needs a file, not a {what}.")


def _resamples_on_request(options: argparse.Namespace) -> bool:
    return options.interval_method == STUDENTIZED and parse_intervals(options) is not None


def _parse_edges(options: argparse.Namespace) -> tuple[float, ...] | None:
    """Return the edges between levels of a target, if any were named."""
    from ordinate.scale.label_maps import check_edges

    return check_edges(getattr(options, "edges", ())) or None


def _parse_threshold(options: argparse.Namespace, text: str) -> "tuple[Metric, float]":
    """Return a metric and what it has to reach; intervals leave out what --alpha says."""
    from ordinate.metrics import get_summary_type
    from ordinate.metrics.catalogue import is_known_metric

    of_intervals = is_known_metric(text.rpartition("=")[0], "intervals")
    summary = get_summary_type("intervals" if of_intervals else "regression")
    metric, value = parse_metric_value("--fail-under", text, summary)
    if of_intervals:
        if not (hasattr(options, "lower") and hasattr(options, "upper")):
            raise BadOption(f"--fail-under {metric.name} needs the columns of --lower and --upper.")
        if "alpha" in metric.settings and not metric.options:
            metric = metric.with_options(alpha=_get_alpha(options))
    return metric, value


def _get_alpha(options: argparse.Namespace) -> float:
    """Return the share of targets that prediction intervals should leave out."""
    return ALPHA if options.alpha is None else float(options.alpha)


def _parse_normalization(options: argparse.Namespace) -> "Normalization | None":
    from ordinate.summaries.normalization import Normalization

    if options.train_mean is None and options.train_std is None:
        if options.normalized:
            raise BadOption("--normalized needs --train-mean and --train-std.")
        return None
    if options.train_mean is None or options.train_std is None:
        raise BadOption("A normalisation has two numbers: --train-mean and --train-std.")
    return Normalization(options.train_mean, options.train_std)


def _parse_columns(options: argparse.Namespace) -> "ItemColumns":
    from ordinate.readers.columns import ItemColumns

    return ItemColumns(**collect_given(options, ItemColumns))


# --- one run -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _RegressionRun:
    """What all files of a run share."""

    options: argparse.Namespace
    training: "Normalization | None"
    how: "ConfidenceIntervals | None"
    metrics: "list[Metric]"
    bounds: "list[Metric]"  # of prediction intervals, that are required

    @property
    def level(self) -> float | None:
        """The level of the intervals, None for none."""
        return None if self.how is None else self.how.level

    @property
    def summary_settings(self) -> "ConfidenceIntervals | None":
        """The settings of intervals before the items are there."""
        from dataclasses import replace

        if self.how is None or self.how.method != STUDENTIZED:
            return self.how
        return replace(self.how, method=None)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns by which errors are looked at."""
        return parse_names("--residuals", self.options.residuals) if self.options.residuals else ()

    def further(self) -> tuple[str, ...] | None:
        """Return the further columns of the parts that look at items, None without such parts."""
        asked = any(getattr(self.options, name) is not None for name in ITEM_OPTIONS)
        return self.features if asked else None

    def evaluate_files(
        self, files: list[str], columns: "ItemColumns", further: tuple[str, ...] | None
    ) -> "tuple[RegressionEvaluation, RegressionRows | None]":
        """Return the result of files, and their items where a part or the resamples need them."""
        from ordinate.cli.progress import watch_files
        from ordinate.results.regression_rows import read_regression_rows

        found = self._sum_files(files, columns)
        result = self._build_result(found, "files")
        resampled = self._is_resampled(files, columns, found)
        if further is None and not resampled:
            return result, None
        watch = partial(watch_files, roles=NEEDED)
        items = read_regression_rows(files, columns, found, further or (), watch=watch)
        if self.options.normalized and self.training is not None:
            items = items.denormalize_items(self.training)
        return (self._resample_items(result, items) if resampled else result), items

    def _is_resampled(
        self, files: list[str], columns: "ItemColumns", found: "RegressionData"
    ) -> bool:
        """Tell whether intervals are resampled: of independent items that can be read again."""
        from ordinate.inference.regression import count_items, is_resampled

        once = columns.gold_file is not None or any(map(is_read_once, files))
        if self.how is None or columns.groups is not None or once:
            return False
        return is_resampled(self.how, count_items(found.moments) + found.moments.dropped)

    def evaluate_table(self, table: "LazyTable", columns: "ItemColumns") -> "RegressionEvaluation":
        """Return the result of the rows of a database, which sums them up itself."""
        from ordinate.readers.regression import sum_table

        return self._build_result(sum_table(table, columns.arguments, **self._sums), "a database")

    def _sum_files(self, files: list[str], columns: "ItemColumns") -> "RegressionData":
        from ordinate.cli.progress import watch_files
        from ordinate.readers.regression import sum_files

        watch = partial(watch_files, roles=NEEDED)
        return sum_files(files, columns, watch=watch, **self._sums)

    @property
    def _sums(self) -> dict[str, Any]:
        """What readers are told: constant predictions, and what becomes of missing values."""
        constants: dict[str, float | None] = {"mean": None, "median": None}
        if self.training is not None:
            given = 0.0 if self.options.normalized else self.training.mean
            constants = {"train_mean": given, **constants}
        return {"constants": constants, "missing": self.options.missing}

    def _build_result(self, found: "RegressionData", source: str) -> "RegressionEvaluation":
        from ordinate.results.regression_sources import evaluate_regression_data

        return evaluate_regression_data(
            found,
            self.metrics,
            source=source,
            unit=self.options.unit,
            normalization=self.training,
            normalized=self.options.normalized,
            interval=self.summary_settings,
            alpha=_get_alpha(self.options),
            interval_metrics=self.bounds,
        )

    # --- parts -------------------------------------------------------------------------------

    def _resample_items(
        self, result: "RegressionEvaluation", items: "RegressionRows"
    ) -> "RegressionEvaluation":
        """Return the result with confidence intervals from resamples of the items."""
        from ordinate.inference.regression import count_items, estimate_from_items, is_resampled
        from ordinate.results.regression_sources import decide_against_constant

        how = self.how
        by: dict[Any, dict[str, Estimate]] = {}
        if how is None or not len(items.table):
            return result

        def estimate(part: "RegressionEvaluation", of: "RegressionRows") -> "dict[str, Estimate]":
            return estimate_from_items(part.selected, part.summary, of.y, of.p, how, of.weights)

        if result.by and is_resampled(how, count_items(result.summary), len(result.by)):
            parts = items.split_subgroups()
            by = {name: estimate(part, parts[name or None]) for name, part in result.by.items()}
        tests = decide_against_constant(result.summary, items.y, items.p, how, items.weights)
        return result.replace_estimates(estimate(result, items), how, by, tests)

    def build_item_parts(
        self, result: "RegressionEvaluation", items: "RegressionRows"
    ) -> "list[ReportPart]":
        """Return the parts that look at single items."""
        parts = []
        if self.options.residuals is not None:
            parts.append(self._build_residuals(result, items))
        if self.options.edges is not None:
            parts.append(self._levels(result, items))
        return parts

    def _build_residuals(
        self, result: "RegressionEvaluation", items: "RegressionRows"
    ) -> "ReportPart":
        from ordinate.results.report_parts import ReportPart
        from ordinate.results.residuals import analyse_residuals

        table = items.table
        found = analyse_residuals(
            items.y,
            items.p,
            {name: table[name] for name in self.features},
            unit=self.options.unit,
            interval=self.level,
            names=table.places if len(table.files) > 1 else None,
            rows=table.row,
        ).take_bias(result.metrics)
        grouped = items.groups is not None and self.level is not None
        notes = (NOT_GROUPED_NOTE,) if grouped else ()
        return ReportPart("residuals", found, notes=notes)

    def _levels(self, result: "RegressionEvaluation", items: "RegressionRows") -> "ReportPart":
        from dataclasses import replace

        from ordinate.results import Origin
        from ordinate.results.report_parts import ReportPart

        how = None if self.how is None else replace(self.how, method=None)
        found = _evaluate_as_levels(self.options.edges, items, how)
        origin = result.origin
        found = found.replace_fields(origin=Origin(origin.gold, origin.predicted, origin.files))
        return ReportPart("levels", found, opening="As levels")

    def shifted(self, result: "RegressionEvaluation") -> "ReportPart":
        """Return the shifted test set beside this one; it has targets of its own."""
        from dataclasses import replace

        from ordinate.results.distribution_shift import evaluate_shift
        from ordinate.results.report_parts import ReportPart

        apart: Any = dict.fromkeys(("by", "lower", "upper", "order", "gold_file", "id"))
        columns = replace(_parse_columns(self.options), row_order=False, **apart)
        other, _ = self.evaluate_files([self.options.shifted], columns, None)
        found = evaluate_shift(result, other)
        return ReportPart("shifted", found)


# --- levels ---------------------------------------------------------------------------------------


def _evaluate_as_levels(
    edges: tuple[float, ...], items: "RegressionRows", how: "ConfidenceIntervals | None"
) -> "Evaluation":
    """Evaluate regression targets as ordered levels, cut at the edges."""
    from itertools import pairwise

    import numpy as np

    from ordinate.results import evaluate

    shown = [repr(edge).removesuffix(".0") for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(shown)]
    labels = [f"below {shown[0]}", *between, f"{shown[-1]} and above"]
    gold, predicted = (
        [labels[k] for k in np.searchsorted(edges, column, side="right")]
        for column in (items.y, items.p)
    )
    return evaluate(
        gold,
        predicted,
        scale=labels,
        weights=items.weights,
        by=items.by,
        groups=items.groups,
        interval=how,
    )
