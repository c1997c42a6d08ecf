"""Targets and predictions with heavy tails, and the words of a report."""

import numpy as np

from ordinate.summaries.normalization import Normalization

TRAINING = Normalization(mean=673.27, std=104.26)
IN_UNIT = ("rmse", "mae", "median_absolute_error", "max_error", "bias")


def heavy(n=300, seed=2):
    rng = np.random.default_rng(seed)
    y = rng.normal(670, 90, n)
    return y, y + 5 + 40 * rng.standard_t(5, n)
