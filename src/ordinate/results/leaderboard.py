"""Leaderboards: one for each metric, from joint resamples of all systems."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, shorten, suggest_names
from ordinate.inference import ConfidenceIntervals, Estimate, estimate_metrics
from ordinate.inference.confidence_intervals import IntervalMethod
from ordinate.inference.multiple_testing import (
    benjamini_hochberg,
    benjamini_yekutieli,
    compact_letter_display,
    holm,
)
from ordinate.inference.resampling import ProgressCallback, Resampling
from ordinate.inference.system_differences import (
    SystemDifferences,
    compare_pairs,
    compute_rank_intervals,
    compute_rank_shares,
    find_significant_pairs,
    list_pairs,
    max_t_statistic,
    rank_systems,
    resample_jointly,
    smallest_attainable_p,
)
from ordinate.metrics import Metric
from ordinate.render.estimates import format_percent, join_names
from ordinate.results.arguments import check_system_count
from ordinate.results.base import Record, Serializable, to_plain
from ordinate.results.baselines import BaselinePredictors, Baselines
from ordinate.settings import Level, Resamples, Seed
from ordinate.summaries import Panel

Array = NDArray[Any]
Correction = Literal["max_t", "holm", "bh", "by", "none"]
AGAINST_ALL, AGAINST_LEADER = "all", "leader"
MANY_SYSTEMS = 50  # systems, above which each is compared with the leader only
MOST_NAMED = 5  # systems in a sentence
FEWEST_DEFINED_RESAMPLES = 100  # resamples in which all systems have a value
CORRECTIONS = {"holm": holm, "bh": benjamini_hochberg, "by": benjamini_yekutieli}


@dataclass(frozen=True)
class ComparisonSettings:
    """How systems are compared; `method` is that of the intervals of each system alone.

    `against` is 'all', 'leader' or the name of a system; `margins` are by metric, in its units;
    `pairs` are those that permutation tests and their like are made for.
    """

    level: Level = 0.95
    resamples: Resamples = 2_000
    seed: Seed = 0
    against: str | None = None
    correction: Correction = "max_t"
    margins: Mapping[str, float] = field(default_factory=dict)
    pairs: Sequence[tuple[str, str]] = ()
    method: IntervalMethod | None = None

    def __post_init__(self) -> None:
        if self.correction not in get_args(Correction):
            known = ", ".join(get_args(Correction))
            raise BadOption(f"There is no correction {self.correction!r}; there are: {known}.")
        for name, margin in self.margins.items():
            if not (isinstance(margin, (int, float)) and 0 < margin < math.inf):
                raise BadOption(f"The margin of {name} must be above 0, not {margin!r}.")

    @property
    def intervals(self) -> ConfidenceIntervals:
        """The intervals of each system alone."""
        return ConfidenceIntervals(self.level, self.method, self.resamples, self.seed)


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
class PairDifference(Serializable):
    """First minus second: an interval that holds for all pairs of the family at once, p-values.

    `verdict` says of the first: 'better', 'worse', 'inconclusive' or 'identical'; `margin_verdict`
    says, if there is a margin, whether the two are 'equivalent', which of them is 'inferior' or
    'non-inferior' to the other, or 'inconclusive'.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float
    verdict: str
    margin_verdict: str | None = None


@dataclass(frozen=True)
class Leaderboard:
    """The leaderboard of one metric: systems best first, then those without a value."""

    metric: Metric
    standings: tuple[Standing, ...]
    pairs: tuple[PairDifference, ...]
    baselines: Baselines
    conclusion: str
    notes: tuple[str, ...] = ()

    def get_standing(self, system: str) -> Standing:
        """Return the standing of a system."""
        return next(x for x in self.standings if x.system == system)

    def to_dict(self) -> Record:
        """Return plain values, nan as None."""
        return {
            "direction": self.metric.direction,
            "conclusion": self.conclusion,
            "notes": list(self.notes),
            "systems": {standing.system: standing.to_dict() for standing in self.standings},
            "pairs": to_plain(self.pairs),
            "baselines": self.baselines.to_dict(),
        }


def resolve_settings(panel: Panel, settings: ComparisonSettings) -> ComparisonSettings:
    """Return the options with everything that was left open, checked against the systems."""
    count = len(panel.systems)
    check_system_count(count)
    pairs = list(settings.pairs)
    if not pairs and count == 2:
        pairs = [(panel.systems[0], panel.systems[1])]
    named = [name for pair in pairs for name in pair]
    if settings.against not in {None, AGAINST_ALL, AGAINST_LEADER}:
        named.append(str(settings.against))
    for name in named:
        if name not in panel.systems:
            hint = suggest_names(name, list(panel.systems))
            raise BadOption(f"There is no system {shorten(name)}.{hint}")
    if any(len(set(pair)) != 2 for pair in pairs):
        raise BadOption("A pair is two different systems.")
    against = settings.against or (AGAINST_ALL if count <= MANY_SYSTEMS else AGAINST_LEADER)
    return replace(settings, against=against, pairs=pairs)


# --- boards --------------------------------------------------------------------------------------


class LeaderboardBuilder:
    """Everything that the leaderboards of all metrics share: tables, intervals, joint resamples."""

    def __init__(
        self,
        panel: Panel,
        metrics: list[Metric],
        settings: ComparisonSettings,
        progress: ProgressCallback | None,
    ) -> None:
        self.panel, self.metrics, self.settings = panel, metrics, settings
        self.estimates = self._estimate_all(_make_partial_progress(progress, 0.0, 0.3))
        resamples = Resampling(settings.resamples, settings.seed)
        self.resampled = resample_jointly(
            panel, metrics, resamples, _make_partial_progress(progress, 0.3, 0.9)
        )
        first = panel.confusion_matrix(panel.systems[0])
        self.least = smallest_attainable_p(panel)
        self.progress = _make_partial_progress(progress, 0.9, 1.0)
        self.baseline_predictors = BaselinePredictors(first.with_cells(np.diag(first.gold)))

    def _estimate_all(self, progress: ProgressCallback | None) -> list[dict[str, Estimate]]:
        estimates = []
        for index, system in enumerate(self.panel.systems):
            grouped = self.panel.groups is not None
            count = self.panel.count_by_group if grouped else self.panel.confusion_matrix
            source = count(system)
            estimates.append(estimate_metrics(self.metrics, source, self.settings.intervals))
            if progress is not None:
                progress((index + 1) / len(self.panel.systems))
        return estimates

    def all(self) -> dict[str, Leaderboard]:
        """Return the leaderboard of each metric."""
        boards = {}
        for index, metric in enumerate(self.metrics):
            boards[metric.expression] = self._build_leaderboard(metric)
            if self.progress is not None:
                self.progress((index + 1) / len(self.metrics))
        return boards

    def _build_leaderboard(self, metric: Metric) -> Leaderboard:
        name = metric.expression
        estimates = [by_metric[name] for by_metric in self.estimates]
        values = np.array([estimate.value for estimate in estimates])
        ranked = np.flatnonzero(~np.isnan(values))
        resampled = self.resampled[name][:, ranked]
        defined = np.asarray(~np.isnan(resampled).any(axis=1))
        notes = _note_few_resamples(defined)
        standings = [Standing(system, estimates[k]) for k, system in enumerate(self.panel.systems)]
        pairs: list[PairDifference] = []
        if self.panel.groups is not None and len(self.panel.group_values) < 2:
            notes.append("All items are of one group: nothing can be compared.")
        elif len(ranked) and defined.sum() >= FEWEST_DEFINED_RESAMPLES:
            names = [self.panel.systems[k] for k in ranked]
            least = self.least[np.ix_(ranked, ranked)]
            joint = _JointComparison(
                metric, names, values[ranked], resampled[defined], least, self.settings
            )
            pairs, more = joint.pairs()
            notes += more
            for place, index in enumerate(ranked):
                standings[index] = replace(standings[index], **joint.get_standing(place))
        standings.sort(key=lambda x: math.inf if x.rank is None else x.rank)
        baselines = self.baseline_predictors.measure(metric)
        conclusion = write_conclusion(metric, standings, pairs)
        return Leaderboard(
            metric=metric,
            standings=tuple(standings),
            pairs=tuple(pairs),
            baselines=baselines,
            conclusion=conclusion,
            notes=tuple(notes),
        )


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


class _JointComparison:
    """The systems that have a value on a metric, compared by joint resamples."""

    def __init__(
        self,
        metric: Metric,
        names: list[str],
        values: Array,
        resampled: Array,
        least: Array,
        settings: ComparisonSettings,
    ) -> None:
        self.metric, self.names, self.least, self.settings = metric, names, least, settings
        self.values, self.resampled = metric.size(values), metric.size(resampled)
        self.sign = 1.0 if metric.direction == "maximize" else -1.0
        self.rank = rank_systems(self.sign * self.values)
        self.leader = int(np.argmin(self.rank))
        self.shares = compute_rank_shares(self.sign * self.resampled)
        self.widest = (
            None
            if settings.against == AGAINST_ALL
            else max_t_statistic(self.values, self.resampled)
        )
        self.differences = self._compare_family()
        apart = self._find_significant()
        better = self.sign * (self.values[:, None] - self.values) > 0
        self.low, self.high = compute_rank_intervals(apart, better)
        self.letters = self._assign_letters(apart)

    def _list_family_pairs(self) -> tuple[Array, Array]:
        count = len(self.names)
        if self.settings.against == AGAINST_ALL:  # the better one comes first
            order = np.argsort(self.rank, kind="stable")
            first, second = list_pairs(count)
            return order[first], order[second]
        named = self.settings.against != AGAINST_LEADER
        if named and self.settings.against not in self.names:  # it has no value on this metric
            return np.empty(0, int), np.empty(0, int)
        centre = self.names.index(str(self.settings.against)) if named else self.leader
        others = np.array([k for k in range(count) if k != centre], int)
        against = np.full(len(others), centre)
        return (others, against) if named else (against, others)

    def _compare_family(self) -> SystemDifferences:
        """Return the pairs of the family; the leader was chosen from all pairs, so all count."""
        widest = self.widest if self.settings.against == AGAINST_LEADER else None
        pairs = self._list_family_pairs()
        return compare_pairs(
            self.values,
            self.resampled,
            *pairs,
            self.settings.level,
            least=self.least,
            widest=widest,
        )

    def _find_significant(self) -> Array:
        """Return which systems are significantly different, by max-T over all pairs."""
        if self.widest is not None:
            return find_significant_pairs(
                self.values, self.resampled, self.settings.level, self.widest, self.least
            )
        apart = np.zeros((len(self.names), len(self.names)), bool)
        found = self.differences
        apart[found.first, found.second] = found.adjusted < 1.0 - self.settings.level
        return apart | apart.T

    def _assign_letters(self, apart: Array) -> list[str | None]:
        order = np.argsort(self.rank, kind="stable")
        shown = (
            None
            if len(self.names) > MANY_SYSTEMS
            else compact_letter_display(apart[np.ix_(order, order)])
        )
        if shown is None:
            return [None] * len(self.names)
        return [shown[place] for place in np.argsort(order)]

    def get_standing(self, place: int) -> dict[str, Any]:
        """Return rank, rank interval, rank shares and letters of a system."""
        return {
            "rank": int(self.rank[place]),
            "rank_low": int(self.low[place]),
            "rank_high": int(self.high[place]),
            "rank_shares": tuple(self.shares[place].tolist()),
            "compact_letter_display": self.letters[place],
        }

    def pairs(self) -> tuple[list[PairDifference], list[str]]:
        """Return the pairs of the family, and what has to be said about them."""
        found = self.differences
        adjusted = found.adjusted
        if self.settings.correction != "max_t":
            adjusted = CORRECTIONS.get(self.settings.correction, np.asarray)(found.p)
        columns = (found.first, found.second, found.value, found.low, found.high)
        pairs = [self._build_pair(*row) for row in zip(*columns, found.p, adjusted, strict=True)]
        return pairs, self._collect_notes(len(pairs))

    def _build_pair(self, *row: Any) -> PairDifference:
        first, second, value, low, high, p, adjusted = (x.item() for x in row)
        good = self.sign * value
        verdict = "inconclusive"
        if low == high == 0.0:
            verdict = "identical"
        elif adjusted < 1.0 - self.settings.level:
            verdict = "better" if good > 0 else "worse"
        margin = self.settings.margins.get(self.metric.expression)
        worst, best = (low, high) if self.sign > 0 else (-high, -low)
        within = None if margin is None else _decide_margin(worst, best, margin)
        return PairDifference(
            first=self.names[first],
            second=self.names[second],
            difference=value,
            low=low,
            high=high,
            p=p,
            p_adjusted=adjusted,
            verdict=verdict,
            margin_verdict=within,
        )

    def _collect_notes(self, tests: int) -> list[str]:
        if self.settings.against not in {AGAINST_ALL, AGAINST_LEADER, *self.names}:
            return [f"{self.settings.against} has no value, so nothing is compared with it."]
        least = 1.0 / (len(self.resampled) + 1.0)
        if (
            self.settings.correction in CORRECTIONS
            and tests
            and least > (1 - self.settings.level) / tests
        ):
            needed = math.ceil(tests / (1.0 - self.settings.level))
            few = f"With {len(self.resampled):,} resamples no p-value is below {least:.2g}, so the "
            few += f"correction {self.settings.correction} for {tests:,} pairs may never reject: "
            return [few + f"take {needed:,} resamples."]
        return []


def _decide_margin(worst: float, best: float, margin: float) -> str:
    """Say what the interval of first minus second, larger being better, leave of a margin."""
    if -margin < worst and best < margin:
        return "equivalent"
    if worst > margin or best < -margin:
        return "second inferior" if worst > margin else "first inferior"
    if best < margin:
        return "second non-inferior"
    return "first non-inferior" if worst > -margin else "inconclusive"


# --- in words ------------------------------------------------------------------------------------


def write_conclusion(metric: Metric, standings: list[Standing], pairs: list[PairDifference]) -> str:
    """Say in a sentence or two who leads, whom it beats, and who may be as good."""
    ranked = [standing for standing in standings if standing.rank is not None]
    if len(ranked) < 2:
        return f"On {metric.expression} there is nothing to compare: too few systems have a value."
    leader = ranked[0]
    against = {
        _get_other_system(pair, leader.system): pair
        for pair in pairs
        if leader.system in _list_systems(pair)
    }
    same = [s for s, pair in against.items() if pair.verdict == "identical"]
    beaten = [s for s, pair in against.items() if pair.verdict in {"better", "worse"}]
    inconclusive = [s for s, pair in against.items() if pair.verdict == "inconclusive"]
    lead = f"{leader.system} leads on {metric.expression} with {leader.estimate.value:.3f}"
    if not math.isnan(leader.estimate.low):
        lead += f" ({leader.estimate.low:.3f} to {leader.estimate.high:.3f})"
    parts = [lead + "."]
    if beaten:
        parts.append(f"It is significantly better than {_name_systems(beaten)}.")
    if inconclusive:
        parts.append(f"It is not significantly different from {_name_systems(inconclusive)}.")
    near = [s for s, pair in against.items() if _is_non_inferior(pair, s)]
    if near:
        parts.append(f"By the margin, {_name_systems(near)} cannot be worse than it.")
    if same:
        parts.append(f"This metric sees no difference from {_name_systems(same)}.")
    return " ".join(parts)


def _name_systems(names: list[str]) -> str:
    return join_names(names) if len(names) <= MOST_NAMED else f"{len(names)} systems"


def _is_non_inferior(pair: PairDifference, system: str) -> bool:
    """Tell whether a system is no worse than the other one of the pair, but for the margin."""
    side = "first" if pair.first == system else "second"
    return pair.margin_verdict in {"equivalent", f"{side} non-inferior"}


def _list_systems(pair: PairDifference) -> tuple[str, str]:
    return pair.first, pair.second


def _get_other_system(pair: PairDifference, system: str) -> str:
    return pair.second if pair.first == system else pair.first
