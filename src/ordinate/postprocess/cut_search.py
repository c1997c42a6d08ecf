"""Which places are best for a metric: an exact program where there is one, otherwise a search."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ordinate.metrics import Metric, find
from ordinate.postprocess.cut_segments import (
    Floats,
    Places,
    best_for_cells,
    best_for_columns,
    best_quotient,
    cells_between,
)
from ordinate.postprocess.decoding_costs import CORRECTED, SAME, credits_at
from ordinate.postprocess.segment_scores import COLUMNS, QUOTIENTS, ColumnWorth
from ordinate.scale import Scale
from ordinate.summaries import Confusion

MOST_SCORES = 3_000  # distinct scores, up to which all pairs of them are compared
MOST_TRIED = 500  # places that a search tries for one cut
MOST_SWEEPS = 100  # over all cuts
TABLES = 1 << 21  # cells of tables that are measured together
ENOUGH = 1e-12  # what a step must gain


class Ordered(NamedTuple):
    """Items in the order of their scores: how much of each gold level is below each place."""

    table: Confusion  # if every prediction were right
    below: Floats

    @classmethod
    def of(cls, scale: Scale, ranks: Places, gold: Places, weights: Floats) -> "Ordered":
        """Return items by the rank of their score among the distinct ones, 0 for the lowest."""
        order = np.lexsort((weights, gold, ranks))  # so that sums do not depend on the order given
        ranks, gold, weights = ranks[order], gold[order], weights[order]
        size = len(scale)
        shape = int(ranks[-1]) + 1, size
        mass = np.bincount(ranks * size + gold, weights, shape[0] * size).reshape(shape)
        below = np.concatenate([np.zeros((1, size)), mass.cumsum(axis=0)])
        table = Confusion.from_counts(scale, np.diag(below[-1]))
        return cls(replace(table, counted=bool((weights == np.floor(weights)).all())), below)

    @property
    def gold(self) -> Floats:
        """The weight of each gold level."""
        return self.below[-1]

    def table_of(self, places: Places) -> Confusion:
        """Return the table of cuts at these places."""
        return self.table.with_cells(cells_between(self.below, places))

    def at(self, stops: Places) -> "Ordered":
        """Return the same items, of which only those between two stops can be told apart."""
        return Ordered(self.table, self.below[stops])


def best_places(metric: Metric, items: Ordered) -> tuple[Places, bool]:
    """Return the best places that were found, and whether there are provably no better ones."""
    name = metric.alias_of or metric.name
    linear = metric.linear and metric.direction != "zero"
    seen = np.flatnonzero(items.gold)
    if len(seen) == 1 and not (linear and np.isfinite(metric(items.table))):
        return _constant(items, int(seen[0])), False  # right, though kappas are undefined then
    if linear:
        return best_for_cells(_credits(metric, items), items.below), True
    if name in SAME:
        return _best_alike(name, items), True
    if name in BEYOND_CHANCE:
        return _beyond_chance(metric, BEYOND_CHANCE[name](metric, items.table.scale), items), True
    if name in COLUMNS:
        return _by_columns(metric, COLUMNS[name], items)
    return _searched(metric, items), False


def is_best(metric: Metric, value: float) -> bool:
    """Tell whether a value is the best that the metric has."""
    best = {"maximize": metric.bounds[1], "minimize": metric.bounds[0], "zero": 0.0}
    return abs(value - best[metric.direction]) <= ENOUGH


# --- sums over cells -----------------------------------------------------------------------------


def _credits(metric: Metric, items: Ordered) -> Floats:
    return credits_at(metric, items.table.scale, items.gold)


def _best_mean(name: str) -> Callable[[Ordered], Places]:
    return lambda items: best_for_cells(_credits(find(name), items), items.below)


def _best_alike(name: str, items: Ordered) -> Places:
    """Return the best places for a metric that is best where a linear one is."""
    credit = _credits(find(SAME[name]), items)
    if name == "recall_macro":  # in which predicting a level that gold lacks does harm
        credit[:, items.gold == 0] = credit.min() - 1.0
    return best_for_cells(credit, items.below)


# --- quotients of sums over cells ----------------------------------------------------------------


# (value - chance) / (perfect - chance) of a linear metric, chance from the two margins. With
# population moments, concordance is the quadratic kappa.
BEYOND_CHANCE = CORRECTED | {"ccc": lambda _, __: find("mse")}


def _beyond_chance(metric: Metric, linear: Metric, items: Ordered) -> Places:
    """Return the places that are best beyond chance.

    Gold being fixed, chance is the mean over predictions of what a constant prediction earns, and
    so linear itself: value - chance - rate · (perfect - chance) is a sum over cells.
    """
    credit = _credits(linear, items)
    constant = items.gold @ credit / items.gold.sum()

    def best(rate: float) -> Places:
        return best_for_cells(credit - (1.0 - rate) * constant, items.below)

    return best_quotient(best, lambda places: _merit(metric, items, places), best(1.0))


# --- sums over columns ---------------------------------------------------------------------------


def _by_columns(metric: Metric, worth: ColumnWorth, items: Ordered) -> tuple[Places, bool]:
    stops = _stops(items, MOST_SCORES)
    coarse, total = items.at(stops), items.gold.sum()
    gold = (items.gold / total)[:, None, None]

    def best(rate: float) -> Places:
        return best_for_columns(lambda part: worth(part / total, gold, rate), coarse.below)

    if (metric.alias_of or metric.name) in QUOTIENTS:
        start = _by_share(coarse, coarse.gold)
        found = best_quotient(best, lambda places: _merit(metric, coarse, places), start)
    else:
        found = best(0.0)
    if len(stops) == len(items.below):
        return found, True
    return _refined(metric, items, stops[found], stops), False


# --- a search ------------------------------------------------------------------------------------


def _searched(metric: Metric, items: Ordered) -> Places:
    """Climb from several starts, one cut after the other, and keep the best."""
    stops = _stops(items, MOST_TRIED)
    starts = [
        _by_share(items, items.gold),
        _by_share(items, np.ones_like(items.gold)),
        *(_best_mean(name)(items) for name in ("accuracy", "mae", "macro_mae")),
        best_places(find("quadratic_kappa"), items)[0],
        _best_of(metric, items, [_constant(items, level) for level in range(items.gold.size)]),
    ]
    climbed = [_climbed(metric, items, start, lambda _: stops) for start in starts]
    best = _best_of(metric, items, climbed)
    return best if len(stops) == len(items.below) else _refined(metric, items, best, stops)


def _refined(metric: Metric, items: Ordered, places: Places, stops: Places) -> Places:
    """Return the best of the places between the neighbouring stops, one cut after the other."""

    def near(place: int) -> Places:
        left = max(int(np.searchsorted(stops, place)) - 1, 0)
        right = min(int(np.searchsorted(stops, place, side="right")), len(stops) - 1)
        return np.arange(stops[left], stops[right] + 1)

    return _climbed(metric, items, places, near)


def _climbed(
    metric: Metric, items: Ordered, start: Places, tried: Callable[[int], Places]
) -> Places:
    """Move one cut at a time to the best of the places tried, as long as that gains."""
    places, reached = start.copy(), _merit(metric, items, start)
    for _ in range(MOST_SWEEPS):
        before = reached
        for k in range(len(places)):
            low = places[k - 1] if k else 0
            high = places[k + 1] if k + 1 < len(places) else len(items.below) - 1
            near = tried(int(places[k]))
            near = np.append(places[k], near[(low <= near) & (near <= high)])
            moved = np.repeat(places[None], len(near), axis=0)
            moved[:, k] = near
            merits = _merits(metric, items, moved)
            top = int(np.argmax(merits))
            if merits[top] > reached + ENOUGH:
                places, reached = moved[top], float(merits[top])
        if not reached > before:
            break
    return places


def _best_of(metric: Metric, items: Ordered, tried: list[Places]) -> Places:
    return tried[int(np.argmax(_merits(metric, items, np.stack(tried))))]


def _merit(metric: Metric, items: Ordered, places: Places) -> float:
    return float(_merits(metric, items, places[None])[0])


def _merits(metric: Metric, items: Ordered, places: Places) -> Floats:
    """Return numbers of which the larger are better, for many cuts [M, K - 1] at once."""
    step = max(1, TABLES // items.gold.size**2)
    found = []
    for start in range(0, len(places), step):
        tables = items.table_of(places[start : start + step])
        found.append(metric.merit(metric.of_expected(tables, items.table)))
    merits = np.concatenate(found)
    return np.where(np.isnan(merits), -np.inf, merits)


def _constant(items: Ordered, level: int) -> Places:
    """Return the places that give every item the same level."""
    cuts = np.arange(items.gold.size - 1)
    return np.where(cuts < level, 0, len(items.below) - 1)


def _by_share(items: Ordered, shares: Floats) -> Places:
    """Return places that give each level about this share of the items."""
    wanted = shares.cumsum()[:-1] / shares.sum() * items.gold.sum()
    return np.searchsorted(items.below[:-1].sum(axis=1), wanted)  # the last place at most


def _stops(items: Ordered, most: int) -> Places:
    """Return all places, or about as many as are allowed, with equal weights between them."""
    last = len(items.below) - 1
    if last <= most:
        return np.arange(last + 1)
    weight = items.below.sum(axis=1)
    between = np.searchsorted(weight, np.linspace(0.0, weight[-1], most + 1)[1:-1])
    return np.unique([0, *between, last])
