"""Test cases for data that have none: the items at random in parts of equal size."""

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NotApplicable
from ordinate.summaries import Panel

Array = NDArray[Any]
FEWEST_CASES = 2
MOST_ITEMS = 1_000_000_000  # that can be drawn without replacement


def split_into_cases(panel: Panel, cases: int, seed: int) -> Panel:
    """Return the panel with its items in so many groups at random, of equal size up to one item.

    Each item is in one group. Rows of equal items are shared out by how many go to each group.
    """
    if not panel.whole:
        raise NotApplicable(
            "Items with weights that are no whole counts cannot be split at random into test "
            "cases. Name the column of the test cases, or leave the weights out."
        )
    counts = panel.weights.astype(np.int64)
    total = int(counts.sum())
    whole = isinstance(cases, Integral) and not isinstance(cases, bool)
    if not (whole and FEWEST_CASES <= cases <= total):
        most = f"{FEWEST_CASES} to {total:,} (the items)"
        raise BadOption(f"The items are split into {most} test cases, not {cases!r}.")
    if total >= MOST_ITEMS:
        raise NotApplicable(f"{total:,} items are too many to be split. Name the test cases.")
    stream = np.random.SeedSequence(seed, spawn_key=(cases,))  # none of those that draw again
    shared = draw_case_sizes(counts, cases, np.random.default_rng(stream))
    group, row = np.nonzero(shared)
    items = shared[group, row]
    weights = items.astype(float)
    return replace(
        panel,
        rows=panel.rows[row],
        items=items,
        weights=weights,
        squares=weights.copy(),
        groups=group,
        group_values=tuple(range(1, cases + 1)),
    )


def draw_case_sizes(counts: Array, cases: int, rng: np.random.Generator) -> Array:
    """Return how many items of each row [cases, U] go to each group: drawn without replacement."""
    found = np.empty((cases, len(counts)), np.int64)
    left = counts.copy()
    for index in range(cases):
        size = int(left.sum()) // (cases - index)
        found[index] = rng.multivariate_hypergeometric(left, size, method="marginals")
        left -= found[index]
    return found
