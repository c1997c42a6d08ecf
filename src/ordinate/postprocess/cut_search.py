"""The search for cut points: an exact program where a metric has one, otherwise coordinate ascent.

Items are in the order of their scores. A place is a number of distinct scores: a cut at place u has
u of them below it. `below` [U + 1, K] is the weight of each gold level below each place. K levels
need K - 1 places that do not fall; two that are equal leave the level between them without items.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.metrics import Metric, find_metric
from ordinate.metrics.arithmetic import log2_or_zero, ratio
from ordinate.metrics.table_sums import CHANCE_CORRECTED_BASES
from ordinate.postprocess.decoding_costs import EQUIVALENT_METRICS, compute_credits
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
SegmentWorth = Callable[[Floats], Floats]
# A function of the shares of segments by gold level [K, S, E], the gold shares [K, 1, 1] and, for a
# quotient of two sums, its value so far; for each level [K, S, E], or for all [1, S, E].
ColumnWorth = Callable[[Floats, Floats, float], Floats]

MOST_SCORES = 3_000  # distinct scores, up to which all pairs of them are compared
MOST_CANDIDATES = 500  # places that a search tries for one cut
MOST_SWEEPS = 100  # over all cuts
MOST_CELLS = 1 << 21  # cells of matrices that are evaluated together
MOST_SEGMENT_CELLS = 1 << 20  # cells of segments that are compared together
LEAST_GAIN = 1e-12  # what a step must gain
TIE_TOLERANCE = 1e-13  # of the largest sum: what rounding alone may set apart


class ScoreOrderedItems(NamedTuple):
    """Items in the order of their scores: how much of each gold level is below each place."""

    matrix: ConfusionMatrix  # if every prediction were right
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
        matrix = ConfusionMatrix.from_counts(np.diag(below[-1]), scale)
        return cls(replace(matrix, counted=bool((weights == np.floor(weights)).all())), below)

    @property
    def gold(self) -> Floats:
        """The weight of each gold level."""
        return self.below[-1]

    def tabulate_cuts(self, places: Places) -> ConfusionMatrix:
        """Return the confusion matrix of cuts at these places."""
        return self.matrix.with_cells(tabulate_segments(self.below, places))

    def coarsen(self, stops: Places) -> "ScoreOrderedItems":
        """Return the same items, of which only those between two stops can be distinguished."""
        return ScoreOrderedItems(self.matrix, self.below[stops])


def search_best_cuts(
    metric: Metric,
    items: ScoreOrderedItems,
    *,
    most_scores: int = MOST_SCORES,
    most_candidates: int = MOST_CANDIDATES,
) -> tuple[Places, bool]:
    """Return the best places known, and whether there are provably no better ones."""
    name = metric.alias_of or metric.name
    linear = metric.linear and metric.direction != "zero"
    seen = np.flatnonzero(items.gold)
    if len(seen) == 1 and not (linear and np.isfinite(metric(items.matrix))):
        # All items are right then, though kappas are undefined.
        return _place_constant(items, int(seen[0])), False
    if linear:
        return maximise_cell_credit(_credits(metric, items), items.below), True
    if name in EQUIVALENT_METRICS:
        return _maximise_equivalent(name, items), True
    if name in CHANCE_CORRECTED_METRICS:
        base = CHANCE_CORRECTED_METRICS[name](metric, items.matrix.scale)
        return _maximise_beyond_chance(metric, base, items), True
    if name in COLUMN_METRICS:
        return _maximise_by_columns(metric, COLUMN_METRICS[name], items, most_scores)
    return _climb_from_starts(metric, items, most_candidates), False


def is_best_value(metric: Metric, value: float) -> bool:
    """Tell whether a value is the best that the metric has."""
    best = {"maximize": metric.bounds[1], "minimize": metric.bounds[0], "zero": 0.0}
    return abs(value - best[metric.direction]) <= LEAST_GAIN


# --- sums over cells -----------------------------------------------------------------------------


def _credits(metric: Metric, items: ScoreOrderedItems) -> Floats:
    return compute_credits(metric, items.matrix.scale, items.gold)


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
    metric: Metric, worth: ColumnWorth, items: ScoreOrderedItems, most_scores: int
) -> tuple[Places, bool]:
    stops = _choose_stops(items, most_scores)
    coarse, total = items.coarsen(stops), items.gold.sum()
    gold = (items.gold / total)[:, None, None]

    def best(rate: float) -> Places:
        return maximise_column_worth(lambda part: worth(part / total, gold, rate), coarse.below)

    if (metric.alias_of or metric.name) in QUOTIENT_METRICS:
        start = _place_by_shares(coarse, coarse.gold)
        best_places = maximise_quotient(best, lambda places: _merit(metric, coarse, places), start)
    else:
        best_places = best(0.0)
    if len(stops) == len(items.below):
        return best_places, True
    return _refine_cuts(metric, items, stops[best_places], stops), False


# --- coordinate ascent ---------------------------------------------------------------------------


def _climb_from_starts(metric: Metric, items: ScoreOrderedItems, most_candidates: int) -> Places:
    """Climb from several starts, one cut after the other, and keep the best."""
    stops = _choose_stops(items, most_candidates)
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

    def list_near_places(place: int) -> Places:
        left = max(int(np.searchsorted(stops, place)) - 1, 0)
        right = min(int(np.searchsorted(stops, place, side="right")), len(stops) - 1)
        return np.arange(stops[left], stops[right] + 1)

    return _climb_cuts(metric, items, places, list_near_places)


def _climb_cuts(
    metric: Metric,
    items: ScoreOrderedItems,
    start: Places,
    list_candidates: Callable[[int], Places],
) -> Places:
    """Move one cut at a time to the best of its candidate places, as long as that gains."""
    places, reached = start.copy(), _merit(metric, items, start)
    for _ in range(MOST_SWEEPS):
        before = reached
        for k in range(len(places)):
            low = places[k - 1] if k else 0
            high = places[k + 1] if k + 1 < len(places) else len(items.below) - 1
            candidates = list_candidates(int(places[k]))
            candidates = np.append(
                places[k], candidates[(low <= candidates) & (candidates <= high)]
            )
            moved = np.repeat(places[None], len(candidates), axis=0)
            moved[:, k] = candidates
            merits = _merits(metric, items, moved)
            top = int(np.argmax(merits))
            if merits[top] > reached + LEAST_GAIN:
                places, reached = moved[top], float(merits[top])
        if not reached > before:
            break
    return places


def _select_best_cuts(metric: Metric, items: ScoreOrderedItems, candidates: list[Places]) -> Places:
    return candidates[int(np.argmax(_merits(metric, items, np.stack(candidates))))]


def _merit(metric: Metric, items: ScoreOrderedItems, places: Places) -> float:
    return float(_merits(metric, items, places[None])[0])


def _merits(metric: Metric, items: ScoreOrderedItems, places: Places) -> Floats:
    """Return numbers of which the larger are better, for many cuts [M, K - 1] at once."""
    step = max(1, MOST_CELLS // items.gold.size**2)
    blocks = []
    for start in range(0, len(places), step):
        matrices = items.tabulate_cuts(places[start : start + step])
        blocks.append(metric.merit(metric.compute_from_expected(matrices, items.matrix)))
    merits = np.concatenate(blocks)
    return np.where(np.isnan(merits), -np.inf, merits)


def _place_constant(items: ScoreOrderedItems, level: int) -> Places:
    """Return the places that give every item the same level."""
    cuts = np.arange(items.gold.size - 1)
    return np.where(cuts < level, 0, len(items.below) - 1)


def _place_by_shares(items: ScoreOrderedItems, shares: Floats) -> Places:
    """Return places that give each level about this share of the items."""
    targets = shares.cumsum()[:-1] / shares.sum() * items.gold.sum()
    return np.searchsorted(items.below[:-1].sum(axis=1), targets)  # the last place at most


def _choose_stops(items: ScoreOrderedItems, most: int) -> Places:
    """Return all places, or about as many as are allowed, with equal weights between them."""
    last = len(items.below) - 1
    if last <= most:
        return np.arange(last + 1)
    weight = items.below.sum(axis=1)
    between = np.searchsorted(weight, np.linspace(0.0, weight[-1], most + 1)[1:-1])
    return np.unique([0, *between, last])


# --- the best places for a sum or a quotient ------------------------------------------------------


def tabulate_segments(below: Floats, places: Places) -> Floats:
    """Return the confusion matrices [..., K, K], rows gold, of cuts at places [..., K - 1]."""
    ends = np.empty((*places.shape[:-1], places.shape[-1] + 2), np.intp)
    ends[..., 0], ends[..., 1:-1], ends[..., -1] = 0, places, len(below) - 1
    return np.swapaxes(np.diff(below[ends], axis=-2), -1, -2)


def maximise_cell_credit(credit: Floats, below: Floats) -> Places:
    """Return the places with the largest Σ_ij credit_ij n_ij, in O(U K).

    Moving the cut between two levels up by one score gives its items to the lower level, so each
    cut earns on its own, and the cuts only have to rise: a running maximum for each is enough.
    Of equally good places it returns the lowest.
    """
    earned = below @ (credit[:, :-1] - credit[:, 1:])
    sums = np.empty((earned.shape[1], len(below)))
    highest: Any = 0.0
    for k, here in enumerate(sums):
        np.add(earned[:, k], highest, out=here)
        highest = np.maximum.accumulate(here)
    tolerance = TIE_TOLERANCE * float(np.abs(earned).max(initial=0.0))
    places, end = np.empty(len(sums), np.intp), len(below)
    for k in reversed(range(len(sums))):
        here = sums[k, :end]
        places[k] = np.argmax(here >= here.max() - tolerance)
        end = int(places[k]) + 1
    return places


def maximise_column_worth(
    worth: SegmentWorth, below: Floats, *, most_cells: int = MOST_SEGMENT_CELLS
) -> Places:
    """Return the places with the largest sum of what each column is worth, in O(U² K).

    `worth` takes the weights [K, S, E] by gold level of the items between S places and E others,
    and returns what they are worth as the column of each level [K, S, E], or [1, S, E] where
    that is the same for all. A column without items is worth nothing.
    """
    size, stops = below.shape[1], len(below)
    best = np.full((size, stops), -np.inf)
    via = np.zeros((size, stops), np.intp)
    nothing_yet = np.where(np.arange(stops) == 0, 0.0, -np.inf)
    step = max(1, most_cells // (size * stops))
    for start in range(0, stops, step):
        last = min(start + step, stops)
        ends, begins = np.arange(start, last), np.arange(last)
        between = below.T[:, None, start:last] - below.T[:, :last, None]
        worths = worth(np.maximum(between, 0.0))
        worths = np.where(begins[:, None] <= ends, worths, -np.inf)
        for level in range(size):
            before = nothing_yet if level == 0 else best[level - 1]
            sums = before[:last, None] + worths[level % len(worths)]
            top = sums.max(axis=0)
            best[level, ends] = top
            via[level, ends] = np.argmax(
                sums >= top - TIE_TOLERANCE * np.maximum(np.abs(top), 1.0), axis=0
            )
    places, end = np.empty(size - 1, np.intp), stops - 1
    for level in reversed(range(1, size)):
        places[level - 1] = end = int(via[level, end])
    return places


def maximise_quotient(
    best: Callable[[float], Places], value: Callable[[Places], float], start: Places
) -> Places:
    """Return the places with the largest quotient of two sums (Dinkelbach 1967).

    `best(rate)` maximises above - rate · below, `value` is the quotient, whose lower part is
    positive. Whatever the start, the rate rises until no places beat it: then it is the largest.
    """
    places, rate = start, value(start)
    while True:
        candidate = best(rate)
        reached = value(candidate)
        if not reached > rate:
            return candidate if reached >= rate - TIE_TOLERANCE else places
        places, rate = candidate, reached


# --- what a segment is worth as one predicted level -----------------------------------------------


def _self_information(share: Floats) -> Floats:
    return -share * log2_or_zero(share)


def _information(share: Floats, _gold: Floats, _rate: float) -> Floats:
    together = _self_information(share.sum(axis=0, keepdims=True))
    return together - _self_information(share).sum(axis=0, keepdims=True)


def _normalized_information(share: Floats, gold: Floats, rate: float) -> Floats:
    entropy = _self_information(share.sum(axis=0, keepdims=True))
    return _information(share, gold, rate) - rate * entropy / 2.0


def _precision(share: Floats, gold: Floats, rate: float) -> Floats:
    predicted = share.sum(axis=0)
    return np.nan_to_num(ratio(share, predicted)) - rate * _mark_unseen_levels(predicted, gold)


def _f1(share: Floats, gold: Floats, rate: float) -> Floats:
    predicted = share.sum(axis=0)
    return np.nan_to_num(ratio(2.0 * share, gold + predicted)) - rate * _mark_unseen_levels(
        predicted, gold
    )


def _mark_unseen_levels(predicted: Floats, gold: Floats) -> NDArray[np.bool]:
    """Mark levels that are predicted though gold lacks them: the mean runs over them, too."""
    return (gold == 0) & (predicted > 0)


COLUMN_METRICS: dict[str, ColumnWorth] = {
    "mutual_information": _information,
    "normalized_mutual_information": _normalized_information,
    "purity": lambda share, _gold, _rate: share.max(axis=0, keepdims=True),
    "precision_macro": _precision,
    "f1_macro": _f1,
    "f1_weighted": lambda share, gold, _rate: gold * _f1(share, gold, 0.0),
}
QUOTIENT_METRICS = {"normalized_mutual_information", "precision_macro", "f1_macro"}
