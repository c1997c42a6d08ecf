"""Scale: the labels from lowest to highest, where they stand, and how they are shown."""

import copy
import csv
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadScale, shorten, suggest_names
from ordinate.scale.labels import LabelLookup, convert_to_python, is_missing, normalize_label

PRESETS: dict[str, tuple[Hashable, ...]] = {
    "cefr": ("A1", "A2", "B1", "B2", "C1", "C2"),
    "likert5": ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    "likert7": (
        "strongly disagree",
        "disagree",
        "somewhat disagree",
        "neutral",
        "somewhat agree",
        "agree",
        "strongly agree",
    ),
    "stars5": (1, 2, 3, 4, 5),
    "sentiment3": ("negative", "neutral", "positive"),
    "sentiment5": ("very negative", "negative", "neutral", "positive", "very positive"),
}

MOST_LEVELS = 300  # closeness compares three levels at a time
MOST_SHOWN = 20  # levels of a scale in a sentence
SMALLEST_STEP, FARTHEST_POSITION = 1e-75, 1e75  # the fourth powers of whose gaps are numbers


def _freeze_array(values: NDArray[Any]) -> NDArray[Any]:
    values.setflags(write=False)
    return values


@dataclass(frozen=True, init=False, eq=False)
class Scale:
    """Labels from lowest to highest, one step apart unless `positions` say otherwise.

    >>> Scale(["low", "mid", "high"])
    Scale(low < mid < high)
    >>> Scale([1, 2, 5]).positions          # numeric labels do not imply gaps
    array([0., 1., 2.])
    >>> Scale(["mild", "severe"], positions=[0, 3]).span
    3.0
    """

    labels: tuple[Hashable, ...]
    at: tuple[float, ...] = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    preset: str | None = field(repr=False)
    tidy: bool = field(default=False, repr=False)

    def __init__(
        self,
        labels: Iterable[Hashable],
        *,
        positions: Sequence[float] | None = None,
        names: Sequence[str] | None = None,
        preset: str | None = None,
    ) -> None:
        checked = _check_labels(labels)
        at = range(len(checked)) if positions is None else positions
        object.__setattr__(self, "labels", checked)
        object.__setattr__(self, "at", _check_positions(at, len(checked)))
        object.__setattr__(self, "names", _check_names(names, checked))
        object.__setattr__(self, "preset", preset)

    @classmethod
    def of(cls, declared: "Scale | str | Iterable[Hashable]") -> "Scale":
        """Return a scale from a scale, a preset's name, '1..6', 'low,mid,high' or labels.

        >>> Scale.of("1..4")
        Scale(1 < 2 < 3 < 4)
        >>> Scale.of("cefr").preset
        'cefr'
        """
        if isinstance(declared, Scale):
            return declared
        if not isinstance(declared, str) and not isinstance(declared, Iterable):
            raise BadScale(f"{shorten(declared)} is not a scale: pass labels, lowest to highest.")
        if not isinstance(declared, str):
            return cls(declared)
        if declared in PRESETS:
            return cls(PRESETS[declared], preset=declared)
        if ends := re.fullmatch(r"\s*(-?\d{1,99})\s*\.\.\s*(-?\d{1,99})\s*", declared):
            return cls(_parse_integer_range(int(ends[1]), int(ends[2])))
        try:
            labels = next(csv.reader([declared], skipinitialspace=True), [])
        except csv.Error:
            labels = []
        if len(labels) < 2:
            known = ", ".join(PRESETS)
            raise BadScale(
                f"{shorten(declared)} is not a scale: name a preset ({known}), an integer range "
                "such as 1..6, or at least two labels from lowest to highest, such as "
                "'low,mid,high'." + suggest_names(declared, [*PRESETS])
            )
        return cls(label.strip() for label in labels)

    def tidied(self) -> "Scale":
        """Return the scale that knows its labels with blanks around them, in any case, and NFKC.

        >>> Scale.of("cefr").tidied().lookup[" b2"]
        3
        """
        found = copy.copy(self)
        object.__setattr__(found, "tidy", True)
        found.__dict__.pop("lookup", None)  # which has to remember what it finds from here on
        return found

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        return tuple(map(normalize_label, self.labels)), self.at

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scale) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __len__(self) -> int:
        return len(self.labels)

    def __str__(self) -> str:
        names = list(map(str, self.labels))
        shown = names if len(names) <= MOST_SHOWN else [*names[:3], "…", names[-1]]
        return " < ".join(shown)

    def __repr__(self) -> str:
        gaps = "" if self.equal_steps else f", positions={list(self.at)}"
        return f"Scale({' < '.join(map(str, self.labels))}{gaps})"

    @property
    def equal_steps(self) -> bool:
        """Whether each level is one step above the one below it."""
        return self.at == tuple(map(float, range(len(self))))

    @property
    def span(self) -> float:
        """The largest distance: from the lowest level to the highest."""
        return self.at[-1] - self.at[0]

    @cached_property
    def positions(self) -> NDArray[np.float64]:
        """Where the levels stand: 0, 1, 2, … unless declared otherwise."""
        return _freeze_array(np.array(self.at))

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        """The distance between each two levels, by their positions."""
        return _freeze_array(np.abs(self.positions[:, None] - self.positions))

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """The distance between each two levels, counted in levels."""
        levels = np.arange(len(self))
        return _freeze_array(np.abs(levels[:, None] - levels))

    @cached_property
    def lookup(self) -> LabelLookup:
        """From label to position, in any spelling."""
        return LabelLookup(self.labels, tidy=self.tidy)


def _parse_integer_range(low: int, high: int) -> range:
    step = 1 if low <= high else -1
    return range(low, high + step, step)


def _check_labels(labels: Iterable[Hashable]) -> tuple[Hashable, ...]:
    if isinstance(labels, str):
        raise BadScale(f"Scale takes a list of labels; write Scale.of({labels!r}) for a name.")
    if isinstance(labels, (set, frozenset)):
        raise BadScale("A set has no order. Pass the labels as a list, lowest to highest.")
    checked = tuple(map(convert_to_python, islice(labels, MOST_LEVELS + 1)))
    if len(checked) > MOST_LEVELS:
        raise BadScale(
            f"More than {MOST_LEVELS} levels are a quantity rather than a scale: for regression "
            "there are ordinate.evaluate_regression and ordinate evaluate-regression."
        )
    seen: dict[str, Hashable] = {}
    for label in checked:
        try:
            hash(label)
            str(label)
        except (TypeError, ValueError):  # the latter of integers of thousands of digits
            raise BadScale(
                f"Label {shorten(label)} is not hashable, or too long. Use texts, numbers or other "
                "hashable labels."
            ) from None
        if is_missing(label):
            raise BadScale(f"Label {label!r} means a missing label. Give the level a name.")
        if normalize_label(label) in seen or label in seen.values():
            raise BadScale(f"Label {shorten(label)} is on the scale twice. Name each level once.")
        seen[normalize_label(label)] = label
    if len(checked) < 2:
        raise BadScale(
            f"A scale needs at least two levels, lowest to highest; {list(checked)} has "
            f"{len(checked)}. Example: Scale(['low', 'mid', 'high'])."
        )
    return checked


def _check_positions(positions: Iterable[float], size: int) -> tuple[float, ...]:
    given = list(positions)
    try:
        at = tuple(map(float, given))
    except (TypeError, ValueError, OverflowError):
        at = ()
    rising = all(high - low >= SMALLEST_STEP for low, high in pairwise(at))
    if len(at) != size or not rising or not np.abs(at).max() <= FARTHEST_POSITION:
        raise BadScale(
            f"Positions must be {size} numbers from -{FARTHEST_POSITION:g} to "
            f"{FARTHEST_POSITION:g} that rise with the levels, by {SMALLEST_STEP:g} or more, not "
            f"{shorten(given)}."
        )
    return at


def _check_names(names: Sequence[str] | None, labels: tuple[Hashable, ...]) -> tuple[str, ...]:
    if names is None:
        return tuple(map(str, labels))
    if len(names) != len(labels):
        raise BadScale(f"{len(names)} display names for {len(labels)} levels: give one for each.")
    return tuple(map(str, names))
