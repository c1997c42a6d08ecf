"""Libraries that only some makers need, imported when one of them is used."""

from importlib import import_module
from typing import Any

from ordinate.errors import MissingExtra


def import_library(name: str, what: str, extra: str = "features") -> Any:
    """Import a library that `what` takes, or say how to install it."""
    try:
        return import_module(name)
    except ImportError as problem:
        raise MissingExtra(
            f"{what} take {name}, which cannot be imported ({problem}): "
            f"pip install 'ordinate[{extra}]'"
        ) from None
