"""Kernel models: Gaussian process, kernel ridge and support vectors, as sums of kernels."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordinate.tuning.models.base import Floats, Parameter
from ordinate.tuning.models.regressors.regressor import Regressor, StepCallback

DIAGONAL_JITTER = 1e-10  # is added to the diagonal, so that a matrix of equal rows can be factored
MATERN_NU = {"matern32": 1.5, "matern52": 2.5}  # names of scikit-learn's nu
BLOCK_ROWS = 2048  # rows that are predicted at once: a block of kernels is held in memory
# of the rows may be left out: were there more, they would not be outliers
MOST_TRIMMED_SHARE = 0.05
MAD_TO_STD = 1.4826  # standard deviations in a median absolute deviation of the normal distribution


# --- sums of kernels -----------------------------------------------------------------------------


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
    from scipy.spatial.distance import cdist

    return KERNELS[name](cdist(a / lengths, b / lengths))


@dataclass(frozen=True)
class KernelExpansion:
    """f(x) = offset + Σ weight · kernel(x, centre). It holds plain numbers, and nothing to call."""

    shape: str
    centres: Floats  # [M, d]
    weights: Floats  # [M]
    lengths: Floats  # [d]
    offset: float

    def predict(self, x: Floats, *, block_rows: int = BLOCK_ROWS) -> Floats:
        """Return f of each row, a block at a time."""
        found = np.full(len(x), self.offset)
        for start in range(0, len(x), block_rows):
            part = slice(start, start + block_rows)
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


# --- models --------------------------------------------------------------------------------------


class KernelRegressor(Regressor):
    """A model whose fitted form is an expansion over rows seen in training."""

    most_rows = 5000  # of training: an exact solution for more takes minutes and gigabytes

    def _predict(self, fitted: Any, x: Floats) -> Floats:
        return fitted.predict(x)

    def _is_valid(self, fitted: Any) -> bool:
        return isinstance(fitted, KernelExpansion) and fitted.is_valid(self.width)


class GaussianProcess(KernelRegressor):
    """Mean of a Gaussian process; length scales and noise maximise the marginal likelihood.

    They are found on `rows` training rows drawn at random, 2,000 at most, for the time grows with
    their cube. The
    prediction then uses all rows, up to 5,000, but for those that the others contradict: rows whose
    leave-one-out error is more than `trim` times the usual one (0: none). Its noise is normal, so
    that a single failed measurement would bend the surface around it.
    """

    name: ClassVar = "gp"
    title: ClassVar = "Gaussian process"
    parameters: ClassVar = {
        "kernel": Parameter("matern52", ["matern52", "matern32", "rbf"]),
        "rows": Parameter(600, (300, 1200), log=True, taken=(2, 2_000)),
        "noise": Parameter(0.01, (0.001, 0.1), log=True, taken=(1e-6, 1.0)),
        "trim": Parameter(8.0, [8.0, 0.0]),
    }

    def _fit(self, x: Floats, y: Floats, _validation: Any, _tick: StepCallback) -> KernelExpansion:
        rng = np.random.default_rng(self.seed)
        offset = float(y.mean())
        few = _draw_rows(len(y), int(self.params["rows"]), rng)
        height, lengths, noise = self._maximize_likelihood(x[few], y[few] - offset)
        drawn = _draw_rows(len(y), self.most_rows, rng)
        _warn_of_subsampling(len(y), self.most_rows)
        x, y = x[drawn], y[drawn] - offset
        shape = self.params["kernel"]
        factor = _factor_cholesky(compute_kernel(shape, x, x, lengths), noise / height)
        weights, sound = trim_outliers(factor, y, float(self.params["trim"]))
        if left := int((~sound).sum()):
            warnings.warn(
                f"{left:,} of {len(y):,} training rows are left out of the Gaussian process: the "
                f"others contradict them, by more than {self.params['trim']:g} times the usual "
                "error.",
                stacklevel=2,
            )
        return KernelExpansion(shape, x[sound], weights, lengths, offset)

    def _maximize_likelihood(self, x: Floats, y: Floats) -> tuple[float, Floats, float]:
        """Return height, length scales and noise of the largest marginal likelihood."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import (
            GaussianProcessRegressor,
            kernels,
        )

        ones, bounds = np.ones(x.shape[1]), (0.05, 100.0)
        if (name := self.params["kernel"]) == "rbf":
            shape = kernels.RBF(ones, bounds)
        else:
            shape = kernels.Matern(ones, bounds, nu=MATERN_NU[name])
        height = kernels.ConstantKernel(1.0, (1e-2, 1e3))
        noise = kernels.WhiteKernel(float(self.params["noise"]), (1e-6, 1.0))
        process = GaussianProcessRegressor(
            height * shape + noise, alpha=DIAGONAL_JITTER, random_state=0
        )
        with warnings.catch_warnings():
            # of values at their bounds, which are wide on purpose: held-out rows judge the model
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = process.fit(x, y).kernel_
        lengths = np.broadcast_to(np.asarray(found.k1.k2.length_scale, float), x.shape[1]).copy()
        return float(found.k1.k1.constant_value), lengths, float(found.k2.noise_level)


class KernelRidge(KernelRegressor):
    """Ridge regression on kernels of one width for all features."""

    name: ClassVar = "kernel_ridge"
    title: ClassVar = "Kernel ridge"
    library: ClassVar = "scipy"
    parameters: ClassVar = {
        "kernel": Parameter("matern52", ["matern52", "matern32", "rbf", "laplace"]),
        "width": Parameter(2.0, (0.3, 30.0), log=True, taken=(1e-9, 1e9)),
        "penalty": Parameter(0.01, (1e-6, 1.0), log=True),
    }

    def _fit(self, x: Floats, y: Floats, _validation: Any, _tick: StepCallback) -> KernelExpansion:
        shape, offset = self.params["kernel"], float(y.mean())
        lengths = np.full(x.shape[1], float(self.params["width"]))
        drawn = _draw_rows(len(y), self.most_rows, np.random.default_rng(self.seed))
        _warn_of_subsampling(len(y), self.most_rows)
        penalty = float(self.params["penalty"])
        centres = x[drawn]
        weights = _solve_weights(
            compute_kernel(shape, centres, centres, lengths), y[drawn] - offset, penalty
        )
        return KernelExpansion(shape, centres, weights, lengths, offset)


class SupportVectorRegression(KernelRegressor):
    """Support vector regression with a Gaussian kernel: errors below epsilon cost nothing."""

    most_rows = 10_000
    name: ClassVar = "svr"
    title: ClassVar = "Support vector regression"
    parameters: ClassVar = {
        "width": Parameter(1.5, (0.3, 10.0), log=True, taken=(1e-9, 1e9)),
        "cost": Parameter(10.0, (0.3, 300.0), log=True, taken=(1e-9, 1e9)),
        "epsilon": Parameter(0.03, (0.003, 0.3), log=True),
    }

    def _fit(self, x: Floats, y: Floats, _validation: Any, _tick: StepCallback) -> KernelExpansion:
        from sklearn.svm import SVR

        width = float(self.params["width"])
        drawn = _draw_rows(len(y), self.most_rows, np.random.default_rng(self.seed))
        _warn_of_subsampling(len(y), self.most_rows)
        cost, epsilon = float(self.params["cost"]), float(self.params["epsilon"])
        machine = SVR(gamma=0.5 / width**2, C=cost, epsilon=epsilon, max_iter=1_000_000)
        machine.fit(x[drawn], y[drawn])
        return KernelExpansion(
            "rbf",
            machine.support_vectors_.copy(),
            machine.dual_coef_[0].copy(),
            np.full(x.shape[1], width),
            float(machine.intercept_[0]),
        )


def _draw_rows(n: int, most: int, rng: np.random.Generator) -> Any:
    """Return all rows, or as many as there may be, drawn at random."""
    return slice(None) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _warn_of_subsampling(n: int, most: int) -> None:
    if n > most:
        warnings.warn(
            f"Of {n:,} training rows {most:,} were used, drawn at random: more take too long.",
            stacklevel=2,
        )


def _solve_weights(system: Floats, y: Floats, penalty: float) -> Floats:
    """Return the weights that solve (kernel + penalty) w = y."""
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve((_factor_cholesky(system, penalty), True), y, check_finite=False))


def _factor_cholesky(system: Floats, penalty: float) -> Floats:
    """Return the lower factor of Cholesky of kernel + penalty; the kernel's place is used."""
    from scipy.linalg import cholesky

    system[np.diag_indices_from(system)] += penalty + DIAGONAL_JITTER
    return np.asarray(cholesky(system, lower=True, overwrite_a=True, check_finite=False))


# --- trimming ------------------------------------------------------------------------------------


class TrimmedProcess(NamedTuple):
    """A Gaussian process without some rows, and the errors of all rows if each is not known."""

    out: list[int]
    weights: Floats  # [N], 0 for those left out
    errors: Floats  # [N], in the unit of the targets


def trim_outliers(
    factor: Floats, y: Floats, trim: float, *, most_share: float = MOST_TRIMMED_SHARE
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the weights of a Gaussian process, and which rows have a part in it.

    `factor` is the lower factor of Cholesky of A = kernel + noise. Rows whose error is more than
    `trim` times the usual one, if they are not known, may be left out (0: none): as many of the
    worst as make the squared errors of all rows smallest in sum. A failed row is predicted as
    badly either way, and its neighbours gain; a row that knows what no other does is missed, and
    stays.
    """
    trimmed = _trim_one_by_one(factor, y, trim, most_share)
    best = min(trimmed, key=lambda one: float(np.square(one.errors).sum()))
    kept = np.ones(len(y), bool)
    kept[best.out] = False
    return best.weights[kept], kept


def _trim_one_by_one(
    factor: Floats, y: Floats, trim: float, most_share: float = MOST_TRIMMED_SHARE
) -> Iterator[TrimmedProcess]:
    """Yield the process of all rows, then without the worst one, and so on while one stands out.

    If row i is not known, its error is w_i / (A⁻¹)_ii, with the variance 1 / (A⁻¹)_ii, where
    w = A⁻¹y (Rasmussen and Williams 2006, chapter 5). Leaving row i out for good takes the part
    of its column c out of A⁻¹: c c' / c_i.
    """
    from scipy.linalg import cho_solve, lapack

    half, _ = lapack.dtrtri(factor, lower=1)  # A⁻¹ = half' half
    complete = weights = half.T @ (half @ y)
    precision = np.square(half).sum(axis=0)  # the diagonal of A⁻¹
    most, out = int(most_share * len(y)), list[int]()
    gone = np.empty((len(y), most))  # A⁻¹ is less by gone gone' of those that are out
    for k in range(most + 1):
        kept = np.ones(len(y), bool)
        kept[out] = False
        errors = np.zeros(len(y))
        errors[kept] = weights[kept] / precision[kept]
        if out:  # these rows are predicted by those kept alone
            errors[out] = cho_solve((gone[out, :k], True), complete[out], check_finite=False)
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
