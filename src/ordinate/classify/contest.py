"""A contest: the items of one test set, and what every system answers to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ordinate.classify.external_systems import AnswerCoverage
from ordinate.classify.predictions import Predictions
from ordinate.classify.scoring import KAPPA, NO_BETTER_THAN_CHANCE
from ordinate.errors import BadOption
from ordinate.inference import ConfidenceIntervals, Estimate, estimate_metrics
from ordinate.inference.estimates import make_point_estimate
from ordinate.metrics import find_metric
from ordinate.postprocess.decoder import make_label_array
from ordinate.scale import Scale
from ordinate.scale.encoding import Groups, factorize_column
from ordinate.summaries import ConfusionMatrix, Panel
from ordinate.summaries.tabulation import (
    DROP_HINT,
    ROWS_SHOWN,
    WORST_HINT,
    MissingPolicy,
    make_missing_labels_error,
)

Positions = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Contest:
    """The items of a test set that have a gold level, and the answers of every system.

    Gold and answers are positions on the scale; K says that a system gave no answer. `answered`
    says of systems from files how much they answer, `unlabelled` how many items were left out.
    """

    name: str
    file: str
    scale: Scale
    ids: tuple[str, ...]
    gold: Positions
    answers: Mapping[str, Positions]
    groups: NDArray[Any] | None = None
    unlabelled: int = 0
    answered: Mapping[str, AnswerCoverage] = field(default_factory=dict)
    predictions: Mapping[str, Predictions] = field(default_factory=dict)  # of models
    notes: tuple[str, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems."""
        return tuple(self.answers)

    @property
    def unanswered(self) -> bool:
        """Whether any system left an item unanswered."""
        return any((answers == len(self.scale)).any() for answers in self.answers.values())

    @property
    def report_sentences(self) -> tuple[str, ...]:
        """What a report says of the items and the systems."""
        if not self.unlabelled:
            return self.notes
        left = "1 item has" if self.unlabelled == 1 else f"{self.unlabelled:,} items have"
        return (f"{left} no gold level: left out.", *self.notes)

    def get_labels(self, positions: Positions) -> NDArray[Any]:
        """Return the labels of positions, None where there is no answer."""
        return self._labels[positions]

    @cached_property
    def _labels(self) -> NDArray[Any]:
        return np.array([*make_label_array(self.scale), None], object)

    @cached_property
    def _groups(self) -> Groups | None:
        return None if self.groups is None else factorize_column(self.groups)

    def panel(self, missing: MissingPolicy) -> Panel:
        """Count all systems together; `missing` says what becomes of unanswered items."""
        if missing not in get_args(MissingPolicy):
            raise BadOption(
                f"missing={missing!r} is not one of {', '.join(get_args(MissingPolicy))}."
            )
        if missing == "error":
            self._refuse_unanswered()
        systems = {name: self._labels[answers] for name, answers in self.answers.items()}
        gold = self._labels[self.gold]
        return Panel.of(self.scale, gold, systems, None, self._groups, missing)

    def _refuse_unanswered(self) -> None:
        for name, answers in self.answers.items():
            lacking = np.flatnonzero(answers == len(self.scale))
            if len(lacking):
                ids = [f"id {self.ids[row]}" for row in lacking[:ROWS_SHOWN]]
                way = f"Leave these items out for all systems with {DROP_HINT}, or count them as "
                way += f"wrong with {WORST_HINT}."
                raise make_missing_labels_error(
                    len(lacking), len(answers), f"answers of {name}", ids, way
                )

    def source(self, answers: Positions, missing: MissingPolicy) -> ConfusionMatrix:
        """Return the table of some answers, or where there are groups one for each."""
        gold, predicted = self._labels[self.gold], self._labels[answers]
        if self._groups is None:
            return ConfusionMatrix.of(self.scale, gold, predicted, missing=missing)
        return ConfusionMatrix.count_by_group(
            self.scale, gold, predicted, self._groups, missing=missing
        )

    def kappa(self, system: str, how: ConfidenceIntervals) -> Estimate:
        """Return the quadratic kappa of the items that a system answers."""
        answers = self.answers[system]
        if (answers == len(self.scale)).all():
            return make_point_estimate(np.nan, "it answers no item")
        found = estimate_metrics([find_metric(KAPPA)], self.source(answers, "drop"), how)
        return found[KAPPA]


def format_chance_flag(kappa: Estimate) -> str | None:
    """Return the warning for a system whose kappa may be 0, or is undefined.

    >>> low, high = Estimate(0.2, -0.1, 0.5, "delta"), Estimate(0.6, 0.4, 0.8, "delta")
    >>> format_chance_flag(low), format_chance_flag(high)
    ('no better than chance', None)
    """
    return None if kappa.low > 0.0 else NO_BETTER_THAN_CHANCE
