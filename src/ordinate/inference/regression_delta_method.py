"""Standard errors of regression metrics from moments: the delta method, of items and clusters."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.metrics import Metric, regression
from ordinate.summaries.regression import HIGHEST_ORDER, CentralSums, Moments

Array = NDArray[Any]
Floats = NDArray[np.float64]
MOMENT_BASIS = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))  # the powers of target and error
RELATIVE_STEP = 1e-5
COMPLEX_STEP = 1e-20j
LOST_PRECISION_SHARE = 1e-10  # of what is added up to a variance: less than this is rounding


def is_function_of_moments(metric: Metric) -> bool:
    """Tell whether a metric is one of the catalogue's that are smooth in moments and sums."""
    return metric.smooth and metric.function.__module__ == regression.__name__


def is_delta_applicable(metric: Metric, moments: Moments) -> bool:
    """Tell whether the delta method knows all that a metric depends on: means and moments.

    It knows the mean absolute error, too, but nothing else that is made of sizes of errors.
    """
    if not metric.smooth:
        return False
    if metric.name == "mae" or is_function_of_moments(metric):
        return True
    other = replace(
        moments,
        absolute=moments.absolute * 1.5,
        largest=moments.largest * 1.5,
        spread={name: part * 1.5 for name, part in moments.spread.items()},
        histogram=None,
    )
    with np.errstate(all="ignore"):
        return bool(np.isclose(metric(moments), metric(other), rtol=1e-12, atol=0.0))


def standard_error(metric: Metric, moments: Moments, groups: Moments | None = None) -> float:
    """Return the standard error of a metric, of items or of clusters of them."""
    if groups is None:
        return float(compute_item_errors(metric, moments))
    if metric.name == "mae":
        sums = groups.absolute - float(metric(moments)) * groups.total
    else:
        sums = _sum_cluster_contributions(moments, groups) @ compute_gradient(metric, moments)
    return _between_cluster_error(sums, groups, moments)


def compute_squared_gain(moments: Moments, constant: float) -> tuple[float, float]:
    """Return the mean of (y - c)² - e², and its standard error over items."""
    away, bias = float(moments.plain.y) - constant, float(moments.plain.e)
    mean = float(moments.plain.mean(2, 0)) + away**2 - float(moments.squares / moments.total)
    if moments.order < HIGHEST_ORDER:
        return mean, math.nan
    slopes = np.array([2.0 * away, -2.0 * bias, 1.0, 0.0, -1.0])
    return mean, float(DeltaMethod(moments).propagate(slopes))


def compute_item_errors(metric: Metric, moments: Moments) -> Array:
    """Return the standard error of a metric over items, of one summary or of a batch."""
    return DeltaMethod(moments).compute_errors(metric)


def compute_gradient(metric: Metric, moments: Moments) -> Floats:
    """Return how a metric changes with the means, variances and covariance of target and error.

    [..., 5] of a batch.
    """
    return DeltaMethod(moments).compute_gradient(metric)


@dataclass(frozen=True)
class DeltaMethod:
    """Standard errors over items, and what those of all metrics share."""

    moments: Moments  # or a batch of them

    def compute_errors(self, metric: Metric) -> Array:
        """Return the standard error of a metric."""
        if metric.name == "mae":
            return _mae_standard_error(self.moments)
        return self.propagate(self.compute_gradient(metric))

    def propagate(self, slopes: Floats) -> Array:
        """Return the standard error of what changes with the basis by so much [..., 5]."""
        parts = slopes[..., :, None] * self.covariance * slopes[..., None, :]
        return _root_unless_rounding(
            parts.sum(axis=(-2, -1)), np.abs(parts).sum(axis=(-2, -1)), self.moments
        )

    def compute_gradient(self, metric: Metric) -> Floats:
        """Return how a metric changes with the basis [..., 5].

        A step in the imaginary direction has no rounding error, and the formulas of the catalogue
        take it. Metrics that people declare are differenced on both sides instead.
        """
        with np.errstate(invalid="ignore"):  # a step may lead to where a metric has no value
            if is_function_of_moments(metric):
                changes = np.imag(metric(self.moved)) / abs(COMPLEX_STEP)
            else:
                moved = _perturb_moments(self.moments, np.concatenate([self.steps, -self.steps]))
                values = np.asarray(metric(moved), float)
                changes = (values[: len(MOMENT_BASIS)] - values[len(MOMENT_BASIS) :]) / 2.0
        return np.nan_to_num(np.moveaxis(changes, 0, -1) / self.sizes)

    @cached_property
    def covariance(self) -> Floats:
        """The covariances of the basis [..., 5, 5]."""
        return _covariance(self.moments)

    @cached_property
    def sizes(self) -> Floats:
        """How far each element of the basis is moved [..., 5]."""
        return _choose_steps(self.moments)

    @property
    def steps(self) -> Floats:
        """One move after the other [5, ..., 5], each of one element."""
        return np.moveaxis(self.sizes[..., None] * np.eye(len(MOMENT_BASIS)), -1, 0)

    @cached_property
    def moved(self) -> Moments:
        """The summaries after each move in the imaginary direction."""
        return _perturb_moments(self.moments, self.steps * COMPLEX_STEP)


def _choose_steps(moments: Moments) -> Floats:
    y2 = np.asarray(moments.plain.mean(2, 0))
    e2 = moments.squares / moments.total
    sizes = np.stack([y2**0.5, e2**0.5, y2, (y2 * e2) ** 0.5, e2], axis=-1)
    return RELATIVE_STEP * np.where(sizes > 0.0, sizes, 1.0)


def _perturb_moments(moments: Moments, points: Array) -> Moments:
    """Return a batch of summaries whose means and second moments are moved a little."""
    weight = np.asarray(moments.total)
    flat = replace(moments, histogram=None)  # which no smooth metric reads
    wide = flat.broadcast((len(points),))
    y, e = moments.plain.y + points[..., 0], moments.plain.e + points[..., 1]
    sums = wide.plain.sums.astype(points.dtype)
    for k, (a, b) in enumerate(MOMENT_BASIS[2:], start=2):
        sums[..., a, b] += weight * points[..., k]
    squares = sums[..., 0, 2] + weight * e**2
    return replace(wide, plain=CentralSums(y, e, sums), squares=squares)


def _basis_centres(moments: Moments) -> Floats:
    means = [np.asarray(moments.plain.mean(a, b)) for a, b in MOMENT_BASIS[2:]]
    return np.stack([np.zeros_like(means[0]), np.zeros_like(means[0]), *means], axis=-1)


def _covariance(moments: Moments) -> Floats:
    """Return the covariances of the basis, from moments up to order four [..., 5, 5]."""
    sums = square_weights(moments).recenter_sums(moments.plain.y, moments.plain.e).sums
    centres = _basis_centres(moments)
    covariances = np.empty((*moments.shape, len(MOMENT_BASIS), len(MOMENT_BASIS)))
    for i, (a, b) in enumerate(MOMENT_BASIS):
        for j, (c, d) in enumerate(MOMENT_BASIS):
            covariances[..., i, j] = (
                sums[..., a + c, b + d]
                - centres[..., i] * sums[..., c, d]
                - centres[..., j] * sums[..., a, b]
                + centres[..., i] * centres[..., j] * sums[..., 0, 0]
            )
    return covariances / np.asarray(moments.total)[..., None, None] ** 2


def square_weights(moments: Moments) -> CentralSums:
    """Return sums with squared weights; a count is a sum of ones, whose squares are ones."""
    return moments.plain if moments.has_integer_weights else moments.squared


def _sum_cluster_contributions(moments: Moments, groups: Moments) -> Floats:
    """Return what each cluster adds to the basis [G, 5]."""
    about = groups.plain.recenter_sums(moments.plain.y, moments.plain.e).sums
    centres = _basis_centres(moments)
    columns = [
        about[:, a, b] - c * about[:, 0, 0] for (a, b), c in zip(MOMENT_BASIS, centres, strict=True)
    ]
    return np.stack(columns, axis=1)


def _between_cluster_error(sums: Floats, groups: Moments, moments: Moments) -> float:
    count = int((groups.items > 0).sum())
    return math.sqrt(count / (count - 1) * float((sums**2).sum())) / float(moments.total)


def _mae_standard_error(moments: Moments) -> Array:
    """Return the error of the mean absolute error over items."""
    value = moments.absolute / moments.total
    counts = square_weights(moments)
    squares = counts.recenter_sums(moments.plain.y, np.zeros_like(moments.plain.e)).sums[..., 0, 2]
    absolute = moments.absolute if moments.has_integer_weights else moments.absolute_squared
    variance = squares - 2.0 * value * absolute + value**2 * counts.weight
    return _root_unless_rounding(variance, squares, moments) / moments.total


def _root_unless_rounding(variance: Array, parts: Array, moments: Moments) -> Array:
    """Return standard errors, 0 where rounding may be all that is left of their parts."""
    n = np.asarray(moments.total if moments.has_integer_weights else moments.items, float)
    known = variance > LOST_PRECISION_SHARE * parts
    return np.sqrt(np.where(known, variance, 0.0) * n / np.maximum(n - 1.0, 1.0))
