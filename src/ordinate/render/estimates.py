"""Estimates as people read them: values, confidence intervals, p-values."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from ordinate.inference import Estimate
from ordinate.inference.distributions import VERY_FEW_CLUSTERS
from ordinate.render.document import UNDEFINED, Cell, format_cell, format_interval, join_bounds


def format_interval_head(level: float) -> str:
    """Return the head of a column of confidence intervals.

    >>> format_interval_head(0.95)
    '95 % CI'
    """
    return f"{100 * level:g} % CI"


def format_with_interval(found: Estimate, digits: int = 3) -> Cell:
    """Return a value with its confidence interval in one cell."""
    interval = format_interval(found.low, found.high, digits=2)
    return found.value if interval is None else f"{format_cell(found.value, digits)} ({interval})"


def format_headline(value: str, interval: str | None, level: float | None) -> str:
    """Return a value as a verdict states it, with its confidence interval where there is one.

    >>> format_headline("0.721", "0.686 to 0.753", 0.95)
    '0.721 (95 % CI 0.686 to 0.753)'
    """
    if interval is None or level is None:
        return value
    return f"{value} ({format_interval_head(level)} {interval})"


def format_value_with_interval(
    found: Estimate,
    level: float | None,
    unit: str | None = None,
    format_value: Callable[[float], str] = format_cell,
) -> str:
    """Return a value as a detail of a chart states it, with its unit and its interval.

    >>> format_value_with_interval(Estimate(8.66, 8.0, 9.5, "t"), 0.95, "kg")
    '8.660 kg (95 % CI 8.000 to 9.500)'
    """
    value = f"{format_value(found.value)} {unit}" if unit else format_value(found.value)
    return format_headline(value, join_bounds(found.low, found.high, format_value), level)


def format_count(n: float, noun: str = "item", plural: str | None = None) -> str:
    """Return a number of items, or what they weigh together, in words.

    >>> format_count(1), format_count(1200, "row"), format_count(2, "family", "families")
    ('1 item', '1,200 rows', '2 families')
    >>> format_count(1.0), format_count(1234.56)
    ('1 item', '1,234.6 items')
    """
    return f"{format_weight(n)} {noun if n == 1 else plural or f'{noun}s'}"


def format_weight(n: float) -> str:
    """Return a number of items, which has a decimal place where they are weighted."""
    return f"{int(n):,}" if float(n).is_integer() else f"{n:,.1f}"


def format_percent(share: float, digits: int = 1) -> str:
    """Return a share in percent.

    >>> format_percent(0.79), format_percent(0.0123, 2), format_percent(float("nan"))
    ('79.0 %', '1.23 %', 'undefined')
    """
    return UNDEFINED if math.isnan(share) else f"{100 * share:.{digits}f} %"


def format_p_value(p: float) -> str:
    """Return a p-value with four digits.

    >>> format_p_value(0.03), format_p_value(0.00001), format_p_value(float("nan"))
    ('0.0300', '<0.0001', 'undefined')
    """
    if math.isnan(p):
        return "undefined"
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def describe_clusters(count: int) -> str:
    """Say how many clusters the items come in, and whether these are enough.

    >>> describe_clusters(2)
    'Items come in 2 clusters. So few clusters leave the intervals unsure.'
    """
    few = " So few clusters leave the intervals unsure." if count < VERY_FEW_CLUSTERS else ""
    return f"Items come in {format_count(count, 'cluster')}.{few}"


def join_names(names: Iterable[str], most: int | None = None) -> str:
    """Return names as a sentence lists them: all, or the first of very many.

    >>> join_names(["a", "b", "c"]), join_names(["a", "b", "c", "d"], most=2)
    ('a, b and c', 'a, b and 2 more')
    """
    listed = list(names)
    if most is not None and len(listed) > most:
        listed = [*listed[:most], f"{len(listed) - most:,} more"]
    *first, last = listed
    return f"{', '.join(first)} and {last}" if first else last


# --- values that have a unit ---------------------------------------------------------------------


def format_number(value: float, digits: int = 4) -> str:
    """Return a value with so many digits that say something, integers whole.

    >>> format_number(0.012345), format_number(1234.5678), format_number(0.012345, 3)
    ('0.01235', '1235', '0.0123')
    """
    if math.isnan(value) or value == 0:
        return format_cell(value)
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if abs(value) < 1e4 else 0
    return f"{value:.{places}f}" if 1e-4 <= abs(value) < 1e9 else f"{value:.{digits}g}"


def format_estimate_interval(found: Estimate, digits: int = 4) -> str | None:
    """Return the confidence interval of a value, and nothing where there is none."""
    return join_bounds(found.low, found.high, lambda x: format_number(x, digits))


def format_estimate(found: Estimate) -> str:
    """Return a value with its confidence interval in one cell, whose digits are fewer."""
    value, interval = format_number(found.value), format_estimate_interval(found, 3)
    return value if interval is None else f"{value} ({interval})"


def format_difference(gap: Estimate, unit: str | None) -> str:
    """Return the size of a difference with its interval: '3.2 kg/m³ (1.1 to 5.3)'."""
    if gap.value < 0:
        gap = replace(gap, value=-gap.value, low=-gap.high, high=-gap.low)
    value, interval = format_with_unit(gap.value, unit), format_estimate_interval(gap)
    return f"{value} ({interval})" if interval else value


def format_with_unit(value: float, unit: str | None) -> str:
    """Return a value and its unit."""
    return f"{format_number(value)} {unit}" if unit else format_number(value)
