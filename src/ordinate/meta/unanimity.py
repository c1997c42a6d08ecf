"""Unanimous improvement: how often one system beats another for every metric at once."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.meta.rank_correlation import ROUNDING_DIGITS

Array = NDArray[Any]
Unanimity = Literal["weak", "strict"]


def compute_improvements(merits: ArrayLike, unanimity: Unanimity = "weak") -> NDArray[np.int8]:
    """Return 1 where system s improves on s' in a test case, -1 where s' does on s: [S, S, T].

    `merits` [R, S, T] are the values of the reference metrics, turned so that larger is better. A
    weak improvement is no loss for any metric (so equal systems improve on each other, which
    cancels out), a strict one a gain for every metric. An undefined value improves on nothing;
    infinite ones are compared like others.
    """
    rounded = np.round(np.asarray(merits, float), ROUNDING_DIGITS)
    unanimous = None
    better = np.greater if unanimity == "strict" else np.greater_equal
    for values in rounded:  # one metric at a time, so that memory stays small
        good = better(values[:, None, :], values[None, :, :])
        unanimous = good if unanimous is None else unanimous & good
    if unanimous is None:
        raise ValueError("at least one reference metric is needed")
    return unanimous.astype(np.int8) - unanimous.swapaxes(0, 1).astype(np.int8)


def compute_unanimous_improvement(improvements: Array, times: ArrayLike | None = None) -> Array:
    """Return the Unanimous Improvement Ratio [S, S] (Amigó et al. 2011).

    It is the share of test cases in which s improves on s', less the share of the reverse. `times`
    says how often each test case counts, [T] or [B, T] for a batch of ratios.

    >>> merits = [[[0.9, 0.8], [0.7, 0.9]], [[0.5, 0.4], [0.3, 0.3]]]  # 2 metrics, systems, cases
    >>> compute_unanimous_improvement(compute_improvements(merits)).tolist()
    [[0.0, 0.5], [-0.5, 0.0]]
    """
    if times is None:
        return improvements.mean(axis=-1)
    counts = np.asarray(times, float)
    total = np.einsum("stc,...c->...st", improvements, counts, optimize=True)
    return total / counts.sum(axis=-1)[..., None, None]
