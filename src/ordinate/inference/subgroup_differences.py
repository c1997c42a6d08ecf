"""Subgroups: how each differs from all other items, and which differences are significant.

Verdicts are by randomisation. Each resample deals the units anew to subgroups of the sizes that
they have: items, or whole clusters. A subgroup's own p-value is exact if its items could be any;
the adjusted one is by max-T over the subgroups of a metric, as for pairs of systems.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NotApplicable
from ordinate.inference.estimates import (
    Estimate,
    estimate_difference,
    make_point_estimate,
    to_json_number,
)
from ordinate.inference.randomization import compute_p_values
from ordinate.inference.resampling import Resampler, Resampling
from ordinate.inference.system_differences import LARGE_BLOCK_SIZE, compute_in_blocks
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

if TYPE_CHECKING:  # loading it takes a while, and not every report has subgroups
    from numpy.random import Generator

Array = NDArray[Any]
FEWEST_ITEMS = 20  # of a subgroup and of the rest: of smaller tables no study says what covers
FEW_ITEMS_NOTE = f"fewer than {FEWEST_ITEMS} items"

FEW_SUBGROUPS, MANY_DEALS, FEWER_DEALS = 50, 1_999, 999
MOST_SUBGROUPS = 200
FEWEST_CLUSTERS = 6  # in a subgroup, and outside
ITEMS_PER_CELL = 6  # up to which items are dealt one by one, which is quicker
MOST_ITEMS = 999_999_999  # that hypergeometric variables are drawn for
MOST_NUMBERS = 1 << 33  # in all resamples together: a minute of work
NOT_COUNTED = "items have weights that are no counts, and cannot be dealt anew"
MANY_SUBGROUPS = f"there are more than {MOST_SUBGROUPS} subgroups"
MIXED_CLUSTERS = "some clusters lie in one subgroup and some in several"
FEW_CLUSTERS = f"fewer than {FEWEST_CLUSTERS} clusters inside or outside"
MUCH_WORK = "there is too much to deal anew: items, clusters or levels"
UNDEFINED = "it is undefined here or in the rest"


@dataclass(frozen=True)
class SubgroupDifference(Estimate):
    """A subgroup less the rest: its own interval, and what randomisation says of it.

    `p` is of the subgroup alone, `p_adjusted` by max-T over all subgroups; `p_note` says why there
    is none, if there is none.
    """

    p: float = math.nan
    p_adjusted: float = math.nan
    p_note: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        p_values = {"p": to_json_number(self.p), "p_adjusted": to_json_number(self.p_adjusted)}
        return super().to_dict() | p_values | {"p_note": self.p_note}


class SubgroupTest(NamedTuple):
    """P-values of one subgroup, alone and adjusted, or why there are none."""

    p: float = math.nan
    p_adjusted: float = math.nan
    note: str | None = None


def estimate_difference_from_rest(
    metric: Metric, part: Estimate, rest: Estimate, items: float, test: SubgroupTest
) -> SubgroupDifference:
    """Return how a subgroup differs from all other items; `items` has the smaller of the two.

    Few items give an interval to the difference of two shares, which Wilson's intervals cover
    whatever their items, and to no other.
    """
    found = estimate_difference(part, rest)
    if items < FEWEST_ITEMS and not metric.share and not math.isnan(found.low):
        found = make_point_estimate(found.value, FEW_ITEMS_NOTE)
    bounds = found.low, found.high, found.method, found.undefined_share, found.note
    return SubgroupDifference(found.value, *bounds, test.p, test.p_adjusted, test.note)


# --- p-values ------------------------------------------------------------------------------------


def choose_deal_count(subgroups: int) -> int:
    """Return the number of resamples, which depends on nothing but the number of subgroups."""
    return MANY_DEALS if subgroups <= FEW_SUBGROUPS else FEWER_DEALS


def randomize_subgroups(
    metrics: Sequence[Metric], parts: ConfusionMatrix, resamples: Resampling
) -> dict[str, list[SubgroupTest]]:
    """Return by metric whether each subgroup [G] differs from the rest; all metrics share deals.

    `parts` are the confusion matrices of subgroups [G], or of their clusters [G, C]. Neither the
    order nor the names of items, subgroups and clusters matter.
    """
    reason = _explain_untested(parts)
    if reason is None:
        order = _order_by_content(_pool_clusters(parts).weights)
        dealer = _make_dealer(parts.weights[order])
        if dealer.numbers * resamples.count > MOST_NUMBERS:
            reason = MUCH_WORK
    if reason is not None:
        untested = [SubgroupTest(note=reason)] * len(parts.weights)
        return {metric.expression: untested for metric in metrics}
    matrices, enough, places = _pool_clusters(parts), _have_enough_clusters(parts), order.argsort()
    pooled = matrices.pooled
    known = [metric for metric in metrics if _applies(metric, pooled)]

    def work(rng: "Generator", count: int) -> list[Array]:
        return _subtract_rests(known, pooled, dealer.deal(rng, count)[:, places])

    observed = _subtract_rests(known, pooled, matrices.weights[None])
    blocks = resamples.run_in_blocks(dealer.numbers, work, block=LARGE_BLOCK_SIZE)
    randomized = (np.concatenate(columns) for columns in zip(*blocks, strict=True))
    tests = {
        metric.expression: _test_each(before[0], after, enough)
        for metric, before, after in zip(known, observed, randomized, strict=True)
    }
    undefined = [SubgroupTest(note=UNDEFINED)] * len(enough)
    return {metric.expression: tests.get(metric.expression, undefined) for metric in metrics}


def _pool_clusters(parts: ConfusionMatrix) -> ConfusionMatrix:
    return parts.map(lambda x: x.sum(axis=1)) if len(parts.shape) > 1 else parts


def _order_by_content(tables: Array) -> Array:
    """Return an order of the first axis that depends on nothing but the counts that it holds."""
    flat = tables.reshape(len(tables), -1).astype(np.int64)
    keys = np.random.default_rng(0).integers(1 << 62, size=flat.shape[1])
    return np.argsort(flat @ keys, kind="stable")


def _explain_untested(parts: ConfusionMatrix) -> str | None:
    """Say why no subgroup has a verdict, if none can have one."""
    if len(parts.weights) > MOST_SUBGROUPS:
        return MANY_SUBGROUPS
    if not parts.has_integer_weights:
        return NOT_COUNTED
    if parts.total.sum() > MOST_ITEMS:
        return MUCH_WORK
    if len(parts.shape) > 1:
        subgroups = (parts.total > 0).sum(axis=0)
        if len(np.unique(subgroups[subgroups > 0] > 1)) > 1:
            return MIXED_CLUSTERS
    return None if _have_enough_clusters(parts).any() else FEW_CLUSTERS


def _have_enough_clusters(parts: ConfusionMatrix) -> Array:
    """Tell which subgroups have enough clusters inside and outside; items alone always do."""
    if len(parts.shape) == 1:
        return np.ones(len(parts.weights), bool)
    total = parts.total
    inside, outside = total > 0, total.sum(axis=0) > total
    return np.minimum(inside.sum(axis=1), outside.sum(axis=1)) >= FEWEST_CLUSTERS


def _applies(metric: Metric, pooled: ConfusionMatrix) -> bool:
    try:
        metric(pooled)
    except NotApplicable:
        return False
    return True


def _subtract_rests(
    metrics: Sequence[Metric], pooled: ConfusionMatrix, cells: Array
) -> list[Array]:
    """Return by metric how subgroups of cells [B, G, K, K + 1] differ from the rest: [B, G]."""
    sides = np.stack([cells, pooled.weights - cells])
    return [part - rest for part, rest in compute_in_blocks(metrics, pooled, sides)]


def _test_each(observed: Array, randomized: Array, enough: Array) -> list[SubgroupTest]:
    """Return the p-values of subgroups; those without a verdict are no part of the family."""
    tested = np.flatnonzero(enough & ~np.isnan(observed))
    tests = [SubgroupTest(note=UNDEFINED if many else FEW_CLUSTERS) for many in enough]
    found = compute_p_values(observed[tested], randomized[:, tested], exact=False)
    for place, p, adjusted in zip(tested, found.own.tolist(), found.adjusted.tolist(), strict=True):
        tests[place] = SubgroupTest(p, adjusted)
    return tests


# --- dealing units anew --------------------------------------------------------------------------


class Dealer(NamedTuple):
    """How units are dealt to subgroups, and how many numbers a deal takes, all values included."""

    deal: Resampler  # [size, G, K, K + 1]
    numbers: int


def _make_dealer(weights: Array) -> Dealer:
    """Return what deals units of [G, K, K + 1]: items; or of [G, C, K, K + 1]: whole clusters.

    Clusters that have items in several subgroups deal their own items among these.
    """
    shape = (len(weights), *weights.shape[-2:])
    cells = weights.reshape(shape[0], -1, shape[1] * shape[2])  # all items are one cluster, or more
    cells = cells[:, _order_by_content(cells.swapaxes(0, 1))]
    numbers, items = 2 * math.prod(shape), int(cells.sum())
    if (cells.any(axis=-1).sum(axis=0) <= 1).all():
        draw, own = _deal_clusters(cells), cells.shape[1] * cells.shape[2]
    elif cells.shape[1] > 1 or items <= ITEMS_PER_CELL * cells.size:
        draw, own = _deal_items(cells), 4 * items
    else:
        draw, own = _deal_counts(cells[:, 0].astype(np.int64)), 0
    return Dealer(lambda rng, size: draw(rng, size).reshape(size, *shape), numbers + own)


def _deal_clusters(cells: Array) -> Resampler:
    """Return what deals clusters, each of which lies in one subgroup: cells [G, C, M]."""
    subgroup, cluster = np.nonzero(cells.any(axis=-1))
    starts, tables = np.searchsorted(subgroup, np.arange(len(cells))), cells[subgroup, cluster]

    def deal(rng: "Generator", size: int) -> Array:
        order = rng.permuted(np.tile(np.arange(len(tables)), (size, 1)), axis=1)
        return np.add.reduceat(tables[order], starts, axis=1)

    return deal


def _deal_items(cells: Array) -> Resampler:
    """Return what deals the items of each cluster among its subgroups one by one."""
    by_cluster = cells.swapaxes(0, 1)
    filled = np.nonzero(by_cluster)
    counts = by_cluster[filled].astype(np.int64)
    cluster, subgroup, cell = (np.repeat(column, counts) for column in filled)
    groups, _, width = cells.shape

    def deal(rng: "Generator", size: int) -> Array:
        order = (rng.random((size, len(cell))) + cluster).argsort(axis=1)
        place = (np.arange(size)[:, None] * groups + subgroup) * width + cell[order]
        return np.bincount(place.reshape(-1), minlength=size * groups * width).astype(float)

    return deal


def _deal_counts(cells: Array) -> Resampler:
    """Return what deals the items of cells [G, M] in numbers, to ever smaller halves of subgroups.

    Subgroups are as many as a power of 2, some of them empty, so that all halves are dealt at once.
    """
    filled, depth = np.flatnonzero(cells.any(axis=0)), (len(cells) - 1).bit_length()
    items = np.pad(cells.sum(axis=1), (0, 2**depth - len(cells)))

    def deal(rng: "Generator", size: int) -> Array:
        tables = np.tile(cells.sum(axis=0)[filled], (size, 1, 1))
        for halves in (2 ** np.arange(1, depth + 1)).tolist():
            wanted = items.reshape(halves, -1).sum(axis=1)[::2]
            first = _draw_counts(rng, tables, wanted)
            tables = np.stack([first, tables - first], axis=2).reshape(size, halves, -1)
        dealt = np.zeros((size, *cells.shape))
        dealt[..., filled] = tables[:, : len(cells)]
        return dealt

    return deal


def _draw_counts(rng: "Generator", tables: Array, wanted: Array) -> Array:
    """Return counts [..., M] of so many items, drawn from those of tables without replacement."""
    others, wanted = tables.sum(axis=-1), np.broadcast_to(wanted, tables.shape[:-1]).copy()
    drawn = np.empty_like(tables)
    for cell in range(tables.shape[-1]):
        others -= tables[..., cell]
        drawn[..., cell] = rng.hypergeometric(tables[..., cell], others, wanted)
        wanted -= drawn[..., cell]
    return drawn
