"""Errors of quantities, in the unit of the target and relative to its spread."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.metrics.arithmetic import Value, ratio
from ordinate.metrics.catalogue import metric
from ordinate.summaries.regression import TARGET_MEAN, TRAIN_MEAN, Moments, compute_bin_size

Array = NDArray[Any]
CONSTANT_TARGET_NOTE = "all targets are equal"
ROUNDING_SHARE = 1e-13  # of a variance that is what is left of larger ones
BASELINE_FAMILY = "baselines"
TIE_TOLERANCE = 1e-12  # a share this near to another is the same


@metric(
    family="errors",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum e^2,\; e = \text{prediction} - \text{target}",
)
def mse(table: Moments) -> Value:
    """Mean squared error, in the squared unit."""
    return ratio(table.squares, table.total)


@metric(
    family="errors",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\sqrt{MSE}",
)
def rmse(table: Moments) -> Value:
    """Root of the mean squared error, in the unit of the target. Large errors count most."""
    return np.sqrt(ratio(table.squares, table.total))


@metric(
    family="errors",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum |e|",
)
def mae(table: Moments) -> Value:
    """Mean absolute error, in the unit of the target."""
    return ratio(table.absolute, table.total)


@metric(
    family="errors",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\text{median } |e|",
    undefined_when="no histogram of the errors was made",
    smooth=False,
)
def median_absolute_error(table: Moments) -> Value:
    """Half of the errors are smaller: from a histogram, half a per cent from the exact value."""
    return find_error_percentile(table, 0.5)


@metric(
    family="errors",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\min \{ x : P(|e| \le x) \ge s \}",
    undefined_when="no histogram of the errors was made",
    smooth=False,
)
def error_percentile(table: Moments, *, share: float = 0.9) -> Value:
    """The size that so large a share of the errors does not exceed, from a histogram."""
    if not 0.0 < share < 1.0:
        raise BadOption(f"share={share!r} is not a number between 0 and 1.")
    return find_error_percentile(table, share)


@metric(
    family="errors",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\max |e|",
    smooth=False,
)
def max_error(table: Moments) -> Value:
    """The largest absolute error."""
    return np.where(table.total > 0, table.largest, np.nan)[()]


@metric(
    family="errors",
    direction="zero",
    bounds=(-np.inf, np.inf),
    formula=r"\frac{1}{N} \sum e",
)
def bias(table: Moments) -> Value:
    """Mean error: above 0 predictions are too high."""
    return np.where(table.total > 0, table.plain.e, np.nan)[()]


@metric(
    family="explained",
    direction="maximize",
    bounds=(-np.inf, 1),
    formula=r"1 - \frac{MSE}{\sigma^2}",
    undefined_when=CONSTANT_TARGET_NOTE,
)
def r2(table: Moments) -> Value:
    """R²: the share of the variance of the targets that is explained; below 0 it is none.

    σ is that of the evaluated targets (population).
    """
    return 1.0 - ratio(mse(table), table.plain.mean(2, 0))


@metric(
    family="explained",
    direction="maximize",
    bounds=(-np.inf, 1),
    formula=r"1 - \frac{Var(e)}{\sigma^2}",
    undefined_when=CONSTANT_TARGET_NOTE,
)
def explained_variance(table: Moments) -> Value:
    """R² after the bias is taken out."""
    return 1.0 - ratio(table.plain.mean(0, 2), table.plain.mean(2, 0))


@metric(
    family="explained",
    direction="maximize",
    bounds=(-np.inf, 1),
    formula=r"1 - \frac{RMSE}{\sigma}",
    undefined_when=CONSTANT_TARGET_NOTE,
)
def relative_accuracy(table: Moments) -> Value:
    """One less the RMSE as a share of σ. This is not R², which is 1 - RMSE²/σ²."""
    return 1.0 - ratio(rmse(table), np.sqrt(table.plain.mean(2, 0)))


@metric(
    family="explained",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{RMSE}{\sigma}",
    undefined_when=CONSTANT_TARGET_NOTE,
)
def nrmse(table: Moments) -> Value:
    """RMSE as a share of σ of the evaluated targets."""
    return ratio(rmse(table), np.sqrt(table.plain.mean(2, 0)))


@metric(
    family="explained",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{Cov(y, \hat y)}{\sigma_y \sigma_{\hat y}}",
    undefined_when="all targets, or all predictions, are equal but for rounding",
)
def pearson(table: Moments) -> Value:
    """Pearson's correlation of targets and predictions."""
    of_y, together, of_p = _variances(table)
    found = ratio(together, np.sqrt(of_y) * np.sqrt(of_p))
    return found / np.maximum(np.abs(np.real(found)), 1.0)  # which it is above by rounding only


@metric(
    family="explained",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{2\, Cov(y, \hat y)}"
    r"{\sigma_y^2 + \sigma_{\hat y}^2 + (\bar y - \bar{\hat y})^2}",
    reference="lin1989",
    undefined_when="all targets and predictions are one and the same value",
)
def ccc(table: Moments) -> Value:
    """Lin's concordance correlation: Pearson's, less what differs in mean and spread."""
    of_y, together, of_p = _variances(table)
    return ratio(2.0 * together, of_y + of_p + table.plain.e**2)


def _variances(table: Moments) -> tuple[Array, Array, Array]:
    """Return Var(y), Cov(y, p), Var(p) where p = y + e; what rounding leaves of Var(p) is 0."""
    of_y, both, of_e = (table.plain.mean(a, b) for a, b in ((2, 0), (1, 1), (0, 2)))
    of_p = of_y + 2.0 * both + of_e
    kept = np.real(of_p) > ROUNDING_SHARE * np.real(of_y + of_e)
    return of_y, np.where(kept, of_y + both, 0.0), np.where(kept, of_p, 0.0)


@metric(
    family=BASELINE_FAMILY,
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\sqrt{\sigma^2 + (\bar y - c)^2}",
)
def baseline_rmse(table: Moments) -> Value:
    """RMSE of the constant prediction c: the training mean, or the mean of the targets."""
    constant = table.constants.get(TRAIN_MEAN, table.constants.get(TARGET_MEAN, table.plain.y))
    return np.sqrt(table.plain.mean(2, 0) + (table.plain.y - constant) ** 2)


@metric(
    family=BASELINE_FAMILY,
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum |y - c|",
    undefined_when="no constant was named before the data were read",
)
def baseline_mae(table: Moments) -> Value:
    """MAE of the constant prediction c: the training mean, or the mean of the targets."""
    name = TRAIN_MEAN if TRAIN_MEAN in table.constants else TARGET_MEAN
    if name not in table.constants:
        return np.full(table.shape, np.nan)[()]
    return ratio(table.spread[name], table.total)


@metric(
    family="explained",
    direction="maximize",
    bounds=(-np.inf, 1),
    formula=r"1 - \frac{RMSE}{\text{baseline RMSE}}",
    undefined_when="the baseline makes no error",
)
def skill(table: Moments) -> Value:
    """By how much the RMSE is smaller than that of the constant prediction, as a share of it."""
    return 1.0 - ratio(rmse(table), baseline_rmse(table))


def find_error_percentile(table: Moments, share: float) -> Value:
    """Return the size below which a share of the errors lies, from the histogram.

    Between two errors it is their mean. At most half a per cent away; nan where no histogram was
    asked for, or where there are no items.
    """
    if not table.histogram:
        return np.full(table.shape, np.nan)[()]
    places = sorted(table.histogram)
    weights = np.stack([table.histogram[k] for k in places], axis=-1)
    below = ratio(weights.cumsum(axis=-1), weights.sum(axis=-1)[..., None])
    first, last = below >= share - TIE_TOLERANCE, below > share + TIE_TOLERANCE
    last[..., -1] = True
    sizes = table.step * np.array([compute_bin_size(k) for k in places])
    found = (sizes[np.argmax(first, axis=-1)] + sizes[np.argmax(last, axis=-1)]) / 2.0
    return np.where(table.total > 0, found, np.nan)[()]
