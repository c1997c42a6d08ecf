"""Tables that tests of the bootstrap share."""

import numpy as np
from oracles import (
    TEN,
    confusion,
    sample,
    spelled,
)

from ordinate.inference.resampling import Resampling, make_resampler, resample_metrics
from ordinate.metrics import find_metric

METRICS_OF_TEN = [find_metric(name) for name in TEN]


TABLES = {
    "60 items, K = 3, unbalanced": confusion([[2, 1, 0], [4, 21, 3], [1, 5, 23]]),
    "200 items, K = 5": confusion(sample(5, 200, seed=5)),
    "400 items, K = 6": confusion(sample(6, 400, seed=6, noise=1.5)),
}


COUNT = 3000


def drawn_values(table, *, count=COUNT, seed=1, stratified=False):
    redraw = make_resampler(table, stratified=stratified)
    return resample_metrics(METRICS_OF_TEN, table, redraw, Resampling(count, seed))


def values_of(table, cells):
    """The ten metrics of tables that somebody else drew."""
    batch = table.with_cells(cells)
    return {metric.expression: np.asarray(metric(batch)) for metric in METRICS_OF_TEN}


def grouped(size, n, count, seed):
    """Items, and a group of unequal size for each."""
    rng = np.random.default_rng(seed)
    gold, predicted = spelled(confusion(sample(size, n, seed, noise=1.5)))
    groups = rng.choice(count, n, p=np.arange(1, count + 1) / (count * (count + 1) / 2))
    groups = np.unique(groups, return_inverse=True)[1]
    cells = np.zeros((groups.max() + 1, size, size))
    np.add.at(cells, (groups, gold, predicted), 1)
    return gold, predicted, groups, confusion(cells)
