"""From the sums of each cluster within each subgroup to summaries of clusters and subgroups."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.summaries.prediction_intervals import SCORE_NAMES, PredictionIntervals
from ordinate.summaries.regression import HIGHEST_ORDER, MOMENT_POWERS, CentralSums, Moments

Array = NDArray[Any]
SCORE_PAIRS = [(i, j) for i in range(1 + len(SCORE_NAMES)) for j in range(i, 1 + len(SCORE_NAMES))]
MOST_CELLS = 1 << 22  # of the histograms of groups
KEYS_PER_BLOCK = 1 << 14  # keys whose sums are moved together


class ErrorHistogram(NamedTuple):
    """Weights of errors by bin, of each key or of each subgroup."""

    key: Array
    bin: Array
    weight: Array
    by_key: bool

    def sort(self) -> "ErrorHistogram":
        """Return the bins in their order, in which they are added up."""
        order = np.lexsort([self.bin, self.key])
        return self._replace(key=self.key[order], bin=self.bin[order], weight=self.weight[order])


class ItemSummaries(NamedTuple):
    """The summaries of the same items."""

    moments: Moments
    bounds: PredictionIntervals | None


@dataclass(frozen=True)
class RegressionPool:
    """Sums [K] of keys that have items, by name, and the subgroup and the group of each.

    Those of targets and errors (s, and ws with squared weights) are about the points `y0` and
    `e0`. `names` and `dropped` are those of subgroups.
    """

    sums: Mapping[str, Array]
    y0: Array
    e0: Array
    largest: Array
    constants: Mapping[str, float]
    histogram: ErrorHistogram | None  # sorted
    by: Array
    group: Array
    names: list[Any]
    dropped: Array
    counted: bool

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

    def summarize(self, index: int | None = None, *, grouped: bool = False) -> ItemSummaries:
        """Return the summaries of all items or of a subgroup, or a batch of what each group has."""
        here = np.arange(len(self.by)) if index is None else np.flatnonzero(self.by == index)
        slots = self.group[here] if grouped else np.zeros(len(here), int)
        count = self.groups if grouped else 1
        sums = {name: np.bincount(slots, x[here], count) for name, x in self.sums.items()}
        largest = np.zeros(count)
        np.maximum.at(largest, slots, self.largest[here])
        plain = self._center_sums("s", here, slots, count)
        squared = self._center_sums("ws", here, slots, count) if "ws00" in sums else plain
        dropped = np.zeros(count, int)  # in a batch the first summary counts them
        dropped[0] = np.sum(self.dropped if index is None else self.dropped[index])
        moments = Moments(
            sums["items"].astype(np.int64),
            plain,
            squared,
            sums["absolute"],
            sums.get("wabsolute", sums["absolute"]),
            largest,
            sums["squares"],
            self.constants,
            {name: sums[f"spread{k}"] for k, name in enumerate(self.constants)},
            counted=self.counted,
            dropped=dropped,
            histogram=self._build_histogram(here, index, grouped=grouped),
        )
        bounds = _build_intervals(sums, dropped, self.counted) if "z00" in sums else None
        if grouped:
            return ItemSummaries(moments, bounds)
        return ItemSummaries(moments[0], None if bounds is None else bounds[0])

    def _center_sums(self, mark: str, here: Array, slots: Array, count: int) -> CentralSums:
        """Return sums about the means of each slot, from sums about the points of its keys."""
        powers = np.zeros((len(here), HIGHEST_ORDER + 1, HIGHEST_ORDER + 1))
        for a, b in MOMENT_POWERS:
            powers[:, a, b] = self.sums[f"{mark}{a}{b}"][here]
        weight = np.bincount(slots, powers[:, 0, 0], count)
        first = np.zeros(count, int)  # of the keys of a slot
        first[slots[::-1]] = here[::-1]

        def find_mean(points: Array, gaps: Array) -> Array:
            start = np.where(weight > 0, points[first], 0.0) if len(points) else weight
            gaps = gaps + powers[:, 0, 0] * (points[here] - start[slots])
            return start + np.bincount(slots, gaps, count) / np.where(weight > 0, weight, 1.0)

        y, e = find_mean(self.y0, powers[:, 1, 0]), find_mean(self.e0, powers[:, 0, 1])
        sums = np.zeros((count, *powers.shape[1:]))
        for begin in range(0, len(here), KEYS_PER_BLOCK):
            block = slice(begin, begin + KEYS_PER_BLOCK)
            keys, there = here[block], slots[block]
            near = CentralSums(self.y0[keys], self.e0[keys], powers[block])
            np.add.at(sums, there, near.recenter_sums(y[there], e[there]).sums)
        return CentralSums(y, e, sums)

    def _build_histogram(
        self, here: Array, index: int | None, *, grouped: bool
    ) -> dict[int, Array] | None:
        found, subgroups = self.histogram, 1 if index is None else len(self.names)
        if found is None or (grouped and not self.has_histograms(subgroups)):
            return None
        here = here if found.by_key else np.unique(self.by[here])
        inside = np.isin(found.key, here)
        bins, column = np.unique(found.bin[inside], return_inverse=True)
        count, row = (self.groups, self.group[found.key[inside]]) if grouped else (1, 0)
        cells = np.bincount(row * len(bins) + column, found.weight[inside], count * len(bins))
        rows = cells.reshape(count, len(bins)).T
        return {int(k): part for k, part in zip(bins, rows, strict=True)}


def _build_intervals(
    sums: Mapping[str, Array],
    dropped: Array,
    counted: bool,  # noqa: FBT001 - as summaries have it
) -> PredictionIntervals:
    size = 1 + len(SCORE_NAMES)
    once, twice = np.zeros((2, len(dropped), size, size))
    for i, j in SCORE_PAIRS:
        once[:, i, j] = once[:, j, i] = sums[f"z{i}{j}"]
        twice[:, i, j] = twice[:, j, i] = sums.get(f"wz{i}{j}", sums[f"z{i}{j}"])
    return PredictionIntervals(
        items=sums["items"].astype(np.int64),
        plain=once,
        squared=twice,
        endless=sums["endless"],
        points=True,
        dropped=dropped,
        counted=counted,
    )
