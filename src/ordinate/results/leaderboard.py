"""Leaderboards: one for each metric, from joint resamples of all systems."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
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
from ordinate.inference.paired_tests import TestResult
from ordinate.inference.randomization import (
    PValues,
    RandomizedDifferences,
    choose_swap_count,
    randomize_differences,
)
from ordinate.inference.resampling import ProgressCallback, Resampling
from ordinate.inference.system_differences import (
    SystemDifferences,
    compare_pairs,
    compute_rank_intervals,
    compute_rank_shares,
    count_differing_units,
    find_significant_pairs,
    list_pairs,
    max_t_statistic,
    rank_systems,
    resample_jointly,
)
from ordinate.metrics import Metric
from ordinate.render.estimates import format_percent, join_names
from ordinate.results.arguments import check_system_count
from ordinate.results.base import Record, Serializable, to_plain
from ordinate.results.baselines import BaselinePredictors, Baselines
from ordinate.settings import Level, Resamples, Seed
from ordinate.summaries import Panel

Array = NDArray[Any]
ExactTests = Mapping[tuple[str, str], Mapping[str, TestResult]]  # by pair of names, by metric
Correction = Literal["max_t", "holm", "bh", "by", "none"]
AGAINST_ALL, AGAINST_LEADER = "all", "leader"
MANY_SYSTEMS = 50  # systems, above which each is compared with the leader only
MOST_NAMED = 5  # systems in a sentence
FEWEST_DEFINED_RESAMPLES = 100  # resamples in which all systems have a value
MOST_SWAPPED_PAIRS = MANY_SYSTEMS * (MANY_SYSTEMS - 1) // 2
MOST_DIFFERENCES = 1 << 25  # randomised differences that are kept at a time
ROUNDING = 1e-12  # of a level: a p-value of exactly 0.05 is significant at 0.95
RANDOMIZATION, BOOTSTRAP = "randomisation max-T", "bootstrap max-T"
BOTH = "bootstrap max-T, own p-values by randomisation"
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
class VerdictTest(Serializable):
    """The test behind verdicts, letters, rank intervals and adjusted p-values.

    `resamples` is None where all swaps were tried.
    """

    method: str
    resamples: int | None


@dataclass(frozen=True)
class Leaderboard:
    """The leaderboard of one metric: systems best first, then those without a value."""

    metric: Metric
    standings: tuple[Standing, ...]
    pairs: tuple[PairDifference, ...]
    baselines: Baselines | None  # None where they are not of the same items
    conclusion: str
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

    def _compare_jointly(self, metric: Metric) -> "JointComparison | None":
        """Return the systems that have a value, compared; None where nothing can be compared."""
        values = np.array([by_metric[metric.expression].value for by_metric in self.estimates])
        ranked = np.flatnonzero(~np.isnan(values))
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
        )

    def _exchange_predictions(self, compared: "list[JointComparison]") -> None:
        """Test the pairs of each metric by swaps, unless weights are no counts of items."""
        if self.panel.groups is None and not self.panel.has_integer_weights:
            return
        swapped = randomize_differences(
            self.panel,
            [joint.metric for joint in compared],
            [joint.locate_swapped_pairs() for joint in compared],
            Resampling(choose_swap_count(len(self.panel.systems)), self.settings.seed),
            self.part_progress,
        )
        for joint, differences in zip(compared, swapped, strict=True):
            joint.decide_by_swaps(differences, self.tested)

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

    @cached_property
    def _baseline_predictors(self) -> BaselinePredictors:
        first = self.panel.confusion_matrix(self.panel.systems[0])
        return BaselinePredictors(first.with_cells(np.diag(first.gold)))

    def _measure_baselines(self, metric: Metric) -> Baselines | None:
        """Return what constants and chance reach."""
        return self._baseline_predictors.measure(metric)

    @property
    def unit(self) -> str:
        """What is swapped whole."""
        return "items" if self.panel.groups is None else "clusters"

    def _build_leaderboard(self, metric: Metric, joint: "JointComparison | None") -> Leaderboard:
        name = metric.expression
        standings = [
            Standing(system, by_metric[name])
            for system, by_metric in zip(self.panel.systems, self.estimates, strict=True)
        ]
        ranked = [k for k, x in enumerate(standings) if not math.isnan(x.estimate.value)]
        notes = self._note_gaps(metric, ranked)
        pairs: list[PairDifference] = []
        if self._is_one_cluster:
            notes.append("All items are of one group: nothing can be compared.")
        if joint is not None:
            pairs = joint.build_pairs()
            notes += joint.collect_notes(pairs)
            if joint.test.method != BOOTSTRAP:
                notes += self._note_few_units(metric, pairs)
            for index, standing in zip(joint.ranked, joint.list_standings(), strict=True):
                standings[index] = replace(standings[index], **standing)
        standings.sort(key=lambda x: math.inf if x.rank is None else x.rank)
        return Leaderboard(
            metric=metric,
            standings=tuple(standings),
            pairs=tuple(pairs),
            baselines=self._measure_baselines(metric),
            conclusion=write_conclusion(metric, standings, pairs),
            notes=tuple(notes),
            test=None if joint is None else joint.test,
        )

    def _note_gaps(self, metric: Metric, ranked: list[int]) -> list[str]:
        """Say how many resamples are left out."""
        undefined = np.isnan(self.resampled[metric.expression][:, ranked])
        return _note_few_resamples(np.asarray(~undefined.any(axis=1)))

    def _note_few_units(self, metric: Metric, pairs: list[PairDifference]) -> list[str]:
        """Say which pairs differ in so few units that no p-value can reach the level."""
        alpha, differing = 1.0 - self.settings.level + ROUNDING, self._count_differing(metric)
        place = {name: index for index, name in enumerate(self.panel.systems)}
        few = [
            _name_pair(pair)
            for pair in pairs
            if pair.verdict != "identical"
            and 2.0 ** (1.0 - differing[place[pair.first], place[pair.second]]) > alpha
        ]
        if not few:
            return []
        needed = 1 + math.floor(1.0 - math.log2(alpha))
        note = f"Too few {self.unit} differ for a verdict on {_name_systems(few, 'pairs')}: with "
        note += f"fewer than {needed} no swap of predictions reaches p = "
        note += f"{1 - self.settings.level:.2g}. "
        return [note + "The intervals are all that can be said."]


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


class JointComparison:
    """The systems that have a value on a metric: intervals by bootstrap, verdicts by swaps.

    `ranked` are their places in the panel, `differing` [S, S] the units that two of them differ in.
    Until swaps decide, the bootstrap does.
    """

    def __init__(
        self,
        metric: Metric,
        names: list[str],
        ranked: Array,
        values: Array,
        resampled: Array,
        differing: Array,
        settings: ComparisonSettings,
    ) -> None:
        self.metric, self.names, self.ranked, self.settings = metric, names, ranked, settings
        self.differing, self.alpha = differing, 1.0 - settings.level + ROUNDING
        self.values, self.resampled = metric.size(values), metric.size(resampled)
        self.sign = 1.0 if metric.direction == "maximize" else -1.0
        self.rank = rank_systems(self.sign * self.values)
        self.leader = int(np.argmin(self.rank))
        self.shares = compute_rank_shares(self.sign * self.resampled)
        self.differences = self._compare_family()
        self.p, self.adjusted = self.differences.p, self.differences.adjusted
        self.test = VerdictTest(BOOTSTRAP, len(resampled))

    @cached_property
    def widest(self) -> Array:
        """The largest bootstrap statistic of each resample over all pairs."""
        return max_t_statistic(self.values, self.resampled)

    @cached_property
    def apart(self) -> Array:
        """Which systems [S, S] are significantly different, by the bootstrap unless swaps say."""
        if self.settings.against == AGAINST_ALL:  # stepping down, as the verdicts do
            apart = np.zeros((len(self.names), len(self.names)), bool)
            apart[self._list_all_pairs()] = self.differences.adjusted <= self.alpha
            return apart | apart.T
        return find_significant_pairs(self.values, self.resampled, self.settings.level, self.widest)

    def _list_all_pairs(self) -> tuple[Array, Array]:
        """Return all pairs, of which the better one comes first."""
        order = np.argsort(self.rank, kind="stable")
        first, second = list_pairs(len(self.names))
        return order[first], order[second]

    def _list_family_pairs(self) -> tuple[Array, Array]:
        if self.settings.against == AGAINST_ALL:
            return self._list_all_pairs()
        named = self.settings.against != AGAINST_LEADER
        if named and self.settings.against not in self.names:  # it has no value on this metric
            return np.empty(0, int), np.empty(0, int)
        centre = self.names.index(str(self.settings.against)) if named else self.leader
        others = np.array([k for k in range(len(self.names)) if k != centre], int)
        against = np.full(len(others), centre)
        return (others, against) if named else (against, others)

    def _compare_family(self) -> SystemDifferences:
        """Return the pairs of the family; the leader was chosen from all pairs, so all count."""
        widest = self.widest if self.settings.against == AGAINST_LEADER else None
        pairs = self._list_family_pairs()
        return compare_pairs(
            self.values, self.resampled, *pairs, self.settings.level, widest=widest
        )

    def list_swapped_pairs(self) -> tuple[Array, Array]:
        """Return all pairs or, where these are too many, those that are shown, if not, too."""
        families = (self._list_all_pairs(), self._list_family_pairs())
        few = [pairs for pairs in families if len(pairs[0]) <= MOST_SWAPPED_PAIRS]
        return few[0] if few else (np.empty(0, int), np.empty(0, int))

    def locate_swapped_pairs(self) -> tuple[Array, Array]:
        """Return the same pairs by their places in the panel."""
        first, second = self.list_swapped_pairs()
        return self.ranked[first], self.ranked[second]

    def decide_by_swaps(self, swapped: RandomizedDifferences, exact: ExactTests) -> None:
        """Take p-values, letters and rank intervals from what coins made of the differences.

        The leader of very many systems stays with the bootstrap over all pairs, but never below a
        pair's own p.
        """
        pairs, family = self.list_swapped_pairs(), self._list_family_pairs()
        if not len(pairs[0]):
            return
        everyone = len(pairs[0]) == len(self._list_all_pairs()[0])
        known = self._list_known_p(exact)
        found = self._adjust(swapped, pairs, known)
        if everyone:
            self.apart = found.adjusted <= self.alpha
        if self.settings.against not in {AGAINST_ALL, AGAINST_LEADER}:  # a smaller family
            inside = np.asarray(np.isin(pairs, family[1][:1]).any(axis=0))
            pairs = pairs[0][inside], pairs[1][inside]
            found = self._adjust(swapped.select(inside), pairs, known)
        self.p, adjusted = found.own[family], found.adjusted[family]
        chosen = self.settings.against == AGAINST_LEADER and not everyone
        self.adjusted = np.maximum(self.adjusted, self.p) if chosen else adjusted
        self.test = VerdictTest(RANDOMIZATION if everyone else BOTH, swapped.resamples)

    def _list_known_p(self, exact: ExactTests) -> Array:
        """Return the p-values [S, S] of pairs that have an exact test; nan for the others."""
        known = np.full(self.differing.shape, np.nan)
        place = {name: index for index, name in enumerate(self.names)}
        for names, by_metric in exact.items():
            if all(name in place for name in names):
                pair = [place[name] for name in names]
                known[pair, pair[::-1]] = by_metric[self.metric.expression].p
        return known

    def _adjust(
        self, swapped: RandomizedDifferences, pairs: tuple[Array, Array], known: Array
    ) -> PValues:
        """Return own and adjusted p-values as [S, S], 1 for pairs that are not among these.

        With d units that differ no p is below 2^(1 - d), however the coins fell.
        """
        own, adjusted = swapped.compute_p_values()
        own = np.maximum(own, np.minimum(1.0, 2.0 ** (1.0 - self.differing[pairs])))
        own = np.where(np.isnan(known[pairs]), own, known[pairs])
        adjusted = np.maximum(own, adjusted) if len(own) > 1 else own
        matrices = np.ones((2, *known.shape))
        for matrix, column in zip(matrices, (own, adjusted), strict=True):
            matrix[pairs] = matrix[pairs[::-1]] = column
        return PValues(*matrices)

    # --- the leaderboard -------------------------------------------------------------------------

    def list_standings(self) -> list[dict[str, Any]]:
        """Return rank, rank interval, rank shares and letters of each system."""
        better = self.sign * (self.values[:, None] - self.values) > 0
        low, high = compute_rank_intervals(self.apart, better)
        letters = self._assign_letters()
        return [
            {
                "rank": int(self.rank[place]),
                "rank_low": int(low[place]),
                "rank_high": int(high[place]),
                "rank_shares": tuple(self.shares[place].tolist()),
                "compact_letter_display": letters[place],
            }
            for place in range(len(self.names))
        ]

    def _assign_letters(self) -> list[str | None]:
        order = np.argsort(self.rank, kind="stable")
        shown = (
            None
            if len(self.names) > MANY_SYSTEMS
            else compact_letter_display(self.apart[np.ix_(order, order)])
        )
        if shown is None:
            return [None] * len(self.names)
        return [shown[place] for place in np.argsort(order)]

    def build_pairs(self) -> list[PairDifference]:
        """Return the pairs of the family."""
        found, adjusted = self.differences, self.adjusted
        if self.settings.correction != "max_t":
            adjusted = CORRECTIONS.get(self.settings.correction, np.asarray)(self.p)
        columns = (found.first, found.second, found.value, found.low, found.high)
        return [self._build_pair(*row) for row in zip(*columns, self.p, adjusted, strict=True)]

    def _build_pair(self, *row: Any) -> PairDifference:
        first, second, value, low, high, p, adjusted = (x.item() for x in row)
        good = self.sign * value
        verdict = "inconclusive"
        if low == high == 0.0:
            verdict = "identical"
        elif adjusted <= self.alpha:
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

    def collect_notes(self, pairs: list[PairDifference]) -> list[str]:
        """Return what has to be said about the pairs."""
        if self.settings.against not in {AGAINST_ALL, AGAINST_LEADER, *self.names}:
            return [f"{self.settings.against} has no value, so nothing is compared with it."]
        few = self._note_few_swaps(len(pairs))
        return few + _note_disagreements(self.metric, pairs, self.settings.correction)

    def _note_few_swaps(self, tests: int) -> list[str]:
        if self.test.resamples is None or self.settings.correction not in CORRECTIONS or not tests:
            return []
        least = 1.0 / (self.test.resamples + 1.0)
        if least <= (1 - self.settings.level) / tests:
            return []
        few = f"With {self.test.resamples:,} resamples no p-value is below {least:.2g}, so the "
        few += f"correction {self.settings.correction} for {tests:,} pairs may never reject: "
        needed = f"{math.ceil(tests / (1.0 - self.settings.level)):,} resamples"
        return [f"{few}take {needed if self.test.method == BOOTSTRAP else 'max_t'}."]


def _note_disagreements(
    metric: Metric, pairs: list[PairDifference], correction: Correction
) -> list[str]:
    """Say why an interval excludes 0 where the verdict is inconclusive, or the other way round."""
    more = f"the correction {correction} asks for more than the interval, which is by max-T."
    less = f"the correction {correction} asks for less than the interval, which is by max-T."
    if correction == "max_t":
        more = "bootstrap intervals are approximate, and too narrow with few clusters or rare "
        more += "levels; swapping the predictions of the two systems gives such differences by "
        more += "chance too often."
        less = "the test assumes no difference, which leaves less noise than the interval allows "
        less += "for, and it steps down."
    excluded = [pair for pair in pairs if pair.low > 0 or pair.high < 0]
    unsure = [_name_pair(pair) for pair in excluded if pair.verdict == "inconclusive"]
    included = [pair for pair in pairs if pair.low <= 0 <= pair.high]
    decided = [_name_pair(pair) for pair in included if pair.verdict in {"better", "worse"}]
    notes = []
    where = f"On {metric.expression} the interval of"
    if unsure:
        named = _name_systems(unsure, "pairs")
        notes.append(f"{where} {named} excludes 0, but the verdict is inconclusive: {more}")
    if decided:
        named = _name_systems(decided, "pairs")
        notes.append(f"{where} {named} includes 0, but the verdict is significant: {less}")
    return notes


def _name_pair(pair: PairDifference) -> str:
    return f"{pair.first} - {pair.second}"


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


def _name_systems(names: list[str], noun: str = "systems") -> str:
    return join_names(names) if len(names) <= MOST_NAMED else f"{len(names)} {noun}"


def _is_non_inferior(pair: PairDifference, system: str) -> bool:
    """Tell whether a system is no worse than the other one of the pair, but for the margin."""
    side = "first" if pair.first == system else "second"
    return pair.margin_verdict in {"equivalent", f"{side} non-inferior"}


def _list_systems(pair: PairDifference) -> tuple[str, str]:
    return pair.first, pair.second


def _get_other_system(pair: PairDifference, system: str) -> str:
    return pair.second if pair.first == system else pair.first
