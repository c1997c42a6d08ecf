"""Sets of neighbouring levels, one for each item, and how often they have the gold level."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NoItems
from ordinate.inference.estimates import Estimate, finite, nowhere
from ordinate.inference.small_samples import wilson
from ordinate.postprocess.decoder import labels_of
from ordinate.postprocess.scored_items import Positions, gold_levels
from ordinate.scale import Scale
from ordinate.summaries.tabulation import same_length

Bools = NDArray[np.bool]
UNKNOWN = "whether sets have the gold level cannot be told"


@dataclass(frozen=True, eq=False)
class LevelSets:
    """Sets of neighbouring levels, one for each item, from a lowest to a highest level.

    >>> sets = LevelSets(Scale.of("low,mid,high"), np.array([0, 1]), np.array([1, 1]))
    >>> sets.members.tolist(), sets.sizes.tolist(), sets.contains(["mid", "high"]).tolist()
    ([[True, True, False], [False, True, False]], [2, 1], [True, False])
    """

    scale: Scale
    low_positions: Positions
    high_positions: Positions
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.low_positions)

    @property
    def low(self) -> NDArray[Any]:
        """The label of the lowest level of each set."""
        return labels_of(self.scale)[self.low_positions]

    @property
    def high(self) -> NDArray[Any]:
        """The label of the highest level of each set."""
        return labels_of(self.scale)[self.high_positions]

    @property
    def members(self) -> Bools:
        """Whether each level [N, K] is in the set."""
        levels = np.arange(len(self.scale))
        return (self.low_positions[:, None] <= levels) & (levels <= self.high_positions[:, None])

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many levels each set has."""
        return self.high_positions - self.low_positions + 1

    def contains(self, gold: Any) -> Bools:
        """Tell whether each set has the gold level of its item."""
        levels = gold_levels(self.scale, gold, why=UNKNOWN)
        same_length(len(levels), len(self), "gold labels", "sets")
        return (self.low_positions <= levels) & (levels <= self.high_positions)


@dataclass(frozen=True)
class SetEvaluation:
    """How often sets have the gold level, and how large they are."""

    n: int
    coverage: Estimate
    coverage_by_level: dict[Hashable, Estimate]
    mean_size: float
    size_shares: dict[int, float]
    empty_share: float
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(row["of"]) for row in rows)
        covered, shares = (
            [_line(row, width) for row in rows if row["metric"] == name]
            for name in ("coverage", "share")
        )
        sets = f"{self.n} sets, {self.mean_size:.2f} levels on average"
        notes = ["", *self.notes] if self.notes else []
        lines = [sets, "", "Gold is in the set", *covered, "", "Sets by their size", *shares]
        return "\n".join([*lines, *notes])

    def rows(self) -> list[dict[str, Any]]:
        """Return flat records: coverage of all sets and by gold level, the sizes of sets."""
        of_levels = self.coverage_by_level.items()
        sizes = {0: self.empty_share} | self.size_shares
        return [
            _record("coverage", "all items", self.coverage),
            *(_record("coverage", str(label), found) for label, found in of_levels),
            _record("mean_size", "all items", nowhere(self.mean_size, "")),
            *(_record("share", str(size), nowhere(share, "")) for size, share in sizes.items()),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        levels = {str(label): found.to_dict() for label, found in self.coverage_by_level.items()}
        return {
            "n": self.n,
            "coverage": self.coverage.to_dict(),
            "coverage_by_level": levels,
            "mean_size": self.mean_size,
            "size_shares": {str(size): share for size, share in self.size_shares.items()},
            "empty_share": self.empty_share,
            "notes": list(self.notes),
        }


def evaluate_sets(sets: LevelSets, gold: Any, level: float = 0.95) -> SetEvaluation:
    """Return coverage, overall and by gold level, with Wilson's limits, and the sizes of sets.

    >>> sets = LevelSets(Scale.of("low,mid,high"), np.array([0, 1]), np.array([1, 1]))
    >>> found = evaluate_sets(sets, ["mid", "high"])
    >>> found.coverage.value, found.mean_size, found.size_shares
    (0.5, 1.5, {1: 0.5, 2: 0.5, 3: 0.0})
    """
    if not (isinstance(level, Real) and not isinstance(level, bool) and 0.5 <= level < 1.0):
        raise BadOption(f"The level of an interval is 0.5 to below 1, not {level!r}.")
    held, levels = sets.contains(gold), gold_levels(sets.scale, gold, why=UNKNOWN)
    if not len(levels):
        raise NoItems("There are no items to evaluate: there are no sets.")
    of_level = [held[levels == k] for k in range(len(sets.scale))]
    shares = np.bincount(sets.sizes, minlength=len(sets.scale) + 1) / len(sets)
    return SetEvaluation(
        n=len(sets),
        coverage=_share(held, level),
        coverage_by_level={
            label: _share(part, level)
            for label, part in zip(sets.scale.labels, of_level, strict=True)
        },
        mean_size=float(sets.sizes.mean()),
        size_shares={size: float(shares[size]) for size in range(1, len(shares))},
        empty_share=float(shares[0]),
        notes=sets.notes,
    )


def _record(metric: str, of: str, found: Estimate) -> dict[str, Any]:
    return {
        "metric": metric,
        "of": of,
        "value": finite(found.value),
        "low": finite(found.low),
        "high": finite(found.high),
        "method": found.method,
        "note": found.note or None,
    }


def _line(row: dict[str, Any], width: int) -> str:
    if row["value"] is None:
        return f"  {row['of']:<{width}}  undefined: {row['note']}"
    limits = "" if row["low"] is None else f"  [{row['low']:.3f}, {row['high']:.3f}]"
    return f"  {row['of']:<{width}}  {row['value']:.3f}{limits}"


def _share(held: Bools, level: float) -> Estimate:
    if not len(held):
        return nowhere(math.nan, "gold has no item of this level")
    low, high = wilson(held.sum(), len(held), level)
    return Estimate(float(held.mean()), float(low), float(high), "wilson")
