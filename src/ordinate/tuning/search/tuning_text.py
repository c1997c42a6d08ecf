"""What reports of searches share in words and grids."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ordinate.inference.estimates import Estimate
from ordinate.render import Grid
from ordinate.render.document import Cell
from ordinate.render.estimates import (
    format_estimate_interval,
    format_interval_head,
    format_number,
)

CI_HEAD = format_interval_head(0.95)


def describe_bias(seen: int, n: int) -> str:
    """Return why a test is optimistically biased: of so many items some were learned from."""
    share = "all" if seen == n else f"{seen:,} of"
    return f"optimistically biased: it has learned from {share} its {n:,} items"


# --- tables --------------------------------------------------------------------------------------


def format_hyperparameters(params: Mapping[str, Any]) -> str:
    """Return hyperparameters in one line."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )


# --- summaries from plain values -----------------------------------------------------------------


def build_summary_grid(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Return metrics with their intervals, from plain values."""
    found = [(row, parse_estimate(row)) for row in rows]
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (row["title"], format_number(one.value), format_estimate_interval(one), row["unit"])
        for row, one in found
    )
    return Grid("Summary", ("metric", "value", CI_HEAD, "unit"), cells).drop_empty_columns()


def explain_missing_intervals(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say why metrics have no interval, or one that is open, where that is so."""
    found = [(row["title"], parse_estimate(row)) for row in rows]
    return [
        f"The confidence interval of {title} is {one.note}."
        if one.is_open
        else f"No confidence interval of {title}: {one.note}."
        for title, one in found
        if one.note and (one.is_open or format_estimate_interval(one) is None)
    ]


def parse_estimate(row: Mapping[str, Any]) -> Estimate:
    """Return a value with its confidence interval, from plain values."""
    value = math.nan if row["value"] is None else row["value"]
    open_ends = (math.nan, math.nan) if row["method"] is None else (-math.inf, math.inf)
    low, high = (
        end if row[key] is None else row[key]
        for key, end in zip(("low", "high"), open_ends, strict=True)
    )
    return Estimate(value, low, high, row["method"], note=row["note"])


# --- the model card ------------------------------------------------------------------------------
