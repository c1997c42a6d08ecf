"""Judge: which metric captures all quality aspects, measured on the systems that one has."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NotApplicable
from ordinate.evaluate import Origin, chosen
from ordinate.evaluate.evaluation import DEFAULT_METRICS, Wanted
from ordinate.inference.draws import Tick
from ordinate.inference.result import nowhere
from ordinate.meta.coverage import coverage
from ordinate.meta.judged import NOWHERE, Judged, Judgement, Judging
from ordinate.meta.resampling import behind_best, limits, redraw
from ordinate.meta.robustness import (
    agreement,
    discriminative_power,
    mean_merits,
    robustness,
    stability,
)
from ordinate.meta.splitting import FEWEST_CASES, split
from ordinate.meta.unanimity import Unanimity, improvements, unanimous_improvement
from ordinate.metrics import Metric
from ordinate.summary import Confusion, Panel
from ordinate.summary.tabulate import DROP

__all__ = ["Judged", "Judgement", "Judging", "judge"]

Array = NDArray[Any]
REFERENCES = ("accuracy", "kendall_tau_a", "mutual_information")
COMPARED = ("cohen_kappa", "mse", "macro_mse", "pearson", "spearman", "cem_ord_flat")
JUDGED = tuple(dict.fromkeys((*DEFAULT_METRICS, *REFERENCES, *COMPARED)))
FEWEST_SYSTEMS = 3


def judge(
    panel: Panel,
    metrics: Wanted = None,
    references: Wanted = REFERENCES,
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

    Without groups the items are split at random into `cases` parts of equal size. A metric's value
    for a system is its mean over test cases. `references` are the metrics that together stand for
    quality; `alpha` is the level at which systems are told apart.

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
    against = _distinct(REFERENCES if references is None else references)
    if len(panel.systems) < FEWEST_SYSTEMS:
        count = len(panel.systems)
        raise BadOption(f"Judging metrics takes {FEWEST_SYSTEMS} systems or more, not {count}.")
    parted = panel if panel.groups is not None else split(panel, cases, seed)
    if len(parted.group_values) < FEWEST_CASES:
        count = len(parted.group_values)
        raise BadOption(f"Judging metrics takes {FEWEST_CASES} test cases or more, not {count}.")
    tables = [parted.by_group(system) for system in parted.systems]
    ideal = np.stack([_reference(metric, tables) for metric in against])
    judged, alike, unanimous = _judged(wanted, tables, ideal, how, tick)
    return Judgement(
        parted,
        judged,
        tuple(against),
        alike,
        unanimous,
        how,
        panel.groups is None,
        float(np.isnan(ideal).any(axis=0).mean()),
        origin or Origin(),
        tuple(irregular),
    )


def _distinct(metrics: Wanted) -> list[Metric]:
    found = list({metric.expression: metric for metric in chosen(metrics)}.values())
    for metric in found:
        if metric.summary is not Confusion:
            raise BadOption(f"{metric.name} is no metric of levels, and only those are judged.")
    return found


# --- values --------------------------------------------------------------------------------------


def merits_of(metric: Metric, tables: Sequence[Confusion]) -> Array:
    """Return values [S, T] of which the larger are better; nan where undefined."""
    values = np.stack([np.asarray(metric.merit(metric(table)), float) for table in tables])
    return np.where(np.isfinite(values), values, np.nan)


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
) -> tuple[tuple[Judged, ...], Array, Array]:
    """Return the metrics judged, their agreement [M, M], and the unanimous improvement [S, S]."""
    found, refused = {}, {}
    for index, metric in enumerate(metrics):
        try:
            found[index] = merits_of(metric, tables)
        except NotApplicable as reason:
            refused[index] = Judged(*_refusal(metric, str(reason)))
    if not found:
        reasons = "; ".join(f"{one.metric.expression}: {one.refused}" for one in refused.values())
        raise NotApplicable(f"None of the metrics can be taken. {reasons}.")
    merits, places = np.stack(list(found.values())), np.array(list(found))
    improved = improvements(ideal, how.unanimity)
    unanimous = unanimous_improvement(improved)
    taken = [metrics[index] for index in found]
    measured = dict(zip(found, _measured(taken, merits, improved, how, tick), strict=True))
    alike = np.full((len(metrics), len(metrics)), np.nan)
    alike[np.ix_(places, places)] = agreement(merits)
    everyone = measured | refused
    return tuple(everyone[index] for index in range(len(metrics))), alike, unanimous


def _measured(
    metrics: list[Metric], merits: Array, improved: Array, how: Judging, tick: Tick | None
) -> list[Judged]:
    covered = coverage(mean_merits(merits), unanimous_improvement(improved))
    robust = robustness(merits)
    drawn = redraw(merits, improved, how.drawn, tick=_within(tick, 0.0, 0.8))
    told = discriminative_power(merits, how.drawn, how.alpha, tick=_within(tick, 0.8, 0.9))
    stable = stability(merits, how.drawn, tick=_within(tick, 0.9, 1.0))
    columns = zip(
        metrics,
        limits(covered, drawn.coverage, how.level, NOWHERE["coverage"]),
        behind_best(covered, drawn.coverage, how.level),
        limits(robust, drawn.robustness, how.level, NOWHERE["robustness"]),
        told.tolist(),
        stable.tolist(),
        np.isnan(merits).mean(axis=(1, 2)).tolist(),
        strict=True,
    )
    return [Judged(*column) for column in columns]


def _refusal(metric: Metric, reason: str) -> tuple[Any, ...]:
    none = nowhere(math.nan, reason, 1.0)
    return metric, none, None, none, math.nan, math.nan, math.nan, reason


def _within(tick: Tick | None, start: float, end: float) -> Callable[[float], None] | None:
    """Return a tick for a part of the work."""
    return None if tick is None else lambda share: tick(start + share * (end - start))
