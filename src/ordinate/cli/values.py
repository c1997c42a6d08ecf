"""`ordinate evaluate --task values`: files of targets and predicted quantities in, a report out."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.options import delimiter, names
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.data.values import CountedValues
    from ordinate.evaluate import Evaluation
    from ordinate.evaluate.values import Values
    from ordinate.inference import Intervals
    from ordinate.metrics import Metric
    from ordinate.summary.normalization import Normalization

ONLY_LABELS = ("gold", "scale", "map", "second_gold", "losses", "items", "probabilities")


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
    add("--alpha", metavar="X", type=float, default=0.1, help="what they leave out (default: 0.1)")
    add("--order", metavar="COL", help="column of times, for the baseline of the previous value")
    add(
        "--residuals",
        metavar="COLS",
        nargs="?",
        const="",
        help="look at the errors by prediction, by these columns, and at the largest",
    )
    add("--against", metavar="COLS", help="columns of other models' predictions, to compare with")
    add("--shifted", metavar="FILE", help="a shifted test set, to put beside this one")


def evaluated(
    options: argparse.Namespace, judged: "list[Metric]", how: "Intervals | None"
) -> "Values":
    """Read, evaluate, and add what was asked for; metrics that are judged are among them."""
    from dataclasses import replace

    from ordinate.evaluate import chosen
    from ordinate.evaluate.values import DEFAULT_METRICS
    from ordinate.summary.moments import Moments

    _refuse_labels(options)
    training = _training(options)
    options.metrics = chosen(options.metrics or DEFAULT_METRICS, Moments)
    known = {metric.expression for metric in options.metrics}
    options.metrics += [metric for metric in judged if metric.expression not in known]
    found = _summed(options, options.files, training)
    result = _result(options, found, training, how)
    sections: list[Any] = []
    further: dict[str, Any] = {}
    for name, part in _parts(options, result, training, how):
        sections += part.blocks()
        further[name] = part.to_dict()
    return replace(result, sections=tuple(sections), further=further)


def _refuse_labels(options: argparse.Namespace) -> None:
    for name in ONLY_LABELS:
        if getattr(options, name):
            raise BadOption(f"--{name.replace('_', '-')} is for labels, not with --task values.")
    if options.missing == "worst":
        raise BadOption("A quantity has no worst answer: use --missing drop, or error.")


def _training(options: argparse.Namespace) -> "Normalization | None":
    from ordinate.summary.normalization import Normalization

    if options.train_mean is None and options.train_std is None:
        if options.normalized:
            raise BadOption("--normalized needs --train-mean and --train-std.")
        return None
    if options.train_mean is None or options.train_std is None:
        raise BadOption("A normalisation has two numbers: --train-mean and --train-std.")
    return Normalization(options.train_mean, options.train_std)


def _summed(
    options: argparse.Namespace, files: list[str], training: "Normalization | None"
) -> "CountedValues":
    from ordinate.cli.progress import watch
    from ordinate.data.values import ValueColumns, sum_files

    columns = ValueColumns(
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
    constants: dict[str, float | None] = {"mean": None, "median": None}
    if training is not None:
        given = 0.0 if options.normalized else training.mean
        constants = {"train_mean": given, **constants}
    return sum_files(files, columns, constants=constants, missing=options.missing, watch=watch)


def _result(
    options: argparse.Namespace,
    found: "CountedValues",
    training: "Normalization | None",
    how: "Intervals | None",
) -> "Values":
    from dataclasses import replace

    from ordinate.evaluate import Origin
    from ordinate.evaluate.values import Values
    from ordinate.inference.predictive import bounds_estimate

    turned: Any = (lambda table: table) if not options.normalized else _denormalizing(training)
    result = Values.from_table(
        turned(found.table),
        options.metrics,
        unit=options.unit,
        normalization=training,
        by=[(name, turned(part)) for name, part in found.by],
        groups=None if found.groups is None else turned(found.groups),
        previous=None if found.previous is None else turned(found.previous),
        interval=how,
        origin=Origin(found.target, found.predicted, found.files, found.joined, found.notes),
    )
    if found.bounds is None:
        return result
    if options.normalized:
        raise BadOption("Bounds are evaluated in the unit of the target, not with --normalized.")
    level = 0.95 if how is None else how.level
    asked = ("interval_coverage", "mean_interval_width", f"winkler(alpha={options.alpha})")
    bounds = {name: bounds_estimate(name, found.bounds, level) for name in asked}
    return replace(result, predictive=bounds)


def _denormalizing(training: "Normalization | None") -> Any:
    if training is None:
        raise BadOption("--normalized needs --train-mean and --train-std.")
    return lambda table: table.scaled(training.std, training.mean)


# --- further parts -------------------------------------------------------------------------------


def _parts(
    options: argparse.Namespace,
    result: "Values",
    training: "Normalization | None",
    how: "Intervals | None",
) -> "list[tuple[str, Any]]":
    parts: list[tuple[str, Any]] = []
    level = 0.95 if how is None else how.level
    if options.residuals is not None or options.against is not None or options.bins is not None:
        parts += _of_items(options, result, training, level)
    if options.shifted is not None:
        from ordinate.evaluate.beside import beside

        other = _result(options, _summed(options, [options.shifted], training), training, how)
        parts.append(("shifted", beside(result, other)))
    return parts


def _of_items(
    options: argparse.Namespace, result: "Values", training: "Normalization | None", level: float
) -> "list[tuple[str, Any]]":
    """Return the parts that look at single items, which are read once more."""
    from ordinate.data.rows import read_columns
    from ordinate.evaluate.residuals import residuals
    from ordinate.evaluate.value_comparison import compare_values

    if options.gold_file is not None:
        raise BadOption("--residuals, --against and --bins need targets in the same file.")
    target, predicted = result.origin.gold, result.origin.predicted
    features = names("--residuals", options.residuals) if options.residuals else ()
    rivals = names("--against", options.against) if options.against else ()
    wanted = [target, predicted, *features, *rivals]
    read = read_columns(options.files, wanted, delimiter(options.delimiter), options.encoding)
    if options.normalized and training is not None:
        for name in {target, predicted, *rivals}:
            read[name] = training.denormalize(read[name])
    parts: list[tuple[str, Any]] = []
    if options.residuals is not None:
        columns = {name: read[name] for name in features}
        found = residuals(read[target], read[predicted], columns, unit=options.unit, interval=level)
        parts.append(("residuals", found))
    if rivals:
        models = {name: read[name] for name in (predicted, *rivals)}
        compared = compare_values(read[target], models, unit=options.unit, interval=level)
        parts.append(("comparison", compared))
    if options.bins is not None:
        levels = _as_levels(options.bins, read[target], read[predicted])
        parts.append(("levels", _Titled("As levels", levels)))
    return parts


class _Titled:
    """A result as a part of another report."""

    def __init__(self, title: str, result: "Evaluation") -> None:
        self.title, self.result = title, result

    def blocks(self) -> list[Any]:
        """Return a heading and the blocks of the report."""
        found = self.result.document()
        return [f"{self.title}: {found.title}.", *found.blocks]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return self.result.to_dict()


def _as_levels(text: str, targets: Any, predictions: Any) -> "Evaluation":
    """Evaluate quantities as ordered levels, cut at the edges."""
    from itertools import pairwise

    import numpy as np

    from ordinate.evaluate import evaluate

    try:
        edges = [float(part) for part in names("--bins", text)]
    except ValueError:
        edges = []
    if not edges or any(low >= high for low, high in pairwise(edges)):
        raise BadOption(f"--bins takes rising edges between levels, such as 500,600, not {text!r}.")
    shown = [f"{edge:g}" for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(shown)]
    labels = [f"below {shown[0]}", *between, f"{shown[-1]} and above"]
    gold, predicted = (
        [labels[k] for k in np.searchsorted(edges, column, side="right")]
        for column in (targets, predictions)
    )
    return evaluate(gold, predicted, scale=labels)
