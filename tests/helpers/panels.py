"""Several systems on the same items, as lists of items: what the tests of comparisons share.

Levels are indices, None is no answer. Nothing here counts, swaps or resamples with the package.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from naive import NAIVE
from numpy.typing import NDArray
from strategies import scale_of

from ordinate.scale import Scale
from ordinate.scale.encoding import factorize_column
from ordinate.summaries import PairedPredictions, Panel

Array = NDArray[Any]
Answers = Sequence["int | None"]


def labels(levels: Answers) -> list["str | None"]:
    """The labels of levels on the scales of `strategies`."""
    return [None if level is None else f"L{int(level)}" for level in levels]


def by_label(systems: Mapping[str, Answers]) -> dict[str, list["str | None"]]:
    """Columns of labels by system."""
    return {name: labels(answers) for name, answers in systems.items()}


def paired_of(scale: Scale, cells: Array) -> PairedPredictions:
    """The pairs of counts [K, K + 1, K + 1] of gold and two answers; the last answer is none."""
    at = np.nonzero(cells)
    return PairedPredictions(scale, *at, cells[at], cells[at])


def dense(pairs: PairedPredictions) -> tuple[Array, Array]:
    """Items and weights [..., K, K + 1, K + 1] of pairs, groups first where there are any."""
    size = len(pairs.scale)
    groups = () if pairs.groups is None else (pairs.group_count,)
    found = np.zeros((2, *groups, size, size + 1, size + 1))
    at = (pairs.gold, pairs.first_predictions, pairs.second_predictions)
    at = at if pairs.groups is None else (pairs.groups, *at)
    found[:, *at] = [pairs.items, pairs.weights]
    return found[0], found[1]


def panel_of(
    gold: Sequence[int],
    systems: Mapping[str, Answers],
    size: int,
    *,
    positions: "list[float] | None" = None,
    weights: Any = None,
    groups: "Sequence[Any] | None" = None,
    missing: Any = "worst",
) -> Panel:
    """The panel of lists of levels."""
    units = None if groups is None else factorize_column(list(groups))
    scale = scale_of(size, positions)
    return Panel.of(labels(gold), by_label(systems), scale, weights, units, missing)


def sampled(size: int, n: int, seed: int, noises: Sequence[float]) -> tuple[list, dict]:
    """Gold levels of n items, and a system for each noise: s0, s1, …"""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, size + 1.0)
    gold = rng.choice(size, n, p=shares / shares.sum())
    systems = {}
    for index, noise in enumerate(noises):
        seen = np.rint(gold + rng.normal(0.0, noise, n))
        systems[f"s{index}"] = np.clip(seen, 0, size - 1).astype(int).tolist()
    return gold.tolist(), systems


@cache
def _value(name: str, items: tuple, positions: tuple) -> float:
    gold = [g for g, _ in items]
    answers = [None if p < 0 else p for _, p in items]
    return NAIVE[name](gold, answers, positions)


def value(name: str, gold: Sequence[int], answers: Answers, scale: Scale) -> float:
    """A metric over items; the order of the items does not matter, so each set is tried once."""
    items = sorted((g, -1 if p is None else p) for g, p in zip(gold, answers, strict=True))
    return _value(name, tuple(items), scale.at)


def gap(name: str, gold: Sequence[int], one: Answers, other: Answers, scale: Scale) -> float:
    """How far two systems are apart: of the bias, in size."""
    both = (value(name, gold, answers, scale) for answers in (one, other))
    first, second = map(abs, both) if name == "bias" else both
    return math.nan if math.isnan(first) or math.isnan(second) else abs(first - second)
