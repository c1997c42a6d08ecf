"""Confidence intervals for regression metrics: from moments, clusters, resampled items."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, MissingExtra
from ordinate.inference.bootstrap import studentised_interval
from ordinate.inference.clusters import (
    explain_undefined_deletions,
    jackknife_error,
    join_doubts,
    list_size_doubts,
)
from ordinate.inference.confidence_intervals import ConfidenceIntervals, IntervalMethod
from ordinate.inference.delta_method import compute_bounded_interval, normal_quantile
from ordinate.inference.distributions import NO_STUDENT_NOTE, critical_value
from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.metrics import Metric, regression
from ordinate.metrics.regression import BASELINE_FAMILY, ROUNDING_SHARE, find_error_percentile
from ordinate.summaries.regression import HIGHEST_ORDER, MOMENT_POWERS, CentralSums, Moments

Array = NDArray[Any]
Floats = NDArray[np.float64]
STUDENTIZED: IntervalMethod = "studentized"
JACKKNIFE: IntervalMethod = "jackknife"
MOMENT_BASIS = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))  # the powers of target and error
RELATIVE_STEP = 1e-5
COMPLEX_STEP = 1e-20j
NO_ERROR_NOTE = "its standard error is 0 or lost in rounding"
ROUNDING_ERROR = 1e-12  # of a value: a standard error this small is rounding
LOST_PRECISION_SHARE = 1e-10  # of what is added up to a variance: less than this is rounding
CHUNK_SIZE = 1 << 12  # items whose resamples fit into the cache
RESAMPLE_EXPONENT = 0.75  # a resample has N to this power items: what covered best in the study
FEWEST_RESAMPLED_ITEMS = 20  # of the study: resamples of fewer items say little
MOST_RESAMPLED_ITEMS, MOST_RESAMPLED_PARTS = 100_000, 20  # without being asked: a second


def estimate_regression_metrics(
    metrics: Sequence[Metric],
    source: Moments,
    settings: ConfidenceIntervals,
    moments: Moments | None = None,
) -> dict[str, Estimate]:
    """Return metrics by expression, each with its confidence interval.

    `source` is one summary, or a batch of them: one for each cluster of items. `moments` is the sum
    of the batch, where it is known.
    """
    groups = source[np.asarray(source.items) > 0] if source.shape else None
    _refuse_misfit(settings, clustered=groups is not None)
    pooled = moments if moments is not None else source if groups is None else source.pooled
    clusters = None if groups is None else _Clusters(pooled, groups)
    return {m.expression: _estimate_metric(m, pooled, clusters, settings) for m in metrics}


def _refuse_misfit(settings: ConfidenceIntervals, *, clustered: bool = False) -> None:
    """Refuse settings that moments cannot serve."""
    if settings.method not in {None, "delta", "t", *([JACKKNIFE] if clustered else [])}:
        other = (
            f"{JACKKNIFE!r}" if clustered else f"for single items without clusters {STUDENTIZED!r}"
        )
        raise BadOption(
            f"The method {settings.method!r} does not fit regression here: use 't' or 'delta', or "
            f"{other}."
        )
    if settings.stratified:
        raise BadOption("Regression has no gold levels, so intervals cannot be stratified.")


def _estimate_metric(
    metric: Metric, moments: Moments, clusters: "_Clusters | None", settings: ConfidenceIntervals
) -> Estimate:
    value = float(metric(moments))
    if metric.name == "median_absolute_error" and clusters is None and not math.isnan(value):
        return _estimate_median(moments, value, settings)
    reason = _explain_missing_interval(metric, moments, value)
    if reason is None and clusters is None:
        reason = _explain_missing_moments(metric, moments)
    if reason is not None:
        return make_point_estimate(value, reason)
    if clusters is not None:
        return _estimate_from_clusters(metric, value, clusters, settings)
    error = standard_error(metric, moments)
    if error == 0.0 or not math.isfinite(error):
        return make_point_estimate(value, NO_ERROR_NOTE)
    units = count_items(moments)
    return estimate_from_error(value, error, metric.bounds, units, settings.level, settings.method)


@dataclass(frozen=True)
class _Clusters:
    """All items, their clusters [G], and what all metrics share: the items without each of them."""

    moments: Moments
    groups: Moments

    @cached_property
    def rest(self) -> Moments:
        return leave_out_each_cluster(self.moments, self.groups)


def _estimate_from_clusters(
    metric: Metric, value: float, clusters: _Clusters, settings: ConfidenceIntervals
) -> Estimate:
    """Return the interval by the jackknife; by influences, where the method asks for it."""
    groups = clusters.groups
    count = len(groups.items)
    if count < 2:
        return make_point_estimate(value, "there is one cluster only")
    if settings.method in {None, JACKKNIFE}:
        without = np.asarray(metric(clusters.rest), float)
        if reason := explain_undefined_deletions(without):
            return make_point_estimate(value, reason)
        error, method = float(jackknife_error(value, without)), JACKKNIFE
    else:
        error, method = standard_error(metric, clusters.moments, groups), settings.method
    if error <= ROUNDING_ERROR * abs(value) or not math.isfinite(error):
        return make_point_estimate(value, NO_ERROR_NOTE)
    found = estimate_from_error(value, error, metric.bounds, count, settings.level, method)
    doubts = join_doubts(list_size_doubts(np.asarray(groups.total)))
    return found if found.method is None else replace(found, note=doubts)


def leave_out_each_cluster(moments: Moments, groups: Moments) -> Moments:
    """Return a batch of summaries: all items without each of the clusters [G] in turn.

    It has what smooth metrics read. Others are added up, not subtracted from the whole, so that
    nothing is lost where one cluster holds nearly all.
    """
    centre = float(moments.plain.y), float(moments.plain.e)
    central = _center_powers(
        _sum_others(groups.plain.recenter_sums(*moments.plain[:2]).sums), centre
    )
    absolute = _sum_others(groups.absolute)
    return Moments(
        _sum_others(groups.items),
        central,
        central,
        absolute=absolute,
        absolute_squared=absolute,
        largest=np.full(len(absolute), np.nan),
        squares=_sum_others(groups.squares),
        constants=moments.constants,
        counted=moments.counted,
        order=groups.order,
    )


def _sum_others(parts: Array) -> Array:
    """Return for each row the sum of all other rows."""
    before, after = np.zeros_like(parts), np.zeros_like(parts)
    before[1:] = np.cumsum(parts[:-1], axis=0)
    after[:-1] = np.cumsum(parts[:0:-1], axis=0)[::-1]
    return before + after


def estimate_from_error(
    value: float,
    error: float,
    bounds: tuple[float, float],
    units: float,
    level: float,
    method: str | None = None,
) -> Estimate:
    """Return a value with the interval that its standard error gives, or why it has none."""
    try:
        quantile, usual = critical_value(level, units, method)
    except MissingExtra:
        return make_point_estimate(value, NO_STUDENT_NOTE)
    bounds = compute_bounded_interval(value, error, bounds, quantile)
    return Estimate(value, *bounds, method if method == JACKKNIFE else usual)


def _explain_missing_interval(metric: Metric, moments: Moments, value: float) -> str | None:
    """Say why a metric has no interval, if it has none."""
    if math.isnan(value):
        return explain_undefined(metric)
    if metric.family == BASELINE_FAMILY:
        return "it is a baseline"
    if not is_delta_applicable(metric, moments):
        return "no method covers it"
    if count_items(moments) < 2:
        return "there is one item only"
    return "it is at its bound" if value in metric.bounds else None


def is_delta_applicable(metric: Metric, moments: Moments) -> bool:
    """Tell whether the delta method knows all that a metric depends on: means and moments.

    It knows the mean absolute error, too, but nothing else that is made of sizes of errors.
    """
    if not metric.smooth:
        return False
    if metric.name == "mae" or metric.function.__module__ == regression.__name__:
        return True
    other = replace(
        moments,
        absolute=moments.absolute * 1.5,
        largest=moments.largest * 1.5,
        spread={name: part * 1.5 for name, part in moments.spread.items()},
        histogram=None,
    )
    with np.errstate(all="ignore"):
        return bool(np.isclose(metric(moments), metric(other), rtol=1e-12, atol=0.0))


def explain_undefined(metric: Metric) -> str:
    """Say why a metric has no value."""
    return metric.undefined_when or "it is undefined"


def _explain_missing_moments(metric: Metric, moments: Moments) -> str | None:
    """Say why the moments that were summed are not enough for the errors of items."""
    if moments.order >= HIGHEST_ORDER or metric.name in {"mae", "bias"}:
        return None
    return (
        f"it needs moments of order {HIGHEST_ORDER}, and those of order {moments.order} were summed"
    )


def count_items(moments: Moments) -> float:
    """Return the number of items; integer weights are counts of them."""
    return float(moments.total) if moments.has_integer_weights else float(moments.n)


def standard_error(metric: Metric, moments: Moments, groups: Moments | None = None) -> float:
    """Return the standard error of a metric, of items or of clusters of them."""
    if groups is None:
        return float(compute_item_errors(metric, moments))
    if metric.name == "mae":
        sums = groups.absolute - float(metric(moments)) * groups.total
    else:
        sums = _sum_cluster_contributions(moments, groups) @ compute_gradient(metric, moments)
    return _between_cluster_error(sums, groups, moments)


def compute_item_errors(metric: Metric, moments: Moments) -> Array:
    """Return the standard error of a metric over items, of one summary or of a batch."""
    return _DeltaMethod(moments).compute_errors(metric)


def compute_gradient(metric: Metric, moments: Moments) -> Floats:
    """Return how a metric changes with the means, variances and covariance of target and error.

    [..., 5] of a batch.
    """
    return _DeltaMethod(moments).compute_gradient(metric)


@dataclass(frozen=True)
class _DeltaMethod:
    """Standard errors over items, and what those of all metrics share."""

    moments: Moments  # or a batch of them

    def compute_errors(self, metric: Metric) -> Array:
        """Return the standard error of a metric."""
        if metric.name == "mae":
            return _mae_standard_error(self.moments)
        slopes = self.compute_gradient(metric)
        parts = slopes[..., :, None] * self.covariance * slopes[..., None, :]
        return _root_unless_rounding(
            parts.sum(axis=(-2, -1)), np.abs(parts).sum(axis=(-2, -1)), self.moments
        )

    def compute_gradient(self, metric: Metric) -> Floats:
        """Return how a metric changes with the basis [..., 5].

        A step in the imaginary direction has no rounding error, and the formulas of the catalogue
        take it. Metrics that people declare are differenced on both sides instead.
        """
        with np.errstate(invalid="ignore"):  # a step may lead to where a metric has no value
            if metric.function.__module__ == regression.__name__:
                changes = np.imag(metric(self.moved)) / abs(COMPLEX_STEP)
            else:
                moved = _perturb_moments(self.moments, np.concatenate([self.steps, -self.steps]))
                values = np.asarray(metric(moved), float)
                changes = (values[: len(MOMENT_BASIS)] - values[len(MOMENT_BASIS) :]) / 2.0
        return np.nan_to_num(np.moveaxis(changes, 0, -1) / self.sizes)

    @cached_property
    def covariance(self) -> Floats:
        return _covariance(self.moments)

    @cached_property
    def sizes(self) -> Floats:
        return _choose_steps(self.moments)

    @property
    def steps(self) -> Floats:
        return np.moveaxis(self.sizes[..., None] * np.eye(len(MOMENT_BASIS)), -1, 0)

    @cached_property
    def moved(self) -> Moments:
        return _perturb_moments(self.moments, self.steps * COMPLEX_STEP)


def _choose_steps(moments: Moments) -> Floats:
    y2 = np.asarray(moments.plain.mean(2, 0))
    e2 = moments.squares / moments.total
    sizes = np.stack([y2**0.5, e2**0.5, y2, (y2 * e2) ** 0.5, e2], axis=-1)
    return RELATIVE_STEP * np.where(sizes > 0.0, sizes, 1.0)


def _perturb_moments(moments: Moments, points: Array) -> Moments:
    """Return a batch of summaries whose means and second moments are moved a little."""
    weight = np.asarray(moments.total)
    flat = replace(moments, histogram=None)  # which no smooth metric reads
    wide = flat.broadcast((len(points),))
    y, e = moments.plain.y + points[..., 0], moments.plain.e + points[..., 1]
    sums = wide.plain.sums.astype(points.dtype)
    for k, (a, b) in enumerate(MOMENT_BASIS[2:], start=2):
        sums[..., a, b] += weight * points[..., k]
    squares = sums[..., 0, 2] + weight * e**2
    return replace(wide, plain=CentralSums(y, e, sums), squares=squares)


def _basis_centres(moments: Moments) -> Floats:
    means = [np.asarray(moments.plain.mean(a, b)) for a, b in MOMENT_BASIS[2:]]
    return np.stack([np.zeros_like(means[0]), np.zeros_like(means[0]), *means], axis=-1)


def _covariance(moments: Moments) -> Floats:
    """Return the covariances of the basis, from moments up to order four [..., 5, 5]."""
    sums = _square_weights(moments).recenter_sums(moments.plain.y, moments.plain.e).sums
    centres = _basis_centres(moments)
    covariances = np.empty((*moments.shape, len(MOMENT_BASIS), len(MOMENT_BASIS)))
    for i, (a, b) in enumerate(MOMENT_BASIS):
        for j, (c, d) in enumerate(MOMENT_BASIS):
            covariances[..., i, j] = (
                sums[..., a + c, b + d]
                - centres[..., i] * sums[..., c, d]
                - centres[..., j] * sums[..., a, b]
                + centres[..., i] * centres[..., j] * sums[..., 0, 0]
            )
    return covariances / np.asarray(moments.total)[..., None, None] ** 2


def _square_weights(moments: Moments) -> CentralSums:
    """Return sums with squared weights; a count is a sum of ones, whose squares are ones."""
    return moments.plain if moments.has_integer_weights else moments.squared


def _sum_cluster_contributions(moments: Moments, groups: Moments) -> Floats:
    """Return what each cluster adds to the basis [G, 5]."""
    about = groups.plain.recenter_sums(moments.plain.y, moments.plain.e).sums
    centres = _basis_centres(moments)
    columns = [
        about[:, a, b] - c * about[:, 0, 0] for (a, b), c in zip(MOMENT_BASIS, centres, strict=True)
    ]
    return np.stack(columns, axis=1)


def _between_cluster_error(sums: Floats, groups: Moments, moments: Moments) -> float:
    count = int((groups.items > 0).sum())
    return math.sqrt(count / (count - 1) * float((sums**2).sum())) / float(moments.total)


def _mae_standard_error(moments: Moments) -> Array:
    """Return the error of the mean absolute error over items."""
    value = moments.absolute / moments.total
    counts = _square_weights(moments)
    squares = counts.recenter_sums(moments.plain.y, np.zeros_like(moments.plain.e)).sums[..., 0, 2]
    absolute = moments.absolute if moments.has_integer_weights else moments.absolute_squared
    variance = squares - 2.0 * value * absolute + value**2 * counts.weight
    return _root_unless_rounding(variance, squares, moments) / moments.total


def _root_unless_rounding(variance: Array, parts: Array, moments: Moments) -> Array:
    """Return standard errors, 0 where rounding may be all that is left of their parts."""
    n = np.asarray(moments.total if moments.has_integer_weights else moments.items, float)
    known = variance > LOST_PRECISION_SHARE * parts
    return np.sqrt(np.where(known, variance, 0.0) * n / np.maximum(n - 1.0, 1.0))


def _estimate_median(moments: Moments, value: float, settings: ConfidenceIntervals) -> Estimate:
    """Return the interval of the median from its ranks, with a normal approximation."""
    size = float(moments.total) ** 2 / float(
        _square_weights(moments).weight
    )  # items of equal weight
    if 1.0 - 2.0 ** (1.0 - size) < settings.level:  # P(errors lie on both sides of it)
        return make_point_estimate(value, "there are too few items")
    half = normal_quantile(settings.level) / (2.0 * math.sqrt(size))
    low, high = (
        float(find_error_percentile(moments, min(max(x, 0.0), 1.0)))
        for x in (0.5 - half, 0.5 + half)
    )
    return Estimate(value, low, high, "ranks")


# --- resamples of the items ----------------------------------------------------------------------


def is_resampled(settings: ConfidenceIntervals, items: float, parts: int = 1) -> bool:
    """Tell whether items are resampled: on request, or if neither they nor their parts are many.

    Parts are subgroups of the items, or models that predict them.
    """
    if settings.method is not None:
        return settings.method == STUDENTIZED
    return items <= MOST_RESAMPLED_ITEMS and parts <= MOST_RESAMPLED_PARTS


def estimate_from_items(
    metrics: Sequence[Metric],
    moments: Moments,
    targets: Floats,
    predictions: Floats,
    settings: ConfidenceIntervals,
    weights: Floats | None = None,
) -> dict[str, Estimate]:
    """Return metrics with studentised intervals from resamples; few items get Student's t.

    `moments` is the summary of the items.
    """
    plain = replace(settings, method=None)
    _refuse_misfit(plain)
    if count_items(moments) < FEWEST_RESAMPLED_ITEMS:
        return estimate_regression_metrics(metrics, moments, plain)
    counted = bool(moments.has_integer_weights)
    drawn = resample_poisson(targets, predictions, settings, weights, counted=counted)
    resamples = replace(drawn[drawn.items > 1], constants=moments.constants, spread={})
    errors = _DeltaMethod(resamples)
    return {m.expression: _estimate_resampled(m, moments, errors, plain) for m in metrics}


def _estimate_resampled(
    metric: Metric, moments: Moments, resamples: _DeltaMethod, settings: ConfidenceIntervals
) -> Estimate:
    value = float(metric(moments))
    if _explain_missing_interval(metric, moments, value) is not None:
        return _estimate_metric(metric, moments, None, settings)
    values = np.asarray(metric(resamples.moments), float)
    error, errors = standard_error(metric, moments), resamples.compute_errors(metric)
    defined = np.isfinite(values) & (errors > 0.0)
    undefined = 1.0 - float(defined.sum()) / settings.resamples
    if error == 0.0 or not defined.any():
        return make_point_estimate(value, NO_ERROR_NOTE, undefined)
    low, high = studentised_interval(
        value, error, values[defined], errors[defined], metric.bounds, settings.level
    )
    return Estimate(value, low, high, STUDENTIZED, undefined)


def resample_poisson(
    targets: Floats,
    predictions: Floats,
    settings: ConfidenceIntervals,
    weights: Floats | None = None,
    *,
    counted: bool = True,
    chunk_size: int = CHUNK_SIZE,
) -> Moments:
    """Return a batch of summaries in which each item counts as often as a Poisson variable says.

    One pass over the items serves all resamples. They have fewer items than the sample: N to the
    power of 3/4, about, so that few of them hold the largest errors, as few samples do. Integer
    weights are counts of items, each of which is drawn, if they are `counted` so.
    """
    rng, rates = np.random.default_rng(settings.seed), None
    if weights is not None:
        positive = weights > 0
        targets, predictions, weights = targets[positive], predictions[positive], weights[positive]
        if counted and (weights == np.floor(weights)).all():
            rates, weights = weights, None
    if rates is not None and rates.sum() <= MOST_RESAMPLED_ITEMS:  # the same, and quicker
        counts, rates = rates.astype(int), None
        targets, predictions = np.repeat(targets, counts), np.repeat(predictions, counts)
    n = float(len(targets) if rates is None else rates.sum())
    share = n**RESAMPLE_EXPONENT / n
    centre = float(targets.mean()), float((predictions - targets).mean())
    size = settings.resamples, len(MOMENT_POWERS) + 2
    items, plain, squared = np.zeros(size[0]), np.zeros(size), np.zeros(size)
    for start in range(0, len(targets), chunk_size):
        chunk = slice(start, start + chunk_size)
        e = predictions[chunk] - targets[chunk]
        powers = _compute_powers(targets[chunk] - centre[0], e - centre[1], e)
        rate = share if rates is None else share * rates[chunk]
        tables = [powers]
        if weights is not None:
            tables = [powers * weights[chunk], powers * weights[chunk] ** 2]
        taken, sums = _sum_resamples(rng, rate, settings.resamples, tables)
        items += taken
        plain += sums[0]
        squared += sums[-1]
    return _build_summary(items, plain, plain if weights is None else squared, centre)


def _sum_resamples(
    rng: np.random.Generator, rate: float | Floats, resamples: int, tables: list[Floats]
) -> tuple[Array, list[Floats]]:
    """Return how many items each resample takes, and its sums [B, 17] of tables [17, n] of items.

    A Poisson number of draws, spread evenly, is a Poisson number of each item. With a rate for each
    item, as of counts, which may be large, the number of each is drawn.
    """
    n = tables[0].shape[1]
    if not isinstance(rate, float):
        times = rng.poisson(rate, (resamples, n)).astype(float)
        return times.sum(axis=1), [np.einsum("bn,kn->bk", times, table) for table in tables]
    numbers = rng.poisson(rate * n, resamples)
    item = rng.integers(0, n, numbers.sum())
    filled, first = numbers > 0, np.cumsum(numbers) - numbers  # where each resample begins
    sums = [np.zeros((resamples, len(table))) for table in tables]
    for found, table in zip(sums, tables, strict=True):
        for k, row in enumerate(table):
            found[filled, k] = np.add.reduceat(row[item], first[filled])
    return numbers, sums


def _compute_powers(d: Floats, f: Floats, e: Floats) -> Floats:
    """Return what is summed up of the items [17, n]: d^a f^b, and |e| and e²."""
    return np.stack([*(d**a * f**b for a, b in MOMENT_POWERS), np.abs(e), e * e])


def _build_summary(
    items: Floats, plain: Floats, squared: Floats, centre: tuple[float, float]
) -> Moments:
    """Return a batch of summaries from sums [B, 17] about one point."""
    counted = squared is plain
    central = _center_sums(plain, centre)
    return Moments(
        items,
        central,
        central if counted else _center_sums(squared, centre),
        absolute=plain[:, -2],
        absolute_squared=squared[:, -2],
        largest=np.full(len(plain), np.nan),
        squares=plain[:, -1],
        counted=counted,
    )


def _center_sums(sums: Floats, centre: tuple[float, float]) -> CentralSums:
    powers = np.zeros((len(sums), HIGHEST_ORDER + 1, HIGHEST_ORDER + 1))
    for k, (a, b) in enumerate(MOMENT_POWERS):
        powers[:, a, b] = sums[:, k]
    return _center_powers(powers, centre)


def _center_powers(powers: Floats, centre: tuple[float, float]) -> CentralSums:
    """Return sums [B, 5, 5] about the means of each, from those about one point."""
    y, e = (np.full(len(powers), point) for point in centre)
    weight = np.maximum(powers[:, 0, 0], 1e-300)
    central = CentralSums(y, e, powers).recenter_sums(
        y + powers[:, 1, 0] / weight, e + powers[:, 0, 1] / weight
    )
    for a, b in ((2, 0), (0, 2)):  # a resample of one item only has no spread
        alike = central.sums[:, a, b] <= ROUNDING_SHARE * powers[:, a, b]
        central.sums[alike, a, b] = 0.0
    return central
