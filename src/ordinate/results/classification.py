"""The classification report: precision, recall and F1 of each level, in the usual layout."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ordinate.errors import replace_control_characters
from ordinate.metrics import find_metric
from ordinate.metrics.per_level import compute_level_metrics
from ordinate.render.text import measure_width
from ordinate.scale import PRESETS, Scale, resolve_scale
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
    return _format_report("CLASSIFICATION REPORT", y_true, y_pred, labels, target_names, digits)


def cefr_classification_report(
    y_true: Any,
    y_pred: Any,
    labels: Sequence[Hashable] | str | Scale | None = None,
    target_names: Sequence[str] | None = None,
    digits: int = 2,
) -> str:
    """Return the text report of a system on the CEFR levels A1 to C2."""
    declared = PRESETS["cefr"] if labels is None else labels
    title = "CEFR CLASSIFICATION REPORT (Multiclass)"
    return _format_report(title, y_true, y_pred, declared, target_names, digits)


def _format_report(
    title: str,
    y_true: Any,
    y_pred: Any,
    labels: Sequence[Hashable] | str | Scale | None,
    names: Sequence[str] | None,
    digits: int,
) -> str:
    scale = resolve_scale(labels, y_true, y_pred)
    scale = Scale(
        scale.labels, positions=scale.at, names=scale.names if names is None else list(names)
    )
    matrix = ConfusionMatrix.of(y_true, y_pred, scale)
    shown = [replace_control_characters(name) for name in scale.names]
    layout = _Layout(
        max(len("weighted avg"), *map(measure_width, shown)), max(9, digits + 3), digits
    )
    averages = [layout.row(name, row) for name, row in _compute_averages(matrix)]
    totals = [layout.total(name, find_metric(m)(matrix), matrix.n) for name, m in _TOTALS]
    levels = [layout.row(name, row) for name, row in _collect_level_rows(matrix, shown)]
    head = layout.line("", *_HEADER)
    blocks = [[RULE_LINE, title, RULE_LINE, head], levels, averages, totals]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


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
