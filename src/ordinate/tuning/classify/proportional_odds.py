"""Proportional odds: from a score to the probabilities of levels, by that score alone."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadStore, shorten
from ordinate.postprocess.cumulative_logits import compute_level_probabilities, sigmoid

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]

TINY = float(np.finfo(float).tiny)
PENALTY = 1.0  # as much as one item says: scores that separate the levels do not make certain


@dataclass(frozen=True, eq=False)
class ProportionalOdds:
    """P(level ≤ k) = σ(cut_k − slope · (score − center) / spread), of the levels seen in gold.

    >>> odds = ProportionalOdds.fit(np.arange(6.0), np.array([0, 0, 1, 1, 2, 2]), 4)
    >>> odds.probabilities(np.array([0.0, 5.0])).argmax(axis=1).tolist()
    [0, 2]
    """

    size: int  # levels of the scale
    seen: Positions
    center: float
    spread: float
    slope: float
    cuts: Floats

    @classmethod
    def fit(cls, scores: Floats, gold: Positions, size: int) -> "ProportionalOdds":
        """Learn from out-of-fold scores; equal scores, or gold of one level, teach no slope."""
        seen, (center, spread) = np.unique(gold), _compute_center_and_spread(scores)
        if len(seen) < 2:
            return cls(size, seen, center, spread, 0.0, np.empty(0))
        model = _fit_proportional_odds(_standardize_scores(scores, center, spread)[:, None], gold)
        return cls(size, seen, center, spread, float(model.coef_[0]), np.array(model.cuts_))

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each level [N, K]: 0 for those that were never seen."""
        latent = self.slope * _standardize_scores(scores, self.center, self.spread)
        found = np.zeros((len(scores), self.size))
        found[:, self.seen] = compute_level_probabilities(sigmoid(latent[:, None] - self.cuts))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, from which `from_dict` makes the same odds."""
        return {
            "size": self.size,
            "seen": self.seen.tolist(),
            "center": self.center,
            "spread": self.spread,
            "slope": self.slope,
            "cuts": self.cuts.tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ProportionalOdds":
        """Return the odds that `to_dict` described, or say what is wrong with that."""
        size, seen = require_numbers(data, "size"), require_numbers(data, "seen", (None,))
        integers = np.array_equal(seen, seen.round()) and size == size.round()
        inside = len(seen) and seen[0] >= 0 and seen[-1] < size and (np.diff(seen) > 0).all()
        if not (integers and inside):
            raise BadStore(f"Odds are not of some of their {size:g} levels: {seen.tolist()}.")
        cuts, spread = (
            require_numbers(data, "cuts", (len(seen) - 1,)),
            require_numbers(data, "spread"),
        )
        if not ((np.diff(cuts) >= 0).all() and spread > 0):
            raise BadStore(
                f"The cuts or the spread of odds do not rise: {cuts.tolist()}, {spread}."
            )
        center, slope = require_numbers(data, "center"), require_numbers(data, "slope")
        return cls(
            int(size), seen.astype(np.intp), float(center), float(spread), float(slope), cuts
        )


# --- stored numbers ------------------------------------------------------------------------------


def parse_numbers(
    data: Any, name: str, shape: tuple[int | None, ...] = (), *, finite: bool = True
) -> Floats | None:
    """Return numbers that were written as plain values; None where nothing was.

    None in a shape is any number of them.

    >>> parse_numbers({"cuts": [0.5, "inf"]}, "cuts", (2,), finite=False)
    array([0.5, inf])
    """
    if not isinstance(data, dict) or name not in data:
        raise BadStore(f"A calibration lacks {name!r}.")
    if data[name] is None:
        return None
    try:
        found = np.array(data[name], float)
    except (TypeError, ValueError, OverflowError):
        found = np.array(np.nan)
    alike = len(found.shape) == len(shape) and all(
        expected in {None, given} for expected, given in zip(shape, found.shape, strict=True)
    )
    if not alike or not (np.isfinite(found) if finite else ~np.isnan(found)).all():
        count = " x ".join("some" if size is None else str(size) for size in shape) or "one"
        raise BadStore(
            f"{shorten(name)} of a calibration takes {count} numbers, not {shorten(data[name])}."
        )
    return found


def require_numbers(
    data: Any, name: str, shape: tuple[int | None, ...] = (), *, finite: bool = True
) -> Floats:
    """Return numbers that cannot be left out."""
    found = parse_numbers(data, name, shape, finite=finite)
    if found is None:
        raise BadStore(f"A calibration lacks {name!r}.")
    return found


def _compute_center_and_spread(scores: Floats) -> tuple[float, float]:
    """Return the middle and the spread of scores, however large; 1 where they do not differ."""
    low, high = scores.min() / 2.0, scores.max() / 2.0
    center, half = float(high + low), float(high - low)
    spread = half * float(((scores - center) / half).std()) if half >= TINY else 0.0
    return center, spread if spread >= TINY else 1.0


def _standardize_scores(scores: Floats, center: float, spread: float) -> Floats:
    with np.errstate(over="ignore"):  # infinitely far from the middle is a place, too
        return (scores - center) / spread


def _fit_proportional_odds(features: Floats, gold: Positions) -> Any:
    from ordinate.integrations.sklearn.ordinal_regression import OrdinalThresholdClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cuts that have nearly arrived will do
        return OrdinalThresholdClassifier(penalty=PENALTY).fit(features, gold)
