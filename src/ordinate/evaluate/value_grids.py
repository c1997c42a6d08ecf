"""Values in words and grids."""

import math
from dataclasses import replace
from typing import Any

from ordinate.evaluate.evaluation import BETTER
from ordinate.evaluate.values import Values
from ordinate.inference import Estimate
from ordinate.inference.groups import VERY_FEW
from ordinate.report import Document, Grid
from ordinate.report.document import Cell, shown

SHARES = {
    "r2": "R² = 1 - RMSE²/σ²: the share of the variance that is explained",
    "relative_accuracy": "1 - RMSE/σ: not R²",
    "rmse_share": "RMSE/σ",
    "skill": "1 - RMSE/baseline RMSE: the improvement over the constant prediction",
}
METHODS = {
    "delta": "the delta method",
    "t": "Student's t over groups",
    "ranks": "ranks",
    "poisson": "Poisson bootstrap",
    "wilson": "Wilson",
}


def describe(result: Values) -> Document:
    """Return the report: errors in their unit, shares by their names, baselines, subgroups."""
    unit = f" in {result.unit}" if result.unit else ""
    blocks: list[str | Grid] = [_source(result), _metrics(result), *_surety(result)]
    blocks += [*_shares(result), _sigmas(result), _baselines(result), *_normalized(result)]
    blocks += [*_predictive(result), *_groups(result), *result.sections]
    return Document(f"{result.table.n:,} values{unit}", tuple(blocks))


def _source(result: Values) -> str:
    origin, table = result.origin, result.table
    parts = [f"Target: {origin.gold}. Predicted: {origin.predicted}."]
    if origin.files:
        parts.insert(0, f"Read from {', '.join(origin.files)}.")
    if table.dropped:
        parts.append(f"Dropped for a missing value: {table.dropped:,} items.")
    return " ".join([*parts, *origin.notes])


def _metrics(result: Values) -> Grid:
    title = () if result.interval is None else (f"{100 * result.interval.level:g} % interval",)
    header = ("metric", "better", "value", *title, *(("unit",) if result.unit else ()))
    rows = []
    for metric in result.wanted:
        found = result.metrics[metric.expression]
        row: list[Cell] = [metric.expression, BETTER[metric.direction], number(found.value)]
        row += [] if result.interval is None else [limits(found)]
        row += [result.unit_of(metric)] if result.unit else []
        rows.append(tuple(row))
    return Grid("Metrics", header, tuple(rows), left=2)


def number(value: float) -> Cell:
    """Return a value with the digits that its size asks for."""
    if math.isnan(value) or value == 0:
        return shown(value)
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if abs(value) < 1e4 else 0
    return f"{value:.{digits}f}" if 1e-4 <= abs(value) < 1e9 else f"{value:.4g}"


def limits(found: Estimate) -> Cell:
    """Return the limits of a value, and nothing where there are none."""
    if math.isnan(found.low) or math.isnan(found.high):
        return None
    return f"{number(found.low)} to {number(found.high)}"


def amount(gap: Estimate, unit: str | None) -> str:
    """Return the size of a difference with its limits: '3.2 kg/m³ (1.1 to 5.3)'."""
    if gap.value < 0:
        gap = replace(gap, value=-gap.value, low=-gap.high, high=-gap.low)
    reach = limits(gap)
    value = f"{number(gap.value)} {unit}" if unit else str(number(gap.value))
    return f"{value} ({reach})" if reach else value


def flat(one: Estimate) -> dict[str, Any]:
    """Return a value with its limits as the cells of a record."""
    keys = ("value", "low", "high", "method", "note")
    return {key: getattr(one, key) for key in keys}


def _surety(result: Values) -> list[str]:
    if result.interval is None:
        return []
    methods: dict[str, list[str]] = {}
    for name, found in result.metrics.items():
        if found.method is not None:
            methods.setdefault(METHODS[found.method], []).append(name)
    lines = [f"Intervals by {how}: {', '.join(names)}." for how, names in methods.items()]
    lines += [
        f"No interval for {name}: {found.note}."
        for name, found in result.metrics.items()
        if found.method is None
    ]
    if result.groups is not None:
        few = " So few groups leave the limits unsure." if result.groups < VERY_FEW else ""
        lines.append(f"Items come in {result.groups:,} groups, taken as units.{few}")
    return [" ".join(lines)]


def _shares(result: Values) -> list[Grid]:
    rows = tuple(
        (name, number(result.metrics[name].value), words)
        for name, words in SHARES.items()
        if name in result.metrics
    )
    return (
        [Grid("Four shares that are not the same", ("metric", "value", "what it is"), rows)]
        if rows
        else []
    )


def _sigmas(result: Values) -> str:
    unit = f" {result.unit}" if result.unit else ""
    here = f"σ of the evaluated targets is {number(result.sigma)}{unit} (in R², relative accuracy)."
    training = result.normalization
    if training is None:
        return here
    return (
        f"{here} σ of the training targets is {number(training.std)}{unit}, which turns errors on "
        "the normalised scale into this unit; their mean is not added to an error."
    )


def _baselines(result: Values) -> Grid:
    rows = tuple(
        (
            baseline.name,
            None if baseline.constant is None else number(baseline.constant),
            number(baseline.rmse),
            number(baseline.mae),
            baseline.note,
        )
        for baseline in result.baselines
    )
    return Grid("Baselines", ("always", "prediction", "rmse", "mae", "note"), rows)


def _normalized(result: Values) -> list[Grid]:
    rows = tuple(
        (name, number(result.metrics[name].value), number(value))
        for name, value in result.normalized().items()
    )
    header = ("metric", result.unit or "in its unit", "normalised")
    return [Grid("On both scales", header, rows)] if rows else []


def _predictive(result: Values) -> list[Grid]:
    rows = tuple(
        (name, number(found.value), limits(found)) for name, found in result.predictive.items()
    )
    level = 95 if result.interval is None else 100 * result.interval.level
    header = ("metric", "value", f"{level:g} % interval")
    return [Grid("Predictive intervals", header, rows)] if rows else []


def _groups(result: Values) -> list[Grid]:
    groups = result.named_groups()
    if not groups:
        return []
    header = ("metric", "(all)", *(name for name, _ in groups))
    counts: tuple[Cell, ...] = ("items", result.table.n, *(part.table.n for _, part in groups))
    rows: list[tuple[Cell, ...]] = [
        (name, cell(found), *(cell(part.metrics[name]) for _, part in groups))
        for name, found in result.metrics.items()
    ]
    return [Grid("Groups", header, (counts, *rows))]


def cell(found: Estimate) -> Cell:
    """Return a value with its limits in one cell."""
    reach = limits(found)
    return number(found.value) if reach is None else f"{number(found.value)} ({reach})"
