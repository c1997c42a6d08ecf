"""Reports in scikit-learn's layout: of the levels of a classifier, and of its probabilities."""

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ordinate.errors import replace_control_characters
from ordinate.metrics import find_metric
from ordinate.metrics.per_level import compute_level_metrics
from ordinate.render.text import measure_width
from ordinate.results.calibration import Calibration, format_bin_range
from ordinate.scale import Scale, resolve_scale
from ordinate.summaries import ConfusionMatrix

RULE_LINE = "=" * 80


def classification_report(
    y_true: Any,
    y_pred: Any,
    labels: Sequence[Hashable] | str | Scale | None = None,
    target_names: Sequence[str] | None = None,
    digits: int = 2,
) -> str:
    """Return the text report of a system on any scale; `labels` is the scale, lowest first.

    Averages run over the levels that occur in gold or predictions, as `f1_macro` does.
    """
    scale = _name_levels(resolve_scale(labels, y_true, y_pred), target_names)
    matrix = ConfusionMatrix.of(y_true, y_pred, scale)
    shown = [replace_control_characters(name) for name in scale.names]
    layout = _Layout(
        max(len("weighted avg"), *map(measure_width, shown)), max(9, digits + 3), digits
    )
    averages = [layout.row(name, row) for name, row in _compute_averages(matrix)]
    totals = [layout.total(name, find_metric(m)(matrix), matrix.n) for name, m in _TOTALS]
    levels = [layout.row(name, row) for name, row in _collect_level_rows(matrix, shown)]
    head = layout.line("", *_HEADER)
    blocks = [[RULE_LINE, "CLASSIFICATION REPORT", RULE_LINE, head], levels, averages, totals]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def calibration_report(
    y_true: Any,
    y_pred_proba: Any,
    labels: Sequence[Hashable] | str | Scale | None = None,
    target_names: Sequence[str] | None = None,
    n_bins: int = 10,
    digits: int = 2,
) -> str:
    """Return the text report of probabilities on any scale; `labels` is the scale, lowest first."""
    scale = _name_levels(resolve_scale(labels, y_true, y_true), target_names)
    result = Calibration.of(
        y_true, y_pred_proba, scale=scale, metrics=["ece"], bins=n_bins, interval=None
    )
    (ece,) = result.metrics.values()
    blocks = [
        [RULE_LINE, "CALIBRATION REPORT (Soft Probabilities)", RULE_LINE],
        [f"Expected Calibration Error (ECE): {ece.value:.{digits}f}"],
        ["Confidence Bins:", *_format_bins(result, digits)],
        ["Per-Class Calibration:", *_format_levels(result, digits)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _name_levels(scale: Scale, names: Sequence[str] | None) -> Scale:
    """Return a scale whose levels have these names, for people."""
    shown = scale.names if names is None else list(names)
    return Scale(scale.labels, positions=scale.at, names=shown)


# --- levels --------------------------------------------------------------------------------------


_HEADER = ("precision", "recall", "f1-score", "support")
_TOTALS = (("accuracy", "accuracy"), ("adjacent accuracy", "accuracy_within"))


class _Layout(NamedTuple):
    """How wide the names and the numbers are, and how many digits numbers have."""

    names: int
    numbers: int
    digits: int

    def line(self, name: str, *cells: str) -> str:
        """Return a name and the cells after it, each with a space before it."""
        return (
            " " * (self.names - measure_width(name))
            + name
            + " "
            + "".join(f" {cell:>{self.numbers}}" for cell in cells)
        )

    def number(self, value: float) -> str:
        """Return a value with its digits."""
        return "n/a" if np.isnan(value) else f"{value:.{self.digits}f}"

    def row(self, name: str, row: list[float]) -> str:
        """Return the line of a level or of an average."""
        return self.line(name, *map(self.number, row[:-1]), f"{row[-1]:.0f}")

    def total(self, name: str, value: float, n: float) -> str:
        """Return the line of one number; a longer name takes the space before it."""
        start = f"{name:>{self.names}}"
        width = max(self.names + 2 + self.numbers - len(start), len(self.number(value)) + 1)
        return f"{start}{self.number(value):>{width}} {n:>{self.numbers}}"


def _collect_level_rows(matrix: ConfusionMatrix, names: list[str]) -> list[tuple[str, list[float]]]:
    metrics = compute_level_metrics(matrix)
    columns = (metrics.precision, metrics.recall, metrics.f1, matrix.gold)
    return [(name, [float(c[k]) for c in columns]) for k, name in enumerate(names)]


def _compute_averages(matrix: ConfusionMatrix) -> list[tuple[str, list[float]]]:
    metrics = compute_level_metrics(matrix)
    columns = [np.nan_to_num(c) for c in (metrics.precision, metrics.recall, metrics.f1)]
    total = float(matrix.total)
    return [
        ("macro avg", [*(float(c[metrics.occurs].mean()) for c in columns), total]),
        ("weighted avg", [*(float((c * matrix.gold_share).sum()) for c in columns), total]),
    ]


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
