"""Predictions of one model for the items of a data set, and the files that hold them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.postprocess.conformal_sets import PredictionSets
from ordinate.postprocess.decoder import make_label_array
from ordinate.readers.item_query import make_names_distinct
from ordinate.scale import Scale
from ordinate.scale.labels import normalize_label
from ordinate.tuning.classify.decision_rules import METRIC_OPTIMAL, DecisionRule
from ordinate.tuning.search.prediction_table import PredictionTable

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(PredictionTable):
    """Levels, probabilities and prediction sets, as positions on the scale.

    `levels` are those of the rule that the model was tuned with; `ids` are None where the items
    have none.
    """

    model: str
    scale: Scale
    ids: tuple[str, ...] | None
    by_decision_rule: dict[DecisionRule, Positions]
    probabilities: Floats  # [N, K]
    sets: PredictionSets

    def __len__(self) -> int:
        return len(self.levels)

    @property
    def levels(self) -> Positions:
        """The levels by the metric-optimal rule."""
        return self.by_decision_rule[METRIC_OPTIMAL]

    def select_rows(self, rows: NDArray[Any]) -> "Predictions":
        """Return the predictions for some of the items."""
        places = np.arange(len(self))[rows]
        sets = PredictionSets(
            self.scale, self.sets.low_positions[places], self.sets.high_positions[places]
        )
        return replace(
            self,
            ids=None if self.ids is None else tuple(self.ids[k] for k in places),
            by_decision_rule={rule: x[places] for rule, x in self.by_decision_rule.items()},
            probabilities=self.probabilities[places],
            sets=sets,
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of a file, in order: labels are strings."""
        labels = np.array([str(normalize_label(x)) for x in make_label_array(self.scale)], object)
        columns: dict[str, NDArray[Any]] = (
            {"row": np.arange(1, len(self) + 1)}
            if self.ids is None
            else {"id": np.array([*self.ids, None], object)[:-1]}
        )
        for rule, levels in self.by_decision_rule.items():
            columns["level" if rule == METRIC_OPTIMAL else rule] = labels[levels]
        names = make_names_distinct(*(f"p_{label}" for label in labels))
        columns |= {name: self.probabilities[:, k] for k, name in enumerate(names)}
        columns["set_low"] = labels[self.sets.low_positions]
        columns["set_high"] = labels[self.sets.high_positions]
        return columns


def compute_level_shares(predictions: Predictions) -> list[tuple[str, Sequence[float]]]:
    """Return how often each level is predicted, by each decision rule."""
    size, n = len(predictions.scale), max(1, len(predictions))
    return [
        (rule, (np.bincount(levels, minlength=size) / n).tolist())
        for rule, levels in predictions.by_decision_rule.items()
    ]
