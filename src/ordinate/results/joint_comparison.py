"""Systems on one metric, compared jointly: intervals by resamples, verdicts by swaps or a law."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.inference import Estimate
from ordinate.inference.estimates import make_point_estimate
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
    DifferenceLaw,
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
)

Array = NDArray[Any]
ExactTests = Mapping[tuple[str, str], Mapping[str, TestResult]]  # by pair of names, by metric
MOST_NAMED = 5  # systems in a sentence
MOST_SWAPPED_PAIRS = MANY_SYSTEMS * (MANY_SYSTEMS - 1) // 2
ROUNDING = 1e-12  # of a level: a p-value of exactly 0.05 is significant at 0.95
RANDOMIZATION = "randomisation"
CASES = "Student's t"  # how means over cases in other samples are found
INFLUENCES, FEW_INFLUENCES = "delta", "t"  # the same of regression metrics
RESAMPLING_NAMES = {
    BOOTSTRAP: "bootstrap",
    JACKKNIFE: "the jackknife over clusters with Student's t",
    DELTA_METHOD: "the delta method",
    CASES: "Student's t over cases",
    INFLUENCES: "the delta method",
    FEW_INFLUENCES: "Student's t",
}
REVERSED = {"better": "worse", "worse": "better"}
CORRECTIONS = {"holm": holm, "bh": benjamini_hochberg, "by": benjamini_yekutieli}


@dataclass(frozen=True)
class PairDifference:
    """First minus second: an interval that holds for all pairs of the family at once, p-values.

    `verdict` says of the first: 'better', 'worse', 'inconclusive' or 'identical', and 'untested'
    where there is no p-value; `margin_verdict` says, if there is a margin, whether the two are
    'equivalent', which of them is 'inferior' or 'non-inferior' to the other, or 'inconclusive'.
    """

    metric: str
    first: str
    second: str
    difference: Estimate
    p: float
    p_adjusted: float
    verdict: str
    margin_verdict: str | None = None

    @property
    def name(self) -> str:
        """The names of its systems."""
        return f"{self.first} - {self.second}"

    def turn(self) -> "PairDifference":
        """Return second minus first; what a margin leaves names both, and stays."""
        gap = self.difference
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=replace(gap, value=-gap.value, low=-gap.high, high=-gap.low),
            verdict=REVERSED.get(self.verdict, self.verdict),
        )


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

    `ranked` are their places among all systems, `differing` [S, S] the `unit`s that two of them
    differ in; `resampling` says how the resamples were found, which decide what swaps cannot, as
    the `law` of differences says where it is known. Values are multiples of `scale`, so that what
    is lost in rounding does not depend on their unit. `reason` says why there is nothing but the
    values.
    """

    def __init__(
        self,
        metric: Metric,
        names: list[str],
        ranked: Array,
        values: Array,
        resampled: Array,
        settings: ComparisonSettings,
        *,
        unit: str,
        resampling: str,
        differing: Array | None = None,
        law: DifferenceLaw | None = None,
        scale: float = 1.0,
        reason: str | None = None,
    ) -> None:
        self.metric, self.names, self.ranked, self.settings = metric, names, ranked, settings
        self.unit, self.resampling = unit, resampling
        self.law, self.scale, self.reason = law, scale, reason
        self.alpha = 1.0 - settings.level + ROUNDING
        # with d units that differ no p is below 2^(1 - d), however coins fall
        apart = np.full((len(names),) * 2, np.inf) if differing is None else differing
        self.least_p = np.minimum(1.0, 2.0 ** (1.0 - apart))
        self.values, self.resampled = values, resampled
        self.sign = 1.0 if metric.direction == "maximize" else -1.0
        self.rank = rank_systems(self.sign * self.values)
        self.leader = int(np.argmin(self.rank))
        self.differences = self._compare_family()

    @cached_property
    def widest(self) -> Array:
        """The largest statistic of each resample over all pairs."""
        return max_t_statistic(self.values, self.resampled, self.law)

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
        return self._compare_pairs(self._list_family_pairs(), widest)

    def _compare_pairs(
        self, pairs: tuple[Array, Array], widest: Array | None = None
    ) -> SystemDifferences:
        level = self.settings.level
        return compare_pairs(
            self.values, self.resampled, *pairs, level, widest=widest, law=self.law
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
        if self.settings.correction != "max_t" or self.law is not None:
            found = self._compare_pairs(pairs)
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
        adjusted, tested = np.full(len(own), np.nan), ~np.isnan(own)
        if self.settings.correction != "max_t":
            correct = CORRECTIONS.get(self.settings.correction, np.asarray)
            adjusted[tested] = correct(own[tested])
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
        found: list[dict[str, Any]] = [{"rank": int(rank)} for rank in self.rank]
        if self.reason is not None:
            return found
        better = self.sign * (self.values[:, None] - self.values) > 0
        low, high = compute_rank_intervals(self.apart, better)
        shares = compute_rank_shares(self.sign * self.resampled)
        for place, letters in enumerate(self._assign_letters()):
            found[place] |= {
                "rank_low": int(low[place]),
                "rank_high": int(high[place]),
                "rank_shares": tuple(shares[place].tolist()),
                "compact_letter_display": letters,
            }
        return found

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
        value, low, high = (self.scale * x for x in (value, low, high))
        verdict = "inconclusive"
        if low == high == 0.0:
            verdict = "identical"
        elif math.isnan(p):
            verdict = "untested"
        elif adjusted <= self.alpha:
            verdict = "better" if self.sign * value > 0 else "worse"
        margin = self.settings.margins.get(self.metric.expression)
        worst, best = (low, high) if self.sign > 0 else (-high, -low)
        return PairDifference(
            metric=self.metric.expression,
            first=self.names[first],
            second=self.names[second],
            difference=self._estimate_difference(value, low, high),
            p=p,
            p_adjusted=adjusted,
            verdict=verdict,
            margin_verdict=None if margin is None else _decide_margin(worst, best, margin),
        )

    def _estimate_difference(self, value: float, low: float, high: float) -> Estimate:
        if math.isnan(low):
            same = "every resample gives the same difference"
            if self.law is not None:
                same = self.reason or "it is the same for all items"
            return make_point_estimate(value, same)
        return Estimate(value, low, high, self.resampling)

    def collect_notes(self, pairs: list[PairDifference]) -> list[str]:
        """Return what has to be said about the pairs."""
        if self.settings.against not in {AGAINST_ALL, AGAINST_LEADER, *self.names}:
            return [f"{self.settings.against} has no value, so nothing is compared with it."]
        few = self.select_undecidable(pairs)
        left_out = set(few)
        others = [pair for pair in pairs if pair not in left_out]
        return [
            *self._note_few_swaps(),
            *self._note_disagreements(others),
            *self._note_few_units(few),
        ]

    def _note_disagreements(self, pairs: Sequence[PairDifference]) -> list[str]:
        """Say why an interval excludes 0 where the verdict is inconclusive, or the reverse."""
        correction = self.settings.correction
        more = f"the correction {correction} asks for more than the interval, which is by max-T."
        less = f"the correction {correction} asks for less than the interval, which is by max-T."
        if correction in {"max_t", "none"}:
            more = f"intervals by {RESAMPLING_NAMES[self.resampling]} are approximate, and too "
            more += "narrow with few clusters or rare levels; swapping the predictions of the two "
            more += "systems gives such differences by chance too often."
        if correction == "max_t" and self.law is None:
            less = "the test assumes no difference, which leaves less noise than the interval "
            less += "allows for, and it steps down."
        elif correction == "max_t":
            less = "the test steps down, and the interval does not."
        unsure, decided = [], []
        for pair in pairs:
            low, high = pair.difference.low, pair.difference.high
            if (low > 0 or high < 0) and pair.verdict == "inconclusive":
                unsure.append(pair.name)
            if low <= 0 <= high and pair.verdict in {"better", "worse"}:
                decided.append(pair.name)
        where = f"On {self.metric.expression} the interval of"
        found = (
            (unsure, f"excludes 0, but the verdict is inconclusive: {more}"),
            (decided, f"includes 0, but the verdict is significant: {less}"),
        )
        return [f"{where} {name_systems(names, 'pairs')} {what}" for names, what in found if names]

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
        named = name_systems([pair.name for pair in pairs], "pairs")
        note = f"Too few {self.unit} differ for a verdict on {named}: with fewer than {needed} "
        note += f"no swap of predictions reaches p = {1 - self.settings.level:.2g}. "
        return [note + "The intervals are all that can be said."]

    def _note_few_swaps(self) -> list[str]:
        pairs = self._list_family_pairs() if self.has_smaller_family else self._list_all_pairs()
        tests = 0 if self.law is not None else len(pairs[0])
        if self.test.resamples is None or self.settings.correction not in CORRECTIONS or not tests:
            return []
        least = 1.0 / (self.test.resamples + 1.0)
        if least <= (1 - self.settings.level) / tests:
            return []
        few = f"With {self.test.resamples:,} resamples no p-value is below {least:.2g}, so the "
        few += f"correction {self.settings.correction} for {tests:,} pairs may never reject: "
        needed = f"{math.ceil(tests / (1.0 - self.settings.level)):,} resamples"
        return [f"{few}take {'max_t' if self.test.has_swaps else needed}."]


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
