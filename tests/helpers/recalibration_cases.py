"""Probabilities for the tests of recalibration."""

import numpy as np
import pytest
from scipy.special import log_softmax

from ordinate.postprocess.recalibration import (
    RECALIBRATION_METHODS,
)
from ordinate.scale import Scale

THREE = Scale(["low", "mid", "high"])


EPS = np.finfo(float).eps


EVERY = pytest.mark.parametrize("method", RECALIBRATION_METHODS)


LIKELIHOOD = pytest.mark.parametrize("method", ["temperature", "vector"])


def softmax(logits):
    return np.exp(log_softmax(logits, axis=1))


def simulated(n, size, rng, *, power=1.0, offsets=0.0):
    """Return levels drawn from known probabilities p, and p^power · exp(offsets), normalised."""
    logits = 1.5 * rng.normal(size=(n, size))
    drawn = (rng.random((n, 1)) > softmax(logits).cumsum(axis=1)[:, :-1]).sum(axis=1)
    return drawn, softmax(power * logits + offsets), softmax(logits)


def numbered(size):
    return Scale(range(size))


def log_loss(p, gold, weights=None):
    return np.average(-np.log(np.clip(p[np.arange(len(gold)), gold], EPS, 1.0)), weights=weights)
