"""What the naive definitions of metrics are made of, and where they are registered."""

# One signature serves all metrics, whatever they need of it.

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import wraps

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


def covariance(first: Sequence[Number], second: Sequence[Number]) -> Fraction:
    """The exact population covariance; 0 of nothing."""
    items = max(1, len(first))
    products = total(Fraction(a) * Fraction(b) for a, b in zip(first, second, strict=True))
    return products / items - total(first) * total(second) / items**2
