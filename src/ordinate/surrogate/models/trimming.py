"""Trimming: rows that the others contradict, left out of a Gaussian process one after another."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEW = 0.05  # of the rows: if more of them stand out, they are no outliers
NORMAL = 1.4826  # standard deviations in a median absolute deviation of the normal distribution


def trimmed(factor: Floats, y: Floats, trim: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the weights of a Gaussian process, and which rows have a part in it.

    `factor` is the lower factor of Cholesky of A = kernel + noise. Without row i, its error is
    w_i / (A⁻¹)_ii with the variance 1 / (A⁻¹)_ii, where w = A⁻¹y (Rasmussen and Williams 2006,
    chapter 5). The row with the largest error, in standard deviations, is left out, and errors are
    taken anew, until none is more than `trim` times the usual one (0: no row is left out): a
    failed row makes its neighbours look bad, too, and these are kept. If too many rows stand out,
    all are kept.
    """
    from scipy.linalg import lapack  # noqa: PLC0415 - heavy, and optional

    half, _ = lapack.dtrtri(factor, lower=1)  # A⁻¹ = half' half
    whole = weights = half.T @ (half @ y)
    precision = np.square(half).sum(axis=0)  # the diagonal of A⁻¹
    kept = np.ones(len(y), bool)
    most = int(FEW * len(y))
    gone = np.empty((len(y), most + 1))  # what each row took with it: A⁻¹ less gone gone'
    for k in range(most + 1 if trim else 0):
        errors = np.zeros(len(y))
        errors[kept] = np.abs(weights[kept]) / np.sqrt(precision[kept])
        worst = int(errors.argmax())
        if errors[worst] <= trim * NORMAL * np.median(errors[kept]):
            return weights[kept], kept
        column = half.T @ half[:, worst] - gone[:, :k] @ gone[worst, :k]
        gone[:, k] = column / np.sqrt(precision[worst])
        weights = weights - gone[:, k] * (weights[worst] / np.sqrt(precision[worst]))
        precision = precision - gone[:, k] ** 2
        kept[worst] = False
    return whole, np.ones(len(y), bool)
