"""A search for a surrogate in words and grids."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ordinate.inference.distributions import FEW_CLUSTERS
from ordinate.inference.estimates import Estimate
from ordinate.render import Document, Grid
from ordinate.render.document import Cell
from ordinate.render.estimates import (
    format_estimate,
    format_estimate_interval,
    format_interval_head,
    format_number,
)
from ordinate.search.trials import TRIAL_STATES

if TYPE_CHECKING:
    from ordinate.regress.tuning_result import Finalist, HeldOutResult, StudyResult, TuningResult

CI_HEAD = format_interval_head(0.95)
ESTIMATE_KEYS = ("value", "low", "high")
OPTIMISM_NOTE = (
    "Intervals take {units} as independent, and the model as given. The best of many is "
    "optimistically biased "
    "by the rows that chose it: go by the test."
)
EARLY_STOPPING_NOTE = ", a tenth of which only tells boosting and networks when to stop"


def describe_tuning(result: "TuningResult") -> Document:
    """Return the report: the data, the search, the winner, its tests, and what to keep in mind."""
    blocks: list[str | Grid] = [
        _describe_source(result),
        *result.source.notes,
        _build_search_grid(result),
    ]
    blocks += [
        *_describe_hyperparameters(result),
        _describe_winner(result),
        *build_summary_blocks(result.summary()),
    ]
    for test in result.tests:
        blocks += _build_test_blocks(result, test)
    units = "rows" if result.source.groups is None else "groups, not rows,"
    blocks += [OPTIMISM_NOTE.format(units=units), _describe_final_fit(result), *result.notes]
    unit = f" in {result.source.unit}" if result.source.unit else ""
    title = f"Surrogate of {result.source.target}{unit} from {result.source.n:,} rows"
    return Document(title, tuple(blocks))


def _describe_source(result: "TuningResult") -> str:
    source, asked = result.source, result.settings
    read = f"Read from {source.path}. " if source.path else ""
    rows = ", ".join(f"{count:,} {name}" for name, count in source.sizes.items())
    groups = "" if source.groups is None else f" in {source.groups:,} groups, kept whole"
    evaluated = "Evaluated on the validation rows"
    if asked.folds:
        rows_in = "training rows" if source.apart else "training and validation rows"
        evaluated = f"Evaluated in {asked.folds} folds of the {rows_in}"
    return (
        f"{read}Features: {', '.join(source.features)}. Split: {source.split}: {rows}{groups}. "
        f"{evaluated}, seed {asked.seed}."
    )


def _build_search_grid(result: "TuningResult") -> Grid:
    unit = f" ({result.source.unit})" if result.source.unit else ""
    header = ("model", f"rmse{unit}", f"mae{unit}", *TRIAL_STATES)
    rows = [_build_search_row(one) for one in result.searched]
    if result.blend:
        rows.append(("blend", *_build_error_cells(result.blend), None, None, None))
    title = f"Search: the best trial of each model type on held-out rows, with {CI_HEAD}"
    return Grid(title, header, tuple(rows))


def _build_search_row(one: "StudyResult") -> tuple[Cell, ...]:
    complete, *others = map(one.count, TRIAL_STATES)
    return (one.model_type, *_build_error_cells(one.best), f"{complete} of {one.wanted}", *others)


def _build_error_cells(one: "Finalist | None") -> tuple[Cell, ...]:
    return (
        ("none", None)
        if one is None
        else (format_estimate(one.rmse), format_estimate(one.evaluation.metrics["mae"]))
    )


def _describe_hyperparameters(result: "TuningResult") -> list[str]:
    return [
        f"{one.name}: {_format_hyperparameters(_get_hyperparameters(result, one))}."
        for one in result.finalists
    ]


def _get_hyperparameters(result: "TuningResult", one: "Finalist") -> Mapping[str, Any]:
    model_types = {each.name: each.model_type for each in result.finalists}
    members = zip(one.members, one.weights, strict=True)
    return {model_types[name]: weight for name, weight in members} if one.members else one.params


def _format_hyperparameters(params: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )


def _describe_winner(result: "TuningResult") -> str:
    won, unit = result.winner, f" {result.source.unit}" if result.source.unit else ""
    reach = format_estimate_interval(won.rmse)
    interval = f" ({reach})" if reach else ""
    return (
        f"The winner is {won.name}: RMSE {format_number(won.rmse.value)}{unit}{interval}, held out."
    )


def build_summary_blocks(rows: list[dict[str, Any]]) -> list[str | Grid]:
    """Return metrics with their intervals, from plain values, and why some have none."""
    found = [(row, parse_estimate(row)) for row in rows]
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row["measure"],
            format_number(one.value),
            format_estimate_interval(one),
            row["unit"],
        )
        for row, one in found
    )
    reasons = [
        f"No confidence interval of {row['measure']}: {one.note}."
        for row, one in found
        if one.note and format_estimate_interval(one) is None
    ]
    return [Grid("Summary", ("metric", "value", CI_HEAD, "unit"), cells), *reasons]


def parse_estimate(row: Mapping[str, Any]) -> Estimate:
    """Return a value with its confidence interval, from plain values."""
    value, low, high = (math.nan if row[key] is None else row[key] for key in ESTIMATE_KEYS)
    return Estimate(value, low, high, row["method"], note=row["note"])


def _build_test_blocks(result: "TuningResult", test: "HeldOutResult") -> list[str | Grid]:
    """Return the winner beside the other finalists, on rows that chose none of them."""
    told: list[str | Grid] = [_describe_coverage(result, test), *test.notes]
    if test.values.summary.n < FEW_CLUSTERS:
        told.append(
            f"Fewer than {FEW_CLUSTERS} rows leave the confidence intervals of this test unsure."
        )
    if test.comparison is None:
        return told
    model_types = {one.name: one.model_type for one in result.finalists}
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            model_types[name],
            *(format_estimate(found[metric]) for metric in ("rmse", "mae", "r2")),
            "winner" if name == result.winner.name else None,
        )
        for name, found in test.comparison.models.items()
    )
    title = f"{test.name.capitalize()}: all finalists, once chosen, with {CI_HEAD}"
    return [*told, Grid(title, ("model", "rmse", "mae", "r2", ""), rows)]


def _describe_coverage(result: "TuningResult", test: "HeldOutResult") -> str:
    promised, n = 100 * (1 - result.settings.alpha), test.values.summary.n
    said = f"{test.name}, {test.what}: {promised:g} % intervals of the winner"
    if not np.isfinite(test.upper - test.lower).all():
        return f"{said} have no end, so that they hold anything."
    held = 100 * test.values.prediction_intervals["interval_coverage"].value
    return f"{said} hold {held:.1f} % of {n:,} targets."


def _describe_final_fit(result: "TuningResult") -> str:
    grouped = result.source.groups is not None
    if result.source.apart:
        kept = (
            "take them as approximate, for rows of one group are alike."
            if grouped
            else "they cover as stated for rows from the same source."
        )
        return (
            f"Saved models were fitted on the training rows{EARLY_STOPPING_NOTE}. Their intervals "
            f"are calibrated on the validation rows, which have been used for nothing else: {kept}"
        )
    if result.settings.folds:
        few = "of too few groups" if grouped else "too few"
        return (
            f"Saved models were fitted on training and validation rows{EARLY_STOPPING_NOTE}; these "
            f"are {few} to keep some apart for the intervals, which are calibrated on rows that "
            "were held out in turn, of fits on fewer rows: take them as approximate."
        )
    return (
        f"Saved models were fitted on training rows{EARLY_STOPPING_NOTE}; their intervals are "
        "calibrated on validation rows, by which models were chosen, too: take them as too narrow."
    )
