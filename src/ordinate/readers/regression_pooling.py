"""From the sums of each group within each subgroup to summaries of groups and subgroups."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import CentralSums, Moments

Array = NDArray[Any]
MOST_CELLS = 1 << 22  # of the histograms of groups
KEYS_PER_BLOCK = 1 << 14  # keys whose sums are moved together


class ErrorHistogram(NamedTuple):
    """Weights of errors by bin, of each key or of each subgroup."""

    key: Array
    bin: Array
    weight: Array
    by_key: bool


@dataclass(frozen=True)
class MomentsPool:
    """Summaries [K] of keys that have items, and the subgroup and group of each.

    `names`, `dropped` and `broken` (whether there are weights that are no counts) are those of
    subgroups.
    """

    batch: Moments
    bounds: PredictionIntervals | None
    histogram: ErrorHistogram | None
    by: Array
    group: Array
    names: list[str | None]
    dropped: Array
    has_fractional_weights: Array

    @property
    def groups(self) -> int:
        """How many groups have items."""
        return int(self.group.max(initial=-1)) + 1

    def has_histograms(self, subgroups: int = 1) -> bool:
        """Whether groups have histograms, in all items or in so many subgroups."""
        found = self.histogram
        if found is None or not found.by_key:
            return False
        return subgroups * self.groups * len(np.unique(found.bin)) <= MOST_CELLS

    def summarize_all(self) -> Moments:
        """Return the one summary of all items."""
        return self._sum_moments(np.ones(len(self.by), bool), None)

    def summarize_groups(self) -> Moments:
        """Return a batch of the groups that have items."""
        return self._sum_moments(np.ones(len(self.by), bool), self.group)

    def summarize_subgroup(self, index: int, *, grouped: bool) -> Moments:
        """Return the summary of a subgroup, or a batch of what each group has in it."""
        found = self._sum_moments(self.by == index, self.group if grouped else None, index)
        return replace(found, dropped=_place_dropped(self.dropped[index], found.shape))

    def summarize_intervals(
        self, index: int | None = None, *, grouped: bool = False
    ) -> PredictionIntervals:
        """Return sums of bounds, of everything or of one subgroup."""
        assert self.bounds is not None  # noqa: S101 - the caller knows that there are some
        here = slice(None) if index is None else self.by == index
        slots, count = (self.group[here], self.groups) if grouped else (self.by[here] * 0, 1)
        pooled = self.bounds[here].map(lambda array: _add_by_slot(array, slots, count))
        found = pooled if grouped else pooled[0]
        return replace(
            found,
            dropped=_place_dropped(
                self.dropped if index is None else self.dropped[index], found.shape
            ),
            counted=not self.has_fractional_weights.any(),
        )

    def _sum_moments(self, where: Array, slots: Array | None, index: int | None = None) -> Moments:
        """Return the sum of the selected keys, or with slots a batch of sums."""
        here = self.batch[where]
        count = 1 if slots is None else self.groups
        places = np.zeros(len(here.items), int) if slots is None else slots[where]
        pooled = here if _are_slots_distinct(places, count) else _pool_moments(here, places, count)
        found = pooled if slots is not None else pooled[0]
        return replace(
            found,
            histogram=self._build_histogram(where, slots, index),
            dropped=_place_dropped(self.dropped, found.shape),
            counted=not self.has_fractional_weights.any(),
        )

    def _build_histogram(
        self, where: Array, slots: Array | None, index: int | None
    ) -> dict[int, Array] | None:
        found, subgroups = self.histogram, 1 if index is None else len(self.names)
        if found is None or (slots is not None and not self.has_histograms(subgroups)):
            return None
        inside = where[found.key] if found.by_key else (found.key == index) | (index is None)
        bins, column = np.unique(found.bin[inside], return_inverse=True)
        count = 1 if slots is None else self.groups
        row = 0 if slots is None else slots[found.key[inside]]
        cells = np.bincount(
            row * len(bins) + column.reshape(-1), found.weight[inside], count * len(bins)
        ).reshape(count, len(bins))
        rows = cells[0] if slots is None else cells.T
        return {int(k): np.asarray(part) for k, part in zip(bins, rows, strict=True)}


def _place_dropped(dropped: Array, shape: tuple[int, ...]) -> Array:
    """Return how many items were left out; in a batch the first summary counts them."""
    found = np.zeros(shape, int)
    found[(slice(1),) * len(shape)] = np.sum(dropped)
    return found


def _are_slots_distinct(slots: Array, count: int) -> bool:
    """Tell whether every key is a slot of its own."""
    return len(slots) == count and bool((slots == np.arange(count)).all())


def _pool_moments(parts: Moments, slots: Array, count: int) -> Moments:
    """Return a batch with the sum of the parts of each slot."""
    return replace(
        parts,
        items=_add_by_slot(parts.items, slots, count),
        plain=_merge_central_sums(parts.plain, slots, count),
        squared=_merge_central_sums(parts.squared, slots, count),
        absolute=_add_by_slot(parts.absolute, slots, count),
        absolute_squared=_add_by_slot(parts.absolute_squared, slots, count),
        largest=_take_largest_by_slot(parts.largest, slots, count),
        squares=_add_by_slot(parts.squares, slots, count),
        spread={name: _add_by_slot(part, slots, count) for name, part in parts.spread.items()},
        dropped=_add_by_slot(parts.dropped, slots, count),
    )


def _add_by_slot(array: Array, slots: Array, count: int) -> Array:
    if count == 1:
        return array.sum(axis=0, keepdims=True)
    found = np.zeros((count, *array.shape[1:]), array.dtype)
    np.add.at(found, slots, array)
    return found


def _take_largest_by_slot(array: Array, slots: Array, count: int) -> Array:
    found = np.zeros(count)
    np.maximum.at(found, slots, array)
    return found


def _merge_central_sums(parts: CentralSums, slots: Array, count: int) -> CentralSums:
    """Return sums about the means of each slot, from sums about those of its parts."""
    weight = _add_by_slot(parts.weight, slots, count)
    divisor = np.where(weight > 0, weight, 1.0)
    first = np.zeros(count, int)  # of the parts of a slot
    first[slots[::-1]] = np.arange(len(slots))[::-1]

    def mean(means: Array) -> Array:
        start = np.where(weight > 0, means[first], 0.0) if len(means) else np.zeros(count)
        return start + _add_by_slot(parts.weight * (means - start[slots]), slots, count) / divisor

    y, e = mean(parts.y), mean(parts.e)
    sums = np.zeros((count, *parts.sums.shape[1:]))
    for block in split_keys(len(slots)):
        there = slots[block]
        moved = CentralSums(*(array[block] for array in parts)).recenter_sums(y[there], e[there])
        np.add.at(sums, there, moved.sums)
    return CentralSums(y, e, sums)


def split_keys(keys: int) -> list[slice]:
    """Cut keys into pieces that fit into memory together with what is computed of them."""
    return [slice(start, start + KEYS_PER_BLOCK) for start in range(0, keys, KEYS_PER_BLOCK)]
