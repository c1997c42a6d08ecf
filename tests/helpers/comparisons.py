"""Systems to compare, and comparisons of them with few resamples."""

import numpy as np
from panels import by_label, labels, sampled
from strategies import scale_of

from ordinate.results.comparison import compare

SIZE = 4
SCALE = scale_of(SIZE)
DRAWS = 400


def compared(gold, systems, metrics="mae", **options):
    options = {"resamples": DRAWS, "scale": SCALE} | options
    return compare(labels(gold), by_label(systems), metrics=metrics, **options)


def board_of(gold, systems, metric="mae", **options):
    return compared(gold, systems, metric, **options).leaderboards[metric]


GOLD, SYSTEMS = sampled(SIZE, 150, 3, [0.4, 0.8, 0.8, 1.6])


WAYS = {
    "items": {},
    "whole weights": {"weights": [1 + k % 3 for k in range(150)]},
    "fractional weights": {"weights": np.linspace(0.2, 3.1, 150)},
    "groups": {"groups": [f"g{k % 40}" for k in range(150)]},
    "few groups": {"groups": [f"g{k % 7}" for k in range(150)]},
}
