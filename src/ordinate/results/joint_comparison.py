"""Systems on one metric, compared jointly: intervals by the bootstrap, verdicts by swaps."""

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
from ordinate.inference.randomization import (
    PValues,
    RandomizedDifferences,
)
from ordinate.inference.system_differences import (
    SystemDifferences,
    compare_pairs,
    compute_rank_intervals,
    compute_rank_shares,
    find_significant_pairs,
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
RANDOMIZATION, BOOTSTRAP = "randomisation max-T", "bootstrap max-T"
BOTH = "bootstrap max-T, own p-values by randomisation"
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
    """The test behind verdicts, letters, rank intervals and adjusted p-values.

    `resamples` is None where all swaps were tried.
    """

    method: str
    resamples: int | None


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
    """Say what the interval of first minus second, larger being better, leave of a margin."""
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
