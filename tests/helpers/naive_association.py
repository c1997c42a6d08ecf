"""Naive definitions: correlation, order, clusters, paths, closeness, distributions of levels."""

# One signature serves all metrics, whatever they need of it.
# ruff: noqa: ARG001

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, product

from naive_arithmetic import (
    Answers,
    Cell,
    Levels,
    Number,
    Positions,
    Prox,
    covariance,
    distance,
    harmonic,
    mean,
    naive,
    ratio,
    sign,
    span,
    total,
)

# Correlation of numbers


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
