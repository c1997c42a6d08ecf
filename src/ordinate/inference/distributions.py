"""The distributions that the standard library lacks, from SciPy, loaded when they are needed."""

from ordinate.inference.delta_method import normal_quantile

FEW_CLUSTERS, VERY_FEW_CLUSTERS = 30, 10  # below the second, no interval is reliable


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
    from scipy import special

    return float(special.stdtrit(freedom, (1.0 + level) / 2.0))


def student_tail(statistic: float, freedom: float) -> float:
    """Return the probability of Student's variable above the statistic."""
    from scipy import special

    return float(special.stdtr(freedom, -statistic))


def chi_square_tail(statistic: float, freedom: int) -> float:
    """Return the probability of a chi-square variable above the statistic."""
    from scipy import special

    return float(special.chdtrc(freedom, statistic))


def fair_binomial_tail(heads: int, tosses: int) -> float:
    """Return the probability of at most so many heads in tosses of a fair coin."""
    from scipy import special

    return 1.0 if heads >= tosses else float(special.betainc(tosses - heads, heads + 1, 0.5))
