"""Predictions that somebody else made: by hand, by a language model, by another program."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadProbabilities, OffScale, shorten, suggest_names
from ordinate.render.estimates import format_percent
from ordinate.scale import Scale
from ordinate.scale.labels import is_missing, normalize_label
from ordinate.summaries.probabilities import check_probability_columns
from ordinate.tuning.classify.external_predictions import (
    ExternalPredictions,
    PredictionColumns,
    read_external_predictions,
)

Positions = NDArray[np.intp]
SHOWN_IDS = 5  # ids that a sentence names
ARGMAX_NOTE = "the most probable one (argmax), where it gives probabilities"


@dataclass(frozen=True)
class PredictionCoverage:
    """How many of the items a file predicts; `unknown` are ids that no data set has."""

    count: int
    items: int
    unknown: tuple[str, ...] = ()
    elsewhere: int = 0  # ids of other data sets

    @property
    def share(self) -> float:
        """The share of the items that have a prediction."""
        return self.count / self.items if self.items else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "predicted": self.count,
            "items": self.items,
            "share": self.share if self.items else None,
            "unknown": len(self.unknown),
            "unknown_ids": list(self.unknown),
            "of_other_sets": self.elsewhere,
        }


@dataclass(frozen=True, eq=False)
class ExternalSystem:
    """What one file predicts, by id: positions on the scale, K where it predicts none.

    `decision_rule` says where its levels come from.
    """

    name: str
    file: str
    scale: Scale
    levels: dict[str, int]
    decision_rule: str

    def look_up_levels(self, ids: Sequence[str]) -> Positions:
        """Return the position of each item, K for those that the file does not predict."""
        none = len(self.scale)
        return np.array([self.levels.get(one, none) for one in ids], np.intp)

    def measure_coverage(
        self, ids: Sequence[str], elsewhere: Iterable[str] = ()
    ) -> PredictionCoverage:
        """Return how many items have a prediction; `elsewhere` are the ids of other data sets."""
        here, others = set(ids), set(elsewhere)
        count = int((self.look_up_levels(ids) < len(self.scale)).sum())
        beyond = [one for one in self.levels if one not in here]
        unknown = tuple(one for one in beyond if one not in others)
        return PredictionCoverage(count, len(ids), unknown, len(beyond) - len(unknown))

    def describe_coverage(self, coverage: PredictionCoverage) -> list[str]:
        """Say what the levels are, how many items have one, and which ids are unknown."""
        counts = (
            f"{coverage.count:,} of {coverage.items:,} items ({format_percent(coverage.share)})"
        )
        file = f"{self.name} ({self.file})"
        sentences = [f"{file} predicts {counts}; its level is {self.decision_rule}."]
        if coverage.unknown:
            count = len(coverage.unknown)
            rows = "1 row of an unknown item" if count == 1 else f"{count:,} rows of unknown items"
            more = ", …" if count > SHOWN_IDS else ""
            ids = ", ".join(map(shorten, coverage.unknown[:SHOWN_IDS])) + more
            sentences.append(f"{self.name} has {rows} ({ids}), left out.")
        return sentences


def read_external_systems(
    paths: Sequence[str],
    scale: Scale,
    columns: PredictionColumns | None = None,
    *,
    renormalize: bool = False,
) -> list[ExternalSystem]:
    """Read files of predictions on a scale; a level without a probability has probability 0."""
    read = read_external_predictions(paths, columns or PredictionColumns())
    return [_LevelParser(scale, one, renormalize=renormalize).parse_system() for one in read]


class _LevelParser:
    """The predictions of one file, one after the other brought onto the scale."""

    def __init__(self, scale: Scale, given: ExternalPredictions, *, renormalize: bool) -> None:
        self.scale, self.given, self.renormalize = scale, given, renormalize

    def parse_system(self) -> ExternalSystem:
        """Return all predictions as positions."""
        given = self.given
        levels = {one: self._parse_level(one, predicted) for one, predicted in given.rows}
        rule = (
            "the one it gives" if given.column is None else f"that of its column {given.column!r}"
        )
        if any(isinstance(predicted, Mapping) for _, predicted in given.rows):
            rule = ARGMAX_NOTE
        return ExternalSystem(given.name, given.file, self.scale, levels, rule)

    def _parse_level(self, one: str, predicted: Any) -> int:
        """Return the position of one prediction, K where it is empty."""
        if not isinstance(predicted, Mapping):
            return self._parse_position(one, predicted)
        shares = np.zeros(len(self.scale))
        cells = {self._parse_position(one, level): cell for level, cell in predicted.items()}
        if len(cells) < len(predicted) or len(self.scale) in cells:
            raise BadProbabilities(
                f"{self.given.file}: the levels of the probabilities of id {shorten(one)} are not "
                f"each another one of {self.scale}."
            )
        if all(is_missing(cell) for cell in cells.values()):
            return len(self.scale)
        for position, cell in cells.items():
            shares[position] = self._parse_probability(one, cell)
        self._check(one, shares)
        return int(shares.argmax())

    def _check(self, one: str, shares: NDArray[np.float64]) -> None:
        place = f"id {shorten(one)}"
        try:
            check_probability_columns(
                shares[:, None], renormalize=self.renormalize, place=lambda _: place
            )
        except BadProbabilities as problem:
            raise BadProbabilities(f"{self.given.file}: {problem}") from None

    def _parse_position(self, one: str, label: Any) -> int:
        try:
            if isinstance(label, bool):  # which Python takes for 0 and 1
                raise KeyError(label)
            return self.scale.lookup[label]
        except (KeyError, TypeError):  # a list is not hashable
            hint = suggest_names(
                str(label).strip(), [normalize_label(x) for x in self.scale.labels]
            )
            raise OffScale(
                f"Label {shorten(label)} (id {shorten(one)} of {self.given.file}) is not on the "
                f"scale {self.scale}.{hint} Correct it, or leave it empty where there is no "
                "prediction."
            ) from None

    def _parse_probability(self, one: str, cell: Any) -> float:
        try:
            if isinstance(cell, bool) or is_missing(cell):
                raise ValueError
            return float(cell)
        except (TypeError, ValueError):
            raise BadProbabilities(
                f"{self.given.file}: {shorten(cell)} among the probabilities of id {shorten(one)} "
                "is not a number."
            ) from None
