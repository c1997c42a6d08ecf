"""Gold labels, predictions and weights of a few items, and how often each pair occurs."""

import numpy as np
from hypothesis import strategies as st

from ordinate.scale import Scale

LABELS = ["low", "mid", "high"]
SCALE = Scale(LABELS)


@st.composite
def items(draw, missing=(), min_size=1):
    """Gold labels, predictions, and weights whose sums are exact in binary."""
    label = st.sampled_from([*LABELS, *missing])
    weight = st.integers(0, 64).map(lambda eighths: eighths / 8)
    rows = draw(st.lists(st.tuples(label, label, weight), min_size=min_size, max_size=30))
    gold, predicted, weights = (list(column) for column in zip(*rows, strict=True))
    if not any(weights):
        weights[0] = 1.0
    return gold, predicted, weights


def cells_of(table):
    """Return {(gold, predicted): (items, weight, squared weight)} of the cells with items."""
    names = [*LABELS, None]
    return {
        (LABELS[i], names[j]): (
            int(table.items[i, j]),
            float(table.weights[i, j]),
            float(table.squares[i, j]),
        )
        for i, j in zip(*np.nonzero(table.items), strict=True)
    }


def naive(gold, predicted, weights=None):
    found = {}
    for g, p, w in zip(gold, predicted, weights or [1] * len(gold), strict=True):
        n, total, squares = found.get((g, p), (0, 0.0, 0.0))
        if w:
            found[g, p] = (n + 1, total + w, squares + w * w)
    return found
