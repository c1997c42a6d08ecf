"""The calibration report: bins and levels in the usual layout."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

from ordinate.errors import printable
from ordinate.render.text import width_of
from ordinate.results.calibration import Calibration, range_of
from ordinate.results.classification import RULE
from ordinate.scale import PRESETS, Scale, resolve


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
    return _report(title, y_true, y_pred_proba, labels, target_names, n_bins, digits)


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
    return _report(title, y_true, y_pred_proba, declared, target_names, n_bins, digits)


def _report(
    title: str,
    y_true: Any,
    y_pred_proba: Any,
    labels: Sequence[Hashable] | str | Scale | None,
    names: Sequence[str] | None,
    n_bins: int,
    digits: int,
) -> str:
    scale = resolve(labels, y_true, y_true)
    scale = Scale(scale.labels, positions=scale.at, names=scale.names if names is None else names)
    result = Calibration.of(
        y_true, y_pred_proba, scale=scale, metrics=["ece"], bins=n_bins, interval=None
    )
    (ece,) = result.metrics.values()
    blocks = [
        [RULE, title, RULE],
        [f"Expected Calibration Error (ECE): {ece.value:.{digits}f}"],
        ["Confidence Bins:", *_bin_lines(result, digits)],
        ["Per-Class Calibration:", *_level_lines(result, digits)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _bin_lines(result: Calibration, digits: int) -> list[str]:
    head = f"{'Range':<20} {'Count':>10} {'Accuracy':>12} {'Confidence':>12} {'Gap':>12}"
    lines = [head, "-" * 80]
    for row in result.bin_rows():
        cells = (_number(row[key], digits) for key in ("accuracy", "confidence", "gap"))
        span = f"{range_of(row, result.bins):<20} {row['count']:>10} "
        lines.append(span + " ".join(f"{cell:>12}" for cell in cells))
    return lines


def _level_lines(result: Calibration, digits: int) -> list[str]:
    shown = [printable(row["name"]) for row in result.level_rows()]
    width = max(11, *map(width_of, shown))
    lines = [f"{'Class':<{width}} {'Avg Prob':>12} {'Accuracy':>12} {'Count':>10}", "-" * 80]
    for name, row in zip(shown, result.level_rows(), strict=True):
        cells = (_number(row[key], digits) for key in ("average_probability", "accuracy"))
        start = name + " " * (width - width_of(name))
        lines.append(start + "".join(f" {cell:>12}" for cell in cells) + f" {row['count']:>10}")
    return lines


def _number(value: float, digits: int) -> str:
    return "n/a" if math.isnan(value) else f"{value:.{digits}f}"
