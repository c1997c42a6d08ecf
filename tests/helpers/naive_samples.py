"""Samples on which naive definitions are compared."""

# The resamples need to be the same everywhere, not secret.
# ruff: noqa: S311

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from each_case import each_case


class Sample(NamedTuple):
    """Gold and predicted level indices on a declared scale."""

    gold: list[int]
    predicted: list[int]
    positions: tuple[float, ...]

    @property
    def levels(self) -> list[int]:
        return list(range(len(self.positions)))

    @property
    def occurring(self) -> list[int]:
        return sorted({*self.gold, *self.predicted})

    @property
    def places(self) -> tuple[list[float], list[float]]:
        return (
            [self.positions[level] for level in self.gold],
            [self.positions[level] for level in self.predicted],
        )


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)


def drawn(
    rng: random.Random,
    positions: Sequence[float],
    gold: Sequence[int],
    predicted: Sequence[int],
    size: int = 24,
) -> Sample:
    """Items whose prediction is often right; every allowed level occurs on its side."""
    truths = [*gold, *rng.choices(gold, k=size)]
    guesses = [
        truth if truth in predicted and rng.random() < 0.5 else rng.choice(predicted)
        for truth in truths
    ]
    spots = rng.sample(range(len(truths)), len(predicted))
    for level, spot in zip(predicted, spots, strict=True):
        guesses[spot] = level
    return Sample(truths, guesses, tuple(positions))


def draw_all() -> dict[str, Sample]:
    rng = random.Random(0)
    return {
        "all of four": drawn(rng, range(4), range(4), range(4)),
        "two levels": drawn(rng, range(2), range(2), range(2)),
        "ends absent": drawn(rng, range(5), [1, 2, 3], [1, 2, 3]),
        "middle absent": drawn(rng, range(5), [0, 1, 4], [0, 1, 4]),
        "gold never guessed": drawn(rng, range(4), range(4), [1, 2]),
        "guessed never gold": drawn(rng, range(5), [1, 3], [0, 1, 3, 4]),
        "many items": drawn(rng, range(6), range(6), range(6), size=90),
    }


def draw_gaps() -> dict[str, Sample]:
    rng = random.Random(0)
    return {
        "growing": drawn(rng, (0, 1, 3, 7), range(4), range(4)),
        "fractions": drawn(rng, (0, 0.1, 0.3, 1.5, 1.6), [0, 1, 2, 4], [0, 1, 3, 4]),
        "negative": drawn(rng, (-2.5, -1, 0.25, 4), range(4), [1, 2, 3]),
    }


SAMPLES = draw_all()


GAPS = draw_gaps()


on_samples = each_case("sample", SAMPLES)
on_gaps = each_case("sample", SAMPLES | GAPS)
