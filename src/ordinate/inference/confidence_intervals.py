"""Intervals for the metrics of a table: which method each gets, and what it shares with others."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NotApplicable
from ordinate.inference.bootstrap import acceleration, bca, percentile
from ordinate.inference.clustered_errors import FEW, linearised_error
from ordinate.inference.coverage_warnings import doubt
from ordinate.inference.delta_method import influence, limits, quantile, variance
from ordinate.inference.distributions import student
from ordinate.inference.estimates import Estimate, nowhere
from ordinate.inference.resampling import Draws, Tick, redrawing, replicate
from ordinate.inference.small_samples import (
    RARE,
    effective,
    mean_of_levels,
    over_levels,
    posterior,
    rare_levels,
    wilson,
    worst_of_levels,
)
from ordinate.metrics import Metric
from ordinate.metrics.catalogue import Macro
from ordinate.summaries import Confusion

Array = NDArray[Any]
Method = Literal[
    "delta", "percentile", "bca", "wilson", "mover", "simultaneous", "dirichlet", "jeffreys", "t"
]
EXACT = {
    "wilson",
    "mover",
    "simultaneous",
    "dirichlet",
    "jeffreys",
}  # methods that always have a width
ENCLOSING = EXACT | {"delta", "t"}
FEWEST = 0.5  # of the draws must give a value
JEFFREYS = 0.5  # the prior weight of each prediction
FLAT = 1e-12  # an interval this narrow says nothing
NO_MOVE = "every redrawn table gives the same value"
NO_ERROR = "it has no standard error here"
BENT = "it has no derivative where levels or paths tie"

# The shortest method that covers well in the study of coverage, by family of metrics.
BY_FAMILY: dict[str, Method] = {
    "agreement": "delta",
    "closeness": "delta",
    "clustering": "jeffreys",
    "distance": "delta",
    "per level": "delta",
    "ranking": "delta",
}
ROUGH: Method = "bca"  # for metrics without a derivative, and for families of other people
OVER_LEVELS: dict[Macro, Method] = {
    "mean": "mover",
    "worst": "simultaneous",
    "other": "percentile",
}


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
        real = isinstance(self.level, Real) and not isinstance(self.level, bool)
        if not (real and 0.5 <= self.level < 1.0):
            raise BadOption(f"The level of an interval is 0.5 to below 1, not {self.level!r}.")
        if self.method is not None and self.method not in get_args(Method):
            known = ", ".join(get_args(Method))
            raise BadOption(f"There is no interval method {self.method!r}; there are: {known}.")
        Draws(self.draws, self.seed)


def estimate(
    metrics: Sequence[Metric],
    source: Confusion,
    how: Intervals | None = None,
    tick: Tick | None = None,
) -> dict[str, Estimate]:
    """Return metrics by expression, each with its interval.

    `source` is one table, or a batch of tables: one for each group of items that belong together.
    """
    return _Estimator(source, how or Intervals(), tick).run(metrics)


def usual_method(metric: Metric) -> Method:
    """Return the method of a metric for plain counts: what the study of coverage chose."""
    if metric.share:
        return "wilson"
    if metric.macro:
        return OVER_LEVELS[metric.macro]
    return BY_FAMILY.get(metric.family, ROUGH) if metric.smooth else ROUGH


class _Estimator:
    def __init__(self, source: Confusion, how: Intervals, tick: Tick | None) -> None:
        self.grouped = bool(source.shape)
        if len(source.shape) > 1:
            raise BadOption("Groups are a batch of tables with one leading axis.")
        if self.grouped and how.stratified:
            raise BadOption("Groups are drawn whole, so draws cannot be stratified by gold level.")
        self.source = source[source.total > 0] if self.grouped else source
        self.how, self.tick = how, tick
        self.table = source.pooled if self.grouped else source
        self.draws = Draws(how.draws, how.seed)
        self.values: dict[str, float] = {}
        self.redrawn: dict[str, Array] = {}
        self.posterior: dict[str, Array] = {}

    def run(self, metrics: Sequence[Metric]) -> dict[str, Estimate]:
        """Choose methods, draw once for all that need it, and ask each method for its limits."""
        found: dict[str, Estimate] = {}
        self._refuse_misfits(list(metrics))
        plans: list[tuple[Metric, Method, str | None]] = []
        for metric in metrics:
            reason = self._refusal(metric)
            value = self.values[metric.expression]
            found[metric.expression] = nowhere(value, reason or "")
            if reason is None:
                plans.append((metric, *self._plan(metric)))
        self._draw([m for m, method, _ in plans if method in {"percentile", "bca"}])
        self._imagine([m for m, method, _ in plans if method == "dirichlet"], None)
        self._imagine([m for m, method, _ in plans if method == "jeffreys"], JEFFREYS)
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
            value = float(metric(self.table))
        except NotApplicable as reason:
            self.values[metric.expression] = math.nan
            return str(reason)
        inside = float(np.clip(value, *metric.bounds))
        value = inside if math.isclose(value, inside, abs_tol=FLAT) else value  # but for rounding
        self.values[metric.expression] = value
        if math.isnan(value):
            return metric.undefined_when or "the metric is undefined here"
        if value != inside:
            return "its value is outside the bounds that it declares"
        if np.isnan(self.table.squares).any() and not self.grouped:
            return "nobody knows how many items are behind these weights"
        if self.grouped and len(self.source.weights) < 2:
            return "there is one group only"
        return None

    def _plan(self, metric: Metric) -> tuple[Method, str | None]:
        """Return the method for a metric, and why, where it is not the usual one."""
        asked = self.how.method
        if asked is not None:
            misfit = self._misfit(metric, asked)
            return (asked, None) if misfit is None else (self._usual(metric), misfit)
        notes = [self._source_note()]
        method = self._usual(metric)
        if metric.macro and self.rare and method not in {"mover", "simultaneous"}:
            notes.append(f"fewer than {RARE} items of {', '.join(self.rare)}")
        if self.table.whole and not self.grouped:
            notes.append(doubt(metric, self.table))
        return method, "; ".join(filter(None, notes)) or None

    def _source_note(self) -> str | None:
        if self.grouped:
            count = len(self.source.weights)
            return f"{count} groups only" if count < FEW else None
        return None if self.table.whole else "real weights"

    def _usual(self, metric: Metric) -> Method:
        if self.grouped:
            few = len(self.source.weights) < FEW
            return "t" if few and metric.smooth else "percentile"
        if over_levels(metric, self.table):
            return OVER_LEVELS[metric.macro]
        if metric.macro:
            return "percentile"
        if not self.table.whole:
            return "delta" if metric.smooth else "percentile"
        if metric.share and self.how.stratified:
            return "delta"
        return usual_method(metric)

    def _refuse_misfits(self, metrics: list[Metric]) -> None:
        """Refuse a method that was asked for and fits none of the metrics."""
        asked = self.how.method
        misfits = [] if asked is None else [self._misfit(m, asked) for m in metrics]
        if misfits and all(misfits):
            name = metrics[0].expression
            raise BadOption(f"The method {asked!r} does not fit {name}: {misfits[0]}.")

    def _misfit(self, metric: Metric, method: Method) -> str | None:
        """Return why a method makes no sense for a metric here, if it makes none."""
        levels = method in {"mover", "simultaneous"}  # they know what weights say
        plain = not self.grouped and (self.table.whole or levels)
        reasons: dict[str, list[tuple[bool, str]]] = {
            "delta": [(not metric.smooth, BENT)],
            "wilson": [(not metric.share, "it is no plain share of the items")],
            "mover": [(metric.macro != "mean", "it is no mean over gold levels")],
            "simultaneous": [(metric.macro != "worst", "it is not the worst of gold levels")],
            "t": [(not self.grouped, "there are no groups"), (not metric.smooth, BENT)],
            "bca": [(not (self.grouped or self.table.whole), "the weights are no counts")],
        }
        wrong = [
            *reasons.get(method, []),
            (levels and not over_levels(metric, self.table), "the scale has too many levels"),
            (method in EXACT and not plain, "the items are no plain counts"),
        ]
        return next((why for is_wrong, why in wrong if is_wrong), None)

    @cached_property
    def rare(self) -> list[str]:
        return rare_levels(self.table)

    # --- draws -------------------------------------------------------------------------------

    def _draw(self, metrics: list[Metric]) -> None:
        if metrics:
            redraw = redrawing(self.source, stratified=self.how.stratified)
            groups = len(self.source.weights) if self.grouped else 0
            self.redrawn = replicate(
                metrics, self.table, redraw, self.draws, numbers=groups, tick=self.tick
            )

    def _imagine(self, metrics: list[Metric], prior: float | None) -> None:
        redraw = posterior(effective(self.source), prior, stratified=self.how.stratified)
        self.posterior |= replicate(metrics, self.table, redraw, self.draws, tick=self.tick)

    # --- limits ------------------------------------------------------------------------------

    def _limits(self, metric: Metric, method: Method, note: str | None) -> Estimate:
        ways: dict[Method, Callable[[Metric, str | None], Estimate]] = {
            "delta": self._delta,
            "t": self._delta,
            "percentile": self._percentile,
            "bca": self._bca,
            "wilson": self._wilson,
            "mover": self._mover,
            "simultaneous": self._worst,
            "dirichlet": self._dirichlet,
            "jeffreys": partial(self._dirichlet, method="jeffreys"),
        }
        return ways[method](metric, note)

    def _delta(self, metric: Metric, note: str | None) -> Estimate:
        value = self.values[metric.expression]
        if self.grouped:
            error, method = linearised_error(metric, self.source), "t"
            reach = student(self.how.level, len(self.source.weights) - 1)
        else:
            influences = influence(metric, self.table)
            error = math.sqrt(variance(self.table, influences, stratified=self.how.stratified))
            method, reach = "delta", quantile(self.how.level)
        at_bound = any(math.isclose(value, end, abs_tol=FLAT) for end in metric.bounds)
        if error < FLAT or at_bound:
            return self._estimate(metric, (value, value), method, note)
        return self._estimate(metric, limits(value, error, metric.bounds, reach), method, note)

    def _percentile(self, metric: Metric, note: str | None) -> Estimate:
        values, undefined, lost = self._defined(metric, self.redrawn)
        if lost:
            return nowhere(self.values[metric.expression], lost, undefined)
        ends = percentile(values, self.how.level)
        return self._estimate(metric, ends, "percentile", note, undefined)

    def _bca(self, metric: Metric, note: str | None) -> Estimate:
        values, undefined, lost = self._defined(metric, self.redrawn)
        value = self.values[metric.expression]
        if lost:
            return nowhere(value, lost, undefined)
        ends = bca(values, value, acceleration(metric, self.source), self.how.level)
        low, high = percentile(values, self.how.level)
        if ends is None or (ends[1] - ends[0] < FLAT < high - low):
            ends = min(low, value), max(high, value)
            why = "; ".join(filter(None, (note, "BCa is undefined here")))
            return self._estimate(metric, ends, "percentile", why, undefined)
        return self._estimate(metric, ends, "bca", note, undefined)

    def _wilson(self, metric: Metric, note: str | None) -> Estimate:
        value, n = self.values[metric.expression], float(effective(self.source).total)
        low, high = wilson(value * n, n, self.how.level)
        return self._estimate(metric, (float(low), float(high)), "wilson", note)

    def _mover(self, metric: Metric, note: str | None) -> Estimate:
        return self._estimate(
            metric, mean_of_levels(metric, self.table, self.how.level), "mover", note
        )

    def _worst(self, metric: Metric, note: str | None) -> Estimate:
        ends = worst_of_levels(metric, self.table, self.how.level)
        return self._estimate(metric, ends, "simultaneous", note)

    def _dirichlet(self, metric: Metric, note: str | None, method: str = "dirichlet") -> Estimate:
        values, undefined, lost = self._defined(metric, self.posterior)
        if lost:
            return nowhere(self.values[metric.expression], lost, undefined)
        return self._estimate(metric, percentile(values, self.how.level), method, note, undefined)

    def _defined(self, metric: Metric, drawn: dict[str, Array]) -> tuple[Array, float, str | None]:
        """Return the values of draws that have one, the share without, and whether too few have."""
        values = np.asarray(drawn[metric.expression])
        defined = values[~np.isnan(values)]
        undefined = 1.0 - len(defined) / len(values)
        few = len(defined) < FEWEST * len(values)
        return defined, undefined, "it is undefined in most of the draws" if few else None

    def _estimate(
        self,
        metric: Metric,
        ends: tuple[float, float],
        method: str,
        note: str | None,
        undefined: float = 0.0,
    ) -> Estimate:
        low, high = ends
        least, most = self._attainable(metric)
        value = self.values[metric.expression]
        low, high = float(np.clip(low, least, most)), float(np.clip(high, least, most))
        if method in ENCLOSING:
            low, high = min(low, value), max(high, value)
        return Estimate(value, low, high, method, undefined, note)

    def _attainable(self, metric: Metric) -> tuple[float, float]:
        """Return how far a distance can go on this scale: from one end to the other."""
        if metric.family != "distance":
            return metric.bounds
        size = len(self.table.scale)
        ends = np.zeros((2, size, size))
        ends[0, 0, -1] = ends[1, -1, 0] = 1.0
        values = metric.function(self.table.with_cells(ends), **metric.options)
        low, high = metric.bounds
        return (
            float(np.min(values)) if math.isinf(low) else low,
            float(np.max(values)) if math.isinf(high) else high,
        )

    # --- tables that no draw can move ----------------------------------------------------------

    def _is_stuck(self, result: Estimate, method: Method) -> bool:
        flat = math.isclose(result.low, result.high, abs_tol=FLAT)
        return flat and method not in EXACT and method != self.how.method

    def _unstuck(self, metrics: list[Metric]) -> dict[str, Estimate]:
        """Return wider limits for metrics that neither draws nor derivatives can move."""
        self._imagine([metric for metric in metrics if not metric.share], None)
        found = {}
        for metric in metrics:
            why = NO_ERROR if metric.expression not in self.redrawn else NO_MOVE
            wider = self._wilson if metric.share else self._dirichlet
            found[metric.expression] = wider(metric, why)
        return found
