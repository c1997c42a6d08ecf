"""`ordinate evaluate --task regression`: files of targets and predictions in, a report out."""

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath, parse_names
from ordinate.cli.options import (
    parse_delimiter,
)
from ordinate.errors import BadOption
from ordinate.settings import format_flag

if TYPE_CHECKING:
    from ordinate.inference import ConfidenceIntervals, Estimate
    from ordinate.metrics import Metric
    from ordinate.readers.item_columns import RegressionItems
    from ordinate.readers.regression import RegressionColumns, RegressionData
    from ordinate.results import Evaluation, Origin
    from ordinate.results.regression import RegressionEvaluation
    from ordinate.summaries.normalization import Normalization
    from ordinate.summaries.prediction_intervals import PredictionIntervals

LABEL_OPTIONS = (
    *("gold", "scale", "map", "second_rater", "error_attribution", "items", "probabilities"),
    *("renormalize", "stratified"),
)
REGRESSION_OPTIONS = (
    *("target", "unit", "train_mean", "train_std", "normalized", "lower", "upper", "alpha"),
    *("order", "residuals", "against", "shifted"),
)
HISTOGRAM_METRICS = {"median_absolute_error", "error_percentile"}
POISSON = "poisson"  # the one method of intervals that people may ask for
ALPHA = 0.1
ITEM_OPTIONS = ("residuals", "against", "bins")  # options that look at single items
NOT_GROUPED_NOTE = "Confidence intervals of these errors take items for units, not the groups."


def add_regression_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of regression."""
    add = parser.add_argument_group("regression (--task regression)").add_argument
    add("--target", metavar="COL", help="column of the targets")
    add("--unit", metavar="UNIT", help="of the targets, such as kg/m³")
    add("--train-mean", metavar="X", type=float, help="mean of the training targets")
    add("--train-std", metavar="X", type=float, help="standard deviation of the training targets")
    add(
        "--normalized",
        action="store_true",
        help="the columns are on the normalised scale of --train-mean and --train-std",
    )
    add("--lower", metavar="COL", help="column of the lower bounds of prediction intervals")
    add("--upper", metavar="COL", help="column of their upper bounds")
    add("--alpha", metavar="X", type=float, help=f"what they leave out (default: {ALPHA})")
    add("--order", metavar="COL", help="column of times, for the baseline of the previous value")
    add(
        "--residuals",
        metavar="COLS",
        nargs="?",
        const="",
        help="look at the errors by prediction, by these columns, and at the largest",
    )
    add("--against", metavar="COLS", help="columns of other models' predictions, to compare with")
    add(
        "--shifted",
        metavar="FILE",
        type=InputPath,
        help="a shifted test set, to put beside this one",
    )


def evaluate_regression_files(
    options: argparse.Namespace, required: "list[Metric]", how: "ConfidenceIntervals | None"
) -> "RegressionEvaluation":
    """Read, evaluate, and add the requested parts; `required` metrics are among them."""
    from dataclasses import replace

    from ordinate.results import select_metrics
    from ordinate.results.regression import DEFAULT_METRICS
    from ordinate.summaries.regression import Moments

    _refuse_label_options(options)
    _refuse_conflicts(options)
    metrics = select_metrics(options.metrics or DEFAULT_METRICS, Moments)
    known = {metric.expression for metric in metrics}
    metrics += [m for m in required if m.summary is Moments and m.expression not in known]
    bounds = [m for m in required if m.summary is not Moments]
    run = _RegressionRun(options, _parse_normalization(options), how, metrics, bounds)
    result, items = run.evaluate_files(options.files, _parse_columns(options), run.further())
    parts = [] if items is None else run.build_item_parts(result, items)
    if options.shifted is not None:
        parts.append(run.shifted(result))
    return replace(
        result,
        sections=tuple(block for part in parts for block in part.blocks),
        further={part.name: part.result.to_dict() for part in parts},
        further_rows=tuple(row for part in parts for row in part.rows()),
    )


# --- conflicting options -------------------------------------------------------------------------


def refuse_regression_options(options: argparse.Namespace) -> None:
    """Refuse options of regression where there are labels."""
    for name in REGRESSION_OPTIONS:
        if getattr(options, name) is not None and getattr(options, name) is not False:
            raise BadOption(f"{format_flag(name)} is for --task regression.")
    if options.interval_method == POISSON:
        raise BadOption(f"--interval-method {POISSON} is for --task regression.")


def _refuse_label_options(options: argparse.Namespace) -> None:
    for name in LABEL_OPTIONS:
        if getattr(options, name):
            raise BadOption(f"{format_flag(name)} is for labels, not with --task regression.")
    if options.interval_method not in {None, POISSON}:
        raise BadOption(
            f"--interval-method {options.interval_method} is for labels. Leave it out, or "
            f"resample items: {POISSON}."
        )
    if options.missing == "worst":
        raise BadOption("A regression has no worst prediction: use --missing drop, or error.")


def _refuse_conflicts(options: argparse.Namespace) -> None:
    """Refuse, before anything is read, what does not go together."""
    if options.against:
        from ordinate.results.arguments import check_system_count

        check_system_count(1 + len(parse_names("--against", options.against)), "models")
    if options.alpha is not None and not 0.0 < options.alpha < 1.0:
        raise BadOption(f"--alpha takes a number between 0 and 1, not {options.alpha:g}.")
    if options.alpha is not None and options.lower is None:
        raise BadOption("--alpha says what the intervals of --lower and --upper leave out.")
    if options.bins is not None:
        parse_edges(options.bins)
    if options.residuals is not None and options.weights is not None:
        raise BadOption("--residuals takes items one by one. Leave out --residuals or --weights.")
    if options.interval_method == POISSON and options.groups is not None:
        raise BadOption(
            f"{POISSON} resamples items one by one. Leave it out, or leave out --groups."
        )
    if options.shifted == "-" and "-" in options.files:
        raise BadOption("Standard input is one file: name another one, or the shifted one.")
    asked = [format_flag(name) for name in ITEM_OPTIONS if getattr(options, name) is not None]
    asked += [f"--interval-method {POISSON}"] * (options.interval_method == POISSON)
    if asked and options.gold_file is not None:
        raise BadOption(f"{asked[0]} needs the targets in the file of the predictions.")
    paths = [*options.files, *([options.shifted] * (options.interval_method == POISSON))]
    if asked and any(_is_read_once(path) for path in paths if path is not None):
        raise BadOption(f"{asked[0]} reads the items twice, so it needs a file, not a stream.")


def _is_read_once(path: str) -> bool:
    """Tell whether something can be read once only."""
    if path == "-":
        return True
    try:
        return Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir())
    except (OSError, ValueError):
        return False


def parse_edges(text: str) -> list[float]:
    """Return the edges between levels of a target."""
    from itertools import pairwise

    try:
        edges = [float(part) for part in parse_names("--bins", text)]
    except ValueError:
        edges = []
    finite = bool(edges) and all(math.isfinite(edge) for edge in edges)
    if not finite or any(low >= high for low, high in pairwise(edges)):
        raise BadOption(f"--bins takes rising edges between levels, such as 500,600, not {text!r}.")
    return edges


def _parse_normalization(options: argparse.Namespace) -> "Normalization | None":
    from ordinate.summaries.normalization import Normalization

    if options.train_mean is None and options.train_std is None:
        if options.normalized:
            raise BadOption("--normalized needs --train-mean and --train-std.")
        return None
    if options.train_mean is None or options.train_std is None:
        raise BadOption("A normalisation has two numbers: --train-mean and --train-std.")
    return Normalization(options.train_mean, options.train_std)


def _parse_columns(options: argparse.Namespace) -> "RegressionColumns":
    from ordinate.readers.regression import RegressionColumns

    return RegressionColumns(
        target=options.target,
        predicted=options.predicted,
        weights=options.weights,
        by=options.by,
        groups=options.groups,
        lower=options.lower,
        upper=options.upper,
        order=options.order,
        gold_file=options.gold_file,
        id=options.id,
        row_order=options.row_order,
        delimiter=parse_delimiter(options.delimiter),
        encoding=options.encoding,
    )


# --- one run -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ReportPart:
    """A result that joins the report: its sentences and grids, its JSON, its records."""

    name: str
    result: Any
    blocks: list[Any]

    def rows(self) -> list[dict[str, Any]]:
        """Return flat records that say which part they are of."""
        found = []
        for row in self.result.rows():
            part = f"{self.name}: {row['part']}" if "part" in row else self.name
            found.append(row | {"part": part})
        return found


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
    def features(self) -> tuple[str, ...]:
        """The columns by which errors are looked at."""
        return parse_names("--residuals", self.options.residuals) if self.options.residuals else ()

    @property
    def rivals(self) -> tuple[str, ...]:
        """The columns of other models' predictions."""
        return parse_names("--against", self.options.against) if self.options.against else ()

    def further(self) -> tuple[str, ...] | None:
        """Return the further columns of the parts that look at items, None without such parts."""
        asked = any(getattr(self.options, name) is not None for name in ITEM_OPTIONS)
        return (*self.features, *self.rivals) if asked else None

    def evaluate_files(
        self, files: list[str], columns: "RegressionColumns", further: tuple[str, ...] | None
    ) -> "tuple[RegressionEvaluation, RegressionItems | None]":
        """Return the result of files, and their items where a part or the resamples need them."""
        from ordinate.readers.item_columns import read_items

        found = self._sum_files(files, columns)
        result = self._add_prediction_intervals(self._build_result(found), found)
        poisson = self.options.interval_method == POISSON and self.how is not None
        if further is None and not poisson:
            return result, None
        items = read_items(files, columns, found, further or ())
        if self.options.normalized and self.training is not None:
            items = items.denormalize_items(self.training, self.rivals)
        return (self._add_poisson_intervals(result, items) if poisson else result), items

    def _sum_files(self, files: list[str], columns: "RegressionColumns") -> "RegressionData":
        from ordinate.cli.progress import watch_queries
        from ordinate.readers.regression import sum_files

        constants: dict[str, float | None] = {"mean": None, "median": None}
        if self.training is not None:
            given = 0.0 if self.options.normalized else self.training.mean
            constants = {"train_mean": given, **constants}
        missing = self.options.missing
        return sum_files(files, columns, constants=constants, missing=missing, watch=watch_queries)

    def _build_result(self, found: "RegressionData") -> "RegressionEvaluation":
        from ordinate.results.regression import RegressionEvaluation

        return RegressionEvaluation.from_summary(
            self._denormalize_summary(found.moments),
            self.metrics,
            unit=self.options.unit,
            normalization=self.training,
            by=[(name, self._denormalize_summary(part)) for name, part in found.by],
            groups=None if found.groups is None else self._denormalize_summary(found.groups),
            previous=None if found.previous is None else self._denormalize_summary(found.previous),
            interval=self.how,
            origin=self._describe_origin(found),
        )

    def _describe_origin(self, found: "RegressionData") -> "Origin":
        from ordinate.results import Origin

        rough = [m.name for m in self.metrics if m.name in HISTOGRAM_METRICS]
        named = " and ".join(dict.fromkeys(rough))
        note = f"Of files, {named} is at most half a per cent from the exact value."
        notes = (*found.notes, note) if rough else found.notes
        return Origin(found.target, found.predicted, found.files, found.match_counts, notes)

    def _denormalize_summary(self, table: Any) -> Any:
        """Return a summary in the unit of the targets."""
        if not self.options.normalized or self.training is None:
            return table
        return table.scaled(self.training.std, self.training.mean)

    # --- prediction intervals ----------------------------------------------------------------

    def _add_prediction_intervals(
        self, result: "RegressionEvaluation", found: "RegressionData"
    ) -> "RegressionEvaluation":
        from dataclasses import replace

        if found.bounds is None:
            return result
        grouped = found.intervals_by_group
        by: dict[Any, Any] = {
            name: self._score_prediction_intervals(part)
            for name, part in found.intervals_by_subgroup
        }
        return replace(
            result,
            prediction_intervals=self._score_prediction_intervals(
                found.bounds if grouped is None else grouped
            ),
            by={
                name: replace(part, prediction_intervals=by[name])
                for name, part in result.by.items()
            },
        )

    def _score_prediction_intervals(self, table: "PredictionIntervals") -> "dict[str, Estimate]":
        """Return the metrics of prediction intervals, of items or of groups of them."""
        from ordinate.results.regression import evaluate_prediction_intervals

        if self.options.normalized and self.training is not None:
            table = table.scaled(self.training.std)
        return evaluate_prediction_intervals(
            table, parse_alpha(self.options), self.how, self.bounds
        )

    # --- parts -------------------------------------------------------------------------------

    def _add_poisson_intervals(
        self, result: "RegressionEvaluation", items: "RegressionItems"
    ) -> "RegressionEvaluation":
        """Return the result with confidence intervals from Poisson resamples of the items."""
        from dataclasses import replace

        by = {
            name: self._estimate_poisson_intervals(part, items.select_subgroup(name))
            for name, part in result.by.items()
        }
        return replace(self._estimate_poisson_intervals(result, items), by=by)

    def _estimate_poisson_intervals(
        self, result: "RegressionEvaluation", items: "RegressionItems"
    ) -> "RegressionEvaluation":
        from dataclasses import replace

        from ordinate.inference.regression import estimate_from_poisson, resample_poisson

        if self.how is None or not len(items.table):
            return result
        resamples = resample_poisson(items.y, items.p, self.how, items.weights)
        found = estimate_from_poisson(result.selected, result.summary, resamples, self.how)
        return replace(result, metrics=found)

    def build_item_parts(
        self, result: "RegressionEvaluation", items: "RegressionItems"
    ) -> list[_ReportPart]:
        """Return the parts that look at single items."""
        parts = []
        if self.options.residuals is not None:
            parts.append(self._build_residuals(items))
        if self.rivals:
            parts.append(self._build_comparison(items))
        if self.options.bins is not None:
            parts.append(self._levels(result, items))
        return parts

    def _build_residuals(self, items: "RegressionItems") -> _ReportPart:
        from ordinate.render import Document
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
        )
        grouped = items.groups is not None and self.level is not None
        notes = (NOT_GROUPED_NOTE,) if grouped else ()
        document = Document("Residuals", (found.document(),), notes=notes)
        return _ReportPart("residuals", found, [document])

    def _build_comparison(self, items: "RegressionItems") -> _ReportPart:
        from ordinate.results.regression_comparison import compare_regression

        given = len(items.table)
        items = items.select_predicted(self.rivals, self.options.missing)
        own = items.predicted
        if own in self.rivals:
            raise BadOption(f"--against names other models, and {own!r} is the one evaluated.")
        found = compare_regression(
            items.y,
            {name: items.table[name] for name in (own, *self.rivals)},
            unit=self.options.unit,
            weights=items.weights,
            groups=items.groups,
            interval=self.level,
        )
        left = f"Compared on the {found.n:,} of {given:,} items that every model predicts."
        return _ReportPart("comparison", found, [*([left] * (found.n < given)), found.document()])

    def _levels(self, result: "RegressionEvaluation", items: "RegressionItems") -> _ReportPart:
        from dataclasses import replace

        from ordinate.results import Origin

        found = _evaluate_as_levels(parse_edges(self.options.bins), items, self.how)
        origin = result.origin
        found = replace(found, origin=Origin(origin.gold, origin.predicted, origin.files))
        document = found.document()
        return _ReportPart("levels", found, [f"As levels: {document.title}.", document])

    def shifted(self, result: "RegressionEvaluation") -> _ReportPart:
        """Return the shifted test set beside this one; it has targets of its own."""
        from dataclasses import replace

        from ordinate.results.distribution_shift import evaluate_shift

        apart: Any = dict.fromkeys(("by", "lower", "upper", "order", "gold_file", "id"))
        columns = replace(_parse_columns(self.options), row_order=False, **apart)
        other, _ = self.evaluate_files([self.options.shifted], columns, None)
        found = evaluate_shift(result, other)
        return _ReportPart("shifted", found, [found.document()])


def parse_alpha(options: argparse.Namespace) -> float:
    """Return the share of targets that prediction intervals should leave out."""
    return ALPHA if options.alpha is None else float(options.alpha)


# --- levels ---------------------------------------------------------------------------------------


def _evaluate_as_levels(
    edges: list[float], items: "RegressionItems", how: "ConfidenceIntervals | None"
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
