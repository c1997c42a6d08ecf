"""Cut points: from a score to the levels of a scale, as good as they can be for a metric."""

from collections.abc import Hashable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import NoItems, NotApplicable
from ordinate.metrics import Metric, find_metric
from ordinate.postprocess.cut_search import ScoreOrderedItems, is_best_value, search_best_cuts
from ordinate.postprocess.decoder import make_label_array
from ordinate.postprocess.estimator import (
    BaseEstimator,
    Floats,
    encode_gold_levels,
    read_score_column,
)
from ordinate.scale import Scale, resolve_scale
from ordinate.summaries.counting import check_weights
from ordinate.summaries.tabulation import check_same_length, convert_weights


class CutPoints(BaseEstimator):
    """The K - 1 cuts of a score that are best for a metric on the items they are fitted to.

    A score above a cut is above the level that ends there, so higher scores mean higher levels; a
    score that falls while levels rise is taken as it is and gives poor labels: turn its sign.
    Cuts are midway between two scores that occur. `cuts_` rise or stay: two equal ones leave the
    level between them unused, as do -inf at the low end and inf at the high end.

    `value_` is the metric on the items of the fit, and optimistic for others. `exact_` says
    that no other cuts do better there. Fit on out-of-fold scores.

    >>> cuts = CutPoints("quadratic_kappa", scale="low,mid,high")
    >>> cuts.fit([0.1, 0.2, 0.4, 0.3, 0.7, 0.9], ["low", "low", "mid", "low", "mid", "high"])
    CutPoints(metric='quadratic_kappa', scale='low,mid,high')
    >>> cuts.cuts_.round(2).tolist(), cuts.value_, cuts.exact_
    ([0.35, 0.8], 1.0, True)
    >>> cuts.predict([0.0, 0.5, 0.9]).tolist()
    ['low', 'mid', 'high']
    """

    scale_: Scale
    cuts_: Floats
    value_: float
    exact_: bool

    def __init__(
        self,
        metric: str | Metric,
        *,
        scale: Scale | str | Iterable[Hashable] | None = None,
    ) -> None:
        self.metric = metric
        self.scale = scale

    def fit(self, scores: Any, gold: Any, sample_weight: Any = None) -> Self:
        """Find the best cuts for these scores and gold labels; an item of weight 0 is none."""
        metric, scale = find_metric(self.metric), resolve_scale(self.scale, gold)
        values = read_score_column(scores, convert_weights(sample_weight))
        weights = _read_weights(sample_weight, len(values))
        levels = encode_gold_levels(scale, gold, weights)
        check_same_length(len(levels), len(values), "gold labels", "scores")
        positive = weights > 0
        if not positive.any():
            reason = "all weights are 0" if len(levels) else "there are no scores"
            raise NoItems(f"There are no items to find cuts for: {reason}.")
        distinct, ranks = np.unique(values[positive], return_inverse=True)
        items = ScoreOrderedItems.of(scale, ranks, levels[positive], weights[positive])
        try:
            places, exact = search_best_cuts(metric, items)
            self.value_ = float(metric(items.tabulate_cuts(places)))
        except NotApplicable as reason:
            raise NotApplicable(f"No cuts for {metric.expression}: {reason}.") from None
        self.scale_ = scale
        self.cuts_ = _midpoints(distinct)[places]
        self.exact_ = exact or is_best_value(metric, self.value_)
        return self

    def predict(self, scores: Any) -> NDArray[Any]:
        """Return the label of each score."""
        self._check_fitted()
        return make_label_array(self.scale_)[np.searchsorted(self.cuts_, read_score_column(scores))]


def _read_weights(given: Any, n: int) -> Floats:
    return np.ones(n) if given is None else check_weights(np.asarray(convert_weights(given, n)), 0)


def _midpoints(distinct: Floats) -> Floats:
    """Return a cut for each place: below all scores, between each two, above all."""
    low, high = distinct[:-1], distinct[1:]
    middle = np.maximum(low / 2.0 + high / 2.0, low)
    between = np.where(middle < high, middle, low)  # no number may be left between neighbours
    return np.concatenate([[-np.inf], between, [np.inf]])
