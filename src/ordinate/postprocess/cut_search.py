"""Which places are best for a metric: an exact program where there is one, otherwise a search."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ordinate.metrics import Metric, find_metric
from ordinate.postprocess.cut_segments import (
    Floats,
    Places,
    maximise_cell_credit,
    maximise_column_worth,
    maximise_quotient,
    tabulate_segments,
)
from ordinate.postprocess.decoding_costs import (
    CHANCE_CORRECTED_BASES,
    EQUIVALENT_METRICS,
    compute_credits,
)
from ordinate.postprocess.segment_scores import COLUMN_METRICS, QUOTIENT_METRICS, ColumnWorth
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

MOST_SCORES = 3_000  # distinct scores, up to which all pairs of them are compared
MOST_TRIED = 500  # places that a search tries for one cut
MOST_SWEEPS = 100  # over all cuts
MOST_CELLS = 1 << 21  # cells of tables that are measured together
LEAST_GAIN = 1e-12  # what a step must gain


class ScoreOrderedItems(NamedTuple):
    """Items in the order of their scores: how much of each gold level is below each place."""

    table: ConfusionMatrix  # if every prediction were right
    below: Floats

    @classmethod
    def of(cls, scale: Scale, ranks: Places, gold: Places, weights: Floats) -> "ScoreOrderedItems":
        """Return items by the rank of their score among the distinct ones, 0 for the lowest."""
        order = np.lexsort((weights, gold, ranks))  # so that sums do not depend on the order given
        ranks, gold, weights = ranks[order], gold[order], weights[order]
        size = len(scale)
        shape = int(ranks[-1]) + 1, size
        mass = np.bincount(ranks * size + gold, weights, shape[0] * size).reshape(shape)
        below = np.concatenate([np.zeros((1, size)), mass.cumsum(axis=0)])
        table = ConfusionMatrix.from_counts(scale, np.diag(below[-1]))
        return cls(replace(table, counted=bool((weights == np.floor(weights)).all())), below)

    @property
    def gold(self) -> Floats:
        """The weight of each gold level."""
        return self.below[-1]

    def tabulate_cuts(self, places: Places) -> ConfusionMatrix:
        """Return the table of cuts at these places."""
        return self.table.with_cells(tabulate_segments(self.below, places))

    def at(self, stops: Places) -> "ScoreOrderedItems":
        """Return the same items, of which only those between two stops can be distinguished."""
        return ScoreOrderedItems(self.table, self.below[stops])


def search_best_cuts(metric: Metric, items: ScoreOrderedItems) -> tuple[Places, bool]:
    """Return the best places that were found, and whether there are provably no better ones."""
    name = metric.alias_of or metric.name
    linear = metric.linear and metric.direction != "zero"
    seen = np.flatnonzero(items.gold)
    if len(seen) == 1 and not (linear and np.isfinite(metric(items.table))):
        return _place_constant(
            items, int(seen[0])
        ), False  # right, though kappas are undefined then
    if linear:
        return maximise_cell_credit(_credits(metric, items), items.below), True
    if name in EQUIVALENT_METRICS:
        return _maximise_equivalent(name, items), True
    if name in CHANCE_CORRECTED_METRICS:
        return _maximise_beyond_chance(
            metric, CHANCE_CORRECTED_METRICS[name](metric, items.table.scale), items
        ), True
    if name in COLUMN_METRICS:
        return _maximise_by_columns(metric, COLUMN_METRICS[name], items)
    return _climb_from_starts(metric, items), False


def is_best_value(metric: Metric, value: float) -> bool:
    """Tell whether a value is the best that the metric has."""
    best = {"maximize": metric.bounds[1], "minimize": metric.bounds[0], "zero": 0.0}
    return abs(value - best[metric.direction]) <= LEAST_GAIN


# --- sums over cells -----------------------------------------------------------------------------


def _credits(metric: Metric, items: ScoreOrderedItems) -> Floats:
    return compute_credits(metric, items.table.scale, items.gold)


def _make_mean_search(name: str) -> Callable[[ScoreOrderedItems], Places]:
    return lambda items: maximise_cell_credit(_credits(find_metric(name), items), items.below)


def _maximise_equivalent(name: str, items: ScoreOrderedItems) -> Places:
    """Return the best places for a metric that is best where a linear one is."""
    credit = _credits(find_metric(EQUIVALENT_METRICS[name]), items)
    if name == "recall_macro":  # in which predicting a level that gold lacks does harm
        credit[:, items.gold == 0] = credit.min() - 1.0
    return maximise_cell_credit(credit, items.below)


# --- quotients of sums over cells ----------------------------------------------------------------


# (value - chance) / (perfect - chance) of a linear metric, chance from the two margins. With
# population moments, concordance is the quadratic kappa.
CHANCE_CORRECTED_METRICS = CHANCE_CORRECTED_BASES | {"ccc": lambda _, __: find_metric("mse")}


def _maximise_beyond_chance(metric: Metric, linear: Metric, items: ScoreOrderedItems) -> Places:
    """Return the places that are best beyond chance.

    Gold being fixed, chance is the mean over predictions of what a constant prediction earns, and
    so linear itself: value - chance - rate · (perfect - chance) is a sum over cells.
    """
    credit = _credits(linear, items)
    constant = items.gold @ credit / items.gold.sum()

    def best(rate: float) -> Places:
        return maximise_cell_credit(credit - (1.0 - rate) * constant, items.below)

    return maximise_quotient(best, lambda places: _merit(metric, items, places), best(1.0))


# --- sums over columns ---------------------------------------------------------------------------


def _maximise_by_columns(
    metric: Metric, worth: ColumnWorth, items: ScoreOrderedItems
) -> tuple[Places, bool]:
    stops = _choose_stops(items, MOST_SCORES)
    coarse, total = items.at(stops), items.gold.sum()
    gold = (items.gold / total)[:, None, None]

    def best(rate: float) -> Places:
        return maximise_column_worth(lambda part: worth(part / total, gold, rate), coarse.below)

    if (metric.alias_of or metric.name) in QUOTIENT_METRICS:
        start = _place_by_shares(coarse, coarse.gold)
        found = maximise_quotient(best, lambda places: _merit(metric, coarse, places), start)
    else:
        found = best(0.0)
    if len(stops) == len(items.below):
        return found, True
    return _refine_cuts(metric, items, stops[found], stops), False


# --- a search ------------------------------------------------------------------------------------


def _climb_from_starts(metric: Metric, items: ScoreOrderedItems) -> Places:
    """Climb from several starts, one cut after the other, and keep the best."""
    stops = _choose_stops(items, MOST_TRIED)
    starts = [
        _place_by_shares(items, items.gold),
        _place_by_shares(items, np.ones_like(items.gold)),
        *(_make_mean_search(name)(items) for name in ("accuracy", "mae", "macro_mae")),
        search_best_cuts(find_metric("quadratic_kappa"), items)[0],
        _select_best_cuts(
            metric, items, [_place_constant(items, level) for level in range(items.gold.size)]
        ),
    ]
    climbed = [_climb_cuts(metric, items, start, lambda _: stops) for start in starts]
    best = _select_best_cuts(metric, items, climbed)
    return best if len(stops) == len(items.below) else _refine_cuts(metric, items, best, stops)


def _refine_cuts(metric: Metric, items: ScoreOrderedItems, places: Places, stops: Places) -> Places:
    """Return the best of the places between the neighbouring stops, one cut after the other."""

    def near(place: int) -> Places:
        left = max(int(np.searchsorted(stops, place)) - 1, 0)
        right = min(int(np.searchsorted(stops, place, side="right")), len(stops) - 1)
        return np.arange(stops[left], stops[right] + 1)

    return _climb_cuts(metric, items, places, near)


def _climb_cuts(
    metric: Metric, items: ScoreOrderedItems, start: Places, tried: Callable[[int], Places]
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
            if merits[top] > reached + LEAST_GAIN:
                places, reached = moved[top], float(merits[top])
        if not reached > before:
            break
    return places


def _select_best_cuts(metric: Metric, items: ScoreOrderedItems, tried: list[Places]) -> Places:
    return tried[int(np.argmax(_merits(metric, items, np.stack(tried))))]


def _merit(metric: Metric, items: ScoreOrderedItems, places: Places) -> float:
    return float(_merits(metric, items, places[None])[0])


def _merits(metric: Metric, items: ScoreOrderedItems, places: Places) -> Floats:
    """Return numbers of which the larger are better, for many cuts [M, K - 1] at once."""
    step = max(1, MOST_CELLS // items.gold.size**2)
    found = []
    for start in range(0, len(places), step):
        tables = items.tabulate_cuts(places[start : start + step])
        found.append(metric.merit(metric.compute_from_expected(tables, items.table)))
    merits = np.concatenate(found)
    return np.where(np.isnan(merits), -np.inf, merits)


def _place_constant(items: ScoreOrderedItems, level: int) -> Places:
    """Return the places that give every item the same level."""
    cuts = np.arange(items.gold.size - 1)
    return np.where(cuts < level, 0, len(items.below) - 1)


def _place_by_shares(items: ScoreOrderedItems, shares: Floats) -> Places:
    """Return places that give each level about this share of the items."""
    wanted = shares.cumsum()[:-1] / shares.sum() * items.gold.sum()
    return np.searchsorted(items.below[:-1].sum(axis=1), wanted)  # the last place at most


def _choose_stops(items: ScoreOrderedItems, most: int) -> Places:
    """Return all places, or about as many as are allowed, with equal weights between them."""
    last = len(items.below) - 1
    if last <= most:
        return np.arange(last + 1)
    weight = items.below.sum(axis=1)
    between = np.searchsorted(weight, np.linspace(0.0, weight[-1], most + 1)[1:-1])
    return np.unique([0, *between, last])
