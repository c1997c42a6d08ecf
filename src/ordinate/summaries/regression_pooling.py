"""From sums of each cluster within each subgroup to summaries of clusters and subgroups."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import Moments

Array = NDArray[Any]
MOST_CELLS = 1 << 22  # of the histograms of groups


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
    """Batches [K] of keys that have items, and the subgroup and the group of each.

    `names` and `dropped` are those of subgroups.
    """

    batch: ItemSummaries
    histogram: ErrorHistogram | None  # sorted
    by: Array
    group: Array
    names: list[Any]
    dropped: Array

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
        dropped = np.zeros(count, int)  # in a batch the first summary counts them
        dropped[0] = np.sum(self.dropped if index is None else self.dropped[index])
        moments = replace(
            self.batch.moments[here].compute_sums(slots, count),
            dropped=dropped,
            histogram=self._build_histogram(here, index, grouped=grouped),
        )
        bounds = self.batch.bounds
        if bounds is not None:
            bounds = replace(bounds[here].compute_sums(slots, count), dropped=dropped)
        if grouped:
            return ItemSummaries(moments, bounds)
        return ItemSummaries(moments[0], None if bounds is None else bounds[0])

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
