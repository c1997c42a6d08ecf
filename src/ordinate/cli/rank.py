"""`ordinate rank`."""

from typing import Any


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    del commands
