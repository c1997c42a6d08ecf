"""Reports in scikit-learn's layout: of the levels of a classifier, and of its probabilities."""

import math
from collections.abc import Hashable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, replace_control_characters, shorten
from ordinate.metrics import find_metric
from ordinate.metrics.per_level import compute_level_metrics
from ordinate.render.text import measure_width
from ordinate.results.arguments import advise_arguments_of_sklearn
from ordinate.results.calibration import Calibration, format_bin_range
from ordinate.scale import Scale, resolve_scale
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.probabilities import ColumnLabels
from ordinate.summaries.tabulation import convert_weights, encode_positions

RULE_LINE = "=" * 80
MOST_DIGITS = 100
NUMBER_WIDTH = 9  # of scikit-learn's columns, whatever the digits

Floats = NDArray[Any]
ZeroDivision = Literal["warn"] | float


@advise_arguments_of_sklearn
def classification_report(
    y_true: Any,
    y_pred: Any,
    labels: Sequence[Hashable] | str | Scale | None = None,
    target_names: Sequence[str] | None = None,
    digits: int = 2,
    *,
    sample_weight: Any = None,
    output_dict: bool = False,
    zero_division: ZeroDivision = "warn",
) -> str | dict[str, Any]:
    """Return the text report of a system on any scale; `labels` is the scale, lowest first.

    The lines are those of scikit-learn's report, and a title and adjacent accuracy beside them.
    `output_dict` returns the numbers by name instead.

    A level that is never predicted has no precision. Where scikit-learn warns and writes 0, this
    report writes n/a, and nan in the dictionary. Averages count it as 0 like those of scikit-learn,
    but run over the levels that occur in gold or predictions, as `f1_macro` does. With
    `zero_division` 0, 1 or nan, cells and averages are scikit-learn's: one of the `labels` that is
    absent counts as that number. Counts are integers even where no prediction is right, for which
    scikit-learn writes 1.0.

    >>> gold, predicted = ["low", "mid", "high"], ["low", "mid", "mid"]
    >>> report = classification_report(gold, predicted, "low,mid,high").splitlines()
    >>> print(report[5])
             low       1.00      1.00      1.00         1
    >>> print(report[7])
            high        n/a      0.00      0.00         1
    """
    check_zero_division(zero_division)
    _check_digits(digits)
    scale = _name_levels(resolve_scale(labels, y_true, y_pred), target_names)
    matrix = ConfusionMatrix.of(y_true, y_pred, scale, sample_weight)
    support = _sum_support(scale, y_true, y_pred, sample_weight)
    rows = _LevelRows.of(matrix, support, zero_division, declared=labels is not None)
    totals = {name: float(find_metric(metric)(matrix)) for name, metric in _TOTALS.items()}
    if output_dict:
        return _list_numbers(scale.names, rows, totals)
    shown = [replace_control_characters(name) for name in scale.names]
    width = max(len("weighted avg"), digits, *map(measure_width, shown))
    layout = _Layout(width, digits, "n/a" if zero_division == "warn" else "nan")
    n = rows.total_support
    blocks = [
        [RULE_LINE, "CLASSIFICATION REPORT", RULE_LINE, layout.line("", *_HEADER)],
        [layout.row(name, row) for name, row in zip(shown, rows.list_levels(), strict=True)],
        [
            *(layout.total(name, value, n) for name, value in totals.items()),
            *(layout.row(name, row) for name, row in rows.list_averages().items()),
        ],
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


@advise_arguments_of_sklearn
def cefr_classification_report(
    y_true: Any,
    y_pred: Any,
    labels: Sequence[Hashable] | str | Scale = "cefr",
    target_names: Sequence[str] | None = None,
    digits: int = 2,
    *,
    sample_weight: Any = None,
    output_dict: bool = False,
    zero_division: ZeroDivision = "warn",
) -> str | dict[str, Any]:
    """Return `classification_report` on the CEFR, A1 to C2, whichever of its levels occur.

    >>> report = cefr_classification_report(["A1", "B1"], ["A1", "B2"], output_dict=True)
    >>> report["accuracy"]
    0.5
    """
    return classification_report(
        y_true,
        y_pred,
        labels,
        target_names,
        digits,
        sample_weight=sample_weight,
        output_dict=output_dict,
        zero_division=zero_division,
    )


@advise_arguments_of_sklearn
def calibration_report(
    y_true: Any,
    y_pred_proba: Any,
    labels: Sequence[Hashable] | str | Scale | None = None,
    target_names: Sequence[str] | None = None,
    n_bins: int = 10,
    digits: int = 2,
    *,
    columns: ColumnLabels = None,
) -> str:
    """Return the text report of probabilities on any scale; `labels` is the scale, lowest first.

    `columns` are the labels of the columns of an array, such as `model.classes_`, or "scale" where
    they stand in its order.

    >>> gold, rows, order = ["low", "high"], [[0.1, 0.9], [0.6, 0.4]], ["high", "low"]
    >>> report = calibration_report(gold, rows, "low,high", columns=order)
    >>> print(report.splitlines()[4])
    Expected Calibration Error (ECE): 0.25
    """
    _check_digits(digits)
    scale = _name_levels(resolve_scale(labels, y_true, y_true), target_names)
    options: Any = {"columns": columns, "metrics": ["ece"], "bins": n_bins, "interval": None}
    result = Calibration.of(y_true, y_pred_proba, scale=scale, **options)
    (ece,) = result.metrics.values()
    blocks = [
        [RULE_LINE, "CALIBRATION REPORT (Soft Probabilities)", RULE_LINE],
        [f"Expected Calibration Error (ECE): {ece.value:.{digits}f}"],
        *([note] for note in result.notes),
        ["Confidence Bins:", *_format_bins(result, digits)],
        ["Per-Class Calibration:", *_format_levels(result, digits)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def cefr_calibration_report(
    y_true: Any,
    y_pred_proba: Any,
    labels: Sequence[Hashable] | str | Scale = "cefr",
    target_names: Sequence[str] | None = None,
    n_bins: int = 10,
    digits: int = 2,
    *,
    columns: ColumnLabels = None,
) -> str:
    """Return `calibration_report` on the CEFR; `columns` name those of some of its levels, too.

    >>> report = cefr_calibration_report(["A1"], [[0.8, 0.2]], columns=["A1", "A2"])
    >>> print(report.splitlines()[4])
    Expected Calibration Error (ECE): 0.20
    """
    return calibration_report(
        y_true, y_pred_proba, labels, target_names, n_bins, digits, columns=columns
    )


def _name_levels(scale: Scale, names: Sequence[str] | None) -> Scale:
    """Return a scale whose levels have these names, for people."""
    shown = scale.names if names is None else list(names)
    return Scale(scale.labels, positions=scale.at, names=shown)


# --- levels --------------------------------------------------------------------------------------


_HEADER = ("precision", "recall", "f1-score", "support")
_TOTALS = {"accuracy": "accuracy", "adjacent accuracy": "accuracy_within"}


def _check_digits(digits: int) -> None:
    if not (isinstance(digits, int) and 0 <= digits <= MOST_DIGITS):
        raise BadOption(f"digits={shorten(digits)} is not an integer from 0 to {MOST_DIGITS}.")


def check_zero_division(value: ZeroDivision) -> None:
    """Refuse what scikit-learn does not take, either."""
    numeric = isinstance(value, int | float) and (value in {0, 1} or math.isnan(value))
    if not (numeric or value == "warn"):
        raise BadOption(f"zero_division={shorten(value)} is none of 'warn', 0, 1 and nan.")


def _sum_support(scale: Scale, gold: Any, predicted: Any, weights: Any) -> Floats:
    """Return the weight of each gold level, rounded as the sums of scikit-learn are."""
    weighing = convert_weights(weights)
    levels = encode_positions(scale, gold, "gold", weighing)
    support = np.bincount(levels, weighing, len(scale))
    if weighing is None:
        return support
    right = levels == encode_positions(scale, predicted, "predicted", weighing)
    hits = np.bincount(levels, weighing * right, len(scale))
    return hits + (support - hits)


class _LevelRows(NamedTuple):
    """Precision, recall and F1 of each level, and how much the gold level weighs."""

    columns: list[Floats]
    support: Floats  # integers where nothing is weighted
    averaged: NDArray[np.bool]  # whether the macro average has the level
    undefined: float | None  # what stands for an undefined cell; None: 0 in averages alone

    @classmethod
    def of(
        cls,
        matrix: ConfusionMatrix,
        support: Floats,
        zero_division: ZeroDivision,
        *,
        declared: bool,
    ) -> "_LevelRows":
        """Return the rows of a confusion matrix, whose levels are declared or those of a preset."""
        metrics = compute_level_metrics(matrix)
        undefined = None if zero_division == "warn" else float(zero_division)
        columns = [metrics.precision, metrics.recall, metrics.f1]
        if undefined is not None:
            columns = [np.nan_to_num(column, nan=undefined) for column in columns]
        # With a number for what is undefined, each of scikit-learn's labels counts.
        averaged = metrics.occurs | (declared and undefined is not None)
        return cls(columns, support, averaged, undefined)

    @property
    def total_support(self) -> Any:
        """The weight of all items."""
        return self.support.sum()

    def list_levels(self) -> list[list[Any]]:
        """Return the cells of each level."""
        return [list(row) for row in zip(*self.columns, self.support, strict=True)]

    def list_averages(self) -> dict[str, list[Any]]:
        """Return the cells of each average."""
        weighing = {"macro avg": self.averaged.astype(float), "weighted avg": self.support}
        return {
            name: [*(self._average(x, weights) for x in self.columns), self.total_support]
            for name, weights in weighing.items()
        }

    def _average(self, values: Floats, weights: Floats) -> float:
        """Return the weighted mean of what is defined."""
        if self.undefined is None:
            values = np.nan_to_num(values)
        defined = ~np.isnan(values)
        if not defined.any():
            return math.nan
        weights = weights[defined]
        # As scikit-learn has it: where only levels without weight are defined, all count the same.
        return float(np.average(values[defined], weights=weights if weights.any() else None))


def _list_numbers(
    names: Sequence[str], rows: _LevelRows, totals: dict[str, float]
) -> dict[str, Any]:
    """Return the numbers of the report by name, as scikit-learn's output_dict has them."""

    def label(row: list[Any]) -> dict[str, float]:
        return dict(zip(_HEADER, map(float, row), strict=True))

    levels = {name: label(row) for name, row in zip(names, rows.list_levels(), strict=True)}
    return levels | totals | {name: label(row) for name, row in rows.list_averages().items()}


class _Layout(NamedTuple):
    """The layout of scikit-learn: how wide names are, and how many digits numbers have."""

    names: int
    digits: int
    undefined: str

    def line(self, name: str, *cells: Any) -> str:
        """Return a name and the cells after it, each with a space before it."""
        padding = " " * (self.names - measure_width(name))
        return f"{padding}{name} " + "".join(f" {cell:>{NUMBER_WIDTH}}" for cell in cells)

    def number(self, value: float) -> str:
        """Return a value with its digits."""
        return self.undefined if math.isnan(value) else f"{value:.{self.digits}f}"

    def row(self, name: str, row: list[Any]) -> str:
        """Return the line of a level or of an average."""
        return self.line(name, *map(self.number, row[:-1]), row[-1])

    def total(self, name: str, value: float, n: Any) -> str:
        """Return the line of one number; a longer name takes the space before it."""
        before = len(self.line("", "", ""))
        start = f"{name:>{self.names}}".ljust(before)
        return f"{start} {self.number(value):>{NUMBER_WIDTH}} {n:>{NUMBER_WIDTH}}"


# --- probabilities --------------------------------------------------------------------------------


def _format_bins(result: Calibration, digits: int) -> list[str]:
    head = f"{'Range':<20} {'Count':>10} {'Accuracy':>12} {'Confidence':>12} {'Gap':>12}"
    lines = [head, "-" * 80]
    for row in result.list_bins():
        cells = (_format_number(row[key], digits) for key in ("accuracy", "confidence", "gap"))
        span = f"{format_bin_range(row, result.bins):<20} {row['count']:>10} "
        lines.append(span + " ".join(f"{cell:>12}" for cell in cells))
    return lines


def _format_levels(result: Calibration, digits: int) -> list[str]:
    shown = [replace_control_characters(row["name"]) for row in result.list_levels()]
    width = max(11, *map(measure_width, shown))
    lines = [f"{'Class':<{width}} {'Avg Prob':>12} {'Accuracy':>12} {'Count':>10}", "-" * 80]
    for name, row in zip(shown, result.list_levels(), strict=True):
        cells = (_format_number(row[key], digits) for key in ("average_probability", "accuracy"))
        start = name + " " * (width - measure_width(name))
        lines.append(start + "".join(f" {cell:>12}" for cell in cells) + f" {row['count']:>10}")
    return lines


def _format_number(value: float, digits: int) -> str:
    return "n/a" if math.isnan(value) else f"{value:.{digits}f}"
