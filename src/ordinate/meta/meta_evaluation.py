"""Meta-evaluation: which metric captures all quality aspects, measured on given systems."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NotApplicable, word_advice
from ordinate.inference import Estimate
from ordinate.inference.estimates import make_point_estimate
from ordinate.inference.resampling import ProgressCallback, scale_progress
from ordinate.meta.coverage import compute_coverage
from ordinate.meta.meta_result import (
    FEW_SYSTEMS_REASON,
    FEWEST_SYSTEMS,
    UNDEFINED_REASONS,
    MetaEvaluation,
    MetaEvaluationSettings,
    MetricEvaluation,
    rank_by_coverage,
)
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
from ordinate.results.arguments import (
    DEFAULT_METRICS,
    MetricSelection,
    ScaleDeclaration,
    count_panel,
)
from ordinate.results.base import record_call
from ordinate.results.given_columns import refuse_idle_options
from ordinate.scale.label_maps import LabelMap
from ordinate.settings import Setting
from ordinate.summaries import ConfusionMatrix, Panel
from ordinate.summaries.tabulation import MissingPolicy

__all__ = ["MetaEvaluation", "MetaEvaluationSettings", "MetricEvaluation", "evaluate_metrics"]

Array = NDArray[Any]
AgreementMatrix = tuple[tuple[Estimate, ...], ...]
REFERENCE_METRICS = ("accuracy", "kendall_tau_a", "mutual_information")
COMPARED_METRICS = ("cohen_kappa", "mse", "macro_mse", "pearson", "spearman", "cem_ord_flat")
EVALUATED_METRICS = tuple(dict.fromkeys((*DEFAULT_METRICS, *REFERENCE_METRICS, *COMPARED_METRICS)))
FEWEST_CASES = 2
MOST_ITEMS = 1_000_000_000  # that can be drawn without replacement
MOST_PAIRS = 1 << 30  # ordered, in all test cases: a byte for each
CONSTANT_REASON = "one of the two metrics is the same for all systems that both are defined for"


def evaluate_metrics(
    data: Any = None,
    metrics: MetricSelection = None,
    references: MetricSelection = REFERENCE_METRICS,
    *,
    systems: Any = None,
    gold: Any = None,
    predicted: Any = None,
    scale: ScaleDeclaration = None,
    weights: Any = None,
    groups: Any = None,
    missing: MissingPolicy = "error",
    label_map: Mapping[str, str | None] | None = None,
    tidy_labels: bool = False,
    edges: Iterable[float] = (),
    cases: Annotated[
        int,
        Setting("parts of the items at random, where fewer than two test cases are named"),
    ] = 10,
    seed: int = 0,
    level: float = 0.95,
    resamples: int = 1_000,
    alpha: float = 0.05,
    unanimity: Unanimity = "weak",
    progress: ProgressCallback | None = None,
) -> MetaEvaluation:
    """Evaluate metrics by systems that predict the same items, whose groups are the test cases.

    `data` is a panel of systems, or what `compare` takes: columns, a table or files, with the same
    arguments. Without groups, or with one only, the items are split at random into `cases` parts of
    equal size. A metric's value for a system is its mean over test cases. `references` are the
    metrics that together stand for quality; `alpha` is the level at which systems are significantly
    different. Fewer than three systems have values, and no pairs that tell metrics apart.

    >>> levels = ["low", "mid", "high"] * 40
    >>> systems = {
    ...     f"s{k}": [x if i % 11 > k else "mid" for i, x in enumerate(levels)] for k in range(5)
    ... }
    >>> found = evaluate_metrics(
    ...     levels, "cem_ord,bias", systems=systems, scale="low,mid,high", resamples=100
    ... )
    >>> found.best.metric.name
    'cem_ord'
    """
    settings = MetaEvaluationSettings(level, resamples, seed, alpha, unanimity)
    chosen = None if metrics is None else _select_distinct(metrics)
    stand_in = _select_distinct(REFERENCE_METRICS if references is None else references)
    origin, panel = None, data
    if isinstance(data, Panel):
        named = {"systems": systems, "gold": gold, "weights": weights, "groups": groups}
        refuse_idle_options("a panel has its own", scale=scale, **named)
    else:
        known = cases if groups is None else FEWEST_CASES
        panel, origin = count_panel(
            data,
            systems,
            gold=gold,
            predicted=predicted,
            scale=scale,
            weights=weights,
            groups=groups,
            missing=missing,
            label_map=LabelMap(label_map, tidy=tidy_labels, edges=edges),
            check_count=lambda count: check_pair_count(count, known),
        )
    return evaluate_panel(panel, chosen, stand_in, settings, cases, origin, progress=progress)


@record_call
def evaluate_panel(
    panel: Panel,
    metrics: Sequence[Metric] | None,
    references: Sequence[Metric],
    settings: MetaEvaluationSettings,
    cases: int,
    origin: Origin | None = None,
    *,
    progress: ProgressCallback | None = None,
) -> MetaEvaluation:
    """Evaluate metrics by the systems of a panel, split at random where it has no test cases."""
    evaluated = _select_distinct(EVALUATED_METRICS) if metrics is None else list(metrics)
    at_random = panel.groups is None or len(panel.group_values) < FEWEST_CASES
    check_pair_count(len(panel.systems), cases if at_random else len(panel.group_values))
    by_case = split_into_cases(panel, cases, settings.seed) if at_random else panel
    matrices = _MatricesBySystem(by_case)
    reference_merits = None
    if len(panel.systems) >= FEWEST_SYSTEMS:
        reference_merits = np.stack([_compute_reference(m, matrices) for m in references])
    evaluations, agreement, improvement = _evaluate_all(
        evaluated, matrices, reference_merits, settings, progress
    )
    undefined = 0.0
    if reference_merits is not None:
        undefined = float(np.isnan(reference_merits).any(axis=0).mean())
    return MetaEvaluation(
        panel=by_case,
        metrics=evaluations,
        references=tuple(references),
        agreement=agreement,
        unanimous_improvement=improvement,
        settings=settings,
        cases_at_random=at_random,
        only_case=str(panel.group_values[0]) if at_random and panel.group_values else None,
        undefined_references=undefined,
        origin=origin or Origin(),
    )


def check_pair_count(systems: int, cases: int) -> None:
    """Refuse no systems, and more pairs of them, in all test cases, than memory holds."""
    if systems < 1:
        raise BadOption("A meta-evaluation takes one system or more.")
    if systems**2 * cases > MOST_PAIRS:
        most = math.isqrt(MOST_PAIRS // cases)
        raise BadOption(
            f"{systems:,} systems have too many pairs to look at in {cases:,} test cases: at most "
            f"{most:,} systems. Leave some out, or take fewer test cases."
        )


class _MatricesBySystem:
    """The confusion matrices [T] of each system, counted one after the other to save memory."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel

    def __iter__(self) -> Iterator[ConfusionMatrix]:
        return (self.panel.count_by_group(system) for system in self.panel.systems)


def _select_distinct(metrics: MetricSelection) -> list[Metric]:
    return list({metric.expression: metric for metric in select_metrics(metrics)}.values())


# --- values --------------------------------------------------------------------------------------


def compute_values(metric: Metric, matrices: Iterable[ConfusionMatrix]) -> Array:
    """Return the values [S, T] of each system and test case; nan where undefined."""
    return np.stack([np.asarray(metric(matrix), float) for matrix in matrices])


def compute_merits(metric: Metric, matrices: Iterable[ConfusionMatrix]) -> Array:
    """Return values [S, T] of which the larger are better; nan where undefined.

    Infinite ones stay: a system that is infinitely bad in a test case must not gain by it.
    """
    return np.asarray(metric.merit(compute_values(metric, matrices)))


def _compute_reference(metric: Metric, matrices: Iterable[ConfusionMatrix]) -> Array:
    try:
        return compute_merits(metric, matrices)
    except NotApplicable as reason:
        unanswered = any(matrix.has_unanswered for matrix in matrices)
        way = word_advice(", or leave such items out with {missing}", missing="drop")
        raise NotApplicable(
            f"The reference {metric.expression} cannot be computed: {reason}. "
            f"Name other references{way if unanswered else ''}."
        ) from None


def _evaluate_all(
    metrics: list[Metric],
    matrices: Iterable[ConfusionMatrix],
    reference_merits: Array | None,
    settings: MetaEvaluationSettings,
    progress: ProgressCallback | None,
) -> tuple[tuple[MetricEvaluation, ...], AgreementMatrix, Array]:
    """Return the evaluations, their agreement, and the unanimous improvement [S, S].

    Without merits of references there are too few systems to compare metrics by their pairs.
    """
    values, refusals = {}, {}
    for index, metric in enumerate(metrics):
        try:
            values[index] = compute_values(metric, matrices)
        except NotApplicable as reason:
            refusals[index] = _make_unranked(metric, str(reason), refusal=str(reason))
    if not values:
        reasons = "; ".join(f"{one.metric.expression}: {one.refusal}" for one in refusals.values())
        raise NotApplicable(f"None of the metrics can be computed. {reasons}.")
    computed = {index: metrics[index] for index in values}
    if reference_merits is None:
        systems = len(next(iter(values.values())))
        defined = [_make_unranked(metric, FEW_SYSTEMS_REASON) for metric in computed.values()]
        agreement, improvement = None, np.zeros((systems, systems))
    else:
        improvements = compute_improvements(reference_merits, settings.unanimity)
        merits = np.stack([metric.merit(values[index]) for index, metric in computed.items()])
        defined, agreement = _evaluate_defined(
            list(computed.values()), merits, improvements, settings, progress
        )
        improvement = compute_unanimous_improvement(improvements)
    by_index = refusals | {
        index: _add_values(one, values[index]) for index, one in zip(values, defined, strict=True)
    }
    return (
        tuple(by_index[index] for index in range(len(metrics))),
        _complete_agreement(agreement, list(values), len(metrics)),
        improvement,
    )


def _add_values(evaluation: MetricEvaluation, values: Array) -> MetricEvaluation:
    """Return the same with the values [S, T] of systems and test cases."""
    return replace(
        evaluation,
        values=values,
        undefined_share=float(np.isnan(values).mean()),
        infinite_share=float(np.isinf(values).mean()),
    )


def _complete_agreement(
    agreement: AgreementMatrix | None, computed: list[int], count: int
) -> AgreementMatrix:
    """Return the agreement of all metrics, also of those that could not be computed."""
    places = {index: place for place, index in enumerate(computed)}

    def get(first: int, second: int) -> Estimate:
        if first not in places or second not in places:
            return make_point_estimate(math.nan, "one of the two metrics cannot be computed", 1.0)
        if agreement is None:
            return make_point_estimate(math.nan, FEW_SYSTEMS_REASON, 1.0)
        return agreement[places[first]][places[second]]

    return tuple(tuple(get(one, other) for other in range(count)) for one in range(count))


def _evaluate_defined(
    metrics: list[Metric],
    merits: Array,
    improvements: Array,
    settings: MetaEvaluationSettings,
    progress: ProgressCallback | None,
) -> tuple[list[MetricEvaluation], AgreementMatrix]:
    """Return the evaluations of metrics that can be computed, and their agreement."""
    means = average_merits(merits)
    resampled = resample_statistics(
        merits, improvements, settings.resampling, progress=scale_progress(progress, 0.0, 0.8)
    )
    power = compute_discriminative_power(
        merits, settings.resampling, settings.alpha, progress=scale_progress(progress, 0.8, 0.9)
    )
    stability_values = compute_stability(
        merits, settings.resampling, progress=scale_progress(progress, 0.9, 1.0)
    )
    coverage_values = compute_coverage(means, compute_unanimous_improvement(improvements))
    coverage = estimate_intervals(
        coverage_values, resampled.coverage, settings.level, UNDEFINED_REASONS["coverage"]
    )
    robustness = estimate_intervals(
        compute_robustness(merits),
        resampled.robustness,
        settings.level,
        UNDEFINED_REASONS["robustness"],
    )
    stability = estimate_intervals(
        stability_values, resampled.stability, settings.level, UNDEFINED_REASONS["stability"]
    )
    unranked = _explain_unranked(coverage, ~np.isnan(means))
    best, *others = rank_by_coverage(coverage, unranked)
    ranked = [place for place in others if unranked[place] is None]
    behind = compare_with_best(coverage_values, resampled.coverage, settings.level, best, ranked)
    evaluations = [
        MetricEvaluation(
            metric=metric,
            coverage=coverage[place],
            behind_best=behind.get(place),
            robustness=robustness[place],
            discriminative_power=float(power[place]),
            stability=stability[place],
            unranked_reason=unranked[place],
        )
        for place, metric in enumerate(metrics)
    ]
    rows = zip(compute_agreement(merits), resampled.agreement.swapaxes(0, 1), strict=True)
    return evaluations, tuple(
        tuple(estimate_intervals(*row, settings.level, CONSTANT_REASON)) for row in rows
    )


def _explain_unranked(coverage: Sequence[Estimate], known: Array) -> list[str | None]:
    """Say why metrics cannot be ranked: no interval, or undefined for some systems.

    Over fewer systems coverage is another question, and over two it is 1 or -1 by construction.
    """
    count, known_to_any = known.shape[1], known.any(axis=0)
    return [
        f"it is defined for {defined.sum()} of {count} systems"
        if defined.any() and (known_to_any & ~defined).any()
        else estimate.note
        for estimate, defined in zip(coverage, known, strict=True)
    ]


def _make_unranked(metric: Metric, reason: str, refusal: str | None = None) -> MetricEvaluation:
    """Return a metric about which pairs of systems say nothing, for a reason."""
    none = make_point_estimate(math.nan, reason, 1.0)
    return MetricEvaluation(
        metric=metric,
        coverage=none,
        behind_best=None,
        robustness=none,
        discriminative_power=math.nan,
        stability=none,
        unranked_reason=reason,
        refusal=refusal,
    )


# --- test cases at random ------------------------------------------------------------------------


def split_into_cases(panel: Panel, cases: int, seed: int) -> Panel:
    """Return the panel with its items in so many groups at random, of equal size up to one item.

    Each item is in one group. Rows of equal items are shared out by how many go to each group.
    """
    if not panel.has_integer_weights:
        raise NotApplicable(
            "Items with weights that are no integer counts cannot be split at random into test "
            "cases. Name the column of the test cases, or leave the weights out."
        )
    counts = panel.weights.astype(np.int64)
    total = int(counts.sum())
    is_integer = isinstance(cases, Integral) and not isinstance(cases, bool)
    if not (is_integer and FEWEST_CASES <= cases <= total):
        most = f"{FEWEST_CASES} to {total:,} (the items)"
        raise BadOption(f"The items are split into {most} test cases, not {cases!r}.")
    if total >= MOST_ITEMS:
        raise NotApplicable(f"{total:,} items are too many to be split. Name the test cases.")
    stream = np.random.SeedSequence(seed, spawn_key=(cases,))  # none of those that resample
    case_sizes = draw_case_sizes(counts, cases, np.random.default_rng(stream))
    group, row = np.nonzero(case_sizes)
    items = case_sizes[group, row]
    weights = items.astype(float)
    return replace(
        panel,
        rows=panel.rows[row],
        items=items,
        weights=weights,
        squares=weights.copy(),
        groups=group,
        group_values=tuple(range(1, cases + 1)),
    )


def draw_case_sizes(counts: Array, cases: int, rng: np.random.Generator) -> Array:
    """Return how many items of each row [cases, U] go to each group: drawn without replacement."""
    sizes = np.empty((cases, len(counts)), np.int64)
    left = counts.copy()
    for index in range(cases):
        size = int(left.sum()) // (cases - index)
        sizes[index] = rng.multivariate_hypergeometric(left, size, method="marginals")
        left -= sizes[index]
    return sizes
