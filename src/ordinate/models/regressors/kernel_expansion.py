"""Sums of kernels around centres: what Gaussian processes, kernel ridge and SVR come down to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BLOCK_ROWS = 2048  # rows that are predicted at once: a block of kernels is held in memory


def rbf(gaps: Floats) -> Floats:
    """exp(−r²/2)."""
    return np.exp(-0.5 * gaps**2)


def matern32(gaps: Floats) -> Floats:
    """(1 + √3 r) exp(−√3 r): once differentiable."""
    t = np.sqrt(3.0) * gaps
    return (1.0 + t) * np.exp(-t)


def matern52(gaps: Floats) -> Floats:
    """(1 + √5 r + 5 r²/3) exp(−√5 r): twice differentiable."""
    t = np.sqrt(5.0) * gaps
    return (1.0 + t + t**2 / 3.0) * np.exp(-t)


def laplace(gaps: Floats) -> Floats:
    """exp(−r): continuous, with a kink at each centre."""
    return np.exp(-gaps)


KERNELS = {"rbf": rbf, "matern32": matern32, "matern52": matern52, "laplace": laplace}


def compute_kernel(name: str, a: Floats, b: Floats, lengths: Floats) -> Floats:
    """Return the kernel of all pairs [A, B]; distances are measured in `lengths` of each feature.

    >>> rows, centres = np.array([[0.0]]), np.array([[0.0], [2.0]])
    >>> compute_kernel("laplace", rows, centres, np.array([2.0])).round(3)
    array([[1.   , 0.368]])
    """
    from scipy.spatial.distance import cdist  # noqa: PLC0415 - heavy, and optional

    return KERNELS[name](cdist(a / lengths, b / lengths))


@dataclass(frozen=True)
class KernelExpansion:
    """f(x) = offset + Σ weight · kernel(x, centre). It holds plain numbers, and nothing to call."""

    shape: str
    centres: Floats  # [M, d]
    weights: Floats  # [M]
    lengths: Floats  # [d]
    offset: float

    def predict(self, x: Floats) -> Floats:
        """Return f of each row, a block at a time."""
        found = np.full(len(x), self.offset)
        for start in range(0, len(x), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            found[part] += (
                compute_kernel(self.shape, x[part], self.centres, self.lengths) @ self.weights
            )
        return found

    def is_valid(self, width: int | None) -> bool:
        """Tell whether what was read from a file is an expansion over this many features."""
        arrays = (self.centres, self.weights, self.lengths, np.array(self.offset))
        count = len(self.centres)
        shapes = [(count, width), (count,), (width,), ()]
        sound = self.shape in KERNELS and [part.shape for part in arrays] == shapes
        sound = sound and all(part.dtype == np.float64 for part in arrays)
        return bool(sound and all(np.isfinite(part).all() for part in arrays))
