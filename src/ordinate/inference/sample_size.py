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
MOST_NUMBERS = 1 << 30  # cells of matrices evaluated for influences of all bootstrap pilots
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
    spreads = pilot.compute_spreads(np.ones((1, pilot.units)))[0]
    resampled = _drop_undefined(metric, pilot.resample_spreads(resamples))
    if len(panel.systems) == 1:
        return Spreads(spreads, None)
    if spreads[-1] < NO_SPREAD:
        return Spreads(spreads[:-1], 0.0, note="the pilot shows no variation")
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
    """Items or clusters (units) that are resampled, and the spreads of each resample.

    Influences are computed anew for each, unless the matrices are too large for that.
    """

    def __init__(self, panel: Panel, metric: Metric) -> None:
        self.panel, self.metric = panel, metric
        self.size = len(panel.scale)
        self.units = len(panel) if panel.groups is None else len(panel.group_values)
        self.cells = [
            panel.rows[:, 0].astype(np.int64) * (self.size + 1) + panel.rows[:, 1 + system]
            for system in range(len(panel.systems))
        ]
        filled = sum(len(np.unique(cells)) for cells in self.cells)
        self.numbers = len(panel) + 2 * filled * self.size * (self.size + 1)
        self.recomputes = self.numbers * MOST_PILOTS <= MOST_NUMBERS
        self.pulls = [self._compute_pulls(cells, panel.weights[None]) for cells in self.cells]

    def resample_spreads(self, resamples: Resampling) -> Array:
        """Return the spreads [B, S] of bootstrap pilots; those of two systems with a third."""
        pilots = Resampling(min(resamples.count, MOST_PILOTS), resamples.seed)
        numbers = self.numbers if self.recomputes else len(self.panel)
        return np.concatenate(pilots.run_in_blocks(numbers, self._resample_block))

    def _resample_block(self, rng: "Generator", count: int) -> Array:
        if self.panel.groups is not None:
            return self.compute_spreads(resample_clusters(rng, self.units, count))
        weights = self.panel.weights
        squares = None if self.panel.has_integer_weights else self.panel.squares
        return self.compute_spreads(resample_cells(rng, weights, squares, count) / weights)

    def compute_spreads(self, times: Array) -> Array:
        """Return the spreads where each unit is there so many times [B, units]."""
        panel = self.panel
        weights = panel.weights * (times if panel.groups is None else times[:, panel.groups])
        pulls = self.pulls
        if self.recomputes:
            pulls = [self._compute_pulls(cells, weights) for cells in self.cells]
        if len(pulls) == 2:
            pulls = [*pulls, pulls[0] - pulls[1]]
        return np.stack([self._compute_spread(times, weights, pull) for pull in pulls], axis=1)

    def _compute_pulls(self, cells: Array, weights: Array) -> Array:
        """Return the influence [B, U] of each row's cell on what is compared of a system."""
        summed = sum_into_cells(weights, cells, self.size * (self.size + 1))
        observed = self.panel.confusion_matrix(self.panel.systems[0])
        matrices = observed.with_cells(summed.reshape(-1, self.size, self.size + 1))
        influence = compute_influence(self.metric, matrices).reshape(len(weights), -1)
        values = self.metric.compute_from_expected(matrices, observed)
        undefined = np.where(np.isnan(values), np.nan, 1.0)
        down = (self.metric.direction == "zero") & (values < 0)  # the size is compared
        return influence[:, cells] * np.where(down, -undefined, undefined)[:, None]

    def _compute_spread(self, times: Array, weights: Array, pulls: Array) -> Array:
        """Return the standard deviation [B] of what one item adds, from the pulls [B, U] of rows.

        The variance of the metric is that of a mean, or a ratio of sums of clusters, and the spread
        what one item of N has of it.
        """
        panel, total = self.panel, weights.sum(axis=1)
        if panel.groups is None:
            squares = weights if panel.has_integer_weights else weights * _weigh_squares(panel)
            centred = pulls - ((weights * pulls).sum(axis=1) / total)[:, None]
            variance = (squares * centred**2).sum(axis=1) / total**2
        else:
            if self.units < 2:
                raise NotApplicable("A plan needs two groups or more in the pilot.")
            sums = sum_into_cells(panel.weights * pulls, panel.groups, self.units)
            centred = sums - (times * sums).mean(axis=1, keepdims=True)
            variance = (times * centred**2).sum(axis=1) / total**2
            variance *= self.units / (self.units - 1.0)
        items = total * count_items(panel) / panel.weights.sum()
        return np.sqrt(variance * items)


def _weigh_squares(panel: Panel) -> Array:
    """Return the squared weight of a row per weight: fractional weights are no counts."""
    return panel.squares / panel.weights
