"""Flags of long work: values checked before any work is done, in errors that name the flag."""

import math
from typing import Any

from ordinate.errors import BadOption, shorten, suggest_names


def check_integer(name: str, value: Any, least: int) -> None:
    """Refuse what is no integer of at least so much.

    >>> check_integer("top_k", 3, least=1)
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        what = f"an integer of at least {least}"
        raise BadOption(f"{format_flag(name)} takes {what}, not {shorten(value)}.")


def check_number(name: str, value: Any, least: float, most: float) -> None:
    """Refuse what is no finite number between two bounds; None stands for nothing said."""
    if value is None:
        return
    right = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (right and math.isfinite(value) and least <= value <= most):
        bounds = f" of {least:g} to {most:g}" if math.isfinite(least + most) else ""
        bounds = bounds or (f" of at least {least:g}" if math.isfinite(least) else "")
        raise BadOption(f"{format_flag(name)} takes a finite number{bounds}, not {shorten(value)}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is none of the choices."""
    if value not in choices:
        near = suggest_names(str(value), list(choices))
        raise BadOption(
            f"{format_flag(name)} takes {', '.join(choices[:-1])} or {choices[-1]}, not "
            f"{shorten(value)}.{near}"
        )


def format_flag(name: str) -> str:
    """Return the flag that fills a setting."""
    return "--" + name.replace("_", "-")
