"""Recalibration of probabilities on held-out items: temperature, vector, isotonic."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NoItems, shorten, suggest_names
from ordinate.metrics.isotonic import IsotonicCurve, fit_isotonic
from ordinate.postprocess.decoder import make_label_array
from ordinate.postprocess.estimator import (
    BaseEstimator,
    encode_gold_levels,
    read_probability_rows,
)
from ordinate.scale import Scale, resolve_scale
from ordinate.summaries.counting import check_weights
from ordinate.summaries.probabilities import ColumnLabels, list_columns
from ordinate.summaries.tabulation import check_same_length, convert_weights

Floats = NDArray[np.float64]
Bools = NDArray[np.bool]
ScaleDeclaration = Scale | str | Iterable[Hashable] | None

# What a probability of 0 counts for, as in the log loss.
SMALLEST_PROBABILITY = float(np.finfo(float).eps)
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.01, 1000.0
NEGLIGIBLE_SHARE = 1e-300  # share of all weight that is none
WEIGHT_BOUNDS = (5e-324, 1e150)  # of weights that are divided by their sum at once
LOWEST_EXPONENT = -700.0  # the exponential of which is still above 0
BLOCK_ROWS = 1 << 14  # whose derivatives are taken together
MOST_STEPS = 100  # of Newton's method; about ten are needed
# Added to second derivatives: equal probabilities do not determine a temperature.
DERIVATIVE_RIDGE = 1e-12
LEAST_GAIN = 1e-12  # log loss that one more step would gain


class CalibrationItems(NamedTuple):
    """Items with a gold label and a weight; the weights sum to 1."""

    probabilities: Floats
    gold: NDArray[np.intp]
    weights: Floats
    size: float  # how many items the weights stand for


class Recalibration(BaseEstimator, ABC):
    """The base of all methods of recalibration: fit on items that no model was fitted on.

    `fit` takes probabilities [N, K] and gold labels. `predict_proba` and `transform` (the same)
    return probabilities [N, K] in the order of the scale; each row sums to 1 and has no zeros.
    `columns` are the labels of the columns of an array, such as `model.classes_`, or "scale":
    without it, an array is taken where sorting the labels gives the order of the scale.
    `renormalize` accepts rows that were rounded to two decimals.

    Items of weight 0 do not exist. Integer weights are counts of items; other weights stand for
    (Σw)² / Σw² items.

    In scikit-learn, `cross_val_predict(…, method="predict_proba")` numbers the labels from 0 in
    their sorted order before it calls `fit`: give it positions as gold, and the scale 0..K-1. Its
    scorers of probabilities ("neg_log_loss") take columns for sorted labels without a look at
    `classes_`, and are silently wrong where the scale has another order (low < mid < high).
    """

    scale_: Scale
    columns_: ColumnLabels

    def __init__(
        self,
        scale: ScaleDeclaration = None,
        *,
        columns: ColumnLabels = None,
        renormalize: bool = False,
    ) -> None:
        self.scale = scale
        self.columns = columns
        self.renormalize = renormalize

    def fit(self, probabilities: Any, gold: Any, sample_weight: Any = None) -> Self:
        """Learn from held-out probabilities and gold labels."""
        scale, columns = resolve_scale(self.scale, gold), list_columns(self.columns)

        def read(there: Bools) -> Floats:
            return read_probability_rows(
                *(scale, probabilities, columns),
                gold=gold,
                renormalize=self.renormalize,
                there=there,
            )

        self._fit_items(_collect_items(scale, read, gold, sample_weight))
        self.scale_, self.columns_ = scale, columns
        return self

    def fit_transform(self, probabilities: Any, gold: Any, sample_weight: Any = None) -> Floats:
        """Learn, and return the recalibrated probabilities of the same items."""
        return self.fit(probabilities, gold, sample_weight).transform(probabilities)

    def predict_proba(self, probabilities: Any) -> Floats:
        """Return recalibrated probabilities, in the order of the scale."""
        self._check_fitted()
        rows = read_probability_rows(
            self.scale_, probabilities, self.columns_, renormalize=self.renormalize
        )
        return self._recalibrate(rows)

    def transform(self, probabilities: Any) -> Floats:
        """Return recalibrated probabilities, in the order of the scale."""
        return self.predict_proba(probabilities)

    def predict(self, probabilities: Any) -> NDArray[Any]:
        """Return the label of the most probable level of each row, the lowest of equals."""
        return self.classes_[self.predict_proba(probabilities).argmax(axis=1)]

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the scale, in its order: those of the columns of `predict_proba`."""
        return make_label_array(self.scale_)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags

    @abstractmethod
    def _fit_items(self, items: CalibrationItems) -> None:
        """Learn from held-out items."""

    @abstractmethod
    def _recalibrate(self, probabilities: Floats) -> Floats:
        """Return recalibrated probabilities."""


def _collect_items(
    scale: Scale, read: Callable[[Bools], Floats], gold: Any, sample_weight: Any
) -> CalibrationItems:
    given = convert_weights(sample_weight)
    if given is not None:
        heavy = check_weights(given, 0, WEIGHT_BOUNDS) > NEGLIGIBLE_SHARE * given.sum()
        given = np.where(heavy, given, 0.0)
    levels = encode_gold_levels(scale, gold, given)
    weights = np.ones(len(levels)) if given is None else given
    check_same_length(len(levels), len(weights), "labels", "weights")
    there = weights > 0
    rows = read(there)
    if not there.any():
        reason = "all weights are 0" if len(levels) else "there are no rows"
        raise NoItems(f"There are no items to recalibrate with: {reason}.")
    weights = weights[there]
    shares = weights / weights.sum()
    return CalibrationItems(rows, levels[there], shares, _count_items(weights))


def _count_items(weights: Floats) -> float:
    """Return how many items weights stand for: counts for their sum, others for Kish's number."""
    if (weights == np.floor(weights)).all():
        return float(weights.sum())
    shares = weights / weights.sum()
    return float(1.0 / (shares**2).sum())


class _LogitScaling(Recalibration):
    """Logits that are changed in a straight line, a_k log p_k + b_k, by penalised likelihood."""

    def __init__(
        self,
        scale: ScaleDeclaration = None,
        *,
        ridge: float = 1.0,
        columns: ColumnLabels = None,
        renormalize: bool = False,
    ) -> None:
        super().__init__(scale, columns=columns, renormalize=renormalize)
        self.ridge = ridge

    def _minimise_loss(
        self,
        items: CalibrationItems,
        start: Floats,
        directions: Floats,
        bounds: tuple[float, float],
    ) -> Floats:
        """Return the parameters with the least penalised log loss; they begin at no change.

        `directions` @ parameters are the slopes a of all levels, then the offsets b.
        """
        if not (isinstance(self.ridge, Real) and 0.0 <= self.ridge < np.inf):
            raise BadOption(f"ridge={self.ridge!r} is not a finite number of at least 0.")
        logs = np.log(np.maximum(items.probabilities, SMALLEST_PROBABILITY))
        ridge = self.ridge / items.size

        def penalise_loss(here: Floats) -> Derivatives:
            loss, slope, bend = _differentiate_log_loss(directions @ here, logs, items)
            moved = here - start
            return Derivatives(
                loss + ridge / 2.0 * float(moved @ moved),
                directions.T @ slope + ridge * moved,
                directions.T @ bend @ directions + ridge * np.eye(len(here)),
            )

        return minimise_convex(penalise_loss, start, *bounds)


class TemperatureScaling(_LogitScaling):
    """One temperature for all levels: p_k becomes proportional to p_k^(1/T).

    T above 1 makes a model less confident, T below 1 more. The order of a row's probabilities
    stays. T minimises the log loss plus `ridge` (1/T − 1)² / (2n): like a normal prior for 1/T
    with standard deviation 1 around no change, it fades with n and keeps few or perfectly separated
    items from asking for certainty. `ridge=0` is plain likelihood. T stays from 0.01 to 1000 in any
    case. A probability of 0 counts for 2.2e-16, as in the log loss.

    >>> scaling = TemperatureScaling("A,B,C")
    >>> sure, gold = [[0.98, 0.01, 0.01]] * 100, ["A"] * 60 + ["B"] * 20 + ["C"] * 20
    >>> scaling.fit(sure, gold).predict_proba(sure[:1]).round(2).tolist()
    [[0.6, 0.2, 0.2]]
    >>> round(scaling.temperature_, 1)
    4.1
    """

    temperature_: float

    def _fit_items(self, items: CalibrationItems) -> None:
        shared = _identity_parameters(items)[:, None]
        bounds = 1.0 / HIGHEST_TEMPERATURE, 1.0 / LOWEST_TEMPERATURE
        (inverse,) = self._minimise_loss(items, np.ones(1), shared, bounds)
        self.temperature_ = float(1.0 / inverse)

    def _recalibrate(self, probabilities: Floats) -> Floats:
        return _scale_logits(probabilities, 1.0 / self.temperature_, 0.0)


class VectorScaling(_LogitScaling):
    """A slope and an offset for each level: p_k becomes proportional to exp(a_k log p_k + b_k).

    They minimise the log loss plus `ridge` Σ_k ((a_k − 1)² + b_k²) / (2n): like a normal prior
    with standard deviation 1 around no change, it fades with n. So a level that is absent from the
    held-out gold becomes rarer, by more where more items could have had it, but never impossible,
    and perfectly separated items do not ask for certainty. `ridge=0` is plain likelihood, which has
    no such guard. A probability of 0 counts for 2.2e-16, as in the log loss.

    >>> scaling = VectorScaling("A,B")
    >>> even, gold = [[0.5, 0.5]] * 100, ["A"] * 80 + ["B"] * 20
    >>> scaling.fit(even, gold).predict_proba(even[:1]).round(2).tolist()
    [[0.8, 0.2]]
    """

    slopes_: Floats
    offsets_: Floats

    def _fit_items(self, items: CalibrationItems) -> None:
        start = _identity_parameters(items)
        best = self._minimise_loss(items, start, np.eye(len(start)), (-np.inf, np.inf))
        self.slopes_, self.offsets_ = np.split(best, 2)

    def _recalibrate(self, probabilities: Floats) -> Floats:
        return _scale_logits(probabilities, self.slopes_, self.offsets_)


class CumulativeIsotonic(Recalibration):
    """A rising curve for each of the K − 1 events "gold is at most level k".

    Each curve is the isotonic regression of the event on its predicted probability (to 12
    decimals): constant within a block, linear between blocks, constant beyond the first and the
    last. Curves can cross; each is raised to the highest of those of lower levels. Then 1/(n + 1)
    of an even distribution is blended in, p_k ← (1 − 1/(n + 1)) p_k + 1/(n + 1) · 1/K, so that no
    probability is 0.

    >>> scaling = CumulativeIsotonic("A,B")
    >>> sure, gold = [[0.9, 0.1]] * 9 + [[0.2, 0.8]] * 10, ["A"] * 6 + ["B"] * 13
    >>> scaling.fit(sure, gold).predict_proba([[0.9, 0.1], [0.2, 0.8]]).round(3).tolist()
    [[0.658, 0.342], [0.025, 0.975]]
    """

    curves_: tuple[IsotonicCurve, ...]
    items_: float

    def _fit_items(self, items: CalibrationItems) -> None:
        below = items.probabilities.cumsum(axis=1)[:, :-1]
        self.curves_ = tuple(
            fit_isotonic(below[:, k], items.gold <= k, items.weights) for k in range(below.shape[1])
        )
        self.items_ = items.size

    def _recalibrate(self, probabilities: Floats) -> Floats:
        below = probabilities.cumsum(axis=1)
        for k, curve in enumerate(self.curves_):
            below[:, k] = curve(below[:, k])
        below[:, -1] = 1.0
        raised = np.maximum.accumulate(below, axis=1)
        share = 1.0 / (self.items_ + 1.0)
        return (1.0 - share) * np.diff(raised, axis=1, prepend=0.0) + share / below.shape[1]


RECALIBRATION_METHODS: dict[str, type[Recalibration]] = {
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "isotonic": CumulativeIsotonic,
}


def make_recalibration(
    method: str, scale: ScaleDeclaration = None, **parameters: Any
) -> Recalibration:
    """Return a recalibration by the name of its method, not yet fitted.

    >>> make_recalibration("vector", "low,mid,high", ridge=0.1)
    VectorScaling(scale='low,mid,high', ridge=0.1)
    """
    if method not in RECALIBRATION_METHODS:
        known = ", ".join(RECALIBRATION_METHODS)
        raise BadOption(
            f"There is no recalibration {shorten(method)}, only: {known}."
            + suggest_names(str(method), [*RECALIBRATION_METHODS])
        )
    return RECALIBRATION_METHODS[method](scale).set_params(**parameters)


def _identity_parameters(items: CalibrationItems) -> Floats:
    """Return slopes of 1 and offsets of 0."""
    return np.repeat([1.0, 0.0], items.probabilities.shape[1])


def _scale_logits(probabilities: Floats, slopes: Floats | float, offsets: Floats | float) -> Floats:
    logits = np.log(np.maximum(probabilities, SMALLEST_PROBABILITY)) * slopes + offsets
    logits -= logits.max(axis=1, keepdims=True)
    odds = np.exp(np.maximum(logits, LOWEST_EXPONENT))
    return odds / odds.sum(axis=1, keepdims=True)


class Derivatives(NamedTuple):
    """A function's value, its first and its second derivatives at one place."""

    value: float
    slope: Floats
    bend: Floats


def _differentiate_log_loss(line: Floats, logs: Floats, items: CalibrationItems) -> Derivatives:
    """Return the mean log loss of logits a · logs + b and its derivatives by a and b together."""
    size = logs.shape[1]
    a, b = np.split(line, 2)
    value, slope, bend = 0.0, np.zeros(2 * size), np.zeros((2 * size, 2 * size))
    for start in range(0, len(logs), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        log, gold, weight = logs[part], items.gold[part], items.weights[part]
        own = np.arange(len(gold)), gold
        logits = log * a + b
        logits -= logits.max(axis=1, keepdims=True)
        odds = np.exp(logits)
        total = odds.sum(axis=1)
        p = odds / total[:, None]
        value += float(weight @ (np.log(total) - logits[own]))
        both = np.hstack([p * log, p])
        moments = weight @ np.hstack([both[:, :size] * log, both])
        bend -= (both * weight[:, None]).T @ both
        squares, products, plain = map(np.diag, np.split(moments, 3))
        bend += np.block([[squares, products], [products, plain]])
        seen = np.bincount(gold, weight * log[own], size), np.bincount(gold, weight, size)
        slope += moments[size:] - np.concatenate(seen)
    return Derivatives(value, slope, bend)


def minimise_convex(
    at: Callable[[Floats], Derivatives],
    start: Floats,
    low: float = -np.inf,
    high: float = np.inf,
    *,
    most_steps: int = MOST_STEPS,
) -> Floats:
    """Return where a convex function is smallest, by Newton's steps, halved until they descend.

    >>> def square(x):
    ...     return Derivatives(float(x @ x), 2 * x, 2 * np.eye(1))
    >>> minimise_convex(square, np.array([3.0]), low=1)
    array([1.])
    """
    here, now = start, at(start)
    for _ in range(most_steps):
        firm = now.bend + DERIVATIVE_RIDGE * np.eye(len(here))
        aim = np.clip(here - np.linalg.solve(firm, now.slope), low, high)
        gain = float(now.slope @ (here - aim))
        if gain <= LEAST_GAIN:
            return aim
        for half in range(50):
            there = here + (aim - here) / 2.0**half
            then = at(there)
            if then.value <= now.value - gain / 2.0**half / 10.0:
                break
        else:
            return here
        here, now = there, then
    return here
