"""Sample size: how much one item adds to a value or a difference, and how sure a pilot is of that.

The standard error of a metric on N items is spread / sqrt(N), where the spread is the standard
deviation of an item's influence. In clusters, the sums over clusters count, for items in clusters
like these.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NotApplicable
from ordinate.inference.delta_method import compute_influence
from ordinate.inference.paired_tests import sum_into_cells
from ordinate.inference.resampling import Resampling, resample_cells, resample_clusters
from ordinate.inference.system_differences import resample_jointly
from ordinate.metrics import Metric
from ordinate.summaries import Panel

if TYPE_CHECKING:  # loading it takes a while, and not every interval needs resamples
    from numpy.random import Generator

Array = NDArray[Any]
MOST_PILOTS = 500  # bootstrap pilots: their deviation is known within 3 %
MOST_NUMBERS = 1 << 28  # cells of matrices evaluated for influences of all bootstrap pilots
NO_DERIVATIVE = "{} has no derivative, and its spread is that of bootstrap resamples"
NO_SPREAD = 1e-9  # a spread below it is rounding


@dataclass(frozen=True)
class Spreads:
    """The spread of each system [S], and of the difference of two.

    `log_variances` [B] are the logarithms of the difference's variance in bootstrap pilots; None
    where there are none, for the reason that `note` gives.
    """

    systems: Array
    difference: float | None
    log_variances: Array | None = None
    note: str | None = None


def estimate_spreads(panel: Panel, metric: Metric, resamples: Resampling) -> Spreads:
    """Estimate the spreads of one or two systems from a pilot.

    Metrics with a derivative have them from influences. For others they are the bootstrap's
    standard errors, times the root of the items.
    """
    if not metric.smooth:
        return _estimate_spreads_by_bootstrap(panel, metric, resamples)
    pilot = _Pilot(panel, metric)
    spreads = pilot.estimate_spreads()
    if len(panel.systems) == 1:
        return Spreads(spreads, None)
    if spreads[-1] < NO_SPREAD:
        return Spreads(spreads[:-1], 0.0, note="the pilot shows no variation")
    resampled = _drop_undefined(metric, pilot.resample_spreads(resamples))
    if (resampled[:, -1] < NO_SPREAD).any():
        return Spreads(
            spreads[:-1], float(spreads[-1]), note="some resamples of the pilot show no variation"
        )
    variances = 2.0 * np.log(resampled[:, -1])
    note = None if pilot.recomputes else "influences are those of the pilot in all its resamples"
    return Spreads(spreads[:-1], float(spreads[-1]), variances, note)


def _estimate_spreads_by_bootstrap(panel: Panel, metric: Metric, resamples: Resampling) -> Spreads:
    values = resample_jointly(panel, [metric], resamples, tails=False)[metric.expression]
    sizes = metric.size(_drop_undefined(metric, values))
    root = math.sqrt(count_items(panel))
    spreads = np.std(sizes, axis=0, ddof=1) * root
    if len(panel.systems) == 1:
        return Spreads(spreads, None)
    difference = float(np.std(sizes[:, 0] - sizes[:, 1], ddof=1)) * root
    return Spreads(spreads, difference, note=NO_DERIVATIVE.format(metric.expression))


def _drop_undefined(metric: Metric, resampled: Array) -> Array:
    defined = resampled[~np.isnan(resampled).any(axis=1)]
    if len(defined) < len(resampled) / 2:
        raise NotApplicable(f"{metric.expression} is undefined in most resamples of the pilot.")
    return defined


def count_items(panel: Panel) -> int:
    """Return the number of items; integer weights are counts of them."""
    return int(panel.weights.sum()) if panel.has_integer_weights else panel.n


class _Pilot:
    """A pilot, and the spreads in resamples of its items or clusters.

    Influences are computed anew in each resample, unless the matrices are too large for that.
    """

    def __init__(self, panel: Panel, metric: Metric) -> None:
        if panel.groups is not None and len(panel.group_values) < 2:
            raise NotApplicable("A plan needs two clusters or more in the pilot.")
        self.panel, self.metric = panel, metric
        self.size = len(panel.scale)
        gold = panel.rows[:, 0].astype(np.int64) * (self.size + 1)
        self.cells = [gold + predicted for predicted in panel.rows[:, 1:].T]
        filled = sum(len(np.unique(cells)) for cells in self.cells)
        self.numbers = len(panel) + 2 * filled * self.size * (self.size + 1)
        self.recomputes = self.numbers * MOST_PILOTS <= MOST_NUMBERS
        self.pulls = self._compute_pulls(panel.weights[None])

    def estimate_spreads(self) -> Array:
        """Return the spread of each system, and of two systems that of their difference."""
        times = np.ones((1, len(self.panel.group_values)))
        return self._compute_spreads(self.panel.weights[None], times, self.pulls)[0]

    def resample_spreads(self, resamples: Resampling) -> Array:
        """Return the spreads in bootstrap pilots."""
        pilots = Resampling(min(resamples.count, MOST_PILOTS), resamples.seed)
        numbers = self.numbers if self.recomputes else len(self.panel)
        return np.concatenate(pilots.run_in_blocks(numbers, self._resample_block))

    def _resample_block(self, rng: "Generator", count: int) -> Array:
        panel, times = self.panel, np.empty(0)
        if panel.groups is None:
            squares = None if panel.has_integer_weights else panel.squares
            weights = resample_cells(rng, panel.weights, squares, count)
        else:
            times = resample_clusters(rng, len(panel.group_values), count)
            weights = times[:, panel.groups] * panel.weights
        pulls = self._compute_pulls(weights) if self.recomputes else self.pulls
        return self._compute_spreads(weights, times, pulls)

    def _compute_pulls(self, weights: Array) -> list[Array]:
        """Return for each system the influence [B, U] of each row on what is compared of it."""
        return [self._compute_system_pulls(cells, weights) for cells in self.cells]

    def _compute_system_pulls(self, cells: Array, weights: Array) -> Array:
        summed = sum_into_cells(weights, cells, self.size * (self.size + 1))
        observed = self.panel.confusion_matrix(self.panel.systems[0])
        matrices = observed.with_cells(summed.reshape(-1, self.size, self.size + 1))
        influence = compute_influence(self.metric, matrices).reshape(len(weights), -1)
        values = np.asarray(self.metric(matrices))
        sign = np.where((self.metric.direction == "zero") & (values < 0), -1.0, 1.0)
        sign[np.isnan(values)] = np.nan
        return influence[:, cells] * sign[:, None]

    def _compute_spreads(self, weights: Array, times: Array, pulls: list[Array]) -> Array:
        """Return the spreads [B, S]; `times` [B, G] is how often each cluster was drawn."""
        if len(pulls) == 2:
            pulls = [*pulls, pulls[0] - pulls[1]]
        variance = self._item_variance if self.panel.groups is None else self._cluster_variance
        variances = [variance(weights, times, pull) for pull in pulls]
        items = weights.sum(axis=1) * count_items(self.panel) / self.panel.weights.sum()
        return np.sqrt(np.stack(variances, axis=1) * items[:, None])

    def _item_variance(self, weights: Array, _: Array, pulls: Array) -> Array:
        """Return the variance [B] of a mean over items; fractional weights are no counts."""
        panel, total = self.panel, weights.sum(axis=1)
        squares = weights if panel.has_integer_weights else weights * panel.squares / panel.weights
        centred = pulls - ((weights * pulls).sum(axis=1) / total)[:, None]
        return (squares * centred**2).sum(axis=1) / total**2

    def _cluster_variance(self, weights: Array, times: Array, pulls: Array) -> Array:
        """Return the variance [B] of a mean over items, from the sums of clusters."""
        count = len(self.panel.group_values)
        sums = sum_into_cells(self.panel.weights * pulls, np.asarray(self.panel.groups), count)
        centred = sums - (times * sums).mean(axis=1, keepdims=True)
        variance = (times * centred**2).sum(axis=1) / weights.sum(axis=1) ** 2
        return variance * count / (count - 1.0)
