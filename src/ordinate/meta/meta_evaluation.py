"""Judge: which metric captures all quality aspects, measured on the systems that one has."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NotApplicable
from ordinate.inference import Estimate
from ordinate.inference.estimates import nowhere
from ordinate.inference.resampling import Tick
from ordinate.meta.coverage import coverage
from ordinate.meta.meta_result import NOWHERE, Judged, Judgement, Judging, ranking
from ordinate.meta.random_cases import FEWEST_CASES, split
from ordinate.meta.robustness import (
    agreement,
    discriminative_power,
    mean_merits,
    robustness,
    stability,
)
from ordinate.meta.system_resampling import behind_best, limits, redraw
from ordinate.meta.unanimity import Unanimity, improvements, unanimous_improvement
from ordinate.metrics import Metric
from ordinate.results import Origin, chosen
from ordinate.results.evaluation import DEFAULT_METRICS, Wanted
from ordinate.summaries import Confusion, Panel
from ordinate.summaries.tabulation import DROP

__all__ = ["Judged", "Judgement", "Judging", "judge"]

Array = NDArray[Any]
Alike = tuple[tuple[Estimate, ...], ...]
REFERENCE_METRICS = ("accuracy", "kendall_tau_a", "mutual_information")
COMPARED = ("cohen_kappa", "mse", "macro_mse", "pearson", "spearman", "cem_ord_flat")
JUDGED = tuple(dict.fromkeys((*DEFAULT_METRICS, *REFERENCE_METRICS, *COMPARED)))
FEWEST_SYSTEMS = 3
MOST_PAIRS = 1 << 30  # ordered, in all test cases: a byte for each
CONSTANT = "one of the two metrics is the same for all systems that both are defined for"


def judge(
    panel: Panel,
    metrics: Wanted = None,
    references: Wanted = REFERENCE_METRICS,
    *,
    cases: int = 10,
    seed: int = 0,
    level: float = 0.95,
    draws: int = 1_000,
    alpha: float = 0.05,
    unanimity: Unanimity = "weak",
    origin: Origin | None = None,
    irregular: Sequence[Mapping[str, Any]] = (),
    tick: Tick | None = None,
) -> Judgement:
    """Judge metrics by the systems of a panel, whose groups are the test cases.

    Without groups, or with one only, the items are split at random into `cases` parts of equal
    size. A metric's value for a system is its mean over test cases. `references` are the metrics
    that together stand for quality; `alpha` is the level at which systems are told apart.

    >>> levels = ["low", "mid", "high"] * 40
    >>> systems = {
    ...     f"s{k}": [x if i % 11 > k else "mid" for i, x in enumerate(levels)] for k in range(5)
    ... }
    >>> panel = Panel.of("low,mid,high", levels, systems)
    >>> judge(panel, "cem_ord,bias", draws=100).best.metric.name
    'cem_ord'
    """
    how = Judging(level, draws, seed, alpha, unanimity)
    wanted = _distinct(JUDGED if metrics is None else metrics)
    against = _distinct(REFERENCE_METRICS if references is None else references)
    if len(panel.systems) < FEWEST_SYSTEMS:
        count = len(panel.systems)
        raise BadOption(f"Judging metrics takes {FEWEST_SYSTEMS} systems or more, not {count}.")
    whole = panel.groups is None or len(panel.group_values) < FEWEST_CASES
    _check_pairs(len(panel.systems), cases if whole else len(panel.group_values))
    parted = split(panel, cases, seed) if whole else panel
    tables = [parted.by_group(system) for system in parted.systems]
    ideal = np.stack([_reference(metric, tables) for metric in against])
    judged, alike, unanimous = _judged(wanted, tables, ideal, how, tick)
    return Judgement(
        panel=parted,
        judged=judged,
        references=tuple(against),
        agreement=alike,
        unanimous=unanimous,
        how=how,
        was_split=whole,
        only_case=str(panel.group_values[0]) if whole and panel.group_values else None,
        silent=float(np.isnan(ideal).any(axis=0).mean()),
        origin=origin or Origin(),
        irregular=tuple(irregular),
    )


def _check_pairs(systems: int, cases: int) -> None:
    """Refuse more pairs of systems than fit into memory, in all test cases at once."""
    if systems**2 * cases > MOST_PAIRS:
        most = math.isqrt(MOST_PAIRS // cases)
        raise BadOption(
            f"{systems:,} systems have too many pairs to look at in {cases:,} test cases: at most "
            f"{most:,} systems. Leave some out, or take fewer test cases."
        )


def _distinct(metrics: Wanted) -> list[Metric]:
    found = list({metric.expression: metric for metric in chosen(metrics)}.values())
    for metric in found:
        if metric.summary is not Confusion:
            raise BadOption(f"{metric.name} is no metric of levels, and only those are judged.")
    return found


# --- values --------------------------------------------------------------------------------------


def merits_of(metric: Metric, tables: Sequence[Confusion]) -> Array:
    """Return values [S, T] of which the larger are better; nan where undefined.

    Infinite ones stay: a system that is infinitely bad in a test case must not gain by it.
    """
    return np.stack([np.asarray(metric.merit(metric(table)), float) for table in tables])


def _reference(metric: Metric, tables: Sequence[Confusion]) -> Array:
    try:
        return merits_of(metric, tables)
    except NotApplicable as reason:
        silent = any(table.has_unanswered for table in tables)
        way = f", or leave such items out with {DROP}" if silent else ""
        raise NotApplicable(
            f"The reference {metric.expression} cannot be taken: {reason}. "
            f"Name other references{way}."
        ) from None


def _judged(
    metrics: list[Metric],
    tables: Sequence[Confusion],
    ideal: Array,
    how: Judging,
    tick: Tick | None,
) -> tuple[tuple[Judged, ...], Alike, Array]:
    """Return the metrics judged, their agreement, and the unanimous improvement [S, S]."""
    found, refused = {}, {}
    for index, metric in enumerate(metrics):
        try:
            found[index] = merits_of(metric, tables)
        except NotApplicable as reason:
            refused[index] = _refusal(metric, str(reason))
    if not found:
        reasons = "; ".join(f"{one.metric.expression}: {one.refused}" for one in refused.values())
        raise NotApplicable(f"None of the metrics can be taken. {reasons}.")
    improved = improvements(ideal, how.unanimity)
    taken = [metrics[index] for index in found]
    measured, alike = _measured(taken, np.stack(list(found.values())), improved, how, tick)
    everyone = dict(zip(found, measured, strict=True)) | refused
    places = {index: place for place, index in enumerate(found)}
    table = tuple(
        tuple(_pair(alike, places.get(one), places.get(other)) for other in range(len(metrics)))
        for one in range(len(metrics))
    )
    judged = tuple(everyone[index] for index in range(len(metrics)))
    return judged, table, unanimous_improvement(improved)


def _pair(alike: Alike, one: int | None, other: int | None) -> Estimate:
    if one is None or other is None:
        return nowhere(math.nan, "one of the two metrics cannot be taken", 1.0)
    return alike[one][other]


def _measured(
    metrics: list[Metric], merits: Array, improved: Array, how: Judging, tick: Tick | None
) -> tuple[list[Judged], Alike]:
    """Return metrics that can be taken, judged, and their agreement."""
    means = mean_merits(merits)
    drawn = redraw(merits, improved, how.drawn, tick=_within(tick, 0.0, 0.8))
    told = discriminative_power(merits, how.drawn, how.alpha, tick=_within(tick, 0.8, 0.9))
    stable = stability(merits, how.drawn, tick=_within(tick, 0.9, 1.0))
    values = coverage(means, unanimous_improvement(improved))
    covered = limits(values, drawn.coverage, how.level, NOWHERE["coverage"])
    robust = limits(robustness(merits), drawn.robustness, how.level, NOWHERE["robustness"])
    steady = limits(stable, drawn.stability, how.level, NOWHERE["stability"])
    unranked = _unranked(covered, ~np.isnan(means))
    best, *others = ranking(covered, unranked)
    ranked = [place for place in others if unranked[place] is None]
    behind = behind_best(values, drawn.coverage, how.level, best, ranked)
    judged = [
        Judged(
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
    agreeing = zip(agreement(merits), drawn.agreement.swapaxes(0, 1), strict=True)
    return judged, tuple(tuple(limits(*row, how.level, CONSTANT)) for row in agreeing)


def _unranked(covered: Sequence[Estimate], known: Array) -> list[str | None]:
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


def _refusal(metric: Metric, reason: str) -> Judged:
    none = nowhere(math.nan, reason, 1.0)
    return Judged(
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


def _within(tick: Tick | None, start: float, end: float) -> Callable[[float], None] | None:
    """Return a tick for a part of the work."""
    return None if tick is None else lambda share: tick(start + share * (end - start))
