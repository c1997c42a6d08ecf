"""Many systems on the same items: one draw of the items serves all of them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NotApplicable
from ordinate.inference.delta import influence
from ordinate.inference.draws import BLOCK, Draws, Tick, group_draws, redrawn
from ordinate.metrics import Metric
from ordinate.summary import Panel

if TYPE_CHECKING:  # loading it takes a while, and not every interval needs draws
    from numpy.random import Generator

Array = NDArray[Any]
LARGE = 8 * BLOCK  # numbers in a block of draws of a panel
MOST_ROWS = 100_000  # distinct rows that are drawn one by one
TIE = 1e-12


def joint_values(
    panel: Panel, metrics: Sequence[Metric], draws: Draws, tick: Tick | None = None
) -> dict[str, Array]:
    """Return the values [B, S] of metrics, by expression, on items drawn again for all systems.

    Where the distinct rows are too many, the values of smooth metrics are drawn from the normal
    distribution that they approach, with the covariance of the systems' influences.
    """
    large = len(panel) > MOST_ROWS and panel.groups is None
    normal = [metric for metric in metrics if large and metric.smooth]
    found = {metric.expression: _normal_values(panel, metric, draws) for metric in normal}
    rest = [metric for metric in metrics if metric.expression not in found]
    return found | _drawn_values(panel, rest, draws, tick) if rest else found


def _drawn_values(
    panel: Panel, metrics: Sequence[Metric], draws: Draws, tick: Tick | None
) -> dict[str, Array]:
    size = len(panel.scale)
    tables = len(panel.systems) * size * (size + 1)
    order = _canonical(panel)

    def work(rng: "Generator", count: int) -> list[Array]:
        cells = _tables(panel, _multiplicities(panel, order, rng, count))
        return [_measured(metric, panel, cells) for metric in metrics]

    blocks = draws.by_block(len(panel) + tables, work, block=LARGE, tick=tick)
    values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return {metric.expression: found for metric, found in zip(metrics, values, strict=True)}


def _canonical(panel: Panel) -> Array:
    """Return an order of the rows that does not depend on the order or the names of systems."""
    tables = [panel.table(system).weights.reshape(-1).tolist() for system in panel.systems]
    systems = sorted(range(len(tables)), key=tables.__getitem__)
    columns = [panel.rows[:, 1 + system] for system in reversed(systems)]
    return np.lexsort([*columns, panel.rows[:, 0]])


def _multiplicities(panel: Panel, order: Array, rng: "Generator", count: int) -> Array:
    """Return the weight [count, U] of each row in each draw."""
    if panel.groups is not None:
        drawn = group_draws(rng, len(panel.group_values), count)
        return drawn[:, panel.groups] * panel.weights
    squares = None if panel.whole else panel.squares[order]
    found = np.empty((count, len(panel)))
    found[:, order] = redrawn(rng, panel.weights[order], squares, count)
    return found


def _tables(panel: Panel, drawn: Array) -> Array:
    """Return the tables [count, S, K, K + 1] of all systems: sums of drawn rows by answer."""
    size, systems = len(panel.scale), len(panel.systems)
    cells = np.zeros((len(drawn), systems, size, size + 1))
    for level in range(size):
        at = np.flatnonzero(panel.rows[:, 0] == level)
        step = max(1, LARGE // max(1, len(at) * (size + 1)))
        for first in range(0, systems, step) if len(at) else ():
            answers = panel.rows[at, 1 + first : 1 + first + step]
            chosen = (answers[:, :, None] == np.arange(size + 1)).astype(float)
            sums = drawn[:, at] @ chosen.reshape(len(at), -1)
            cells[:, first : first + step, level] = sums.reshape(len(drawn), -1, size + 1)
    return cells


def _measured(metric: Metric, panel: Panel, cells: Array) -> Array:
    """Return the values of a metric, a part of the tables at a time: what the cache holds."""
    table = panel.table(panel.systems[0])
    flat = cells.reshape(-1, *cells.shape[-2:])
    step = max(1, BLOCK // flat[0].size)
    parts = [
        metric.function(table.with_cells(flat[start : start + step]), **metric.options)
        for start in range(0, len(flat), step)
    ]
    return np.concatenate(parts).reshape(cells.shape[:2])


def _normal_values(panel: Panel, metric: Metric, draws: Draws) -> Array:
    """Return normal draws: Cov(s, t) = sum over items of IF_s IF_t / N^2, squared weights.

    A system on which the metric has no value has none in any draw.
    """
    values = np.full(len(panel.systems), np.nan)
    pulls = np.zeros((len(panel), len(panel.systems)))
    for index, system in enumerate(panel.systems):
        table = panel.table(system)
        with suppress(NotApplicable):
            values[index] = metric(table)
        if not np.isnan(values[index]):
            pull = influence(metric, table)
            pulls[:, index] = pull[panel.rows[:, 0], panel.rows[:, 1 + index]]
    squares = panel.weights if panel.whole else panel.squares
    covariance = (pulls * squares[:, None]).T @ pulls / panel.weights.sum() ** 2
    rng = np.random.default_rng([draws.seed, 0])
    around = rng.multivariate_normal(np.zeros(len(values)), covariance, draws.count, method="eigh")
    return values + around


# --- differences ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Differences:
    """First minus second for pairs of systems [P], with limits that hold for all of them at once.

    `p` is of each pair alone; `adjusted` is by max-T, stepping down over the family of pairs.
    """

    first: Array
    second: Array
    value: Array
    error: Array
    low: Array
    high: Array
    p: Array
    adjusted: Array


def differences(
    values: Array, drawn: Array, first: Array, second: Array, level: float
) -> Differences:
    """Compare pairs of systems by values [S] and joint draws [B, S] of them."""
    value = values[first] - values[second]
    spread = _errors(drawn, first, second)
    error = np.where(spread > TIE, spread, 0.0)
    reach = _ratio(np.abs(value), error)
    order = np.argsort(-reach, kind="stable")
    alone, stepped, largest = _exceeded(drawn, first, second, value, error, reach, order)
    count = len(drawn) + 1.0
    adjusted = np.empty(len(value))
    adjusted[order] = np.maximum.accumulate((stepped + 1.0) / count)
    half = np.quantile(largest, level, method="higher") * error if len(value) else error
    return Differences(
        first, second, value, error, value - half, value + half, (alone + 1.0) / count, adjusted
    )


def _blocks(drawn: Array, pairs: int) -> list[Array]:
    step = max(1, LARGE // max(1, pairs))
    return [drawn[start : start + step] for start in range(0, len(drawn), step)]


def _errors(drawn: Array, first: Array, second: Array) -> Array:
    covariance = np.atleast_2d(np.cov(drawn, rowvar=False))
    own = np.diag(covariance)
    return np.sqrt(np.maximum(own[first] + own[second] - 2.0 * covariance[first, second], 0.0))


def _ratio(part: Array, error: Array) -> Array:
    """Return part / error; without an error any difference reaches infinitely far."""
    sure = np.where(part > TIE, np.inf, 0.0)
    return np.divide(part, error, out=sure, where=error > 0)


def _exceeded(
    drawn: Array,
    first: Array,
    second: Array,
    value: Array,
    error: Array,
    reach: Array,
    order: Array,
) -> tuple[Array, Array, Array]:
    """Return how often a draw reaches as far as each pair: alone, and stepping down.

    Stepping down, a pair competes with all pairs that reach less far. The last answer is the
    largest reach of each draw.
    """
    alone, stepped = np.zeros(len(value)), np.zeros(len(value))
    largest = []
    for part in _blocks(drawn, len(value)):
        away = np.abs(part[:, first] - part[:, second] - value)
        away = _ratio(away, np.broadcast_to(error, away.shape))
        alone += (away >= reach - TIE).sum(axis=0)
        rest = np.maximum.accumulate(away[:, order[::-1]], axis=1)[:, ::-1]
        stepped += (rest >= reach[order] - TIE).sum(axis=0)
        largest.append(rest[:, 0] if len(value) else np.zeros(len(part)))
    return alone, stepped, np.concatenate(largest)


# --- ranks ---------------------------------------------------------------------------------------


def ranks(merits: Array) -> Array:
    """Return the rank of each system, 1 for the best; equal systems share the better rank.

    >>> ranks(np.array([0.7, 0.9, 0.7])).tolist()
    [2, 1, 2]
    """
    better = merits[..., None, :] > merits[..., :, None] + TIE
    return better.sum(axis=-1) + 1


def rank_shares(merits: Array) -> Array:
    """Return how often each system [S] had each rank [S] in draws [B, S]."""
    count, systems = merits.shape
    shares = np.zeros((systems, systems))
    step = max(1, LARGE // systems**2)
    for start in range(0, count, step):
        found = ranks(merits[start : start + step])
        place = np.arange(systems) * systems + found - 1
        shares += np.bincount(place.reshape(-1), minlength=systems**2).reshape(systems, systems)
    return shares / count


def rank_limits(apart: Array, better: Array) -> tuple[Array, Array]:
    """Return 1 + how many are surely better, and S - how many are surely worse."""
    low = 1 + (apart & better.T).sum(axis=1)
    return low, len(apart) - (apart & better).sum(axis=1)


def all_pairs(systems: int) -> tuple[Array, Array]:
    """Return the indices of all pairs of systems."""
    return np.triu_indices(systems, 1)


def told_apart(values: Array, drawn: Array, level: float) -> Array:
    """Return which systems [S, S] differ, by the largest reach over all pairs in each draw.

    It needs no list of pairs, and so serves hundreds of systems.
    """
    systems = len(values)
    error = np.zeros((systems, systems))
    error[all_pairs(systems)] = _errors(drawn, *all_pairs(systems))
    error = np.where(error > TIE, error, 0.0)
    scale = np.divide(1.0, error, out=np.zeros_like(error), where=error > 0)
    largest = np.zeros(len(drawn))
    away = drawn - values
    for index in range(systems - 1):
        reach = np.abs(away[:, index, None] - away[:, index + 1 :]) * scale[index, index + 1 :]
        np.maximum(largest, reach.max(axis=1), out=largest)
    least = np.quantile(largest, level, method="higher")
    apart = np.triu(_ratio(np.abs(values[:, None] - values), error) > least, 1)
    return apart | apart.T
