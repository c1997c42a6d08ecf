"""Values far from all others: reported, never dropped.

Far is a matter of the scale: where the bulk of a column is skewed and its logarithms are less so,
distances are those of logarithms. What many rows do is the shape of a column, and no outlier,
unless it is one and the same value, such as -9999: that is a sign, and no quantity.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ordinate.tuning.regress.table import Table

FAR_DISTANCE = 6.0  # robust standard deviations from the median
SHOWN_ROWS = 5  # rows that are named
COMMON_SHARE = 0.02  # of the rows: if more lie far off, that is how the column is
MOST_SENTINEL_SHARE = 0.5  # of the rows may have a value that is a sign
DISTINCT_VALUES = 10  # other values, at least: a column of fewer has flags or counts
SKEW_THRESHOLD = 0.15  # of 1: below it no scale is any better
EIGHTHS = (0.125, 0.5, 0.875)  # between which the bulk lies
NORMAL_MAD_RATIO = (
    1.482602218505602  # σ of a normal distribution over its median absolute deviation
)
NORMAL_MEAN_RATIO = 1.2533141373155001  # σ over its mean absolute deviation


@dataclass(frozen=True)
class ColumnOutliers:
    """The far values of a column: how many, and the farthest, rows from 1 as in the file."""

    column: str
    count: int
    rows: tuple[int, ...]
    values: tuple[float, ...]
    distances: tuple[float, ...]  # in robust standard deviations
    logarithmic: bool = False  # whether these are of logarithms
    share: float | None = None  # of the rows, where all far values are one and the same

    @property
    def note(self) -> str:
        """What a report says of them."""
        if self.share is not None:
            return (
                f"{self.column!r} has {self.values[0]:.6g} in {self.count:,} rows ({self.share:.2g}"
                " % of them), far from all other values: is it a sign for a missing one?"
            )
        shown = ", ".join(
            f"row {row} ({value:.6g}, {z:+.3g} σ)"
            for row, value, z in zip(self.rows, self.values, self.distances, strict=True)
        )
        more = f" and {self.count - len(self.rows):,} more" if self.count > len(self.rows) else ""
        values = "value lies" if self.count == 1 else "values lie"
        scale = ", by logarithms" if self.logarithmic else ""
        return (
            f"{self.count:,} {values} far from the others in {self.column!r}{scale}: {shown}{more}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: list(x) if isinstance(x, tuple) else x for name, x in vars(self).items()}


def find_outliers(table: Table, far: float = FAR_DISTANCE) -> list[ColumnOutliers]:
    """Return the columns with values far from their median, the target first.

    >>> from ordinate.tuning.regress.table import make_table
    >>> table = make_table([[float(k)] for k in range(30)], [*range(29), 900.0])
    >>> find_outliers(table)[0].note
    "1 value lies far from the others in 'target': row 30 (900, +79.6 σ)."
    """
    found = (
        _find_far_values(name, table.column(name), far)
        for name in (table.target_name, *table.names)
    )
    return [each for each in found if each is not None]


def _find_far_values(name: str, column: NDArray[np.float64], far: float) -> ColumnOutliers | None:
    logs = _take_logarithms(column)
    scaled = column if logs is None else logs
    z = compute_robust_z(scaled)
    away = np.abs(z) > far
    rows = np.flatnonzero(away)
    share = 100.0 * len(rows) / len(column) if _is_sentinel(scaled, away) else None
    if not len(rows) or (share is None and len(rows) > max(SHOWN_ROWS, COMMON_SHARE * len(column))):
        return None
    worst = rows[np.argsort(-np.abs(z[rows]), kind="stable")][:SHOWN_ROWS]
    shown = (tuple((worst + 1).tolist()), tuple(column[worst].tolist()), tuple(z[worst].tolist()))
    return ColumnOutliers(name, len(rows), *shown, logarithmic=logs is not None, share=share)


def _is_sentinel(column: NDArray[np.float64], away: NDArray[np.bool_]) -> bool:
    """Tell whether the far values are one value that stands for something else.

    It lies farther from all others than these lie from each other.
    """
    far, others = column[away], column[~away]
    if not 1 < len(far) < MOST_SENTINEL_SHARE * len(column) or np.ptp(far) > 0:
        return False
    gap = np.abs(others - far[0]).min()
    return bool(gap > np.ptp(others)) and len(np.unique(others)) >= DISTINCT_VALUES


def _take_logarithms(column: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return logarithms of sizes, with their sign, where the bulk of them is less skewed."""
    sign = np.sign(column[0]) if len(column) else 0.0
    if sign == 0.0 or not (np.sign(column) == sign).all():
        return None
    logs: NDArray[np.float64] = sign * np.log(np.abs(column))
    skew = _compute_skew(column)
    return logs if skew > SKEW_THRESHOLD and _compute_skew(logs) < skew else None


def _compute_skew(column: NDArray[np.float64]) -> float:
    """Return how skewed the bulk is, from 0 to 1, whatever lies far off."""
    low, middle, high = np.quantile(column, EIGHTHS)
    return float(abs(high + low - 2.0 * middle) / (high - low)) if high > low else 0.0


def compute_robust_z(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return distances from the median in robust standard deviations.

    Where more than half of the values are equal, the mean absolute deviation takes the place of
    the median one.
    """
    gaps = column - np.median(column)
    scale = NORMAL_MAD_RATIO * np.median(np.abs(gaps))
    if scale == 0:
        scale = NORMAL_MEAN_RATIO * np.abs(gaps).mean()
    return gaps / scale if scale > 0 else np.zeros(len(column))
