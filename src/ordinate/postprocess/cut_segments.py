"""Where to cut items that are in the order of their scores: programs that find the best places.

A place is a number of distinct scores: a cut at place u has u of them below it. `below` [U + 1, K]
is the weight of each gold level below each place. K levels need K - 1 places that do not fall; two
that are equal leave the level between them without items.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Worth = Callable[[Floats], Floats]

TIE_TOLERANCE = 1e-13  # of the largest sum: what rounding alone may set apart
MOST_CELLS = 1 << 20  # looked at together


def tabulate_segments(below: Floats, places: Places) -> Floats:
    """Return the tables [..., K, K], rows gold, of cuts at places [..., K - 1]."""
    ends = np.empty((*places.shape[:-1], places.shape[-1] + 2), np.intp)
    ends[..., 0], ends[..., 1:-1], ends[..., -1] = 0, places, len(below) - 1
    return np.swapaxes(np.diff(below[ends], axis=-2), -1, -2)


def maximise_cell_credit(credit: Floats, below: Floats) -> Places:
    """Return the places with the largest Σ_ij credit_ij n_ij, in O(U K).

    Moving the cut between two levels up by one score gives its items to the lower level, so each
    cut earns on its own, and the cuts only have to rise: a running maximum for each is enough.
    Of equally good places it returns the lowest.
    """
    earned = below @ (credit[:, :-1] - credit[:, 1:])
    sums = np.empty((earned.shape[1], len(below)))
    highest: Any = 0.0
    for k, here in enumerate(sums):
        np.add(earned[:, k], highest, out=here)
        highest = np.maximum.accumulate(here)
    room = TIE_TOLERANCE * float(np.abs(earned).max(initial=0.0))
    places, end = np.empty(len(sums), np.intp), len(below)
    for k in reversed(range(len(sums))):
        here = sums[k, :end]
        places[k] = np.argmax(here >= here.max() - room)
        end = int(places[k]) + 1
    return places


def maximise_column_worth(worth: Worth, below: Floats) -> Places:
    """Return the places with the largest sum of what each column is worth, in O(U² K).

    `worth` takes the weights [K, S, E] by gold level of the items between S places and E others,
    and returns what they are worth as the column of each level [K, S, E], or [1, S, E] where
    that is the same for all. A column without items is worth nothing.
    """
    size, stops = below.shape[1], len(below)
    best = np.full((size, stops), -np.inf)
    via = np.zeros((size, stops), np.intp)
    nothing_yet = np.where(np.arange(stops) == 0, 0.0, -np.inf)
    step = max(1, MOST_CELLS // (size * stops))
    for start in range(0, stops, step):
        last = min(start + step, stops)
        ends, begins = np.arange(start, last), np.arange(last)
        between = below.T[:, None, start:last] - below.T[:, :last, None]
        worths = worth(np.maximum(between, 0.0))
        worths = np.where(begins[:, None] <= ends, worths, -np.inf)
        for level in range(size):
            before = nothing_yet if level == 0 else best[level - 1]
            sums = before[:last, None] + worths[level % len(worths)]
            top = sums.max(axis=0)
            best[level, ends] = top
            via[level, ends] = np.argmax(
                sums >= top - TIE_TOLERANCE * np.maximum(np.abs(top), 1.0), axis=0
            )
    places, end = np.empty(size - 1, np.intp), stops - 1
    for level in reversed(range(1, size)):
        places[level - 1] = end = int(via[level, end])
    return places


def maximise_quotient(
    best: Callable[[float], Places], value: Callable[[Places], float], start: Places
) -> Places:
    """Return the places with the largest quotient of two sums (Dinkelbach 1967).

    `best(rate)` maximises above - rate · below, `value` is the quotient, whose lower part is
    positive. Whatever the start, the rate rises until no places beat it: then it is the largest.
    """
    places, rate = start, value(start)
    while True:
        found = best(rate)
        reached = value(found)
        if not reached > rate:
            return found if reached >= rate - TIE_TOLERANCE else places
        places, rate = found, reached
