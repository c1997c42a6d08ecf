"""Normalization: the scale on which targets were learned, and the way back to their unit."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ordinate.errors import BadOption
from ordinate.summaries.tabulation import convert_to_numbers


@dataclass(frozen=True)
class Normalization:
    """Mean and standard deviation of the training targets.

    >>> training = Normalization(mean=673.27, std=104.26)
    >>> round(training.denormalize_errors(0.3973), 2)  # a mean is not added to an error
    41.42
    >>> round(training.denormalize(0.3973), 2)
    714.69
    """

    mean: float
    std: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and math.isfinite(self.std) and self.std > 0):
            raise BadOption(
                f"A normalisation needs a finite mean and a standard deviation above 0, not "
                f"{self.mean} and {self.std}."
            )

    @classmethod
    def fit(cls, train_targets: Any) -> "Normalization":
        """Return the mean and the (population) standard deviation of training targets."""
        values = convert_to_numbers(train_targets, "training targets")
        if not len(values) or not np.isfinite(values).all():
            raise BadOption("The training targets must be finite numbers, at least two of them.")
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = values - values[0]  # exactly 0 where all are equal
            return cls(float(values[0] + gaps.mean()), float(gaps.std()))

    def normalize(self, values: Any) -> Any:
        """Return values on the normalised scale."""
        return (_convert_lists(values) - self.mean) / self.std

    def denormalize(self, values: Any) -> Any:
        """Return values in their unit."""
        return _convert_lists(values) * self.std + self.mean

    def normalize_errors(self, errors: Any) -> Any:
        """Return errors on the normalised scale."""
        return _convert_lists(errors) / self.std

    def denormalize_errors(self, errors: Any) -> Any:
        """Return errors in their unit."""
        return _convert_lists(errors) * self.std


def _convert_lists(values: Any) -> Any:
    """Return lists as arrays, and anything that knows arithmetic as it is."""
    return np.asarray(values, float) if isinstance(values, (list, tuple)) else values
