"""Leaderboards: one for each metric, from joint resamples of all systems."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference import Estimate, estimate_metrics, estimate_metrics_of_each
from ordinate.inference.randomization import (
    choose_swap_count,
    randomize_differences,
)
from ordinate.inference.resampling import ProgressCallback, Resampling
from ordinate.inference.system_differences import (
    choose_resampling,
    count_differing_units,
    resample_jointly,
)
from ordinate.metrics import Metric
from ordinate.render.estimates import format_percent
from ordinate.render.tables import to_plain
from ordinate.results.base import Record
from ordinate.results.baselines import BaselinePredictors, Baselines
from ordinate.results.comparison_settings import ComparisonSettings
from ordinate.results.joint_comparison import (
    MOST_SWAPPED_PAIRS,
    ExactTests,
    JointComparison,
    PairDifference,
    VerdictTest,
    name_systems,
)
from ordinate.summaries import ConfusionMatrix, Panel

Array = NDArray[Any]
FEWEST_DEFINED_RESAMPLES = 100  # resamples in which all systems have a value
MOST_DIFFERENCES = 1 << 25  # randomised differences that are kept at a time


@dataclass(frozen=True)
class Standing:
    """One system on one metric: its value and its rank, each with an interval.

    `rank_shares` are how often it had each rank when the items were resampled. Systems that share a
    letter of `compact_letter_display` are not significantly different.
    """

    system: str
    estimate: Estimate
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    rank_shares: tuple[float, ...] = ()
    compact_letter_display: str | None = None

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        shares = {str(k + 1): share for k, share in enumerate(self.rank_shares) if share > 0}
        undefined = self.estimate.note if math.isnan(self.estimate.value) else None
        return self.estimate.to_dict() | {
            "undefined": undefined,
            "rank": self.rank,
            "rank_low": self.rank_low,
            "rank_high": self.rank_high,
            "rank_frequencies": shares,
            "compact_letter_display": self.compact_letter_display,
        }


@dataclass(frozen=True)
class Leaderboard:
    """The leaderboard of one metric: systems best first, then those without a value."""

    metric: Metric
    standings: tuple[Standing, ...]
    pairs: tuple[PairDifference, ...]
    baselines: Baselines | None  # None where they are not of the same items
    conclusion: str
    resampling: str  # how the values behind intervals of differences and P(rank 1) were found
    notes: tuple[str, ...] = ()
    test: VerdictTest | None = None

    def get_standing(self, system: str) -> Standing:
        """Return the standing of a system."""
        return next(x for x in self.standings if x.system == system)

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        return {
            "direction": self.metric.direction,
            "conclusion": self.conclusion,
            "notes": list(self.notes),
            "test": to_plain(self.test if self.pairs else None),
            "systems": {standing.system: standing.to_dict() for standing in self.standings},
            "pairs": to_plain(self.pairs),
            "baselines": to_plain(self.baselines),
        }


# --- boards --------------------------------------------------------------------------------------


class LeaderboardBuilder:
    """Everything that the leaderboards of all metrics share: tables, intervals, joint resamples.

    `tested` are exact tests of pairs, by metric: verdicts never contradict them.
    """

    def __init__(
        self,
        panel: Panel,
        metrics: list[Metric],
        settings: ComparisonSettings,
        progress: ProgressCallback | None,
        tested: ExactTests | None = None,
    ) -> None:
        self.panel, self.metrics, self.settings = panel, metrics, settings
        self.tested = tested or {}
        self._measure_systems(_make_partial_progress(progress, 0.0, 0.6))
        self.progress = _make_partial_progress(progress, 0.6, 1.0)

    def _measure_systems(self, progress: ProgressCallback | None) -> None:
        """Find the value of each metric for each system, and what resamples make of it."""
        self.estimates = self._estimate_all(_make_partial_progress(progress, 0.0, 0.5))
        resamples = Resampling(self.settings.resamples, self.settings.seed)
        self.resampled = resample_jointly(
            self.panel, self.metrics, resamples, _make_partial_progress(progress, 0.5, 1.0)
        )

    def _estimate_all(self, progress: ProgressCallback | None) -> list[dict[str, Estimate]]:
        if self.panel.groups is None:
            matrices = [self.panel.confusion_matrix(system) for system in self.panel.systems]
            batch = ConfusionMatrix.stack(matrices)
            return estimate_metrics_of_each(self.metrics, batch, self.settings.intervals, progress)
        estimates = []
        for index, system in enumerate(self.panel.systems):
            clusters = self.panel.count_by_group(system)
            estimates.append(estimate_metrics(self.metrics, clusters, self.settings.intervals))
            if progress is not None:
                progress((index + 1) / len(self.panel.systems))
        return estimates

    def all(self) -> dict[str, Leaderboard]:
        """Return the leaderboard of each metric."""
        boards = {}
        for index, metrics in enumerate(parts := self._split_metrics()):
            self.part_progress = _make_partial_progress(
                self.progress, index / len(parts), (index + 1) / len(parts)
            )
            joint = {metric.expression: self._compare_jointly(metric) for metric in metrics}
            self._exchange_predictions([each for each in joint.values() if each is not None])
            for metric in metrics:
                boards[metric.expression] = self._build_leaderboard(
                    metric, joint[metric.expression]
                )
            if self.progress is not None:
                self.progress((index + 1) / len(parts))
        return boards

    def _split_metrics(self) -> list[list[Metric]]:
        """Return as many metrics at a time as their randomised differences fit into memory."""
        count = len(self.panel.systems)
        pairs = min(count * (count - 1) // 2, MOST_SWAPPED_PAIRS)
        step = max(1, MOST_DIFFERENCES // max(1, choose_swap_count(count) * pairs))
        return [self.metrics[start : start + step] for start in range(0, len(self.metrics), step)]

    def _compare_jointly(self, metric: Metric) -> JointComparison | None:
        """Return the systems that have a value, compared; None where nothing can be compared."""
        values, ranked = self._list_values(metric), self._find_ranked(metric)
        resampled = self.resampled[metric.expression][:, ranked]
        defined = np.asarray(~np.isnan(resampled).any(axis=1))
        if self._is_one_cluster or not len(ranked) or defined.sum() < FEWEST_DEFINED_RESAMPLES:
            return None
        return JointComparison(
            metric,
            [self.panel.systems[k] for k in ranked],
            ranked,
            values[ranked],
            resampled[defined],
            self._count_differing(metric)[np.ix_(ranked, ranked)],
            self.settings,
            unit=self.unit,
            resampling=self._choose_resampling(metric),
        )

    def _list_values(self, metric: Metric) -> Array:
        return np.array([by_metric[metric.expression].value for by_metric in self.estimates])

    def _find_ranked(self, metric: Metric) -> Array:
        """Return the places of the systems that have a value, and some in resamples."""
        drawn = ~np.isnan(self.resampled[metric.expression]).all(axis=0)
        return np.flatnonzero(~np.isnan(self._list_values(metric)) & drawn)

    def _exchange_predictions(self, compared: list[JointComparison]) -> None:
        """Test the pairs of each metric by swaps, unless weights are no counts of items."""
        if self.panel.groups is None and not self.panel.has_integer_weights:
            for joint in compared:
                joint.decide(self.tested)
            return
        swapped = randomize_differences(
            self.panel,
            [joint.metric for joint in compared],
            [joint.locate_swapped_pairs() for joint in compared],
            Resampling(choose_swap_count(len(self.panel.systems)), self.settings.seed),
            self.part_progress,
        )
        for joint, differences in zip(compared, swapped, strict=True):
            joint.decide(self.tested, differences)

    @property
    def _is_one_cluster(self) -> bool:
        return self.panel.groups is not None and len(self.panel.group_values) < 2

    @cached_property
    def _differing(self) -> Array:
        return count_differing_units(self.panel)

    def _count_differing(self, metric: Metric) -> Array:
        """Return the number of units in which two systems differ [S, S], whatever the metric."""
        del metric
        return self._differing

    def _choose_resampling(self, metric: Metric) -> str:
        return choose_resampling(self.panel, metric)

    @cached_property
    def _baseline_predictors(self) -> BaselinePredictors:
        first = self.panel.confusion_matrix(self.panel.systems[0])
        return BaselinePredictors(first.with_cells(np.diag(first.gold)))

    def _measure_baselines(self, metric: Metric) -> Baselines | None:
        """Return what constants and chance reach."""
        return self._baseline_predictors.measure(metric)[0]

    @property
    def unit(self) -> str:
        """What is swapped whole."""
        return "items" if self.panel.groups is None else "clusters"

    def _build_leaderboard(self, metric: Metric, joint: JointComparison | None) -> Leaderboard:
        name = metric.expression
        standings = [
            Standing(system, by_metric[name])
            for system, by_metric in zip(self.panel.systems, self.estimates, strict=True)
        ]
        ranked = self._find_ranked(metric)
        notes = self._note_gaps(metric, ranked)
        pairs: list[PairDifference] = []
        undecidable: set[PairDifference] = set()
        if self._is_one_cluster:
            notes.append("All items are of one cluster: nothing can be compared.")
        if joint is not None:
            pairs = joint.build_pairs()
            undecidable = set(joint.select_undecidable(pairs))
            notes += joint.collect_notes(pairs)
            for index, standing in zip(joint.ranked, joint.list_standings(), strict=True):
                standings[index] = replace(standings[index], **standing)
        standings.sort(key=lambda x: math.inf if x.rank is None else x.rank)
        return Leaderboard(
            metric=metric,
            standings=tuple(standings),
            pairs=tuple(pairs),
            baselines=self._measure_baselines(metric),
            conclusion=write_conclusion(metric, standings, pairs, undecidable, self.unit),
            resampling=self._choose_resampling(metric),
            notes=tuple(notes),
            test=None if joint is None else joint.test,
        )

    def _note_gaps(self, metric: Metric, ranked: Array) -> list[str]:
        """Say which systems and how many resamples are left out."""
        valued = np.flatnonzero(~np.isnan(self._list_values(metric)))
        left_out = [self.panel.systems[k] for k in valued if k not in ranked]
        notes = []
        if left_out:
            grouped = self.panel.groups is not None
            where = "without one of the clusters" if grouped else "in any resample"
            notes.append(f"Not compared: {name_systems(left_out)}, with no value {where}.")
        undefined = np.isnan(self.resampled[metric.expression][:, ranked])
        return notes + _note_few_resamples(np.asarray(~undefined.any(axis=1)))


def _make_partial_progress(
    progress: ProgressCallback | None, start: float, end: float
) -> ProgressCallback | None:
    """Return a progress that fills a part of another."""
    return None if progress is None else lambda share: progress(start + (end - start) * share)


def _note_few_resamples(defined: Array) -> list[str]:
    lost = 1.0 - float(defined.mean())
    if not lost:
        return []
    note = f"In {format_percent(lost)} of the resamples a system has no value; they are left out."
    return (
        [note]
        if defined.sum() >= FEWEST_DEFINED_RESAMPLES
        else [note + " Too few are left to compare."]
    )


# --- in words ------------------------------------------------------------------------------------


def write_conclusion(
    metric: Metric,
    standings: list[Standing],
    pairs: list[PairDifference],
    undecidable: set[PairDifference],
    unit: str,
) -> str:
    """Say in a sentence or two who leads, whom it beats, and who may be as good.

    `undecidable` are the pairs that differ in too few units for a verdict.
    """
    ranked = [standing for standing in standings if standing.rank is not None]
    if len(ranked) < 2:
        return f"On {metric.expression} there is nothing to compare: too few systems have a value."
    leader = ranked[0]
    against = {
        pair.second if pair.first == leader.system else pair.first: pair
        for pair in pairs
        if leader.system in (pair.first, pair.second)
    }
    same = [s for s, pair in against.items() if pair.verdict == "identical"]
    beaten = [s for s, pair in against.items() if pair.verdict in {"better", "worse"}]
    few = [s for s, pair in against.items() if pair in undecidable]
    inconclusive = [
        s for s, pair in against.items() if pair.verdict == "inconclusive" and s not in few
    ]
    parts = [state_leader(metric, leader)]
    if beaten:
        parts.append(f"It is significantly better than {name_systems(beaten)}.")
    if inconclusive:
        parts.append(f"It is not significantly different from {name_systems(inconclusive)}.")
    if few:
        parts.append(f"It differs from {name_systems(few)} in too few {unit} for a verdict.")
    near = [s for s, pair in against.items() if _is_non_inferior(pair, s)]
    if near:
        parts.append(f"By the margin, {name_systems(near)} cannot be worse than it.")
    if same:
        parts.append(f"This metric sees no difference from {name_systems(same)}.")
    return " ".join(parts)


def state_leader(metric: Metric, leader: Standing) -> str:
    """Say who leads, with which value."""
    found = leader.estimate
    interval = "" if math.isnan(found.low) else f" ({found.low:.3f} to {found.high:.3f})"
    return f"{leader.system} leads on {metric.expression} with {found.value:.3f}{interval}."


def _is_non_inferior(pair: PairDifference, system: str) -> bool:
    """Tell whether a system is no worse than the other one of the pair, but for the margin."""
    side = "first" if pair.first == system else "second"
    return pair.margin_verdict in {"equivalent", f"{side} non-inferior"}
