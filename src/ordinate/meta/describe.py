"""A judgement of metrics in words and grids."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ordinate.meta.judged import Judged, Judgement
from ordinate.report import Document, Grid
from ordinate.report.document import Cell, between, shown

FEW = 10  # systems or test cases
MOST_FILES = 12  # named
MOST_BESIDE = 8  # systems whose table fits on a page; JSON has all
MOST_SYSTEMS = 30  # in one grid


def describe(result: Judgement) -> Document:
    """Return the report: what captures most, the metrics, their agreement, the systems."""
    blocks: list[str | Grid] = [_source(result), conclusion(result), _coverage(result)]
    blocks += [_how_to_read(result), _trust(result), _alike(result), _systems(result)]
    blocks += [*_irregular(result), *notes(result)]
    cases = f"{result.cases:,} test cases"
    title = f"{len(result.judged)} metrics on {len(result.panel.systems)} systems in {cases}"
    return Document(title, tuple(blocks))


def conclusion(result: Judgement) -> str:
    """Say which metric captures most, and whether that is sure."""
    best, references = result.best, _and(m.expression for m in result.references)
    if math.isnan(best.coverage.value):
        return f"No metric has a coverage of {references}: {best.coverage.note}."
    itself = ", one of them," if result.is_reference(best.metric) else ""
    parts = [f"{best.metric.expression}{itself} captures most of {references}: {_value(best)}."]
    others = [one for one in result.ranked if not result.is_reference(one.metric)]
    if itself and others and not math.isnan(others[0].coverage.value):
        name = others[0].metric.expression
        parts.append(f"Of the metrics that are no references, {name} does: {_value(others[0])}.")
    behind = [one for one in result.ranked if one.behind is not None]
    sure = [one.metric.expression for one in behind if one.behind and one.behind.high < 0]
    unsure = [one.metric.expression for one in behind if one.metric.expression not in sure]
    if sure:
        parts.append(f"It surely captures more than {_and(sure)}.")
    if unsure:
        parts.append(f"It cannot be told apart from {_and(unsure)}.")
    return " ".join(parts)


def notes(result: Judgement) -> list[str]:
    """Return what a reader should know before trusting the numbers."""
    found = list(result.origin.notes)
    if result.was_split:
        found.append(
            "No test cases are named: the items were split at random into "
            f"{result.cases} parts of equal size (seed {result.how.seed})."
        )
    systems = len(result.panel.systems)
    few = [f"{systems} systems"] if systems < FEW else []
    few += [f"{result.cases} test cases"] if result.cases < FEW else []
    if few:
        found.append(f"{' and '.join(few)} are few: all limits are rough.")
    if result.silent:
        found.append(
            f"A reference is undefined in {_percent(result.silent)} of the systems' test cases, "
            "where nobody improves on anybody."
        )
    found += _undefined(result)
    lost = max(
        (one.coverage.undefined_share for one in result.judged if not one.refused), default=0
    )
    if 0 < lost < 1:
        found.append(f"Up to {_percent(lost)} of the draws have no coverage and are left out.")
    return found


def _undefined(result: Judgement) -> list[str]:
    """Say why metrics have no values, those with the same reason together."""
    by_reason = defaultdict(list)
    for one in result.judged:
        if one.reason is not None:
            by_reason[one.reason].append(one.metric.expression)
    return [f"Undefined, {_and(names)}: {reason}." for reason, names in by_reason.items()]


# --- grids ---------------------------------------------------------------------------------------


def _source(result: Judgement) -> str:
    origin, panel = result.origin, result.panel
    parts = [f"Gold: {origin.gold}; {panel.n:,} items on {panel.scale}."]
    if origin.files:
        more = len(origin.files) - MOST_FILES
        named = ", ".join(origin.files[:MOST_FILES]) + (f" and {more} more" if more > 0 else "")
        parts.insert(0, f"Read from {named}.")
    if panel.dropped:
        parts.append(f"Dropped for a missing label in any column: {panel.dropped:,} items.")
    if (panel.rows == len(panel.scale)).any():
        parts.append("Missing predictions count as the worst answer.")
    return " ".join(parts)


def _coverage(result: Judgement) -> Grid:
    level = f"{100 * result.how.level:g} % interval"
    header = ("metric", "coverage", level, "behind the best", level)
    rows = tuple(_coverage_row(result, one) for one in result.ranked)
    references = _and(metric.expression for metric in result.references)
    return Grid(f"Coverage of {references}", header, rows)


def _coverage_row(result: Judgement, one: Judged) -> tuple[Cell, ...]:
    found, behind = one.coverage, one.behind
    row = (_name(result, one), found.value, between(found.low, found.high))
    if behind is None:
        return (*row, None, None)
    return (*row, behind.value, between(behind.low, behind.high))


def _how_to_read(result: Judgement) -> str:
    how = result.how
    return (
        "Coverage is the rank correlation, over pairs of systems, of a metric's differences with "
        "the unanimous improvement for all references; a metric that is a reference (*) has a "
        f"head start. Limits are from {how.draws:,} draws (seed {how.seed}) of test cases and "
        "systems, never of pairs; those of differences hold for all pairs of metrics at once."
    )


def _trust(result: Judgement) -> Grid:
    level = f"{100 * result.how.level:g} % interval"
    header = ("metric", "robustness", level, "told apart", "stability", "undefined")
    rows = tuple(
        (
            _name(result, one),
            one.robustness.value,
            between(one.robustness.low, one.robustness.high),
            _percent(one.discriminative_power),
            one.stability,
            _percent(one.undefined),
        )
        for one in result.ranked
    )
    title = f"Rankings of systems (pairs told apart at alpha = {result.how.alpha:g})"
    return Grid(title, header, rows)


def _alike(result: Judgement) -> Grid:
    """Return for each metric the one that ranks the systems most and least alike."""
    names = [one.metric.expression for one in result.judged]
    places = {one.metric.expression: index for index, one in enumerate(result.judged)}
    rows: list[tuple[Cell, ...]] = []
    for one in result.ranked:
        own = places[one.metric.expression]
        others = result.agreement[own].copy()
        others[own] = math.nan
        if np.isnan(others).all():
            rows.append((_name(result, one), None, None, None, None))
            continue
        most, least = int(np.nanargmax(others)), int(np.nanargmin(others))
        alike = (names[most], float(others[most]), names[least], float(others[least]))
        rows.append((_name(result, one), *alike))
    header = ("metric", "most like", "agreement", "least like", "agreement")
    title = "Agreement of metrics (Spearman over systems); JSON has all pairs"
    return Grid(title, header, tuple(rows))


def _systems(result: Judgement) -> Grid:
    """Return the unanimous improvement of systems: of all pairs, or of each over all others."""
    names, table = result.panel.systems, result.unanimous
    mean = table.sum(axis=1) / (len(names) - 1)
    order = np.argsort(-mean, kind="stable")
    title = "Unanimous improvement ratio"
    if len(names) <= MOST_BESIDE:
        header = ("system", "mean", *(f"over {names[index]}" for index in order))
        rows: list[tuple[Cell, ...]] = [
            (names[index], float(mean[index]), *_over(table[index], index, order))
            for index in order
        ]
        return Grid(title, header, tuple(rows))
    better, worse = (table > 0).sum(axis=1), (table < 0).sum(axis=1)
    rows = [
        (names[index], float(mean[index]), int(better[index]), int(worse[index]))
        for index in order[:MOST_SYSTEMS]
    ]
    more = len(names) - MOST_SYSTEMS
    title += f" ({more:,} more systems are in the JSON report)" if more > 0 else ""
    header = ("system", "mean", "improves on", "is improved by")
    return Grid(title, header, tuple(rows))


def _over(row: np.ndarray, index: int, order: np.ndarray) -> tuple[Cell, ...]:
    return tuple(None if other == index else float(row[other]) for other in order)


def _irregular(result: Judgement) -> list[str | Grid]:
    """Return what is irregular by its kind, with the first example; JSON has it by file."""
    kinds: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for one in result.irregular:
        kinds[str(one["kind"])].append(one)
    if not kinds:
        return []
    header = ("irregular", "lines or ids", "files", "first in", "example")
    rows: list[tuple[Cell, ...]] = []
    for kind, ones in kinds.items():
        total, first = sum(one["count"] for one in ones), ones[0]
        line = "" if first["line"] is None else f":{first['line']}"
        place = f"{first['file']}{line}"
        rows.append((kind, f"{total:,}", f"{len(ones):,}", place, str(first["example"])))
    return [Grid("Irregular lines, which JSON has by file", header, tuple(rows))]


# --- words ---------------------------------------------------------------------------------------


def _name(result: Judgement, one: Judged) -> str:
    return one.metric.expression + (" *" if result.is_reference(one.metric) else "")


def _value(one: Judged) -> str:
    limits = between(one.coverage.low, one.coverage.high)
    return f"coverage {shown(one.coverage.value)}" + (f" ({limits})" if limits else "")


def _percent(share: float) -> str:
    return shown(share) if math.isnan(share) else f"{100 * share:.1f} %"


def _and(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
