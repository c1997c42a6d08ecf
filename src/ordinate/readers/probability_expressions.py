"""What is summed up of rows of probabilities: their events, scores and ranks, as expressions."""

import math
from functools import reduce
from itertools import chain
from operator import add, and_

from ordinate.readers.expressions import (
    Expression,
    choose,
    column,
    constant,
    find_largest,
    join_by_or,
)
from ordinate.readers.items import WEIGHT
from ordinate.scale import Scale
from ordinate.summaries.probabilities import find_tolerance
from ordinate.summaries.probability_bins import Events
from ordinate.summaries.reliability import EPS, FINE_BINS, NUDGE, SCORE_NAMES

TOTAL, BEST, TOP = "total", "best", "top"  # of a row: sum, highest probability, its level
LEVEL, HIT = "level", "hit"  # of gold, and its probability
SCORE_PAIRS = [(i, j) for i in range(len(SCORE_NAMES)) for j in range(i, len(SCORE_NAMES))]


class ProbabilityExpressions:
    """Expressions over the cells of a row, cell0, cell1, …, in the order of the scale.

    `columns` are those that are made of them, by name; the `level` of gold is for others to add.
    """

    def __init__(self, scale: Scale, *, weighted: bool, renormalize: bool) -> None:
        self.scale, self.weighted, self.renormalize = scale, weighted, renormalize
        self.size = len(scale)
        self.given = [column(f"given{k}") for k in range(self.size)]
        self.p = [column(f"p{k}") for k in range(self.size)]
        self.columns = self._derive_columns() | self._derive_scores()

    def weigh(self, x: Expression | float) -> Expression:
        """Return a number times the weight of its item."""
        x = x if isinstance(x, Expression) else constant(x)
        return x * column(WEIGHT).to_number() if self.weighted else x

    # --- columns -----------------------------------------------------------------------------

    def _derive_columns(self) -> dict[str, Expression]:
        """Return numbers p0, p1, …, their sums from the lowest level on, the largest, its level."""
        total, last = column(TOTAL), self.size - 1
        total = choose(total > 0.0, total, 1.0)  # rows that do not count may be anything
        tops = [(x == column(BEST), k) for k, x in enumerate(self.p)]
        return {
            **{f"given{k}": column(f"cell{k}").to_number() for k in range(self.size)},
            TOTAL: reduce(add, self.given),
            **{f"p{k}": x / total if self.renormalize else x for k, x in enumerate(self.given)},
            **{f"below{k}": reduce(add, self.p[: k + 1]) for k in range(last)},
            BEST: find_largest(self.p),
            TOP: choose(*chain(*tops[:-1]), last),
        }

    def _derive_scores(self) -> dict[str, Expression]:
        """Return the scores, and what they are made of: differences, and what gold was given."""
        level, hit = column(LEVEL), column(HIT)
        gaps = {f"gap{k}": x - choose(level == k, 1.0, 0.0) for k, x in enumerate(self.p)}
        hits = [(level == k, x) for k, x in enumerate(self.p)]
        clipped = choose(hit < EPS, EPS, choose(hit > 1.0 - EPS, 1.0 - EPS, hit))
        gap = [column(name) for name in gaps]
        below = [reduce(add, gap[: k + 1]) for k in range(self.size - 1)]
        brier, rps = (reduce(add, [x * x for x in part]) for part in (gap, below))
        scores = (brier, constant(0.0) - clipped.ln(), rps)
        of_gold = {HIT: choose(*chain(*hits[:-1]), self.p[-1])}
        return gaps | of_gold | dict(zip(SCORE_NAMES, scores, strict=True))

    # --- conditions --------------------------------------------------------------------------

    def is_wrong(self) -> Expression:
        """Tell whether a row is none of probabilities: finite, at least 0, with a sum of 1."""
        gap = column(TOTAL) - 1.0
        tolerance = find_tolerance(len(self.given), renormalize=self.renormalize)
        negative = [x < 0.0 for x in self.given]
        return join_by_or([self.is_incomplete(), *negative, gap > tolerance, gap < -tolerance])

    def is_incomplete(self) -> Expression:
        """Tell whether a cell of a row is no finite number."""
        return join_by_or([x.is_missing() | ~x.is_finite() for x in self.given])

    def is_empty(self) -> Expression:
        """Tell whether a row has no number at all."""
        return reduce(and_, [_is_no_number(x) for x in self.given])

    # --- what is summed up, and by what --------------------------------------------------------

    def choose_label(self) -> Expression:
        """Return the label of the most probable level, None of an incomplete row."""
        levels = [(column(TOP) == k, label) for k, label in enumerate(self.scale.labels)]
        return choose(self.is_incomplete(), None, choose(*chain(*levels[:-1]), levels[-1][1]))

    def list_score_sums(self) -> dict[str, Expression]:
        """Return what `ProperScores` are the sums of."""
        hit, scores = column(HIT), [column(name) for name in SCORE_NAMES]
        once = [self.weigh(x) for x in scores]
        excess = constant(math.log(EPS)) - choose(hit > 0.0, hit, EPS).ln()
        return {
            **{f"once{k}": x for k, x in enumerate(once)},
            **{f"twice{k}": self.weigh(x) for k, x in enumerate(once)},
            **{f"product{i}{j}": once[i] * once[j] for i, j in SCORE_PAIRS},
            "clipped": choose(hit < EPS, 1.0, 0.0),
            "beyond": choose(hit < EPS, self.weigh(excess), 0.0),
            "impossible": choose(hit > 0.0, 0.0, self.weigh(1.0)),
        }

    def list_events(self, events: Events) -> list[tuple[Expression, Expression]]:
        """Return the probabilities of events, and whether they happened."""
        level = column(LEVEL)
        if events == "top":
            return [(column(BEST), column(TOP) == level)]
        if events == "levels":
            return [(p, level == k) for k, p in enumerate(self.p)]
        return [(column(f"below{k}"), level < k + 1) for k in range(self.size - 1)]

    def list_event_sums(self, f: Expression, happened: Expression) -> dict[str, Expression]:
        """Return what `ReliabilityBins` are the sums of, beside weights."""
        return {
            "f": self.weigh(f),
            "o": choose(happened, self.weigh(1.0), 0.0),
            "ff": self.weigh(f * f),
            "fo": choose(happened, self.weigh(f), 0.0),
        }

    def assign_rank(self) -> Expression:
        """Return the fine bin of the expected level."""
        place, last = (self._find_expected_level() + NUDGE).floor(), float(FINE_BINS - 1)
        return choose(place > last, last, place)

    def assign_place(self) -> Expression:
        """Return the expected level itself, in steps that no more than rounding makes."""
        return (self._find_expected_level() * (1.0 / NUDGE) + 0.5).floor()

    def _find_expected_level(self) -> Expression:
        """Return the expected level in fine bins."""
        at = (self.scale.positions - self.scale.positions[0]) / self.scale.span
        expected = reduce(add, [p * float(x) for p, x in zip(self.p, at, strict=True)])
        return expected * float(FINE_BINS)


def assign_bin(f: Expression, count: int) -> Expression:
    """Return the bin (lo, hi] of a probability, of which 0 is in the first; see `assign_bins`."""
    # Some engines make an integer of it, and of its products decimal numbers.
    nearest = (f * float(count) + 0.5).floor().to_number()
    below = (nearest > count - 0.5) | ~(f > nearest * (1.0 / count))
    return choose((nearest > 0.5) & below, nearest - 1.0, nearest)


def _is_no_number(x: Expression) -> Expression:
    return x.is_missing() | ~(x.is_finite() | x.is_infinite())
