"""Systems on one metric, compared jointly: intervals by resamples, verdicts by swaps."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference.multiple_testing import (
    benjamini_hochberg,
    benjamini_yekutieli,
    compact_letter_display,
    holm,
)
from ordinate.inference.paired_tests import TestResult
from ordinate.inference.randomization import PValues, RandomizedDifferences
from ordinate.inference.system_differences import (
    BOOTSTRAP,
    DELTA_METHOD,
    JACKKNIFE,
    SystemDifferences,
    compare_pairs,
    compute_max_t_p_values,
    compute_rank_intervals,
    compute_rank_shares,
    list_pairs,
    max_t_statistic,
    rank_systems,
)
from ordinate.metrics import Metric
from ordinate.render.estimates import join_names
from ordinate.results.base import Serializable
from ordinate.results.comparison_settings import (
    AGAINST_ALL,
    AGAINST_LEADER,
    MANY_SYSTEMS,
    ComparisonSettings,
    Correction,
)

Array = NDArray[Any]
ExactTests = Mapping[tuple[str, str], Mapping[str, TestResult]]  # by pair of names, by metric
MOST_NAMED = 5  # systems in a sentence
MOST_SWAPPED_PAIRS = MANY_SYSTEMS * (MANY_SYSTEMS - 1) // 2
ROUNDING = 1e-12  # of a level: a p-value of exactly 0.05 is significant at 0.95
RANDOMIZATION = "randomisation"
CASES = "Student's t"  # how means over cases in other samples are found
RESAMPLING_NAMES = {
    BOOTSTRAP: "bootstrap",
    JACKKNIFE: "the jackknife over clusters with Student's t",
    DELTA_METHOD: "the delta method",
    CASES: "Student's t over cases",
}
CORRECTIONS = {"holm": holm, "bh": benjamini_hochberg, "by": benjamini_yekutieli}


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
    """The test behind verdicts and adjusted p-values, and the one behind rank intervals.

    `own_p_values` says where a pair's own p comes from; `resamples` is None where all swaps were
    tried.
    """

    method: str
    resamples: int | None
    own_p_values: str
    rank_intervals: str

    @property
    def has_swaps(self) -> bool:
        """Whether the pairs that are shown have their own p-values by swaps."""
        return self.own_p_values == RANDOMIZATION


class JointComparison:
    """The systems that have a value on a metric: intervals by resamples, verdicts by swaps.

    `ranked` are their places in the panel, `differing` [S, S] the `unit`s that two of them differ
    in; `resampling` says how the resamples were found, which decide what swaps cannot.
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
        *,
        unit: str,
        resampling: str,
    ) -> None:
        self.metric, self.names, self.ranked, self.settings = metric, names, ranked, settings
        self.unit, self.resampling = unit, resampling
        self.alpha = 1.0 - settings.level + ROUNDING
        # with d units that differ no p is below 2^(1 - d), however coins fall
        self.least_p = np.minimum(1.0, 2.0 ** (1.0 - differing))
        self.values, self.resampled = metric.size(values), metric.size(resampled)
        self.sign = 1.0 if metric.direction == "maximize" else -1.0
        self.rank = rank_systems(self.sign * self.values)
        self.leader = int(np.argmin(self.rank))
        self.shares = compute_rank_shares(self.sign * self.resampled)
        self.differences = self._compare_family()

    @cached_property
    def widest(self) -> Array:
        """The largest statistic of each resample over all pairs."""
        return max_t_statistic(self.values, self.resampled)

    @property
    def has_smaller_family(self) -> bool:
        """Whether pairs with a named system are compared, which are not all pairs."""
        named = self.settings.against not in {AGAINST_ALL, AGAINST_LEADER}
        return named and len(self._list_family_pairs()[0]) < len(self._list_all_pairs()[0])

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

    def decide(self, exact: ExactTests, swapped: RandomizedDifferences | None = None) -> None:
        """Find p-values and who is significantly different: by swaps, or else by resamples.

        The leader was chosen from all pairs, so its pairs are adjusted for all of them; where these
        are too many for swaps, by resamples, but never below a pair's own p.
        """
        everyone, family, pairs = (
            self._list_all_pairs(),
            self._list_family_pairs(),
            self.list_swapped_pairs(),
        )
        known = self._list_known_p(exact)
        if swapped is None or not len(pairs[0]):
            swapped, found = None, self._resample_p_values()
        elif len(pairs[0]) == len(everyone[0]):
            found = swapped.compute_p_values()
        else:
            own = self._bound(swapped.compute_p_values().own, pairs, known)
            known[pairs] = known[pairs[::-1]] = own
            found = self._resample_p_values()
        whole = chosen = self._adjust(found, everyone, known)
        self.apart = whole.adjusted <= self.alpha
        if self.has_smaller_family:
            chosen = self._adjust_family(swapped, pairs, known)
            self.apart &= self._fill(family, chosen.adjusted[family] <= self.alpha)
        self.p, self.adjusted = chosen.own[family], chosen.adjusted[family]
        self.test = self._name_test(swapped)

    def _resample_p_values(self) -> PValues:
        """Return the p-values of all pairs by resamples, in steps down where that takes no time.

        Own p-values of pairs that are not shown are 0 where nobody asks for them.
        """
        pairs, found = self._list_all_pairs(), self.differences
        if self.settings.against == AGAINST_ALL:
            return PValues(found.p, found.adjusted)
        if self.settings.correction != "max_t":
            found = compare_pairs(self.values, self.resampled, *pairs, self.settings.level)
            return PValues(found.p, found.adjusted)
        order = np.argsort(self.rank, kind="stable")
        own = self._fill(self._list_family_pairs(), found.p, 0.0)[pairs]
        return PValues(
            own, compute_max_t_p_values(self.values[order], self.resampled[:, order], self.widest)
        )

    def _adjust_family(
        self, swapped: RandomizedDifferences | None, pairs: tuple[Array, Array], known: Array
    ) -> PValues:
        """Return the p-values of the pairs with a named system, adjusted for no others."""
        family = self._list_family_pairs()
        if swapped is None:
            found = PValues(self.differences.p, self.differences.adjusted)
            return self._adjust(found, family, known)
        inside = np.asarray(np.isin(pairs, family[1][:1]).any(axis=0))
        found = swapped.select(inside).compute_p_values()
        return self._adjust(found, (pairs[0][inside], pairs[1][inside]), known)

    def _list_known_p(self, exact: ExactTests) -> Array:
        """Return the p-values [S, S] of pairs that have an exact test; nan for the others."""
        known = np.full(self.least_p.shape, np.nan)
        place = {name: index for index, name in enumerate(self.names)}
        for names, by_metric in exact.items():
            if all(name in place for name in names):
                pair = [place[name] for name in names]
                known[pair, pair[::-1]] = by_metric[self.metric.expression].p
        return known

    def _bound(self, own: Array, pairs: tuple[Array, Array], known: Array) -> Array:
        """Return own p-values: known ones, and others not below what swaps can reach."""
        own = np.maximum(own, self.least_p[pairs])
        return np.where(np.isnan(known[pairs]), own, known[pairs])

    def _adjust(self, found: PValues, pairs: tuple[Array, Array], known: Array) -> PValues:
        """Return own and adjusted p-values as [S, S], 1 for pairs that are not among these."""
        own = self._bound(found.own, pairs, known)
        if self.settings.correction != "max_t":
            adjusted = CORRECTIONS.get(self.settings.correction, np.asarray)(own)
        else:
            adjusted = np.maximum(own, found.adjusted) if len(own) > 1 else own
        return PValues(self._fill(pairs, own), self._fill(pairs, adjusted))

    def _fill(self, pairs: tuple[Array, Array], column: Array, rest: float = 1.0) -> Array:
        """Return what pairs have as [S, S]."""
        matrix = np.full(self.least_p.shape, rest).astype(column.dtype)
        matrix[pairs] = matrix[pairs[::-1]] = column
        return matrix

    def _name_test(self, swapped: RandomizedDifferences | None) -> VerdictTest:
        suffix = " max-T" if self.settings.correction == "max_t" else ""
        resampling, swaps = f"{self.resampling}{suffix}", f"{RANDOMIZATION}{suffix}"
        if swapped is None:
            return VerdictTest(resampling, len(self.resampled), self.resampling, resampling)
        complete = len(swapped.observed) == len(self._list_all_pairs()[0])
        return VerdictTest(
            swaps if complete or self.has_smaller_family else resampling,
            swapped.resamples,
            RANDOMIZATION,
            swaps if complete else resampling,
        )

    # --- the leaderboard -------------------------------------------------------------------------

    def list_standings(self) -> list[dict[str, Any]]:
        """Return rank, rank interval, rank shares and compact letter display of each system."""
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
        """Return the compact letter display, which is of all pairs: there is none of fewer."""
        order = np.argsort(self.rank, kind="stable")
        shown = (
            None
            if len(self.names) > MANY_SYSTEMS or self.has_smaller_family
            else compact_letter_display(self.apart[np.ix_(order, order)])
        )
        if shown is None:
            return [None] * len(self.names)
        return [shown[place] for place in np.argsort(order)]

    def build_pairs(self) -> list[PairDifference]:
        """Return the pairs of the family."""
        found = self.differences
        columns = (found.first, found.second, found.value, found.low, found.high)
        rows = zip(*columns, self.p, self.adjusted, strict=True)
        return [self._build_pair(*row) for row in rows]

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
        few = self.select_undecidable(pairs)
        left_out = set(few)
        others = [pair for pair in pairs if pair not in left_out]
        return [
            *self._note_few_swaps(),
            *_note_disagreements(self.metric, others, self.settings.correction, self.resampling),
            *self._note_few_units(few),
        ]

    def select_undecidable(self, pairs: list[PairDifference]) -> list[PairDifference]:
        """Return the pairs that differ in so few units that no p-value can reach the level."""
        place = {name: index for index, name in enumerate(self.names)}
        return [
            pair
            for pair in pairs
            if pair.verdict != "identical"
            and self.least_p[place[pair.first], place[pair.second]] > self.alpha
        ]

    def _note_few_units(self, pairs: list[PairDifference]) -> list[str]:
        if not pairs:
            return []
        needed = 1 + math.floor(1.0 - math.log2(self.alpha))
        named = name_systems([name_pair(pair) for pair in pairs], "pairs")
        note = f"Too few {self.unit} differ for a verdict on {named}: with fewer than {needed} "
        note += f"no swap of predictions reaches p = {1 - self.settings.level:.2g}. "
        return [note + "The intervals are all that can be said."]

    def _note_few_swaps(self) -> list[str]:
        pairs = self._list_family_pairs() if self.has_smaller_family else self._list_all_pairs()
        tests = len(pairs[0])
        if self.test.resamples is None or self.settings.correction not in CORRECTIONS or not tests:
            return []
        least = 1.0 / (self.test.resamples + 1.0)
        if least <= (1 - self.settings.level) / tests:
            return []
        few = f"With {self.test.resamples:,} resamples no p-value is below {least:.2g}, so the "
        few += f"correction {self.settings.correction} for {tests:,} pairs may never reject: "
        needed = f"{math.ceil(tests / (1.0 - self.settings.level)):,} resamples"
        return [f"{few}take {'max_t' if self.test.has_swaps else needed}."]


def _note_disagreements(
    metric: Metric, pairs: list[PairDifference], correction: Correction, resampling: str
) -> list[str]:
    """Say why an interval excludes 0 where the verdict is inconclusive, or the other way round."""
    more = f"the correction {correction} asks for more than the interval, which is by max-T."
    less = f"the correction {correction} asks for less than the interval, which is by max-T."
    if correction in {"max_t", "none"}:
        more = f"intervals by {RESAMPLING_NAMES[resampling]} are approximate, and too narrow with "
        more += "few clusters or rare levels; swapping the predictions of the two systems gives "
        more += "such differences by chance too often."
    if correction == "max_t":
        less = "the test assumes no difference, which leaves less noise than the interval allows "
        less += "for, and it steps down."
    excluded = [pair for pair in pairs if pair.low > 0 or pair.high < 0]
    unsure = [name_pair(pair) for pair in excluded if pair.verdict == "inconclusive"]
    included = [pair for pair in pairs if pair.low <= 0 <= pair.high]
    decided = [name_pair(pair) for pair in included if pair.verdict in {"better", "worse"}]
    notes = []
    where = f"On {metric.expression} the interval of"
    if unsure:
        named = name_systems(unsure, "pairs")
        notes.append(f"{where} {named} excludes 0, but the verdict is inconclusive: {more}")
    if decided:
        named = name_systems(decided, "pairs")
        notes.append(f"{where} {named} includes 0, but the verdict is significant: {less}")
    return notes


def name_pair(pair: PairDifference) -> str:
    """Return a pair by the names of its systems."""
    return f"{pair.first} - {pair.second}"


def _decide_margin(worst: float, best: float, margin: float) -> str:
    """Say what the interval of first minus second, larger being better, leaves of a margin."""
    if -margin < worst and best < margin:
        return "equivalent"
    if worst > margin or best < -margin:
        return "second inferior" if worst > margin else "first inferior"
    if best < margin:
        return "second non-inferior"
    return "first non-inferior" if worst > -margin else "inconclusive"


def name_systems(names: list[str], noun: str = "systems") -> str:
    """Return systems (or pairs) by name, or how many they are where that is too long."""
    return join_names(names) if len(names) <= MOST_NAMED else f"{len(names)} {noun}"
