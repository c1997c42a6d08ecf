"""A document: a title, sentences and grids, before anybody decides how to write them."""

import math
from dataclasses import dataclass

from ordinate.errors import replace_control_characters

Cell = str | int | float | None
UNDEFINED = "undefined"


@dataclass(frozen=True)
class Grid:
    """A table of cells; the first `left` columns are words, the others numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left: int = 1

    def __post_init__(self) -> None:
        """Take out of the title what could drive a terminal."""
        object.__setattr__(self, "title", replace_control_characters(self.title))


@dataclass(frozen=True)
class Document:
    """What a report says, in order: sentences are texts, everything else grids."""

    title: str
    blocks: tuple[str | Grid, ...]

    def __post_init__(self) -> None:
        """Take out of sentences what could drive a terminal."""
        blocks = tuple(
            b if isinstance(b, Grid) else replace_control_characters(b) for b in self.blocks
        )
        object.__setattr__(self, "blocks", blocks)
        object.__setattr__(self, "title", replace_control_characters(self.title))


def format_cell(cell: Cell, digits: int = 3) -> str:
    """Return a cell as people read it: integers without digits, undefined by name, None as nothing.

    >>> [format_cell(cell) for cell in (0.12345, 7, 7.0, float("nan"), None, "B1")]
    ['0.123', '7', '7.000', 'undefined', '', 'B1']
    """
    if cell is None:
        return ""
    if isinstance(cell, float):
        return UNDEFINED if math.isnan(cell) else f"{cell:z.{digits}f}"
    return str(cell)


def format_interval(low: float, high: float, digits: int = 3) -> str | None:
    """Return an interval as people read it, and nothing where there is none.

    >>> format_interval(0.5, 0.75)
    '0.500 to 0.750'
    """
    if math.isnan(low) or math.isnan(high):
        return None
    return f"{format_cell(low, digits)} to {format_cell(high, digits)}"


def format_grid_rows(grid: Grid) -> list[list[str]]:
    """Return header and rows as texts that cannot drive a terminal."""
    return [
        [replace_control_characters(format_cell(cell)) for cell in row]
        for row in (grid.header, *grid.rows)
    ]
