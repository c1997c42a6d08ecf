"""RegressionSums: what a pass over items keeps, of each subgroup and each cluster within it."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.scale.encoding import Groups
from ordinate.summaries.base import FieldRule, Summary, load_counts, load_numbers
from ordinate.summaries.prediction_intervals import PredictionIntervals
from ordinate.summaries.regression import (
    Moments,
    MomentsAccumulator,
    compute_bin_size,
    count_error_sizes,
    refuse_small_values,
)

Array = NDArray[Any]


@dataclass(frozen=True)
class RegressionKeys:
    """Keys 0, 1, …: the clusters within each subgroup that have items, by their `numbers`.

    Without clusters all items are in one, and are not `grouped`.
    """

    subgroups: list[Any]
    clusters: list[Any]
    numbers: Array
    grouped: bool = False

    @classmethod
    def of(cls, subgroups: Groups, clusters: Groups, *, grouped: bool) -> "RegressionKeys":
        """Return the keys of items, or of rows in which each key occurs."""
        numbers = subgroups.codes * len(clusters.values) + clusters.codes
        return cls(subgroups.values, clusters.values, np.unique(numbers), grouped)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def is_plain(self) -> bool:
        """Whether there is one key for all items."""
        return len(self.subgroups) == len(self.clusters) == 1

    def find(self, subgroup: Array, cluster: Array) -> Array:
        """Return the key of each item from its codes."""
        numbers = subgroup * len(self.clusters) + cluster
        every = len(self.subgroups) * len(self.clusters) == len(self)
        return numbers if every else np.searchsorted(self.numbers, numbers)

    def list_places(self, subgroup: int | None) -> tuple[Array, Array]:
        """Return the keys of a subgroup, or all of them, and the cluster of each."""
        here = np.arange(len(self))
        if subgroup is not None:  # numbers are sorted
            size = len(self.clusters)
            ends = np.searchsorted(self.numbers, (subgroup * size, (subgroup + 1) * size))
            here = here[slice(*ends)]
        return here, self.numbers[here] % len(self.clusters)


@dataclass(frozen=True, eq=False)
class ErrorSizes(Summary):
    """Weights of errors by bin, of each subgroup."""

    bins: Annotated[Array, FieldRule(load=load_numbers)]  # sorted
    weights: Annotated[Array, FieldRule(load=load_counts)]  # [bins, S]

    def _merge(self, other: "ErrorSizes") -> dict[str, Any]:
        bins, place = np.unique(np.concatenate([self.bins, other.bins]), return_inverse=True)
        weights = np.zeros((len(bins), self.weights.shape[1]))
        weights[place[: len(self.bins)]] += self.weights
        weights[place[len(self.bins) :]] += other.weights
        return {"bins": bins, "weights": weights}

    def build_histogram(self, subgroup: int | None) -> dict[int, Array]:
        """Return the weights of all items, or of a subgroup, as `Moments` have them."""
        weights = self.weights.sum(axis=1) if subgroup is None else self.weights[:, subgroup]
        there = weights > 0
        known = zip(self.bins[there].tolist(), weights[there], strict=True)
        return {k: np.asarray(weight) for k, weight in known}


@dataclass(frozen=True)
class ItemSummaries:
    """The summaries of the same items, each beside a batch of its clusters, if there are any."""

    moments: Moments
    groups: Moments | None = None
    bounds: PredictionIntervals | None = None  # a batch of clusters, if there are any


@dataclass(frozen=True, eq=False)
class RegressionSums(Summary):
    """Batches [K] of keys, and the sizes of their errors."""

    moments: Annotated[Moments, FieldRule(operator.add, load=Moments.from_dict)]
    sizes: Annotated[ErrorSizes | None, FieldRule(operator.add, load=ErrorSizes.from_dict)] = None
    bounds: Annotated[
        PredictionIntervals | None, FieldRule(operator.add, load=PredictionIntervals.from_dict)
    ] = None
    low: Annotated[float, FieldRule(min)] = np.inf  # of the targets, about
    high: Annotated[float, FieldRule(max)] = -np.inf

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Array],
        keys: RegressionKeys,
        constants: Mapping[str, float],
        *,
        sizes: bool = True,
    ) -> "RegressionSums":
        """Sum up columns: y, p, w for weights, low and high, and the codes subgroup and cluster."""
        y, p, weight = columns["y"], columns["p"], columns.get("w")
        none = np.zeros(len(y), np.int64)
        subgroup = columns.get("subgroup", none)
        codes = none if keys.is_plain else keys.find(subgroup, columns.get("cluster", none))
        groups = Groups(list(range(len(keys))), codes)
        if keys.is_plain:
            counter = MomentsAccumulator(constants)
            counter.add(y, p, weight)
            assert counter.total is not None  # noqa: S101 - batches have items
            moments, low, high = Moments.stack([counter.total]), counter.low, counter.high
        else:
            low, high = float(y.min()), float(y.max())
            moments = Moments.of(y, p, weight, groups=groups, constants=constants)
        errors = bounds = None
        if sizes:
            count = len(keys.subgroups)
            errors = ErrorSizes(*count_error_sizes(np.abs(p - y), weight, subgroup, count))
        if "low" in columns:
            limits = columns["low"], columns["high"]
            bounds = PredictionIntervals.of(y, *limits, weight, groups, predicted=p)
        return cls(moments, errors, bounds, low, high)

    @classmethod
    def of_targets(cls, columns: Mapping[str, Array]) -> "RegressionSums":
        """Sum up targets alone."""
        return cls.of({**columns, "p": columns["y"]}, ONE_KEY, {}, sizes=False)

    @classmethod
    def of_gaps(cls, columns: Mapping[str, Array], mean: float) -> "RegressionSums":
        """Sum up targets, and how far below the mean, and above it, they are."""
        y, weight = columns["y"], columns.get("w")
        sizes = count_error_sizes(np.abs(y - mean), weight, (y > mean).astype(np.int64), 2)
        return replace(cls.of_targets(columns), sizes=ErrorSizes(*sizes))

    @property
    def mean(self) -> float:
        """The mean of the targets of all items."""
        return float(self.moments.pooled.plain.y)

    def compute_median(self, mean: float) -> float:
        """Return the median target from the gaps about the mean: of an even number the middle."""
        assert self.sizes is not None  # noqa: S101 - of gaps
        gaps = np.array([compute_bin_size(place) for place in self.sizes.bins.tolist()])
        values = mean + np.concatenate([-gaps, gaps])
        weights = self.sizes.weights.T.reshape(-1)
        order = np.argsort(values, kind="stable")
        order = order[weights[order] > 0]
        values, below = values[order], np.cumsum(weights[order])
        first, last = np.searchsorted(below / below[-1], [0.5 - 1e-12, 0.5 + 1e-12])
        return float(values[first] + values[min(last, len(values) - 1)]) / 2.0

    def check_range(self) -> None:
        """Refuse values that are too small to be squared twice."""
        refuse_small_values(self.low, self.high, float(self.moments.largest.max()))

    def summarize(
        self, keys: RegressionKeys, dropped: Array, subgroup: int | None = None
    ) -> ItemSummaries:
        """Return the summaries of all items or of a subgroup; items were `dropped` of each."""
        here, cluster = keys.list_places(subgroup)
        lost = np.asarray(dropped.sum() if subgroup is None else dropped[subgroup])
        none, parts = np.zeros(len(here), np.int64), self.moments[here]
        histogram = None if self.sizes is None else self.sizes.build_histogram(subgroup)
        moments = replace(parts.compute_sums(none, 1)[0], dropped=lost, histogram=histogram)
        bounds = None if self.bounds is None else self.bounds[here]
        if not keys.grouped:
            if bounds is not None:
                bounds = replace(bounds.compute_sums(none, 1)[0], dropped=lost)
            return ItemSummaries(moments, None, bounds)
        count = len(keys.clusters)
        of_first = np.where(np.arange(count) == 0, lost, 0)  # in a batch the first one counts them
        groups = replace(parts.compute_sums(cluster, count), dropped=of_first)
        if bounds is not None:
            bounds = replace(bounds.compute_sums(cluster, count), dropped=of_first)
        return ItemSummaries(moments, groups, bounds)


ONE_KEY = RegressionKeys([None], [None], np.zeros(1, np.int64))
