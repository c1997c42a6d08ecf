"""Targets and predictions for the tests of regression intervals."""

from ordinate.metrics import find_metric
from ordinate.summaries.regression import Moments

CHECKED = (
    "mse",
    "rmse",
    "mae",
    "bias",
    "r2",
    "explained_variance",
    "relative_accuracy",
    "nrmse",
    "skill",
    "pearson",
    "ccc",
)


TRAIN = 640.0


def named(*names):
    return [find_metric(name, Moments) for name in names]


def t_errors(n, rng):
    y = rng.normal(670, 104, n)
    return y, 0.9 * y + 75 + 40 * rng.standard_t(5, n)


def table_of(y, p, w=None, **options):
    return Moments.of(y, p, w, constants={"train_mean": TRAIN}, **options)
