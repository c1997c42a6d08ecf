"""Leaderboards: one for each metric, from joint resamples of all systems."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.inference import Estimate, estimate_metrics, estimate_metrics_of_each
from ordinate.inference.randomization import (
    choose_swap_count,
    randomize_differences,
)
from ordinate.inference.resampling import ProgressCallback, Resampling, scale_progress
from ordinate.inference.system_differences import (
    choose_resampling,
    count_differing_units,
    resample_jointly,
)
from ordinate.metrics import Metric
from ordinate.render.estimates import format_percent, format_with_unit
from ordinate.render.tables import (
    ESTIMATE,
    NAME,
    P_VALUE,
    UNIT_ESTIMATE,
    Column,
    Kind,
    Table,
    to_plain,
)
from ordinate.results.arguments import MetricSelection, select_metrics
from ordinate.results.base import BETTER_VALUES, Record
from ordinate.results.comparison_settings import ComparisonSettings
from ordinate.results.joint_comparison import (
    MOST_SWAPPED_PAIRS,
    ExactTests,
    JointComparison,
    PairDifference,
    VerdictTest,
    name_systems,
)
from ordinate.results.metric_scores import BaselinePredictors, Baselines
from ordinate.summaries import ConfusionMatrix, Panel

Array = NDArray[Any]
FEWEST_DEFINED_RESAMPLES = 100  # resamples in which all systems have a value
MOST_DIFFERENCES = 1 << 25  # randomised differences that are kept at a time
MOST_PAIRS = 30  # in one grid; JSON has all
TOP_SHARE = Kind(lambda share: f"{100 * share:.1f} %")
RANK = Kind(str, words=True)


@dataclass(frozen=True)
class Standing:
    """One system on one metric: its value and its rank, each with an interval.

    `rank_shares` are how often it had each rank when the items were resampled. Systems that share a
    letter of `compact_letter_display` are not significantly different.
    """

    metric: str
    system: str
    estimate: Estimate
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    rank_shares: tuple[float, ...] = ()
    compact_letter_display: str | None = None

    @property
    def rank_interval(self) -> str | None:
        """The ranks that the system may have."""
        return None if self.rank_low is None else f"{self.rank_low} to {self.rank_high}"

    @property
    def top_share(self) -> float | None:
        """How often the system was first."""
        return self.rank_shares[0] if self.rank_shares else None


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
    unit: str | None = None
    is_quantity: bool = False  # of the target: such values are shown with the digits that they need

    @property
    def ranked(self) -> list[Standing]:
        """The standings of the systems that have a rank."""
        return [standing for standing in self.standings if standing.rank is not None]

    @property
    def has_letters(self) -> bool:
        """Whether there is a compact letter display."""
        return self.standings[0].compact_letter_display is not None

    @property
    def heading(self) -> str:
        """The metric and its unit."""
        return self.metric.expression + (f" ({self.unit})" if self.unit else "")

    @property
    def better(self) -> str:
        """Which values are better."""
        return BETTER_VALUES[self.metric.direction]

    def get_standing(self, system: str) -> Standing:
        """Return the standing of a system."""
        return next(x for x in self.standings if x.system == system)

    def tabulate_standings(self, level: float | None = None, n: float | None = None) -> Table:
        """Return the table of the systems; `n` is the number of items, for programs."""
        columns = (
            Column("metric", shown=False),
            Column("rank", kind=RANK),
            Column("system", kind=NAME),
            Column("value", self.heading, self._estimates, get=lambda x: x.estimate),
            Column("rank_interval", "rank interval", stored=False),
            Column("top_share", "P(rank 1)", TOP_SHARE, stored=False),
            Column("rank_low", shown=False),
            Column("rank_high", shown=False),
            Column("compact_letter_display", "CLD", shown=self.has_letters),
        )
        title = f"Leaderboard by {self.metric.expression} ({self.better} is better)"
        common = {} if n is None else {"n": n}
        return Table("metrics", title, columns, self.standings, level, common=common)

    def tabulate_pairs(
        self, level: float | None = None, family: str = "", *, margin: bool = False
    ) -> Table:
        """Return the table of the pairs; people see the surest first."""
        columns = (
            Column("metric", shown=False),
            Column("first", kind=NAME),
            Column("second", kind=NAME),
            Column("difference", kind=self._estimates),
            Column("p", kind=P_VALUE, optional=True),
            Column("p_adjusted", "adjusted p", P_VALUE, optional=True),
            Column("verdict", "the first is"),
            Column("margin_verdict", "margin", shown=margin),
        )
        title = f"Differences in {self.heading} ({family})"
        return Table("pairs", title, columns, self.pairs, level, most=MOST_PAIRS)

    @property
    def _estimates(self) -> Kind:
        return UNIT_ESTIMATE if self.is_quantity else ESTIMATE

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        systems = self.tabulate_standings().nest("metric", "system")
        by_system = systems[self.metric.expression]
        for standing in self.standings:
            shares = {str(k): x for k, x in enumerate(standing.rank_shares, 1) if x > 0}
            found = standing.estimate
            by_system[standing.system] |= {
                "undefined_share": found.undefined_share,
                "undefined": found.note if math.isnan(found.value) else None,
                "rank_frequencies": shares,
            }
        pairs = self.tabulate_pairs().to_list()
        return {
            "direction": self.metric.direction,
            **({"unit": self.unit} if self.is_quantity else {}),
            "conclusion": self.conclusion,
            "notes": list(self.notes),
            "test": to_plain(self.test if self.pairs else None),
            "systems": by_system,
            "pairs": [{key: x for key, x in pair.items() if key != "metric"} for pair in pairs],
            "baselines": to_plain(self.baselines),
        }


# --- boards --------------------------------------------------------------------------------------


class LeaderboardBuilder(ABC):
    """What the leaderboards of all metrics share: values of the systems, and joint resamples.

    `estimates` are values by system and metric, `resampled` by metric those of other samples
    [B, S]; who knows the items says where both come from.
    """

    unit = "items"  # what is resampled, and swapped whole
    estimates: Sequence[dict[str, Estimate]]
    resampled: dict[str, Array]

    def __init__(
        self,
        systems: Sequence[str],
        metrics: Sequence[Metric],
        settings: ComparisonSettings,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.systems, self.metrics, self.settings = tuple(systems), metrics, settings
        self.resamples = Resampling(settings.resamples, settings.seed)
        self._measure_systems(scale_progress(progress, 0.0, 0.6))
        self.progress = scale_progress(progress, 0.6, 1.0)

    @abstractmethod
    def _measure_systems(self, progress: ProgressCallback | None) -> None:
        """Find the value of each metric for each system, and what resamples make of it."""

    @abstractmethod
    def _choose_resampling(self, metric: Metric) -> str:
        """Return how the values of other samples are found."""

    @abstractmethod
    def _decide(self, compared: Sequence[JointComparison]) -> None:
        """Find p-values and verdicts of the metrics that can be compared."""

    def _count_differing(self, metric: Metric) -> Array:
        """Return the number of units in which two systems differ [S, S]; of values, in all."""
        del metric
        return np.full((len(self.systems),) * 2, np.inf)

    def all(self) -> dict[str, Leaderboard]:
        """Return the leaderboard of each metric."""
        boards = {}
        for index, metrics in enumerate(parts := self._split_metrics()):
            self.part_progress = scale_progress(
                self.progress, index / len(parts), (index + 1) / len(parts)
            )
            joint = {metric.expression: self._compare_jointly(metric) for metric in metrics}
            self._decide([each for each in joint.values() if each is not None])
            for metric in metrics:
                boards[metric.expression] = self._build_leaderboard(
                    metric, joint[metric.expression]
                )
            if self.progress is not None:
                self.progress((index + 1) / len(parts))
        return boards

    def _split_metrics(self) -> list[list[Metric]]:
        """Return as many metrics at a time as their randomised differences fit into memory."""
        count, metrics = len(self.systems), list(self.metrics)
        pairs = min(count * (count - 1) // 2, MOST_SWAPPED_PAIRS)
        step = max(1, MOST_DIFFERENCES // max(1, choose_swap_count(count) * pairs))
        return [metrics[start : start + step] for start in range(0, len(metrics), step)]

    def _compare_jointly(self, metric: Metric) -> JointComparison | None:
        """Return the systems that have a value, compared; None where nothing can be compared."""
        values, ranked = self._list_values(metric), self._find_ranked(metric)
        resampled = self.resampled[metric.expression][:, ranked]
        defined = np.asarray(~np.isnan(resampled).any(axis=1))
        if not len(ranked) or defined.sum() < FEWEST_DEFINED_RESAMPLES:
            return None
        return JointComparison(
            metric,
            [self.systems[k] for k in ranked],
            ranked,
            metric.size(values[ranked]),
            metric.size(resampled[defined]),
            self.settings,
            unit=self.unit,
            resampling=self._choose_resampling(metric),
            differing=self._count_differing(metric)[np.ix_(ranked, ranked)],
        )

    def _list_values(self, metric: Metric) -> Array:
        return np.array([by_metric[metric.expression].value for by_metric in self.estimates])

    def _find_ranked(self, metric: Metric) -> Array:
        """Return the places of the systems that have a value, and some in resamples."""
        drawn = ~np.isnan(self.resampled[metric.expression]).all(axis=0)
        return np.flatnonzero(~np.isnan(self._list_values(metric)) & drawn)

    def _measure_baselines(self, metric: Metric) -> Baselines | None:
        """Return what constants and chance reach, where these are of the same items."""
        del metric
        return None

    def _describe_values(self, metric: Metric) -> dict[str, Any]:
        """Return how values of a metric are shown."""
        del metric
        return {}

    def _build_leaderboard(self, metric: Metric, joint: JointComparison | None) -> Leaderboard:
        name = metric.expression
        standings = [
            Standing(name, system, by_metric[name])
            for system, by_metric in zip(self.systems, self.estimates, strict=True)
        ]
        notes = self._note_gaps(metric)
        pairs: list[PairDifference] = []
        undecidable: set[PairDifference] = set()
        if joint is not None:
            pairs = joint.build_pairs()
            undecidable = set(joint.select_undecidable(pairs))
            notes += joint.collect_notes(pairs)
            for index, standing in zip(joint.ranked, joint.list_standings(), strict=True):
                standings[index] = replace(standings[index], **standing)
        standings.sort(key=lambda x: math.inf if x.rank is None else x.rank)
        board = Leaderboard(
            metric=metric,
            standings=tuple(standings),
            pairs=tuple(pairs),
            baselines=self._measure_baselines(metric),
            conclusion="",
            resampling=self._choose_resampling(metric),
            notes=tuple(notes),
            test=None if joint is None or joint.reason else joint.test,
            **self._describe_values(metric),
        )
        return replace(board, conclusion=write_conclusion(board, undecidable, self.unit))

    def _note_gaps(self, metric: Metric) -> list[str]:
        """Say what is left out."""
        del metric
        return []


class PanelLeaderboardBuilder(LeaderboardBuilder):
    """Leaderboards of systems that predict levels: items, or clusters, are resampled and swapped.

    `tested` are exact tests of pairs, by metric: verdicts never contradict them.
    """

    def __init__(
        self,
        panel: Panel,
        metrics: Sequence[Metric],
        settings: ComparisonSettings,
        progress: ProgressCallback | None = None,
        tested: ExactTests | None = None,
    ) -> None:
        self.panel, self.tested = panel, tested or {}
        super().__init__(panel.systems, metrics, settings, progress)

    def _measure_systems(self, progress: ProgressCallback | None) -> None:
        if self.panel.groups is not None:
            self.unit = "clusters"
        self.estimates = self._estimate_all(scale_progress(progress, 0.0, 0.5))
        self.resampled = resample_jointly(
            self.panel, self.metrics, self.resamples, scale_progress(progress, 0.5, 1.0)
        )

    def _estimate_all(self, progress: ProgressCallback | None) -> list[dict[str, Estimate]]:
        if self.panel.groups is None:
            matrices = [self.panel.confusion_matrix(system) for system in self.systems]
            batch = ConfusionMatrix.stack(matrices)
            return estimate_metrics_of_each(self.metrics, batch, self.settings.intervals, progress)
        estimates = []
        for index, system in enumerate(self.systems):
            clusters = self.panel.count_by_group(system)
            estimates.append(estimate_metrics(self.metrics, clusters, self.settings.intervals))
            if progress is not None:
                progress((index + 1) / len(self.systems))
        return estimates

    def _compare_jointly(self, metric: Metric) -> JointComparison | None:
        return None if self._is_one_cluster else super()._compare_jointly(metric)

    def _decide(self, compared: Sequence[JointComparison]) -> None:
        """Test the pairs of each metric by swaps, unless weights are no counts of items."""
        if self.panel.groups is None and not self.panel.has_integer_weights:
            for joint in compared:
                joint.decide(self.tested)
            return
        swapped = randomize_differences(
            self.panel,
            [joint.metric for joint in compared],
            [joint.locate_swapped_pairs() for joint in compared],
            Resampling(choose_swap_count(len(self.systems)), self.settings.seed),
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
        del metric  # units that differ do so whatever the metric
        return self._differing

    def _choose_resampling(self, metric: Metric) -> str:
        return choose_resampling(self.panel, metric)

    @cached_property
    def _baseline_predictors(self) -> BaselinePredictors:
        first = self.panel.confusion_matrix(self.systems[0])
        return BaselinePredictors(first.with_cells(np.diag(first.gold)))

    def _measure_baselines(self, metric: Metric) -> Baselines | None:
        return self._baseline_predictors.measure(metric)[0]

    def _note_gaps(self, metric: Metric) -> list[str]:
        """Say which systems and how many resamples are left out."""
        ranked = self._find_ranked(metric)
        valued = np.flatnonzero(~np.isnan(self._list_values(metric)))
        left_out = [self.systems[k] for k in valued if k not in ranked]
        notes = []
        if left_out:
            grouped = self.panel.groups is not None
            where = "without one of the clusters" if grouped else "in any resample"
            notes.append(f"Not compared: {name_systems(left_out)}, with no value {where}.")
        undefined = np.isnan(self.resampled[metric.expression][:, ranked])
        notes += _note_few_resamples(np.asarray(~undefined.any(axis=1)))
        if self._is_one_cluster:
            notes.append("All items are of one cluster: nothing can be compared.")
        return notes


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


# --- what is compared, and what it says ----------------------------------------------------------


def select_compared_metrics(
    metrics: MetricSelection, settings: ComparisonSettings, summary: type = ConfusionMatrix
) -> list[Metric]:
    """Return the metrics to compare by; margins are of these."""
    selected = select_metrics(metrics, summary)
    if unknown := set(settings.margins) - {metric.expression for metric in selected}:
        raise BadOption(f"A margin is given for {min(unknown)}, which is not compared.")
    return selected


def write_conclusion(board: Leaderboard, undecidable: Iterable[PairDifference], unit: str) -> str:
    """Say in a sentence or two who leads, whom it beats, and who may be as good.

    `undecidable` are the pairs that differ in too few units for a verdict.
    """
    if len(board.ranked) < 2:
        name = board.metric.expression
        note = next((x.estimate.note for x in board.standings if x.rank is None), None)
        why = note if board.is_quantity and note else "too few systems have a value"
        return f"On {name} there is nothing to compare: {why}."
    leader = board.ranked[0]
    few = {pair: "few" for pair in undecidable if pair.verdict == "inconclusive"}
    rivals: dict[str, list[str]] = {}
    near, reason = [], ""
    for pair in board.pairs:
        if leader.system in {pair.first, pair.second}:
            rival = pair.second if pair.first == leader.system else pair.first
            rivals.setdefault(few.get(pair, pair.verdict), []).append(rival)
            near += [rival] if _is_non_inferior(pair, rival) else []
            reason = pair.difference.note or reason
    said = {
        "beaten": "It is significantly better than {}.",
        "inconclusive": "It is not significantly different from {}.",
        "untested": f"It is not tested against {{}}: {reason}.",
        "few": f"It differs from {{}} in too few {unit} for a verdict.",
        "near": "By the margin, {} cannot be worse than it.",
        "identical": "This metric sees no difference from {}.",
    }
    found = rivals | {"beaten": rivals.get("better", []) + rivals.get("worse", []), "near": near}
    parts = [text.format(name_systems(found[x])) for x, text in said.items() if found.get(x)]
    return " ".join([state_leader(board), *parts])


def state_leader(board: Leaderboard) -> str:
    """Say who leads, with which value."""
    leader = board.ranked[0]
    estimates = UNIT_ESTIMATE if board.is_quantity else ESTIMATE
    found, bounds = leader.estimate, estimates.show_bounds(leader.estimate)
    value = f"{found.value:.3f}"
    if board.is_quantity:
        value = format_with_unit(found.value, board.unit)
    interval = f" ({bounds})" if bounds else ""
    return f"{leader.system} leads on {board.metric.expression} with {value}{interval}."


def _is_non_inferior(pair: PairDifference, system: str) -> bool:
    """Tell whether a system is no worse than the other one of the pair, but for the margin."""
    side = "first" if pair.first == system else "second"
    return pair.margin_verdict in {"equivalent", f"{side} non-inferior"}
