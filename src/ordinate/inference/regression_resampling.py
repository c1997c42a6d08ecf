"""Resamples of a regression: the Poisson bootstrap of items, and clusters left out one by one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.confidence_intervals import ConfidenceIntervals
from ordinate.metrics.regression import ROUNDING_SHARE
from ordinate.summaries.regression import HIGHEST_ORDER, MOMENT_POWERS, CentralSums, Moments

Array = NDArray[Any]
Floats = NDArray[np.float64]
CHUNK_SIZE = 1 << 12  # items whose resamples fit into the cache
RESAMPLE_EXPONENT = 0.75  # a resample has N to this power items: what covered best in the study
MOST_REPEATED_ITEMS = 100_000  # counts of more are not spread into single items


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
    if rates is not None and rates.sum() <= MOST_REPEATED_ITEMS:  # the same, and quicker
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
