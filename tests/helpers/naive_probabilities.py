"""Metrics of probabilities, written out over the items: the oracle of the tests.

Each function walks over items with plain Python and shares nothing with the package. ``gold`` holds
level indices, ``rows`` probabilities, ``weights`` numbers or None.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

EPS = 2.0**-52


def best(row):
    """The most probable level, the lowest of equal ones, and its probability."""
    place = max(range(len(row)), key=lambda k: (row[k], -k))
    return place, row[place]


def bin_of(value, bins):
    """The bin (lo, hi] among the edges of linspace; 0 is in the first one."""
    edges = np.linspace(0.0, 1.0, bins + 1).tolist()
    return min(max(bisect.bisect_left(edges, value) - 1, 0), bins - 1)


def each(gold, weights):
    return [1.0] * len(gold) if weights is None else list(weights)


def binned(pairs, weights, bins):
    """{bin: [items, weight, Σwf, Σwo, Σwf², Σwfo]} of pairs (f, o)."""
    found = defaultdict(lambda: [0, 0.0, 0.0, 0.0, 0.0, 0.0])
    for (f, o), w in zip(pairs, weights, strict=True):
        if w:
            sums = found[bin_of(f, bins)]
            for k, term in enumerate((1, w, w * f, w * o, w * f * f, w * f * o)):
                sums[k] += term
    return dict(found)


def top(gold, rows):
    return [(best(row)[1], int(best(row)[0] == g)) for g, row in zip(gold, rows, strict=True)]


def levels(gold, rows):
    """Pairs (f, o) of each level."""
    return [[(row[k], int(g == k)) for g, row in zip(gold, rows, strict=True)] for k in span(rows)]


def cumulative(gold, rows):
    """Pairs (f, o) of each event "gold is at most level k"."""
    below = [list(itertools.accumulate(row)) for row in rows]
    return [
        [(row[k], int(g <= k)) for g, row in zip(gold, below, strict=True)] for k in span(rows)[:-1]
    ]


def span(rows):
    return range(len(rows[0]))


def error(pairs, weights, bins):
    """Σ share · |mean f - mean o|."""
    total = sum(weights)
    sums = binned(pairs, weights, bins).values()
    return sum(w / total * abs(f / w - o / w) for _, w, f, o, *_ in sums)


def ece(gold, rows, weights=None, bins=10):
    return error(top(gold, rows), each(gold, weights), bins)


def mce(gold, rows, weights=None, bins=10):
    sums = binned(top(gold, rows), each(gold, weights), bins).values()
    return max(abs(f / w - o / w) for _, w, f, o, *_ in sums)


def classwise_ece(gold, rows, weights=None, bins=10):
    found = [error(pairs, each(gold, weights), bins) for pairs in levels(gold, rows)]
    return sum(found) / len(found)


def cumulative_ece(gold, rows, weights=None, bins=10):
    found = [error(pairs, each(gold, weights), bins) for pairs in cumulative(gold, rows)]
    return sum(found) / len(found)


def ace(gold, rows, bins=10):
    """Items in the order of their confidence, cut into runs of equally many."""
    pairs = sorted(top(gold, rows))
    size = len(pairs) / bins
    runs = [pairs[round(k * size) : round((k + 1) * size)] for k in range(bins)]
    return sum(abs(sum(f - o for f, o in run)) for run in runs) / len(pairs)


def brier_of(g, row):
    return sum((p - (k == g)) ** 2 for k, p in enumerate(row))


def log_loss_of(g, row):
    return -math.log(min(max(row[g], EPS), 1.0 - EPS))


def rps_sum_of(g, row):
    return sum((p - (g <= k)) ** 2 for k, p in enumerate(list(itertools.accumulate(row))[:-1]))


def rps_of(g, row):
    return rps_sum_of(g, row) / (len(row) - 1)


def mean(score, gold, rows, weights=None):
    weights = each(gold, weights)
    found = [w * score(g, row) for g, row, w in zip(gold, rows, weights, strict=True) if w]
    return math.fsum(found) / math.fsum(weights)


def brier(gold, rows, weights=None):
    return mean(brier_of, gold, rows, weights)


def log_loss(gold, rows, weights=None):
    return mean(log_loss_of, gold, rows, weights)


def rps(gold, rows, weights=None):
    return mean(rps_of, gold, rows, weights)


def rps_sum(gold, rows, weights=None):
    return mean(rps_sum_of, gold, rows, weights)


def expected_mae(gold, rows, weights=None, at=None):
    at = at or list(span(rows))
    return mean(
        lambda g, row: sum(p * abs(at[k] - at[g]) for k, p in enumerate(row)), gold, rows, weights
    )


def expected_mse(gold, rows, weights=None, at=None):
    at = at or list(span(rows))
    return mean(
        lambda g, row: sum(p * (at[k] - at[g]) ** 2 for k, p in enumerate(row)), gold, rows, weights
    )


def expected_cem_ord(gold, rows, weights=None):
    """Closeness evaluation measure where each item is spread over all levels."""
    weights = each(gold, weights)
    size, total = len(rows[0]), sum(weights)
    share = [sum(w for g, w in zip(gold, weights, strict=True) if g == k) for k in range(size)]

    def prox(answer, truth):
        low, high = min(answer, truth), max(answer, truth)
        between = [k for k in range(low, high + 1) if k != answer]
        return -math.log2((share[answer] / 2 + sum(share[k] for k in between)) / total)

    above = below = 0.0
    for g, row, w in zip(gold, rows, weights, strict=True):
        if w:
            above += w * sum(p * prox(k, g) for k, p in enumerate(row) if p)
            below += w * prox(g, g)
    return above / below


def c_index(gold, rows, weights=None, at=None):
    """Over all pairs of items with different gold levels; exact in fractions."""
    weights = each(gold, weights)
    at = [Fraction(x) for x in (at or span(rows))]
    score = [sum(x * Fraction(p) for x, p in zip(at, row, strict=True)) for row in rows]
    right = total = 0.0
    for a, b in itertools.permutations(range(len(gold)), 2):
        if gold[a] > gold[b]:
            pair = weights[a] * weights[b]
            total += pair
            right += pair * (1.0 if score[a] > score[b] else 0.5 if score[a] == score[b] else 0.0)
    return right / total if total else math.nan


def five_terms(pairs, weights, bins):
    """Reliability, resolution, uncertainty, and variance and covariance within bins."""
    total = sum(weights)
    rate = sum(w * o for (_, o), w in zip(pairs, weights, strict=True)) / total
    terms = [0.0, 0.0, rate * (1 - rate), 0.0, 0.0]
    inside = binned(pairs, weights, bins)
    for (f, o), w in zip(pairs, weights, strict=True):
        if w:
            _, many, fs, os, *_ = inside[bin_of(f, bins)]
            mean_f, mean_o = fs / many, os / many
            terms[0] += w * (mean_f - mean_o) ** 2 / total
            terms[1] += w * (mean_o - rate) ** 2 / total
            terms[3] += w * (f - mean_f) ** 2 / total
            terms[4] += 2 * w * (f - mean_f) * (o - mean_o) / total
    return terms


# --- what hypothesis resamples
# -----------------------------------------------------------------------


@st.composite
def probability_rows(draw, size, count):
    """Rows that sum to 1 but for rounding: of few values (ties, edges of bins) or of any."""
    found = []
    for _ in range(count):
        if draw(st.booleans()):
            parts = draw(st.lists(st.integers(0, 10), min_size=size, max_size=size))
        else:
            numbers = st.floats(0, 1, allow_subnormal=False)
            parts = draw(st.lists(numbers, min_size=size, max_size=size))
        if sum(parts) < 1e-3:
            parts[draw(st.integers(0, size - 1))] = 1
        found.append([part / sum(parts) for part in parts])
    return found


@st.composite
def judged(draw, max_levels=5, max_items=25, *, weighted=True):
    """Gold levels, rows of probabilities, and weights (or None)."""
    size, count = draw(st.integers(2, max_levels)), draw(st.integers(1, max_items))
    gold = draw(st.lists(st.integers(0, size - 1), min_size=count, max_size=count))
    rows = draw(probability_rows(size, count))
    weights = None
    if weighted and draw(st.booleans()):
        eighths = draw(st.lists(st.integers(0, 24), min_size=count, max_size=count))
        weights = [x / 8 for x in eighths] if any(eighths) else [1.0] * count
    return gold, rows, weights


def sample(n, size=6, seed=0, sharpness=1.0):
    """Calibrated probabilities and gold levels; `sharpness` above 1 makes the rows too sure."""
    rng = np.random.default_rng(seed)
    middle = rng.normal((size - 1) / 2, size / 3, n)
    logits = -0.8 * np.abs(np.arange(size) - middle[:, None]) ** 1.3
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    gold = np.clip((rng.random(n)[:, None] > true.cumsum(axis=1)).sum(axis=1), 0, size - 1)
    said = np.exp(sharpness * logits)
    return gold, said / said.sum(axis=1, keepdims=True)
