"""Prediction intervals and ensembles: how often they hold the target, and how sharp they are."""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.metrics.arithmetic import Value, ratio
from ordinate.metrics.catalogue import Metric, metric
from ordinate.summaries.ensemble import EnsemblePredictions
from ordinate.summaries.prediction_intervals import ItemSums, PredictionIntervals

__all__ = ["compute_pit_histogram"]

Array = NDArray[Any]
STEP_IN_ERRORS = 0.01  # of a mean's standard error: how far it is moved to find a slope
ROUNDING_SHARE = 1e-12  # of the squares of a score: a smaller variance is rounding
ONE_MEMBER = "an ensemble of one member has no spread"


@metric(
    family="intervals",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\frac{1}{N} \sum [l \le y \le u]",
    share=True,
)
def interval_coverage(intervals: PredictionIntervals) -> Value:
    """How often the interval holds the target, its ends included.

    When to use: intervals promise a coverage: compare it with their level.

    When not: it stands alone: intervals from -∞ to ∞ have 1. Put `mean_interval_width` or `winkler`
    beside it.

    Elsewhere: PICP, the prediction interval coverage probability.

    >>> float(interval_coverage(PredictionIntervals.of([1.0, 5.0], [0.0, 2.0], [2.0, 4.0])))
    0.5
    """
    return intervals.mean("covered")


@metric(
    family="intervals",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum (u - l)",
)
def mean_interval_width(intervals: PredictionIntervals) -> Value:
    """Mean width of the intervals, in the unit of the target; infinite if one has no end.

    When to use: two models have the same coverage, and the narrower intervals are better.

    When not: coverage differs: narrow intervals that miss are worth little. `winkler` weighs both.

    Elsewhere: MPIW, the mean prediction interval width.
    """
    return _replace_unbounded(intervals, intervals.mean("width"))


@metric(
    family="intervals",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum \left( u - l + \frac{2}{\alpha} \left( (l - y)_+ + (y - u)_+ "
    r"\right) \right)",
    reference="winkler1972",
)
def winkler(intervals: PredictionIntervals, *, alpha: float = 0.1) -> Value:
    """Winkler's interval score: the width, and 2/alpha times the distance of a target outside.

    The central interval that should hold a share 1 - alpha of the targets is the best there is.

    When to use: intervals of one level are compared: it is proper, so that width and misses are
    weighed as the level asks.

    When not: intervals were made for different levels: give each its alpha, and do not compare the
    scores.

    Elsewhere: scoringrules `interval_score`; R fabletools `winkler_score`.
    """
    if not 0.0 < alpha < 1.0:
        raise BadOption(f"alpha={alpha!r} is not a number between 0 and 1.")
    outside = intervals.mean("below") + intervals.mean("above")
    return _replace_unbounded(intervals, intervals.mean("width") + 2.0 / alpha * outside)


@metric(
    family="intervals",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{\alpha}{2} \text{Winkler}, \text{ with predictions } m: "
    r"\frac{1}{1.5} \left( \frac{1}{2N} \sum |y - m| + \frac{\alpha}{2} \text{Winkler} \right)",
    reference="bracher2021",
)
def weighted_interval_score(intervals: PredictionIntervals, *, alpha: float = 0.1) -> Value:
    """Weighted interval score of one interval: alpha/2 times Winkler's score.

    Where there are predictions, too, they stand for the median: half of the absolute error is
    added, and the sum divided by 1.5.

    When to use: forecasts are reported as in epidemiology, and the values should compare with CRPS.

    When not: several levels are forecast together: this is the score of one interval, with the
    median where there is one.

    Elsewhere: scoringrules `weighted_interval_score`; R scoringutils, which takes several levels.
    """
    score = alpha / 2.0 * winkler.function(intervals, alpha=alpha)
    return (intervals.mean("error") / 2.0 + score) / 1.5 if intervals.points else score


def _replace_unbounded(intervals: PredictionIntervals, value: Array) -> Value:
    """Return a value, or infinity where an interval has no end."""
    return np.where(intervals.endless > 0, np.inf, value)[()]


@metric(
    family="ensembles",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\frac{1}{N} \sum \left( \frac{1}{M} \sum_i |x_i - y| "
    r"- \frac{1}{2 M (M - 1)} \sum_{ij} |x_i - x_j| \right)",
    undefined_when=ONE_MEMBER,
    reference="gneiting2007",
)
def crps(ensemble: EnsemblePredictions, *, estimator: Literal["fair", "nrg"] = "fair") -> Value:
    """Continuous ranked probability score of an ensemble, in the unit of the target.

    `fair` estimates the score of the distribution that the members are drawn from, whatever their
    number. `nrg` (M² in place of M (M - 1)) is the score of the members themselves; with one member
    it is the absolute error.

    When to use: whole predictive distributions are compared: it is proper, in the unit of the
    target, and the absolute error where there is one member.

    When not: `nrg` scores of ensembles of different sizes are compared: small ensembles are
    punished for their size.

    Elsewhere: scoringrules `crps_ensemble(estimator="fair")` and `"nrg"`.

    >>> ensemble = EnsemblePredictions.of([1.0, 5.0], [[0.0, 2.0, 3.0], [1.0, 4.0, 2.0]])
    >>> of_members = crps.with_options(estimator="nrg")
    >>> round(float(crps(ensemble)), 3), round(float(of_members(ensemble)), 3)
    (1.0, 1.333)
    """
    pairs = 1.0 - 1.0 / ensemble.members if estimator == "nrg" else _mask_single_member(ensemble)
    return ensemble.mean("absolute") - pairs * ensemble.mean("gap") / 2.0


@metric(
    family="ensembles",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\sqrt{\frac{1}{N} \sum s^2}",
    undefined_when=ONE_MEMBER,
)
def spread(ensemble: EnsemblePredictions) -> Value:
    """Spread of the members: the root of their mean variance, in the unit of the target.

    When to use: you compare it with the `rmse` of the ensemble's mean: they should be about equal.

    When not: models are ranked: more spread is neither good nor bad in itself.
    """
    return np.sqrt(ensemble.mean("variance")) * _mask_single_member(ensemble)


@metric(
    family="ensembles",
    direction="minimize",
    bounds=(0, np.inf),
    formula=r"\sqrt{\frac{1}{N} \sum (\bar x - y)^2}",
)
def rmse(ensemble: EnsemblePredictions) -> Value:
    """Root of the mean squared error of the ensemble's mean.

    When to use: the mean of the members is what is used as the prediction.

    When not: the spread matters too: two ensembles with the same mean score the same. `crps` sees
    the spread.
    """
    return np.sqrt(ensemble.mean("square"))


@metric(
    family="ensembles",
    direction="zero",
    bounds=(-np.inf, np.inf),
    formula=r"\frac{1}{N} \sum (\bar x - y)",
)
def bias(ensemble: EnsemblePredictions) -> Value:
    """Mean error of the ensemble's mean: above 0 predictions are too high.

    When to use: you ask whether ensembles are too high or too low on average.

    When not: models are ranked: errors in both directions cancel.
    """
    return ensemble.mean("bias")


@metric(
    family="ensembles",
    direction="zero",
    bounds=(-1, np.inf),
    formula=r"\sqrt{\frac{M + 1}{M}} \frac{\text{spread}}{\text{RMSE}} - 1",
    undefined_when="the ensemble's mean makes no error, or there is one member only",
    reference="fortin2014",
)
def dispersion(ensemble: EnsemblePredictions) -> Value:
    """By how much the spread exceeds the error, as a share of it: below 0, ensembles are too sure.

    Of members and targets from one distribution it is 0, whatever the number of members.

    When to use: you ask whether ensembles know how uncertain they are: below 0 they are too sure.

    When not: models are ranked: wide ensembles with large errors can have 0. It is about averages,
    so opposite faults in parts of the data cancel.

    Elsewhere: Forecasting speaks of the spread-skill ratio, which is 1 where this is 0.
    """
    fair = math.sqrt((ensemble.members + 1) / ensemble.members)
    return fair * ratio(spread.function(ensemble), rmse.function(ensemble)) - 1.0


@metric(
    family="ensembles",
    direction="maximize",
    bounds=(0, 1),
    formula=r"\text{share of } \frac{1 - level}{2} \le \text{PIT} \le \frac{1 + level}{2}",
    undefined_when="there are fewer than (1 + level)/(1 - level) members, too few for this level",
)
def central_coverage(ensemble: EnsemblePredictions, *, level: float = 0.9) -> Value:
    """How often the central part of the ensemble holds the target; it should be the level.

    A rank that lies partly within the level counts in part: see `compute_pit_histogram`.

    When to use: the central part of an ensemble is shown as an interval.

    When not: there are few members: the level cannot be reached, and the value is undefined. It
    says nothing about width.
    """
    inside = weigh_central_ranks(ensemble.members, level)
    if inside[0] > 0:  # a target beyond all members would count as held, in part
        return np.full(ensemble.shape, np.nan)[()]
    return ratio((ensemble.ranks * inside).sum(axis=-1), ensemble.total)


def weigh_central_ranks(members: int, level: float) -> Array:
    """Return which part of each rank [M + 1] is within the central level."""
    if not 0.0 < level < 1.0:
        raise BadOption(f"level={level!r} is not a number between 0 and 1.")
    return _overlap_ranks(members, np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0]))[0].round(
        12
    )


def compute_pit_histogram(ensemble: EnsemblePredictions, *, bins: int = 10) -> Array:
    """Return the histogram [..., bins] of probability integral transforms, as shares.

    A target with r of M members below it lies somewhere from r/(M + 1) to (r + 1)/(M + 1). It is
    spread evenly over that range: nothing is drawn, and targets and members from one distribution
    have a flat histogram for any number of bins. It is the histogram of the middles of these ranges
    where bins divide M + 1.

    >>> ensemble = EnsemblePredictions.of([1.0, 5.0], [[0.0, 2.0, 3.0], [1.0, 4.0, 2.0]])
    >>> compute_pit_histogram(ensemble, bins=2).tolist()
    [0.5, 0.5]
    """
    if not (isinstance(bins, int) and bins >= 1):
        raise BadOption(f"bins={bins!r} is not an integer of at least 1.")
    parts = _overlap_ranks(ensemble.members, np.linspace(0.0, 1.0, bins + 1))
    return ratio(ensemble.ranks @ parts.T, np.asarray(ensemble.total)[..., None])


def _overlap_ranks(members: int, edges: Array) -> Array:
    """Return which part of each rank lies between neighbouring edges: [edges - 1, M + 1]."""
    ranks = np.arange(members + 1)
    inside = np.clip(edges[:, None] * (members + 1) - ranks, 0.0, 1.0)
    return np.diff(inside, axis=0)


def _mask_single_member(ensemble: EnsemblePredictions) -> float:
    """Return 1, or nan where one member is all."""
    return 1.0 if ensemble.members > 1 else math.nan


def standard_error(metric: Metric, summary: ItemSums) -> float:
    """Return the standard error of a function of the means of scores, by the delta method.

    Integer weights are counts of items. It is nan where there are fewer than two, and 0 where the
    items are alike: then the scores vary by less than a millionth of their size.
    """
    n = count_items(summary)
    if n < 2:
        return math.nan
    covariance = _covariance(summary) * n / (n - 1.0)
    slopes = _differentiate_metric(metric, summary, STEP_IN_ERRORS * np.sqrt(np.diag(covariance)))
    return math.sqrt(max(float(slopes @ covariance @ slopes), 0.0))


def count_items(summary: ItemSums) -> float:
    """Return the number of items; integer weights are counts of them."""
    return float(summary.total if summary.has_integer_weights else summary.items)


def _covariance(summary: ItemSums) -> Array:
    """Return the covariance [F, F] of the means."""
    sums = summary.plain if summary.has_integer_weights else summary.squared
    centred = np.hstack([-summary.means[:, None], np.eye(len(summary.names))])
    covariance = centred @ sums @ centred.T / summary.total**2
    alike = np.diag(covariance) * summary.total**2 <= ROUNDING_SHARE * np.diag(sums)[1:]
    covariance[alike], covariance[:, alike] = 0.0, 0.0
    return covariance


def _differentiate_metric(metric: Metric, summary: ItemSums, steps: Array) -> Array:
    """Return the derivative of a metric by each mean; 0 for scores that do not vary."""
    moves = np.diag(steps)
    up, down = metric.compute_from_expected(
        summary.at(summary.means + np.stack([moves, -moves])), summary
    )
    return np.divide(up - down, 2.0 * steps, out=np.zeros(len(steps)), where=steps > 0)
