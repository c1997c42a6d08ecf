"""Probabilities and metrics for the tests of decoding."""

import numpy as np
from hypothesis import strategies as st

from ordinate import Scale
from ordinate.summaries import ConfusionMatrix

THREE = Scale.of("low,mid,high")


SIX = Scale.of("cefr")


SHARES = np.array([0.03, 0.07, 0.3, 0.35, 0.2, 0.05])


COSTS = [[0, 5, 1, 1], [2, 0, 1, 3], [1, 4, 0, 1], [9, 1, 1, 0]]


BY_SHARES = [
    "macro_accuracy",
    "macro_mae",
    "macro_mse",
    "cem_ord",
    "cem_ord_flat",
    "cem_nom",
    "cem_nom(ties='half')",
    "cem_int",
]


KAPPAS = [
    "cohen_kappa",
    "linear_kappa",
    "quadratic_kappa",
    "weighted_kappa(power=1.5)",
    "weighted_kappa(power=0)",
    "cem_ord_chance_corrected",
]


def simulated(n, seed=0, shares=SHARES, sharpness=5.0):
    """Return posteriors, and gold levels that are drawn from them: nobody can know more."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(sharpness * shares, n) if sharpness else np.tile(shares, (n, 1))
    p = (p + 1e-6) / (p + 1e-6).sum(axis=1, keepdims=True)
    gold = (rng.random(n)[:, None] > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return p, gold


def table(scale, gold, answered):
    size = len(scale)
    cells = np.bincount(gold * size + answered, minlength=size * size)
    return ConfusionMatrix.from_counts(cells.reshape(size, size), scale)


def rows_of(levels, least=1, most=4):
    """Return a strategy for a few rows of probabilities with exact twentieths."""
    row = st.lists(st.integers(0, 20), min_size=levels, max_size=levels)
    return st.lists(row.filter(any), min_size=least, max_size=most).map(
        lambda rows: np.array(rows, float) / np.sum(rows, axis=1, keepdims=True)
    )
