"""The distributions that the standard library lacks, from SciPy, loaded when they are needed."""

from typing import Any

from ordinate.errors import MissingExtra
from ordinate.inference.delta_method import normal_quantile

FEW_CLUSTERS, VERY_FEW_CLUSTERS = 30, 10  # below the second, no interval is reliable
NO_STUDENT_NOTE = (
    f"fewer than {FEW_CLUSTERS} items or clusters have Student's t, which needs SciPy: "
    "pip install 'ordinate[stats]'"
)


def critical_value(level: float, units: float, method: str | None = None) -> tuple[float, str]:
    """Return how many standard errors an interval reaches to each side, and the method.

    A standard error is itself unsure, and the more so the fewer items or clusters there are: they
    get Student's t, unless the method says otherwise.

    >>> [round(critical_value(0.95, units)[0], 2) for units in (2, 5, 30, 1_000)]
    [12.71, 2.78, 2.05, 1.96]
    """
    if method == "delta":
        return normal_quantile(level), "delta"
    return student_quantile(level, units - 1), "t"


def student_quantile(level: float, freedom: float) -> float:
    """Return t so that Student's variable lies between -t and t with this probability."""
    if freedom >= FEW_CLUSTERS - 1:
        return _expand_student_quantile(normal_quantile(level), freedom)
    return float(_import_scipy_special().stdtrit(freedom, (1.0 + level) / 2.0))


def _expand_student_quantile(z: float, freedom: float) -> float:
    """Return Student's quantile from the normal one, without SciPy (Abramowitz and Stegun, 26.7.5).

    From 29 degrees of freedom on it is exact to seven digits at a level of 95 %.
    """
    terms = (
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
    )
    return z + sum(term * (1.0 / freedom) ** power for power, term in enumerate(terms, start=1))


def student_two_sided_p(statistic: float, freedom: float) -> float:
    """Return the probability of Student's variable at least as far from 0."""
    return 2.0 * float(_import_scipy_special().stdtr(freedom, -statistic))


def chi_square_tail(statistic: float, freedom: int) -> float:
    """Return the probability of a chi-square variable above the statistic."""
    return float(_import_scipy_special().chdtrc(freedom, statistic))


def fair_binomial_tail(heads: int, tosses: int) -> float:
    """Return the probability of at most so many heads in tosses of a fair coin."""
    if heads >= tosses:
        return 1.0
    return float(_import_scipy_special().betainc(tosses - heads, heads + 1, 0.5))


def _import_scipy_special() -> Any:
    try:
        from scipy import special
    except ImportError:
        raise MissingExtra(
            "This needs SciPy: pip install 'ordinate[stats]', or pip install scipy."
        ) from None
    return special
