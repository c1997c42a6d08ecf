"""The distributions that the standard library lacks, from SciPy, loaded when they are needed."""

from typing import Any

from ordinate.errors import MissingExtra


def student(level: float, freedom: int) -> float:
    """Return t so that Student's variable lies between -t and t with this probability."""
    return float(_special().stdtrit(freedom, (1.0 + level) / 2.0))


def chi_square_tail(statistic: float, freedom: int) -> float:
    """Return the probability of a chi-square variable above the statistic."""
    return float(_special().chdtrc(freedom, statistic))


def fair_tail(heads: int, tosses: int) -> float:
    """Return the probability of at most so many heads in tosses of a fair coin."""
    if heads >= tosses:
        return 1.0
    return float(_special().betainc(tosses - heads, heads + 1, 0.5))


def _special() -> Any:
    try:
        from scipy import special  # noqa: PLC0415 - the plain path never needs it
    except ImportError:
        raise MissingExtra(
            "This needs SciPy: pip install 'ordinate[stats]', or pip install scipy."
        ) from None
    return special
