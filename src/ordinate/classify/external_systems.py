"""Predictions that somebody else made: by hand, by a language model, by another program."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadProbabilities, OffScale, brief, suggest
from ordinate.readers.external_predictions import AnswerColumns, Answers, read_answers
from ordinate.render.csv_records import FORMULA
from ordinate.scale import Scale
from ordinate.scale.labels import is_missing, text_of
from ordinate.summaries.probabilities import checked_columns

Positions = NDArray[np.intp]
SHOWN = 5  # ids that a sentence names
BY_ARGMAX = "the most probable one (argmax), where it gives probabilities"


@dataclass(frozen=True)
class Answered:
    """How many of the items a file answers; `unknown` are ids that no data set has."""

    count: int
    items: int
    unknown: tuple[str, ...] = ()
    elsewhere: int = 0  # ids of other data sets

    @property
    def share(self) -> float:
        """The share of the items that are answered."""
        return self.count / self.items if self.items else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "answered": self.count,
            "items": self.items,
            "share": self.share if self.items else None,
            "unknown": len(self.unknown),
            "unknown_ids": list(self.unknown),
            "of_other_sets": self.elsewhere,
        }


@dataclass(frozen=True, eq=False)
class External:
    """What one file answers, by id: positions on the scale, K where it has no answer.

    `way` says where its levels come from.
    """

    name: str
    file: str
    scale: Scale
    levels: dict[str, int]
    way: str

    def answers_to(self, ids: Sequence[str]) -> Positions:
        """Return the position of each item, K for those that the file does not answer."""
        none = len(self.scale)
        return np.array([self.levels.get(one, none) for one in ids], np.intp)

    def answered(self, ids: Sequence[str], elsewhere: Iterable[str] = ()) -> Answered:
        """Return how many items have an answer; `elsewhere` are the ids of other data sets."""
        here, others = set(ids), set(elsewhere)
        count = int((self.answers_to(ids) < len(self.scale)).sum())
        beyond = [one for one in self.levels if one not in here]
        unknown = tuple(one for one in beyond if one not in others)
        return Answered(count, len(ids), unknown, len(beyond) - len(unknown))

    def sentences(self, found: Answered) -> list[str]:
        """Say what the levels are, how many items have one, and which ids are unknown."""
        counts = f"{found.count:,} of {found.items:,} items ({found.share:.1%})"
        parts = [f"{self.name} ({self.file}) answers {counts}; its level is {self.way}."]
        if found.unknown:
            count = len(found.unknown)
            rows = "1 row of an unknown item" if count == 1 else f"{count:,} rows of unknown items"
            more = ", …" if count > SHOWN else ""
            ids = ", ".join(map(brief, found.unknown[:SHOWN])) + more
            parts.append(f"{self.name} has {rows} ({ids}), left out.")
        return parts


def read_externals(
    paths: Sequence[str],
    scale: Scale,
    columns: AnswerColumns | None = None,
    *,
    renormalize: bool = False,
) -> list[External]:
    """Read files of predictions on a scale; a level without a probability has probability 0."""
    read = read_answers(paths, columns or AnswerColumns())
    return [_Settling(scale, one, renormalize=renormalize).external() for one in read]


def _bare(one: str, known: set[str]) -> str:
    """Return an id without the quote that CSV has before what a spreadsheet takes for a formula."""
    quoted = one.startswith("'") and one[1:].startswith(FORMULA) and one[1:] not in known
    return one[1:] if quoted else one


class _Settling:
    """The answers of one file, one after the other brought onto the scale."""

    def __init__(self, scale: Scale, given: Answers, *, renormalize: bool) -> None:
        self.scale, self.given, self.renormalize = scale, given, renormalize

    def external(self) -> External:
        """Return all answers as positions."""
        given = self.given
        known = {one for one, _ in given.rows}
        levels = {_bare(one, known): self._level(one, answer) for one, answer in given.rows}
        way = "the one it gives" if given.column is None else f"that of its column {given.column!r}"
        if any(isinstance(answer, Mapping) for _, answer in given.rows):
            way = BY_ARGMAX
        return External(given.name, given.file, self.scale, levels, way)

    def _level(self, one: str, answer: Any) -> int:
        """Return the position of one answer, K where it is empty."""
        if not isinstance(answer, Mapping):
            return self._position(one, answer)
        shares = np.zeros(len(self.scale))
        cells = {self._position(one, level): cell for level, cell in answer.items()}
        if len(cells) < len(answer) or len(self.scale) in cells:
            raise BadProbabilities(
                f"{self.given.file}: the levels of the probabilities of id {brief(one)} are not "
                f"each another one of {self.scale}."
            )
        if all(is_missing(cell) for cell in cells.values()):
            return len(self.scale)
        for position, cell in cells.items():
            shares[position] = self._number(one, cell)
        self._check(one, shares)
        return int(shares.argmax())

    def _check(self, one: str, shares: NDArray[np.float64]) -> None:
        place = f"id {brief(one)}"
        try:
            checked_columns(shares[:, None], renormalize=self.renormalize, place=lambda _: place)
        except BadProbabilities as problem:
            raise BadProbabilities(f"{self.given.file}: {problem}") from None

    def _position(self, one: str, label: Any) -> int:
        try:
            if isinstance(label, bool):  # which Python takes for 0 and 1
                raise KeyError(label)
            return self.scale.lookup[label]
        except (KeyError, TypeError):  # a list is not hashable
            hint = suggest(str(label).strip(), [text_of(x) for x in self.scale.labels])
            raise OffScale(
                f"Label {brief(label)} (id {brief(one)} of {self.given.file}) is not on the scale "
                f"{self.scale}.{hint} Correct it, or leave it empty where there is no answer."
            ) from None

    def _number(self, one: str, cell: Any) -> float:
        try:
            if isinstance(cell, bool) or is_missing(cell):
                raise ValueError
            return float(cell)
        except (TypeError, ValueError):
            raise BadProbabilities(
                f"{self.given.file}: {brief(cell)} among the probabilities of id {brief(one)} is "
                "not a number."
            ) from None
