"""`ordinate evaluate --task values`: files of targets and predicted quantities in, a report out."""

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordinate.cli.options import Input, delimiter, names
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.inference import Estimate, Intervals
    from ordinate.metrics import Metric
    from ordinate.readers.item_columns import ValueItems
    from ordinate.readers.regression import CountedValues, ValueColumns
    from ordinate.results import Evaluation, Origin
    from ordinate.results.regression import Values
    from ordinate.summaries.normalization import Normalization
    from ordinate.summaries.prediction_intervals import Bounds

ONLY_LABELS = (
    *("gold", "scale", "map", "second_gold", "losses", "items", "probabilities"),
    *("renormalize", "stratified"),
)
ONLY_VALUES = (
    *("target", "unit", "train_mean", "train_std", "normalized", "lower", "upper", "alpha"),
    *("order", "residuals", "against", "shifted"),
)
FROM_HISTOGRAM = {"median_absolute_error", "error_percentile"}
POISSON = "poisson"  # the one method of intervals that people may ask for
ALPHA = 0.1
OF_ITEMS = ("residuals", "against", "bins")  # options that look at single items
NOT_GROUPED = "Limits of these errors take items for units, not the groups."


def add_values(parser: argparse.ArgumentParser) -> None:
    """Add the options of quantities."""
    add = parser.add_argument_group("quantities (--task values)").add_argument
    add("--target", metavar="COL", help="column of the targets")
    add("--unit", metavar="UNIT", help="of the targets, such as kg/m³")
    add("--train-mean", metavar="X", type=float, help="mean of the training targets")
    add("--train-std", metavar="X", type=float, help="standard deviation of the training targets")
    add(
        "--normalized",
        action="store_true",
        help="the columns are on the normalised scale of --train-mean and --train-std",
    )
    add("--lower", metavar="COL", help="column of the lower bounds of predictive intervals")
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
    add("--shifted", metavar="FILE", type=Input, help="a shifted test set, to put beside this one")


def evaluated(
    options: argparse.Namespace, judged: "list[Metric]", how: "Intervals | None"
) -> "Values":
    """Read, evaluate, and add what was asked for; metrics that are judged are among them."""
    from dataclasses import replace

    from ordinate.results import chosen
    from ordinate.results.regression import DEFAULT_METRICS
    from ordinate.summaries.regression import Moments

    _refuse_labels(options)
    _refuse_misfits(options)
    metrics = chosen(options.metrics or DEFAULT_METRICS, Moments)
    known = {metric.expression for metric in metrics}
    metrics += [m for m in judged if m.summary is Moments and m.expression not in known]
    bounds = [m for m in judged if m.summary is not Moments]
    run = _Run(options, _training(options), how, metrics, bounds)
    result, items = run.evaluated(options.files, _columns(options), run.further())
    parts = [] if items is None else run.of_items(result, items)
    if options.shifted is not None:
        parts.append(run.shifted(result))
    return replace(
        result,
        sections=tuple(block for part in parts for block in part.blocks),
        further={part.name: part.result.to_dict() for part in parts},
        further_rows=(*_predictive_rows(result), *(row for part in parts for row in part.rows())),
    )


# --- what does not fit ---------------------------------------------------------------------------


def refuse_values(options: argparse.Namespace) -> None:
    """Refuse what is said of quantities where there are labels."""
    for name in ONLY_VALUES:
        if getattr(options, name) is not None and getattr(options, name) is not False:
            raise BadOption(f"{_option(name)} is for --task values.")
    if options.interval_method == POISSON:
        raise BadOption(f"--interval-method {POISSON} is for --task values.")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _refuse_labels(options: argparse.Namespace) -> None:
    for name in ONLY_LABELS:
        if getattr(options, name):
            raise BadOption(f"{_option(name)} is for labels, not with --task values.")
    if options.interval_method not in {None, POISSON}:
        raise BadOption(
            f"--interval-method {options.interval_method} is for labels. Leave it out, or draw "
            f"items again: {POISSON}."
        )
    if options.missing == "worst":
        raise BadOption("A quantity has no worst answer: use --missing drop, or error.")


def _refuse_misfits(options: argparse.Namespace) -> None:
    """Refuse, before anything is read, what does not go together."""
    if options.alpha is not None and not 0.0 < options.alpha < 1.0:
        raise BadOption(f"--alpha takes a number between 0 and 1, not {options.alpha:g}.")
    if options.alpha is not None and options.lower is None:
        raise BadOption("--alpha says what the intervals of --lower and --upper leave out.")
    if options.bins is not None:
        edges_of(options.bins)
    if options.residuals is not None and options.weights is not None:
        raise BadOption("--residuals takes items one by one. Leave out --residuals or --weights.")
    if options.interval_method == POISSON and options.groups is not None:
        raise BadOption(f"{POISSON} draws items one by one. Leave it out, or leave out --groups.")
    if options.shifted == "-" and "-" in options.files:
        raise BadOption("Standard input is one file: name another one, or the shifted one.")
    asked = [_option(name) for name in OF_ITEMS if getattr(options, name) is not None]
    asked += [f"--interval-method {POISSON}"] * (options.interval_method == POISSON)
    if asked and options.gold_file is not None:
        raise BadOption(f"{asked[0]} needs the targets in the file of the predictions.")
    paths = [*options.files, *([options.shifted] * (options.interval_method == POISSON))]
    if asked and any(_passes(path) for path in paths if path is not None):
        raise BadOption(f"{asked[0]} reads the items twice, so it needs a file, not a stream.")


def _passes(path: str) -> bool:
    """Tell whether something can be read once only."""
    if path == "-":
        return True
    try:
        return Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir())
    except (OSError, ValueError):
        return False


def edges_of(text: str) -> list[float]:
    """Return the edges between levels of a quantity."""
    from itertools import pairwise

    try:
        edges = [float(part) for part in names("--bins", text)]
    except ValueError:
        edges = []
    finite = bool(edges) and all(math.isfinite(edge) for edge in edges)
    if not finite or any(low >= high for low, high in pairwise(edges)):
        raise BadOption(f"--bins takes rising edges between levels, such as 500,600, not {text!r}.")
    return edges


def _training(options: argparse.Namespace) -> "Normalization | None":
    from ordinate.summaries.normalization import Normalization

    if options.train_mean is None and options.train_std is None:
        if options.normalized:
            raise BadOption("--normalized needs --train-mean and --train-std.")
        return None
    if options.train_mean is None or options.train_std is None:
        raise BadOption("A normalisation has two numbers: --train-mean and --train-std.")
    return Normalization(options.train_mean, options.train_std)


def _columns(options: argparse.Namespace) -> "ValueColumns":
    from ordinate.readers.regression import ValueColumns

    return ValueColumns(
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
        delimiter=delimiter(options.delimiter),
        encoding=options.encoding,
    )


# --- one run -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
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
class _Run:
    """What all files of a run share."""

    options: argparse.Namespace
    training: "Normalization | None"
    how: "Intervals | None"
    metrics: "list[Metric]"
    bounds: "list[Metric]"  # of predictive intervals, that are judged

    @property
    def level(self) -> float | None:
        """The level of the intervals, None for none."""
        return None if self.how is None else self.how.level

    @property
    def features(self) -> tuple[str, ...]:
        """The columns by which errors are looked at."""
        return names("--residuals", self.options.residuals) if self.options.residuals else ()

    @property
    def rivals(self) -> tuple[str, ...]:
        """The columns of other models' predictions."""
        return names("--against", self.options.against) if self.options.against else ()

    def further(self) -> tuple[str, ...] | None:
        """Return the further columns of the parts that look at items, None without such parts."""
        asked = any(getattr(self.options, name) is not None for name in OF_ITEMS)
        return (*self.features, *self.rivals) if asked else None

    def evaluated(
        self, files: list[str], columns: "ValueColumns", further: tuple[str, ...] | None
    ) -> "tuple[Values, ValueItems | None]":
        """Return the result of files, and their items where a part or the draws need them."""
        from ordinate.readers.item_columns import read_items

        found = self._summed(files, columns)
        result = self._with_bounds(self._result(found), found)
        poisson = self.options.interval_method == POISSON and self.how is not None
        if further is None and not poisson:
            return result, None
        items = read_items(files, columns, found, further or ())
        if self.options.normalized and self.training is not None:
            items = items.denormalized(self.training, self.rivals)
        return (self._redrawn(result, items) if poisson else result), items

    def _summed(self, files: list[str], columns: "ValueColumns") -> "CountedValues":
        from ordinate.cli.progress import watch
        from ordinate.readers.regression import sum_files

        constants: dict[str, float | None] = {"mean": None, "median": None}
        if self.training is not None:
            given = 0.0 if self.options.normalized else self.training.mean
            constants = {"train_mean": given, **constants}
        missing = self.options.missing
        return sum_files(files, columns, constants=constants, missing=missing, watch=watch)

    def _result(self, found: "CountedValues") -> "Values":
        from ordinate.results.regression import Values

        return Values.from_table(
            self._turned(found.table),
            self.metrics,
            unit=self.options.unit,
            normalization=self.training,
            by=[(name, self._turned(part)) for name, part in found.by],
            groups=None if found.groups is None else self._turned(found.groups),
            previous=None if found.previous is None else self._turned(found.previous),
            interval=self.how,
            origin=self._origin(found),
        )

    def _origin(self, found: "CountedValues") -> "Origin":
        from ordinate.results import Origin

        rough = [m.name for m in self.metrics if m.name in FROM_HISTOGRAM]
        named = " and ".join(dict.fromkeys(rough))
        note = f"Of files, {named} is at most half a per cent from the exact value."
        notes = (*found.notes, note) if rough else found.notes
        return Origin(found.target, found.predicted, found.files, found.joined, notes)

    def _turned(self, table: Any) -> Any:
        """Return a summary in the unit of the targets."""
        if not self.options.normalized or self.training is None:
            return table
        return table.scaled(self.training.std, self.training.mean)

    # --- predictive intervals ----------------------------------------------------------------

    def _with_bounds(self, result: "Values", found: "CountedValues") -> "Values":
        from dataclasses import replace

        if found.bounds is None:
            return result
        grouped = found.bounds_groups
        by: dict[Any, Any] = {name: self._predictive(part) for name, part in found.bounds_by}
        return replace(
            result,
            predictive=self._predictive(found.bounds if grouped is None else grouped),
            by={name: replace(part, predictive=by[name]) for name, part in result.by.items()},
        )

    def _predictive(self, table: "Bounds") -> "dict[str, Estimate]":
        """Return the metrics of predictive intervals, of items or of groups of them."""
        from ordinate.results.regression import predictive

        if self.options.normalized and self.training is not None:
            table = table.scaled(self.training.std)
        return predictive(table, alpha_of(self.options), self.how, self.bounds)

    # --- parts -------------------------------------------------------------------------------

    def _redrawn(self, result: "Values", items: "ValueItems") -> "Values":
        """Return the result with limits from Poisson draws of the items."""
        from dataclasses import replace

        by = {name: self._drawn(part, items.of(name)) for name, part in result.by.items()}
        return replace(self._drawn(result, items), by=by)

    def _drawn(self, result: "Values", items: "ValueItems") -> "Values":
        from dataclasses import replace

        from ordinate.inference.regression import poisson_draws, poisson_estimates

        if self.how is None or not len(items.table):
            return result
        draws = poisson_draws(items.y, items.p, self.how, items.weights)
        found = poisson_estimates(result.wanted, result.table, draws, self.how)
        return replace(result, metrics=found)

    def of_items(self, result: "Values", items: "ValueItems") -> list[_Part]:
        """Return the parts that look at single items."""
        parts = []
        if self.options.residuals is not None:
            parts.append(self._residuals(items))
        if self.rivals:
            parts.append(self._comparison(items))
        if self.options.bins is not None:
            parts.append(self._levels(result, items))
        return parts

    def _residuals(self, items: "ValueItems") -> _Part:
        from ordinate.results.residuals import residuals

        table = items.table
        found = residuals(
            items.y,
            items.p,
            {name: table[name] for name in self.features},
            unit=self.options.unit,
            interval=self.level,
            names=table.places if len(table.files) > 1 else None,
            rows=table.row,
        )
        grouped = items.groups is not None and self.level is not None
        return _Part("residuals", found, [*found.blocks(), *([NOT_GROUPED] * grouped)])

    def _comparison(self, items: "ValueItems") -> _Part:
        from ordinate.results.regression_comparison import compare_values

        given = len(items.table)
        items = items.answered(self.rivals, self.options.missing)
        own = items.predicted
        if own in self.rivals:
            raise BadOption(f"--against names other models, and {own!r} is the one evaluated.")
        found = compare_values(
            items.y,
            {name: items.table[name] for name in (own, *self.rivals)},
            unit=self.options.unit,
            weights=items.weights,
            groups=items.groups,
            interval=self.level,
        )
        left = f"Compared on the {found.n:,} of {given:,} items that every model predicts."
        return _Part("comparison", found, [*([left] * (found.n < given)), *found.blocks()])

    def _levels(self, result: "Values", items: "ValueItems") -> _Part:
        from dataclasses import replace

        from ordinate.results import Origin

        found = _as_levels(edges_of(self.options.bins), items, self.how)
        origin = result.origin
        found = replace(found, origin=Origin(origin.gold, origin.predicted, origin.files))
        document = found.document()
        return _Part("levels", found, [f"As levels: {document.title}.", *document.blocks])

    def shifted(self, result: "Values") -> _Part:
        """Return the shifted test set beside this one; it has targets of its own."""
        from dataclasses import replace

        from ordinate.results.distribution_shift import beside

        apart: Any = dict.fromkeys(("by", "lower", "upper", "order", "gold_file", "id"))
        columns = replace(_columns(self.options), row_order=False, **apart)
        other, _ = self.evaluated([self.options.shifted], columns, None)
        found = beside(result, other)
        return _Part("shifted", found, found.blocks())


def alpha_of(options: argparse.Namespace) -> float:
    """Return the share of targets that predictive intervals should leave out."""
    return ALPHA if options.alpha is None else float(options.alpha)


def _predictive_rows(result: "Values") -> list[dict[str, Any]]:
    """Return flat records of predictive intervals."""
    from ordinate.metrics import find
    from ordinate.results.regression_text import flat, predictive_unit
    from ordinate.summaries.prediction_intervals import Bounds

    return [
        {"part": "predictive", "group": group, "metric": name}
        | flat(one)
        | {"unit": predictive_unit(find(name, Bounds), result.unit), "n": part.table.n}
        for group, part in [("", result), *result.named_groups()]
        for name, one in part.predictive.items()
    ]


# --- levels ---------------------------------------------------------------------------------------


def _as_levels(edges: list[float], items: "ValueItems", how: "Intervals | None") -> "Evaluation":
    """Evaluate quantities as ordered levels, cut at the edges."""
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
