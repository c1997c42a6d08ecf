"""Regression metrics: errors in the unit of the target, and relative to its spread."""

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
def mse(moments: Moments) -> Value:
    """Mean squared error, in the squared unit.

    When to use: a model was fitted by least squares, or errors are decomposed.

    When not: people read it: its unit is squared. A few far targets can decide it.

    Elsewhere: scikit-learn `mean_squared_error`; torchmetrics `MeanSquaredError`.
    """
    return ratio(moments.squares, moments.total)


@metric(
    family="errors",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\sqrt{MSE}",
)
def rmse(moments: Moments) -> Value:
    """Root of the mean squared error, in the unit of the target. Large errors count most.

    When to use: large errors are much worse than small ones, and the number should be in the unit
    of the target.

    When not: errors have heavy tails: a few items decide it, and its interval is wide. Put `mae`
    beside it.

    Elsewhere: scikit-learn `root_mean_squared_error`; torchmetrics
    `MeanSquaredError(squared=False)`; yardstick `rmse`.
    """
    return np.sqrt(ratio(moments.squares, moments.total))


@metric(
    family="errors",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum |e|",
)
def mae(moments: Moments) -> Value:
    """Mean absolute error, in the unit of the target.

    When to use: an error counts by its size, and readers should understand the number at once.

    When not: large errors are much worse than small ones: `rmse`.

    Elsewhere: scikit-learn `mean_absolute_error`; torchmetrics `MeanAbsoluteError`; yardstick
    `mae`.
    """
    return ratio(moments.absolute, moments.total)


@metric(
    family="errors",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\text{median } |e|",
    undefined_when="no histogram of the errors was made",
    smooth=False,
)
def median_absolute_error(moments: Moments) -> Value:
    """Half of the errors are smaller: from a histogram, half a per cent from the exact value.

    When to use: a typical error is wanted that a few bad items cannot move.

    When not: the bad items matter: half of them may be arbitrarily wrong. Put `error_percentile`
    beside it.

    Elsewhere: scikit-learn `median_absolute_error`, exact and from all items in memory.
    """
    return find_error_percentile(moments, 0.5)


@metric(
    family="errors",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\min \{ x : P(|e| \le x) \ge s \}",
    undefined_when="no histogram of the errors was made",
    smooth=False,
)
def error_percentile(moments: Moments, *, share: float = 0.9) -> Value:
    """The size that so large a share of the errors does not exceed, from a histogram.

    When to use: a promise is to be made, such as nine of ten predictions within 20 kg/m³.

    When not: there are too few items beyond the percentile: it hangs on some of them.
    """
    if not 0.0 < share < 1.0:
        raise BadOption(f"share={share!r} is not a number between 0 and 1.")
    return find_error_percentile(moments, share)


@metric(
    family="errors",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\max |e|",
    smooth=False,
)
def max_error(moments: Moments) -> Value:
    """The largest absolute error.

    When to use: the worst case is what counts, as with a tolerance that must never be exceeded.

    When not: models are compared: it is a single item, and grows with the size of the test set.

    Elsewhere: scikit-learn `max_error`.
    """
    return np.where(moments.total > 0, moments.largest, np.nan)[()]


@metric(
    family="errors",
    direction="zero",
    bounds=(-np.inf, np.inf),
    formula=r"\frac{1}{N} \sum e",
)
def bias(moments: Moments) -> Value:
    """Mean error: above 0 predictions are too high.

    When to use: you ask whether predictions are too high or too low on average.

    When not: models are ranked: errors in both directions cancel.

    Elsewhere: yardstick `msd` with the opposite sign (truth minus estimate).
    """
    return np.where(moments.total > 0, moments.plain.e, np.nan)[()]


@metric(
    family="explained",
    direction="maximize",
    bounds=(-np.inf, 1),
    formula=r"1 - \frac{MSE}{\sigma^2}",
    undefined_when=CONSTANT_TARGET_NOTE,
)
def r2(moments: Moments) -> Value:
    """R²: the share of the variance of the targets that is explained; below 0 it is none.

    σ is that of the evaluated targets (population).

    When to use: readers know it, and models are compared on one test set.

    When not: test sets are compared: it depends on the spread of their targets, so the same errors
    score worse where targets vary less.

    Elsewhere: scikit-learn `r2_score`; torchmetrics `R2Score`; yardstick `rsq_trad` (its `rsq` is
    the squared correlation).
    """
    return 1.0 - ratio(mse(moments), moments.plain.mean(2, 0))


@metric(
    family="explained",
    direction="maximize",
    bounds=(-np.inf, 1),
    formula=r"1 - \frac{Var(e)}{\sigma^2}",
    undefined_when=CONSTANT_TARGET_NOTE,
)
def explained_variance(moments: Moments) -> Value:
    """R² after the bias is taken out.

    When to use: a constant shift is removed later, and the rest is to be judged.

    When not: predictions are used as they are: a model that is far too high throughout can score 1.

    Elsewhere: scikit-learn `explained_variance_score`; torchmetrics `ExplainedVariance`.
    """
    return 1.0 - ratio(moments.plain.mean(0, 2), moments.plain.mean(2, 0))


@metric(
    family="explained",
    direction="maximize",
    bounds=(-np.inf, 1),
    formula=r"1 - \frac{RMSE}{\sigma}",
    undefined_when=CONSTANT_TARGET_NOTE,
)
def relative_accuracy(moments: Moments) -> Value:
    """One less the RMSE as a share of σ. This is not R², which is 1 - RMSE²/σ².

    When to use: a report that already uses it has to be continued.

    When not: it could be read as R² or as an accuracy: half the variance explained is 0.29 here.
    Say its formula.
    """
    return 1.0 - ratio(rmse(moments), np.sqrt(moments.plain.mean(2, 0)))


@metric(
    family="explained",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{RMSE}{\sigma}",
    undefined_when=CONSTANT_TARGET_NOTE,
)
def nrmse(moments: Moments) -> Value:
    """RMSE as a share of σ of the evaluated targets.

    When to use: errors of targets in different units are put side by side.

    When not: it is compared with values that others publish: some divide by the range or the mean.

    Elsewhere: torchmetrics `NormalizedRootMeanSquaredError(normalization="std")`.
    """
    return ratio(rmse(moments), np.sqrt(moments.plain.mean(2, 0)))


@metric(
    family="explained",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{Cov(y, \hat y)}{\sigma_y \sigma_{\hat y}}",
    undefined_when="all targets, or all predictions, are equal but for rounding",
)
def pearson(moments: Moments) -> Value:
    """Pearson's correlation of targets and predictions.

    When to use: only the linear relation counts, as where predictions are recalibrated later.

    When not: predictions are used as they are: shift and scale go unseen. `ccc` sees them.

    Elsewhere: SciPy `pearsonr`; torchmetrics `PearsonCorrCoef`; R `cor`.
    """
    of_y, together, of_p = _variances(moments)
    correlation = ratio(together, np.sqrt(of_y) * np.sqrt(of_p))
    return correlation / np.maximum(
        np.abs(np.real(correlation)), 1.0
    )  # it is above 1 by rounding only


@metric(
    family="explained",
    direction="maximize",
    bounds=(-1, 1),
    formula=r"\frac{2\, Cov(y, \hat y)}"
    r"{\sigma_y^2 + \sigma_{\hat y}^2 + (\bar y - \bar{\hat y})^2}",
    reference="lin1989",
    undefined_when="all targets and predictions are one and the same value",
)
def ccc(moments: Moments) -> Value:
    """Lin's concordance correlation: Pearson's, less what differs in mean and spread.

    When to use: a prediction replaces a measurement, so that values should agree and not only
    correlate.

    When not: the error in the unit of the target is asked for.

    Elsewhere: yardstick `ccc` and R DescTools `CCC`; torchmetrics `ConcordanceCorrCoef` divides by
    n - 1.
    """
    of_y, together, of_p = _variances(moments)
    return ratio(2.0 * together, of_y + of_p + moments.plain.e**2)


def _variances(moments: Moments) -> tuple[Array, Array, Array]:
    """Return Var(y), Cov(y, p), Var(p) where p = y + e; what rounding leaves of Var(p) is 0."""
    of_y, both, of_e = (moments.plain.mean(a, b) for a, b in ((2, 0), (1, 1), (0, 2)))
    of_p = of_y + 2.0 * both + of_e
    varies = np.real(of_p) > ROUNDING_SHARE * np.real(of_y + of_e)
    return of_y, np.where(varies, of_y + both, 0.0), np.where(varies, of_p, 0.0)


@metric(
    family=BASELINE_FAMILY,
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\sqrt{\sigma^2 + (\bar y - c)^2}",
)
def baseline_rmse(moments: Moments) -> Value:
    """RMSE of the constant prediction c: the training mean, or the mean of the targets.

    When to use: a reader should see what a constant prediction reaches, beside `rmse`.

    When not: models are ranked: it does not depend on the model.

    Elsewhere: scikit-learn's `DummyRegressor` and `root_mean_squared_error` together.
    """
    constant = moments.constants.get(
        TRAIN_MEAN, moments.constants.get(TARGET_MEAN, moments.plain.y)
    )
    return np.sqrt(moments.plain.mean(2, 0) + (moments.plain.y - constant) ** 2)


@metric(
    family=BASELINE_FAMILY,
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum |y - c|",
    undefined_when="no constant was named before the data were read",
)
def baseline_mae(moments: Moments) -> Value:
    """MAE of the constant prediction c: the training mean, or the mean of the targets.

    When to use: a reader should see what a constant prediction reaches, beside `mae`.

    When not: models are ranked: it does not depend on the model. The median would be a harder
    constant to beat.

    Elsewhere: scikit-learn's `DummyRegressor` and `mean_absolute_error` together.
    """
    name = TRAIN_MEAN if TRAIN_MEAN in moments.constants else TARGET_MEAN
    if name not in moments.constants:
        return np.full(moments.shape, np.nan)[()]
    return ratio(moments.spread[name], moments.total)


@metric(
    family="explained",
    direction="maximize",
    bounds=(-np.inf, 1),
    formula=r"1 - \frac{RMSE}{\text{baseline RMSE}}",
    undefined_when="the baseline makes no error",
)
def skill(moments: Moments) -> Value:
    """By how much the RMSE is smaller than that of the constant prediction, as a share of it.

    When to use: readers ask what a model adds to the mean, and targets in different units are put
    side by side.

    When not: test sets of different spread are compared: the baseline changes with them.

    Elsewhere: Forecasting calls it a skill score; the reference forecast must be named.
    """
    return 1.0 - ratio(rmse(moments), baseline_rmse(moments))


def find_error_percentile(moments: Moments, share: float) -> Value:
    """Return the size below which a share of the errors lies, from the histogram.

    Between two errors it is their mean. At most half a per cent away; nan where no histogram was
    counted, or where there are no items.
    """
    if not moments.histogram:
        return np.full(moments.shape, np.nan)[()]
    places = sorted(moments.histogram)
    weights = np.stack([moments.histogram[k] for k in places], axis=-1)
    below = ratio(weights.cumsum(axis=-1), weights.sum(axis=-1)[..., None])
    first, last = below >= share - TIE_TOLERANCE, below > share + TIE_TOLERANCE
    last[..., -1] = True
    sizes = moments.step * np.array([compute_bin_size(k) for k in places])
    percentile = (sizes[np.argmax(first, axis=-1)] + sizes[np.argmax(last, axis=-1)]) / 2.0
    return np.where(moments.total > 0, percentile, np.nan)[()]
