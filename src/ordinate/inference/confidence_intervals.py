"""Confidence intervals for the metrics of a confusion matrix: which method each metric gets."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Real
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NotApplicable, shorten
from ordinate.inference.bootstrap import bca_interval, estimate_acceleration, percentile_interval
from ordinate.inference.clusters import (
    LevelTrials,
    correct_bias,
    delete_each_cluster,
    describe_cluster_doubts,
    explain_undefined_deletions,
    is_biased,
    jackknife_error,
    list_item_trials,
    list_level_trials,
    mover_of_clusters,
    worst_of_clusters,
)
from ordinate.inference.delta_method import (
    CELL_AXES,
    compute_bounded_interval,
    compute_standard_errors,
    linearised_standard_error,
    normal_quantile,
)
from ordinate.inference.distributions import student_quantile
from ordinate.inference.estimates import Estimate, make_point_estimate
from ordinate.inference.interval_methods import (
    MOST_RESAMPLED,
    NONDEGENERATE_METHODS,
    IntervalMethod,
    MethodChoice,
    join_notes,
)
from ordinate.inference.resampling import (
    STRATIFIED_CLUSTERS,
    ProgressCallback,
    Resampling,
    make_partial_progress,
    make_resampler,
    resample_metrics,
)
from ordinate.inference.small_samples import (
    compute_effective_sizes,
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
CELLS_PER_BLOCK = 1 << 20  # of matrices whose intervals are computed together
JEFFREYS_PRIOR = 0.5  # the prior weight of each prediction
FLAT_WIDTH = 1e-12  # an interval this narrow says nothing
NO_VARIATION_NOTE = "every resample gives the same value"
NO_ERROR_NOTE = "it has no standard error here"
NO_WIDTH_NOTE = "no items with these gold levels give another value"
ONE_ITEM_NOTE = "there is one item only"


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
            raise BadOption(
                f"The level of an interval is 0.5 to below 1, not {shorten(self.level)}."
            )
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
    return _IntervalEstimator(source, settings or ConfidenceIntervals(), progress).run(metrics)[0]


def estimate_metrics_of_each(
    metrics: Sequence[Metric],
    matrices: ConfusionMatrix,
    settings: ConfidenceIntervals | None = None,
    progress: ProgressCallback | None = None,
) -> list[dict[str, Estimate]]:
    """Return metrics by expression, with intervals, of each confusion matrix of a batch [T].

    Of more than 50 matrices, means of ratios over levels (macro F1) get MOVER, not resamples.
    """
    estimates: list[dict[str, Estimate]] = [{} for _ in matrices.weights]
    for alike in group_alike_matrices(matrices):
        estimator = _IntervalEstimator(
            matrices[alike],
            settings or ConfidenceIntervals(),
            progress,
            clustered=False,
            many=len(estimates) > MOST_RESAMPLED,
        )
        for place, found in zip(alike, estimator.run(metrics), strict=True):
            estimates[place] = found
    return estimates


def group_alike_matrices(matrices: ConfusionMatrix) -> list[Array]:
    """Return the places of matrices that metrics and methods treat alike, in blocks for memory."""
    unanswered = matrices.unanswered.any(axis=-1)
    fractions = (matrices.weights != np.floor(matrices.weights)).any(axis=CELL_AXES)
    unknown = np.isnan(matrices.squares).any(axis=CELL_AXES)
    kind = unanswered + 2 * fractions + 4 * unknown
    size = max(1, CELLS_PER_BLOCK // math.prod(matrices.weights.shape[1:]))
    groups = (np.flatnonzero(kind == each) for each in np.unique(kind))
    return [x[start : start + size] for x in groups for start in range(0, len(x), size)]


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


@dataclass(frozen=True)
class _Plan:
    """The method of a metric, for which of the matrices [T], and why it is not the usual one."""

    metric: Metric
    where: Array
    method: IntervalMethod
    notes: Sequence[str | None]


class _IntervalEstimator:
    """Intervals of metrics for matrices [T] that are alike, or for the one of some clusters."""

    def __init__(
        self,
        source: ConfusionMatrix,
        settings: ConfidenceIntervals,
        progress: ProgressCallback | None,
        *,
        clustered: bool | None = None,
        many: bool = False,
    ) -> None:
        self.clustered = bool(source.shape) if clustered is None else clustered
        if len(source.shape) > 1:
            raise BadOption("Clusters are a batch of confusion matrices with one leading axis.")
        if self.clustered and settings.stratified:
            raise BadOption(STRATIFIED_CLUSTERS)
        self.settings, self.progress = settings, progress
        self.clusters = source[source.total > 0] if self.clustered else source
        single = source.pooled if self.clustered else source
        self.matrices = single if single.shape else single.broadcast((1,))
        self.methods = MethodChoice(
            self.matrices,
            self.clusters if self.clustered else None,
            settings.method,
            stratified=settings.stratified,
            many=many,
        )
        self.resamples = Resampling(settings.resamples, settings.seed)
        self.values: dict[str, Array] = {}
        self.found: dict[str, list[Estimate]] = {}
        self.bootstrap: dict[int, dict[str, Array]] = {}
        self.posterior: dict[int, dict[str, Array]] = {}

    def run(self, metrics: Sequence[Metric]) -> list[dict[str, Estimate]]:
        """Choose methods, resample once for all that need it, and compute each interval."""
        self.methods.refuse_misfits(metrics)
        plans = []
        for metric in metrics:
            reasons = self._record_values(metric)
            self.found[metric.expression] = [
                make_point_estimate(value, reason or "")
                for value, reason in zip(
                    self.values[metric.expression].tolist(), reasons, strict=True
                )
            ]
            where = np.flatnonzero([reason is None for reason in reasons])
            if len(where):
                plans.append(_Plan(metric, where, *self.methods.plan(metric)))
        self._bootstrap_metrics([x for x in plans if x.method in {"percentile", "bca"}])
        self._sample_posterior([x for x in plans if x.method == "dirichlet"], None)
        self._sample_posterior([x for x in plans if x.method == "jeffreys"], JEFFREYS_PRIOR)
        self._compute_errors([x.metric for x in plans if x.method == "delta"])
        for plan in plans:
            self._fill_intervals(plan)
        self._widen_degenerate(plans)
        return [
            {name: column[place] for name, column in self.found.items()}
            for place in range(len(self.matrices.weights))
        ]

    def _record_values(self, metric: Metric) -> list[str | None]:
        """Note the values of a metric, and return why they have no interval, if they have none."""
        count = len(self.matrices.weights)
        try:
            value = np.asarray(metric(self.matrices), float)
        except NotApplicable as reason:
            self.values[metric.expression] = np.full(count, math.nan)
            return [str(reason)] * count
        inside = np.clip(value, *metric.bounds)
        value = np.where(_are_close(value, inside), inside, value)  # it is outside by rounding
        self.values[metric.expression] = value
        general = None
        if np.isnan(self.matrices.squares).any() and not self.clustered:
            general = "the number of items behind these weights is unknown"
        elif self.clustered and len(self.clusters.weights) < 2:
            general = "there is one cluster only"
        reasons: list[str | None] = [general] * count
        for place in np.flatnonzero(value != inside):
            reasons[place] = "its value is outside the bounds that it declares"
        for place in np.flatnonzero(np.isnan(value)):
            reasons[place] = metric.undefined_when or "the metric is undefined here"
        return reasons

    # --- resamples -------------------------------------------------------------------------------

    def _get_source(self, place: int) -> ConfusionMatrix:
        """Return what the resamples of a matrix are drawn from: itself, or its clusters."""
        return self.clusters if self.clustered else self.matrices[place]

    def _bootstrap_metrics(self, plans: list[_Plan]) -> None:
        for place, metrics, progress in self._list_resampled(plans):
            source = self._get_source(place)
            resample = make_resampler(source, stratified=self.settings.stratified)
            self.bootstrap[place] = resample_metrics(
                metrics,
                self.matrices[place],
                resample,
                self.resamples,
                numbers=len(source.weights) if self.clustered else 0,
                progress=progress,
            )

    def _sample_posterior(self, plans: list[_Plan], prior: float | None) -> None:
        for place, metrics, progress in self._list_resampled(plans):
            resample = make_posterior_sampler(
                scale_to_effective_size(self._get_source(place)),
                prior,
                stratified=self.settings.stratified,
            )
            self.posterior[place] = self.posterior.get(place, {}) | resample_metrics(
                metrics, self.matrices[place], resample, self.resamples, progress=progress
            )

    def _list_resampled(
        self, plans: list[_Plan]
    ) -> Iterator[tuple[int, list[Metric], ProgressCallback | None]]:
        """Yield each matrix with the metrics that resample it, and a part of the progress."""
        metrics: dict[int, list[Metric]] = {}
        for plan in plans:
            for place in plan.where.tolist():
                metrics.setdefault(place, []).append(plan.metric)
        for index, (place, selected) in enumerate(metrics.items()):
            yield place, selected, make_partial_progress(self.progress, index, len(metrics))

    # --- intervals ---------------------------------------------------------------------------

    def _fill_intervals(self, plan: _Plan) -> None:
        """Compute the intervals of a metric: of all matrices at once where nothing is resampled."""
        metric, method, found = plan.metric, plan.method, self.found[plan.metric.expression]
        together: dict[IntervalMethod, Callable[[Metric], tuple[Array, Array]]] = {
            "delta": self._delta_bounds,
            "wilson": self._wilson_bounds,
            "mover": self._mover_bounds,
            "simultaneous": partial(self._level_bounds, simultaneous_interval),
        }
        if method not in together or (self.clustered and method != "wilson"):
            for place in plan.where:
                found[place] = self._compute_interval(metric, method, place, plan.notes[place])
            return
        if self.clustered and self.methods.choose(metric) == "wilson":
            found[0] = self._cluster_interval("wilson", metric, plan.notes[0])
            return
        values = self.values[metric.expression]
        low, high = self._limit(metric, *together[method](metric), values, method)
        columns = zip(values.tolist(), low.tolist(), high.tolist(), plan.notes, strict=True)
        estimates = [Estimate(value, x, y, method, note=note) for value, x, y, note in columns]
        for place in plan.where:
            found[place] = estimates[place]

    def _compute_interval(
        self, metric: Metric, method: IntervalMethod, place: int, note: str | None
    ) -> Estimate:
        if method == "bca":
            return self._bca_interval(metric, place, note)
        if method in {"percentile", "dirichlet", "jeffreys"}:
            return self._quantile_interval(metric, method, place, note)
        of_clusters = {
            "jackknife": self._jackknife_interval,
            "delta": self._linearised_interval,
            "t": self._linearised_interval,
        }
        default = partial(self._cluster_interval, method)
        return of_clusters.get(method, default)(metric, note)

    # --- of matrices [T] at once

    def _compute_errors(self, metrics: list[Metric]) -> None:
        """Note the standard errors of metrics, which share the matrices that derivatives need."""
        errors: list[Array] = []
        if not self.clustered and metrics:
            errors = compute_standard_errors(
                metrics, self.matrices, stratified=self.settings.stratified
            )
        self.errors = dict(zip((x.expression for x in metrics), errors, strict=False))

    def _delta_bounds(self, metric: Metric) -> tuple[Array, Array]:
        error, value = self.errors[metric.expression], self.values[metric.expression]
        return self._reach_from(metric, error, normal_quantile(self.settings.level), value)

    def _reach_from(
        self, metric: Metric, error: Any, reach: float, centre: Any
    ) -> tuple[Array, Array]:
        """Return the bounds so many errors from the centre, on a scale without bounds."""
        low, high = compute_bounded_interval(centre, error, metric.bounds, reach)
        at_bound = np.logical_or(*(_are_close(centre, end) for end in metric.bounds))
        flat = at_bound | (error < FLAT_WIDTH)
        return np.where(flat, centre, low), np.where(flat, centre, high)

    def _wilson_bounds(self, metric: Metric) -> tuple[Array, Array]:
        n = self.effective_sizes
        return wilson_interval(self.values[metric.expression] * n, n, self.settings.level)

    @cached_property
    def effective_sizes(self) -> Array:
        """How many equally heavy items each matrix is worth; a cluster counts as one."""
        if self.clustered:
            return np.atleast_1d(scale_to_effective_size(self.clusters).total)
        return compute_effective_sizes(self.matrices)

    def _mover_bounds(self, metric: Metric) -> tuple[Array, Array]:
        if metric.macro == "mean":
            return self._level_bounds(mover_interval, metric)
        trials = cast(LevelTrials, list_item_trials(metric, self.matrices))
        return mover_of_clusters(trials, normal_quantile(self.settings.level))

    def _level_bounds(
        self, compute: Callable[[Metric, ConfusionMatrix, float], tuple[Any, Any]], metric: Metric
    ) -> tuple[Array, Array]:
        return compute(metric, self.matrices, self.settings.level)

    # --- of clusters

    def _linearised_interval(self, metric: Metric, note: str | None) -> Estimate:
        error = linearised_standard_error(metric, self.clusters)
        value = self.values[metric.expression].item()
        bounds = self._reach_from(metric, error, self._student_reach(), value)
        return self._build_estimate(metric, bounds, "t", 0, note)

    def _jackknife_interval(self, metric: Metric, note: str | None) -> Estimate:
        value = self.values[metric.expression].item()
        without = delete_each_cluster(metric, self.clusters)
        if reason := explain_undefined_deletions(without):
            return make_point_estimate(value, reason)
        error, reach = float(jackknife_error(value, without)), self._student_reach()
        centre = float(correct_bias(value, without)) if is_biased(metric) else value
        bounds = self._reach_from(metric, error, reach, float(np.clip(centre, *metric.bounds)))
        return self._build_estimate(metric, bounds, "jackknife", 0, note)

    def _student_reach(self, level: float | None = None) -> float:
        return student_quantile(level or self.settings.level, len(self.clusters.weights) - 1)

    def _cluster_interval(
        self, method: IntervalMethod, metric: Metric, note: str | None
    ) -> Estimate:
        """Return the interval of a share or of levels at the sizes that clusters leave them."""
        trials = cast(LevelTrials, list_level_trials(metric, self.clusters))
        if method == "simultaneous":
            reach = self._student_reach(self.settings.level ** (1.0 / float(trials.levels)))
            bounds = worst_of_clusters(trials, reach, metric.direction)
        else:
            bounds = mover_of_clusters(trials, self._student_reach())
        return self._build_estimate(metric, bounds, method, 0, note)

    # --- of resamples

    def _bca_interval(self, metric: Metric, place: int, note: str | None) -> Estimate:
        values, undefined, reason = self._select_defined(metric, self.bootstrap[place])
        value = self.values[metric.expression][place].item()
        if reason:
            return make_point_estimate(value, reason, undefined)
        acceleration = estimate_acceleration(metric, self._get_source(place))
        bounds = bca_interval(values, value, acceleration, self.settings.level)
        low, high = percentile_interval(values, self.settings.level)
        if bounds is None or (bounds[1] - bounds[0] < FLAT_WIDTH < high - low):
            bounds = min(low, value), max(high, value)
            why = join_notes(note, "BCa is undefined here")
            return self._build_estimate(metric, bounds, "percentile", place, why, undefined)
        return self._build_estimate(metric, bounds, "bca", place, note, undefined)

    def _quantile_interval(
        self, metric: Metric, method: IntervalMethod, place: int, note: str | None
    ) -> Estimate:
        """Return the interval between two quantiles of resamples, or of the posterior."""
        resampled = self.bootstrap if method == "percentile" else self.posterior
        values, undefined, reason = self._select_defined(metric, resampled[place])
        if reason:
            value = self.values[metric.expression][place].item()
            return make_point_estimate(value, reason, undefined)
        bounds = percentile_interval(values, self.settings.level)
        return self._build_estimate(metric, bounds, method, place, note, undefined)

    def _select_defined(
        self, metric: Metric, resampled: dict[str, Array]
    ) -> tuple[Array, float, str | None]:
        """Return the values of resamples, the share without one, and whether too few have one."""
        values = np.asarray(resampled[metric.expression])
        defined = values[~np.isnan(values)]
        undefined = 1.0 - len(defined) / len(values)
        few = len(defined) < FEWEST_DEFINED_SHARE * len(values)
        return defined, undefined, "it is undefined in most of the resamples" if few else None

    # --- within the range of a metric

    def _build_estimate(
        self,
        metric: Metric,
        bounds: tuple[Any, Any],
        method: IntervalMethod,
        place: int,
        note: str | None,
        undefined: float = 0.0,
    ) -> Estimate:
        value = self.values[metric.expression][place]
        low, high = self._limit(metric, *bounds, value, method)
        return Estimate(value.item(), float(low), float(high), method, undefined, note)

    def _limit(
        self, metric: Metric, low: Any, high: Any, value: Any, method: IntervalMethod
    ) -> tuple[Array, Array]:
        """Return bounds within those of the metric, that enclose the value where they should."""
        lowest, highest = compute_attainable_range(metric, self.matrices)
        low, high = np.clip(low, lowest, highest), np.clip(high, lowest, highest)
        if method in ENCLOSING_METHODS:
            low, high = np.minimum(low, value), np.maximum(high, value)
        return low, high

    # --- values that no resample can move ------------------------------------------------------

    def _find_degenerate(self, plan: _Plan) -> Array:
        """Return the matrices on which an interval has no width."""
        if plan.method in NONDEGENERATE_METHODS or plan.method == self.settings.method:
            return plan.where[:0]
        return self._find_flat(plan)

    def _find_flat(self, plan: _Plan) -> Array:
        found = [self.found[plan.metric.expression][place] for place in plan.where]
        bounds = np.array([(x.low, x.high) for x in found])
        return plan.where[_are_close(bounds[:, 0], bounds[:, 1])]

    def _widen_degenerate(self, plans: list[_Plan]) -> None:
        """Widen the intervals of metrics that neither resamples nor derivatives can move."""
        wider = []
        for plan in plans:
            where = self._find_degenerate(plan)
            if not (self.clustered or plan.metric.share):  # one item varies nowhere
                self._withhold(plan, where[self.effective_sizes[where] <= 1], ONE_ITEM_NOTE)
                where = where[self.effective_sizes[where] > 1]
            if len(where):
                notes: list[str | None] = [None] * len(plan.notes)
                for place in where:
                    notes[place] = self._explain_no_width(plan.metric, place)
                method: IntervalMethod = "wilson" if plan.metric.share else "dirichlet"
                wider.append(_Plan(plan.metric, where, method, notes))
        self._sample_posterior([plan for plan in wider if plan.method == "dirichlet"], None)
        for plan in wider:
            self._fill_intervals(plan)
            self._withhold(plan, self._find_flat(plan), NO_WIDTH_NOTE)

    def _withhold(self, plan: _Plan, where: Array, note: str) -> None:
        """Give a metric of these matrices no interval, for a reason."""
        found = self.found[plan.metric.expression]
        for place in where:
            found[place] = make_point_estimate(found[place].value, note)

    def _explain_no_width(self, metric: Metric, place: int) -> str | None:
        resampled = metric.expression in self.bootstrap.get(place, {})
        why = NO_VARIATION_NOTE if resampled else NO_ERROR_NOTE
        doubts = describe_cluster_doubts(metric, self.clusters) if self.clustered else None
        return join_notes(why, doubts)


def _are_close(first: Any, second: Any) -> Array:
    """Tell which numbers are equal but for rounding, as `math.isclose` does; infinite are not."""
    first, second = np.asarray(first), np.asarray(second)
    largest = np.maximum(np.abs(first), np.abs(second))
    with np.errstate(invalid="ignore"):
        near = np.abs(first - second) <= np.maximum(1e-9 * largest, FLAT_WIDTH)
    return np.asarray(near & np.isfinite(largest))
