"""Trimming: rows that the others contradict, left out of a Gaussian process one after another."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_TRIMMED_SHARE = (
    0.05  # of the rows may be left out: were there more, they would not be outliers
)
MAD_TO_STD = 1.4826  # standard deviations in a median absolute deviation of the normal distribution


class TrimmedProcess(NamedTuple):
    """A Gaussian process without some rows, and the errors of all rows if each is not known."""

    out: list[int]
    weights: Floats  # [N], 0 for those left out
    errors: Floats  # [N], in the unit of the targets


def trim_outliers(factor: Floats, y: Floats, trim: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the weights of a Gaussian process, and which rows have a part in it.

    `factor` is the lower factor of Cholesky of A = kernel + noise. Rows whose error is more than
    `trim` times the usual one, if they are not known, may be left out (0: none): as many of the
    worst as make the squared errors of all rows smallest in sum. A failed row is predicted as
    badly either way, and its neighbours gain; a row that knows what no other does is missed, and
    stays.
    """
    best = min(
        _trim_one_by_one(factor, y, trim), key=lambda one: float(np.square(one.errors).sum())
    )
    kept = np.ones(len(y), bool)
    kept[best.out] = False
    return best.weights[kept], kept


def _trim_one_by_one(factor: Floats, y: Floats, trim: float) -> Iterator[TrimmedProcess]:
    """Yield the process of all rows, then without the worst one, and so on while one stands out.

    If row i is not known, its error is w_i / (A⁻¹)_ii, with the variance 1 / (A⁻¹)_ii, where
    w = A⁻¹y (Rasmussen and Williams 2006, chapter 5). Leaving row i out for good takes the part
    of its column c out of A⁻¹: c c' / c_i.
    """
    from scipy.linalg import cho_solve, lapack  # noqa: PLC0415 - heavy, and optional

    half, _ = lapack.dtrtri(factor, lower=1)  # A⁻¹ = half' half
    whole = weights = half.T @ (half @ y)
    precision = np.square(half).sum(axis=0)  # the diagonal of A⁻¹
    most, out = int(MOST_TRIMMED_SHARE * len(y)), list[int]()
    gone = np.empty((len(y), most))  # A⁻¹ is less by gone gone' of those that are out
    for k in range(most + 1):
        kept = np.ones(len(y), bool)
        kept[out] = False
        errors = np.zeros(len(y))
        errors[kept] = weights[kept] / precision[kept]
        if out:  # these rows are predicted by those kept alone
            errors[out] = cho_solve((gone[out, :k], True), whole[out], check_finite=False)
        yield TrimmedProcess(list(out), np.where(kept, weights, 0.0), errors)
        sizes = np.where(kept, np.abs(errors) * np.sqrt(np.abs(precision)), 0.0)
        worst = int(sizes.argmax())
        if not trim or k == most or sizes[worst] <= trim * MAD_TO_STD * np.median(sizes[kept]):
            return
        column = half.T @ half[:, worst] - gone[:, :k] @ gone[worst, :k]
        gone[:, k] = column / np.sqrt(precision[worst])
        weights = weights - gone[:, k] * (weights[worst] / np.sqrt(precision[worst]))
        precision = precision - gone[:, k] ** 2
        out.append(worst)
