"""Tables resampled: what the sample could have been, as often as one likes.

A draw costs the cells of a table, whatever the number of items. Items with whole counts come from a
multinomial; items with real weights from gamma variables whose mean and variance are those of a
Poisson bootstrap of the items; groups are drawn whole.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.metrics import Metric
from ordinate.summaries import ConfusionMatrix

if TYPE_CHECKING:  # loading it takes a while, and not every interval needs resamples
    from numpy.random import Generator

Array = NDArray[Any]
Resampler = Callable[["Generator", int], Array]  # how many tables: [size, K, K + 1]
ProgressCallback = Callable[[float], None]  # takes the share of the work that is done
FEWEST_RESAMPLES = 100  # resamples
BLOCK_SIZE = 1 << 17  # numbers in a block: what the cache holds, and far below 100 MB


@dataclass(frozen=True)
class Resampling:
    """How many resamples, and from which seed: the same seed gives the same ones everywhere."""

    count: int = 2_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.count, Integral) or isinstance(self.count, bool):
            raise BadOption(f"The number of resamples must be a whole number, not {self.count!r}.")
        if self.count < FEWEST_RESAMPLES:
            raise BadOption(
                f"{self.count} resamples are too few for limits: take {FEWEST_RESAMPLES} or more."
            )
        if not isinstance(self.seed, Integral) or isinstance(self.seed, bool) or self.seed < 0:
            raise BadOption(f"The seed must be a whole number of at least 0, not {self.seed!r}.")

    def run_in_blocks(
        self,
        numbers: int,
        work: Callable[["Generator", int], Any],
        *,
        block: int = BLOCK_SIZE,
        tick: ProgressCallback | None = None,
    ) -> list[Any]:
        """Do the work for blocks of resamples, each of which holds so many numbers, on all cores.

        Each block has its own stream, so that the result does not depend on which block comes
        first.
        """
        size = max(1, block // max(1, numbers))
        sizes = [min(size, self.count - first) for first in range(0, self.count, size)]
        streams = [np.random.default_rng([self.seed, index]) for index in range(len(sizes))]
        workers = min(len(sizes), os.cpu_count() or 1)
        if workers == 1:
            return _collect_with_progress(map(work, streams, sizes), len(sizes), tick)
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - small jobs need none

        with ThreadPoolExecutor(workers) as pool:
            return _collect_with_progress(pool.map(work, streams, sizes), len(sizes), tick)


def _collect_with_progress(
    results: Iterator[Any], count: int, tick: ProgressCallback | None
) -> list[Any]:
    """Collect results, and say after each how large a share is done."""
    found = []
    for result in results:
        found.append(result)
        if tick is not None:
            tick(len(found) / count)
    return found


def resample_metrics(
    metrics: Sequence[Metric],
    table: ConfusionMatrix,
    redraw: Resampler,
    resamples: Resampling,
    *,
    numbers: int = 0,
    tick: ProgressCallback | None = None,
) -> dict[str, Array]:
    """Return the values of metrics, by expression, on tables drawn in place of one table.

    `numbers` is how many numbers a draw needs, if that is more than a table has.
    """

    def work(rng: "Generator", size: int) -> list[Array]:
        drawn = table.with_cells(redraw(rng, size))
        return [metric.compute_from_expected(drawn, table) for metric in metrics]

    if not metrics:
        return {}
    blocks = resamples.run_in_blocks(max(table.weights.size, numbers), work, tick=tick)
    values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return {metric.expression: found for metric, found in zip(metrics, values, strict=True)}


def make_resampler(source: ConfusionMatrix, *, stratified: bool = False) -> Resampler:
    """Return how to draw one table again, or the pooled table of groups (a batch of tables).

    Stratified resamples keep the number of items of each gold level.
    """
    shape = source.weights.shape[-2:]
    if source.shape:
        if stratified:
            raise BadOption(
                "Groups are drawn whole, so resamples cannot be stratified by gold level."
            )
        tables = source.weights.reshape(-1, *shape)
        return lambda rng, size: np.tensordot(resample_groups(rng, len(tables), size), tables, 1)
    strata = source.weights if stratified else source.weights.reshape(1, -1)
    squares = source.squares.reshape(strata.shape)

    def draw(rng: "Generator", size: int) -> Array:
        cells = np.empty((size, *strata.shape))
        for index, stratum in enumerate(strata):
            drawn = resample_cells(rng, stratum, None if source.whole else squares[index], size)
            cells[:, index] = restore_stratum_weight(drawn, stratum) if stratified else drawn
        return cells.reshape(size, *shape)

    return draw


def resample_cells(rng: "Generator", weights: Array, squares: Array | None, size: int) -> Array:
    """Return the weights of cells resampled, as [size, cells].

    Without squares the weights are counts. With them they are sums of real weights.
    """
    filled = np.flatnonzero(weights)
    drawn = np.zeros((size, len(weights)))
    if len(filled):
        sums, total = weights[filled], weights.sum()
        if squares is None:
            drawn[:, filled] = rng.multinomial(int(total), sums / total, size)
        else:
            shape, scale = sums**2 / squares[filled], squares[filled] / sums
            drawn[:, filled] = rng.gamma(shape, scale, (size, len(filled)))
    return drawn


def restore_stratum_weight(drawn: Array, stratum: Array) -> Array:
    """Return drawn cells of a gold level, with its weight as it was."""
    total = drawn.sum(axis=-1, keepdims=True)
    return drawn * np.divide(stratum.sum(), total, out=np.zeros_like(total), where=total > 0)


def resample_groups(rng: "Generator", groups: int, size: int) -> Array:
    """Return how often each group is drawn, as [size, groups]."""
    return rng.multinomial(groups, np.full(groups, 1.0 / groups), size).astype(float)
