"""Many tests at once: corrections of p-values, and the compact letter display."""

import string
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
MOST_LETTERS = 100


def holm(p: ArrayLike) -> Array:
    """Return p-values adjusted by Holm: any error at all is rare.

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    return _adjust_ranked(p, lambda p, rank: np.maximum.accumulate(p * (len(p) - rank + 1)))


def benjamini_hochberg(p: ArrayLike) -> Array:
    """Return p-values adjusted by Benjamini and Hochberg: few of the findings are errors."""
    return _adjust_ranked(p, lambda p, rank: _accumulate_minimum(p * len(p) / rank))


def benjamini_yekutieli(p: ArrayLike) -> Array:
    """Return p-values adjusted by Benjamini and Yekutieli: the same under any dependence."""
    return _adjust_ranked(
        p, lambda p, rank: _accumulate_minimum(p * len(p) / rank * (1.0 / rank).sum())
    )


def _adjust_ranked(p: ArrayLike, adjust: Callable[[Array, Array], Array]) -> Array:
    """Adjust p-values from the least to the largest, and put them back in their places."""
    values = np.asarray(p, float)
    order = np.argsort(values, kind="stable")
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(1.0, adjust(values[order], np.arange(1, len(values) + 1)))
    return adjusted


def _accumulate_minimum(ranked: Array) -> Array:
    return np.minimum.accumulate(ranked[::-1])[::-1]


def compact_letter_display(apart: Array) -> list[str] | None:
    """Return a compact letter display: systems that share a letter are not significantly different.

    `apart` [S, S] says which are significantly different; systems come best first. Every set of
    systems starts as one letter, and is split by each pair that is significantly different (insert
    and absorb). Where that takes too many letters to be of use there are none.

    >>> compact_letter_display(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], bool))
    ['a', 'ab', 'b']
    """
    groups: list[frozenset[int]] = [frozenset(range(len(apart)))]
    for first, second in zip(*np.nonzero(np.triu(apart)), strict=True):
        both = [g for g in groups if first in g and second in g]
        rest = [g for g in groups if not (first in g and second in g)]
        split = {g - {int(drop)} for g in both for drop in (first, second)}
        groups = rest + [
            g
            for g in sorted(split, key=len, reverse=True)
            if not any(g < other for other in (*rest, *split)) and g not in rest
        ]
        if len(groups) > MOST_LETTERS:
            return None
    groups.sort(key=sorted)
    return [
        "".join(_format_letter(index) for index, group in enumerate(groups) if system in group)
        for system in range(len(apart))
    ]


def _format_letter(index: int) -> str:
    """Return a, b, … z, then (27), (28) and so on."""
    return string.ascii_lowercase[index] if index < 26 else f"({index + 1})"
