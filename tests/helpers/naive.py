"""Every label metric, written out over the items: the oracle of the tests.

Each function states a definition as literally as it can: it walks over items, over pairs of
items, or over all paths through the table. Nothing here is fast, and nothing is shared with the
package. Positions are exact fractions, so sums and comparisons of distances do not round.

``NAIVE`` maps the name of a metric to ``function(gold, predicted, positions, **options)``.
``gold`` and ``predicted`` hold level indices, ``positions`` places each declared level on a line.
Where the catalogue gives a rule for unanswered items, an entry of ``predicted`` may be ``None``.
Undefined values are ``nan``.
"""

# One signature serves all metrics, whatever they need of it.
# ruff: noqa: ARG001

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache, wraps
from itertools import combinations, permutations, product

Levels = Sequence[int]
Answers = Sequence[int | None]
Positions = Sequence[Fraction]
Number = float | Fraction
Prox = Callable[[int, int], float]
Cell = tuple[int, int]

NAIVE: dict[str, Callable[..., float]] = {}


def naive(definition: Callable[..., float]) -> Callable[..., float]:
    """Register a definition under its own name and hand it plain numbers."""

    @wraps(definition)
    def plain(
        gold: Iterable[int],
        predicted: Iterable[int | None],
        positions: Iterable[float],
        **options: object,
    ) -> float:
        levels = [int(level) for level in gold]
        answers = [None if level is None else int(level) for level in predicted]
        if len(levels) != len(answers):
            raise ValueError(f"{len(levels)} gold levels, but {len(answers)} predictions")
        places = [Fraction(float(position)) for position in positions]
        return float(definition(levels, answers, places, **options))

    NAIVE[definition.__name__] = plain
    return plain


# Arithmetic


def total(values: Iterable[Number]) -> Fraction:
    """The exact sum."""
    return sum((Fraction(value) for value in values), Fraction(0))


def mean(values: Sequence[Number]) -> float:
    """The mean, rounded once; nan of nothing."""
    return float(total(values) / len(values)) if values else math.nan


def ratio(above: Number, below: Number) -> float:
    """A quotient that is nan when its denominator is zero."""
    return math.nan if below == 0 else float(above / below)


def share(part: int, whole: int) -> float:
    """A quotient that is 0 when its denominator is zero."""
    return part / whole if whole else 0.0


def harmonic(first: float, second: float) -> float:
    """The harmonic mean; 0 when both are 0."""
    return 0.0 if first == second == 0 else 2 * first * second / (first + second)


def sign(number: int) -> int:
    """-1, 0 or 1."""
    return (number > 0) - (number < 0)


def distance(one: int, other: int, positions: Positions) -> Fraction:
    """How far apart two levels lie."""
    return abs(positions[one] - positions[other])


def span(positions: Positions) -> Fraction:
    """The largest distance on the scale."""
    return positions[-1] - positions[0]


def by_gold_level(gold: Levels, values: Sequence[Number]) -> list[list[Number]]:
    """The values of the items of each gold level that occurs."""
    return [
        [value for level, value in zip(gold, values, strict=True) if level == wanted]
        for wanted in sorted(set(gold))
    ]


# Hits


def hits(gold: Levels, predicted: Answers) -> list[int]:
    """1 for a right item, 0 for a wrong or unanswered one."""
    return [int(g == p) for g, p in zip(gold, predicted, strict=True)]


@naive
def accuracy(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Share of right items."""
    return mean(hits(gold, predicted))


@naive
def accuracy_within(gold: Levels, predicted: Answers, positions: Positions, n: int = 1) -> float:
    """Share of items answered at most n levels off, whatever the gaps."""
    pairs = zip(gold, predicted, strict=True)
    return mean([int(p is not None and abs(g - p) <= n) for g, p in pairs])


@naive
def macro_accuracy(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Mean of the recalls of the gold levels."""
    return mean([mean(level) for level in by_gold_level(gold, hits(gold, predicted))])


@naive
def min_sensitivity(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Recall of the worst gold level."""
    recalls = [mean(level) for level in by_gold_level(gold, hits(gold, predicted))]
    return min(recalls, default=math.nan)


# Precision, recall, F1


def occurring(gold: Levels, predicted: Answers) -> list[int]:
    """The levels that occur in gold or in the predictions."""
    return sorted(set(gold) | {p for p in predicted if p is not None})


def recognised(gold: Levels, predicted: Answers, level: int) -> int:
    """How many items of a level were recognised."""
    return sum(g == p == level for g, p in zip(gold, predicted, strict=True))


def precision(gold: Levels, predicted: Answers, level: int) -> float:
    """Share of the items put at a level that belong there."""
    return share(recognised(gold, predicted, level), sum(p == level for p in predicted))


def recall(gold: Levels, predicted: Answers, level: int) -> float:
    """Share of the items of a level that were put there."""
    return share(recognised(gold, predicted, level), sum(g == level for g in gold))


def f1(gold: Levels, predicted: Answers, level: int) -> float:
    """Harmonic mean of the precision and the recall of a level."""
    return harmonic(precision(gold, predicted, level), recall(gold, predicted, level))


@naive
def precision_macro(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Mean precision of the levels that occur on either side."""
    return mean([precision(gold, predicted, level) for level in occurring(gold, predicted)])


@naive
def recall_macro(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Mean recall of the levels that occur on either side."""
    return mean([recall(gold, predicted, level) for level in occurring(gold, predicted)])


@naive
def f1_macro(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Mean F1 of the levels that occur on either side."""
    return mean([f1(gold, predicted, level) for level in occurring(gold, predicted)])


@naive
def f1_weighted(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Mean over items of the F1 of their gold level."""
    return mean([f1(gold, predicted, level) for level in gold])


@naive
def f1_micro(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Twice the right items over the answers plus the items."""
    answered = [p for p in predicted if p is not None]
    return ratio(2 * sum(hits(gold, predicted)), len(answered) + len(gold))


# Distances


def farthest(level: int, positions: Positions) -> Fraction:
    """The largest distance from a level to any level of the scale."""
    return max(distance(level, other, positions) for other in range(len(positions)))


def errors(gold: Levels, predicted: Answers, positions: Positions) -> list[Fraction]:
    """The distance of each item; an unanswered one stands as far off as it can."""
    return [
        farthest(g, positions) if p is None else distance(g, p, positions)
        for g, p in zip(gold, predicted, strict=True)
    ]


def squared_errors(gold: Levels, predicted: Answers, positions: Positions) -> list[Fraction]:
    """The squared distance of each item."""
    return [error**2 for error in errors(gold, predicted, positions)]


@naive
def mae(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Mean distance."""
    return mean(errors(gold, predicted, positions))


@naive
def mse(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Mean squared distance."""
    return mean(squared_errors(gold, predicted, positions))


@naive
def rmse(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Root of the mean squared distance."""
    return math.sqrt(mean(squared_errors(gold, predicted, positions)))


@naive
def bias(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Mean of the predicted minus the gold position; silence is the mean of the farthest."""
    shifts = []
    for g, p in zip(gold, predicted, strict=True):
        every = [place - positions[g] for place in positions]
        largest = max(abs(shift) for shift in every)
        worst = [shift for shift in every if abs(shift) == largest]
        shifts.append(sum(worst) / len(worst) if p is None else every[p])
    return mean(shifts)


@naive
def macro_mae(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Mean over gold levels of the level's mean distance."""
    levels = by_gold_level(gold, errors(gold, predicted, positions))
    return mean([mean(level) for level in levels])


@naive
def macro_mse(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Mean over gold levels of the level's mean squared distance."""
    levels = by_gold_level(gold, squared_errors(gold, predicted, positions))
    return mean([mean(level) for level in levels])


@naive
def max_mae(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Mean distance of the worst gold level."""
    levels = by_gold_level(gold, errors(gold, predicted, positions))
    return max((mean(level) for level in levels), default=math.nan)


@naive
def ordinal_distance_linear(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """1 minus the mean distance over the largest one."""
    return 1 - ratio(mean(errors(gold, predicted, positions)), span(positions))


@naive
def ordinal_distance_quadratic(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """1 minus the mean squared distance over the largest one."""
    return 1 - ratio(mean(squared_errors(gold, predicted, positions)), span(positions) ** 2)


@naive
def expected_cost(
    gold: Levels,
    predicted: Answers,
    positions: Positions,
    *,
    matrix: Sequence[Sequence[float]],
) -> float:
    """Mean cost, rows gold; an unanswered item costs the dearest entry of its row."""
    pairs = zip(gold, predicted, strict=True)
    return mean([float(max(matrix[g]) if p is None else matrix[g][p]) for g, p in pairs])


# Threshold losses

PENALTIES: dict[str, Callable[[float], float]] = {
    "hinge": lambda margin: max(0.0, 1.0 - margin),
    "logistic": lambda margin: math.log1p(math.exp(-margin)),
    "zero_one": lambda margin: float(margin < 0),
}


def thresholds(gold: int, top: int, kind: str) -> list[int]:
    """The thresholds that count: all of them, or those next to the gold level."""
    return [k for k in range(top) if kind == "all" or k in (gold - 1, gold)]


def margin(gold: int, answer: int, threshold: int) -> float:
    """How far 2 * answer lies on gold's side of the threshold at 2 * (k + 1/2)."""
    side = 1 if gold > threshold else -1
    return side * (2 * answer - 2 * (threshold + 0.5))


@naive
def rennie_srebro(
    gold: Levels,
    predicted: Answers,
    positions: Positions,
    *,
    kind: str = "all",
    penalty: str = "hinge",
) -> float:
    """Mean over items of the summed penalties of the thresholds; it counts levels."""
    if kind not in {"all", "immediate"}:
        raise ValueError(kind)
    top = len(positions) - 1
    losses = []
    for g, p in zip(gold, predicted, strict=True):
        worst = 0 if g > top - g else top
        answer = worst if p is None else p
        margins = [margin(g, answer, k) for k in thresholds(g, top, kind)]
        losses.append(math.fsum(PENALTIES[penalty](m) for m in margins))
    return mean(losses)


# Agreement beyond chance


def disagreement(one: int, other: int, positions: Positions, power: float) -> Number:
    """The distance to a power; to the power 0 it is 1 for any two different levels."""
    return Fraction(0) if one == other else distance(one, other, positions) ** power


@naive
def weighted_kappa(
    gold: Levels, predicted: Levels, positions: Positions, power: float = 2
) -> float:
    """1 minus the disagreement of the items over that of every gold with every prediction."""
    pairs = zip(gold, predicted, strict=True)
    observed = mean([disagreement(g, p, positions, power) for g, p in pairs])
    chance = mean([disagreement(g, p, positions, power) for g, p in product(gold, predicted)])
    return 1 - ratio(observed, chance)


@naive
def cohen_kappa(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Kappa with every mistake equal."""
    return weighted_kappa(gold, predicted, positions, power=0)


@naive
def linear_kappa(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Kappa with mistakes that weigh their distance."""
    return weighted_kappa(gold, predicted, positions, power=1)


@naive
def quadratic_kappa(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Kappa with mistakes that weigh their squared distance."""
    return weighted_kappa(gold, predicted, positions, power=2)


def agreement(one: int, other: int, positions: Positions, weights: str) -> Fraction:
    """Credit for two levels: 1 when equal, 0 at the two ends of the scale."""
    if weights == "identity":
        return Fraction(one == other)
    power = {"linear": 1, "quadratic": 2}[weights]
    return 1 - (distance(one, other, positions) / span(positions)) ** power


@naive
def gwet_ac2(
    gold: Levels, predicted: Levels, positions: Positions, weights: str = "quadratic"
) -> float:
    """Weighted agreement beyond Gwet's chance agreement, over the declared scale."""
    scale = range(len(positions))
    if not gold or len(scale) < 2:
        return math.nan
    pairs = list(zip(gold, predicted, strict=True))
    observed = total(agreement(g, p, positions, weights) for g, p in pairs) / len(pairs)
    credit = total(agreement(i, j, positions, weights) for i, j in product(scale, scale))
    pooled = [*gold, *predicted]
    used = [Fraction(pooled.count(level), len(pooled)) for level in scale]
    chance = credit / (len(scale) * (len(scale) - 1)) * total(pi * (1 - pi) for pi in used)
    return ratio(observed - chance, 1 - chance)


def values_between(pooled: Levels, one: int, other: int) -> Fraction:
    """How many values lie from one level to the other, the two end levels counted half."""
    low, high = min(one, other), max(one, other)
    inside = sum(low <= value <= high for value in pooled)
    return inside - Fraction(pooled.count(one) + pooled.count(other), 2)


@naive
def krippendorff_alpha(
    gold: Levels, predicted: Levels, positions: Positions, level: str = "ordinal"
) -> float:
    """1 minus the disagreement within items over that between any two values."""
    pooled = [*gold, *predicted]
    difference: Callable[[int, int], Number] = {
        "nominal": lambda i, j: Fraction(i != j),
        "ordinal": lambda i, j: values_between(pooled, i, j) ** 2,
        "interval": lambda i, j: distance(i, j, positions) ** 2,
    }[level]
    cells = {(i, j): difference(i, j) for i, j in product(set(pooled), repeat=2)}
    observed = mean([cells[pair] for pair in zip(gold, predicted, strict=True)])
    chance = mean([cells[pair] for pair in permutations(pooled, 2)])
    return 1 - ratio(observed, chance)


@naive
def mcc(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Correlation of the level indicators, summed over the levels."""
    levels = range(len(positions))
    golds = [[int(g == level) for g in gold] for level in levels]
    answers = [[int(p == level) for p in predicted] for level in levels]
    shared = total(covariance(g, p) for g, p in zip(golds, answers, strict=True))
    own = total(covariance(g, g) for g in golds) * total(covariance(p, p) for p in answers)
    return ratio(shared, math.sqrt(own))


# Correlation of numbers


def covariance(first: Sequence[Number], second: Sequence[Number]) -> Fraction:
    """The exact population covariance; 0 of nothing."""
    items = max(1, len(first))
    products = total(Fraction(a) * Fraction(b) for a, b in zip(first, second, strict=True))
    return products / items - total(first) * total(second) / items**2


def correlation(first: Sequence[Number], second: Sequence[Number]) -> float:
    """Pearson's correlation of two columns; nan when one is constant."""
    spread = covariance(first, first) * covariance(second, second)
    return ratio(covariance(first, second), math.sqrt(spread))


def placed(levels: Levels, positions: Positions) -> list[Fraction]:
    """The position of each item."""
    return [positions[level] for level in levels]


def mid_ranks(levels: Levels) -> list[Fraction]:
    """The rank of each item, the mean rank among equals."""
    return [
        sum(other < level for other in levels) + Fraction(1 + levels.count(level), 2)
        for level in levels
    ]


@naive
def pearson(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Correlation of the positions."""
    return correlation(placed(gold, positions), placed(predicted, positions))


@naive
def spearman(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Correlation of the mid-ranks."""
    return correlation(mid_ranks(gold), mid_ranks(predicted))


@naive
def ccc(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Lin's concordance of the positions, with population moments."""
    x, y = placed(gold, positions), placed(predicted, positions)
    shift = (total(x) - total(y)) / max(1, len(x))
    return ratio(2 * covariance(x, y), covariance(x, x) + covariance(y, y) + shift**2)


@naive
def cosine(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Cosine of the two columns of positions, the lowest default position being 1."""
    x = [1 + place for place in placed(gold, positions)]
    y = [1 + place for place in placed(predicted, positions)]
    lengths = total(a * a for a in x) * total(b * b for b in y)
    return ratio(total(a * b for a, b in zip(x, y, strict=True)), math.sqrt(lengths))


# Order of pairs of items


def pair_signs(gold: Levels, predicted: Levels) -> list[tuple[int, int]]:
    """For every pair of items, how gold orders it and how the predictions do."""
    items = zip(gold, predicted, strict=True)
    return [(sign(g - h), sign(p - q)) for (g, p), (h, q) in combinations(items, 2)]


def concordance(signs: Iterable[tuple[int, int]]) -> int:
    """Pairs in the same order minus pairs in the opposite order."""
    return sum(g * p for g, p in signs)


@naive
def kendall_tau_a(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Concordance over all pairs."""
    signs = pair_signs(gold, predicted)
    return ratio(concordance(signs), len(signs))


@naive
def kendall_tau_b(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Concordance over the geometric mean of the pairs each side orders."""
    signs = pair_signs(gold, predicted)
    ordered = sum(g != 0 for g, _ in signs) * sum(p != 0 for _, p in signs)
    return ratio(concordance(signs), math.sqrt(ordered))


@naive
def kendall_tau_c(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Concordance over its largest value in a table of so many occurring levels."""
    smaller = min(len(set(gold)), len(set(predicted)))
    largest = Fraction(len(gold) ** 2 * (smaller - 1), max(1, 2 * smaller))
    return ratio(concordance(pair_signs(gold, predicted)), largest)


@naive
def goodman_kruskal_gamma(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Concordance over the pairs that both sides order."""
    signs = pair_signs(gold, predicted)
    return ratio(concordance(signs), sum(g * p != 0 for g, p in signs))


@naive
def somers_d(gold: Levels, predicted: Levels, positions: Positions, given: str = "gold") -> float:
    """Concordance over the pairs that the given side orders."""
    signs = pair_signs(gold, predicted)
    side = {"gold": 0, "predicted": 1}[given]
    return ratio(concordance(signs), sum(pair[side] != 0 for pair in signs))


def kept_order(stated: Levels, checked: Levels) -> float:
    """Mean over items of the share of their stated strict orders that the other side has."""
    items = list(zip(stated, checked, strict=True))
    shares = []
    for level, own in items:
        others = [(sign(level - s), sign(own - c)) for s, c in items if s != level]
        shares.append(ratio(sum(s == c for s, c in others), len(others)))
    return math.nan if len(set(stated)) < 2 else mean(shares)


@naive
def reliability(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """How much of the predicted order gold has."""
    return kept_order(predicted, gold)


@naive
def sensitivity(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """How much of the gold order the predictions have."""
    return kept_order(gold, predicted)


@naive
def reliability_sensitivity_f(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Harmonic mean of the two."""
    return harmonic(kept_order(predicted, gold), kept_order(gold, predicted))


# Clusters


def entropy(levels: Levels) -> float:
    """Mean information of an item's level, in bits."""
    return -mean([math.log2(levels.count(level) / len(levels)) for level in levels])


@naive
def mutual_information(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Mean over items of log2 of the joint share over the product of the shares."""
    items = list(zip(gold, predicted, strict=True))
    lifts = [
        Fraction(items.count((g, p)) * len(items), gold.count(g) * predicted.count(p))
        for g, p in items
    ]
    return mean([math.log2(lift) for lift in lifts])


@naive
def normalized_mutual_information(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Mutual information over the mean of the two entropies."""
    shared = mutual_information(gold, predicted, positions)
    return ratio(shared, (entropy(gold) + entropy(predicted)) / 2)


def largest_parts(clusters: Levels, categories: Levels) -> float:
    """Share of the items that belong to the main category of their cluster."""
    items = list(zip(clusters, categories, strict=True))
    main = [max(items.count((c, k)) for k in set(categories)) for c in set(clusters)]
    return ratio(sum(main), len(items))


@naive
def purity(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Share of the items in the main gold level of their predicted level."""
    return largest_parts(predicted, gold)


@naive
def inverse_purity(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Share of the items in the main predicted level of their gold level."""
    return largest_parts(gold, predicted)


@naive
def purity_f(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Harmonic mean of the two purities."""
    return harmonic(largest_parts(predicted, gold), largest_parts(gold, predicted))


# Paths through the table


def paths(levels: int, start: Cell = (0, 0)) -> Iterator[list[Cell]]:
    """All paths from a cell to the last one by steps right, down or both."""
    row, column = start
    if row == column == levels - 1:
        yield [start]
    for down, right in ((0, 1), (1, 0), (1, 1)):
        if row + down < levels and column + right < levels:
            for rest in paths(levels, (row + down, column + right)):
                yield [start, *rest]


def counts(gold: Levels, predicted: Levels, levels: int) -> dict[Cell, int]:
    """How many items each cell of the table holds."""
    items = list(zip(gold, predicted, strict=True))
    return {cell: items.count(cell) for cell in product(range(levels), range(levels))}


@naive
def oci(
    gold: Levels,
    predicted: Levels,
    positions: Positions,
    *,
    beta1: float = 0.75,
    gamma: float = 1,
) -> float:
    """The cheapest path: what it misses of the table plus how far off it runs."""
    if not gold or len(positions) < 2:
        return math.nan
    table = counts(gold, predicted, len(positions))
    spread = {cell: float(n * distance(*cell, positions) ** gamma) for cell, n in table.items()}
    whole = len(gold) + math.fsum(spread.values()) ** (1 / gamma)
    beta = beta1 / (len(gold) * float(span(positions)) ** gamma)
    costs = [
        1 - sum(table[c] for c in path) / whole + beta * math.fsum(spread[c] for c in path)
        for path in paths(len(positions))
    ]
    return float(min(costs))


def lowest_area(lines: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """The integral over [0, 1] of the lowest of the lines height + t * slope."""
    distinct = set(lines)
    t = area = Fraction(0)
    while t < 1:
        now = t
        height, slope = min(distinct, key=lambda line: (line[0] + now * line[1], line[1]))
        crossings = [(h - height) / (slope - s) for h, s in distinct if s < slope]
        t = min([Fraction(1), *crossings])
        area += (t - now) * (height + slope * (now + t) / 2)
    return area


@naive
def uoc(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """The cheapest path of the row shares, averaged over the price of distance in [0, 1]."""
    if not gold:
        return math.nan
    table = counts(gold, predicted, len(positions))
    rows = {cell: Fraction(n, max(1, gold.count(cell[0]))) for cell, n in table.items()}
    spread = {cell: part * distance(*cell, positions) for cell, part in rows.items()}
    filled = len(set(gold))
    whole = filled + total(spread.values())
    lines = (
        (1 - total(rows[c] for c in path) / whole, total(spread[c] for c in path) / filled)
        for path in paths(len(positions))
    )
    return float(lowest_area(lines))


# Closeness


def information(probability: Fraction) -> float:
    """Information of an event, in bits."""
    return math.log2(1 / probability)


def between(gold: Levels, answer: int, truth: int) -> Fraction:
    """Share of the gold items from the answer to the truth, those at the answer counted half."""
    low, high = min(answer, truth), max(answer, truth)
    passed = sum(low <= x <= high and x != answer for x in gold)
    return (passed + Fraction(gold.count(answer), 2)) / len(gold)


def nearer(gold: Levels, answer: int, truth: int, apart: Callable[[int, int], Number]) -> Fraction:
    """Share of the gold items nearer to the truth than the answer is, equals counted half."""
    limit = apart(answer, truth)
    equal = [math.isclose(apart(x, truth), limit, rel_tol=1e-9) for x in gold]
    strict = [not same and apart(x, truth) < limit for x, same in zip(gold, equal, strict=True)]
    return (sum(strict) + Fraction(sum(equal), 2)) / len(gold)


def closeness(gold: Levels, predicted: Answers, prox: Prox) -> float:
    """Proximity reached over the proximity of gold to itself; no answer reaches none."""
    near = cache(prox)
    pairs = zip(gold, predicted, strict=True)
    reached = math.fsum(near(p, g) for g, p in pairs if p is not None)
    return ratio(reached, math.fsum(near(g, g) for g in gold))


@naive
def cem_ord(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Closeness at ordinal scale."""
    return closeness(gold, predicted, lambda i, j: information(between(gold, i, j)))


@naive
def cem_ord_flat(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Closeness at ordinal scale, with probabilities instead of information."""
    return closeness(gold, predicted, lambda i, j: float(1 - between(gold, i, j)))


@naive
def cem_nom(gold: Levels, predicted: Answers, positions: Positions, ties: str = "literal") -> float:
    """Closeness at nominal scale."""
    prox: Prox = {
        "literal": lambda i, j: information(Fraction(gold.count(j), len(gold))) if i == j else 0.0,
        "half": lambda i, j: information(nearer(gold, i, j, lambda a, b: float(a != b))),
    }[ties]
    return closeness(gold, predicted, prox)


@naive
def cem_int(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Closeness at interval scale."""

    def prox(answer: int, truth: int) -> float:
        return information(nearer(gold, answer, truth, lambda a, b: distance(a, b, positions)))

    return closeness(gold, predicted, prox)


@naive
def cem_ord_chance_corrected(gold: Levels, predicted: Answers, positions: Positions) -> float:
    """Closeness beyond that of every answer paired with every gold item."""
    near = cache(lambda i, j: information(between(gold, i, j)))
    answered = [p for p in predicted if p is not None]
    reached = math.fsum(near(p, g) for g, p in product(gold, answered))
    chance = ratio(reached, len(gold) * math.fsum(near(g, g) for g in gold))
    return ratio(cem_ord(gold, predicted, positions) - chance, 1 - chance)


# Level distributions


def differences(gold: Levels, predicted: Levels, levels: int) -> list[Fraction]:
    """For each level, its predicted share minus its gold share."""
    return [Fraction(predicted.count(k) - gold.count(k), len(gold)) for k in range(levels)]


@naive
def nmd(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Area between the two cumulative distributions over the length of the scale."""
    if not gold:
        return math.nan
    shares = differences(gold, predicted, len(positions))
    steps = [
        (positions[k + 1] - positions[k]) * abs(total(shares[: k + 1]))
        for k in range(len(positions) - 1)
    ]
    return ratio(total(steps), span(positions))


@naive
def rnod(gold: Levels, predicted: Levels, positions: Positions) -> float:
    """Root of the mean over gold levels of the distance-weighted squared differences."""
    if not gold:
        return math.nan
    shares = differences(gold, predicted, len(positions))
    weighted = [
        total(distance(i, j, positions) * part**2 for j, part in enumerate(shares))
        for i in sorted(set(gold))
    ]
    return math.sqrt(ratio(total(weighted) / len(weighted), span(positions)))
