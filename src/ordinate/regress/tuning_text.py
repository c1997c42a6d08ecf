"""A search for a surrogate in words and grids."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ordinate.inference.clustered_errors import FEW
from ordinate.inference.estimates import Estimate
from ordinate.regress.tuning_result import STATES, Finalist, HeldOut, Searched, Tuning
from ordinate.render import Document, Grid
from ordinate.render.document import Cell
from ordinate.results.regression_text import cell, limits, number

VALUES = ("value", "low", "high")
FLATTERED = (
    "Intervals take {units} as independent, and the model as given. The best of many is flattered "
    "by the rows that chose it: go by the test."
)
EARLY = ", a tenth of which only tells boosting and networks when to stop"


def describe(result: Tuning) -> Document:
    """Return the report: the data, the search, the winner, its tests, and what to keep in mind."""
    blocks: list[str | Grid] = [_source(result), *result.source.notes, _search(result)]
    blocks += [*_parameters(result), _winner(result), summary_grid(result.summary())]
    for test in result.tests:
        blocks += _test(result, test)
    units = "rows" if result.source.groups is None else "groups, not rows,"
    blocks += [FLATTERED.format(units=units), _fitted(result), *result.notes]
    unit = f" in {result.source.unit}" if result.source.unit else ""
    title = f"Surrogate of {result.source.target}{unit} from {result.source.n:,} rows"
    return Document(title, tuple(blocks))


def _source(result: Tuning) -> str:
    source, asked = result.source, result.settings
    read = f"Read from {source.path}. " if source.path else ""
    rows = ", ".join(f"{count:,} {name}" for name, count in source.sizes.items())
    groups = "" if source.groups is None else f" in {source.groups:,} groups, kept whole"
    judged = "Judged by the validation rows"
    if asked.folds:
        rows_in = "training rows" if source.apart else "training and validation rows"
        judged = f"Judged in {asked.folds} folds of the {rows_in}"
    return (
        f"{read}Features: {', '.join(source.features)}. Split: {source.split}: {rows}{groups}. "
        f"{judged}, seed {asked.seed}."
    )


def _search(result: Tuning) -> Grid:
    unit = f" ({result.source.unit})" if result.source.unit else ""
    header = ("model", f"rmse{unit}", f"mae{unit}", *STATES)
    rows = [_searched(one) for one in result.searched]
    if result.blend:
        rows.append(("blend", *_judged(result.blend), None, None, None))
    title = "Search: the best trial of each kind on held-out rows, with 95 % intervals"
    return Grid(title, header, tuple(rows))


def _searched(one: Searched) -> tuple[Cell, ...]:
    complete, *others = map(one.count, STATES)
    return (one.kind, *_judged(one.best), f"{complete} of {one.wanted}", *others)


def _judged(one: Finalist | None) -> tuple[Cell, ...]:
    return ("none", None) if one is None else (cell(one.rmse), cell(one.judged.metrics["mae"]))


def _parameters(result: Tuning) -> list[str]:
    return [f"{one.name}: {_spelled(_params(result, one))}." for one in result.finalists]


def _params(result: Tuning, one: Finalist) -> Mapping[str, Any]:
    kinds = {each.name: each.kind for each in result.finalists}
    members = zip(one.members, one.weights, strict=True)
    return {kinds[name]: weight for name, weight in members} if one.members else one.params


def _spelled(params: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )


def _winner(result: Tuning) -> str:
    won, unit = result.winner, f" {result.source.unit}" if result.source.unit else ""
    reach = limits(won.rmse)
    interval = f" ({reach})" if reach else ""
    return f"The winner is {won.name}: RMSE {number(won.rmse.value)}{unit}{interval}, held out."


def summary_grid(rows: list[dict[str, Any]]) -> Grid:
    """Return measures with their intervals, from plain values."""
    found = [(row, estimate(row)) for row in rows]
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (row["measure"], number(one.value), limits(one) or one.note, row["unit"])
        for row, one in found
    )
    return Grid("Summary", ("measure", "value", "95 % interval", "unit"), cells)


def estimate(row: Mapping[str, Any]) -> Estimate:
    """Return a value with its limits, from plain values."""
    value, low, high = (math.nan if row[key] is None else row[key] for key in VALUES)
    return Estimate(value, low, high, row["method"], note=row["note"])


def _test(result: Tuning, test: HeldOut) -> list[str | Grid]:
    """Return the winner beside the other finalists, on rows that chose none of them."""
    told: list[str | Grid] = [_coverage(result, test), *test.notes]
    if test.values.table.n < FEW:
        told.append(f"Fewer than {FEW} rows leave the limits of this test unsure.")
    if test.comparison is None:
        return told
    kinds = {one.name: one.kind for one in result.finalists}
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            kinds[name],
            *(cell(found[metric]) for metric in ("rmse", "mae", "r2")),
            "winner" if name == result.winner.name else None,
        )
        for name, found in test.comparison.models.items()
    )
    title = f"{test.name.capitalize()}: all finalists, once chosen, with 95 % intervals"
    return [*told, Grid(title, ("model", "rmse", "mae", "r2", ""), rows)]


def _coverage(result: Tuning, test: HeldOut) -> str:
    promised, n = 100 * (1 - result.settings.alpha), test.values.table.n
    said = f"{test.name}, {test.what}: {promised:g} % intervals of the winner"
    if not np.isfinite(test.upper - test.lower).all():
        return f"{said} have no end, so that they hold anything."
    held = 100 * test.values.predictive["interval_coverage"].value
    return f"{said} hold {held:.1f} % of {n:,} targets."


def _fitted(result: Tuning) -> str:
    grouped = result.source.groups is not None
    if result.source.apart:
        kept = (
            "take them as approximate, for rows of one group are alike."
            if grouped
            else "they hold what they promise, for rows from where these come from."
        )
        return (
            f"Saved models were fitted on the training rows{EARLY}. Their intervals are "
            f"calibrated on the validation rows, which have been used for nothing else: {kept}"
        )
    if result.settings.folds:
        few = "of too few groups" if grouped else "too few"
        return (
            f"Saved models were fitted on training and validation rows{EARLY}; these are {few} to "
            "keep some apart for the intervals, which are calibrated on rows that were held out "
            "in turn, of fits on fewer rows: take them as approximate."
        )
    return (
        f"Saved models were fitted on training rows{EARLY}; their intervals are calibrated on "
        "validation rows, by which models were chosen, too: take them as too narrow."
    )
