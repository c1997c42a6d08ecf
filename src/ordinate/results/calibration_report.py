"""The calibration report: bins and levels in the usual layout."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

from ordinate.errors import replace_control_characters
from ordinate.render.text import measure_width
from ordinate.results.calibration import Calibration, format_bin_range
from ordinate.results.classification import RULE_LINE
from ordinate.scale import PRESETS, Scale, resolve_scale


def calibration_report(
    y_true: Any,
    y_pred_proba: Any,
    labels: Sequence[Hashable] | str | Scale | None = None,
    target_names: Sequence[str] | None = None,
    n_bins: int = 10,
    digits: int = 2,
) -> str:
    """Return the text report of probabilities on any scale; `labels` is the scale, lowest first."""
    title = "CALIBRATION REPORT (Soft Probabilities)"
    return _format_report(title, y_true, y_pred_proba, labels, target_names, n_bins, digits)


def cefr_calibration_report(
    y_true: Any,
    y_pred_proba: Any,
    labels: Sequence[Hashable] | str | Scale | None = None,
    target_names: Sequence[str] | None = None,
    n_bins: int = 10,
    digits: int = 2,
) -> str:
    """Return the text report of probabilities on the CEFR levels A1 to C2."""
    declared = PRESETS["cefr"] if labels is None else labels
    title = "CEFR CALIBRATION REPORT (Soft Probabilities)"
    return _format_report(title, y_true, y_pred_proba, declared, target_names, n_bins, digits)


def _format_report(
    title: str,
    y_true: Any,
    y_pred_proba: Any,
    labels: Sequence[Hashable] | str | Scale | None,
    names: Sequence[str] | None,
    n_bins: int,
    digits: int,
) -> str:
    scale = resolve_scale(labels, y_true, y_true)
    scale = Scale(scale.labels, positions=scale.at, names=scale.names if names is None else names)
    result = Calibration.of(
        y_true, y_pred_proba, scale=scale, metrics=["ece"], bins=n_bins, interval=None
    )
    (ece,) = result.metrics.values()
    blocks = [
        [RULE_LINE, title, RULE_LINE],
        [f"Expected Calibration Error (ECE): {ece.value:.{digits}f}"],
        ["Confidence Bins:", *_format_bins(result, digits)],
        ["Per-Class Calibration:", *_format_levels(result, digits)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


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
