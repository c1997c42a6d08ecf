"""The classification report: precision, recall and F1 of each level, in the usual layout."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ordinate.metrics import find
from ordinate.metrics.per_level import per_level
from ordinate.report.text import clean, width_of
from ordinate.scale import PRESETS, Scale, resolve
from ordinate.summary import Confusion

RULE = "=" * 80


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
    return _report("CLASSIFICATION REPORT", y_true, y_pred, labels, target_names, digits)


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
    return _report(title, y_true, y_pred, declared, target_names, digits)


def _report(
    title: str,
    y_true: Any,
    y_pred: Any,
    labels: Sequence[Hashable] | str | Scale | None,
    names: Sequence[str] | None,
    digits: int,
) -> str:
    scale = resolve(labels, y_true, y_pred)
    scale = Scale(scale.labels, positions=scale.at, names=names or scale.names)
    table = Confusion.of(scale, y_true, y_pred)
    shown = [clean(name) for name in scale.names]
    width = max(len("weighted avg"), *map(width_of, shown))
    lines = [RULE, title, RULE]
    lines.append(" " * (width + 1) + "".join(f" {h:>9}" for h in _HEADER))
    lines.append("")
    lines += [_row(name, width, row, digits) for name, row in _levels(table, shown)]
    lines.append("")
    lines += [_row(name, width, row, digits) for name, row in _averages(table)]
    lines.append("")
    lines += [_total(name, width, table, metric, digits) for name, metric in _TOTALS]
    return "\n".join(lines) + "\n"


_HEADER = ("precision", "recall", "f1-score", "support")
_TOTALS = (("accuracy", "accuracy"), ("adjacent accuracy", "accuracy_within"))


def _levels(table: Confusion, names: list[str]) -> list[tuple[str, list[float]]]:
    parts = per_level(table)
    columns = (parts.precision, parts.recall, parts.f1, table.gold)
    return [(name, [float(c[k]) for c in columns]) for k, name in enumerate(names)]


def _averages(table: Confusion) -> list[tuple[str, list[float]]]:
    parts = per_level(table)
    columns = [np.nan_to_num(c) for c in (parts.precision, parts.recall, parts.f1)]
    total = float(table.total)
    return [
        ("macro avg", [*(float(c[parts.occurs].mean()) for c in columns), total]),
        ("weighted avg", [*(float((c * table.gold_share).sum()) for c in columns), total]),
    ]


def _row(name: str, width: int, row: list[float], digits: int) -> str:
    cells = "".join(f" {_number(x, digits):>9}" for x in row[:-1])
    return f"{' ' * (width - width_of(name))}{name} {cells} {row[-1]:>9.0f}"


def _number(value: float, digits: int) -> str:
    return "n/a" if np.isnan(value) else f"{value:.{digits}f}"


def _total(name: str, width: int, table: Confusion, metric: str, digits: int) -> str:
    value = _number(float(find(metric)(table)), digits)
    return f"{name:>{width}}{value:>{max(width + 11 - max(len(name), width), 1)}} {table.n:>9}"
