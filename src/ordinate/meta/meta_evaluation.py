"""Judge: which metric captures all quality aspects, measured on the systems that one has."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NotApplicable
from ordinate.inference import Estimate
from ordinate.inference.estimates import make_point_estimate
from ordinate.inference.resampling import ProgressCallback
from ordinate.meta.coverage import compute_coverage
from ordinate.meta.meta_result import (
    UNDEFINED_REASONS,
    MetaEvaluation,
    MetaEvaluationSettings,
    MetricEvaluation,
    rank_by_coverage,
)
from ordinate.meta.random_cases import FEWEST_CASES, split_into_cases
from ordinate.meta.robustness import (
    average_merits,
    compute_agreement,
    compute_discriminative_power,
    compute_robustness,
    compute_stability,
)
from ordinate.meta.system_resampling import (
    compare_with_best,
    estimate_intervals,
    resample_statistics,
)
from ordinate.meta.unanimity import Unanimity, compute_improvements, compute_unanimous_improvement
from ordinate.metrics import Metric
from ordinate.results import Origin, select_metrics
from ordinate.results.arguments import DEFAULT_METRICS, MetricSelection
from ordinate.summaries import ConfusionMatrix, Panel
from ordinate.summaries.tabulation import DROP_HINT

__all__ = ["MetaEvaluation", "MetaEvaluationSettings", "MetricEvaluation", "evaluate_metrics"]

Array = NDArray[Any]
AgreementMatrix = tuple[tuple[Estimate, ...], ...]
REFERENCE_METRICS = ("accuracy", "kendall_tau_a", "mutual_information")
COMPARED_METRICS = ("cohen_kappa", "mse", "macro_mse", "pearson", "spearman", "cem_ord_flat")
EVALUATED_METRICS = tuple(dict.fromkeys((*DEFAULT_METRICS, *REFERENCE_METRICS, *COMPARED_METRICS)))
FEWEST_SYSTEMS = 3
MOST_PAIRS = 1 << 30  # ordered, in all test cases: a byte for each
CONSTANT_REASON = "one of the two metrics is the same for all systems that both are defined for"


def evaluate_metrics(
    panel: Panel,
    metrics: MetricSelection = None,
    references: MetricSelection = REFERENCE_METRICS,
    *,
    cases: int = 10,
    seed: int = 0,
    level: float = 0.95,
    resamples: int = 1_000,
    alpha: float = 0.05,
    unanimity: Unanimity = "weak",
    origin: Origin | None = None,
    irregular: Sequence[Mapping[str, Any]] = (),
    tick: ProgressCallback | None = None,
) -> MetaEvaluation:
    """Judge metrics by the systems of a panel, whose groups are the test cases.

    Without groups, or with one only, the items are split at random into `cases` parts of equal
    size. A metric's value for a system is its mean over test cases. `references` are the metrics
    that together stand for quality; `alpha` is the level at which systems are significantly
    different.

    >>> levels = ["low", "mid", "high"] * 40
    >>> systems = {
    ...     f"s{k}": [x if i % 11 > k else "mid" for i, x in enumerate(levels)] for k in range(5)
    ... }
    >>> panel = Panel.of("low,mid,high", levels, systems)
    >>> evaluate_metrics(panel, "cem_ord,bias", resamples=100).best.metric.name
    'cem_ord'
    """
    how = MetaEvaluationSettings(level, resamples, seed, alpha, unanimity)
    wanted = _select_distinct(EVALUATED_METRICS if metrics is None else metrics)
    against = _select_distinct(REFERENCE_METRICS if references is None else references)
    whole = panel.groups is None or len(panel.group_values) < FEWEST_CASES
    check_pair_count(len(panel.systems), cases if whole else len(panel.group_values))
    parted = split_into_cases(panel, cases, seed) if whole else panel
    tables = _MatricesBySystem(parted)
    ideal = np.stack([_compute_reference(metric, tables) for metric in against])
    judged, alike, unanimous = _evaluate_all(wanted, tables, ideal, how, tick)
    return MetaEvaluation(
        panel=parted,
        evaluation=judged,
        references=tuple(against),
        agreement=alike,
        unanimous=unanimous,
        how=how,
        was_split=whole,
        only_case=str(panel.group_values[0]) if whole and panel.group_values else None,
        unanswered=float(np.isnan(ideal).any(axis=0).mean()),
        origin=origin or Origin(),
        irregular=tuple(irregular),
    )


def check_pair_count(systems: int, cases: int) -> None:
    """Refuse too few systems, and more pairs of them, in all test cases, than memory holds."""
    if systems < FEWEST_SYSTEMS:
        raise BadOption(f"Judging metrics takes {FEWEST_SYSTEMS} systems or more, not {systems}.")
    if systems**2 * cases > MOST_PAIRS:
        most = math.isqrt(MOST_PAIRS // cases)
        raise BadOption(
            f"{systems:,} systems have too many pairs to look at in {cases:,} test cases: at most "
            f"{most:,} systems. Leave some out, or take fewer test cases."
        )


class _MatricesBySystem:
    """The confusion matrices [T] of each system, counted when asked for: all need much memory."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel

    def __iter__(self) -> Iterator[ConfusionMatrix]:
        return (self.panel.count_by_group(system) for system in self.panel.systems)


def _select_distinct(metrics: MetricSelection) -> list[Metric]:
    found = list({metric.expression: metric for metric in select_metrics(metrics)}.values())
    for metric in found:
        if metric.summary is not ConfusionMatrix:
            raise BadOption(f"{metric.name} is no metric of levels, and only those are judged.")
    return found


# --- values --------------------------------------------------------------------------------------


def compute_merits(metric: Metric, tables: Iterable[ConfusionMatrix]) -> Array:
    """Return values [S, T] of which the larger are better; nan where undefined.

    Infinite ones stay: a system that is infinitely bad in a test case must not gain by it.
    """
    return np.stack([np.asarray(metric.merit(metric(table)), float) for table in tables])


def _compute_reference(metric: Metric, tables: Iterable[ConfusionMatrix]) -> Array:
    try:
        return compute_merits(metric, tables)
    except NotApplicable as reason:
        silent = any(table.has_unanswered for table in tables)
        way = f", or leave such items out with {DROP_HINT}" if silent else ""
        raise NotApplicable(
            f"The reference {metric.expression} cannot be taken: {reason}. "
            f"Name other references{way}."
        ) from None


def _evaluate_all(
    metrics: list[Metric],
    tables: Iterable[ConfusionMatrix],
    ideal: Array,
    how: MetaEvaluationSettings,
    tick: ProgressCallback | None,
) -> tuple[tuple[MetricEvaluation, ...], AgreementMatrix, Array]:
    """Return the metrics judged, their agreement, and the unanimous improvement [S, S]."""
    found, refused = {}, {}
    for index, metric in enumerate(metrics):
        try:
            found[index] = compute_merits(metric, tables)
        except NotApplicable as reason:
            refused[index] = _make_refusal(metric, str(reason))
    if not found:
        reasons = "; ".join(f"{one.metric.expression}: {one.refused}" for one in refused.values())
        raise NotApplicable(f"None of the metrics can be taken. {reasons}.")
    improved = compute_improvements(ideal, how.unanimity)
    taken = [metrics[index] for index in found]
    measured, alike = _evaluate_defined(taken, np.stack(list(found.values())), improved, how, tick)
    everyone = dict(zip(found, measured, strict=True)) | refused
    places = {index: place for place, index in enumerate(found)}
    table = tuple(
        tuple(
            _get_agreement(alike, places.get(one), places.get(other))
            for other in range(len(metrics))
        )
        for one in range(len(metrics))
    )
    judged = tuple(everyone[index] for index in range(len(metrics)))
    return judged, table, compute_unanimous_improvement(improved)


def _get_agreement(alike: AgreementMatrix, one: int | None, other: int | None) -> Estimate:
    if one is None or other is None:
        return make_point_estimate(math.nan, "one of the two metrics cannot be taken", 1.0)
    return alike[one][other]


def _evaluate_defined(
    metrics: list[Metric],
    merits: Array,
    improved: Array,
    how: MetaEvaluationSettings,
    tick: ProgressCallback | None,
) -> tuple[list[MetricEvaluation], AgreementMatrix]:
    """Return metrics that can be taken, judged, and their agreement."""
    means = average_merits(merits)
    drawn = resample_statistics(merits, improved, how.drawn, tick=_scale_progress(tick, 0.0, 0.8))
    told = compute_discriminative_power(
        merits, how.drawn, how.alpha, tick=_scale_progress(tick, 0.8, 0.9)
    )
    stable = compute_stability(merits, how.drawn, tick=_scale_progress(tick, 0.9, 1.0))
    values = compute_coverage(means, compute_unanimous_improvement(improved))
    covered = estimate_intervals(values, drawn.coverage, how.level, UNDEFINED_REASONS["coverage"])
    robust = estimate_intervals(
        compute_robustness(merits), drawn.robustness, how.level, UNDEFINED_REASONS["robustness"]
    )
    steady = estimate_intervals(stable, drawn.stability, how.level, UNDEFINED_REASONS["stability"])
    unranked = _explain_unranked(covered, ~np.isnan(means))
    best, *others = rank_by_coverage(covered, unranked)
    ranked = [place for place in others if unranked[place] is None]
    behind = compare_with_best(values, drawn.coverage, how.level, best, ranked)
    judged = [
        MetricEvaluation(
            metric=metric,
            coverage=covered[place],
            behind=behind.get(place),
            robustness=robust[place],
            discriminative_power=float(told[place]),
            stability=steady[place],
            undefined=float(np.isnan(merits[place]).mean()),
            infinite=float(np.isinf(merits[place]).mean()),
            unranked=unranked[place],
        )
        for place, metric in enumerate(metrics)
    ]
    agreeing = zip(compute_agreement(merits), drawn.agreement.swapaxes(0, 1), strict=True)
    return judged, tuple(
        tuple(estimate_intervals(*row, how.level, CONSTANT_REASON)) for row in agreeing
    )


def _explain_unranked(covered: Sequence[Estimate], known: Array) -> list[str | None]:
    """Say why metrics cannot be ranked: no limits, or undefined for systems that others know.

    Over fewer systems coverage is another question, and over two it is 1 or -1 by construction.
    """
    count, wanted = known.shape[1], known.any(axis=0)
    return [
        f"it is defined for {there.sum()} of {count} systems"
        if there.any() and (wanted & ~there).any()
        else one.note
        for one, there in zip(covered, known, strict=True)
    ]


def _make_refusal(metric: Metric, reason: str) -> MetricEvaluation:
    none = make_point_estimate(math.nan, reason, 1.0)
    return MetricEvaluation(
        metric=metric,
        coverage=none,
        behind=None,
        robustness=none,
        discriminative_power=math.nan,
        stability=none,
        undefined=math.nan,
        infinite=math.nan,
        unranked=reason,
        refused=reason,
    )


def _scale_progress(
    tick: ProgressCallback | None, start: float, end: float
) -> Callable[[float], None] | None:
    """Return a tick for a part of the work."""
    return None if tick is None else lambda share: tick(start + share * (end - start))
