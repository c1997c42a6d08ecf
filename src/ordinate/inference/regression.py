"""How sure metrics of quantities are: the delta method from moments, groups, Poisson bootstrap."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, MissingExtra
from ordinate.inference.bootstrap import percentile as percentile_limits
from ordinate.inference.confidence_intervals import Intervals
from ordinate.inference.delta_method import limits, quantile
from ordinate.inference.distributions import NO_STUDENT, reach
from ordinate.inference.estimates import Estimate, nowhere
from ordinate.metrics import Metric, regression
from ordinate.metrics.regression import BASELINES, ROUNDING, percentile
from ordinate.summaries.regression import ORDER, Central, Moments

Array = NDArray[Any]
Floats = NDArray[np.float64]
BASIS = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))  # the powers of target and error
STEP = 1e-5
IMAGINARY = 1e-20j
NO_ERROR = "its standard error is 0 or lost in rounding"
LOST = 1e-10  # of what is added up to a variance: less than this is rounding
CHUNK = 1 << 12  # items whose draws fit into the cache


def estimate_values(
    metrics: Sequence[Metric], source: Moments, how: Intervals, table: Moments | None = None
) -> dict[str, Estimate]:
    """Return metrics by expression, each with its interval.

    `source` is one summary, or a batch of them: one for each group of items that belong together.
    `table` is the sum of the batch, where it is known.
    """
    groups = source if source.shape else None
    _refuse_misfit(how)
    whole = table if table is not None else source if groups is None else source.pooled
    return {m.expression: _estimate(m, whole, groups, how) for m in metrics}


def _refuse_misfit(how: Intervals) -> None:
    """Refuse what moments do not give."""
    if how.method not in {None, "delta", "t"}:
        raise BadOption(
            f"The method {how.method!r} does not fit quantities: their sums cannot be drawn again. "
            "Leave it out, or draw the items themselves with poisson=True."
        )
    if how.stratified:
        raise BadOption("Quantities have no gold levels, so intervals cannot be stratified.")


def _estimate(metric: Metric, table: Moments, groups: Moments | None, how: Intervals) -> Estimate:
    value = float(metric(table))
    if metric.name == "median_absolute_error" and groups is None and not math.isnan(value):
        return _median(table, value, how)
    reason = _why_none(metric, table, value) or _unknown(metric, table, groups)
    if reason is not None:
        return nowhere(value, reason)
    error = standard_error(metric, table, groups)
    if not math.isfinite(error) or error == 0.0:
        return nowhere(value, NO_ERROR if error == 0.0 else "there are too few groups")
    units = count_of(table) if groups is None else _filled(groups)
    return about(value, error, metric.bounds, units, how.level, how.method)


def about(
    value: float,
    error: float,
    bounds: tuple[float, float],
    units: float,
    level: float,
    method: str | None = None,
) -> Estimate:
    """Return a value with the limits that its standard error gives, or why there are none."""
    try:
        far, method = reach(level, units, method)
    except MissingExtra:
        return nowhere(value, NO_STUDENT)
    return Estimate(value, *limits(value, error, bounds, far), method)


def _why_none(metric: Metric, table: Moments, value: float) -> str | None:
    """Say why a metric has no interval, if it has none."""
    if math.isnan(value):
        return why_undefined(metric)
    if metric.family == BASELINES:
        return "it is a baseline"
    if not covered(metric, table):
        return "no method covers it"
    if count_of(table) < 2:
        return "there is one item only"
    return "it is at its bound" if value in metric.bounds else None


def covered(metric: Metric, table: Moments) -> bool:
    """Tell whether the delta method knows all that a metric depends on: means and moments.

    It knows the mean absolute error, too, but nothing else that is made of sizes of errors.
    """
    if not metric.smooth:
        return False
    if metric.name == "mae" or metric.function.__module__ == regression.__name__:
        return True
    other = replace(
        table,
        absolute=table.absolute * 1.5,
        largest=table.largest * 1.5,
        spread={name: part * 1.5 for name, part in table.spread.items()},
        histogram=None,
    )
    with np.errstate(all="ignore"):
        return bool(np.isclose(metric(table), metric(other), rtol=1e-12, atol=0.0))


def why_undefined(metric: Metric) -> str:
    """Say why a metric has no value."""
    return metric.undefined_when or "it is undefined"


def _unknown(metric: Metric, table: Moments, groups: Moments | None) -> str | None:
    """Say why the moments that were kept are not enough."""
    if table.order >= ORDER or groups is not None or metric.name in {"mae", "bias"}:
        return None
    return f"it needs moments of order {ORDER}, and those of order {table.order} were summed"


def count_of(table: Moments) -> float:
    """Return the number of items; a whole weight is a count of them."""
    return float(table.total) if table.whole else float(table.n)


def standard_error(metric: Metric, table: Moments, groups: Moments | None = None) -> float:
    """Return the standard error of a metric, of items or of groups of them."""
    if metric.name == "mae":
        return _size_error(table, groups)
    slopes = gradient(metric, table)
    if groups is None:
        parts = slopes[:, None] * _covariance(table) * slopes
        return _root(float(parts.sum()), float(np.abs(parts).sum()), table)
    return _between(_contributions(table, groups) @ slopes, groups, table)


def gradient(metric: Metric, table: Moments) -> Floats:
    """Return how a metric changes with the means, variances and covariance of target and error.

    A step in the imaginary direction has no rounding error; the formulas of the catalogue know
    what to do with it. Metrics that people declare are asked on both sides instead.
    """
    steps = np.diag(_steps(table))
    if metric.function.__module__ == regression.__name__:
        found = np.imag(metric(_moved(table, steps * IMAGINARY))) / abs(IMAGINARY)
    else:
        with np.errstate(invalid="ignore"):  # a step may lead to where a metric has no value
            values = np.asarray(metric(_moved(table, np.concatenate([steps, -steps]))), float)
        found = (values[:5] - values[5:]) / 2.0
    return np.nan_to_num(found / steps.diagonal())


def _steps(table: Moments) -> Floats:
    y2, e2 = float(table.plain.mean(2, 0)), float(table.squares / table.total)
    sizes = [y2**0.5, e2**0.5, y2, (y2 * e2) ** 0.5, e2]
    return STEP * np.array([size or 1.0 for size in sizes])


def _moved(table: Moments, points: Array) -> Moments:
    """Return a batch of summaries whose means and second moments are moved a little."""
    count, weight = len(points), float(table.total)
    flat = replace(table, histogram=None)  # which no smooth metric reads
    wide = flat.map(lambda array: np.broadcast_to(array, (count, *np.shape(array))))
    y, e = table.plain.y + points[:, 0], table.plain.e + points[:, 1]
    sums = wide.plain.sums.astype(points.dtype)
    for k, (a, b) in enumerate(BASIS[2:], start=2):
        sums[:, a, b] += weight * points[:, k]
    squares = sums[:, 0, 2] + weight * e**2
    return replace(wide, plain=Central(y, e, sums), squares=squares)


def _centres(table: Moments) -> Floats:
    found = [float(table.plain.mean(a, b)) for a, b in BASIS[2:]]
    return np.array([0.0, 0.0, *found])


def _covariance(table: Moments) -> Floats:
    """Return the covariances of the basis, from moments up to order four."""
    sums = _squared(table).about(table.plain.y, table.plain.e).sums
    centres = _centres(table)
    found = np.empty((5, 5))
    for i, (a, b) in enumerate(BASIS):
        for j, (c, d) in enumerate(BASIS):
            found[i, j] = (
                sums[a + c, b + d]
                - centres[i] * sums[c, d]
                - centres[j] * sums[a, b]
                + centres[i] * centres[j] * sums[0, 0]
            )
    return found / float(table.total) ** 2


def _squared(table: Moments) -> Central:
    """Return sums with squared weights; a count is a sum of ones, whose squares are ones."""
    return table.plain if table.whole else table.squared


def _contributions(table: Moments, groups: Moments) -> Floats:
    """Return what each group adds to the basis [G, 5]."""
    about = groups.plain.about(table.plain.y, table.plain.e).sums
    centres = _centres(table)
    columns = [
        about[:, a, b] - c * about[:, 0, 0] for (a, b), c in zip(BASIS, centres, strict=True)
    ]
    return np.stack(columns, axis=1)


def _between(sums: Floats, groups: Moments, table: Moments) -> float:
    count = _filled(groups)
    if count < 2:
        return math.nan
    return math.sqrt(count / (count - 1) * float((sums**2).sum())) / float(table.total)


def _filled(groups: Moments) -> int:
    """Return the number of groups that have items."""
    return int((groups.items > 0).sum())


def _size_error(table: Moments, groups: Moments | None) -> float:
    """Return the error of the mean absolute error."""
    value = float(table.absolute / table.total)
    if groups is not None:
        return _between(groups.absolute - value * groups.total, groups, table)
    counts = _squared(table)
    squares = float(counts.about(table.plain.y, np.asarray(0.0)).sums[0, 2])
    absolute = float(table.absolute if table.whole else table.absolute_squared)
    variance = squares - 2.0 * value * absolute + value**2 * float(counts.weight)
    return _root(variance, squares, table) / float(table.total)


def _root(variance: float, parts: float, table: Moments) -> float:
    """Return a standard error, 0 where rounding may be all that is left of its parts."""
    n = count_of(table)
    return math.sqrt(variance * n / (n - 1)) if variance > LOST * parts else 0.0


def _median(table: Moments, value: float, how: Intervals) -> Estimate:
    """Return the limits of the median: the errors that stand as far off its rank as chance may."""
    size = float(table.total) ** 2 / float(_squared(table).weight)  # items of equal weight
    if 1.0 - 2.0 ** (1.0 - size) < how.level:  # how sure it is that errors are on both sides of it
        return nowhere(value, "there are too few items")
    half = quantile(how.level) / (2.0 * math.sqrt(size))
    low, high = (float(percentile(table, min(max(x, 0.0), 1.0))) for x in (0.5 - half, 0.5 + half))
    return Estimate(value, low, high, "ranks")


# --- one pass over the items ---------------------------------------------------------------------


def poisson_draws(
    targets: Floats, predictions: Floats, how: Intervals, weights: Floats | None = None
) -> Moments:
    """Return a batch of summaries in which each item counts as often as a Poisson variable says.

    One pass over the items serves all draws. Only means and second moments are kept. Whole weights
    are counts of items, each of which is drawn.
    """
    rng, rates = np.random.default_rng(how.seed), None
    if weights is not None:
        there = weights > 0
        targets, predictions, weights = targets[there], predictions[there], weights[there]
        if (weights == np.floor(weights)).all():
            rates, weights = weights, None
    at = float(targets.mean()), float((predictions - targets).mean())
    sums, items = np.zeros((how.draws, 8)), np.zeros(how.draws)
    for start in range(0, len(targets), CHUNK):
        where = slice(start, start + CHUNK)
        e = predictions[where] - targets[where]
        d, f = targets[where] - at[0], e - at[1]
        powers = np.stack([np.ones(len(d)), d, f, d * d, d * f, f * f, np.abs(e), e * e], axis=1)
        rate = 1.0 if rates is None else rates[where]
        times = rng.poisson(rate, (how.draws, len(d))).astype(float)
        items += (times > 0).sum(axis=1)
        sums += (times if weights is None else times * weights[where]) @ powers
    return _summary(sums, items, at)


def _summary(sums: Floats, items: Floats, at: tuple[float, float]) -> Moments:
    powers = np.zeros((len(sums), ORDER + 1, ORDER + 1))
    for k, (a, b) in enumerate(((0, 0), *BASIS)):
        powers[:, a, b] = sums[:, k]
    y, e = (np.full(len(sums), point) for point in at)
    near = Central(y, e, powers)
    weight = np.maximum(sums[:, 0], 1e-300)
    plain = near.about(y + sums[:, 1] / weight, e + sums[:, 2] / weight)
    for a, b in ((2, 0), (0, 2)):  # a draw of one item again and again has no spread
        alike = plain.sums[:, a, b] <= ROUNDING * powers[:, a, b]
        plain.sums[alike, a, b] = 0.0
    unknown = np.full(len(sums), np.nan)
    return Moments(items, plain, plain, sums[:, 6], unknown, unknown, sums[:, 7], order=2)


def poisson_estimates(
    metrics: Sequence[Metric], table: Moments, draws: Moments, how: Intervals
) -> dict[str, Estimate]:
    """Return metrics with percentile limits of Poisson draws."""
    drawn = replace(draws, constants=table.constants, spread={})
    found = {}
    for metric in metrics:
        value = float(metric(table))
        if _why_none(metric, table, value) is not None:
            found[metric.expression] = _estimate(metric, table, None, how)
            continue
        values = np.asarray(metric(drawn), float)
        known = values[np.isfinite(values)]
        share = 1.0 - len(known) / len(values)
        low, high = percentile_limits(known, how.level) if len(known) else (value, value)
        moves = high > low
        limits_of = Estimate(value, low, high, "poisson", share)
        found[metric.expression] = limits_of if moves else nowhere(value, NO_ERROR, share)
    return found
