"""Confidence intervals for the metrics of a confusion matrix."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NotApplicable
from ordinate.inference.bootstrap import bca_interval, estimate_acceleration, percentile_interval
from ordinate.inference.clusters import (
    LevelTrials,
    correct_bias,
    delete_each_cluster,
    describe_cluster_doubts,
    explain_undefined_deletions,
    is_biased,
    jackknife_error,
    list_level_trials,
    mover_of_clusters,
    worst_of_clusters,
)
from ordinate.inference.delta_method import (
    compute_bounded_interval,
    compute_influence,
    linearised_standard_error,
    normal_quantile,
    variance_from_influence,
)
from ordinate.inference.distributions import student_quantile
from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.inference.interval_methods import (
    NONDEGENERATE_METHODS,
    IntervalMethod,
    MethodChoice,
)
from ordinate.inference.resampling import (
    STRATIFIED_CLUSTERS,
    ProgressCallback,
    Resampling,
    make_resampler,
    resample_metrics,
)
from ordinate.inference.small_samples import (
    make_posterior_sampler,
    mover_interval,
    scale_to_effective_size,
    simultaneous_interval,
    wilson_interval,
)
from ordinate.metrics import Metric
from ordinate.settings import Level, Resamples, Seed
from ordinate.summaries import ConfusionMatrix

Array = NDArray[Any]
ENCLOSING_METHODS = NONDEGENERATE_METHODS | {"delta", "jackknife", "t"}
FEWEST_DEFINED_SHARE = 0.5  # of the resamples must give a value
JEFFREYS_PRIOR = 0.5  # the prior weight of each prediction
FLAT_WIDTH = 1e-12  # an interval this narrow says nothing
NO_VARIATION_NOTE = "every resample gives the same value"
NO_ERROR_NOTE = "it has no standard error here"


@dataclass(frozen=True)
class ConfidenceIntervals:
    """Settings of confidence intervals: their level, the method, the resamples, the seed.

    Without a method, each metric gets the one that the coverage study chose for its family.
    Stratified intervals hold the number of items of each gold level fixed.
    """

    level: Level = 0.95
    method: IntervalMethod | None = None
    resamples: Resamples = 2_000
    seed: Seed = 0
    stratified: bool = False

    def __post_init__(self) -> None:
        real = isinstance(self.level, Real) and not isinstance(self.level, bool)
        if not (real and 0.5 <= self.level < 1.0):
            raise BadOption(f"The level of an interval is 0.5 to below 1, not {self.level!r}.")
        if self.method is not None and self.method not in get_args(IntervalMethod):
            known = ", ".join(get_args(IntervalMethod))
            raise BadOption(f"There is no interval method {self.method!r}; there are: {known}.")
        Resampling(self.resamples, self.seed)


def estimate_metrics(
    metrics: Sequence[Metric],
    source: ConfusionMatrix,
    settings: ConfidenceIntervals | None = None,
    progress: ProgressCallback | None = None,
) -> dict[str, Estimate]:
    """Return metrics by expression, each with its confidence interval.

    `source` is one confusion matrix, or a batch of them: one for each cluster of items.
    """
    return _IntervalEstimator(source, settings or ConfidenceIntervals(), progress).run(metrics)


def compute_attainable_range(metric: Metric, matrix: ConfusionMatrix) -> tuple[float, float]:
    """Return the bounds of a metric; those of a distance on this scale: from one end to the other.

    >>> from ordinate.metrics import find_metric
    >>> matrix = ConfusionMatrix.of(["low", "mid"], ["low", "high"], "low,mid,high")
    >>> compute_attainable_range(find_metric("mae"), matrix)
    (0, 2.0)
    """
    if metric.family != "distance":
        return metric.bounds
    size = len(matrix.scale)
    ends = np.zeros((2, size, size))
    ends[0, 0, -1] = ends[1, -1, 0] = 1.0
    values = metric.function(matrix.with_cells(ends), **metric.options)
    low, high = metric.bounds
    return (
        float(np.min(values)) if math.isinf(low) else low,
        float(np.max(values)) if math.isinf(high) else high,
    )


class _IntervalEstimator:
    def __init__(
        self,
        source: ConfusionMatrix,
        settings: ConfidenceIntervals,
        progress: ProgressCallback | None,
    ) -> None:
        self.clustered = bool(source.shape)
        if len(source.shape) > 1:
            raise BadOption("Clusters are a batch of confusion matrices with one leading axis.")
        if self.clustered and settings.stratified:
            raise BadOption(STRATIFIED_CLUSTERS)
        self.source = source[source.total > 0] if self.clustered else source
        self.settings, self.progress = settings, progress
        self.matrix = source.pooled if self.clustered else source
        self.methods = MethodChoice(
            self.matrix,
            self.source if self.clustered else None,
            settings.method,
            stratified=settings.stratified,
        )
        self.resamples = Resampling(settings.resamples, settings.seed)
        self.values: dict[str, float] = {}
        self.bootstrap: dict[str, Array] = {}
        self.posterior: dict[str, Array] = {}

    def run(self, metrics: Sequence[Metric]) -> dict[str, Estimate]:
        """Choose methods, resample once for all that need it, and compute each interval."""
        estimates: dict[str, Estimate] = {}
        self.methods.refuse_misfits(metrics)
        plans: list[tuple[Metric, IntervalMethod, str | None]] = []
        for metric in metrics:
            reason = self._record_value(metric)
            value = self.values[metric.expression]
            estimates[metric.expression] = make_point_estimate(value, reason or "")
            if reason is None:
                plans.append((metric, *self.methods.plan(metric)))
        self._bootstrap_metrics([m for m, method, _ in plans if method in {"percentile", "bca"}])
        self._sample_posterior([m for m, method, _ in plans if method == "dirichlet"], None)
        self._sample_posterior(
            [m for m, method, _ in plans if method == "jeffreys"], JEFFREYS_PRIOR
        )
        degenerate = []
        for metric, method, note in plans:
            result = self._compute_interval(metric, method, note)
            estimates[metric.expression] = result
            if self._is_degenerate(result, method):
                degenerate.append(metric)
        return estimates | self._widen_degenerate(degenerate)

    def _record_value(self, metric: Metric) -> str | None:
        """Note the value of a metric, and return why it has no interval, if it has none."""
        try:
            value = float(metric(self.matrix))
        except NotApplicable as reason:
            self.values[metric.expression] = math.nan
            return str(reason)
        inside = float(np.clip(value, *metric.bounds))
        if math.isclose(value, inside, abs_tol=FLAT_WIDTH):  # it is outside by rounding
            value = inside
        self.values[metric.expression] = value
        if math.isnan(value):
            return metric.undefined_when or "the metric is undefined here"
        if value != inside:
            return "its value is outside the bounds that it declares"
        if np.isnan(self.matrix.squares).any() and not self.clustered:
            return "the number of items behind these weights is unknown"
        if self.clustered and len(self.source.weights) < 2:
            return "there is one cluster only"
        return None

    # --- resamples -------------------------------------------------------------------------------

    def _bootstrap_metrics(self, metrics: list[Metric]) -> None:
        if metrics:
            resample = make_resampler(self.source, stratified=self.settings.stratified)
            clusters = len(self.source.weights) if self.clustered else 0
            self.bootstrap = resample_metrics(
                metrics,
                self.matrix,
                resample,
                self.resamples,
                numbers=clusters,
                progress=self.progress,
            )

    def _sample_posterior(self, metrics: list[Metric], prior: float | None) -> None:
        resample = make_posterior_sampler(
            scale_to_effective_size(self.source), prior, stratified=self.settings.stratified
        )
        self.posterior |= resample_metrics(
            metrics, self.matrix, resample, self.resamples, progress=self.progress
        )

    # --- intervals ---------------------------------------------------------------------------

    def _compute_interval(
        self, metric: Metric, method: IntervalMethod, note: str | None
    ) -> Estimate:
        methods: dict[IntervalMethod, Callable[[Metric, str | None], Estimate]] = {
            "delta": self._delta_interval,
            "t": self._delta_interval,
            "jackknife": self._jackknife_interval,
            "percentile": partial(self._quantile_interval, method="percentile"),
            "bca": self._bca_interval,
            "wilson": self._wilson_interval,
            "mover": self._mover_interval,
            "simultaneous": self._simultaneous_interval,
            "dirichlet": partial(self._quantile_interval, method="dirichlet"),
            "jeffreys": partial(self._quantile_interval, method="jeffreys"),
        }
        return methods[method](metric, note)

    def _delta_interval(self, metric: Metric, note: str | None) -> Estimate:
        if self.clustered:
            error, method = linearised_standard_error(metric, self.source), "t"
            reach = self._student_reach()
        else:
            influences = compute_influence(metric, self.matrix)
            error = math.sqrt(
                variance_from_influence(
                    self.matrix, influences, stratified=self.settings.stratified
                )
            )
            method, reach = "delta", normal_quantile(self.settings.level)
        value = self.values[metric.expression]
        bounds = self._reach_from(metric, error, reach, value)
        return self._build_estimate(metric, bounds, method, note)

    def _jackknife_interval(self, metric: Metric, note: str | None) -> Estimate:
        value = self.values[metric.expression]
        without = delete_each_cluster(metric, self.source)
        if reason := explain_undefined_deletions(without):
            return make_point_estimate(value, reason)
        error, reach = float(jackknife_error(value, without)), self._student_reach()
        centre = float(correct_bias(value, without)) if is_biased(metric) else value
        bounds = self._reach_from(metric, error, reach, float(np.clip(centre, *metric.bounds)))
        return self._build_estimate(metric, bounds, "jackknife", note)

    def _student_reach(self, level: float | None = None) -> float:
        return student_quantile(level or self.settings.level, len(self.source.weights) - 1)

    def _reach_from(
        self, metric: Metric, error: float, reach: float, centre: float
    ) -> tuple[float, float]:
        """Return the bounds so many errors from the centre, on a scale without bounds."""
        at_bound = any(math.isclose(centre, end, abs_tol=FLAT_WIDTH) for end in metric.bounds)
        if error < FLAT_WIDTH or at_bound:
            return centre, centre
        return compute_bounded_interval(centre, error, metric.bounds, reach)

    def _bca_interval(self, metric: Metric, note: str | None) -> Estimate:
        values, undefined, reason = self._select_defined(metric, self.bootstrap)
        value = self.values[metric.expression]
        if reason:
            return make_point_estimate(value, reason, undefined)
        bounds = bca_interval(
            values, value, estimate_acceleration(metric, self.source), self.settings.level
        )
        low, high = percentile_interval(values, self.settings.level)
        if bounds is None or (bounds[1] - bounds[0] < FLAT_WIDTH < high - low):
            bounds = min(low, value), max(high, value)
            why = "; ".join(filter(None, (note, "BCa is undefined here")))
            return self._build_estimate(metric, bounds, "percentile", why, undefined)
        return self._build_estimate(metric, bounds, "bca", note, undefined)

    def _wilson_interval(self, metric: Metric, note: str | None) -> Estimate:
        if self.clustered and self.methods.choose(metric) == "wilson":
            return self._cluster_interval(metric, "wilson", note)
        value, n = self.values[metric.expression], float(scale_to_effective_size(self.source).total)
        low, high = wilson_interval(value * n, n, self.settings.level)
        return self._build_estimate(metric, (float(low), float(high)), "wilson", note)

    def _mover_interval(self, metric: Metric, note: str | None) -> Estimate:
        if self.clustered:
            return self._cluster_interval(metric, "mover", note)
        return self._build_estimate(
            metric, mover_interval(metric, self.matrix, self.settings.level), "mover", note
        )

    def _simultaneous_interval(self, metric: Metric, note: str | None) -> Estimate:
        if self.clustered:
            return self._cluster_interval(metric, "simultaneous", note)
        bounds = simultaneous_interval(metric, self.matrix, self.settings.level)
        return self._build_estimate(metric, bounds, "simultaneous", note)

    def _cluster_interval(
        self, metric: Metric, method: IntervalMethod, note: str | None
    ) -> Estimate:
        """Return the interval of a share or of levels at the sizes that clusters leave them."""
        trials = cast(LevelTrials, list_level_trials(metric, self.source))
        if method == "simultaneous":
            reach = self._student_reach(self.settings.level ** (1.0 / float(trials.levels)))
            low, high = worst_of_clusters(trials, reach, metric.direction)
        else:
            low, high = mover_of_clusters(trials, self._student_reach())
        return self._build_estimate(metric, (float(low), float(high)), method, note)

    def _quantile_interval(self, metric: Metric, note: str | None, method: str) -> Estimate:
        """Return the interval between two quantiles of resamples, or of the posterior."""
        resampled = self.bootstrap if method == "percentile" else self.posterior
        values, undefined, reason = self._select_defined(metric, resampled)
        if reason:
            return make_point_estimate(self.values[metric.expression], reason, undefined)
        bounds = percentile_interval(values, self.settings.level)
        return self._build_estimate(metric, bounds, method, note, undefined)

    def _select_defined(
        self, metric: Metric, resampled: dict[str, Array]
    ) -> tuple[Array, float, str | None]:
        """Return the values of resamples, the share without one, and whether too few have one."""
        values = np.asarray(resampled[metric.expression])
        defined = values[~np.isnan(values)]
        undefined = 1.0 - len(defined) / len(values)
        few = len(defined) < FEWEST_DEFINED_SHARE * len(values)
        return defined, undefined, "it is undefined in most of the resamples" if few else None

    def _build_estimate(
        self,
        metric: Metric,
        bounds: tuple[float, float],
        method: str,
        note: str | None,
        undefined: float = 0.0,
    ) -> Estimate:
        low, high = bounds
        lowest, highest = compute_attainable_range(metric, self.matrix)
        value = self.values[metric.expression]
        low, high = float(np.clip(low, lowest, highest)), float(np.clip(high, lowest, highest))
        if method in ENCLOSING_METHODS:
            low, high = min(low, value), max(high, value)
        return Estimate(value, low, high, method, undefined, note)

    # --- values that no resample can move ------------------------------------------------------

    def _is_degenerate(self, result: Estimate, method: IntervalMethod) -> bool:
        flat = math.isclose(result.low, result.high, abs_tol=FLAT_WIDTH)
        return flat and method not in NONDEGENERATE_METHODS and method != self.settings.method

    def _widen_degenerate(self, metrics: list[Metric]) -> dict[str, Estimate]:
        """Return wider intervals for metrics that neither resamples nor derivatives can move."""
        self._sample_posterior([metric for metric in metrics if not metric.share], None)
        estimates = {}
        for metric in metrics:
            why = NO_ERROR_NOTE if metric.expression not in self.bootstrap else NO_VARIATION_NOTE
            if self.clustered:
                why = "; ".join(filter(None, (why, describe_cluster_doubts(metric, self.source))))
            method: IntervalMethod = "wilson" if metric.share else "dirichlet"
            estimates[metric.expression] = self._compute_interval(metric, method, why)
        return estimates
