"""Intervals for the metrics of a table: which method each gets, and what it shares with others."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NotApplicable
from ordinate.inference.bootstrap import acceleration, bca, percentile
from ordinate.inference.delta import influence, limits, variance
from ordinate.inference.draws import Draws, redrawing, replicate
from ordinate.inference.groups import FEW, linearised_error, stretched
from ordinate.inference.result import Estimate, nowhere
from ordinate.inference.small import mean_recall, posterior, rare_levels, wilson
from ordinate.metrics import Metric
from ordinate.summary import Confusion

Array = NDArray[Any]
Method = Literal["delta", "percentile", "bca", "wilson", "mover", "dirichlet", "t"]
FEWEST = 0.5  # of the draws must give a value

# The shortest method that covers well in the study of coverage, by family of metrics.
BY_FAMILY: dict[str, Method] = {
    "agreement": "delta",
    "closeness": "delta",
    "clustering": "bca",
    "distance": "delta",
    "path": "bca",
    "per level": "delta",
    "ranking": "delta",
}
ROUGH: Method = "bca"  # for metrics without a derivative, and for families of other people


@dataclass(frozen=True)
class Intervals:
    """What intervals are wanted: their level, the method, the draws, the seed.

    Without a method, each metric gets the one that the study of coverage chose for its family.
    Stratified intervals take the number of items of each gold level for fixed.
    """

    level: float = 0.95
    method: Method | None = None
    draws: int = 2_000
    seed: int = 0
    stratified: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.level, bool) or not 0.5 <= self.level < 1.0:
            raise BadOption(f"The level of an interval is 0.5 to below 1, not {self.level!r}.")
        if self.method is not None and self.method not in get_args(Method):
            known = ", ".join(get_args(Method))
            raise BadOption(f"There is no interval method {self.method!r}; there are: {known}.")
        Draws(self.draws, self.seed)


def estimate(
    metrics: Sequence[Metric], source: Confusion, how: Intervals | None = None
) -> dict[str, Estimate]:
    """Return metrics by expression, each with its interval.

    `source` is one table, or a batch of tables: one for each group of items that belong together.
    """
    return _Estimator(source, how or Intervals()).run(metrics)


class _Estimator:
    def __init__(self, source: Confusion, how: Intervals) -> None:
        self.source, self.how = source, how
        self.grouped = bool(source.shape)
        self.table = source.pooled if self.grouped else source
        self.draws = Draws(how.draws, how.seed)
        self.values: dict[str, float] = {}
        self.redrawn: dict[str, Array] = {}
        self.posterior: dict[str, Array] = {}

    def run(self, metrics: Sequence[Metric]) -> dict[str, Estimate]:
        """Choose methods, draw once for all that need it, and ask each method for its limits."""
        found: dict[str, Estimate] = {}
        plans: list[tuple[Metric, Method, str | None]] = []
        for metric in metrics:
            reason = self._refusal(metric)
            value = self.values[metric.expression]
            found[metric.expression] = nowhere(value, reason or "")
            if reason is None:
                plans.append((metric, *self._plan(metric)))
        self._draw([m for m, method, _ in plans if method in {"percentile", "bca"}])
        self._imagine([m for m, method, _ in plans if method == "dirichlet"])
        stuck = []
        for metric, method, note in plans:
            result = self._limits(metric, method, note)
            found[metric.expression] = result
            if self._is_stuck(result, method):
                stuck.append(metric)
        return found | self._unstuck(stuck)

    # --- which method ------------------------------------------------------------------------

    def _refusal(self, metric: Metric) -> str | None:
        """Note the value of a metric, and return why it has no interval, if it has none."""
        try:
            self.values[metric.expression] = value = float(metric(self.table))
        except NotApplicable as reason:
            self.values[metric.expression] = math.nan
            return str(reason)
        if math.isnan(value):
            return metric.undefined_when or "the metric is undefined here"
        if np.isnan(self.table.squares).any() and not self.grouped:
            return "nobody knows how many items are behind these weights"
        if self.grouped and len(self.source.weights) < 2:
            return "there is one group only"
        return None

    def _plan(self, metric: Metric) -> tuple[Method, str | None]:
        """Return the method for a metric, and why, where it is not the usual one."""
        if self.how.method is not None:
            return self._asked(metric, self.how.method), None
        if self.grouped:
            return self._for_groups(metric)
        if not self.table.whole:
            return ("delta" if metric.smooth else "percentile"), "real weights"
        if metric.share:
            return "wilson", None
        if metric.macro and self.rare:
            why = f"fewer than 10 items of {', '.join(self.rare)}"
            return ("mover" if metric.name == "macro_accuracy" else "dirichlet"), why
        return (BY_FAMILY.get(metric.family, ROUGH) if metric.smooth else ROUGH), None

    def _asked(self, metric: Metric, method: Method) -> Method:
        """Return the method that was asked for, unless it makes no sense here."""
        wrong = {
            "delta": not metric.smooth and "it has no derivative where levels or paths tie",
            "wilson": not metric.share and "it is no plain share of the items",
            "mover": metric.name != "macro_accuracy" and "it is no mean of shares",
            "t": not self.grouped and "there are no groups",
            "bca": not (self.grouped or self.table.whole) and "the weights are no counts",
        }.get(method) or (
            method in {"wilson", "mover", "dirichlet"}
            and (self.grouped or not self.table.whole)
            and "the items are no plain counts"
        )
        if wrong:
            raise BadOption(f"The method {method!r} does not fit {metric.expression}: {wrong}.")
        return method

    def _for_groups(self, metric: Metric) -> tuple[Method, str | None]:
        count = len(self.source.weights)
        if count >= FEW or not metric.smooth:
            return "percentile", None
        return "t", f"{count} groups only"

    @cached_property
    def rare(self) -> list[str]:
        return rare_levels(self.table)

    # --- draws -------------------------------------------------------------------------------

    def _draw(self, metrics: list[Metric]) -> None:
        if metrics:
            redraw = redrawing(self.source, stratified=self.how.stratified)
            groups = len(self.source.weights) if self.grouped else 0
            self.redrawn = replicate(metrics, self.table, redraw, self.draws, groups)

    def _imagine(self, metrics: list[Metric]) -> None:
        self.posterior |= replicate(metrics, self.table, posterior(self.table), self.draws)

    # --- limits ------------------------------------------------------------------------------

    def _limits(self, metric: Metric, method: Method, note: str | None) -> Estimate:
        ways = {
            "delta": self._delta,
            "t": self._delta,
            "percentile": self._percentile,
            "bca": self._bca,
            "wilson": self._wilson,
            "mover": self._mover,
            "dirichlet": self._dirichlet,
        }
        return ways[method](metric, note)

    def _estimate(
        self,
        metric: Metric,
        ends: tuple[float, float],
        method: str,
        note: str | None,
        undefined: float = 0.0,
    ) -> Estimate:
        low, high = ends
        return Estimate(self.values[metric.expression], low, high, method, undefined, note)

    def _delta(self, metric: Metric, note: str | None) -> Estimate:
        value = self.values[metric.expression]
        if self.grouped:
            error = linearised_error(metric, self.source)
            count = len(self.source.weights)
            error, method = stretched(error, self.how.level, count), "t"
        else:
            influences = influence(metric, self.table)
            error = math.sqrt(variance(self.table, influences, stratified=self.how.stratified))
            method = "delta"
        if not error > 1e-12 or any(math.isclose(value, b, abs_tol=1e-12) for b in metric.bounds):
            return self._estimate(metric, (value, value), method, note)
        return self._estimate(
            metric, limits(value, error, metric.bounds, self.how.level), method, note
        )

    def _percentile(self, metric: Metric, note: str | None) -> Estimate:
        values, undefined, lost = self._defined(metric, self.redrawn)
        if lost:
            return nowhere(self.values[metric.expression], lost)
        ends = percentile(values, self.how.level)
        return self._estimate(metric, ends, "percentile", note, undefined)

    def _bca(self, metric: Metric, note: str | None) -> Estimate:
        values, undefined, lost = self._defined(metric, self.redrawn)
        if lost:
            return nowhere(self.values[metric.expression], lost)
        skew = acceleration(metric, self.source)
        ends = bca(values, self.values[metric.expression], skew, self.how.level)
        if ends is None:
            return self._percentile(metric, note or "BCa is undefined here")
        return self._estimate(metric, ends, "bca", note, undefined)

    def _wilson(self, metric: Metric, note: str | None) -> Estimate:
        value, total = self.values[metric.expression], float(self.table.total)
        low, high = wilson(value * total, total, self.how.level)
        return self._estimate(metric, (float(low), float(high)), "wilson", note)

    def _mover(self, metric: Metric, note: str | None) -> Estimate:
        return self._estimate(metric, mean_recall(self.table, self.how.level), "mover", note)

    def _dirichlet(self, metric: Metric, note: str | None) -> Estimate:
        values, undefined, lost = self._defined(metric, self.posterior)
        value = self.values[metric.expression]
        if lost:
            return nowhere(value, lost)
        low, high = percentile(values, self.how.level)
        return self._estimate(
            metric, (min(low, value), max(high, value)), "dirichlet", note, undefined
        )

    def _defined(self, metric: Metric, drawn: dict[str, Array]) -> tuple[Array, float, str | None]:
        """Return the values of draws that have one, the share without, and whether too few have."""
        values = np.asarray(drawn[metric.expression])
        defined = values[~np.isnan(values)]
        undefined = 1.0 - len(defined) / len(values)
        few = len(defined) < FEWEST * len(values)
        return defined, undefined, "it is undefined in most of the draws" if few else None

    # --- tables that no bootstrap can move -----------------------------------------------------

    def _is_stuck(self, result: Estimate, method: Method) -> bool:
        plain = self.table.whole and not self.grouped and self.how.method is None
        flat = math.isclose(result.low, result.high, abs_tol=1e-12)
        return plain and flat and method not in {"wilson", "mover", "dirichlet"}

    def _unstuck(self, metrics: list[Metric]) -> dict[str, Estimate]:
        """Return wider limits for metrics that every redrawn table gives the same value."""
        self._imagine(metrics)
        why = "every redrawn table gives the same value"
        return {metric.expression: self._dirichlet(metric, why) for metric in metrics}
