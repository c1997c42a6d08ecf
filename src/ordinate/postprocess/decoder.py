"""Decoding: from predicted probabilities to the levels that a metric rewards most."""

import warnings
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordinate.errors import BadOption, NoItems
from ordinate.metrics import Metric, find_metric
from ordinate.postprocess.class_priors import (
    ClassWeights,
    describe_mismatch,
    describe_prior_shift,
    measure_prior_shift,
    resolve_class_weights,
    undo_class_weights,
)
from ordinate.postprocess.decoding_costs import (
    CHANCE_TOLERANCE,
    MOST_SEARCHED_ROWS,
    DecodingMethod,
    DecodingPlan,
    Floats,
    Levels,
    OptimalGain,
    choose_levels,
    compute_credits,
    find_fixed_credits,
    minimise_cost_ratio,
    plan_decoding,
    search_level_factors,
)
from ordinate.postprocess.estimator import (
    BaseEstimator,
    encode_gold_levels,
    read_probability_rows,
)
from ordinate.scale import Scale, resolve_scale
from ordinate.summaries import ConfusionMatrix
from ordinate.summaries.counting import check_weights
from ordinate.summaries.probabilities import ColumnLabels, check_same_rows, list_columns
from ordinate.summaries.tabulation import convert_weights

ScaleDeclaration = Scale | str | Iterable[Hashable] | None
PLAIN_TYPES = {str, int, float, bool}  # labels that NumPy has a type for


class _FittingItems(NamedTuple):
    """The items that a decoder is fitted on; where there is no gold, there are no totals of it."""

    rows: Floats
    gold: Levels | None = None
    totals: Floats | None = None  # the number of items of each gold level, or their weight
    weights: Floats | None = None

    @property
    def shares(self) -> Floats | None:
        """The share of each gold level."""
        return None if self.totals is None else self.totals / self.totals.sum()

    @property
    def weighted_rows(self) -> Floats:
        """The rows times their weights, which expected matrices add up."""
        return self.rows if self.weights is None else self.rows * self.weights[:, None]


class Decoder(BaseEstimator):
    """Turns probabilities into the levels that a metric rewards, learned out of fold.

    `metric` is a name, an expression such as 'weighted_kappa(power=1)' or a metric; `cost` is a
    K x K matrix of your own instead, rows gold. `class_weights` are the weights that the model was
    fitted with, by level or in the order of the scale, or 'balanced': they are undone first.
    `columns` are the labels of the columns of an array, such as `model.classes_`, or "scale":
    without it, an array is taken where sorting the labels gives the order of the scale.
    `renormalize` accepts rows that were rounded to two decimals.

    Fitted, it has one matrix `gain_`: the prediction for a row p is the level a with the largest
    sum of p_k gain_[k, a], of equals the most probable one, then the lowest. `notes_` says what is
    doubtful about the probabilities that it was fitted on.

    >>> decoder = Decoder("mae", scale="low,mid,high", columns=["high", "low", "mid"]).fit()
    >>> decoder.predict([[0.40, 0.45, 0.15]]).tolist()
    ['mid']
    """

    scale_: Scale
    n_: int  # rows fitted on
    method_: DecodingMethod
    gain_: Floats  # [K, K]: what a prediction is worth, rows gold
    shares_: Floats | None  # of the levels in gold
    columns_: ColumnLabels
    weights_: Floats | None  # class weights, in the order of the scale
    ratio_: float | None  # λ of kappas: the expected cost over that by chance
    uses_gold_: bool  # whether gold, or its shares, matter
    notes_: tuple[str, ...]

    def __init__(
        self,
        metric: str | Metric | None = None,
        scale: ScaleDeclaration = None,
        *,
        class_weights: ClassWeights = None,
        cost: ArrayLike | None = None,
        columns: ColumnLabels = None,
        renormalize: bool = False,
    ) -> None:
        self.metric = metric
        self.scale = scale
        self.class_weights = class_weights
        self.cost = cost
        self.columns = columns
        self.renormalize = renormalize

    def fit(self, probabilities: Any = None, gold: Any = None, sample_weight: Any = None) -> Self:
        """Learn from out-of-fold probabilities and gold labels; an item of weight 0 is none.

        Metrics in which the shares of gold play no part (accuracy, mae, mse, expected_cost, …)
        need neither. Weighted items stand for others like them, and probabilities are taken for
        those of such items: where weights differ by level, multiply by them first.
        """
        scale = resolve_scale(self.scale, *(() if gold is None else (gold,)))
        metric = self._resolve_metric()
        plan = plan_decoding(metric, scale)
        fixed = find_fixed_credits(plan.base, scale)
        uses_gold = plan.method != "linear" or fixed is None
        columns = list_columns(self.columns)
        items = self._collect_items(scale, columns, probabilities, gold, sample_weight)
        if uses_gold and items.gold is None:
            raise BadOption(
                f"Decoding for {metric.expression} is learned from probabilities and gold labels: "
                "pass both to fit."
            )
        weights = resolve_class_weights(self.class_weights, scale, items.shares)
        items = items._replace(rows=undo_class_weights(items.rows, weights))
        totals = np.zeros(0) if items.totals is None else items.totals
        credit = compute_credits(plan.base, scale, totals) if fixed is None else fixed
        optimum = _optimise_gain(metric, plan, scale, items, credit)
        self.scale_, self.method_, self.uses_gold_ = scale, plan.method, uses_gold
        self.columns_ = columns
        self.gain_, self.ratio_ = optimum.gain, optimum.ratio if plan.method == "ratio" else None
        self.n_, self.shares_, self.weights_ = len(items.rows), items.shares, weights
        self.notes_ = tuple(self._collect_notes(metric, items))
        return self

    def predict(self, probabilities: Any) -> NDArray[Any]:
        """Return the label of the decoded level of each row; warn if the levels' shares shift."""
        self._check_fitted()
        rows = self._undo_class_weights(probabilities)
        if (shift := self._describe_rows_shift(rows)) is not None:
            warnings.warn(shift, stacklevel=2)
        return make_label_array(self.scale_)[choose_levels(rows, self.gain_)]

    def predict_positions(self, probabilities: Any) -> Levels:
        """Return the position of the decoded level of each row."""
        self._check_fitted()
        return choose_levels(self._undo_class_weights(probabilities), self.gain_)

    def describe_shift(self, probabilities: Any) -> str | None:
        """Say whether these probabilities expect other shares of levels than gold had in fit."""
        self._check_fitted()
        return self._describe_rows_shift(self._undo_class_weights(probabilities))

    @property
    def exact_(self) -> bool:
        """Whether no other predictions have a better expected value."""
        return self.method_ != "search"

    # --- parts of fitting --------------------------------------------------------------------

    def _resolve_metric(self) -> Metric:
        if (self.metric is None) == (self.cost is None):
            raise BadOption("Say what to decode for: a metric, or a cost matrix of your own.")
        if self.metric is None:
            matrix = np.asarray(self.cost).tolist()
            return find_metric("expected_cost").with_options(matrix=matrix)
        return find_metric(self.metric)

    def _collect_items(
        self,
        scale: Scale,
        columns: ColumnLabels,
        probabilities: Any,
        gold: Any,
        sample_weight: Any,
    ) -> _FittingItems:
        if probabilities is None:
            return _FittingItems(np.empty((0, len(scale))))
        rows = self._read_rows(scale, columns, probabilities, gold)
        if gold is None:
            return _FittingItems(rows)
        weights = convert_weights(sample_weight, len(rows))
        levels = encode_gold_levels(scale, gold, weights)
        check_same_rows(levels, rows)
        if weights is not None:
            positive = check_weights(weights, 0) > 0
            rows, levels, weights = rows[positive], levels[positive], weights[positive]
        if not len(levels):
            reason = "the columns are empty" if weights is None else "all weights are 0"
            raise NoItems(f"There are no items to learn decoding from: {reason}.")
        totals = np.bincount(levels, weights, len(scale)).astype(float)
        return _FittingItems(rows, levels, totals, weights)

    def _collect_notes(self, metric: Metric, items: _FittingItems) -> list[str]:
        if items.shares is None:
            return []
        notes = []
        unseen = [self.scale_.names[k] for k in np.flatnonzero(items.shares == 0)]
        if unseen and self.uses_gold_:
            notes.append(
                f"Gold has no item of {', '.join(unseen)} to fit on. What such an item would be "
                "worth is not known, and counts as nothing where it depends on the shares of gold."
            )
        if (
            apart := measure_prior_shift(items.rows, items.shares, weights=items.weights)
        ) is not None:
            notes.append(describe_mismatch(apart, weighted=self.weights_ is not None))
        if self.method_ == "ratio" and not self._compute_observed(metric, items) > 0:
            notes.append(
                f"{metric.expression} of the decoded levels is not above 0 on the items fitted on."
            )
        if self.method_ == "search":
            thinned = (
                f" over {MOST_SEARCHED_ROWS:,} rows" if len(items.rows) > MOST_SEARCHED_ROWS else ""
            )
            notes.append(f"A search found the predictions{thinned}: better ones may exist.")
        return notes

    def _compute_observed(self, metric: Metric, items: _FittingItems) -> float:
        size, gold = len(self.scale_), np.asarray(items.gold)
        cell = gold * size + choose_levels(items.rows, self.gain_)
        cells = np.bincount(cell, items.weights, size * size)
        return float(metric(ConfusionMatrix.from_counts(cells.reshape(size, size), self.scale_)))

    # --- probabilities -----------------------------------------------------------------------

    def _read_rows(
        self, scale: Scale, columns: ColumnLabels, probabilities: Any, gold: Any = None
    ) -> Floats:
        rows = read_probability_rows(
            scale, probabilities, columns, gold=gold, renormalize=self.renormalize
        )
        return rows / rows.sum(axis=1, keepdims=True)

    def _undo_class_weights(self, probabilities: Any) -> Floats:
        return undo_class_weights(
            self._read_rows(self.scale_, self.columns_, probabilities), self.weights_
        )

    def _describe_rows_shift(self, rows: Floats) -> str | None:
        if not self.uses_gold_ or self.shares_ is None:
            return None
        apart = measure_prior_shift(rows, self.shares_, self.n_)
        return None if apart is None else describe_prior_shift(apart)


def _optimise_gain(
    metric: Metric, plan: DecodingPlan, scale: Scale, items: _FittingItems, credit: Floats
) -> OptimalGain:
    if plan.method == "linear" or items.shares is None:
        return OptimalGain(credit, 0.0)
    if plan.method == "search":
        return OptimalGain(
            search_level_factors(metric, scale, items.weighted_rows, credit, items.shares), 0.0
        )
    if (items.shares > 0).sum() < 2:
        raise BadOption(f"{metric.expression} cannot be decoded: gold has one level only.")
    optimum = minimise_cost_ratio(items.weighted_rows, -credit, items.shares)
    if optimum.ratio >= 1.0 - CHANCE_TOLERANCE:
        raise BadOption(
            f"{metric.expression} cannot be decoded with these probabilities: the best that they "
            f"lead to expect is {1.0 - optimum.ratio:.3f}, which is no better than chance. Do they "
            "say anything about the levels, and do their columns stand in the right order?"
        )
    return optimum


def make_label_array(scale: Scale) -> NDArray[Any]:
    """Return the labels as an array: of numbers or strings where all are, else of objects."""
    types = {type(label) for label in scale.labels}
    if len(types) == 1 and types <= PLAIN_TYPES:
        return np.array(scale.labels)
    labels = np.empty(len(scale), object)
    for place, label in enumerate(scale.labels):
        labels[place] = label  # which may be a tuple
    return labels
