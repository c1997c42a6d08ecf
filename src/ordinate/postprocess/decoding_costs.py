"""Decoding costs: every method of decoding ends in one matrix of gains.

gain[k, a] is what the prediction a is worth where gold is level k. The prediction for a row of
probabilities p is the level with the largest sum over k of p_k gain[k, a].
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption
from ordinate.metrics import Metric, find_metric
from ordinate.metrics.table_sums import CHANCE_CORRECTED_BASES, compute_cell_effects
from ordinate.scale import Scale
from ordinate.summaries import ConfusionMatrix

Floats = NDArray[np.float64]
Levels = NDArray[np.intp]
DecodingMethod = Literal["linear", "ratio", "search"]

BLOCK_ROWS = 1 << 16  # that are decoded together
TIE_TOLERANCE = 1e-10  # of what is at stake in a row: a smaller difference is none
MOST_STEPS = 100  # of Dinkelbach's method; about five are needed
RATIO_TOLERANCE = 1e-12  # change of the ratio that ends it
CHANCE_TOLERANCE = 1e-9  # kappa that is none
MOST_SEARCHED_ROWS = 20_000  # of a search
WIDEST_FACTOR, FINEST_FACTOR = 4.0, 0.02  # factors of a search, in powers of 2
MOST_ROUNDS = 200  # over all levels
# Steps towards the worst level, the first of which is the strongest.
LEANING_STEPS, STRONGEST_LEANING = 300, 2.0

# Metrics that are best where a linear one is, when every item has a prediction.
EQUIVALENT_METRICS = {"rmse": "mse", "f1_micro": "accuracy", "recall_macro": "macro_accuracy"}
SEARCHED_METRICS = {
    "f1_macro": "accuracy",
    "f1_weighted": "accuracy",
    "mcc": "accuracy",
    "min_sensitivity": "accuracy",
    "max_mae": "mae",
}
WORST_LEVEL_METRICS = {"min_sensitivity", "max_mae"}  # metrics of the worst level
DECODABLE_HINT = (
    "Metrics that are sums over the items (accuracy, mae, cem_ord, macro_mae, expected_cost, …), "
    "the kappas and cem_ord_chance_corrected are decoded exactly, and "
    f"{', '.join(SEARCHED_METRICS)} by a search."
)


class DecodingPlan(NamedTuple):
    """The decoding method of a metric, and the linear metric that prices single predictions."""

    method: DecodingMethod
    base: Metric


def plan_decoding(metric: Metric, scale: Scale) -> DecodingPlan:
    """Return the decoding plan of a metric, or refuse with the reason."""
    name = metric.alias_of or metric.name
    if metric.summary is not ConfusionMatrix:
        _refuse_metric(metric, "it is no metric of levels")
    if metric.direction == "zero":
        _refuse_metric(
            metric, "it is best at 0, which no prediction of one item brings nearer on its own"
        )
    if name in EQUIVALENT_METRICS:
        return DecodingPlan("linear", find_metric(EQUIVALENT_METRICS[name]))
    if metric.linear:
        return DecodingPlan("linear", metric)
    if name in CHANCE_CORRECTED_BASES:
        return DecodingPlan("ratio", CHANCE_CORRECTED_BASES[name](metric, scale))
    if name in SEARCHED_METRICS:
        return DecodingPlan("search", find_metric(SEARCHED_METRICS[name]))
    return _refuse_metric(metric, "it is neither a sum over the items nor a ratio of two such sums")


def _refuse_metric(metric: Metric, reason: str) -> NoReturn:
    raise BadOption(f"{metric.expression} cannot be decoded: {reason}. {DECODABLE_HINT}")


# --- what one prediction is worth ----------------------------------------------------------------


def compute_credits(
    metric: Metric, scale: Scale, gold: Floats, levels: Levels | None = None
) -> Floats:
    """Return what each prediction is worth on a linear metric relative to the right one.

    The row of a level without items is 0, and so are rows that are not among `levels`.

    >>> compute_credits(find_metric("mae"), Scale.of("low,mid,high"), np.ones(3)).tolist()
    [[0.0, -1.0, -2.0], [-1.0, 0.0, -1.0], [-2.0, -1.0, 0.0]]
    """
    effects = compute_cell_effects(metric, scale, gold, levels)
    if not np.isfinite(effects).all():
        when = metric.undefined_when or "gold lacks the levels that it needs"
        _refuse_metric(metric, f"it is undefined here: {when}")
    return effects if metric.direction == "maximize" else 0.0 - effects


def _merits(metric: Metric, scale: Scale, counts: Floats) -> Any:
    return metric.merit(metric(ConfusionMatrix.from_counts(counts, scale)))


def find_fixed_credits(metric: Metric, scale: Scale) -> Floats | None:
    """Return the credits of a metric for which the shares of gold do not matter, or None."""
    size = len(scale)
    ends, alike, rising = np.array([0, size - 1]), np.ones(size), np.arange(1.0, size + 1.0)
    first, second = (compute_credits(metric, scale, gold, ends) for gold in (alike, rising))
    same = np.allclose(first, second, rtol=1e-9, atol=1e-9)
    return compute_credits(metric, scale, alike) if same else None


# --- predictions ---------------------------------------------------------------------------------


def choose_levels(probabilities: Floats, gain: Floats) -> Levels:
    """Return the best level of each row; of equals the most probable, then the lowest."""
    levels = np.empty(len(probabilities), np.intp)
    at_stake = np.abs(gain).max(axis=1)
    for start in range(0, len(levels), BLOCK_ROWS):
        block = probabilities[start : start + BLOCK_ROWS]
        worth = block @ gain
        tolerance = TIE_TOLERANCE * (block @ at_stake)
        tied = worth >= (worth.max(axis=1) - tolerance)[:, None]
        levels[start : start + BLOCK_ROWS] = np.where(tied, block, -1.0).argmax(axis=1)
    return levels


def compute_expected_matrix(probabilities: Floats, predicted: Levels) -> Floats:
    """Return the expected confusion matrix [K, K] of predictions."""
    size = probabilities.shape[1]
    columns = [np.bincount(predicted, probabilities[:, k], size) for k in range(size)]
    return np.stack(columns)


# --- kappas --------------------------------------------------------------------------------------


class OptimalGain(NamedTuple):
    """The gains at which a ratio of expectations is least, and that ratio."""

    gain: Floats
    ratio: float


def minimise_cost_ratio(probabilities: Floats, cost: Floats, shares: Floats) -> OptimalGain:
    """Minimise the expected cost over that by chance, by Dinkelbach's method.

    By chance, a prediction a costs the sum over k of shares_k cost[k, a].
    """
    by_chance = shares @ cost
    ratio, optimum = 1.0, OptimalGain(by_chance - cost, 1.0)
    for _ in range(MOST_STEPS):
        matrix = compute_expected_matrix(probabilities, choose_levels(probabilities, optimum.gain))
        ratio = float((matrix * cost).sum() / (matrix.sum(axis=0) @ by_chance))
        done = abs(ratio - optimum.ratio) <= RATIO_TOLERANCE
        optimum = OptimalGain(ratio * by_chance - cost, ratio)
        if done:
            break
    return optimum


# --- a search ------------------------------------------------------------------------------------


def search_level_factors(
    metric: Metric, scale: Scale, probabilities: Floats, credit: Floats, shares: Floats
) -> Floats:
    """Return the gains of the factors on the levels with the best expected confusion matrix.

    One factor after the other is multiplied and divided by ever smaller powers of 2 for as long as
    that helps. It starts from equal factors, from one over the shares or, where the metric is that
    of the worst level, from factors under which all levels do equally well. Levels that gold
    lacks have none.
    """
    seen = shares > 0
    rows = probabilities[:: -(-len(probabilities) // MOST_SEARCHED_ROWS)]

    def count_expected(factors: Floats) -> Floats:
        return compute_expected_matrix(rows * seen, choose_levels(rows, factors[:, None] * credit))

    def worth(cells: Floats) -> float:
        value = float(_merits(metric, scale, cells))
        return -np.inf if np.isnan(value) else value

    def merit(factors: Floats) -> float:
        return worth(count_expected(factors))

    rarity = np.divide(1.0, shares, out=np.zeros(len(shares)), where=seen)
    starts = [seen.astype(float), rarity]
    if (metric.alias_of or metric.name) in WORST_LEVEL_METRICS:
        starts.append(_search_leaning_factors(count_expected, worth, credit, rarity))
    factors = max(starts, key=merit)
    best, step = merit(factors), WIDEST_FACTOR
    for _ in range(MOST_ROUNDS):
        before = best
        for level in np.flatnonzero(seen):
            for power in (step, -step):
                trial = factors.copy()
                trial[level] *= 2.0**power
                if (value := merit(trial)) > best + TIE_TOLERANCE:
                    factors, best = trial, value
        step = step / 2.0 if best == before else step
        if step < FINEST_FACTOR:
            break
    return factors[:, None] * credit


def _search_leaning_factors(
    count_expected: Callable[[Floats], Floats],
    worth: Callable[[Floats], float],
    credit: Floats,
    start: Floats,
) -> Floats:
    """Return the best factors on a path that leans ever less towards levels that do worse.

    These are multiplicative weights. Raising one factor at a time cannot raise the least of two
    equals, but raising both can.
    """
    factors, best = start, (-np.inf, start)
    for step in range(1, LEANING_STEPS + 1):
        cells = count_expected(factors)
        best = max(best, (worth(cells), factors), key=lambda found: found[0])
        items = cells.sum(axis=1)
        present = items > 0
        fares = (cells * credit).sum(axis=1)[present] / items[present]
        lean = (fares.mean() - fares) / max(np.abs(fares).max(), TIE_TOLERANCE)
        factors = factors.copy()
        factors[present] *= np.exp(STRONGEST_LEANING / np.sqrt(step) * lean)
    return best[1]
