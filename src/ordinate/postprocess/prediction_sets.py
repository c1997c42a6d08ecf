"""Prediction sets: neighbouring levels for each item, their coverage and their sizes."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadOption, NoItems
from ordinate.inference.estimates import Estimate, make_point_estimate, to_json_number
from ordinate.inference.small_samples import wilson_interval
from ordinate.postprocess.decoder import make_label_array
from ordinate.postprocess.input_columns import Positions, encode_gold_levels
from ordinate.scale import Scale
from ordinate.summaries.tabulation import check_same_length

Bools = NDArray[np.bool]
UNKNOWN_COVERAGE_NOTE = "whether sets have the gold level cannot be told"


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """Prediction sets of neighbouring levels, one for each item, from a lowest to a highest level.

    >>> sets = PredictionSets(Scale.of("low,mid,high"), np.array([0, 1]), np.array([1, 1]))
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
        return make_label_array(self.scale)[self.low_positions]

    @property
    def high(self) -> NDArray[Any]:
        """The label of the highest level of each set."""
        return make_label_array(self.scale)[self.high_positions]

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
        levels = encode_gold_levels(self.scale, gold, reason=UNKNOWN_COVERAGE_NOTE)
        check_same_length(len(levels), len(self), "gold labels", "sets")
        return (self.low_positions <= levels) & (levels <= self.high_positions)


@dataclass(frozen=True)
class PredictionSetEvaluation:
    """The coverage of prediction sets, overall and by gold level, and their sizes."""

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
            [_format_line(row, width) for row in rows if row["metric"] == name]
            for name in ("coverage", "share")
        )
        sets = f"{self.n} sets, {self.mean_size:.2f} levels on average"
        notes = ["", *self.notes] if self.notes else []
        lines = [sets, "", "Coverage", *covered, "", "Sets by their size", *shares]
        return "\n".join([*lines, *notes])

    def rows(self) -> list[dict[str, Any]]:
        """Return flat records: coverage of all sets and by gold level, the sizes of sets."""
        of_levels = self.coverage_by_level.items()
        sizes = {0: self.empty_share} | self.size_shares
        return [
            _make_record("coverage", "all items", self.coverage),
            *(_make_record("coverage", str(label), estimate) for label, estimate in of_levels),
            _make_record("mean_size", "all items", make_point_estimate(self.mean_size, "")),
            *(
                _make_record("share", str(size), make_point_estimate(share, ""))
                for size, share in sizes.items()
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nan as None."""
        levels = {
            str(label): estimate.to_dict() for label, estimate in self.coverage_by_level.items()
        }
        return {
            "n": self.n,
            "coverage": self.coverage.to_dict(),
            "coverage_by_level": levels,
            "mean_size": self.mean_size,
            "size_shares": {str(size): share for size, share in self.size_shares.items()},
            "empty_share": self.empty_share,
            "notes": list(self.notes),
        }


def evaluate_prediction_sets(
    sets: PredictionSets, gold: Any, level: float = 0.95
) -> PredictionSetEvaluation:
    """Return coverage, overall and by gold level, with Wilson's interval, and the sizes of sets.

    >>> sets = PredictionSets(Scale.of("low,mid,high"), np.array([0, 1]), np.array([1, 1]))
    >>> evaluation = evaluate_prediction_sets(sets, ["mid", "high"])
    >>> evaluation.coverage.value, evaluation.mean_size, evaluation.size_shares
    (0.5, 1.5, {1: 0.5, 2: 0.5, 3: 0.0})
    """
    if not (isinstance(level, Real) and not isinstance(level, bool) and 0.5 <= level < 1.0):
        raise BadOption(f"The level of an interval is 0.5 to below 1, not {level!r}.")
    covered, levels = (
        sets.contains(gold),
        encode_gold_levels(sets.scale, gold, reason=UNKNOWN_COVERAGE_NOTE),
    )
    if not len(levels):
        raise NoItems("There are no items to evaluate: there are no sets.")
    of_level = [covered[levels == k] for k in range(len(sets.scale))]
    shares = np.bincount(sets.sizes, minlength=len(sets.scale) + 1) / len(sets)
    return PredictionSetEvaluation(
        n=len(sets),
        coverage=_estimate_coverage(covered, level),
        coverage_by_level={
            label: _estimate_coverage(part, level)
            for label, part in zip(sets.scale.labels, of_level, strict=True)
        },
        mean_size=float(sets.sizes.mean()),
        size_shares={size: float(shares[size]) for size in range(1, len(shares))},
        empty_share=float(shares[0]),
        notes=sets.notes,
    )


def _make_record(metric: str, of: str, estimate: Estimate) -> dict[str, Any]:
    return {
        "metric": metric,
        "of": of,
        "value": to_json_number(estimate.value),
        "low": to_json_number(estimate.low),
        "high": to_json_number(estimate.high),
        "method": estimate.method,
        "note": estimate.note or None,
    }


def _format_line(row: dict[str, Any], width: int) -> str:
    if row["value"] is None:
        return f"  {row['of']:<{width}}  undefined: {row['note']}"
    interval = "" if row["low"] is None else f"  [{row['low']:.3f}, {row['high']:.3f}]"
    return f"  {row['of']:<{width}}  {row['value']:.3f}{interval}"


def _estimate_coverage(covered: Bools, level: float) -> Estimate:
    if not len(covered):
        return make_point_estimate(math.nan, "gold has no item of this level")
    low, high = wilson_interval(covered.sum(), len(covered), level)
    return Estimate(float(covered.mean()), float(low), float(high), "wilson")
