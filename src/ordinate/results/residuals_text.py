"""Residuals in words and grids."""

import math
from typing import TYPE_CHECKING

from ordinate.inference.distributions import FEW_CLUSTERS
from ordinate.render import Document, Grid
from ordinate.render.document import Cell
from ordinate.render.estimates import (
    format_count,
    format_estimate_interval,
    format_headline,
    format_interval_head,
    format_number,
    format_percent,
    format_with_unit,
)

if TYPE_CHECKING:
    from ordinate.results.residuals import FeatureResiduals, ResidualAnalysis, ResidualBin

MOST_FEATURES, MOST_ROWS = 3, 20  # shown bin by bin; JSON has all
SLIGHT_CORRELATION = 0.1  # a rank correlation below it is no more than that


def describe_residuals(result: "ResidualAnalysis") -> Document:
    """Return the errors by prediction, by feature, and the largest."""
    unit = f", target in {result.unit}" if result.unit else ""
    rmse = f"Over all items the rmse is {format_with_unit(result.rmse, result.unit)}."
    return Document(
        f"Residuals of {format_count(result.summary.n)}{unit}",
        (
            _make_bin_grid(result, "By prediction", "prediction", result.bins),
            " ".join([rmse, *_describe_biased_bins(result), _describe_trend(result)]),
            *_make_feature_blocks(result),
            *_make_largest_blocks(result),
        ),
        verdict=_state_bias(result),
        notes=("An error is prediction minus target: above 0 the prediction is too high.",),
    )


def _format_percent(share: float) -> str:
    return format_percent(share, 1 if share >= 0.1 else 2)


def _state_bias(result: "ResidualAnalysis") -> str:
    """Say whether predictions are too high or too low on average."""
    bias = result.bias
    level = None if result.interval is None else result.interval.level
    value = format_with_unit(bias.value, result.unit)
    shown = format_headline(value, format_estimate_interval(bias), level)
    side = "too high" if bias.value > 0 else "too low"
    if bias.low <= 0 <= bias.high:
        side = "neither too high nor too low on average"
    return f"The predictions are {side}: bias {shown}."


def _make_bin_grid(
    result: "ResidualAnalysis",
    title: str,
    name: str,
    bins: "tuple[ResidualBin, ...]",
    *,
    mean: bool = True,
) -> Grid:
    level = () if result.interval is None else (format_interval_head(result.interval.level),)
    middle = ("mean prediction",) if mean else ()
    rows: list[tuple[Cell, ...]] = []
    for bin_ in bins:
        reach = () if result.interval is None else (format_estimate_interval(bin_.bias),)
        at = (format_number(bin_.prediction),) if mean else ()
        rest = (format_number(bin_.spread), format_number(bin_.rmse))
        rows.append((bin_.name, bin_.n, *at, format_number(bin_.bias.value), *reach, *rest))
    unit = f" ({result.unit})" if result.unit else ""
    header = (name, "items", *middle, "bias", *level, "spread", "rmse")
    return Grid(f"{title}{unit}", header, tuple(rows), optional=("spread", "mean prediction"))


def _describe_biased_bins(result: "ResidualAnalysis") -> list[str]:
    """Say in how many bins the bias is clear, and in how many it would be by chance."""
    if result.interval is None:
        return []
    known = [bin_.bias for bin_ in result.bins if not math.isnan(bin_.bias.low)]
    clear = sum(bias.low > 0 or bias.high < 0 for bias in known)
    chance = len(known) * (1.0 - result.interval.level)
    count = format_count(len(known), "bin")
    clearly = (
        f"In {clear} of {count} the confidence interval of the bias excludes 0; chance alone "
        f"would do that in about {chance:.2g}."
    )
    lines = [clearly] if known else []
    if any(bin_.n < FEW_CLUSTERS for bin_ in result.bins):
        lines.append(f"Intervals of a bin with fewer than {FEW_CLUSTERS} items are unsure.")
    return lines


def _describe_trend(result: "ResidualAnalysis") -> str:
    trend = result.trend
    if math.isnan(trend.value):
        return f"Whether the spread changes with the prediction is undefined: {trend.note}."
    reach = format_estimate_interval(trend)
    found = f"rank correlation {format_number(trend.value)}" + (f" ({reach})" if reach else "")
    if not reach:
        return f"Spread and prediction: {found}."
    if trend.low <= 0.0 <= trend.high:
        return f"There is no sign that the spread changes with the prediction: {found}."
    verb = "grows" if trend.value > 0 else "falls"
    slightly = " slightly" if abs(trend.value) < SLIGHT_CORRELATION else ""
    first = format_number(result.bins[0].spread)
    highest = format_with_unit(result.bins[-1].spread, result.unit)
    ends = f"from {first} in the lowest bin to {highest} in the highest"
    return f"The spread {verb}{slightly} with the prediction: {found}; {ends}."


def _make_feature_blocks(result: "ResidualAnalysis") -> list[str | Grid]:
    if not result.features:
        return []
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            feature.name,
            len(feature.bins),
            *map(_format_percent, (feature.explained, feature.by_chance, feature.limit)),
        )
        for feature in result.features
    )
    header = ("feature", "bins", "share of the squared error", "by chance", "rarely above")
    clear = [feature for feature in result.features if feature.beyond_chance]
    grids: list[str | Grid] = []
    for feature in clear[:MOST_FEATURES]:
        first, name = feature.bins[:MOST_ROWS], feature.name
        grids.append(_make_bin_grid(result, f"By {name}", name, first, mean=False))
        more = len(feature.bins) - MOST_ROWS
        grids += [f"{more:,} more bins are in the JSON report."] if more > 0 else []
    title = "Bias by feature: what the biases of its bins explain"
    return [Grid(title, header, rows), _describe_explained_share(clear), *grids]


def _describe_explained_share(clear: "list[FeatureResiduals]") -> str:
    if not clear:
        return "No feature explains more of the squared error than chance would."
    first = clear[0]
    more = f", then {', '.join(feature.name for feature in clear[1:])}" if clear[1:] else ""
    return (
        f"The bias depends most on {first.name}{more}: its bins explain "
        f"{_format_percent(first.explained)} of the squared error, where chance explains about "
        f"{_format_percent(first.by_chance)} and rarely more than {_format_percent(first.limit)}. "
        "Shares of several features do not add up."
    )


def _make_largest_blocks(result: "ResidualAnalysis") -> list[str | Grid]:
    if not result.largest:
        return []
    count, last = len(result.largest), result.largest[-1]
    if math.isnan(last.cumulative):
        return ["There are no errors: every prediction is its target."]
    which = f"The {count:,} largest of {result.summary.n:,} errors make"
    which = f"The largest of {result.summary.n:,} errors makes" if count == 1 else which
    named = any(miss.name is not None for miss in result.largest)
    rows: list[tuple[Cell, ...]] = [
        (
            str(miss.row),
            *((miss.name,) if named else ()),
            *map(format_number, (miss.target, miss.prediction, miss.error)),
            *map(_format_percent, (miss.share, miss.cumulative)),
        )
        for miss in result.largest
    ]
    header = ("row", *(("name",) if named else ()), "target", "prediction", "error")
    header = (*header, "share of the squared error", "together")
    unit = f" ({result.unit})" if result.unit else ""
    left = 1 + named
    grid = Grid(f"Largest errors{unit}", header, tuple(rows), left, optional=("together",))
    return [f"{which} {_format_percent(last.cumulative)} of the squared error.", grid]
