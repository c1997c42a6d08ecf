"""Naive definitions: hits, precision and recall, distances, agreement beyond chance."""

# One signature serves all metrics, whatever they need of it.
# ruff: noqa: ARG001

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations, product

from naive_arithmetic import (
    Answers,
    Levels,
    Number,
    Positions,
    by_gold_level,
    covariance,
    distance,
    harmonic,
    mean,
    naive,
    ratio,
    share,
    span,
    total,
)

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


@naive
def scott_pi(
    gold: Levels, predicted: Levels, positions: Positions, weights: str = "quadratic"
) -> float:
    """Weighted agreement beyond that of any two of all labels, drawn with replacement."""
    pooled = [*gold, *predicted]
    if not pooled:
        return math.nan
    pairs = zip(gold, predicted, strict=True)
    observed = mean([agreement(g, p, positions, weights) for g, p in pairs])
    chance = mean([agreement(i, j, positions, weights) for i, j in product(pooled, pooled)])
    return ratio(observed - chance, 1 - chance)


@naive
def brennan_prediger(
    gold: Levels, predicted: Levels, positions: Positions, weights: str = "quadratic"
) -> float:
    """Weighted agreement beyond that of any two levels of the declared scale."""
    scale = range(len(positions))
    if not gold:
        return math.nan
    pairs = zip(gold, predicted, strict=True)
    observed = mean([agreement(g, p, positions, weights) for g, p in pairs])
    chance = mean([agreement(i, j, positions, weights) for i, j in product(scale, scale)])
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
