"""Cumulative logits: losses of ordered thresholds on one latent score, with their gradients.

The latent score η = x·β rises with the level; P(level ≤ k) = σ(θ_k - η) with θ_1 < … < θ_{P-1}.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Levels = NDArray[np.intp]
Loss = Callable[[Floats, Floats, Levels, Floats], tuple[float, Floats, Floats]]

GRADIENT_TOLERANCE = 1e-9  # largest part of a gradient at which a fit has arrived
GAIN_TOLERANCE = 1e-15  # relative gain of a step below which the next ones gain nothing
MOST_ROWS = 2_000  # of which it is quick to find all products and their directions
WIDEST_LOG_GAP = 30.0  # |log gap| of neighbouring thresholds: e^30 apart is infinitely far


def proportional_odds_loss(
    scores: Floats, cuts: Floats, codes: Levels, weights: Floats
) -> tuple[float, Floats, Floats]:
    """Return minus the log likelihood of the levels, and its slopes in scores and cuts.

    For a < b, σ(b) - σ(a) = σ(b) σ(-a) (1 - e^{a-b}): no difference of nearly equal numbers is
    taken, and the last factor does not depend on the score.
    """
    upper = np.append(cuts, np.inf)[codes] - scores
    lower = np.insert(cuts, 0, -np.inf)[codes] - scores
    gaps = np.diff(cuts)
    inner = _sum_by_level(codes, weights, len(cuts) + 1)[1:-1]  # of levels between two cuts
    value = weights @ (_softplus(-upper) + _softplus(lower)) - inner @ np.log(-np.expm1(-gaps))
    below, above = weights * sigmoid(-upper), weights * sigmoid(lower)
    per_cut = (
        _sum_by_level(codes, above, len(cuts) + 1)[1:]
        - _sum_by_level(codes, below, len(cuts) + 1)[:-1]
    )
    with np.errstate(over="ignore"):  # infinitely far apart: the slope is 0
        pull = inner / np.expm1(gaps)
    per_cut[1:] -= pull
    per_cut[:-1] += pull
    return float(value), below - above, per_cut


def all_threshold_loss(
    scores: Floats, cuts: Floats, codes: Levels, weights: Floats
) -> tuple[float, Floats, Floats]:
    """Return the log losses of all events "above this cut", summed, and its slopes."""
    sides = np.where(codes[:, None] > np.arange(len(cuts)), 1.0, -1.0)
    margins = sides * (scores[:, None] - cuts)
    slopes = -weights[:, None] * sides * sigmoid(-margins)
    return float(weights @ _softplus(-margins).sum(axis=1)), slopes.sum(1), -slopes.sum(0)


LOSSES: dict[str, Loss] = {
    "proportional_odds": proportional_odds_loss,
    "all_threshold": all_threshold_loss,
}


def penalised_loss(
    point: Floats, matrix: Any, codes: Levels, weights: Floats, penalty: float, loss: Loss
) -> tuple[float, Floats]:
    """Return the mean loss with its ridge penalty, and the gradient, at (β, θ_1, log gaps)."""
    width = matrix.shape[1]
    coefficients, cuts = point[:width], build_ordered_cuts(point[width:])
    value, by_score, by_cut = loss(matrix @ coefficients, cuts, codes, weights)
    total = weights.sum()
    gradient = np.empty_like(point)
    gradient[:width] = matrix.T @ by_score + penalty * coefficients
    later = np.cumsum(by_cut[::-1])[::-1]  # a gap moves all cuts that follow it
    gradient[width:] = later
    gradient[width + 1 :] *= np.diff(cuts)
    value += 0.5 * penalty * float(coefficients @ coefficients)
    return value / total, gradient / total


def build_ordered_cuts(parts: Floats) -> Floats:
    """Return rising cuts from the lowest one and the logs of the gaps."""
    return np.cumsum(
        np.concatenate([parts[:1], np.exp(np.clip(parts[1:], -WIDEST_LOG_GAP, WIDEST_LOG_GAP))])
    )


def fit_cumulative_logits(
    matrix: Any,
    codes: Levels,
    weights: Floats,
    *,
    penalty: float,
    loss: Loss = proportional_odds_loss,
    steps: int = 1000,
) -> tuple[Floats, Floats, int]:
    """Return the coefficients, the cuts and the number of steps; warn if steps run out."""
    from scipy.optimize import minimize  # noqa: PLC0415 - fitting alone needs it
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - the same

    features, expand = reduce_columns(matrix)
    width = features.shape[1]
    optimum = minimize(
        penalised_loss,
        np.concatenate([np.zeros(width), _initial_cuts(codes, weights)]),
        args=(features, codes, weights, penalty, loss),
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": steps,
            "maxfun": 2 * steps,
            "gtol": GRADIENT_TOLERANCE,
            "ftol": GAIN_TOLERANCE,
            "maxcor": 20,
        },
    )
    if optimum.status == 1:
        warnings.warn(
            f"The fit has not arrived after {steps} steps. Scale the features, raise the penalty "
            "or allow more steps.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return expand(optimum.x[:width]), build_ordered_cuts(optimum.x[width:]), int(optimum.nit)


def reduce_columns(matrix: Any) -> tuple[Any, Callable[[Floats], Floats]]:
    """Return features with no more columns than rows, and the way back to all coefficients.

    A ridge penalty keeps coefficients to sums of rows. So where there are more features than rows,
    X = U S V' may be fitted as U S, with coefficients of the same length: those of X are V times
    them. U and S come from the small matrix X X'.
    """
    rows, columns = matrix.shape
    if columns <= rows or rows > MOST_ROWS:
        return matrix, lambda coefficients: coefficients
    products = matrix @ matrix.T
    dense = products if isinstance(products, np.ndarray) else products.toarray()
    squares, vectors = np.linalg.eigh(dense)
    nonzero = squares > max(squares[-1], 0.0) * rows * np.finfo(float).eps
    roots, vectors = np.sqrt(squares[nonzero]), vectors[:, nonzero]
    return vectors * roots, lambda found: matrix.T @ (vectors @ (found / roots))


def compute_level_probabilities(higher: Floats) -> Floats:
    """Return the probability of each level from those [N, P - 1] to lie above each cut."""
    first, last = np.ones((len(higher), 1)), np.zeros((len(higher), 1))
    return np.maximum(-np.diff(np.hstack([first, higher, last]), axis=1), 0.0)


def _initial_cuts(codes: Levels, weights: Floats) -> Floats:
    """Return the cuts of a model without features: the logits of the cumulative shares."""
    shares = np.cumsum(np.bincount(codes, weights))[:-1] / weights.sum()
    cuts = np.log(shares) - np.log1p(-shares)
    return np.concatenate([cuts[:1], np.log(np.diff(cuts))])


def _sum_by_level(codes: Levels, values: Floats, count: int) -> Floats:
    """Return the sum of the values of each level."""
    return np.bincount(codes, values, count).astype(float)


def _softplus(x: Floats) -> Floats:
    return np.logaddexp(0.0, x)


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + e^-x), without overflow."""
    return np.exp(-np.logaddexp(0.0, -x))
