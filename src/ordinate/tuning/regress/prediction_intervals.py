"""Uncertainty: intervals about predictions, calibrated on rows that the model has not seen.

The scores of these rows are their residuals, divided by how far the members of an ensemble lie
apart where there is such a spread. An interval reaches as far as the ⌈(n + 1)(1 - alpha)⌉-th score.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ordinate.errors import BadStore
from ordinate.postprocess.conformal_intervals import ConformalIntervals, SplitConformal
from ordinate.render.atomic_files import replace_file

Floats = NDArray[np.float64]
CALIBRATION_FILE = "calibration.npz"
DEFAULT_FLOOR = 2.0  # in median spreads: members that agree by chance are no proof of a small error
CANDIDATE_FLOORS = (0.5, 1.0, 2.0, 4.0, 8.0)  # among which held-out rows may choose


def compute_spread(predictions: Any, weights: Any, own: Any = None) -> Floats:
    """Return how far the members [N, M] of a blend lie apart, row by row.

    `own` are the spreads [N, M] inside members that are ensembles themselves, 0 for others.

    >>> compute_spread([[1.0, 3.0], [2.0, 2.0]], [0.5, 0.5]).tolist()
    [1.0, 0.0]
    """
    table, share = np.asarray(predictions, float), np.asarray(weights, float)
    gaps = table - (table @ share)[:, None]
    squares = gaps**2 if own is None else gaps**2 + np.asarray(own, float) ** 2
    return np.sqrt(squares @ share)


@dataclass(frozen=True, eq=False)
class IntervalCalibration:
    """Rows that a model has not seen: their targets, its predictions, and its spread, if any."""

    targets: Floats
    predictions: Floats
    spread: Floats | None = None
    floor: float | None = None  # the least that a spread counts, if other rows tell it

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.targets)

    @property
    def normalized(self) -> bool:
        """Whether intervals are wider where the members lie apart."""
        return self.spread is not None and self.least > 0.0

    @property
    def least(self) -> float:
        """The least that a spread counts; rows that tell it themselves lose a little of their use.

        A calibration is exact if the scores do not depend on which of its rows there are.
        """
        if self.floor is not None:
            return self.floor
        return 0.0 if self.spread is None else DEFAULT_FLOOR * float(np.median(self.spread))

    def intervals(
        self, predictions: Any, spread: Any = None, *, alpha: float = 0.1
    ) -> ConformalIntervals:
        """Return intervals that hold the target of a share 1 - alpha of new rows like these."""
        normalize = self.normalized and spread is not None
        units = (self._unit(self.spread), self._unit(spread)) if normalize else (None, None)
        conformal = SplitConformal(alpha, normalize=normalize)
        conformal.fit(self.predictions, self.targets, spread=units[0])
        return conformal.predict(predictions, spread=units[1])

    def _unit(self, spread: Any) -> Floats:
        return np.hypot(np.asarray(spread, float), self.least)

    def save(self, folder: Path, name: str = CALIBRATION_FILE) -> None:
        """Write the rows into a folder."""
        none = np.empty(0)
        with replace_file(folder / name) as temporary:
            np.savez(
                temporary,
                targets=self.targets,
                predictions=self.predictions,
                spread=none if self.spread is None else self.spread,
                floor=self.least,
            )

    @classmethod
    def load(cls, folder: Path, name: str = CALIBRATION_FILE) -> "IntervalCalibration":
        """Read the rows of a folder whose manifest was verified."""
        try:
            # NumPy itself leaves a damaged file open
            with (folder / name).open("rb") as file, np.load(file, allow_pickle=False) as found:
                columns = {name: np.asarray(found[name], float) for name in found.files}
            spread = columns["spread"] if len(columns["spread"]) else None
            floor = float(columns["floor"])
            return cls(columns["targets"], columns["predictions"], spread, floor)
        except (OSError, ValueError, KeyError) as problem:
            raise BadStore(f"{folder / name} cannot be read: {problem}") from None


def select_floor(held: IntervalCalibration, alpha: float) -> float:
    """Return the floor with the narrowest intervals on average, for rows that were held out.

    The rows that calibrate must be others: then whatever floor is taken, the promise holds. It is
    0 where the spread tells nothing.
    """
    if held.spread is None or not held.normalized:
        return 0.0
    median = float(np.median(held.spread))

    def width(floor: float) -> float:
        lower, upper = replace(held, floor=floor).intervals(
            held.predictions, held.spread, alpha=alpha
        )
        return float(np.mean(upper - lower))

    return min((times * median for times in CANDIDATE_FLOORS), key=width)


def stack_member_spreads(members: Sequence[IntervalCalibration]) -> Floats:
    """Return the spreads inside members [N, M], 0 for those that are no ensembles."""
    spreads = [np.zeros(one.n) if one.spread is None else one.spread for one in members]
    return np.column_stack(spreads)


def load_calibration(folder: Path, name: str = CALIBRATION_FILE) -> IntervalCalibration:
    """Return the rows that calibrate a model, once they are what such rows are."""
    try:
        found = IntervalCalibration.load(folder, name)
        columns = [found.targets, found.predictions]
        columns += [] if found.spread is None else [found.spread]
        sound = all(one.ndim == 1 and np.isfinite(one).all() for one in columns)
        sound = sound and {len(one) for one in columns} == {found.n} and found.n > 0
        sound = sound and (found.spread is None or bool((found.spread >= 0.0).all()))
        sound = sound and bool(np.isfinite(found.least)) and found.least >= 0.0
    except (TypeError, EOFError, AttributeError, BadZipFile):
        sound = False
    if not sound:
        raise BadStore(
            f"{folder / name} does not hold the rows that calibrate intervals. Train again, or "
            "restore the folder."
        )
    return found
