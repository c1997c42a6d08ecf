"""Resampling of confusion matrices: what the sample could have been.

A resample costs the cells of a matrix, whatever the number of items. Items with integer counts
come from a multinomial; items with fractional weights from gamma variables whose mean and variance
are those of a Poisson bootstrap of the items; clusters are drawn as units.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, shorten
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

if TYPE_CHECKING:  # loading it takes a while, and not every interval needs resamples
    from numpy.random import Generator

Array = NDArray[Any]
Resampler = Callable[["Generator", int], Array]  # so many matrices: [size, K, K + 1]
ProgressCallback = Callable[[float], None]  # is called with the share of the work that is done
FEWEST_RESAMPLES, MOST_RESAMPLES = 100, 1_000_000
BLOCK_SIZE = 1 << 17  # numbers in a block: what the cache holds, and far below 100 MB
STRATIFIED_CLUSTERS = (
    "Clusters are drawn whole, so resamples cannot be stratified by gold level. Leave out the "
    "clusters or the strata."
)
MOST_ENUMERATED_UNITS = 14  # up to which every vector of coins is tried
FEW_COINS = 16  # that are quicker to throw than a binomial variable is to draw


def scale_progress(
    progress: ProgressCallback | None, start: float, end: float
) -> ProgressCallback | None:
    """Return a progress callback for a part of the work."""
    return None if progress is None else lambda share: progress(start + share * (end - start))


@dataclass(frozen=True)
class Resampling:
    """How many resamples, and from which seed: the same seed gives the same ones everywhere."""

    count: int = 2_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.count, Integral) or isinstance(self.count, bool):
            raise BadOption(
                f"The number of resamples must be an integer, not {shorten(self.count)}."
            )
        if self.count < FEWEST_RESAMPLES:
            raise BadOption(
                f"{self.count} resamples are too few for an interval: "
                f"take {FEWEST_RESAMPLES} or more."
            )
        if self.count > MOST_RESAMPLES:
            raise BadOption(
                f"At most {MOST_RESAMPLES:,} resamples are drawn, not {shorten(self.count)}: all "
                "of them are held in memory, and more change no digit that is shown."
            )
        if not isinstance(self.seed, Integral) or isinstance(self.seed, bool) or self.seed < 0:
            raise BadOption(f"The seed must be an integer of at least 0, not {shorten(self.seed)}.")

    def run_in_blocks(
        self,
        numbers: int,
        work: Callable[["Generator", int], Any],
        *,
        block: int = BLOCK_SIZE,
        progress: ProgressCallback | None = None,
    ) -> list[Any]:
        """Do the work for blocks of resamples, each of which holds so many numbers, on all cores.

        Each block has its own stream, so that the result does not depend on which block comes
        first.
        """
        size = max(1, block // max(1, numbers))
        sizes = [min(size, self.count - first) for first in range(0, self.count, size)]
        streams = [np.random.default_rng([self.seed, index]) for index in range(len(sizes))]
        return map_on_cores(work, streams, sizes, progress=progress)


def map_on_cores(
    work: Callable[..., Any], *columns: Sequence[Any], progress: ProgressCallback | None = None
) -> list[Any]:
    """Do the work for each row of some columns, on all cores, and return the results in order."""
    count = len(columns[0])
    workers = min(count, os.cpu_count() or 1)
    if workers <= 1:
        return _collect_with_progress(map(work, *columns), count, progress)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - small jobs need none

    with ThreadPoolExecutor(workers) as pool:
        return _collect_with_progress(pool.map(work, *columns), count, progress)


def _collect_with_progress(
    results: Iterator[Any], count: int, progress: ProgressCallback | None
) -> list[Any]:
    """Collect results, and report after each the share that is done."""
    collected = []
    for result in results:
        collected.append(result)
        if progress is not None:
            progress(len(collected) / count)
    return collected


def make_partial_progress(
    progress: ProgressCallback | None, part: int, parts: int
) -> ProgressCallback | None:
    """Return a progress that fills one of the equal parts of another."""
    return None if progress is None else lambda share: progress((part + share) / parts)


def resample_metrics(
    metrics: Sequence[Metric],
    matrix: ConfusionMatrix,
    resample: Resampler,
    resamples: Resampling,
    *,
    numbers: int = 0,
    progress: ProgressCallback | None = None,
) -> dict[str, Array]:
    """Return the values of metrics, by expression, on resamples of one matrix.

    `numbers` is how many numbers a resample needs, if that is more than a matrix has.
    """

    def work(rng: "Generator", size: int) -> list[Array]:
        resampled = matrix.with_cells(resample(rng, size))
        return [metric.compute_from_expected(resampled, matrix) for metric in metrics]

    if not metrics:
        return {}
    blocks = resamples.run_in_blocks(max(matrix.weights.size, numbers), work, progress=progress)
    values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return {metric.expression: column for metric, column in zip(metrics, values, strict=True)}


def make_resampler(source: ConfusionMatrix, *, stratified: bool = False) -> Resampler:
    """Return a resampler of one matrix, or of the pooled matrix of clusters (a batch).

    Stratified resamples keep the number of items of each gold level.
    """
    shape = source.weights.shape[-2:]
    if source.shape:
        if stratified:
            raise BadOption(STRATIFIED_CLUSTERS)
        clusters = source.weights.reshape(-1, *shape)
        return lambda rng, size: np.tensordot(
            resample_clusters(rng, len(clusters), size), clusters, 1
        )
    strata = source.weights if stratified else source.weights.reshape(1, -1)
    squares = source.squares.reshape(strata.shape)

    def draw(rng: "Generator", size: int) -> Array:
        cells = np.empty((size, *strata.shape))
        for index, stratum in enumerate(strata):
            resampled = resample_cells(
                rng, stratum, None if source.has_integer_weights else squares[index], size
            )
            cells[:, index] = (
                restore_stratum_weight(resampled, stratum) if stratified else resampled
            )
        return cells.reshape(size, *shape)

    return draw


def resample_cells(rng: "Generator", weights: Array, squares: Array | None, size: int) -> Array:
    """Return the weights of cells resampled, as [size, cells].

    Without squares the weights are counts. With them they are sums of fractional weights.
    """
    filled = np.flatnonzero(weights)
    resampled = np.zeros((size, len(weights)))
    if len(filled):
        sums, total = weights[filled], weights.sum()
        if squares is None:
            resampled[:, filled] = rng.multinomial(int(total), sums / total, size)
        else:
            shape, scale = sums**2 / squares[filled], squares[filled] / sums
            resampled[:, filled] = rng.gamma(shape, scale, (size, len(filled)))
    return resampled


def restore_stratum_weight(resampled: Array, stratum: Array) -> Array:
    """Return drawn cells of a gold level, with its weight as it was."""
    total = resampled.sum(axis=-1, keepdims=True)
    return resampled * np.divide(stratum.sum(), total, out=np.zeros_like(total), where=total > 0)


def resample_clusters(rng: "Generator", clusters: int, size: int) -> Array:
    """Return how often each cluster is drawn, as [size, clusters]."""
    return rng.multinomial(clusters, np.full(clusters, 1.0 / clusters), size).astype(float)


def enumerate_coins(units: int) -> Array:
    """Return every vector of coins [2^(U - 1), U] in which the first is 0.

    Exchanging everything else instead changes no more than the sign of a difference.
    """
    vectors = np.arange(1 << max(0, units - 1))
    return (vectors[:, None] >> np.arange(units)[::-1]) & 1
