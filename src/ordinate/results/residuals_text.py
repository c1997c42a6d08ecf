"""Residuals in words and grids."""

import math

from ordinate.inference.clustered_errors import FEW
from ordinate.render import Grid
from ordinate.render.document import Cell
from ordinate.results.regression_text import limits, number
from ordinate.results.residuals import Bucket, Feature, Residuals

MOST_FEATURES, MOST_ROWS = 3, 20  # shown bucket by bucket; JSON has all
SLIGHT = 0.1  # a rank correlation below it is no more than that


def describe(result: Residuals) -> list[str | Grid]:
    """Return the errors by prediction, by feature, and the largest."""
    return [
        _whole(result),
        _bucket_grid(result, "By prediction", "prediction", result.buckets),
        " ".join([*_biased(result), _trend_in_words(result)]),
        *_feature_blocks(result),
        *_largest_blocks(result),
    ]


def _with_unit(value: Cell, unit: str | None) -> str:
    return f"{value} {unit}" if unit else str(value)


def _percent(share: float) -> str:
    if math.isnan(share):
        return "undefined"
    return f"{100 * share:.{1 if share >= 0.1 else 2}f} %"


def _whole(result: Residuals) -> str:
    reach = limits(result.bias)
    bias = _with_unit(number(result.bias.value), result.unit) + (f" ({reach})" if reach else "")
    count = f"{result.table.n:,} value{'' if result.table.n == 1 else 's'}"
    return (
        "An error is prediction less target: above 0 the prediction is too high. Over all "
        f"{count} the bias is {bias}, the rmse "
        f"{_with_unit(number(result.rmse), result.unit)}."
    )


def _bucket_grid(
    result: Residuals, title: str, name: str, buckets: tuple[Bucket, ...], *, mean: bool = True
) -> Grid:
    level = () if result.interval is None else (f"{100 * result.interval.level:g} % interval",)
    middle = ("mean prediction",) if mean else ()
    rows: list[tuple[Cell, ...]] = []
    for bucket in buckets:
        reach = () if result.interval is None else (limits(bucket.bias),)
        at = (number(bucket.prediction),) if mean else ()
        rest = (number(bucket.spread), number(bucket.rmse))
        rows.append((bucket.name, bucket.n, *at, number(bucket.bias.value), *reach, *rest))
    unit = f" ({result.unit})" if result.unit else ""
    header = (name, "items", *middle, "bias", *level, "spread", "rmse")
    return Grid(f"{title}{unit}", header, tuple(rows))


def _biased(result: Residuals) -> list[str]:
    """Say in how many buckets the bias is clear, and in how many it would be by chance."""
    if result.interval is None:
        return []
    known = [bucket.bias for bucket in result.buckets if not math.isnan(bucket.bias.low)]
    clear = sum(bias.low > 0 or bias.high < 0 for bias in known)
    chance = len(known) * (1.0 - result.interval.level)
    count = f"{len(known)} bucket{'' if len(known) == 1 else 's'}"
    clearly = (
        f"In {clear} of {count} the limits of the bias leave out 0; chance alone would do that in "
        f"about {chance:.2g}."
    )
    lines = [clearly] if known else []
    if any(bucket.n < FEW for bucket in result.buckets):
        lines.append(f"Limits of a bucket with fewer than {FEW} items are unsure.")
    return lines


def _trend_in_words(result: Residuals) -> str:
    trend = result.trend
    if math.isnan(trend.value):
        return f"Whether the spread changes with the prediction is undefined: {trend.note}."
    reach = limits(trend)
    found = f"rank correlation {number(trend.value)}" + (f" ({reach})" if reach else "")
    if not reach:
        return f"Spread and prediction: {found}."
    if trend.low <= 0.0 <= trend.high:
        return f"There is no sign that the spread changes with the prediction: {found}."
    verb = "grows" if trend.value > 0 else "falls"
    slightly = " slightly" if abs(trend.value) < SLIGHT else ""
    first, last = (number(result.buckets[k].spread) for k in (0, -1))
    ends = f"from {first} in the lowest bucket to {_with_unit(last, result.unit)} in the highest"
    return f"The spread {verb}{slightly} with the prediction: {found}; {ends}."


def _feature_blocks(result: Residuals) -> list[str | Grid]:
    if not result.features:
        return []
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            feature.name,
            len(feature.buckets),
            *map(_percent, (feature.explained, feature.by_chance, feature.limit)),
        )
        for feature in result.features
    )
    header = ("feature", "buckets", "share of the squared error", "by chance", "rarely above")
    clear = [feature for feature in result.features if feature.beyond_chance]
    grids: list[str | Grid] = []
    for feature in clear[:MOST_FEATURES]:
        first, name = feature.buckets[:MOST_ROWS], feature.name
        grids.append(_bucket_grid(result, f"By {name}", name, first, mean=False))
        more = len(feature.buckets) - MOST_ROWS
        grids += [f"{more:,} more buckets are in the JSON report."] if more > 0 else []
    title = "Bias by feature: what the biases of its buckets explain"
    return [Grid(title, header, rows), _explained(clear), *grids]


def _explained(clear: list[Feature]) -> str:
    if not clear:
        return "No feature explains more of the squared error than chance would."
    first = clear[0]
    more = f", then {', '.join(feature.name for feature in clear[1:])}" if clear[1:] else ""
    return (
        f"The bias depends most on {first.name}{more}: its buckets explain "
        f"{_percent(first.explained)} of the squared error, where chance explains about "
        f"{_percent(first.by_chance)} and rarely more than {_percent(first.limit)}. Shares of "
        "several features do not add up."
    )


def _largest_blocks(result: Residuals) -> list[str | Grid]:
    if not result.largest:
        return []
    count, last = len(result.largest), result.largest[-1]
    if math.isnan(last.cumulative):
        return ["There are no errors: every prediction is its target."]
    which = f"The {count:,} largest of {result.table.n:,} errors make"
    which = f"The largest of {result.table.n:,} errors makes" if count == 1 else which
    named = any(miss.name is not None for miss in result.largest)
    rows: list[tuple[Cell, ...]] = [
        (
            str(miss.row),
            *((miss.name,) if named else ()),
            *map(number, (miss.target, miss.prediction, miss.error)),
            *map(_percent, (miss.share, miss.cumulative)),
        )
        for miss in result.largest
    ]
    header = ("row", *(("name",) if named else ()), "target", "prediction", "error")
    header = (*header, "share of the squared error", "together")
    unit = f" ({result.unit})" if result.unit else ""
    grid = Grid(f"Largest errors{unit}", header, tuple(rows), left=1 + named)
    return [f"{which} {_percent(last.cumulative)} of the squared error.", grid]
